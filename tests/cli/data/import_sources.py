#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Sources for import.sh, and what they must become. JPEG files and their pixels are by Pillow 13.0;
# all else is made here by hand. Usage:
#     import_sources.py make           writes the sources into the current folder
#     import_sources.py check          compares the files that were imported with them

import base64
import os
import pickle
import struct
import sys
import zlib

import h5py
import numpy as np

draw = np.random.default_rng(7)

JPEG_RGB = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4R"
    "DgsLEBYQERMUFRUVDA8XGBYUGBIUFRT/2wBDAQMEBAUEBQkFBQkUDQsNFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
    "FBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBT/wAARCAAKAAwDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAA"
    "AAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAk"
    "M2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKT"
    "lJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QA"
    "HwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdh"
    "cRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hp"
    "anN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk"
    "5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDwL4e/s3f6v/RfT+GvoLRf2bv+JfH/AKL/AOO17F8PbSD91+5j"
    "7fwCvoLRLSD+z4/3Mf8A3wKxy/H1eU4PDvj7NPqu/Tuf/9k=")
JPEG_GRAY = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAMCAgMCAgMDAwMEAwMEBQgFBQQEBQoHBwYIDAoMDAsKCwsNDhIQDQ4R"
    "DgsLEBYQERMUFRUVDA8XGBYUGBIUFRT/wAALCAAKAAwBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcI"
    "CQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcY"
    "GRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKj"
    "pKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/APAv"
    "h7+zd/q/9F9P4a+gtF/Zu/4l8f8Aov8A47XsXw9tIP3X7mPt/AK+gtEtIP7Pj/cx/wDfAr//2Q==")
JPEG_CMYK = (
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAoHB4jHhkoIyEjLSsoMDxkQTw3Nzx7WF1JZJGAmZaPgIyKoLTmw6Cq2q2K"
    "jMj/y9ru9f///5vB////+v/m/f/4/8AAFAgACgAMBEMRAE0RAFkRAEsRAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAAB"
    "AgMEBQYHCAkKC//EALUQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNi"
    "coIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SV"
    "lpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAA4E"
    "QwBNAFkASwAAPwCnZdqr/YPaqsEHTitmtuL/AFYo+we1X0g+XpRWJZdq28D0FMgHSituL/VijA9BV5B8tFf/2Q==")


def planes(n, side):
    return draw.integers(0, 256, (n, 3, side, side), dtype=np.uint8)


# Every source's images as [N][C][H][W], and labels, drawn in one order.
cifar10 = [(planes(n, 32), draw.integers(0, 10, n, dtype=np.uint8)) for n in (6, 4, 3)]
cifar100 = [(planes(n, 32), draw.integers(0, 100, n, dtype=np.uint8)) for n in (5, 2)]
stl = [(planes(n, 96), draw.integers(0, 10, n, dtype=np.uint8)) for n in (3, 2, 4)]
pictures = draw.integers(0, 256, (4, 9, 7, 3), dtype=np.uint8)
large = draw.integers(0, 256, (26, 19, 3), dtype=np.uint8)


def png(rows, kind, bits=8, size=None, palette=None):
    height, width = rows.shape[:2]
    data = rows.astype(">u2").tobytes() if bits == 16 else rows.tobytes()
    line = len(data) // height
    raw = b"".join(b"\0" + data[i * line:(i + 1) * line] for i in range(height))

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", *(size or (width, height)), bits, kind, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + (chunk(b"PLTE", palette) if palette else b"")
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


# As Python 2 pickled CIFAR: texts are raw bytes.
def old_pickle(images, labels, key):
    def text(v):
        return b"U" + bytes([len(v)]) + v

    data = images.tobytes()
    return (b"\x80\x02}q\x01(" + text(b"batch_label") + text(b"one of many") + text(key) + b"]q\x02("
            + b"".join(b"K" + bytes([v]) for v in labels) + b"e" + text(b"data")
            + b"cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05"
            + b"(K\x01K" + bytes([len(labels)]) + b"M\x00\x0c\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87R"
            + b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + struct.pack("<I", len(data))
            + data + b"tbu.")


