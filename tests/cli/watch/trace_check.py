#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a trace against Chrome's trace format, and what gpurt promises of it; prints what it has.

Usage: trace_check.py TRACE [TRACK...] [--phases NAME...]      each TRACK must be there

With --phases every command was timed: each of the compute queue lies in one phase, phases have
commands, and those NAMEs among them come in this order, again and again.
"""
import bisect
import collections
import json
import sys

FIELDS = {
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": float, "dur": float},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
    "C": {"name": str, "pid": int, "tid": int, "ts": float, "args": dict},
    "i": {"name": str, "s": str, "pid": int, "tid": int, "ts": float},
}


def fail(text):
    sys.exit(f"trace_check.py: {text}")


def check_phases(commands, phases, wanted):
    """Both in order; where commands overlap, so may phases."""
    begins = [begin for begin, _, _ in phases]
    held = [0] * len(phases)
    for begin, end, name in commands:
        at = bisect.bisect_right(begins, begin + 1e-3)
        around = [i for i in range(max(0, at - 4), at) if end <= phases[i][1] + 2e-3]
        if not around:
            fail(f"{name} from {begin} to {end} us is in no phase")
        for i in around:
            held[i] += 1
    if 0 in held:
        fail(f"phase {phases[held.index(0)]} has no command")
    cycle = []
    for _, _, name in phases:
        # A step that is cut into several submits has its phases in parts.
        if name in wanted and (not cycle or cycle[-1] != name):
            cycle.append(name)
    for i, name in enumerate(cycle):
        if name != wanted[i % len(wanted)]:
            fail(f"phase {i} is {name}, not {wanted[i % len(wanted)]}: {cycle[:20]}")
    if not cycle or len(cycle) % len(wanted):
        fail(f"phases end amid a step: {cycle}")
    print(f"phases {len(phases)} steps {len(cycle) // len(wanted)}")


def main():
    tracks = sys.argv[2:]
    wanted_phases = []
    if "--phases" in tracks:
        at = tracks.index("--phases")
        tracks, wanted_phases = tracks[:at], tracks[at + 1 :]
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    names, spans = {}, collections.defaultdict(list)
    counters = 0
    end = None
    for event in trace["traceEvents"]:
        fields = FIELDS.get(event.get("ph"))
        if fields is None:
            fail(f"unknown kind of event: {event}")
        for field, kind in fields.items():
            if not isinstance(event.get(field), kind):
                fail(f"'{field}' of {event}")
        track = (event["pid"], event["tid"])
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[track] = event["args"]["name"]
        elif event["ph"] == "X":
            if event["dur"] < 0 or event["ts"] < 0:
                fail(f"a negative time: {event}")
            spans[track].append((event["ts"], event["ts"] + event["dur"], event["name"]))
        elif event["ph"] == "C":
            counters += 1
        elif event["ph"] == "i":
            end = event["ts"]
    if end is None:
        fail("it has no end")
    for track, list_ in spans.items():
        if track not in names:
            fail(f"track {track} has no name")
        until = 0.0
        for begin, ends, name in list_:  # in the order of the file
            if begin < until - 1e-3:
                fail(f"{names[track]}: {name} begins at {begin} us, before {until}")
            until = ends
        if until > end + 1e3:
            fail(f"{names[track]} goes on {until - end} us after the end")
        if sum(e - b for b, e, _ in list_) > end:
            fail(f"{names[track]} is longer than the wall's time")
    for wanted in tracks:
        # A worker that came too late for a batch has no track.
        if not any(name.startswith(wanted) for name in names.values()) and not (wanted == "memory" and counters):
            fail(f"no track '{wanted}' among {sorted(set(names.values()))}")
    kernels = sum(
        1
        for track, list_ in spans.items()
        for _, _, name in list_
        if names[track].startswith("compute queue") and not name.startswith("(")
    )
    if wanted_phases:
        joined = collections.defaultdict(list)  # what overlaps is on tracks of its own
        for track, list_ in spans.items():
            joined[names[track].partition(", overlapping")[0]] += list_
        check_phases(sorted(joined["compute queue"]), sorted(joined["phases"]), wanted_phases)
    print(f"dispatches {kernels} spans {sum(map(len, spans.values()))} counters {counters}")


main()
