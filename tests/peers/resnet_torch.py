#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes tests/golden/resnet_torch.h: loss, gradients and running statistics of one training step of
# networks by name, in double precision by PyTorch, from parameters and images that are formulas of
# their index (tests/kits/learn_kit.c has the same). ResNets are torchvision's own; the
# WideResNet is written here after Zagoruyko and Komodakis, with the names of the common PyTorch
# version. A tensor of axes [outputs][channels][height][width] is counted with the channels last.
# For each tensor there is its length and its product with another formula. The images are the first
# for which no rectifier is so near its edge that the 7th digit of an image turns it. Usage:
#     resnet_torch.py > tests/golden/resnet_torch.h

import math

import numpy as np
import torch
import torchvision
from torch import nn

BATCH, CLASSES = 8, 5


def hashed(stream, i):
    v = (i + np.uint64(stream * 7919 + 1)) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)
    v ^= v >> np.uint64(16)
    v = v * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
    return v ^ v >> np.uint64(13)


def numbers(stream, *shape):
    v = hashed(stream, np.arange(math.prod(shape), dtype=np.uint64)) >> np.uint64(8)
    return torch.from_numpy(v.astype(np.float64) / 2**23 - 1).reshape(shape)


class WideBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.bn1, self.bn2 = nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.convShortcut = None
        if inputs != outputs:
            self.convShortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        h = self.bn1(x).relu()
        shortcut = self.convShortcut(h) if self.convShortcut else x
        return shortcut + self.conv2(self.bn2(self.conv1(h)).relu())


class WideGroup(nn.Module):
    def __init__(self, *blocks):
        super().__init__()
        self.layer = nn.Sequential(*blocks)

    def forward(self, x):
        return self.layer(x)


class WideResNet(nn.Module):
    def __init__(self, depth, width, classes):
        super().__init__()
        inputs, self.conv1 = 16, nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        for g in range(3):
            blocks, outputs = [], 16 * 2**g * width
            for i in range((depth - 4) // 6):
                blocks.append(WideBlock(inputs, outputs, 2 if i == 0 and g > 0 else 1))
                inputs = outputs
            setattr(self, f"block{g + 1}", WideGroup(*blocks))
        self.bn1, self.fc = nn.BatchNorm2d(inputs), nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.block3(self.block2(self.block1(self.conv1(x))))
        return self.fc(self.bn1(x).relu().mean((2, 3)))


def small_stem(model):
    model.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    model.maxpool = nn.Identity()
    return model


def ours(t):
    return t.permute(0, 2, 3, 1) if t.dim() == 4 else t


def set_parameters(model):
    for k, (name, p) in enumerate(model.named_parameters()):
        v = numbers(100 + k, *ours(p).shape)
        v = v.permute(0, 3, 1, 2) if p.dim() == 4 else v
        if p.dim() == 1:
            v = 0.125 * v + (1.0 if name.endswith("weight") else 0.0)
        elif p.dim() == 2:
            v = v / math.sqrt(p.shape[1])
        else:
            v = v * math.sqrt(6 / math.prod(p.shape[1:]))
        p.data.copy_(v.float().double())


def rows(model):
    found = [(name, p.grad) for name, p in model.named_parameters()]
    found += [(name, b) for name, b in model.named_buffers() if b.dtype.is_floating_point]
    for k, (name, t) in enumerate(found):
        t = ours(t).flatten()
        yield name, t.norm().item(), (t @ numbers(1000 + k, t.numel())).item()


# One step; the gradients as one vector.
def step(model, x, y):
    for b in model.modules():
        if isinstance(b, nn.BatchNorm2d):
            b.reset_running_stats()
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss.item(), [p.grad.clone() for p in model.parameters()]


def images(model, size, y):
    draw = torch.Generator().manual_seed(1)
    for stream in range(300, 600):
        x = numbers(stream, BATCH, size, size, 3).permute(0, 3, 1, 2)
        _, grads = step(model, x, y)
        worst = 0.0
        for _ in range(2):
            near = x + 2e-7 * torch.randn(x.shape, generator=draw, dtype=x.dtype)
            _, others = step(model, near, y)
            worst = max([worst] + [((a - b).norm() / a.norm()).item() for a, b in zip(grads, others)])
        if worst < 2e-5:
            return stream, x
    raise SystemExit("no images are far enough from every edge")


def main():
    torch.use_deterministic_algorithms(True)
    resnet = torchvision.models
    cases = [
        ("resnet18", 32, resnet.resnet18(num_classes=CLASSES)),
        ("resnet18_cifar", 8, small_stem(resnet.resnet18(num_classes=CLASSES))),
        ("wideresnet", 12, WideResNet(16, 2, CLASSES)),
    ]
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by tests/peers/resnet_torch.py with PyTorch {torch.__version__.split('+')[0]}"
          f" and torchvision {torchvision.__version__.split('+')[0]}: do not edit.")
    print("// clang-format off")
    print("#ifndef TEST_GOLDEN_RESNET_TORCH_H\n#define TEST_GOLDEN_RESNET_TORCH_H\n")
    print(f"#define RESNET_BATCH {BATCH}\n#define RESNET_CLASSES {CLASSES}\n")
    print("// The length of a gradient or statistic, and its product with another formula.")
    print("struct resnet_row {\n    const char *name;\n    double length, product;\n};\n")
    for name, size, model in cases:
        model = model.double().train()
        set_parameters(model)
        y = torch.from_numpy(hashed(2, np.arange(BATCH, dtype=np.uint64)).astype(np.int64) % CLASSES)
        stream, x = images(model, size, y)
        loss, _ = step(model, x, y)
        print(f"static const struct resnet_row {name}_rows[] = {{")
        for row in rows(model):
            print('    {"%s", %.9g, %.9g},' % row)
        print("};")
        print(f"#define {name.upper()}_LOSS {loss:.9g}")
        print(f"#define {name.upper()}_IMAGES {stream}\n")
    # Of bottlenecks the loss in evaluation: so many rectifiers are never all far from their edge.
    model = resnet.resnet50(num_classes=CLASSES).double().eval()
    set_parameters(model)
    x = numbers(300, BATCH, 32, 32, 3).permute(0, 3, 1, 2)
    with torch.no_grad():
        print(f"#define RESNET50_LOSS {nn.functional.cross_entropy(model(x), y).item():.9g}\n")
        print("static const char *const resnet50_names[] = {")
        for name, _ in model.named_parameters():
            print(f'    "{name}",')
        print("};\n")
    print("#endif")


if __name__ == "__main__":
    main()
