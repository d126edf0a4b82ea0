# SPDX-License-Identifier: Apache-2.0
"""PyTorch's training step of ResNet-18 with a 3x3 stem on a CPU, the peer of `gpurt bench images` there: f32, images of 32x32
in channels_last, ten classes, SGD with momentum. One JSON line: medians and the best by the wall, and the least time of all
cores for a step. KMP_BLOCKTIME=0 keeps waiting threads from counting.

Usage: torch_images_cpu.py [BATCH [STEPS [THREADS]]]
"""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        return F.relu(y + (self.downsample(x) if self.downsample else x), inplace=True)


def resnet18():
    parts = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(True)]
    channels = 64
    for stage, outputs in enumerate((64, 128, 256, 512)):
        for i in range(2):
            parts.append(Block(channels, outputs, 2 if stage > 0 and i == 0 else 1))
            channels = outputs
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def main():
    batch, steps, threads = [int(a) for a in sys.argv[1:]] + [32, 10, 2][len(sys.argv) - 1:]
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = resnet18().to(memory_format=torch.channels_last)
    x = torch.rand(batch, 3, 32, 32).to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
    wall, cpu = [], []
    for step in range(steps + 2):
        begun, used = time.perf_counter(), time.process_time()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step >= 2:
            wall.append(time.perf_counter() - begun)
            cpu.append(time.process_time() - used)
    print(json.dumps({
        "peer": "torch " + torch.__version__, "model": "resnet18", "resolution": 32, "batch": batch,
        "precision": "f32", "threads": threads, "ms": 1e3 * statistics.median(wall),
        "best_ms": 1e3 * min(wall), "cpu_ms": 1e3 * min(cpu),
        "images_per_s": batch / statistics.median(wall), "samples": steps}))


if __name__ == "__main__":
    main()
