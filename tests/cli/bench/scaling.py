#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of `gpurt bench scaling --format json` against the model's formulas, written once more.

Usage: scaling.py FILE
"""
import json
import sys

report = json.load(open(sys.argv[1]))
rows = [r for r in report["rows"] if r["kind"] == "step"]
assert [r["ranks"] for r in rows] == [1, 2], rows
one, two = rows


def near(name, got, want, of=0):
    """Numbers are told with eight digits; of: the largest that `want` is a difference of."""
    assert abs(got - want) <= 1e-6 * max(abs(want), of, 1e-9), f"{name}: {got}, wanted {want}"


parts = two["readback_ms"] + two["host_ms"] + two["network_ms"] + two["upload_ms"]
# Of buckets of 4 MiB, at most 24, the last one is behind backward, which is two thirds of a step.
buckets = 1 if two["train"] == "ppo" else min(max(two["exchange_bytes"] / 2**22, 1), 24)
hidden = min(two["overlap"] * (1 - 1 / buckets) * (two["host_ms"] + two["network_ms"]), two["alone_ms"] * 2 / 3)
near("hidden", two["hidden_ms"], hidden)
exchange = two["wait_ms"] + parts - hidden
assert 0 <= two["fitted_overlap"] <= 1 and -1 <= two["overlap"] <= 1
assert exchange > 0 and two["wait_ms"] >= 0
near("predicted exchange", two["predicted_exchange_ms"], exchange, parts)
near("predicted", two["predicted_ms"], two["alone_ms"] + exchange)
near("exchange", two["exchange_ms"], max(0, two["step_ms"] - two["alone_ms"]), two["step_ms"])
near("efficiency of two", two["efficiency"], one["step_ms"] / (2 * two["step_ms"]))
near("efficiency of one", one["efficiency"], 1)
for row in rows:
    near("rate", row["samples_per_s"], row["batch"] / row["step_ms"] * 1e3)
    assert row["step_ms"] > 0 and row["samples"] >= 1
if one["train"] == "supervised":
    assert two["exchange_bytes"] == 4 * two["parameters"]
elif one["train"] == "ppo":  # four epochs of four minibatches
    assert two["exchange_bytes"] == 16 * 4 * two["parameters"], two
    # A rank alone copies its gradients too.
    assert hidden == 0 and two["upload_ms"] == 0 and two["readback_ms"] == 0 and two["host_ms"] > 0
else:  # two sides of a direction: five results, two sums of each of four observations, in f32
    assert two["exchange_bytes"] == two["batch"] * 2 * (5 + 2 * 4) * 4
faster = one["step_ms"] / two["step_ms"]
said = "not judged" if faster > 2.4 else "do not pay" if faster < 1.2 else "devices pay"
assert said in report["verdict"], report["verdict"]