def put(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def make():
    names = [b"plane", b"car", b"bird", b"cat", b"deer", b"dog", b"frog", b"horse", b"ship", b"truck"]
    for name, (x, y) in zip(("data_batch_1", "data_batch_2", "test_batch"), cifar10):
        put(f"c10/{name}.bin", np.concatenate([y[:, None], x.reshape(len(x), -1)], 1).tobytes())
        put(f"p10/{name}", old_pickle(x, y, b"labels"))
        put(f"n10/{name}", pickle.dumps({"data": x.reshape(len(x), -1), "labels": y.tolist()}))
    put("c10/batches.meta.txt", b"\n".join(names) + b"\n")
    put("p10/batches.meta", pickle.dumps({"label_names": [n.decode() for n in names]}, 2))
    for name, (x, y) in zip(("train", "test"), cifar100):
        coarse = np.zeros((len(x), 1), np.uint8)
        put(f"c100/{name}.bin", np.concatenate([coarse, y[:, None], x.reshape(len(x), -1)], 1).tobytes())
        put(f"p100/{name}", old_pickle(x, y, b"fine_labels"))
    put("p100/meta", pickle.dumps({"fine_label_names": [f"c{i}" for i in range(100)]}, 4))
    for name, (x, y) in zip(("train", "test", "unlabeled"), stl):
        put(f"stl/{name}_X.bin", x.tobytes())
        if name != "unlabeled":
            put(f"stl/{name}_y.bin", (y + 1).tobytes())
    # A folder of folders, with transparency, 16 bits, a palette, gray, and what is no image.
    p = pictures
    put("tree/train/b/2.png", png(p[0], 2))
    put("tree/train/b/1.PNG", png(np.concatenate([p[1], p[0][..., :1]], -1), 6))
    put("tree/train/a/wide.png", png(p[2].astype("u2") * 257, 2, 16))
    palette = bytes(range(256)) + bytes(512)
    put("tree/train/a/palette.png", png(p[3][..., 0], 3, palette=palette))
    put("tree/train/a/gray.png", png(p[3][..., 1], 0))
    put("tree/test/b/0.png", png(p[3], 2))
    put("tree/train/a/notes.txt", b"no image")
    put("tree/train/a/zero.png", b"")
    put("tree/train/a/text.png", b"not a picture at all")
    put("tree/train/a/short.png", png(p[0], 2)[:-60])
    put("tree/train/a/huge.png", png(p[0], 2, size=(100000, 100000)))
    put("tree/train/a/flipped.png", png(p[0], 2)[:60] + b"\xff" + png(p[0], 2)[61:])
    put("tree/train/a/cmyk.jpg", base64.b64decode(JPEG_CMYK))
    put("tree/train/a/short.jpg", base64.b64decode(JPEG_RGB)[:-40])
    put("photos/one/a.jpg", base64.b64decode(JPEG_RGB))
    put("photos/two/b.jpeg", base64.b64decode(JPEG_GRAY))
    put("sizes/a/1.png", png(large, 2))
    put("sizes/a/2.png", png(p[0], 2))
    x, y = stl[0][0][:, :, :5, :6], stl[0][1]
    np.save("x.npy", x.transpose(0, 2, 3, 1).copy())
    np.save("y.npy", y.astype("i8"))
    np.save("turned.npy", np.asfortranarray(x))
    for kind in "i1", "i2", "i4", "i8":
        np.save(f"below-{kind}.npy", np.array([0, -1, 1], kind))
    np.save("above.npy", np.array([0, 2**32, 1]))
    np.savez("nothing.npz", y=y)
    # More than a list of files has room for at first.
    for i in range(150):
        put(f"many/{i % 2}/{i:03}.png", png(np.full((2, 3, 3), i, np.uint8), 2))
    np.savez_compressed("all.npz", x_train=x, y_train=y[:, None], x_test=x[:2], y_test=y[:2], more=y)
    np.savez("plain.npz", images=x[:, 0], labels=y.astype("u2"))


# PyTorch's interpolate with antialias, from its formula; then the middle.
def fitted(image, side):
    def matrix(n, out):
        s = n / out
        support, m = max(s, 1), np.zeros((out, n))
        for i in range(out):
            centre = s * (i + 0.5)
            low, high = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), n)
            for j in range(low, high):
                m[i, j] = max(0, 1 - abs((j - centre + 0.5) / support))
        return m / m.sum(1, keepdims=True)

    h, w = image.shape[:2]
    short = min(h, w)
    height, width = side * h // short, side * w // short
    y = np.einsum("ij,jkc,lk->ilc", matrix(h, height), image.astype(float), matrix(w, width))
    top, left = (height - side) // 2, (width - side) // 2
    return y[top:top + side, left:left + side]


