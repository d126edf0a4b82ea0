#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the charts of a page of `gpurt report` by their geometry, without a browser.

Usage: report_geometry.py PAGE.html COUNT

There are at least COUNT charts. Each is well-formed, has texts for screen readers and one frame; every mark, every
point of a line and every part of a bar lies inside the frame; labels lie inside the chart and not on each other (letters
taken as 6 pixels wide); parts of a bar follow on each other and fill it.
"""
import re
import sys
import xml.etree.ElementTree

LETTER, HEIGHT = 6.0, 9.0


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)]


def middle(mark):
    """Where a mark stands: its circle's middle, or the first point of its path, which is at most 5 away."""
    for shape in mark:
        if shape.tag == "circle":
            return float(shape.get("cx")), float(shape.get("cy"))
        if shape.tag == "path":
            return tuple(numbers(shape.get("d"))[:2])
    raise AssertionError("a mark without a shape")


def check(svg, name):
    _, _, width, height = numbers(svg.get("viewBox"))
    assert svg.get("role") == "img" and svg.find("title").text and svg.find("desc").text, f"{name}: no texts"
    plots = [e for e in svg if e.get("class") == "plot"]
    assert len(plots) == 1, f"{name}: {len(plots)} frames"
    left, top, across, down = (float(plots[0].get(k)) for k in ("x", "y", "width", "height"))
    drawn, boxes, bars, blocks = 0, [], {}, []

    def inside(x, y, what, slack=0.6):
        assert left - slack <= x <= left + across + slack and top - slack <= y <= top + down + slack, \
            f"{name}: {what} at {x}, {y} is outside of {left}, {top}, {across}, {down}"
    for e in svg:
        kind = (e.get("class") or "").split()
        if "mark" in kind:
            assert e.find("title").text, f"{name}: a mark without a text"
            inside(*middle(e), "a mark", 5)
            drawn += 1
        elif "line" in kind:
            points = numbers(e.get("points"))
            for x, y in zip(points[::2], points[1::2]):
                inside(x, y, "a point")
            drawn += 1
        elif "part" in kind:
            x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
            inside(x, y, "a part")
            inside(x + w, y + h, "a part")
            bars.setdefault(y, []).append((x, w))
            drawn += 1
        elif "block" in kind:
            x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
            assert e.find("title").text and w >= 0 and h >= 0, f"{name}: a block of {w}, {h}"
            inside(x, y, "a block")
            inside(x + w, y + h, "a block")
            for a in blocks:
                assert min(a[0] + a[2], x + w) - max(a[0], x) <= 0.02 or \
                    min(a[1] + a[3], y + h) - max(a[1], y) <= 0.02, f"{name}: blocks overlap at {x}, {y}"
            blocks.append((x, y, w, h))
            drawn += 1
        elif e.tag == "line":
            for x, y in ((e.get("x1"), e.get("y1")), (e.get("x2"), e.get("y2"))):
                inside(float(x), float(y), e.get("class"))
        elif e.tag == "text":
            size = LETTER * len(e.text)
            x, y = float(e.get("x")), float(e.get("y"))
            x -= {"start": 0, "middle": size / 2, "end": size}[e.get("text-anchor")]
            assert x >= -1 and x + size <= width + 1 and y - HEIGHT >= -1 and y <= height, \
                f"{name}: '{e.text}' leaves the chart"
            boxes.append((x, y - HEIGHT, x + size, y, e.text))
    assert drawn, f"{name}: nothing is drawn"
    for y, parts in bars.items():
        end = left
        for x, w in parts:
            assert abs(x - end) < 0.1, f"{name}: a hole in the bar at {y}"
            end = x + w
        assert abs(end - left - across) < 0.1, f"{name}: the bar at {y} ends at {end}"
    for i, a in enumerate(boxes):
        for b in boxes[i + 1:]:
            assert min(a[2], b[2]) - max(a[0], b[0]) <= 0 or min(a[3], b[3]) - max(a[1], b[1]) <= 0, \
                f"{name}: '{a[4]}' lies on '{b[4]}'"


def main():
    page = open(sys.argv[1], encoding="utf-8").read()
    charts = re.findall(r'<figure class="chart" id="([^"]+)">.*?(<svg.*?</svg>)', page, re.S)
    assert len(charts) >= int(sys.argv[2]), f"{len(charts)} charts, {sys.argv[2]} wanted"
    assert len({name for name, _ in charts}) == len(charts), "two charts have one name"
    for name, text in charts:
        check(xml.etree.ElementTree.fromstring(text), name)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        print(f"report_geometry.py: {error}", file=sys.stderr)
        sys.exit(1)
