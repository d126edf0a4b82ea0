#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`gpurt monitor` on a terminal: tmux is one whose screen can be read.

Usage: monitor_tmux.py GPURT FAKE_NVML_FOLDER

At 80x24 and 200x50 everything fits; it follows another size; whichever way it ends, the terminal is as it was before. Exit code
77 where there is no tmux.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata

from monitor import Published, begin_training, run_checks

GPURT, NVML = (os.path.abspath(path) for path in sys.argv[1:3])


class Terminal:
    def __init__(self, tmp, columns, rows):
        self.name = tempfile.mktemp(prefix="tmux.", dir=tmp)
        env = {**os.environ, "XDG_RUNTIME_DIR": tmp, "LC_ALL": "C.UTF-8", "PS1": "prompt> ", "HISTFILE": "", "LD_LIBRARY_PATH": NVML}
        env.pop("NO_COLOR", None)
        env.pop("TMUX", None)
        subprocess.run(["tmux", "-u", "-S", self.name, "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                        "bash", "--norc", "--noprofile"], env=env, check=True)
        self.wait("a prompt", lambda text: "prompt>" in text)

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.name, *words], capture_output=True, text=True, check=True).stdout

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, what, condition):
        end = time.monotonic() + 600
        while time.monotonic() < end:
            text = self.text()
            if condition(text):
                return text
            time.sleep(0.05)
        raise AssertionError(f"waited in vain: {what}:\n{text}")

    def begin(self, *words):
        self.type("ulimit -c 0; clear; " + " ".join([GPURT, "monitor", "--interval", "0.1", *words]), "Enter")
        return self.wait("the monitor", lambda text: "gpurt monitor" in text and "q ends" in text)

    def widest(self):
        """Columns of the widest line of a frame as it is written: the terminal itself would cut it."""
        path = tempfile.mktemp(prefix="frames.", dir=os.path.dirname(self.name))
        self.tmux("pipe-pane", f"exec cat > {path}")
        frames = []
        end = time.monotonic() + 600
        while not frames and time.monotonic() < end:
            time.sleep(0.05)
            written = open(path, encoding="utf-8", errors="replace").read() if os.path.exists(path) else ""
            frames = re.findall(r"\033\[\?2026h\033\[H(.*?)\033\[J\033\[\?2026l", written, re.DOTALL)
        self.tmux("pipe-pane")
        assert frames, "no frame was written"
        return max(width(line) for line in re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", frames[-1]).splitlines())

    def is_clean(self, code):
        """Back at the prompt, with the ordinary screen, a cursor, and keys that are echoed."""
        self.wait("the ordinary screen", lambda text: self.tmux("display", "-p", "#{alternate_on} #{cursor_flag} #{wrap_flag}").split()
                  == ["0", "1", "1"])
        self.type("C-l", "")
        self.type("echo code $?; stty -a | tr ' ' '\\n' | grep -cxE -e '-?(echo|icanon)' ; stty -a | tr ' ' '\\n' | grep -xE -e '-?(echo|icanon)'",
                  "Enter")
        text = self.wait("the state of the terminal", lambda text: "\necho" in text and "\nicanon" in text)
        assert f"code {code}" in text and "-echo\n" not in text and "-icanon\n" not in text, text
        assert "NVIDIA" not in text, text
        self.type("clear", "Enter")
        self.wait("a prompt", lambda text: text.strip() == "prompt>")

    def close(self):
        subprocess.run(["tmux", "-S", self.name, "kill-server"], capture_output=True, check=False)


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def check_sizes(tmp):
    published = Published(tmp, 1234, app="train supervised", device="vulkan:0", name="NVIDIA Fake", pci="0000:65:00.0", software=0,
                          step=123456, steps=10000000, rate=1.25e6, rate_of="samples_per_s", score=0.017, score_of="loss", left=3907,
                          memory=1 << 30)
    wide = Published(tmp, 1235, app="\uac00\uac01\uac02 \033[31m", device="ref:0", name="CPU", software=1, step=1, steps=2)
    terminal = Terminal(tmp, 80, 24)
    try:
        terminal.begin()
        small = terminal.wait("a share", lambda text: " 42 %" in text and "\u2584" * 3 in text and "Remedy" in text)
        lines = small.splitlines()
        assert len(lines) <= 24 and 60 <= terminal.widest() <= 80, small
        # What names a device and a process stays; a sentence is broken between words.
        for word in ("NVIDIA Fake", "busy", "72 GiB", "1234", "train supervised", "123456/10000000", "1.25M/s", "1:05:07", "batch_size",
                     "\uac00\uac01\uac02 \\x1b[31m"):
            assert word in small, f"no {word}:\n{small}"
        row = next(line for line in lines if line.strip().startswith("1234 "))
        heads = next(line for line in lines if line.strip().startswith("pid "))
        other = next(line for line in lines if line.strip().startswith("1235 "))
        place = heads.index("step")
        assert row[place:].startswith("123456/") and other[place - 3:].startswith("1/2"), small  # three wide characters before it
        terminal.tmux("resize-window", "-x", "200", "-y", "50")
        large = terminal.wait("the larger form", lambda text: "CPUs" in text and "\u2584" * 45 in text)
        lines = large.splitlines()
        assert 120 <= terminal.widest() <= 200 and len(lines) <= 50, large
        for word in ("power 346 of 700 W, temperature 61 C, clock 1980 MHz, memory clock 3201 MHz", "90 %  72 GiB of 80 GiB",
                     "not available: power, temperature, clock, memory clock", "NVIDIA \\x1b[31mOld", "CPUs"):
            assert word in large, f"no {word}:\n{large}"
        terminal.tmux("resize-window", "-x", "80", "-y", "12")  # too few rows: a line for each device
        low = terminal.wait("the short form", lambda text: " 42%" in text and "train supervised" in text)
        assert "\u2584" not in low and terminal.widest() <= 80, low
        terminal.tmux("resize-window", "-x", "30", "-y", "6")
        tiny = terminal.wait("a tiny form", lambda text: text.startswith("gpurt monitor"))
        assert terminal.widest() <= 30, tiny
        terminal.tmux("resize-window", "-x", "80", "-y", "24")
        terminal.wait("the first form", lambda text: "Remedy" in text and text.splitlines()[0].startswith("gpurt monitor"))
        terminal.type("q")
        terminal.is_clean(0)
    finally:
        terminal.close()
        published.close()
        wide.close()


def monitor_of(terminal):
    shell = terminal.tmux("display", "-p", "#{pane_pid}").strip()
    return int(subprocess.run(["pgrep", "-P", shell, "gpurt"], capture_output=True, text=True, check=True).stdout.split()[0])


def check_ends(tmp):
    terminal = Terminal(tmp, 80, 24)
    try:
        terminal.begin()
        terminal.type("C-c")
        terminal.is_clean(0)
        for number, code in (signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGQUIT, 131), (signal.SIGSEGV, 139):
            terminal.begin()
            os.kill(monitor_of(terminal), number)
            terminal.is_clean(code)
        terminal.begin()
        terminal.type("C-z")
        terminal.wait("the shell", lambda text: "Stopped" in text)
        terminal.type("fg", "Enter")
        terminal.wait("the monitor again", lambda text: "q ends" in text)
        terminal.type("q")
        terminal.is_clean(0)
    finally:
        terminal.close()


def check_pipe(tmp):
    """Into a pipe Ctrl-C ends it, without a word: there is no step that it would wait for."""
    terminal = Terminal(tmp, 80, 24)
    try:
        terminal.type(f"clear; {GPURT} monitor --interval 0.1 | cat", "Enter")
        terminal.wait("rows", lambda text: "NVIDIA Fake" in text)
        terminal.type("C-c")
        text = terminal.wait("the prompt", lambda text: text.rstrip().endswith("prompt>"))
        assert "stopping" not in text, text
    finally:
        terminal.close()


def check_kill(tmp):
    """A training that is watched is killed: its row goes."""
    terminal = Terminal(tmp, 80, 24)
    training = begin_training(tmp, "epochs=100000")
    try:
        terminal.begin()
        row = f"{training.pid}  train supervised"
        terminal.wait("the training, and its loss", lambda text: row in text and "/s " in text)
        training.kill()
        training.communicate()
        text = terminal.wait("nothing", lambda text: "No gpurt process" in text)
        assert row not in text, text
        terminal.type("q")
        terminal.is_clean(0)
    finally:
        training.kill()
        terminal.close()


def main():
    if not shutil.which("tmux"):
        print("monitor_tmux.py: SKIPPED: there is no tmux")
        sys.exit(77)
    run_checks(check_sizes, check_ends, check_pipe, check_kill)


main()
