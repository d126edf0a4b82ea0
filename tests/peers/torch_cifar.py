# SPDX-License-Identifier: Apache-2.0
"""What the peers over CIFAR-10 share: the images of the HDF5 file that gpurt reads, kept on the GPU,
ResNet-18 with a 3x3 stem, and epochs in mixed precision."""
import time

import h5py
import torch
import torch.nn as nn
import torchvision

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)


def load(path, part):
    with h5py.File(path) as file:
        x = torch.from_numpy(file[part + "x"][:]).permute(0, 3, 1, 2)
        y = torch.from_numpy(file[part + "y"][:].astype("int64"))
    return x.to(DEVICE).contiguous(memory_format=torch.channels_last), y.to(DEVICE)


def normalized(x):
    """Of numbers from 0 to 1."""
    mean = torch.tensor(MEAN, device=DEVICE).view(1, 3, 1, 1)
    std = torch.tensor(STD, device=DEVICE).view(1, 3, 1, 1)
    return ((x - mean) / std).contiguous(memory_format=torch.channels_last)


def resnet18(**options):
    net = torchvision.models.resnet18(**options)
    net.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
    net.maxpool = nn.Identity()
    return net


def placed(net):
    return net.to(DEVICE).to(memory_format=torch.channels_last)


def mixed():
    return torch.autocast(DEVICE, torch.float16)


def groups(net, decay):
    """Norms and biases do not decay."""
    matrices = [p for p in net.parameters() if p.dim() > 1]
    vectors = [p for p in net.parameters() if p.dim() <= 1]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def train(rows, optimizer, epochs, batch, rate_at, loss_of):
    """Epochs over so many rows without the last short batch; rate_at(step, steps) and loss_of(the
    numbers of a batch's rows). Returns the seconds and the mean loss of each epoch."""
    scaler = torch.amp.GradScaler(DEVICE)
    per_epoch = rows // batch
    begin, step, means = time.time(), 0, []
    for _ in range(epochs):
        total = torch.zeros((), device=DEVICE)
        order = torch.randperm(rows, device=DEVICE)
        for i in range(per_epoch):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, epochs * per_epoch)
            loss = loss_of(order[i * batch:(i + 1) * batch])
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            step += 1
            total += loss.detach()
        means.append(round(total.item() / per_epoch, 4))
    return time.time() - begin, means
