# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 by PyTorch with the recipe of `gpurt train classify`: ResNet-18 with a 3x3 stem, SGD with
Nesterov's momentum, no decay of norms and biases, warm-up and cosine by step, crops with a padding of
4 and flips, mixed precision. The images come from the HDF5 file that gpurt reads and stay on the GPU.
Prints one JSON line a seed.

usage: torch_classify.py FILE.h5 EPOCHS BATCH SEED..."""
import json
import math
import sys

import torch
import torch.nn.functional as F

from torch_cifar import DEVICE, groups, load, mixed, normalized, placed, resnet18, train

RATE, DECAY, WARMUP, PADDING = 0.1, 5e-4, 0.05, 4


def augmented(x):
    """Crops of the image with a border of PADDING zeros, half of them mirrored."""
    n, _, h, w = x.shape
    x = F.pad(x, [PADDING] * 4)
    top = torch.randint(0, 2 * PADDING + 1, (n, 1), device=DEVICE)
    left = torch.randint(0, 2 * PADDING + 1, (n, 1), device=DEVICE)
    rows = top + torch.arange(h, device=DEVICE)
    columns = left + torch.arange(w, device=DEVICE)
    flips = torch.rand(n, 1, device=DEVICE) < 0.5
    columns = torch.where(flips, columns.flip(1), columns)
    index = torch.arange(n, device=DEVICE).view(n, 1, 1)
    return x.permute(0, 2, 3, 1)[index, rows.unsqueeze(2), columns.unsqueeze(1)].permute(0, 3, 1, 2)


def rate_at(step, steps):
    warmup = round(WARMUP * steps)
    if step < warmup:
        return RATE * (step + 1) / warmup
    return RATE * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad(), mixed():
        hits = [(net(normalized(images.float() / 255)).argmax(1) == classes).sum()
                for images, classes in zip(x.split(1000), y.split(1000))]
    return int(sum(hits)) / len(x)


def main():
    path, epochs, batch, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    x, y = load(path, "")
    test_x, test_y = load(path, "test/")
    torch.backends.cudnn.benchmark = True
    for seed in map(int, seeds):
        torch.manual_seed(seed)
        net = placed(resnet18(num_classes=10))
        optimizer = torch.optim.SGD(groups(net, DECAY), lr=RATE, momentum=0.9, nesterov=True)

        def loss_of(rows):
            with mixed():
                out = net(normalized(augmented(x[rows]).float() / 255))
            return F.cross_entropy(out.float(), y[rows])

        seconds, means = train(len(x), optimizer, epochs, batch, rate_at, loss_of)
        print(json.dumps({"peer": "torch " + torch.__version__, "seed": seed, "epochs": epochs,
                          "batch": batch, "seconds": round(seconds, 2),
                          "images_per_s": round(epochs * (len(x) // batch) * batch / seconds),
                          "train_losses": means, "accuracy": accuracy(net, test_x, test_y)}),
              flush=True)


main()
