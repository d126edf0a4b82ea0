#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes tests/golden/torch_losses.h: the first 20 losses of training runs by PyTorch, from
# parameters, samples and targets that are formulas of their index (tests/kits/learn_kit.c has
# the same).
# Usage:
#     torch_losses.py > tests/golden/torch_losses.h

import math

import numpy as np
import torch
from torch import nn

SAMPLES, BATCH, STEPS = 64, 16, 20


def hashed(stream, i):
    v = ((i + stream * 7919 + 1) * 2654435761) & 0xFFFFFFFF
    v ^= v >> 16
    v = (v * 2246822519) & 0xFFFFFFFF
    return v ^ v >> 13


def number(stream, i):
    return (hashed(stream, i) >> 8) / 2**23 - 1


def numbers(stream, *shape):
    count = math.prod(shape)
    v = np.array([number(stream, i) for i in range(count)], dtype=np.float64)
    return torch.from_numpy(v.astype(np.float32)).reshape(shape)


ACTS = {"relu": nn.functional.relu, "tanh": torch.tanh,
        "gelu": lambda v: nn.functional.gelu(v, approximate="tanh")}


class Mlp(nn.Module):
    def __init__(self, inputs, depth, hidden, outputs, act, residual, norm):
        super().__init__()
        widths = [inputs] + [hidden] * depth + ([outputs] if outputs else [])
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(depth if norm else 0))
        self.depth, self.act, self.residual = depth, ACTS[act], residual

    def forward(self, x):
        for i in range(self.depth):
            z = self.layers[i](x)
            z = self.act(self.norms[i](z) if self.norms else z)
            x = z + x if self.residual and i > 0 else z
        return self.layers[self.depth](x) if len(self.layers) > self.depth else x


class Points(nn.Module):
    def __init__(self, inputs, depth, hidden, outputs, act, norm, pool, head_depth):
        super().__init__()
        self.point = Mlp(inputs, depth, hidden, 0, act, False, norm)
        self.head = Mlp(hidden, head_depth, hidden, outputs, act, False, norm)
        self.pool = pool

    def forward(self, x):
        h = self.point(x)
        return self.head(h.mean(1) if self.pool == "mean" else h.max(1).values)


def set_parameters(model):
    bound = 1.0
    for k, (name, p) in enumerate(model.state_dict().items()):
        v = np.array([number(100 + k, i) for i in range(p.numel())], dtype=np.float64)
        if p.dim() == 2:
            bound = 1 / math.sqrt(p.shape[1])
        if "norms." in name:
            v = (1.0 if "weight" in name else 0.0) + 0.125 * v
        else:
            v = v * bound
        p.copy_(torch.from_numpy(v.astype(np.float32)).reshape(p.shape))


def run(model, sample, outputs, loss, optimizer, schedule=None, clip=None):
    set_parameters(model)
    x = numbers(1, SAMPLES, *sample)
    if loss == "cross_entropy":
        y = torch.tensor([hashed(2, i) % outputs for i in range(SAMPLES)])
        criterion = nn.CrossEntropyLoss()
    else:
        y = numbers(2, SAMPLES, outputs)
        criterion = {"mse": nn.MSELoss(), "huber": nn.HuberLoss(delta=0.5),
                     "bce": nn.BCEWithLogitsLoss()}[loss]
        if loss == "bce":
            y = (y > 0).float()
    opt = optimizer(model.parameters())
    sched = schedule(opt) if schedule else None
    losses = []
    for step in range(STEPS):
        first = step * BATCH % SAMPLES
        opt.zero_grad()
        value = criterion(model(x[first:first + BATCH]), y[first:first + BATCH])
        value.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        opt.step()
        if sched:
            sched.step()
        losses.append(value.item())
    return losses


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    opt, lrs = torch.optim, torch.optim.lr_scheduler
    runs = {
        "mlp_adamw_mse": run(
            Mlp(8, 3, 16, 2, "relu", False, False), (8,), 2, "mse",
            lambda p: opt.AdamW(p, lr=3e-3)),
        "blocks_adam_huber": run(
            Mlp(8, 3, 16, 2, "gelu", True, True), (8,), 2, "huber",
            lambda p: opt.Adam(p, lr=2e-3, weight_decay=0.01),
            lambda o: lrs.CosineAnnealingLR(o, T_max=20, eta_min=1e-4), clip=0.5),
        "points_sgd_cross_entropy": run(
            Points(3, 2, 16, 4, "relu", False, "max", 1), (6, 3), 4, "cross_entropy",
            lambda p: opt.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
            lambda o: lrs.StepLR(o, step_size=7, gamma=0.5)),
        "points_sgd_bce": run(
            Points(3, 2, 16, 3, "tanh", True, "mean", 0), (6, 3), 3, "bce",
            lambda p: opt.SGD(p, lr=0.1, momentum=0.5, dampening=0.25, weight_decay=1e-3)),
    }
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by tests/peers/torch_losses.py with PyTorch {torch.__version__.split('+')[0]}"
          " on a CPU: do not edit.")
    print("// clang-format off")
    print("#ifndef TEST_GOLDEN_TORCH_LOSSES_H\n#define TEST_GOLDEN_TORCH_LOSSES_H\n")
    for name, value in ("STEPS", STEPS), ("SAMPLES", SAMPLES), ("BATCH", BATCH):
        print(f"#define GOLDEN_{name} {value}")
    for name, losses in runs.items():
        print(f"\nstatic const double golden_{name}[GOLDEN_STEPS] = {{")
        for i in range(0, STEPS, 5):
            print("    " + " ".join(f"{v:.9g}," for v in losses[i:i + 5]))
        print("};")
    print("\n#endif")


if __name__ == "__main__":
    main()