def last(x):
    return x.transpose(0, 2, 3, 1)


def names(f):
    return [n.decode() for n in f.attrs["class_names"]]


def check():
    def same(path, **sets):
        with h5py.File(path) as f:
            for name, want in sets.items():
                got = f[name.replace("_", "/")]
                assert got.dtype == (np.uint8 if name[-1] == "x" else np.int32), (path, name, got.dtype)
                assert got.shape == want.shape and (got[:] == want).all(), (path, name)
                assert got.chunks is None, (path, name)

    x, y = (np.concatenate([b[i] for b in cifar10[:2]]) for i in (0, 1))
    for path in "c10.h5", "p10.h5", "n10.h5":
        same(path, x=last(x), y=y, test_x=last(cifar10[2][0]), test_y=cifar10[2][1])
    for path in "c10.h5", "p10.h5":
        with h5py.File(path) as f:
            assert names(f)[3] == "cat" and f.attrs["classes"] == 10, path
    for path in "c100.h5", "p100.h5":
        (x, y), (tx, ty) = cifar100
        same(path, x=last(x), y=y, test_x=last(tx), test_y=ty)
    # Column by column: as the site of STL-10 says for Python.
    turned = [b[0].reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1) for b in stl]
    same("stl.h5", x=turned[0], y=stl[0][1], test_x=turned[1], test_y=stl[1][1], unlabelled_x=turned[2])
    p = pictures
    gray = np.repeat(p[3][..., 1:2], 3, -1)
    shades = np.arange(768).reshape(256, 3) * (np.arange(768).reshape(256, 3) < 256)
    same("tree.h5", x=np.stack([gray, shades[p[3][..., 0]], p[2], p[1], p[0]]), y=np.array([0, 0, 0, 1, 1]),
         test_x=p[3:4], test_y=np.array([1]))
    with h5py.File("tree.h5") as f:
        assert names(f) == ["a", "b"], names(f)
    with h5py.File("photos.h5") as f:
        rgb, one = f["x"][:].astype(int)
        assert rgb.sum((0, 1)).tolist() == [13207, 13494, 13157], rgb.sum((0, 1))
        assert [rgb[i].tolist() for i in ((0, 0), (9, 11), (4, 6))] == [[0, 1, 0], [222, 222, 220], [120, 100, 111]]
        assert one.sum((0, 1)).tolist() == [13372] * 3, one.sum((0, 1))
    with h5py.File("photos1.h5") as f:
        assert f["x"].shape == (2, 10, 12, 1) and f["x"][1].sum() == 13372, f["x"].shape
    with h5py.File("sizes.h5") as f:
        for got, image in zip(f["x"][:], (large, p[0])):
            assert np.abs(got - fitted(image, 8)).max() <= 0.501, np.abs(got - fitted(image, 8)).max()
    x, y = stl[0][0][:, :, :5, :6], stl[0][1]
    same("npy.h5", x=last(x), y=y)
    same("npz.h5", x=last(x), y=y, test_x=last(x[:2]), test_y=y[:2])
    same("plain.h5", x=x[:, 0, :, :, None], y=y)
    shades = np.array([*range(0, 150, 2), *range(1, 150, 2)], np.uint8)
    same("many.h5", x=np.broadcast_to(shades[:, None, None, None], (150, 2, 3, 3)), y=shades % 2)


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]]()
