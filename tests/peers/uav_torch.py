#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Multi-UAV PPO as it is usually written: one environment in NumPy, a network in PyTorch, a call of it at every step.

The rules are those of shaders/env/uav.k, written anew from its comment; the learner is PPO with a central critic. A peer for
`gpurt bench ppo --env uav` and `gpurt train uav`:

    python3 tests/peers/uav_torch.py --iterations 3 --num-uavs 10 --map 32

prints one JSON object: agent-steps/s of whole iterations and the share of the time that each phase takes.
"""
import argparse
import json
import time

import numpy as np
import torch
from torch import nn

# (y, x) of choice 0 (stay) and of 1 to 8, from east against the clock.
MOVES = np.array([(0, 0), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)])


class Uavs:
    """One copy of the environment."""

    def __init__(self, args, seed):
        self.size, self.count, self.window = args.map, args.num_uavs, args.window
        self.obstacles = args.num_obstacles
        self.limit = args.max_steps
        self.random = np.random.default_rng(seed)

    def reachable(self, free, start):
        seen = np.zeros_like(free)
        todo = [tuple(start)]
        seen[tuple(start)] = True
        while todo:
            x, y = todo.pop()
            for dx, dy in MOVES[1:]:
                at = (x + dx, y + dy)
                if 0 <= at[0] < self.size and 0 <= at[1] < self.size and free[at] and not seen[at]:
                    seen[at] = True
                    todo.append(at)
        return seen

    def reset(self):
        while True:
            free = np.ones((self.size, self.size), bool)
            free.flat[self.random.choice(self.size**2, self.obstacles, replace=False)] = False
            cells = np.argwhere(free)
            seen = self.reachable(free, cells[self.random.integers(len(cells))])
            cells = np.argwhere(seen)
            if len(cells) >= 2 * self.count:
                break
        places = self.random.permutation(len(cells))[: 2 * self.count]
        self.free = free
        self.at, self.target = cells[places[: self.count]], cells[places[self.count :]]
        self.landed = np.zeros(self.count, bool)
        self.last = np.zeros(self.count, int)
        self.time = 0
        return self.observe()

    def distance(self):
        return np.abs(self.at - self.target).max(1)

    def inside(self, cell):
        return (cell >= 0).all() and (cell < self.size).all()

    def scaled(self, cells):
        """(x, y) from -1 to 1."""
        return 2 * cells[..., ::-1] / (self.size - 1) - 1

    def masks(self):
        taken = {tuple(a) for a, l in zip(self.at, self.landed) if not l}
        masks = np.zeros((self.count, 9), bool)
        for i in range(self.count):
            for m in range(9):
                to = self.at[i] + MOVES[m]
                open_ = self.inside(to) and self.free[tuple(to)] and tuple(to) not in taken
                masks[i, m] = m == 0 or (open_ and not self.landed[i])
        return masks

    def observe(self):
        half = self.window // 2
        taken = {tuple(a) for a, l in zip(self.at, self.landed) if not l}
        rows = []
        for i in range(self.count):
            window = np.zeros((3, self.window, self.window), np.float32)
            for y in range(self.window):
                for x in range(self.window):
                    cell = self.at[i] + (y - half, x - half)
                    if not self.inside(cell):
                        window[2, y, x] = 1
                    else:
                        window[0, y, x] = not self.free[tuple(cell)]
                        window[1, y, x] = (y, x) != (half, half) and tuple(cell) in taken
            to = (self.target[i] - self.at[i])[::-1].astype(np.float32)
            rows.append(np.concatenate([self.scaled(self.at[i]), to / (self.size - 1), np.clip(to / 4, -1, 1),
                                        window.ravel(), np.eye(9)[self.last[i]]]))
        edges = np.arange(9) * self.size // 8
        coarse = [(~self.free)[edges[j] : edges[j + 1], edges[i] : edges[i + 1]] for j in range(8) for i in range(8)]
        whole = np.column_stack([self.scaled(self.at), self.scaled(self.target), self.landed]).ravel()
        whole = np.concatenate([whole, [part.mean() if part.size else 0 for part in coarse]])
        own = np.array(rows, np.float32)
        return own, np.concatenate([own, np.tile(whole, (self.count, 1))], 1).astype(np.float32), self.masks()

    def step(self, actions):
        before = self.distance()
        counts = ~self.landed
        wants = self.at + MOVES[actions]
        taken = {tuple(a) for a, l in zip(self.at, self.landed) if not l}
        moved, collided = self.at.copy(), np.zeros(self.count)
        claimed = set()
        for i in np.flatnonzero(counts):
            to = tuple(wants[i])
            if actions[i] == 0:
                continue
            if not self.inside(wants[i]) or not self.free[to] or to in taken or to in claimed:
                collided[i] = 1
            else:
                moved[i] = wants[i]
            claimed.add(to)
        self.at, self.last = moved, np.where(counts, actions, self.last)
        after = self.distance()
        arrived = counts & (after == 0)
        reward = 0.1 * (before - after) + 1.0 * arrived - 0.2 * collided - 0.01
        reward = np.where(counts, reward + 0.1 * reward[counts].sum() / self.count, 0)
        self.landed |= arrived
        self.time += 1
        return reward, counts, self.landed.all(), self.time >= self.limit


def network(inputs, outputs, hidden):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, outputs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in dict(map=32, num_uavs=10, num_obstacles=40, window=7, max_steps=200, episodes_per_batch=10, hidden=64,
                            update_epochs=4, batch_size=2048, iterations=3, seed=0, threads=2).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    env = Uavs(args, args.seed)
    own, seen, _ = env.reset()
    actor, critic = network(own.shape[1], 9, args.hidden), network(seen.shape[1], 1, args.hidden)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4, eps=1e-5)
    phases = dict(environment=0.0, action=0.0, update=0.0)
    steps, arrivals, start = 0, [], time.perf_counter()

    def timed(phase, call):
        begin = time.perf_counter()
        result = call()
        phases[phase] += time.perf_counter() - begin
        return result

    @torch.no_grad()
    def act(own, seen, mask):
        logits = actor(torch.from_numpy(own)).masked_fill(~torch.from_numpy(mask), -torch.inf)
        choice = torch.distributions.Categorical(logits=logits)
        action = choice.sample()
        return action.numpy(), choice.log_prob(action).numpy(), critic(torch.from_numpy(seen))[:, 0].numpy()

    for _ in range(args.iterations):
        rows = {name: [] for name in ("own", "seen", "mask", "action", "logp", "advantage", "returns", "counts")}
        for _ in range(args.episodes_per_batch):
            own, seen, mask = timed("environment", env.reset)
            path, over, cut = [], False, False
            while not over and not cut:
                action, logp, value = timed("action", lambda: act(own, seen, mask))
                reward, counts, over, cut = timed("environment", lambda: env.step(action))
                path.append((own, seen, mask, action, logp, value, reward, counts, env.landed.copy()))
                own, seen, mask = timed("environment", env.observe)
                steps += int(counts.sum())
            arrivals.append(env.landed.mean())
            ahead, advantage = act(own, seen, mask)[2], np.zeros(env.count)
            for own_, seen_, mask_, action, logp, value, reward, counts, landed in reversed(path):
                delta = reward + 0.99 * np.where(landed, 0, ahead) - value
                advantage = np.where(landed & ~counts, 0, delta + 0.99 * 0.95 * np.where(landed, 0, advantage))
                for name, column in (("own", own_), ("seen", seen_), ("mask", mask_), ("action", action), ("logp", logp),
                                     ("advantage", advantage), ("returns", advantage + value), ("counts", counts)):
                    rows[name].append(column)
                ahead = value
        begin = time.perf_counter()
        batch = {name: torch.from_numpy(np.concatenate(column)) for name, column in rows.items()}
        kept = batch["counts"]
        batch = {name: column[kept] for name, column in batch.items()}
        a = batch["advantage"]
        a = ((a - a.mean()) / (a.std() + 1e-8)).float()
        for _ in range(args.update_epochs):
            for index in torch.randperm(len(a)).split(args.batch_size):
                logits = actor(batch["own"][index]).masked_fill(~batch["mask"][index], -torch.inf)
                choice = torch.distributions.Categorical(logits=logits)
                ratio = (choice.log_prob(batch["action"][index]) - batch["logp"][index]).exp()
                policy = torch.max(-a[index] * ratio, -a[index] * ratio.clamp(0.8, 1.2)).mean()
                error = 0.5 * (critic(batch["seen"][index])[:, 0] - batch["returns"][index].float()).square().mean()
                loss = policy + 0.5 * error - 0.01 * choice.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
                optimizer.step()
        phases["update"] += time.perf_counter() - begin
    seconds = time.perf_counter() - start
    print(json.dumps(dict(peer="numpy+pytorch", torch=torch.__version__, num_uavs=env.count, map=env.size, agent_steps=steps,
                          seconds=round(seconds, 3), agent_steps_per_s=round(steps / seconds, 1),
                          arrived=round(float(np.mean(arrivals)), 4),
                          phases={name: round(value / seconds, 4) for name, value in phases.items()})))


if __name__ == "__main__":
    main()
