#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The picture of an episode of UAVs against what they saw: play_check.py PICTURE.svg TRAJECTORY.json

Places in the picture are read from its elements and animations, those of the flight from the observations, by the rules at the head of
shaders/env/uav.k.
"""
import json
import re
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
picture = tree.parse(sys.argv[1]).getroot()
flight = json.load(open(sys.argv[2]))
settings = {name: int(value) for name, value in flight["settings"].items() if value == int(value)}
side, uavs, steps, window = settings["map"], settings["num_uavs"], flight["steps"], settings["window"]
seen, counts = flight["observations"], flight["counts"]


def of_class(name):
    return [e for e in picture.iter() if e.get("class") == name]


def animated(element, attribute, frame, jumps=False):
    """The value of an attribute in a frame."""
    for a in element.findall(SVG + "animate"):
        if a.get("attributeName") != attribute:
            continue
        total = float(a.get("dur").rstrip("s"))
        now = frame * (total - 1.5) / steps / total
        times = [float(t) for t in a.get("keyTimes").split(";")]
        values = [float(v) for v in a.get("values").split(";")]
        assert times[0] == 0 and times == sorted(times) and len(times) == len(values), a.attrib
        assert jumps == (a.get("calcMode") == "discrete") and (jumps or times[-1] == 1), a.attrib
        k = max(i for i, t in enumerate(times) if t <= now + 1e-4)
        if jumps or k + 1 == len(times):
            return values[k]
        part = (now - times[k]) / (times[k + 1] - times[k])
        return values[k] + max(part, 0) * (values[k + 1] - values[k])
    return float(element.get(attribute, 0))


def near(got, want, what):
    assert abs(got - want) < 0.05, (what, got, want)


# ---- how many there are ----
areas, blocks, goals, agents = (of_class(c) for c in ("area", "block", "goal", "agent"))
assert [float(areas[0].get(k)) for k in ("x", "y", "width", "height")] == [0, 0, side, side] and len(areas) == 1
assert (len(blocks), len(goals), len(agents)) == (settings["num_obstacles"], uavs, uavs), "counts"
cells = {(float(b.get("x")), float(b.get("y"))) for b in blocks}
assert len(cells) == len(blocks) and all(b.get("width") == b.get("height") == "1" for b in blocks)

# ---- how large it is ----
panel = picture.find(SVG + "svg")
box = [float(v) for v in panel.get("viewBox").split()]
for got, want in zip(box, (-0.01 * side, -1.01 * side, 1.02 * side, 1.02 * side)):
    near(got, want, "the map with a hundredth around it")
assert panel.get("width") == "520" and abs(float(panel.get("height")) - 520) < 1, panel.attrib
lines = re.search(r"rect,circle,polyline\{stroke-width:([0-9.]+)\}", picture.find(SVG + "style").text)
assert abs(float(lines[1]) * 260 / box[2] - 1) < 0.01, lines[0]

# ---- where they are ----
landings = 0
for a in range(uavs):
    went = 0.0
    before = None
    for t in range(steps):
        o = seen[t][a]
        x, y = (round((o[k] + 1) / 2 * (side - 1)) for k in (0, 1))
        near(animated(agents[a], "cx", t), x + 0.5, "x of an agent")
        near(animated(agents[a], "cy", t), y + 0.5, "y of an agent")
        near(float(goals[a].get("cx")), x + o[2] * (side - 1) + 0.5, "x of a target")
        near(float(goals[a].get("cy")), y + o[3] * (side - 1) + 0.5, "y of a target")
        landed = not counts[t][a]
        assert (animated(goals[a], "fill-opacity", t, jumps=True) > 0) == landed, ("reached", a, t)
        assert (animated(agents[a], "opacity", t, jumps=True) == 0.3) == landed, ("faded", a, t)
        for i in range(window * window):
            cell = (x + i % window - window // 2, y + i // window - window // 2)
            assert (o[6 + i] == 1) == (cell in cells), ("an obstacle", cell)
        if before:
            went += ((x - before[0]) ** 2 + (y - before[1]) ** 2) ** 0.5
        before = (x, y)
        track = [e for e in of_class("track") if e.get("color") == agents[a].get("color")]
        if track:
            shown = float(track[0].get("pathLength")) - animated(track[0], "stroke-dashoffset", t)
            near(shown, went, "a track")
        else:
            assert went == 0, "no track"
    landings += animated(goals[a], "fill-opacity", steps, jumps=True) > 0
if flight["ended"]:
    assert landings == round(flight["terms"]["arrived"] * uavs), "arrivals"
assert len(of_class("arrival")) == landings, "marks of arrivals"

# ---- the time ----
texts = [e.text for e in picture.iter(SVG + "text") if e.text]
assert f"of {steps}" in texts, texts
digits = of_class("digit")
assert len(digits) == len(str(steps))
for t in range(steps + 1):
    shown = ""
    for d in digits:
        a = d.find(SVG + "animateTransform")
        shift = 0
        if a is not None:
            total = float(a.get("dur").rstrip("s"))
            times = [float(v) for v in a.get("keyTimes").split(";")]
            k = max(i for i, v in enumerate(times) if v <= t * (total - 1.5) / steps / total + 1e-4)
            shift = float(a.get("values").split(";")[k].split()[1])
        shown += next(s.text for s in d if s.tag == SVG + "tspan" and float(s.get("y")) + shift == 11)
    assert int(shown) == t, (shown, t)
