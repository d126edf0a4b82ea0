#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`gpurt monitor` without a terminal: what it prints, of which processes, and what --monitor and --metrics write.

Usage: monitor.py GPURT FAKE_NVML_FOLDER SOURCE_DIR

A library that answers as NVML does gives two GPUs with known numbers. Processes are a training on the CPU, and files as a process
on such a GPU would have them, locked by this one.
"""
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GPURT, NVML = sys.argv[1:3]
GIB = 1 << 30


def environment(tmp, nvml=True):
    env = {**os.environ, "XDG_RUNTIME_DIR": tmp, "NO_COLOR": "1"}
    env.pop("GPURT_DEVICE", None)
    if nvml:
        env["LD_LIBRARY_PATH"] = NVML
    return env


def run(tmp, *words, code=0, nvml=True):
    done = subprocess.run([GPURT, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(tmp, nvml))
    assert done.returncode == code, f"{words}: {done.returncode}: {done.stderr}"
    return done


def look(tmp, nvml=True):
    text = run(tmp, "monitor", "--once", "--interval", "0.1", "--format", "json", nvml=nvml).stdout
    found = json.loads(text)
    assert found["schema"] == "gpurt.monitor/1", text
    rows = {kind: [row for row in found["rows"] if row["kind"] == kind] for kind in ("device", "process")}
    assert len(found["rows"]) == len(rows["device"]) + len(rows["process"]), text
    return rows["device"], rows["process"], found["warnings"]


class Published:
    """What a process of gpurt would have published; it lives until this is closed."""

    def __init__(self, tmp, pid, **state):
        folder = os.path.join(tmp, "gpurt")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.path = os.path.join(folder, f"{pid}.json")
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.file.write(json.dumps(state))
        self.file.flush()

    def close(self):
        self.file.close()


def check_devices(tmp):
    devices, processes, warnings = look(tmp)
    assert processes == [] and warnings == [], (processes, warnings)
    first, second, *_, cpu = devices  # others may be those of the machine
    want = {"reader": "nvml", "name": "NVIDIA Fake", "pci": "0000:65:00.0", "utilisation": 0.42, "memory_used": 72 * GIB,
            "memory_total": 80 * GIB, "power": 345.678, "power_limit": 700.0, "temperature": 61.0, "clock": 1980.0,
            "memory_clock": 3201.0, "energy": 1100.0}
    for key, value in want.items():
        assert first[key] == value, (key, first[key], value)
    assert second["memory_total"] == 16 * GIB and second["utilisation"] is None and second["power"] is None, second
    assert cpu["reader"] == "cpu" and 0 <= cpu["utilisation"] <= 1 and cpu["memory_total"] > cpu["memory_used"] > 0, cpu
    devices = look(tmp, nvml=False)[0]
    assert devices[-1]["reader"] == "cpu" and not any(row["name"] == "NVIDIA Fake" for row in devices), devices
    for form in "table", "md", "csv", "jsonl":
        text = run(tmp, "monitor", "--once", "--interval", "0.05", "--format", form).stdout
        assert "NVIDIA Fake" in text and "42%" in text or "0.42" in text, text
        assert "\033" not in text, text


def check_states(tmp):
    busy = Published(tmp, 1234, app="train supervised", device="vulkan:0", name="NVIDIA Fake", pci="0000:65:00.0", software=0, step=500,
                     steps=1000, epoch=2, epochs=4, rate=1.25e6, rate_of="samples_per_s", score=0.017, score_of="loss", left=3907,
                     memory=3 * GIB)
    world = Published(tmp, 1235, app="train ppo", pci="0000:ca:00.0", software=0, step=1, steps=2)
    hostile = Published(tmp, 1236, app="\033[2J\u202eevil\n", device="x" * 5000)
    try:
        devices, processes, warnings = look(tmp)
        assert sum(row["reader"] == "nvml" for row in devices) == 2 and [row["pid"] for row in processes] == [1234, 1235], processes
        row = processes[0]
        for key, value in {"app": "train supervised", "device": "vulkan:0", "step": 500, "steps": 1000, "rate": 1.25e6, "score": 0.017,
                           "score_of": "loss", "left": 3907.0, "memory": 3 * GIB, "epoch": 2, "epochs": 4}.items():
            assert row[key] == value, (key, row)
        assert row["cpus"] is None, row
        # The first GPU is busy 42 % of the time and filled by 90 %, the second filled by 25 %.
        texts = [(warning["pci"], warning["text"]) for warning in warnings]
        assert len(texts) == 3, texts
        assert texts[0][0] == "0000:65:00.0" and "42 %" in texts[0][1] and "larger batch_size" in texts[0][1], texts
        assert "90 %" in texts[1][1] and "smaller batch_size" in texts[1][1], texts
        assert texts[2][0] == "0000:ca:00.0" and "25 %" in texts[2][1] and "larger num_envs" in texts[2][1], texts
        hostile.close()
        hostile = Published(tmp, 1236, app="\033[2J\u202eevil\n", device="x" * 50, step=1e300, steps=-1, left=1e300, rate=-5)
        text = run(tmp, "monitor", "--once", "--interval", "0.05").stdout
        assert "500/1000" in text and "1.25M/s" in text and "1:05:07" in text and "Remedy" in text, text
        assert "\\x1b[2J" in text and "\033" not in text and "\u202e" not in text, text
    finally:
        for published in busy, world, hostile:
            published.close()
    assert look(tmp)[1] == [] and os.listdir(os.path.join(tmp, "gpurt")) == [], "the dead were not removed"


def wait_for(what, condition):
    end = time.monotonic() + 600
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited in vain: {what}")


def names(folder):
    """Without what a process was writing when it was killed."""
    return [name for name in os.listdir(folder) if not name.startswith(".")]


def begin_training(tmp, *more, out=subprocess.DEVNULL):
    return subprocess.Popen([GPURT, "train", "supervised", "--device", "ref:0", "--data", f"{tmp}/d.h5", f"checkpoint_dir={tmp}/run",
                             "batch_size=64", "hidden=4", "depth=1", *more], stdin=subprocess.DEVNULL, stdout=out,
                            stderr=out, text=True, env=environment(tmp))


def check_training(tmp):
    folder = os.path.join(tmp, "gpurt")
    training = begin_training(tmp, "epochs=100000")
    def at_work():
        found = look(tmp)[1]
        return found[0] if found and found[0]["step"] else None
    row = wait_for("a process with a step", at_work)
    assert row["pid"] == training.pid and row["app"] == "train supervised" and row["device"] == "ref:0", row
    assert row["rate"] > 0 and row["score_of"] == "loss" and row["steps"] > row["step"] and row["left"] > 0, row
    assert row["cpus"] is not None and row["cpus"] >= 0, row
    mode = os.stat(os.path.join(folder, f"{training.pid}.json")).st_mode & 0o777
    assert mode == 0o600 and os.stat(folder).st_mode & 0o777 == 0o700, oct(mode)
    later = wait_for("a later step", lambda: (look(tmp)[1] or [{"step": 0}])[0]["step"] > row["step"])
    assert later
    training.kill()
    training.communicate()
    assert names(folder) == [f"{training.pid}.json"], os.listdir(folder)
    assert look(tmp)[1] == [] and names(folder) == [], "the killed one is still there"
    for number in signal.SIGTERM, signal.SIGINT:  # and one that ends in good order takes its file away itself
        training = begin_training(tmp, "epochs=100000")
        wait_for("a state", lambda: os.listdir(folder))
        wait_for("a step", at_work)
        training.send_signal(number)
        training.communicate()
        assert training.returncode == 75 and names(folder) == [], (training.returncode, os.listdir(folder))


def check_stream(tmp):
    """Rows one after the other, until it is stopped or nobody reads."""
    for number in signal.SIGINT, signal.SIGTERM:
        monitor = subprocess.Popen([GPURT, "monitor", "--interval", "0.05", "--format", "jsonl"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, text=True, env=environment(tmp))
        lines = [json.loads(monitor.stdout.readline()) for _ in range(8)]
        assert "schema" in lines[0] and all(line["kind"] == "device" for line in lines[1:]), lines
        monitor.send_signal(number)
        monitor.communicate()
        assert monitor.returncode == 0, monitor.returncode
    monitor = subprocess.Popen([GPURT, "monitor", "--interval", "0.05"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                               env=environment(tmp))
    assert "name" in monitor.stdout.readline()
    monitor.stdout.close()
    assert monitor.wait() == 0, monitor.returncode


def check_sampled(tmp):
    """--monitor and --metrics of a training and a benchmark."""
    source = sys.argv[3]
    log, metrics, page = (os.path.join(tmp, name) for name in ("log.jsonl", "metrics.prom", "page.html"))
    training = begin_training(tmp, "epochs=3", "--monitor", "--metrics", metrics, "--log", log, "--format", "json",
                              f"checkpoint_dir={tmp}/sampled", out=subprocess.PIPE)
    out, err = training.communicate()
    assert training.returncode == 0 and "sensors: " in err, err
    whole = json.loads(out)["monitor"]
    assert whole["reader"] == "cpu" and whole["samples"] > 0 and whole["memory_used"] > 0, whole
    subprocess.run([f"{source}/tests/cli/train/log_schema.py", f"{source}/docs/training.md", log], check=True)
    rows = [json.loads(line) for line in open(log, encoding="utf-8")]
    events = [row["event"] for row in rows]
    assert events.count("evaluate") == 3, events
    assert all(events[i + 1] == "monitor" for i, event in enumerate(events) if event == "evaluate"), events
    sampled = [row for row in rows if row["event"] == "monitor"]
    # An epoch that ended before the next sample has none, and one between two ticks of the system's
    # clock no utilisation.
    assert all(row.get("memory_used", 1) > 0 and 0 <= row.get("utilisation", 0) <= 1 for row in sampled), rows
    assert all("memory_used" in row for row in sampled if "utilisation" in row), rows
    text = open(metrics, encoding="utf-8").read()
    line = re.compile(r'[a-z_]+\{[a-z]+="(\\.|[^"\\])*"(,[a-z]+="(\\.|[^"\\])*")*\} -?[0-9.e+-]+')
    for row in text.splitlines():
        assert line.fullmatch(row) or re.fullmatch(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ (gauge|counter))", row), row
    pid = f'pid="{training.pid}"'
    assert f'gpurt_running{{{pid},app="train supervised",device="ref:0"}} 0\n' in text, text
    assert f'gpurt_device_power_watts{{{pid},name="NVIDIA Fake",pci="0000:65:00.0",reader="nvml"}} 345.678\n' in text, text
    # Energy of epochs, as a GPU would tell it, becomes a curve of the report.
    with open(log, "w", encoding="utf-8") as file:
        for row in rows:
            if row["event"] == "monitor":
                row["epoch_energy"] = 100 + row["step"]
            file.write(json.dumps(row) + "\n")
    run(tmp, "report", log, "--html", page)
    assert "energy of an epoch in J" in open(page, encoding="utf-8").read()
    words = ["bench", "launch", "--device", "ref:0", "--count", "1", "--time", "0.01", "--samples", "1"]
    assert "monitor" in json.loads(run(tmp, *words, "--monitor", "--format", "json").stdout)
    assert "monitor" not in json.loads(run(tmp, *words, "--format", "json").stdout)
    assert "sensors: " in run(tmp, *words, "--monitor").stdout
    assert "--metrics" in run(tmp, *words, "--metrics", "/nowhere/file", code=73).stderr


def check_refusals(tmp):
    for words in (["monitor", "--format", "json"], ["monitor", "--interval", "0"], ["monitor", "--interval", "1e9"], ["monitor", "x"]):
        done = run(tmp, *words, code=64)
        assert done.stdout == "" and done.stderr.count("\n") == 1, done


def run_checks(*checks):
    """Each of a folder of its own, with data to train on; the process ends with 1 at the first that fails."""
    tmp = tempfile.mkdtemp(prefix="monitor.")
    os.chmod(tmp, 0o700)
    try:
        run(tmp, "data", "make", "regression", "--samples", "512", "-o", f"{tmp}/d.h5")
        for check in checks:
            check(tmp)
    except AssertionError as error:
        print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
        sys.exit(1)
    finally:
        shutil.rmtree(tmp)


if __name__ == "__main__":
    run_checks(check_sampled, check_devices, check_states, check_training, check_stream, check_refusals)
