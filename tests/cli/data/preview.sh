#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# `gpurt data preview` and the sheet of `gpurt data info`: pictures are decoded and compared pixel
# by pixel with what the file and the printed numbers say. Usage: tests/cli/data/preview.sh GPURT

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
gpurt=$(realpath "${1:?usage: preview.sh GPURT}")
# shellcheck source-path=SCRIPTDIR source=../../../harness/command.sh
. "$here/../../harness/command.sh"
cd "$tmp" || exit 1
python=/usr/bin/python3 # Debian's, which has h5py

cat >check.py <<'PY'
import base64, re, struct, sys, zlib
import h5py, numpy as np

def png(blob):
    assert blob[:8] == b"\x89PNG\r\n\x1a\n"
    at, data = 8, b""
    while at < len(blob):
        size, kind = struct.unpack(">I4s", blob[at:at + 8])
        body = blob[at + 8:at + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", blob[at + 8 + size:at + 12 + size])[0]
        if kind == b"IHDR":
            width, height, bits, colours = struct.unpack(">IIBB", body[:10])
            assert (bits, colours) == (8, 2)
        data += body if kind == b"IDAT" else b""
        at += 12 + size
    lines = np.frombuffer(zlib.decompress(data), "u1").reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)

def cell(picture, line, column, height, width, of):
    """A cell without its zoom; of: the size that cells have."""
    zoom = max(1, 96 // max(of))
    top, left = 2 + line * (of[0] * zoom + 2), 2 + column * (of[1] * zoom + 2)
    part = picture[top:top + height * zoom, left:left + width * zoom]
    small = part[::zoom, ::zoom]
    assert (small.repeat(zoom, 0).repeat(zoom, 1) == part).all()
    return small.astype(int)

def rgb(image):
    return np.broadcast_to(image, image.shape[:2] + (3,)).astype(int)
PY

"$python" - <<'PY'
import h5py, numpy as np
r = np.random.default_rng(3)
with h5py.File("a.h5", "w") as f:
    f["x"], f["y"] = r.integers(0, 256, (30, 6, 5, 3)).astype("u1"), (np.arange(30) % 3).astype("i4")
    f.attrs["class_names"] = np.array([b"ant", b"b<&c", b"cow"])
    f.attrs["classes"] = np.uint32(3)
with h5py.File("one.h5", "w") as f:
    f["x"] = np.full((4, 1, 1, 1), 0.5, "f4")
with h5py.File("two.h5", "w") as f:
    f["x"] = np.zeros((4, 5, 5, 2), "u1")
with h5py.File("huge.h5", "w") as f:
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)  # a hole in the file
    how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    h5py.h5d.create(f.id, b"x", h5py.h5t.STD_U8LE, h5py.h5s.create_simple((1, 20000, 20000, 1)), how)
with h5py.File("flat.h5", "w") as f:
    f["x"] = np.zeros((4, 5), "f4")
PY

show=(data preview --data a.h5 --device ref:0)
# The originals alone; a list with its classes beside it.
expect 0 "${show[@]}" --rows 4 shuffle=false -o plain.png
told '^line 2: row 1, class 1 b<&c$'
# Boxes and flips as they are printed.
expect 0 "${show[@]}" --rows 7 -o moved.png --print-parameters \
    'transform=random_crop(padding=2) | random_horizontal_flip | normalize'
cp out moved.txt
expect 0 "${show[@]}" --rows 7 -o moved.svg 'transform=random_crop(padding=2) | random_horizontal_flip | normalize'
expect 0 "${show[@]}" --rows 7 --step 1 --print-parameters \
    'transform=random_crop(padding=2) | random_horizontal_flip | normalize'
cmp -s <(grep '^step 1' moved.txt) <(grep '^step 1' out) || wrong "a step draws otherwise when it comes first"
expect 0 "${show[@]}" --rows 3 -o grey.png 'transform=random_grayscale(p=1) | resize((12, 10)) | center_crop((12, 10))'
expect 0 data info a.h5 -o sheet.png
told '^line 3: 8 images of class 2 cow$'
"$python" - <<'PY' || wrong "the pictures show something else"
import sys
sys.path.insert(0, ".")
from check import *
x, y = (h5py.File("a.h5")[k][:] for k in "xy")
plain = png(open("plain.png", "rb").read())
assert plain.shape == (4 * (6 * 16 + 2) + 2, 5 * 16 + 4, 3), plain.shape
for i in range(4):
    assert (cell(plain, i, 0, 6, 5, (6, 5)) == x[i]).all()
