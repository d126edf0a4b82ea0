#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What an outside check needs: the first weights (--epochs 0) and the order of rows (data order) are enough to compute a
training again, here a linear network with SGD in NumPy. So are limits of an epoch, validations within it, and the schedule
plateau, against PyTorch's ReduceLROnPlateau written out. What the host alone decides is tried in all its forms with ref,
and in some of them with drivers, where a command takes three times as long. Usage: outside.py GPURT [DEVICE]"""
import functools
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

gpurt = os.path.abspath(sys.argv[1])
device = sys.argv[2] if len(sys.argv) > 2 else "ref:0"
host = device.startswith("ref")
ROWS, WIDTH, BATCH, RATE = 90, 3, 8, 0.05


def run(*words, code=0, errors=False):
    done = subprocess.run([gpurt, *words], capture_output=True, text=True, timeout=600)
    if done.returncode != code:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done.stderr if code or errors else done.stdout


def train(folder, *words, code=0):
    return run("train", "supervised", "--data", "d.h5", "--device", device, "-q", "model=[{linear: out}]", "optimizer=sgd",
               f"learning_rate={RATE}", f"batch_size={BATCH}", f"checkpoint_dir={folder}", *words, code=code)


def weights(path):
    with h5py.File(path) as f:
        return np.array(f["model/0/weight"], "f8"), np.array(f["model/0/bias"], "f8")


def newest(folder):
    return sorted(glob.glob(f"{folder}/step-*.h5"))[-1]


@functools.cache
def order(epoch, *words):
    lines = run("data", "order", "--data", "d.h5", "--device", device, "--format", "csv", "--epoch", str(epoch),
                f"batch_size={BATCH}", *words).split()
    assert lines[0] == "step,row", lines[0]
    return np.array([[int(n) for n in line.split(",")] for line in lines[1:]])


def rows(path, event):
    with open(path) as f:
        return [r for r in map(json.loads, f) if r["event"] == event]


def learn(start, epochs, rates, *words):
    """The same training in NumPy."""
    w, b = start
    step = 0
    for epoch in range(1, epochs + 1):
        drawn = order(epoch, *words)
        for k in range(1, drawn[-1, 0] + 1):
            at = drawn[drawn[:, 0] == k, 1]
            e = x[at] @ w.T + b - y[at]
            rate = rates[step] if rates is not None else RATE
            w, b = w - rate * 2 * e.T @ x[at] / e.size, b - rate * 2 * e.sum(0) / e.size
            step += 1
    return w, b, step


def same(folder, epochs, *words, rates=None):
    train("first", "epochs=0", *words)
    train(folder, f"epochs={epochs}", *words)
    w, b, steps = learn(weights(newest("first")), epochs, rates, *words)
    theirs = weights(newest(folder))
    assert newest(folder).endswith(f"{steps:012d}.h5"), (newest(folder), steps)
    assert np.abs(theirs[0] - w).max() < 1e-5 and np.abs(theirs[1] - b).max() < 1e-5, (folder, theirs, w, b)
    shutil.rmtree("first")


def trainings():
    same("all", 3)
    same("seeded", 2, "seed=7", "validation_split=0.4", "drop_last=true")
    same("percent", 2, "limit_train_batches=25%", "accumulate=3")
    train("overall", "epochs=2", "overfit_batches=1.0", "--log", "overall.jsonl")
    w, b = weights(newest("overall"))
    loss, told = ((x @ w.T + b - y) ** 2).mean(), rows("overall.jsonl", "evaluate")[-1]["loss"]
    assert abs(loss - told) < 1e-5 * max(1, loss), (loss, told)
    if host:
        limits()


def limits():
    """Which rows an epoch has."""
    same("limited", 3, "limit_train_batches=4")
    same("share", 2, "limit_train_batches=0.5")
    same("over", 4, "overfit_batches=2")
    first = [order(e, "overfit_batches=2")[:, 1] for e in (1, 2, 9)]
    assert (first[0] == first[1]).all() and (first[0] == first[2]).all() and len(first[0]) == 2 * BATCH
    for share in ("1.0", "100%"):
        assert sorted(order(1, f"overfit_batches={share}")[:, 1]) == list(range(ROWS)), share
    said = run("train", "supervised", "--data", "d.h5", "--device", device, "epochs=1", "batch_size=16", "accumulate=4",
               "limit_train_batches=1", "checkpoint_dir=said", errors=True)
    assert "limit       16 samples an epoch" in said, said
    assert (order(1)[:, 1] != order(2)[:, 1]).any()
    assert len(order(1, "limit_train_batches=1.0")) == len(order(1)) == ROWS - ROWS // 10
    kept = order(1, "--part", "validation")[:, 1]
    assert sorted(np.concatenate([kept, order(1)[:, 1]])) == list(range(ROWS))
    assert len(order(1, "validation_data=d.h5")) == ROWS
    with h5py.File("hole.h5", "w") as f:
        f["x"], f["y"] = np.where(np.arange(ROWS)[:, None] == 5, np.nan, x), y
    drawn = run("data", "order", "--data", "hole.h5", "--device", device, "--format", "csv", "on_nan=drop", "validation_split=0").split()[1:]
    assert sorted(int(line.split(",")[1]) for line in drawn) == [i for i in range(ROWS) if i != 5]
    for words, said in ((["limit_train_batches=2.5"], "neither a whole number nor a share"),
                        (["limit_train_batches=-1"], "limit_train_batches"),
                        (["overfit_batches=2", "limit_train_batches=3"], "leave out"),
                        (["plateau_patience=3"], "has no effect"),
                        (["val_check_interval=nan"], "val_check_interval")):
        assert said in train("never", *words, code=78), words
    assert not os.path.exists("never")


def validations():
    """In the middle of epochs: the loss of the same weights over the same rows, and a resume from each checkpoint."""
    words = ["epochs=3", "val_check_interval=4", "checkpoint_interval=4", "keep=100", "num_workers=2"]
    for cache in ("none", "device"):
        folder = f"mid-{cache}"
        train(folder, *words, f"cache={cache}", "--log", f"{folder}.jsonl")
        told = rows(f"{folder}.jsonl", "evaluate")
        assert [r["step"] for r in told] == [4 * (i + 1) for i in range(8)] + [33], [r["step"] for r in told]
        kept = order(1, "--part", "validation")[:, 1]
        for r in told:
            w, b = weights(f"{folder}/step-{r['step']:012d}.h5")
            loss = ((x[kept] @ w.T + b - y[kept]) ** 2).mean()
            assert abs(loss - r["loss"]) < 1e-5 * max(1, loss), (r, loss)
    whole = open(newest("mid-none"), "rb").read()
    assert whole == open(newest("mid-device"), "rb").read()
    # From a checkpoint in another folder: what is behind it there stays.
    train("again", *words, "cache=device", "--resume", "mid-none/step-000000000008.h5")
    assert open(newest("again"), "rb").read() == whole
    assert not os.path.exists("again/step-000000000008.h5") and os.path.exists("again/step-000000000012.h5")
    # The best of that folder stays there: the first validation here is the best, of the same loss.
    os.mkdir("a=b")
    shutil.copy("mid-none/step-000000000008.h5", "a=b/8.h5")
    train("still", *words, "learning_rate=1e-12", "--resume", "a=b/8.h5")
    with h5py.File(newest("still")) as f, h5py.File("still/best.h5") as best:
        assert f.attrs["best_step"] == best.attrs["step"] == 12, f.attrs["best_step"]
    assert "nowhere.h5" in train("again", *words, "--resume", "nowhere.h5", code=66)


def plateau():
    words = ["schedule=plateau", "plateau_factor=0.3", "plateau_patience=1", "plateau_threshold=0.2", "plateau_cooldown=1",
             "min_learning_rate=0.0009", "checkpoint_interval=5"]
    train("flat", *words, "epochs=30", "--log", "flat.jsonl", "keep=100")
    told = rows("flat.jsonl", "evaluate")
    best, bad, cooling, rate = math.inf, 0, 0, RATE
    for r in told:
        assert abs(r["lr"] - rate) < 1e-6 * rate, (r["step"], r["lr"], rate)
        # torch.optim.lr_scheduler.ReduceLROnPlateau.step, threshold_mode "rel"
        if r["loss"] < best * (1 - 0.2):
            best, bad = r["loss"], 0
        else:
            bad += 1
        if cooling > 0:
            cooling -= 1
            bad = 0
        if bad > 1:
            cooling, bad = 1, 0
            new = max(rate * 0.3, 0.0009)
            rate = new if rate - new > 1e-8 else rate
    assert abs(rate - 0.0009) < 1e-9 and len({r["lr"] for r in told}) >= 4, rate
    # Stopped anywhere, also right behind a change, and gone on with.
    steps = told[0]["step"]
    change = next(i for i in range(len(told) - 1) if told[i + 1]["lr"] < told[i]["lr"])
    for stop in (steps * (change + 1), steps * (change + 2) + 3)[0 if host else 1:]:
        train("cut", *words, "epochs=30", f"max_steps={stop}", "keep=100")
        train("cut", *words, "epochs=30", "keep=100", "--resume")
        assert open(newest("cut"), "rb").read() == open(newest("flat"), "rb").read(), stop
        shutil.rmtree("cut")
    if not host:
        return
    # Another schedule has the rate that it says.
    train("flat", "epochs=31", "--resume", "--log", "level.jsonl", "checkpoint_interval=5")
    assert {r["lr"] for r in rows("level.jsonl", "evaluate")} == {told[0]["lr"]}, rows("level.jsonl", "evaluate")
    assert "PPO has not" in run("train", "ppo", "--env", "cartpole", "schedule=one_cycle", "--device", device, code=78)


def weighted():
    """Class weights: PyTorch's weighted mean over a step, in however many parts it is taken."""
    kinds = np.random.default_rng(8).integers(0, 3, ROWS)
    weight = np.array([0.2, 1.0, 5.0])
    with h5py.File("d.h5", "a") as f:
        f["kind"] = kinds.astype("i4")
    # The last three of 75 rows fill no step: in parts of two rows they are two and one.
    words = ["targets=kind", "class_weights=0.2,1,5", "label_smoothing=0", "validation_split=0.17"]
    train("first", "epochs=0", *words)
    w, b = weights(newest("first"))
    for epoch in 1, 2:
        drawn = order(epoch, words[0], words[3])
        assert len(drawn) == 75, len(drawn)
        for k in range(1, drawn[-1, 0] + 1):
            at = drawn[drawn[:, 0] == k, 1]
            e = np.exp(x[at] @ w.T + b)
            slope = (e / e.sum(1, keepdims=True) - np.eye(3)[kinds[at]]) * weight[kinds[at], None] / weight[kinds[at]].sum()
            w, b = w - RATE * slope.T @ x[at], b - RATE * slope.sum(0)
    for parts in ("micro_batches=1", "micro_batches=8", "micro_batches=4", "accumulate=2")[0 if host else 2:]:
        size = ["batch_size=4"] if parts == "accumulate=2" else []
        train("heavy", "epochs=2", *words, parts, *size)
        theirs = weights(newest("heavy"))
        assert np.abs(theirs[0] - w).max() < 1e-5 and np.abs(theirs[1] - b).max() < 1e-5, (parts, theirs, w, b)
        shutil.rmtree("heavy")


