#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks logs of training against the table of events in docs/training.md.

Usage: log_schema.py DOCS LOG...

Each row has exactly the fields that the table names for its event and kind; those in parentheses may be missing. A run
is a row `start`, then others, then `end`, and timings and baselines at most behind it. Steps never fall, but by a rollback.
"""
import json
import re
import sys

COMMON = {"event", "time", "step"}
TEXTS = {"kind", "device", "precision", "env", "policy", "algo", "baseline", "part", "tensor", "ended"}
BEHIND = {"baseline", "timing"}
ENDINGS = {"epochs", "max_steps", "iterations", "max_time", "patience", "until", "signal", "nonfinite", "failed"}


def schema_of(path):
    """{event: {kind: (fields, of which may be missing)}}, with the fields of all kinds in each."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")]
            for line in open(path, encoding="utf-8") if line.startswith("|")]
    head = next(i for i, row in enumerate(rows) if row[0] == "event")
    kinds = [re.search(r"`(\w+)`", cell).group(1) for cell in rows[head][2:]]
    schema = {}
    for row in rows[head + 2:]:
        name = re.fullmatch(r"`(\w+)`", row[0])
        if not name or len(row) != len(rows[head]):
            break
        schema[name.group(1)] = {}
        for kind, cell in zip(kinds, row[2:]):
            if cell == "-":
                continue
            text = row[1] + " " + cell
            maybe = set(re.findall(r"\(`(\w+)`\)", text))
            schema[name.group(1)][kind] = set(re.findall(r"`(\w+)`", text)), maybe
    return schema


def check(schema, path):
    kind, step, event = None, 0, "end"
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        row = json.loads(line)
        where = f"{path}:{number}: {line.strip()}"
        assert COMMON <= set(row), f"no event, time or step: {where}"
        begins = row["event"] == "start"
        assert begins == (event == "end" and row["event"] not in BEHIND) or event in BEHIND, f"order: {where}"
        if begins:
            kind, step = row["kind"], row["step"]
        event = row["event"]
        assert event in schema and kind in schema[event], f"no such event of {kind}: {where}"
        fields, maybe = schema[event][kind]
        told = set(row) - COMMON
        assert told <= fields, f"fields that are not in the table: {sorted(told - fields)}: {where}"
        assert fields - maybe <= told, f"fields are missing: {sorted(fields - maybe - told)}: {where}"
        assert event == "rollback" or row["step"] >= step, f"the step falls: {where}"
        step = row["step"]
        for name in told:
            text = isinstance(row[name], str) and row[name] not in ("NaN", "Infinity", "-Infinity")
            assert text == (name in TEXTS), f"type of {name}: {where}"
        assert event != "end" or row["ended"] in ENDINGS, where
    assert event in BEHIND | {"end"}, f"{path} has no end"


def main():
    schema = schema_of(sys.argv[1])
    assert {"start", "train", "evaluate", "end"} <= set(schema), schema
    for path in sys.argv[2:]:
        check(schema, path)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        print(f"log_schema.py: {error}", file=sys.stderr)
        sys.exit(1)
