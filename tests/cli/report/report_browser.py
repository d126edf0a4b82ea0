#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a page of `gpurt report` in headless Chromium, as a reader would.

Usage: report_browser.py CHROMIUM PAGE.html FOLDER

Talks to the browser over a pipe in its own protocol, with Python's standard library alone. At 1400 and 400 pixels,
light and dark: nothing is wider than the window, charts are as many as figures in the page, no text of a chart leaves
it or lies on another, no area is blank, nothing is loaded. Then the table is sorted and filtered. Screenshots go to
FOLDER.
"""
import base64
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib

WIDTHS = (1400, 400)
SCHEMES = ("light", "dark")


class Browser:
    def __init__(self, program, profile):
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def wire():  # the browser reads from 3 and writes to 4
            a, b = os.dup(to_read), os.dup(from_write)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.out, self.into, self.rest, self.number, self.session = to_write, from_read, b"", 0, None
        self.loaded = []

    def receive(self):
        while b"\0" not in self.rest:
            more = os.read(self.into, 1 << 20)
            assert more, "the browser ended"
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("method") == "Network.requestWillBeSent":
                self.loaded.append(answer["params"]["request"]["url"])
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def wait(self, method):
        while self.receive().get("method") != method:
            pass

    def open(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Network.enable")

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def picture(self, width, height, scale):
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])


# What a page says of itself; boxes as the browser lays them out.
LOOK = r"""(() => {
  const box = e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
  const charts = [...document.querySelectorAll("figure.chart")].map(f => {
    const svg = f.querySelector("svg");
    return {id: f.id, box: box(svg), label: (svg.querySelector("title") || {}).textContent || "",
            about: (svg.querySelector("desc") || {}).textContent || "",
            texts: [...svg.querySelectorAll("text")].map(t => [t.textContent, ...box(t)]),
            marks: [...svg.querySelectorAll(".mark, .part, .line")].map(box)};
  });
  return {charts, width: document.documentElement.scrollWidth, window: innerWidth,
          height: document.documentElement.scrollHeight, title: document.title,
          wide: [...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll") && !e.closest("svg") &&
                 e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + "." + e.className).slice(0, 5)};
})()"""


def check_charts(look, count, where):
    assert len(look["charts"]) == count, f"{where}: {len(look['charts'])} charts, {count} in the file"
    for chart in look["charts"]:
        left, top, right, bottom = chart["box"]
        name = f"{where}: {chart['id']}"
        assert chart["label"] and chart["about"], f"{name}: no text for screen readers"
        assert right - left > 250 and bottom - top > 40, f"{name}: {chart['box']} is too small"
        assert chart["marks"], f"{name}: nothing is drawn"
        for text, *box in chart["texts"]:
            assert box[0] >= left - 1 and box[2] <= right + 1 and box[1] >= top - 1 and box[3] <= bottom + 1, \
                f"{name}: '{text}' leaves the chart: {box} of {chart['box']}"
        for box in chart["marks"]:
            assert box[0] >= left - 1 and box[2] <= right + 1 and box[1] >= top - 1 and box[3] <= bottom + 1, \
                f"{name}: a mark leaves the chart"
        texts = [t for t in chart["texts"] if t[0]]
        for i, (one, *a) in enumerate(texts):
            for other, *b in texts[i + 1:]:
                across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
                assert across <= 1 or down <= 3, f"{name}: '{one}' lies on '{other}'"


def pixels(png):
    """Rows of a PNG of 8 bits a channel: lists of (red, green, blue)."""
    at, data, width, height, channels = 8, b"", 0, 0, 0
    while at < len(png):
        size, kind = int.from_bytes(png[at:at + 4], "big"), png[at + 4:at + 8]
        if kind == b"IHDR":
            width, height = (int.from_bytes(png[at + 8 + 4 * i:at + 12 + 4 * i], "big") for i in (0, 1))
            channels = {2: 3, 6: 4}[png[at + 17]]
        elif kind == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    raw, stride, image = zlib.decompress(data), width * channels, []
    before = bytearray(stride)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride if kind else 0):
            a = line[x - channels] if x >= channels else 0
            b, c = before[x], before[x - channels] if x >= channels else 0
            pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
            paeth = a if pa <= pb and pa <= pc else b if pb <= pc else c
            line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth)[kind]) & 255
        image.append([tuple(line[x:x + 3]) for x in range(0, stride, channels)])
        before = line
    return image


def check_picture(png, scheme, where):
    """Not blank: in every band as high as the picture is wide something differs from the page; and the scheme is the
    one that was asked for."""
    image = pixels(png)
    page, size = image[1][1], len(image[0])
    assert (sum(page) > 384) == (scheme == "light"), f"{where}: the page is {page} in the scheme {scheme}"
    differs = [any(sum(abs(i - k) for i, k in zip(pixel, page)) > 40 for pixel in row) for row in image]
    for top in range(0, len(differs) - size, size // 2):
        assert any(differs[top:top + size]), f"{where}: rows {top} to {top + size} of {len(differs)} are blank"
    assert sum(differs) > len(differs) // 2, f"{where}: more than half of the page is blank"


def check_table(browser, where):
    column = ("(n => [...document.querySelectorAll('#figures tbody tr')].filter(r => !r.hidden)"
              ".map(r => r.cells[n].getAttribute('data-v') ?? r.cells[n].textContent))")
    click = "(n => document.querySelectorAll('#figures thead button')[n].click())"
    total = browser.run("document.querySelectorAll('#figures tbody tr').length")
    assert total > 2, total
    for order in ("ascending", "descending"):
        browser.run(f"{click}(3)")
        values = [float(v) if v else float("-inf") for v in browser.run(f"{column}(3)")]
        assert len(values) == total
        assert values == sorted(values, reverse=order == "descending"), f"{where}: {order}: {values[:9]}"
        said = browser.run("document.querySelectorAll('#figures thead th')[3].getAttribute('aria-sort')")
        assert said == order, (said, order)
    # By the numbers inside a text: batch 64 before batch 256.
    browser.run(f"{click}(1)")
    cases = browser.run(f"{column}(1)")
    natural = [[int(p) if p.isdigit() else p for p in re.split(r"(\d+)", c)] for c in cases if re.match(r"\d+x\d+x\d+ ", c)]
    assert natural == sorted(natural), f"{where}: cases are not in the order of their numbers"
    benches = browser.run(f"{column}(0)")
    one = benches[0]
    fill = "((id, v, e) => { const f = document.getElementById(id); f.value = v; f.dispatchEvent(new Event(e)); })"
    browser.run(f"{fill}('bench', {json.dumps(one)}, 'change')")
    left = browser.run(f"{column}(0)")
    assert set(left) == {one} and len(left) == benches.count(one), f"{where}: filter by bench: {set(left)}"
    assert browser.run("document.getElementById('count').textContent") == f"{len(left)} of {total} figures"
    browser.run(f"{fill}('bench', '', 'change')")
    device = browser.run("document.getElementById('device').options[1].value")
    browser.run(f"{fill}('device', {json.dumps(device)}, 'change')")
    assert set(browser.run(f"{column}(2)")) <= {device}, f"{where}: filter by device"
    browser.run(f"{fill}('device', '', 'change')")
    browser.run(f"{fill}('find', 'no such words', 'input')")
    assert browser.run(f"{column}(0)") == [], f"{where}: filter by words that are nowhere"
    browser.run(f"{fill}('find', '', 'input')")
    assert len(browser.run(f"{column}(0)")) == total


def main():
    program, page, folder = sys.argv[1:4]
    text = open(page, encoding="utf-8").read()
    count = text.count('<figure class="chart"')
    assert count >= 1, "the page has no charts"
    for chart in ("predicted-rollout-4", "predicted-mlp-3", "predicted-train-1", "predicted-images-2", "predicted-gemm-2"):
        assert f'id="{chart}"' in text, f"the page has no chart {chart}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            browser.open()
            for width in WIDTHS:
                for scheme in SCHEMES:
                    where = f"{width} {scheme}"
                    browser.call("Emulation.setEmulatedMedia",
                                 features=[{"name": "prefers-color-scheme", "value": scheme}])
                    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                                 mobile=False)
                    browser.call("Page.navigate", url="file://" + os.path.abspath(page))
                    browser.wait("Page.loadEventFired")
                    look = browser.run(LOOK)
                    assert look["window"] == width, look["window"]
                    assert look["width"] <= width and not look["wide"], f"{where}: wider than the window: {look['wide']}"
                    check_charts(look, count, where)
                    with open(f"{folder}/report-{width}-{scheme}.png", "wb") as file:
                        file.write(browser.picture(width, min(look["height"], 4200), 1))
                    check_picture(browser.picture(width, look["height"], 100 / width), scheme, where)
            check_table(browser, "table")
            others = {u for u in browser.loaded if not u.startswith(("file://" + os.path.abspath(page), "about:", "data:"))}
            assert not others, f"the page loads {others}"
            browser.session = None
            browser.call("Browser.close")
        finally:
            browser.process.terminate()
            browser.process.wait()
    print(f"{count} charts at {len(WIDTHS) * len(SCHEMES)} sizes and schemes; the table sorts and filters")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        print(f"report_browser.py: {error}", file=sys.stderr)
        sys.exit(1)
