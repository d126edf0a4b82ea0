#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/cycle_torch.h: PyTorch's OneCycleLR over SGD with Nesterov's momentum, and the
AveragedModel of its parameters. Usage: torch_cycle.py >tests/golden/cycle_torch.h"""
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

MAX_LR, STEPS, RISE, EMA, NUMBERS = 0.3, 20, 6, 0.9, 5

model = torch.nn.ParameterList([torch.tensor([0.25 * i - 0.5 for i in range(NUMBERS)], dtype=torch.float64)])
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(EMA))
sgd = torch.optim.SGD(model.parameters(), lr=MAX_LR, momentum=0.9, nesterov=True)
cycle = torch.optim.lr_scheduler.OneCycleLR(sgd, MAX_LR, total_steps=STEPS, pct_start=RISE / STEPS, cycle_momentum=False)
rates, params, averages = [], [], []
for step in range(STEPS):
    model[0].grad = torch.tensor([0.125 * ((i * 5 + step * 3) % 7 - 3) for i in range(NUMBERS)], dtype=torch.float64)
    rates.append(sgd.param_groups[0]["lr"])
    sgd.step()
    average.update_parameters(model)
    params.append(model[0].tolist())
    averages.append(average.module[0].tolist())
    if step + 1 < STEPS:
        cycle.step()


def row(numbers):
    return "{" + ", ".join(f"{n:.10g}" for n in numbers) + "}"


def lines(numbers, each):
    rows = [numbers[i : i + each] for i in range(0, len(numbers), each)]
    return "\n".join("    " + ", ".join(r) + "," for r in rows)


print(f"""// SPDX-License-Identifier: Apache-2.0
// Made by tests/peers/torch_cycle.py with PyTorch {torch.__version__.split("+")[0]} on a CPU: do not edit.
// clang-format off
#ifndef TEST_GOLDEN_CYCLE_TORCH_H
#define TEST_GOLDEN_CYCLE_TORCH_H

#define CYCLE_MAX_LR {MAX_LR}
#define CYCLE_STEPS {STEPS}
#define CYCLE_RISE {RISE}
#define CYCLE_EMA {EMA}
#define CYCLE_NUMBERS {NUMBERS}

static const double cycle_lr[CYCLE_STEPS] = {{
{lines([f"{r:.10g}" for r in rates], 5)}
}};
static const double cycle_param[CYCLE_STEPS][CYCLE_NUMBERS] = {{
{lines([row(p) for p in params], 1)}
}};
static const double cycle_average[CYCLE_STEPS][CYCLE_NUMBERS] = {{
{lines([row(a) for a in averages], 1)}
}};

#endif""")
