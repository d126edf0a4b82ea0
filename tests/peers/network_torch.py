#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes tests/golden/network_torch.h: the losses of 50 steps of a list of layers by PyTorch, from
# parameters, samples and targets that are formulas of their index (tests/kits/learn_kit.c has
# the same). Modules are named as gpurt names them, so that both have their parameters in one order.
# The learning rates are such that PyTorch in f64 gives the same losses to 1e-5: with more, one
# rectifier that turns the other way changes a loss by 3e-3. Usage:
#     network_torch.py > tests/golden/network_torch.h

import fnmatch
import math

import torch
from torch import nn

from torch_losses import hashed, numbers

SAMPLES, BATCH, STEPS, INPUTS, OUTPUTS = 64, 16, 50, 8, 4
CLASS_WEIGHTS = [1, 2.5, 0.25, 4]


class Residual(nn.Module):
    def __init__(self, body, act=None):
        super().__init__()
        self.body, self.act = body, act or nn.Identity()

    def forward(self, x):
        return self.act(self.body(x) + x)


# The list of layers; tests/unit/learn/suite_torch.c has it as text.
def network():
    return nn.Sequential(
        nn.Linear(INPUTS, 64),
        nn.LayerNorm(64),
        nn.GELU(approximate="tanh"),
        Residual(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0), nn.Linear(64, 64))),
        nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
                      nn.Linear(32, 32), nn.ReLU()),
        Residual(nn.Sequential(nn.Linear(32, 32), nn.Tanh()), nn.SiLU()),
        nn.Linear(32, OUTPUTS))


def set_parameters(model):
    bound, norm = 1.0, False
    for k, (name, p) in enumerate(model.state_dict().items()):
        if p.dim() == 2:
            bound = 1 / math.sqrt(p.shape[1])
        if "weight" in name:
            norm = p.dim() == 1
        v = numbers(100 + k, *p.shape).double()
        one = 1.0 if "weight" in name else 0.0
        p.copy_((one + 0.125 * v if norm else v * bound).float())


# The first entry that matches a parameter's name says its learning rate and decay. `decay` is for
# matrices alone; an entry's own is for whatever matches.
def groups(model, lr, decay, entries):
    made = []
    for name, p in model.named_parameters():
        own = next((e for e in entries if fnmatch.fnmatchcase(name, e["match"])), {})
        made.append({"params": [p], "lr": own.get("lr", lr),
                     "weight_decay": own.get("decay", decay if p.dim() > 1 else 0.0)})
    return made


def run(criterion, classes, optimizer, clip=None, schedule=None):
    model = network()
    set_parameters(model)
    x = numbers(1, SAMPLES, INPUTS)
    y = numbers(2, SAMPLES, OUTPUTS)
    if classes:
        y = torch.tensor([hashed(2, i) % OUTPUTS for i in range(SAMPLES)])
    opt = optimizer(model)
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
    adamw, sgd = torch.optim.AdamW, torch.optim.SGD
    entries = [{"match": "3.*", "lr": 5e-4}, {"match": "6.*", "lr": 3e-3, "decay": 0.2},
               {"match": "*.2.weight", "lr": 5e-5}]
    weighted = nn.CrossEntropyLoss(weight=torch.tensor(CLASS_WEIGHTS), label_smoothing=0.1)
    runs = {
        "network": run(nn.MSELoss(), False, lambda m: adamw(m.parameters(), lr=1e-3)),
        "groups": run(nn.MSELoss(), False,
                      lambda m: adamw(groups(m, 1e-3, 0.05, entries)), clip=0.5,
                      schedule=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(
                          o, T_max=STEPS, eta_min=1e-4)),
        "class_weights": run(weighted, True, lambda m: sgd(m.parameters(), lr=0.05, momentum=0.9)),
    }
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by tests/peers/network_torch.py with PyTorch {torch.__version__.split('+')[0]}"
          " on a CPU: do not edit.")
    print("// clang-format off")
    print("#ifndef TEST_GOLDEN_NETWORK_TORCH_H\n#define TEST_GOLDEN_NETWORK_TORCH_H\n")
    for name in "STEPS", "SAMPLES", "BATCH", "INPUTS", "OUTPUTS":
        print(f"#define TORCH_{name} {globals()[name]}")
    for name, losses in runs.items():
        print(f"\nstatic const double torch_{name}[TORCH_STEPS] = {{")
        for i in range(0, STEPS, 5):
            print("    " + " ".join(f"{v:.9g}," for v in losses[i:i + 5]))
        print("};")
    print("\n#endif")


if __name__ == "__main__":
    main()
