#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Makes tests/golden/ppo_torch.h: one update of PPO by PyTorch, over rows and from parameters that
# are formulas of their index; tests/unit/rl/suite_ppotorch.c has the same. The sizes are those of
# environment uav with map 6, 3 UAVs, window 3. Usage:
#     ppo_torch.py > tests/golden/ppo_torch.h

import torch
from torch import nn

STEPS, COPIES, AGENTS, OBS, WHOLE, HIDDEN, ACTIONS = 12, 5, 3, 42, 79, 6, 9
CLIP, VALUE_CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT, LR, EPS, MAX_NORM = 0.2, 0.3, 0.5, 0.01, 1e-3, 1e-5, 0.5


def wave(count, rate, shift):
    """sin(rate i + shift), in double precision, rounded to f32."""
    return torch.sin(torch.arange(count, dtype=torch.float64) * rate + shift).float()


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))


def main():
    rows = STEPS * COPIES * AGENTS
    index = torch.arange(rows)
    own = wave(rows * OBS, 0.37, 0).view(rows, OBS)
    # The whole is the same for all agents of a copy.
    whole = wave(STEPS * COPIES * WHOLE, 0.53, 1).view(STEPS * COPIES, WHOLE).repeat_interleave(AGENTS, 0)
    seen = torch.cat([own, whole], 1)
    mask = ((index[:, None] * 7 + torch.arange(ACTIONS) * 5) % 4 != 1)
    mask[:, 0] = True
    allowed = mask.int().cumsum(1)
    wanted = 1 + index % allowed[:, -1]
    action = (allowed == wanted[:, None]).int().argmax(1)
    logp = -1.6 + 0.3 * wave(rows, 0.71, 2)
    value, returns, advantage = 0.4 * wave(rows, 0.29, 3), wave(rows, 0.83, 4), wave(rows, 0.47, 5)
    counts = index % 7 != 3

    actor, critic = network(OBS, ACTIONS), network(OBS + WHOLE, 1)
    parameters = [*actor.parameters(), *critic.parameters()]
    with torch.no_grad():
        for k, p in enumerate(parameters):
            p.copy_(0.4 * wave(p.numel(), 0.91, k).view(p.shape))
    optimizer = torch.optim.Adam(parameters, lr=LR, eps=EPS)

    kept = advantage[counts].double()
    a = ((advantage.double() - kept.mean()) / (kept.std(correction=0) + 1e-8)).float()
    choice = torch.distributions.Categorical(logits=actor(own).masked_fill(~mask, -torch.inf))
    ratio = (choice.log_prob(action) - logp).exp()
    policy = torch.max(-a * ratio, -a * ratio.clamp(1 - CLIP, 1 + CLIP))[counts].mean()
    v = critic(seen)[:, 0]
    held = value + (v - value).clamp(-VALUE_CLIP, VALUE_CLIP)
    error = 0.5 * torch.max((v - returns) ** 2, (held - returns) ** 2)[counts].mean()
    loss = policy + VALUE_WEIGHT * error - ENTROPY_WEIGHT * choice.entropy()[counts].mean()
    loss.backward()
    gradients = torch.cat([p.grad.flatten() for p in parameters])
    norm = nn.utils.clip_grad_norm_(parameters, MAX_NORM)
    optimizer.step()
    after = torch.cat([p.detach().flatten() for p in parameters])

    def table(name, numbers):
        lines = [", ".join(f"{x:.9g}" for x in numbers[i : i + 8].tolist()) for i in range(0, len(numbers), 8)]
        print(f"static const double {name}[{len(numbers)}] = {{\n    " + ",\n    ".join(lines) + ",\n};\n")

    clipped = ((ratio - 1).abs() > CLIP)[counts].float().mean()
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by tests/peers/ppo_torch.py with PyTorch {torch.__version__.split('+')[0]} on a CPU: do not edit.")
    print("// clang-format off\n#ifndef TEST_GOLDEN_PPO_TORCH_H\n#define TEST_GOLDEN_PPO_TORCH_H\n")
    print(f"#define TORCH_PPO_LOSS {loss.item():.9g}\n#define TORCH_PPO_NORM {norm.item():.9g}")
    print(f"#define TORCH_PPO_CLIPPED {clipped.item():.9g}\n")
    table("torch_ppo_gradients", gradients)
    table("torch_ppo_after", after)
    print("#endif")


main()