def area(score, own, heavy):
    """roc_auc_score by its definition: pairs, by the product of their weights."""
    above = np.sign(score[own][:, None] - score[~own][None]) / 2 + 0.5
    pairs = heavy[own][:, None] * heavy[~own][None]
    return (above * pairs).sum() / pairs.sum()


def f1(guess, truth, heavy):
    one = []
    for k in np.union1d(guess, truth):
        right = heavy[(guess == k) & (truth == k)].sum()
        one.append(2 * right / (heavy[guess == k].sum() + heavy[truth == k].sum()))
    return np.mean(one)


def sampled():
    """Sample weights: sums of weight times loss over sums of weights, of steps in however many parts, and of validations;
    scores as scikit-learn has them with sample_weight."""
    draw = np.random.default_rng(9)
    heavy = draw.choice([0, 0.25, 1, 3.5], ROWS)
    kinds, both = draw.integers(0, 3, ROWS), np.column_stack([y, -y + 1]).astype("f4").astype("f8")
    with h5py.File("d.h5", "a") as f:
        f["w"], f["sort"], f["both"] = heavy.astype("f4"), kinds.astype("i4"), both.astype("f4")
        f["below"], f["hole"] = np.where(np.arange(ROWS) == 7, -0.5, 1), np.where(np.arange(ROWS) == 8, np.nan, 1)
        f["few"], f["wide"], f["nothing"] = np.ones(ROWS - 1), np.ones((ROWS, 2)), np.zeros(ROWS)
    by_kind = np.array([0.2, 1.0, 5.0])
    eye = np.eye(3)

    def slopes(at, w, b, loss, classes):
        out, weigh = x[at] @ w.T + b, heavy[at]
        if loss == "cross_entropy":
            weigh = weigh * (by_kind[kinds[at]] if classes else 1)
            e = np.exp(out)
            slope = e / e.sum(1, keepdims=True) - eye[kinds[at]]
        else:
            e = out - both[at]
            slope = (2 * e if loss == "mse" else np.sign(e) if loss == "l1" else np.clip(e, -0.5, 0.5)) / 2
        return slope * weigh[:, None] / max(weigh.sum(), 1e-30)

    def judged(at, w, b, loss):
        out = x[at] @ w.T + b
        if loss == "cross_entropy":
            each = np.log(np.exp(out).sum(1)) - out[np.arange(len(at)), kinds[at]]
        else:
            e = np.abs(out - both[at])
            each = (e**2 if loss == "mse" else e if loss == "l1" else np.where(e > 0.5, 0.5 * (e - 0.25), e**2 / 2)).mean(1)
        right = (heavy[at] * (out.argmax(1) == kinds[at])).sum() / heavy[at].sum()
        return (heavy[at] * each).sum() / heavy[at].sum(), right

    for loss, classes in ("mse", 0), ("l1", 0), ("huber", 0), ("cross_entropy", 0), ("cross_entropy", 1):
        words = ["sample_weights=w", f"loss={loss}", "targets=" + ("sort" if loss == "cross_entropy" else "both")]
        words += ["class_weights=0.2,1,5"] if classes else ["huber_delta=0.5"] if loss == "huber" else []
        train("first", "epochs=0", *words)
        w, b = weights(newest("first"))
        for epoch in 1, 2:
            drawn = order(epoch)
            for k in range(1, drawn[-1, 0] + 1):
                at = drawn[drawn[:, 0] == k, 1]
                slope = slopes(at, w, b, loss, classes)
                w, b = w - RATE * slope.T @ x[at], b - RATE * slope.sum(0)
        every = loss == "mse" or (loss == "cross_entropy" and not classes)
        parts = ["cache=none", "accumulate=2", "micro_batches=4", "cache=device"][0 if host else 2:] if every else ["cache=ram"]
        for part in parts:
            size = ["batch_size=4"] if part == "accumulate=2" else []
            train("heavy", "epochs=2", *words, part, *size, "--log", "heavy.jsonl")
            theirs = weights(newest("heavy"))
            assert np.abs(theirs[0] - w).max() < 1e-5 and np.abs(theirs[1] - b).max() < 1e-5, (loss, part, theirs, w, b)
            told, kept = rows("heavy.jsonl", "evaluate")[-1], order(1, "--part", "validation")[:, 1]
            wanted, right = judged(kept, *theirs, loss)
            assert abs(told["loss"] - wanted) < 1e-5 * max(1, wanted), (loss, part, told, wanted)
            assert loss != "cross_entropy" or abs(told["accuracy"] - right) < 1e-6, (told, right)
            os.remove("heavy.jsonl")
            if part != parts[-1]:
                shutil.rmtree("heavy")
        shutil.rmtree("first")
        # Of all rows: by the name that the network keeps, by another one, or by none.
        out = x @ theirs[0].T + theirs[1]
        found = json.loads(run("eval", "--data", "d.h5", "--device", device, "--checkpoint", newest("heavy"), "--scores", "--format", "json"))
        found = found["rows"][0] if "rows" in found else found
        wanted, right = judged(np.arange(ROWS), *theirs, loss)
        assert abs(found["loss"] - wanted) < 1e-5 * max(1, wanted), (loss, found, wanted)
        if loss == "cross_entropy":
            share = np.exp(out) / np.exp(out).sum(1, keepdims=True)
            auc = np.mean([area(share[:, k], kinds == k, heavy) for k in range(3)])
            assert abs(found["accuracy"] - right) < 1e-6 and abs(found["auc"] - auc) < 1e-5, (found, right, auc)
            most = max(heavy[kinds == k].sum() for k in range(3)) / heavy.sum()
            assert abs(found["most_frequent"] - most) < 1e-6 and abs(most - np.bincount(kinds).max() / ROWS) > 1e-3, (found, most)
            assert abs(found["f1"] - f1(out.argmax(1), kinds, heavy)) < 1e-6, found
            # Of one class alone no order of others is to be had: nothing is told, and no NaN.
            if device.startswith("ref"):
                with h5py.File("d.h5") as whole, h5py.File("alone.h5", "w") as alone:
                    for name in whole:
                        alone[name] = whole[name][kinds == 1] if whole[name].shape[:1] == (ROWS,) else whole[name][()]
                lines = run("eval", "--data", "alone.h5", "--device", device, "--checkpoint", newest("heavy"), "--scores", "--format",
                            "csv").splitlines()
                told = dict(zip(lines[0].split(","), lines[1].split(",")))
                assert told["auc"] == "" and float(told["f1"]) > 0 and told["samples"] == str((kinds == 1).sum()), told
        else:
            middle = (heavy[:, None] * both).sum(0) / heavy.sum()
            spread = (heavy[:, None] * (both - middle)**2).sum(0)
            r2 = (1 - (heavy[:, None] * (both - out)**2).sum(0) / spread).mean()
            mae = (heavy[:, None] * np.abs(both - out)).sum() / heavy.sum() / 2
            assert abs(found["r2"] - r2) < 1e-5 and abs(found["mae"] - mae) < 1e-5, (found, r2, mae)
        if every:
            plain = json.loads(run("eval", "--data", "d.h5", "--device", device, "--checkpoint", newest("heavy"), "--format", "json", "sample_weights=none"))
            plain = plain["rows"][0] if "rows" in plain else plain
            saved, heavy = heavy, np.ones(ROWS)
            wanted = judged(np.arange(ROWS), *theirs, loss)[0]
            heavy = saved
            assert abs(plain["loss"] - wanted) < 1e-5 * max(1, wanted) and plain["samples"] == found["samples"] == ROWS, (plain, wanted)
        if host:
            run("predict", "--data", "d.h5", "--device", device, "--checkpoint", "heavy", "-o", "said.h5")
        shutil.rmtree("heavy")
    # No sample counts: in the whole file, or in the part of it that is judged.
    held = order(1, "--part", "validation")[:, 1]
    with h5py.File("d.h5", "a") as f:
        f["aside"] = np.where(np.isin(np.arange(ROWS), held), 0, 1.0)
    for words in (["targets=both"], ["targets=sort", "loss=cross_entropy"]) if host else ():
        train("none", "epochs=1", *words)
        judge = ["eval", "--data", "d.h5", "--device", device, "--checkpoint", newest("none"), "--part", "validation"]
        for name in "nothing", "aside":
            assert "`sample_weights=none` leaves weights out" in run(*judge, f"sample_weights={name}", code=65), (words, name)
        shutil.rmtree("none")
    # Steps without weight are no part of the mean over steps.
    drawn = order(1)
    idle = np.isin(np.arange(ROWS), drawn[drawn[:, 0] % 2 == 0, 1])
    with h5py.File("d.h5", "a") as f:
        f["some"] = np.where(idle, 0, 1.0)
    train("some", "epochs=1", "targets=both", "loss=mse", "sample_weights=some", "log_interval=1", "--log", "some.jsonl")
    steps, sizes = [r["loss"] for r in rows("some.jsonl", "train")], np.bincount(drawn[:, 0])[1:]
    assert all((loss == 0) == (k % 2 == 1) for k, loss in enumerate(steps)), steps
    wanted = (np.array(steps) * sizes)[::2].sum() / sizes[::2].sum()
    told = rows("some.jsonl", "evaluate")[-1]["train_loss"]
    assert abs(told - wanted) < 1e-5 * wanted, (told, wanted, steps)
    os.remove("some.jsonl")
    shutil.rmtree("some")
    # Steps that are fitted perfectly are part of it: every second step has as its targets what the
    # first network says.
    one = ["targets=fitted", "loss=mse", "sample_weights=w", "learning_rate=1e-12", "weight_decay=0", "log_interval=1"]
    shutil.rmtree("first", ignore_errors=True)
    train("first", "epochs=0", "targets=y", "loss=mse")
    run("predict", "--data", "d.h5", "--device", device, "--checkpoint", newest("first"), "-o", "first.h5")
    with h5py.File("first.h5") as f, h5py.File("d.h5", "a") as d:
        said = np.array(f["y"]).reshape(ROWS)
        d["fitted"] = np.where(idle, said, said + 1)
    for words in [], ["micro_batches=2"]:
        train("fitted", "epochs=1", *one, *words, "--log", "fitted.jsonl")
        steps = [r["loss"] for r in rows("fitted.jsonl", "train")]
        assert all((loss == 0) == (k % 2 == 1) for k, loss in enumerate(steps)), steps
        wanted, told = (np.array(steps) * sizes).sum() / sizes.sum(), rows("fitted.jsonl", "evaluate")[-1]["train_loss"]
        assert abs(told - wanted) < 1e-5 * wanted, (told, wanted, steps)
        os.remove("fitted.jsonl")
        shutil.rmtree("fitted")
    shutil.rmtree("first")
    # A validation that weighs nothing has no loss.
    if host:
        assert "sample_weights=aside) are all 0" in train("never", "epochs=2", "targets=both", "loss=mse", "sample_weights=aside", code=65)
        shutil.rmtree("never")
    # Weights count by their shares: in any unit, to the limits of f32, the same bits, f16 too.
    units = (0, -125, -33, 23, 125) if host else (0, -125, 125)
    for power in units:
        with h5py.File("d.h5", "a") as f:
            f[f"unit{power}"] = np.ldexp(heavy, power).astype("f4")
    forms = (["loss=mse", "targets=both"], ["loss=mse", "targets=both", "precision=f16", "on_nan=late", "cache=none"],
             ["loss=cross_entropy", "targets=sort", "precision=f16"], ["loss=mse", "targets=both", "cache=device"])
    for words in forms[0 if host else 2:]:
        found = {}
        for power in units:
            train("unit", "epochs=2", f"sample_weights=unit{power}", *words)
            kept = weights(newest("unit"))
            told = json.loads(run("eval", "--data", "d.h5", "--device", device, "--checkpoint", newest("unit"), "--format", "json"))
            found[power] = [kept[0].tolist(), kept[1].tolist(), (told["rows"][0] if "rows" in told else told)["loss"]]
            shutil.rmtree("unit")
            assert found[power] == found[0], (words, power, found[power], found[0])
    for name, code, said in () if not host else (("below", 65, "row 7 of the sample weights is -0.5"), ("hole", 65, "row 8 of the sample weights is nan"),
                             ("few", 65, f"'few' has {ROWS - 1}"), ("wide", 65, "one number a row is wanted"),
                             ("nothing", 65, "all 0"), ("nowhere", 65, "nowhere")):
        for late in ([], ["on_nan=late"]) if name in ("below", "hole") else ([],):
            assert said in train("never", f"sample_weights={name}", *late, code=code), (name, late)
    assert "no effect" in run("train", "simclr", "--data", "d.h5", "--device", device, "model=mlp", "sample_weights=w", code=78)


