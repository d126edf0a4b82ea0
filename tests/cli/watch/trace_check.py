#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a trace against Chrome's trace format, and what gpurt promises of it; prints what it has.

Usage: trace_check.py TRACE [TRACK...]      each TRACK must be there
"""
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


def main():
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
    for wanted in sys.argv[2:]:
        # A worker that came too late for a batch has no track.
        if not any(name.startswith(wanted) for name in names.values()) and not (wanted == "memory" and counters):
            fail(f"no track '{wanted}' among {sorted(set(names.values()))}")
    kernels = sum(
        1
        for track, list_ in spans.items()
        for _, _, name in list_
        if names[track].startswith("compute queue") and not name.startswith("(")
    )
    print(f"dispatches {kernels} spans {sum(map(len, spans.values()))} counters {counters}")


main()
