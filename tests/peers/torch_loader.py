#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of `gpurt bench data`: PyTorch's DataLoader over an h5py data set, same file, same workers.

Each worker opens the file for itself, as h5py's documentation asks for. Two ways are measured:
  item    __getitem__ reads one row, as in tutorials, and the batch is stacked
  batch   __getitems__ reads the rows of a batch with one sorted selection, the better way

Usage: torch_loader.py FILE GPURT [--batch 256 4096] [--workers 0 2] [--seconds 2] [--output FILE]

gpurt and PyTorch are measured in turns; medians of the turns go to stdout, one JSON object a line.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import h5py
import numpy
import torch


class Rows(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None
        with h5py.File(path, "r") as file:
            self.length = file["x"].shape[0]

    def open(self):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
            self.x, self.y = self.file["x"], self.file["y"]

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        self.open()
        return torch.from_numpy(self.x[i]), torch.from_numpy(numpy.atleast_1d(self.y[i]))


class Batches(Rows):
    def __getitems__(self, rows):
        self.open()
        order = numpy.argsort(rows)
        ranked = numpy.asarray(rows)[order]
        back = numpy.empty_like(order)
        back[order] = numpy.arange(len(order))
        return torch.from_numpy(self.x[ranked][back]), torch.from_numpy(self.y[ranked][back])


def torch_rate(kind, path, batch, workers, seconds):
    """Samples a second, after the first batches have come."""
    data = kind(path)
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=batch,
        shuffle=True,
        num_workers=workers,
        drop_last=True,
        persistent_workers=workers > 0,
        collate_fn=(lambda whole: whole) if kind is Batches else None,
    )
    rows, begun = 0, None
    while True:
        for x, _ in loader:
            now = time.perf_counter()
            if begun is None:
                begun = now
                continue
            rows += x.shape[0]
            if now - begun >= seconds:
                return rows / (now - begun)


def gpurt_rate(gpurt, path, batch, workers, seconds):
    command = [gpurt, "bench", "data", "--data", path, "--batch-sizes", str(batch)]
    command += ["--num-workers", str(workers), "--time", str(seconds), "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["rows"][0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("gpurt")
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 4096])
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--output")
    args = parser.parse_args()
    torch.set_num_threads(1)
    out = open(args.output, "w") if args.output else sys.stdout
    for batch in args.batch:
        for workers in args.workers:
            items, batches, ours, shares = [], [], [], []
            for _ in range(args.turns):
                row = gpurt_rate(args.gpurt, args.file, batch, workers, args.seconds)
                ours.append(row["samples_per_s"])
                shares.append(row["of_raw"])
                items.append(torch_rate(Rows, args.file, batch, workers, args.seconds))
                batches.append(torch_rate(Batches, args.file, batch, workers, args.seconds))
            best = max(statistics.median(items), statistics.median(batches))
            result = {
                "peer": f"torch {torch.__version__}, h5py {h5py.__version__}",
                "batch": batch,
                "workers": workers,
                "gpurt_samples_per_s": statistics.median(ours),
                "gpurt_of_raw": statistics.median(shares),
                "item_samples_per_s": statistics.median(items),
                "batch_samples_per_s": statistics.median(batches),
                "ratio_to_best": statistics.median(ours) / best,
                "ratio_to_item": statistics.median(ours) / statistics.median(items),
            }
            print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