def mixed():
    """Several losses for several targets: each of a step and of a validation, their weighted sum, and the weights after an
    epoch, in however many parts; resumed to the same file; trials and predictions of them; what is refused."""
    draw = np.random.default_rng(12)
    near = draw.normal(size=(ROWS, 2)).astype("f4").astype("f8")
    kind, part = draw.integers(0, 5, ROWS), draw.uniform(size=(ROWS, 1)).astype("f4").astype("f8")
    kind[0] = 4
    heavy = draw.choice([0.25, 1, 3], ROWS)
    with h5py.File("m.h5", "w") as f:
        f["x"], f["near"], f["kind"] = x.astype("f4"), near.astype("f4"), kind.astype("i4")
        f["part"], f["heavy"], f["real"] = part.astype("f4"), heavy.astype("f4"), kind.astype("f4")
        f["over"] = part.astype("f4") + 0.5

    def learn_mixed(folder, *words, code=0):
        return run("train", "supervised", "--data", "m.h5", "--device", device, "-q", "model=[{linear: out}]", "optimizer=sgd",
                   f"learning_rate={RATE}", f"batch_size={BATCH}", "validation_split=0.17", f"checkpoint_dir={folder}", "log_interval=1",
                   *words, code=code)

    def drawn(*words):
        lines = run("data", "order", "--data", "m.h5", "--device", device, "--format", "csv", f"batch_size={BATCH}",
                    "validation_split=0.17", "targets=near", *words).split()
        return np.array([[int(n) for n in line.split(",")] for line in lines[1:]])

    def judge(at, w, b, second, weigh, smooth=0):
        out, weigh = x[at] @ w.T + b, weigh[at] / weigh[at].sum()
        e, z = out[:, :2] - near[at], out[:, 2:]
        if second == "kind":
            p, t = np.exp(z) / np.exp(z).sum(1, keepdims=True), np.eye(5)[kind[at]] * (1 - smooth) + smooth / 5
            each, slope = -(t * np.log(p)).sum(1), p - t
        else:
            p = 1 / (1 + np.exp(-z))
            each, slope = -(part[at] * np.log(p) + (1 - part[at]) * np.log(1 - p))[:, 0], p - part[at]
        huber = np.abs(e) > 0.5
        first = np.where(huber, 0.5 * (np.abs(e) - 0.25), e**2 / 2).mean(1)
        slopes = [np.clip(e, -0.5, 0.5) / 2, slope]
        return [(weigh * first).sum(), (weigh * each).sum()], [s * weigh[:, None] for s in slopes]

    def close(row, losses, scale):
        told = [row["loss"], row["loss_1"], row["loss_2"]]
        wanted = [losses[0] + scale * losses[1], *losses]
        assert np.abs(np.array(told) - wanted).max() < 1e-5 and "loss_3" not in row, (row, wanted)

    def leaves():
        """What the host makes of such a network."""
        told = run("eval", "--data", "m.h5", "--device", device, "--checkpoint", newest("run"), "--format", "csv")
        assert told.startswith("samples,loss,loss_1,loss_2,accuracy,samples_per_s"), told
        run("convert", newest("run"), "m.onnx")
        os.remove("m.onnx")
        said = run("convert", newest("run"), "m.onnx", "--probabilities", code=78)
        assert "one of several" in said and said.count("\n") == 1, said
        assert "scores are of one loss" in run("eval", "--data", "m.h5", "--device", device, "--checkpoint", newest("run"),
                                               "--scores", code=78)

    kept = drawn("--part", "validation")[:, 1]
    order_of_rows = drawn()
    assert len(order_of_rows) % BATCH, "the last step is to be a short one"
    for second, loss, scale, smooth in ("kind", "cross_entropy(5)", 0.5, 0.1), ("part", "bce", 1.0, 0):
        for weigh, more in (np.ones(ROWS), []), (heavy, ["sample_weights=heavy"]):
            words = [f"targets=near,{second}", f"losses=huber,{loss}", "huber_delta=0.5", *more]
            words += [f"loss_weights=1,{scale}"] if scale != 1 else []
            words += [f"label_smoothing={smooth}"] if smooth else []
            learn_mixed("first", "epochs=0", *words)
            start = weights(newest("first"))
            assert start[0].shape == (7 if second == "kind" else 3, WIDTH), start[0].shape
            for cut in (["cache=none"], ["cache=ram", "accumulate=2", "batch_size=4"], ["cache=device"])[0 if host else 1:]:
                learn_mixed("run", "epochs=1", *words, *cut, "--log", "run.jsonl")
                w, b = start
                told = rows("run.jsonl", "train")
                assert len(told) == order_of_rows[-1, 0], told
                for k in range(1, order_of_rows[-1, 0] + 1):
                    at = order_of_rows[order_of_rows[:, 0] == k, 1]
                    losses, slopes = judge(at, w, b, second, weigh, smooth)
                    close(told[k - 1], losses, scale)
                    slope = np.hstack([slopes[0], scale * slopes[1]])
                    w, b = w - RATE * slope.T @ x[at], b - RATE * slope.sum(0)
                theirs = weights(newest("run"))
                assert np.abs(theirs[0] - w).max() < 1e-5 and np.abs(theirs[1] - b).max() < 1e-5, (cut, theirs, w, b)
                close(rows("run.jsonl", "evaluate")[-1], judge(kept, w, b, second, weigh)[0], scale)
                os.remove("run.jsonl")
                if cut != ["cache=device"]:
                    shutil.rmtree("run")
            found = json.loads(run("eval", "--data", "m.h5", "--device", device, "--checkpoint", newest("run"), "--format", "json"))
            close(found["rows"][0] if "rows" in found else found, judge(np.arange(ROWS), w, b, second, weigh)[0], scale)
            run("predict", "--data", "m.h5", "--device", device, "--checkpoint", newest("run"), "-o", "said.h5")
            with h5py.File("said.h5") as f:
                out = x @ w.T + b
                assert np.abs(f["y"][()] - out).max() < 1e-5 and f.attrs["y_is"] in ("mixed", b"mixed"), dict(f.attrs)
                assert ("class_2" in f) == (second == "kind") and "class_1" not in f and "class" not in f, list(f)
                assert second != "kind" or (f["class_2"][()] == out[:, 2:].argmax(1)).all()
            os.remove("said.h5")
            if host:
                leaves()
            for name in "run", "first":
                shutil.rmtree(name)
    # Stopped within an epoch, in f16, where the loss scale is part of it.
    words = ["targets=near,kind", "losses=mse,cross_entropy(5)", "loss_weights=1,0.5", "sample_weights=heavy", "precision=f16"]
    learn_mixed("whole", "epochs=2", *words)
    learn_mixed("cut", "epochs=2", "max_steps=5", *words)
    learn_mixed("cut", "epochs=2", "--resume", *words)
    assert open(newest("cut"), "rb").read() == open(newest("whole"), "rb").read()
    # The second validation has sums of its own, wherever the rows are.
    told = {}
    for cache in "device", "none":
        learn_mixed("kept", "epochs=2", *words, f"cache={cache}", "--log", "kept.jsonl")
        told[cache] = [[row[k] for k in ("loss", "loss_1", "loss_2")] for row in rows("kept.jsonl", "evaluate")]
        shutil.rmtree("kept")
        os.remove("kept.jsonl")
    assert len(told["none"]) == 2 and told["device"] == told["none"] and told["none"][0] != told["none"][1], told
    if not host:
        return
    changed = learn_mixed("whole", "epochs=3", "--resume", *words, "loss_weights=1,2", code=78)
    assert "loss_weights" in changed and "another run" in changed, changed
    shown = run("train", "supervised", "--data", "m.h5", "--device", device, "epochs=1", "checkpoint_dir=shown", "targets=near,kind",
                "losses=mse,cross_entropy(5)", "validation_data=m.h5", errors=True)
    assert 'loss ["mse(2)", "cross_entropy(5)"]:' in shown, shown
    shown = run("train", "supervised", "--data", "m.h5", "--device", device, "epochs=1", "checkpoint_dir=shown2", "targets=near,kind",
                "losses=mse,cross_entropy(5)", "validation_data=m.h5")
    assert "loss 1" in shown and "loss 2" in shown and "loss 3" not in shown, shown
    three = ["targets=near,part,kind"]
    for words, code, said in ((["targets=near,kind", "losses=mse"], 78, "losses has 1: for one loss of all targets, give loss=mse\n"),
                              (["targets=kind", "losses=cross_entropy(5)"], 78, "losses has 1: for one loss of all targets, give loss=cross_entropy\n"),
                              (["losses=mse,mse"], 78, "losses wants targets, a data set for each: targets=A,B"),
                              (["loss=mse,cross_entropy(5)"], 78, "loss wants a word, not a list: losses has one for each of targets"),
                              ([*three, "losses=mse,mse"], 78, "losses has 2, and targets has 3"),
                              ([*three, "losses=mse,bce,cross_entropy(5)", "loss_weights=1,2"], 78, "loss_weights has 2"),
                              ([*three, "losses=mse,bce,cross_entropy(5)", "loss_weights=1,-2,1"], 78, "loss_weights"),
                              ([*three, "losses=mse,bce,cross_entropy(5)", "loss_weights=1,nan,1"], 78, "loss_weights"),
                              ([*three, "losses=mse,bce,cross_entropy(5)", "loss_weights=1,0,1"], 78, "0 is not above 0: leave that target and its loss out"),
                              ([*three, "losses=mse,bce,cross_entropy"], 78, "wants the number of classes"),
                              ([*three, "losses=mse,bce,cross_entropy(x)"], 78, "a number from 1 to 65536"),
                              ([*three, "losses=mse,square,cross_entropy(5)"], 78, "'square' is none of mse, huber"),
                              ([*three, "losses=mse,nt_xent,cross_entropy(5)"], 78, "'nt_xent' is none of"),
                              ([*three, "losses=mse(3),bce,cross_entropy(5)"], 78, "mse is of 3 numbers, and 'near' of m.h5 has 2"),
                              ([*three, "losses=mse,bce,cross_entropy(4)"], 65, "of 'kind' has class 4; classes are 0 to 3: cross_entropy(N) says how many"),
                              ([*three, "losses=mse,cross_entropy(5),mse"], 65, "'part' cannot be a class: one integer a row is wanted; losses are in the order of targets"),
                              (["targets=near,real", "losses=mse,cross_entropy(5)"], 65, "cannot be a class"),
                              (["targets=near,over", "losses=mse,bce"], 65, "of the targets 'over' has 1."),
                              (["targets=over", "loss=bce"], 65, "of the targets has 1."),
                              (["targets=near,part", "losses=mse,bce", "loss=mse"], 78, "losses and loss mse: give one of them"),
                              (["targets=near,part", "loss_weights=1,2"], 78, "loss_weights has no effect"),
                              (["targets=near,kind", "losses=mse,cross_entropy(5)", "class_weights=1,1,1,1,1"], 78, "class_weights has no effect"),
                              (["targets=near,part", "losses=mse,bce", "huber_delta=2"], 78, "huber_delta has no effect"),
                              (["targets=near,part", "losses=mse,bce", "micro_batches=4"], 78, "losses want one process: leave out ranks; give accumulate in place of micro_batches"),
                              (["targets=near,part", "losses=mse,bce", "metric_for_best=accuracy"], 78, "metric_for_best: there is no accuracy with losses; use loss"),
                              (["targets=near,kind", "losses=mse,cross_entropy(5)", "metric_for_best=top5"], 78, "metric_for_best: there is no top5 with losses; use loss"),
                              (["targets=near,kind", "losses=mse,cross_entropy(5)", "target_accuracy=0.5"], 78, "target_accuracy: there is no accuracy with losses; use target_loss"),
                              (["targets=near,kind", "losses=mse,cross_entropy(5)", "model=[{linear: 9}]"], 78, "7")):
        told = learn_mixed("never", *words, code=code)
        assert said in told and told.count("\n") == 1 and not os.path.exists("never"), (words, told)
    told = run("train", "simclr", "--data", "m.h5", "--device", device, "model=mlp", "losses=mse,bce", "checkpoint_dir=never", code=78)
    assert "losses has no effect with nt_xent, the loss of simclr: leave it out" in told, told


