# SPDX-License-Identifier: Apache-2.0
"""SimCLR on CIFAR-10 by PyTorch with the recipe of `gpurt train simclr`: ResNet-18 with a 3x3 stem,
a head of 512 and 128, NT-Xent, AdamW without decay of norms and biases, cosine by step, random
resized crops, flips, jitter of colours, grey, mixed precision. The images come from the HDF5 file
that gpurt reads and stay on the GPU. The features' 200 nearest neighbours vote at the end as in
`gpurt eval knn`. Prints one JSON line a seed.

usage: torch_simclr.py FILE.h5 EPOCHS BATCH SEED..."""
import json
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from torch_cifar import DEVICE, groups, load, mixed, normalized, placed, resnet18, train

RATE, DECAY, TEMPERATURE = 1e-3, 1e-4, 0.5
JITTER, HUE = 0.4, 0.1
NEIGHBOURS, VOTE = 200, 0.1


def uniform(n, low, high):
    return torch.empty(n, device=DEVICE).uniform_(low, high)


def crops(x):
    """Random resized crops, 0.08 to 1 of the area and 3/4 to 4/3 of the sides, half of them mirrored.
    Sides that do not fit are cut: torchvision draws again up to ten times."""
    n = len(x)
    area, ratio = uniform(n, 0.08, 1), torch.exp(uniform(n, math.log(3 / 4), math.log(4 / 3)))
    for _ in range(9):
        wide = torch.sqrt(area * torch.maximum(ratio, 1 / ratio)) > 1
        area = torch.where(wide, uniform(n, 0.08, 1), area)
        ratio = torch.where(wide, torch.exp(uniform(n, math.log(3 / 4), math.log(4 / 3))), ratio)
    w, h = torch.sqrt(area * ratio).clamp(max=1), torch.sqrt(area / ratio).clamp(max=1)
    left, top = uniform(n, 0, 1) * (1 - w), uniform(n, 0, 1) * (1 - h)
    mirror = torch.where(torch.rand(n, device=DEVICE) < 0.5, -1.0, 1.0)
    matrix = torch.zeros(n, 2, 3, device=DEVICE)
    matrix[:, 0, 0], matrix[:, 0, 2] = w * mirror, 2 * left + w - 1
    matrix[:, 1, 1], matrix[:, 1, 2] = h, 2 * top + h - 1
    grid = F.affine_grid(matrix, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, "bilinear", "border", align_corners=False)


def grey(x):
    return (0.2989 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]).unsqueeze(1)


def hue(x, shift):
    """Turned in HSV, each sample by its own part of the circle."""
    most, least = x.amax(1), x.amin(1)
    span = most - least
    safe = torch.where(span == 0, torch.ones_like(span), span)
    r, g, b = ((most - x[:, i]) / safe for i in range(3))
    h = torch.where(most == x[:, 0], b - g, torch.where(most == x[:, 1], 2 + r - b, 4 + g - r))
    h = torch.where(span == 0, torch.zeros_like(h), (h / 6) % 1)
    h = ((h + shift.view(-1, 1, 1)) % 1) * 6
    s = span / torch.where(most == 0, torch.ones_like(most), most)
    part = []
    for i in (5, 3, 1):
        k = (i + h) % 6
        part.append(most - most * s * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(part, 1)


def jittered(x):
    n, one = len(x), (-1, 1, 1, 1)
    y = x
    for step in torch.randperm(4).tolist():
        factor = uniform(n, 1 - JITTER, 1 + JITTER).view(one)
        if step == 0:
            y = (y * factor).clamp(0, 1)
        elif step == 1:
            mean = grey(y).mean((1, 2, 3), keepdim=True)
            y = (y * factor + mean * (1 - factor)).clamp(0, 1)
        elif step == 2:
            y = (y * factor + grey(y) * (1 - factor)).clamp(0, 1)
        else:
            y = hue(y, uniform(n, -HUE, HUE))
    x = torch.where(torch.rand(n, device=DEVICE).view(one) < 0.8, y, x)
    return torch.where(torch.rand(n, device=DEVICE).view(one) < 0.2, grey(x).expand_as(x), x)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = resnet18()
        self.net.fc = nn.Identity()
        self.head = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, x):
        return self.head(self.net(x))


def nt_xent(z):
    z = F.normalize(z.float(), dim=1)
    cosines = z @ z.T / TEMPERATURE
    cosines.fill_diagonal_(float("-inf"))
    n = len(z) // 2
    partner = torch.arange(2 * n, device=DEVICE).roll(n)
    return F.cross_entropy(cosines, partner)


def neighbours(net, x, y, test_x, test_y):
    net.eval()
    with torch.no_grad(), mixed():
        def features(images):
            return torch.cat([F.normalize(net.net(normalized(part.float() / 255)).float(), dim=1)
                              for part in images.split(1000)])
        known, hits = features(x), 0
        for part, classes in zip(features(test_x).split(1000), test_y.split(1000)):
            cosine, at = (part.float() @ known.T.float()).topk(NEIGHBOURS, dim=1)
            votes = torch.zeros(len(part), 10, device=DEVICE)
            votes.scatter_add_(1, y[at], torch.exp(cosine.float() / VOTE))
            hits += int((votes.argmax(1) == classes).sum())
    net.train()
    return hits / len(test_x)


def main():
    path, epochs, batch, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    x, y = load(path, "")
    test_x, test_y = load(path, "test/")
    torch.backends.cudnn.benchmark = True
    rate = RATE * math.sqrt(batch / 256)
    for seed in map(int, seeds):
        torch.manual_seed(seed)
        net = placed(Network())
        optimizer = torch.optim.AdamW(groups(net, DECAY), lr=rate)

        def rate_at(step, steps):
            return rate * 0.5 * (1 + math.cos(math.pi * step / steps))

        def loss_of(rows):
            images = x[rows].float() / 255
            views = normalized(jittered(crops(torch.cat([images, images]))))
            with mixed():
                z = net(views)
            return nt_xent(z)

        seconds, means = train(len(x), optimizer, epochs, batch, rate_at, loss_of)
        print(json.dumps({"peer": "torch " + torch.__version__, "what": "simclr", "seed": seed,
                          "epochs": epochs, "batch": batch, "seconds": round(seconds, 2),
                          "losses": means, "knn": neighbours(net, x, y, test_x, test_y)}),
              flush=True)


main()
