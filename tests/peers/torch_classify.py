# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 by PyTorch with the recipe of `gpurt train classify`: ResNet-18 with a 3x3 stem, SGD with
Nesterov's momentum, no decay of norms and biases, warm-up and cosine by step, crops with a padding of
4 and flips, mixed precision. The images come from the HDF5 file that gpurt reads and stay on the GPU.
Prints one JSON line a seed.

usage: torch_classify.py FILE.h5 EPOCHS BATCH SEED..."""
import json
import math
import sys
import time

import h5py
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision

RATE, DECAY, WARMUP, PADDING = 0.1, 5e-4, 0.05, 4
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)


def load(path, part):
    with h5py.File(path) as file:
        x = torch.from_numpy(file[part + "x"][:]).permute(0, 3, 1, 2)
        y = torch.from_numpy(file[part + "y"][:].astype("int64"))
    return x.cuda().contiguous(memory_format=torch.channels_last), y.cuda()


def normalized(x):
    mean = torch.tensor(MEAN, device="cuda").view(1, 3, 1, 1)
    std = torch.tensor(STD, device="cuda").view(1, 3, 1, 1)
    return ((x.float() / 255 - mean) / std).contiguous(memory_format=torch.channels_last)


def augmented(x):
    """Crops of the image with a border of PADDING zeros, half of them mirrored."""
    n, _, h, w = x.shape
    x = F.pad(x, [PADDING] * 4)
    top = torch.randint(0, 2 * PADDING + 1, (n, 1), device="cuda")
    left = torch.randint(0, 2 * PADDING + 1, (n, 1), device="cuda")
    rows = top + torch.arange(h, device="cuda")
    columns = left + torch.arange(w, device="cuda")
    flips = torch.rand(n, 1, device="cuda") < 0.5
    columns = torch.where(flips, columns.flip(1), columns)
    index = torch.arange(n, device="cuda").view(n, 1, 1)
    return x.permute(0, 2, 3, 1)[index, rows.unsqueeze(2), columns.unsqueeze(1)].permute(0, 3, 1, 2)


def network():
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
    net.maxpool = nn.Identity()
    return net.cuda().to(memory_format=torch.channels_last)


def rate_at(step, steps):
    warmup = round(WARMUP * steps)
    if step < warmup:
        return RATE * (step + 1) / warmup
    return RATE * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def main():
    path, epochs, batch, seeds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    x, y = load(path, "")
    test_x, test_y = load(path, "test/")
    torch.backends.cudnn.benchmark = True
    for seed in map(int, seeds):
        torch.manual_seed(seed)
        net = network()
        matrices = [p for p in net.parameters() if p.dim() > 1]
        vectors = [p for p in net.parameters() if p.dim() <= 1]
        optimizer = torch.optim.SGD([{"params": matrices, "weight_decay": DECAY}, {"params": vectors}],
                                    lr=RATE, momentum=0.9, nesterov=True)
        scaler = torch.amp.GradScaler("cuda")
        per_epoch = len(x) // batch
        begin, step = time.time(), 0
        means = []
        for _ in range(epochs):
            total = torch.zeros((), device="cuda")
            order = torch.randperm(len(x), device="cuda")
            for i in range(per_epoch):
                rows = order[i * batch:(i + 1) * batch]
                for group in optimizer.param_groups:
                    group["lr"] = rate_at(step, epochs * per_epoch)
                with torch.autocast("cuda", torch.float16):
                    out = net(normalized(augmented(x[rows])))
                loss = F.cross_entropy(out.float(), y[rows])
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
                step += 1
                total += loss.detach()
            means.append(round(total.item() / per_epoch, 4))
        torch.cuda.synchronize()
        seconds = time.time() - begin
        net.eval()
        hits = 0
        with torch.no_grad(), torch.autocast("cuda", torch.float16):
            for i in range(0, len(test_x), 1000):
                hits += int((net(normalized(test_x[i:i + 1000])).argmax(1) == test_y[i:i + 1000]).sum())
        print(json.dumps({"peer": "torch " + torch.__version__, "seed": seed, "epochs": epochs,
                          "batch": batch, "seconds": round(seconds, 2),
                          "images_per_s": round(epochs * per_epoch * batch / seconds),
                          "train_losses": means, "accuracy": hits / len(test_x)}), flush=True)


main()