def noise():
    """The gradient noise scale of each step, by the gradients of its four parts."""
    words = ["micro_batches=4", "log_interval=1", "epochs=1", "seed=2", "validation_split=0.2"]
    train("first", "epochs=0", "seed=2", "validation_split=0.2")
    train("noisy", *words, "--log", "noisy.jsonl")
    w, b = weights(newest("first"))
    told, drawn, found = rows("noisy.jsonl", "train"), order(1, "seed=2", "validation_split=0.2"), 0
    assert len(told) == drawn[-1, 0]
    for k, row in enumerate(told):
        at = drawn[drawn[:, 0] == k + 1, 1]
        e = 2 * (x[at] @ w.T + b - y[at])
        each = np.column_stack([e * x[at], e]).reshape(4, -1, WIDTH + 1).mean(1) if len(at) == BATCH else None
        if each is not None:
            small, big = (each**2).sum(1).mean(), (each.mean(0)**2).sum()
            noise, signal = (small - big) / (4 / BATCH - 1 / BATCH), (4 * big - small) / 3
            assert ("grad_noise" in row) == (noise > 0 and signal > 0), (row, noise, signal)
            if "grad_noise" in row:
                assert abs(row["grad_noise"] - noise / signal) < 1e-3 * noise / signal, (row, noise, signal)
                found += 1
        w, b = w - RATE * (e.T @ x[at]) / e.size, b - RATE * e.mean(0)
    assert found >= 5, found