blob = open("moved.png", "rb").read()
moved, lines = png(blob), open("moved.txt").read().splitlines()
pattern = r"step (\d), place (\d): row (\d+), class \d \S+, pass 1: box 6x5 at (-?\d+),(-?\d+)(, flipped)?$"
flips = 0
assert len(lines) == 14
for line in lines:
    step, place, row, top, left = map(int, re.match(pattern, line).groups()[:5])
    padded = np.pad(x[row], ((2, 2), (2, 2), (0, 0)))
    view = padded[top + 2:top + 8, left + 2:left + 7]
    view = view[:, ::-1] if "flipped" in line else view
    flips += "flipped" in line
    assert (cell(moved, place, 0, 6, 5, (6, 5)) == x[row]).all()
    assert (cell(moved, place, 1 + step, 6, 5, (6, 5)) == view).all(), line
assert 0 < flips < 14
svg = open("moved.svg").read()
assert base64.b64decode(re.search("base64,([^\"]*)", svg).group(1)) == blob
assert "b&lt;&amp;c</text>" in svg and svg.count("<text") == 7
import xml.dom.minidom
xml.dom.minidom.parseString(svg)
grey = png(open("grey.png", "rb").read())
view = cell(grey, 0, 1, 12, 10, (12, 10))
assert (view.max(2) == view.min(2)).all() and view.std() > 5
sheet = png(open("sheet.png", "rb").read())
for c in range(3):
    for k in range(8):
        assert (cell(sheet, c, k, 6, 5, (6, 5)) == x[y == c][k]).all()
PY

# One pixel, one channel, floats up to 1.
expect 0 data preview --data one.h5 -o one.png --rows 9 --device ref:0 transform='color_jitter(brightness=(0.5, 0.5))'
"$python" - <<'PY' || wrong "one pixel is another"
import sys
sys.path.insert(0, ".")
from check import *
one = png(open("one.png", "rb").read())
assert one.shape == (4 * 98 + 2, 3 * 98 + 2, 3)
assert (cell(one, 3, 0, 1, 1, (1, 1)) == 128).all() and (cell(one, 3, 2, 1, 1, (1, 1)) == 64).all()
PY

# What cannot be drawn is one line each.
one_line() { [ "$(wc -l <err)" -eq 1 ] || wrong "more than a line: $(cat err)"; }
refuse 65 'x is no data set of images [N][H][W][C]' data preview --data flat.h5 -o no.png && one_line
refuse 65 'x is no data set of images [N][H][W][C]' data info flat.h5 -o no.png && one_line
refuse 65 'shots is no data set of images' data preview --data a.h5 inputs=shots -o no.png && one_line
refuse 65 '1 or 3 channels, and x has 2' data preview --data two.h5 -o no.png && one_line
refuse 65 'images of 20000x20000 are too large for a picture' data preview --data huge.h5 -o no.png && one_line
refuse 65 'a picture of more than 16384 pixels a side' "${show[@]}" -o no.png transform='resize((6000, 6000))' && one_line
refuse 64 "must end in .png or .svg" "${show[@]}" -o no.gif && one_line
refuse 64 "says where to" "${show[@]}" && one_line
refuse 64 "without a transform nothing is drawn" "${show[@]}" --print-parameters && one_line
refuse 64 "no data: name an HDF5 file" data preview -o no.png && one_line
refuse 66 "none.h5" data preview --data none.h5 -o no.png && one_line
refuse 78 "no transform 'turn'" "${show[@]}" -o no.png transform=turn && one_line
refuse 73 "nowhere" "${show[@]}" -o nowhere/a.png && one_line
refuse 64 "a.h5.png" data preview --data a.h5.png -o a.h5.png
[ ! -e no.png ] || wrong "a refused picture was left behind"
expect 0 data preview --help
said 'print-parameters'
exit "$failed"