def philox(counter, key):
    """Philox4x32-10 as its paper has it."""
    c, k = [np.uint64(v) for v in counter], [np.uint64(v) for v in key]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ k[0], b & low, (a >> np.uint64(32)) ^ c[3] ^ k[1], a & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return [int(v) for v in c]


def directions():
    """An update of evolution strategies out of what its directions came to."""
    run("train", "es", "--env", "cartpole", "--policy", "linear", "--num-envs", "3", "--num-dirs", "8", "--top-dirs", "4",
        "--iterations", "2", "--seed", "11", "--no-normalise", "--episode-length", "60", "--step-size", "0.5", "--noise-std", "0.3",
        "--checkpoint", "es.h5", "--directions", "es.csv", "--log", "es.jsonl", "--device", device, "-q")
    table = np.genfromtxt("es.csv", delimiter=",", names=True)
    assert len(table) == 16 and set(table["seed"]) == {11}
    theta = np.zeros(4)
    for i, told in enumerate(rows("es.jsonl", "train")):
        now = table[table["iteration"] == i + 1]
        plus, minus = now["return_plus"], now["return_minus"]
        assert abs(np.concatenate([plus, minus]).mean() - told["return"]) < 1e-3 * abs(told["return"])
        used = sorted(range(8), key=lambda d: -max(plus[d], minus[d]))[:4]
        spread = np.concatenate([plus[used], minus[used]]).std()
        for d in used:
            noise = []
            for quad in range(4):  # the weights of an observation, of which there is one action's
                a, b = philox([quad, d, i, 0x65730001], [11, 0])[:2]
                noise.append(np.sqrt(-2 * np.log(((a >> 8) + 1) / 2**24)) * np.cos(2 * np.pi * (b >> 8) / 2**24))
            theta += 0.5 / (4 * spread) * (plus[d] - minus[d]) * np.array(noise)
    # One that goes on appends its iterations below the same names.
    run("train", "es", "--resume", "es.h5", "--iterations", "3", "--directions", "es.csv", "--checkpoint", "es3.h5", "--device", device, "-q")
    with open("es.csv") as f:
        lines = f.read().splitlines()
    assert len(lines) == 25 and [i for i, line in enumerate(lines) if line.startswith("iteration")] == [0], lines
    assert [line.split(",")[0] for line in lines[17:]] == ["3"] * 8, lines
    with h5py.File("es.h5") as f:
        found = []
        f["model"].visititems(lambda n, o: found.append(o[()].ravel()) if isinstance(o, h5py.Dataset) else None)
    assert np.abs(found[0] - theta).max() < 1e-4 * np.abs(theta).max(), (found, theta)


def policy(path, group="model"):
    found = {}
    with h5py.File(path) as f:
        f[group].visititems(lambda n, o: found.update({n: o[()].ravel()}) if isinstance(o, h5py.Dataset) else None)
    return found


def averages():
    """Running averages of policies: of what runs of 1, 2 and 3 updates come to; trials and checkpoints have them, and a resumed
    run ends with the same file."""
    es = ["train", "es", "--env", "cartpole", "--policy", "mlp16", "--num-envs", "3", "--num-dirs", "8", "--seed", "11",
          "--episode-length", "60", "--step-size", "0.5", "--noise-std", "0.3"]
    ppo = ["train", "ppo", "--env", "pendulum", "--num-envs", "8", "rollout_steps=16", "batch_size=128", "update_epochs=1", "hidden=8",
           "evaluate_envs=4", "lr=0.01"]
    for name, words in ("es", es), ("ppo", ppo):
        words = [*words, "--device", device, "-q"]
        rest = ["evaluate_every=1"]
        for n in 1, 2, 3:
            run(*words, *rest, "--iterations", str(n), "--checkpoint", f"{name}{n}.h5", "--log", f"{name}{n}.jsonl")
        run(*words, *rest, "--iterations", "3", "--checkpoint", f"{name}-a.h5", "--log", f"{name}-a.jsonl", "ema=0.75")
        steps, average = [policy(f"{name}{n}.h5") for n in (1, 2, 3)], policy(f"{name}-a.h5")
        assert average.keys() == steps[0].keys() and len(average) > 2, average.keys()
        far = 0
        for key, numbers in average.items():
            wanted = 0.75 * (0.75 * steps[0][key] + 0.25 * steps[1][key]) + 0.25 * steps[2][key]
            assert np.abs(numbers - wanted).max() < 1e-5 * max(1, np.abs(wanted).max()), (name, key, numbers, wanted)
            far = max(far, np.abs(numbers - steps[2][key]).max())
        assert far > 1e-3, far
        # Training goes on with the newest, which the file keeps too; trials are of the average.
        told, plain = rows(f"{name}-a.jsonl", "train"), rows(f"{name}3.jsonl", "train")
        assert [r.get("return") for r in told] == [r.get("return") for r in plain], (told, plain)
        newest_numbers = np.concatenate([n for k, n in sorted(policy(f"{name}-a.h5", "optimizer").items()) if "newest" in k])
        if name == "ppo":
            wanted = np.concatenate([n for _, n in sorted(steps[2].items())])
            assert sorted(newest_numbers) == sorted(wanted)
        run(*words, *rest, "--iterations", "2", "--checkpoint", f"{name}-b.h5", "ema=0.75")
        run("train", name, "--resume", f"{name}-b.h5", "--iterations", "3", "--device", device, "-q")
        a, b = open(f"{name}-a.h5", "rb").read(), open(f"{name}-b.h5", "rb").read()
        assert a == b, name
        # The trial of the average is that of a run without one that begins with it.
        trials = rows(f"{name}-a.jsonl", "evaluate")
        assert trials[0]["return"] == rows(f"{name}3.jsonl", "evaluate")[0]["return"], trials
        assert trials[2]["return"] != rows(f"{name}3.jsonl", "evaluate")[2]["return"] or name == "es", trials


rng = np.random.default_rng(3)
x = rng.normal(size=(ROWS, WIDTH)).astype("f4").astype("f8")
y = (x @ [[0.5], [-1], [2]] + 0.3 * rng.normal(size=(ROWS, 1))).astype("f4").astype("f8")
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with h5py.File("d.h5", "w") as f:
        f["x"], f["y"] = x.astype("f4"), y.astype("f4")
    trainings()
    validations()
    plateau()
    noise()
    weighted()
    sampled()
    mixed()
    directions()
    averages()
print("outside: the same weights")
