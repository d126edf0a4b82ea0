#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Multi-UAV PPO in JAX: the rules of shaders/env/uav.k and the learner of runtime/gpurt/ppo.h, as a peer in benchmarks.

    uav_jax.py --num-envs 4096 --num-uavs 10 --map 32 --horizon 128 --iterations 10 --precision bf16
    uav_jax.py --env-only ...    random allowed actions: the environment alone, without and with observations
    uav_jax.py --check           (needs PyTorch, too) the environment against the NumPy version of uav_torch.py, step by step

Prints a JSON object a line. agent_steps_per_s counts rows of UAVs in the air, as `gpurt train uav` does; rows_per_s counts all
rows. Both are medians over iterations after the compiled one.

What is done for speed:
- An iteration is one jit with its state donated: lax.scan over steps, vmap over environments, scans over epochs and
  minibatches.
- A map is rows of bits, and a window is cut out of it by shifts. UAVs are compared pair by pair, so that nothing depends on order.
- Under vmap a reset would cost as much at every step as at one. So an iteration draws a pool of starts, all at once: one for each environment
  and 32 steps, and an environment that begins anew takes its next one. With default settings an episode has more than 32 steps on average. An environment
  that needs more starts in one iteration meets those of this iteration again.
- Obstacles are the first cells of a random permutation of the map's cells, starts and targets the next ones that can be reached. The fill
  spreads along rows and columns in log steps. So no draw waits for another.
- Rows are shuffled by a bijection that each row works out for itself; sorting random keys takes longer.
- Random bits are XLA's own generator (rbg), one uniform number for an action. The part of the critic's first layer that sees the whole is worked
  out once for all UAVs while acting.
- bf16: observations and networks, forward and backward; parameters, losses and Adam are f32. tf32: f32 with products in TF32.

As in gpurt, an ended environment is reset by its next step, whose rows do not count. So the observation behind the last action is valued when
time has cut the episode.
"""
import argparse
import json
import math
import statistics
import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# (y, x) of choice 0 (stay) and of 1 to 8, from east against the clock.
MOVES = np.array([(0, 0), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)], np.int32)
PROGRESS, ARRIVAL, COLLISION, TIME, TEAM = 0.1, 1.0, 0.2, 0.01, 0.1
GAMMA, LAMBDA, CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT = 0.99, 0.95, 0.2, 0.5, 0.01
LR, BETA1, BETA2, EPS, MAX_NORM = 3e-4, 0.9, 0.999, 1e-5, 0.5
EPOCHS, MINIBATCHES = 4, 4
STEPS_OF_A_START = 32
TRIES = 8


def mixed(x):
    """Bits of x, mixed (murmur3's last steps)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def permuted(i, rows, columns, keys):
    """A bijection of 0 .. rows * columns - 1: each round adds to one coordinate what follows from the other."""
    y, x = i // columns, i % columns
    for k in range(0, 8, 2):
        y = (y + mixed(x ^ keys[k]) % rows) % rows
        x = (x + mixed(y ^ keys[k + 1]) % columns) % columns
    return y * columns + x


# ---- the environment ----


class State(NamedTuple):
    rock: jax.Array  # [map][words] rows of obstacles, a bit each
    at: jax.Array  # [uav] (y, x)
    target: jax.Array
    landed: jax.Array
    last: jax.Array  # choice
    time: jax.Array
    over: jax.Array  # the next step begins anew
    used: jax.Array  # starts taken so far


class Uavs:
    """One environment; every function is of one copy, for vmap."""

    def __init__(self, args):
        self.size, self.count, self.window = args.map, args.num_uavs, args.window
        self.obstacles, self.limit = args.num_obstacles, args.max_steps
        self.words = (self.size + 31) // 32
        self.obs = 15 + 3 * self.window**2
        self.whole = 5 * self.count + 64
        inside = np.arange(32 * self.words) < self.size
        self.inside_bits = (inside.reshape(self.words, 32) << np.arange(32)).sum(1).astype(np.uint32)
        edges = np.arange(9) * self.size // 8
        self.parts = list(zip(edges[:-1], edges[1:]))

    def bits_of(self, cells, kept):
        """Rows with the bits of those cells [n] (y, x), all different, that are kept."""
        y, x = cells[:, 0], cells[:, 1]
        here = kept[:, None, None] & (y[:, None, None] == jnp.arange(self.size)[:, None])
        here &= (x // 32)[:, None, None] == jnp.arange(self.words)
        return jnp.where(here, jnp.uint32(1) << (x % 32).astype(jnp.uint32)[:, None, None], jnp.uint32(0)).sum(0, dtype=jnp.uint32)

    def is_set(self, rows, cells):
        y, x = jnp.clip(cells[..., 0], 0, self.size - 1), jnp.clip(cells[..., 1], 0, self.size - 1)
        return (rows[y, x // 32] >> (x % 32).astype(jnp.uint32)) & 1 == 1

    def around(self, rows, at, half):
        """[uav][line]: bit k of a line is the cell k - half east of the UAV."""
        y = at[:, :1] + jnp.arange(-half, half + 1)
        first = at[:, 1:] - half + 32
        shift = (first % 32).astype(jnp.uint32)
        padded = jnp.pad(rows, ((0, 0), (1, 1)))
        line = jnp.clip(y, 0, self.size - 1)
        bits = (padded[line, first // 32] >> shift) | ((padded[line, first // 32 + 1] << 1) << (31 - shift))
        return jnp.where((y >= 0) & (y < self.size), bits, jnp.uint32(0))

    def inside(self, cells):
        return ((cells >= 0) & (cells < self.size)).all(-1)

    def air(self, s):
        return self.bits_of(s.at, ~s.landed)

    def allowed(self, s, air):
        bits = self.around(s.rock | air, s.at, 1)
        lines = bits[:, MOVES[:, 0] + 1] >> (MOVES[:, 1] + 1).astype(np.uint32)
        free = (lines & 1 == 0) & self.inside(s.at[:, None] + MOVES) & ~s.landed[:, None]
        return free | (jnp.arange(9) == 0)

    def scaled(self, cells):
        """(x, y) from -1 to 1."""
        return cells[..., ::-1].astype(jnp.float32) * (2 / (self.size - 1)) - 1

    def observe(self, s, air, dtype):
        half, w = self.window // 2, self.window
        way = (s.target - s.at)[:, ::-1].astype(jnp.float32)
        lines = jnp.stack([self.around(s.rock, s.at, half), self.around(air, s.at, half)], 1)
        seen = (lines[..., None] >> jnp.arange(w, dtype=jnp.uint32)) & 1
        seen = jnp.where(np.arange(w * w).reshape(w, w) == w * w // 2, jnp.uint32(0), seen)
        cells = s.at[:, None, None] + np.stack(np.meshgrid(*2 * [np.arange(-half, half + 1)], indexing="ij"), -1)
        return jnp.concatenate(
            [
                self.scaled(s.at).astype(dtype),
                (way / (self.size - 1)).astype(dtype),
                jnp.clip(way / 4, -1, 1).astype(dtype),
                seen.reshape(self.count, -1).astype(dtype),
                (~self.inside(cells)).reshape(self.count, -1).astype(dtype),
                (s.last[:, None] == jnp.arange(9)).astype(dtype),
            ],
            1,
        )

    def observe_whole(self, s, dtype):
        each = jnp.concatenate([self.scaled(s.at), self.scaled(s.target), s.landed[:, None].astype(jnp.float32)], 1)
        bits = np.zeros((8, 32 * self.words), bool)
        for i, (low, high) in enumerate(self.parts):
            bits[i, low:high] = True
        masks = (bits.reshape(8, self.words, 32).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32)
        in_row = jax.lax.population_count(s.rock[:, None] & masks).sum(-1).astype(jnp.float32)
        if self.size % 8 == 0:
            counts = in_row.reshape(8, self.size // 8, 8).sum(1)
        else:
            counts = jnp.stack([in_row[low:high].sum(0) for low, high in self.parts])
        sides = np.array([high - low for low, high in self.parts])
        shares = counts / np.maximum(np.outer(sides, sides), 1)
        return jnp.concatenate([each.ravel(), shares.ravel()]).astype(dtype)

    def step(self, s, choice, starts):
        """State, rewards, and the flags of rows: counts, last of its episode, cut by time."""
        flying = ~s.landed
        goes = flying & (choice != 0)
        wants = s.at + jnp.asarray(MOVES)[choice]
        same = (wants[:, None] == s.at).all(-1) & flying  # [i][j]: j holds the cell that i wants
        lower = np.tri(self.count, k=-1, dtype=bool)
        claimed = (wants[:, None] == wants).all(-1) & goes & lower
        went = goes & self.inside(wants) & ~self.is_set(s.rock, wants) & ~(same | claimed).any(1)
        at = jnp.where(went[:, None], wants, s.at)
        nearer = jnp.abs(s.target - s.at).max(1) - jnp.abs(s.target - at).max(1)
        arrived = went & (at == s.target).all(1)
        own = PROGRESS * nearer + ARRIVAL * arrived - COLLISION * (goes & ~went) - TIME
        own = jnp.where(flying, own, 0)
        counts = flying & ~s.over
        reward = jnp.where(counts, own + TEAM * own.sum() / self.count, 0)
        landed = s.landed | arrived
        done = landed.all()
        cut = ~done & (s.time + 1 >= self.limit)
        stepped = State(s.rock, at, s.target, landed, jnp.where(flying, choice, s.last), s.time + 1, done | cut, s.used)
        fresh = jax.tree.map(lambda pool: pool[s.used % pool.shape[0]], starts)
        fresh = State(fresh[0], fresh[1], fresh[2], jnp.zeros_like(landed), jnp.zeros_like(s.last), 0, False, s.used + 1)
        after = jax.tree.map(lambda a, b: jnp.where(s.over, a, b), fresh, stepped)
        return after, reward, counts, landed | cut | done, cut & ~landed

    # ---- starts, many at once ----

    def spread(self, seen, free):
        """One round of the fill of [starts][map][words]: along rows and columns as far as they are free, then to neighbours."""
        for forward in (True, False):
            way = free
            for k in (1, 2, 4, 8, 16):
                shifted, through = (seen << k, way << k) if forward else (seen >> k, way >> k)
                seen, way = seen | (way & shifted), way & through
        for forward in (True, False):
            way = free
            for k in (1, 2, 4, 8, 16, 32, 64):
                if k < self.size:
                    by = ((0, 0), (k, 0), (0, 0)) if forward else ((0, 0), (0, k), (0, 0))
                    cut = (lambda a: jnp.pad(a[:, :-k], by)) if forward else (lambda a: jnp.pad(a[:, k:], by))
                    seen, way = seen | (way & cut(seen)), way & cut(way)
        wide = jnp.pad(seen, ((0, 0), (1, 1), (1, 1)))
        column = wide[:, :-2] | wide[:, 1:-1] | wide[:, 2:]
        here = column[:, :, 1:-1]
        near = here | (here << 1) | (here >> 1) | (column[:, :, :-2] >> 31) | (column[:, :, 2:] << 31)
        return seen | (near & free)

    def draw(self, key, count, obstacles):
        """`count` starts, and whether each has enough cells that can be reached."""
        keys = jax.random.bits(key, (8, count, 1), jnp.uint32)
        free_cells = self.size**2 - obstacles
        candidates = min(free_cells - 1, 4 * self.count + 64)
        order = jnp.arange(obstacles + 1 + candidates, dtype=jnp.uint32)
        cells = permuted(order, self.size, self.size, keys).astype(jnp.int32)
        cells = jnp.stack([cells // self.size, cells % self.size], -1)
        rock = jax.vmap(lambda c: self.bits_of(c, jnp.ones(obstacles, bool)))(cells[:, :obstacles])
        middle = jax.vmap(lambda c: self.bits_of(c, jnp.ones(1, bool)))(cells[:, obstacles : obstacles + 1])
        free = ~rock & self.inside_bits

        def more(pair):
            before, now = pair
            return (before != now).any()

        _, seen = jax.lax.while_loop(more, lambda pair: (pair[1], self.spread(pair[1], free)), (jnp.zeros_like(middle), middle))
        offered = cells[:, obstacles + 1 :]
        good = jax.vmap(self.is_set)(seen, offered)
        rank = jnp.where(good, jnp.cumsum(good, 1), 0)
        taken = rank[:, None] == jnp.arange(1, 2 * self.count + 1)[:, None]
        places = jnp.where(taken[..., None], offered[:, None], 0).sum(2)
        return (rock, places[:, : self.count], places[:, self.count :]), rank.max(1) >= 2 * self.count

    def starts(self, key, count):
        """Draws anew where too few cells can be reached; after some tries without obstacles."""

        def again(carry):
            tries, key, starts, good = carry
            key, part = jax.random.split(key)
            fresh, fine = jax.lax.cond(
                tries < TRIES, lambda k: self.draw(k, count, self.obstacles), lambda k: self.draw(k, count, 0), part
            )
            keep = lambda old, new: jnp.where(good.reshape(-1, *[1] * (old.ndim - 1)), old, new)
            return tries + 1, key, jax.tree.map(keep, starts, fresh), good | fine

        key, part = jax.random.split(key)
        first = (1, key, *self.draw(part, count, self.obstacles))
        return jax.lax.while_loop(lambda carry: ~carry[3].all(), again, first)[2]

    def pool(self, key, envs, horizon):
        """[env][start] for an iteration."""
        each = 1 + horizon // STEPS_OF_A_START
        return jax.tree.map(lambda a: a.reshape(envs, each, *a.shape[1:]), self.starts(key, envs * each))

    def first(self, key, envs):
        rock, at, target = self.starts(key, envs)
        zeros = jnp.zeros((envs, self.count), jnp.int32)
        none = jnp.zeros(envs, jnp.int32)
        return State(rock, at, target, zeros != 0, zeros, none, none != 0, none)


# ---- the learner ----


def make_network(key, inputs, outputs, hidden, gain):
    sizes = [(inputs, hidden, math.sqrt(2)), (hidden, hidden, math.sqrt(2)), (hidden, outputs, gain)]
    keys = jax.random.split(key, len(sizes))
    return [(jax.nn.initializers.orthogonal(g)(k, (i, o)), jnp.zeros(o)) for k, (i, o, g) in zip(keys, sizes)]


def in_type(layers, dtype):
    return jax.tree.map(lambda a: a.astype(dtype), layers)


def rest_of(layers, h):
    for w, b in layers:
        h = jnp.tanh(h) @ w + b
    return h.astype(jnp.float32)


def actor_of(layers, own):
    (w, b), *rest = in_type(layers, own.dtype)
    return rest_of(rest, own @ w + b)


def critic_of(layers, own, whole):
    """whole: a row for each of own, or a row for each environment, whose UAVs then share its product."""
    (w, b), *rest = in_type(layers, own.dtype)
    part = whole @ w[own.shape[-1] :]
    part = part if part.ndim == own.ndim else part[..., None, :]
    return rest_of(rest, own @ w[: own.shape[-1]] + part + b)[..., 0]


def masked_log_softmax(logits, allowed):
    logits = jnp.where(allowed, logits, -1e30)
    top = jax.lax.stop_gradient(logits.max(-1, keepdims=True))
    return logits - top - jnp.log(jnp.exp(logits - top).sum(-1, keepdims=True))


def drawn(uniform, weights, allowed):
    """The choice where the sums of the weights pass the uniform number's share of all."""
    sums = jnp.where(np.tri(9, dtype=bool), weights[..., None, :], 0).sum(-1)
    choice = (sums <= uniform[..., None] * sums[..., -1:]).sum(-1)
    return jnp.minimum(choice, jnp.where(allowed, jnp.arange(9), 0).max(-1))


class Row(NamedTuple):
    own: jax.Array
    whole: jax.Array
    allowed: jax.Array  # bits
    choice: jax.Array
    logp: jax.Array
    value: jax.Array
    reward: jax.Array
    counts: jax.Array
    last: jax.Array
    cut: jax.Array


class Carry(NamedTuple):
    key: jax.Array
    state: State
    params: tuple
    moments: tuple
    updates: jax.Array


class Learner:
    def __init__(self, args):
        self.env, self.envs, self.horizon = Uavs(args), args.num_envs, args.horizon
        self.dtype = jnp.bfloat16 if args.precision == "bf16" else jnp.float32
        self.hidden = args.hidden
        self.rows = self.horizon * self.envs * self.env.count
        if self.rows % MINIBATCHES:
            raise SystemExit(f"uav_jax.py: {self.rows} rows cannot be cut into {MINIBATCHES} minibatches")

    def begin(self, seed):
        env, hidden = self.env, self.hidden
        key, part, of_actor, of_critic = jax.random.split(jax.random.key(seed, impl="rbg"), 4)
        params = (
            make_network(of_actor, env.obs, 9, hidden, 0.01),
            make_network(of_critic, env.obs + env.whole, 1, hidden, 1.0),
        )
        # Two trees of zeros: buffers that are donated must not be shared.
        moments = tuple(jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return Carry(key, env.first(part, self.envs), params, moments, jnp.int32(0))

    def act(self, params, state, starts, key):
        env, dtype = self.env, self.dtype
        air = jax.vmap(env.air)(state)
        own = jax.vmap(partial(env.observe, dtype=dtype))(state, air)
        whole = jax.vmap(partial(env.observe_whole, dtype=dtype))(state)
        allowed = jax.vmap(env.allowed)(state, air)
        logs = masked_log_softmax(actor_of(params[0], own), allowed)
        choice = drawn(jax.random.uniform(key, logs.shape[:-1]), jnp.exp(logs), allowed)
        logp = jnp.where(jnp.arange(9) == choice[..., None], logs, 0).sum(-1)
        value = critic_of(params[1], own, whole)
        state, *ends = jax.vmap(env.step)(state, choice, starts)
        bits = jnp.where(allowed, np.uint16(1) << np.arange(9, dtype=np.uint16), np.uint16(0)).sum(-1, dtype=jnp.uint16)
        return state, Row(own, whole, bits, choice.astype(jnp.uint8), logp, value, *ends)

    def collect(self, params, state, key):
        """The state behind the horizon, rows [step][env][uav], and the values behind them."""
        key, part = jax.random.split(key)
        starts = self.env.pool(part, self.envs, self.horizon)
        state = state._replace(used=jnp.zeros_like(state.used))
        keys = jax.random.split(key, self.horizon)
        state, rows = jax.lax.scan(lambda s, k: self.act(params, s, starts, k), state, keys)
        own = jax.vmap(partial(self.env.observe, dtype=self.dtype))(state, jax.vmap(self.env.air)(state))
        whole = jax.vmap(partial(self.env.observe_whole, dtype=self.dtype))(state)
        return state, rows, critic_of(params[1], own, whole)

    def advantages(self, rows, behind):
        def back(carry, row):
            advantage, ahead = carry
            ahead = jnp.where(row.last & ~row.cut, 0, ahead)
            delta = row.reward + GAMMA * ahead - row.value
            advantage = jnp.where(row.counts, delta + GAMMA * LAMBDA * jnp.where(row.last, 0, advantage), 0)
            return (advantage, row.value), advantage

        slim = rows._replace(own=None, whole=None, allowed=None, choice=None, logp=None)
        return jax.lax.scan(back, (jnp.zeros_like(behind), behind), slim, reverse=True)[1]

    def loss(self, params, row, advantage, returns, share):
        allowed = (row.allowed[:, None] >> np.arange(9, dtype=np.uint16)) & 1 == 1
        logs = masked_log_softmax(actor_of(params[0], row.own), allowed)
        logp = jnp.where(jnp.arange(9) == row.choice[:, None], logs, 0).sum(-1)
        ratio = jnp.exp(logp - row.logp)
        policy = jnp.maximum(-advantage * ratio, -advantage * jnp.clip(ratio, 1 - CLIP, 1 + CLIP))
        error = 0.5 * (critic_of(params[1], row.own, row.whole) - returns) ** 2
        entropy = -jnp.where(allowed, jnp.exp(logs) * logs, 0).sum(-1)
        each = policy + VALUE_WEIGHT * error - ENTROPY_WEIGHT * entropy
        return jnp.where(row.counts, each, 0).sum() * share

    def adam(self, params, moments, grads, updates):
        norm = jnp.sqrt(sum((g**2).sum() for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1, MAX_NORM / (norm + 1e-6)), grads)
        first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, moments[0], grads)
        second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g**2, moments[1], grads)
        a, b = 1 - BETA1**updates, 1 - BETA2**updates
        params = jax.tree.map(lambda p, m, v: p - LR * (m / a) / (jnp.sqrt(v / b) + EPS), params, first, second)
        return params, (first, second)

    def update(self, params, moments, updates, rows, behind, key):
        advantages = self.advantages(rows, behind)
        returns = (advantages + rows.value).ravel()
        flat = jax.tree.map(lambda a: a.reshape(self.rows, *a.shape[3:]), rows._replace(whole=None))
        whole = rows.whole.reshape(-1, self.env.whole)
        counting = jnp.maximum(flat.counts.sum(), 1).astype(jnp.float32)
        a = advantages.ravel()
        mean = a.sum() / counting
        deviation = jnp.sqrt(jnp.where(flat.counts, (a - mean) ** 2, 0).sum() / counting)
        a = (a - mean) / (deviation + 1e-8)
        size = self.rows // MINIBATCHES
        share = self.rows / (counting * size)
        columns = max(d for d in range(1, math.isqrt(self.rows) + 1) if self.rows % d == 0)

        def epoch(carry, key):
            keys = jax.random.bits(key, (8,), jnp.uint32)

            def minibatch(carry, first):
                params, moments, updates = carry
                place = first + jnp.arange(size, dtype=jnp.uint32)
                index = permuted(place, self.rows // columns, columns, keys)
                row = jax.tree.map(lambda column: column[index], flat)
                row = row._replace(whole=whole[index // self.env.count])
                loss, grads = jax.value_and_grad(self.loss)(params, row, a[index], returns[index], share)
                params, moments = self.adam(params, moments, grads, updates + 1)
                return (params, moments, updates + 1), loss

            return jax.lax.scan(minibatch, carry, jnp.arange(MINIBATCHES, dtype=jnp.uint32) * np.uint32(size))

        carry, losses = jax.lax.scan(epoch, (params, moments, updates), jax.random.split(key, EPOCHS))
        return carry, losses.mean(), counting

    def iterate(self, carry):
        key, acting, shuffling = jax.random.split(carry.key, 3)
        state, rows, behind = self.collect(carry.params, carry.state, acting)
        learnt, loss, counting = self.update(carry.params, carry.moments, carry.updates, rows, behind, shuffling)
        ended = (rows.last | ~rows.counts).all(-1) & rows.counts.any(-1)  # the step ended the episode
        cut_off = jnp.where(ended[..., None], rows.cut, False).sum()
        episodes = ended.sum()
        arrived = 1 - cut_off / jnp.maximum(episodes * self.env.count, 1)
        return Carry(key, state, *learnt), (counting, loss, episodes, arrived, rows.reward.sum() / counting)

    def fly(self, carry, observed):
        """The environment alone: random allowed actions. `observed`: observations are written at every step."""
        key, part, acting = jax.random.split(carry.key, 3)
        env = self.env
        starts = env.pool(part, self.envs, self.horizon)
        state = carry.state._replace(used=jnp.zeros_like(carry.state.used))

        def one(carry, key):
            state, counting, seen = carry
            air = jax.vmap(env.air)(state)
            if observed:
                own = jax.vmap(partial(env.observe, dtype=self.dtype))(state, air)
                seen = own, jax.vmap(partial(env.observe_whole, dtype=self.dtype))(state)
            allowed = jax.vmap(env.allowed)(state, air)
            choice = drawn(jax.random.uniform(key, allowed.shape[:-1]), allowed.astype(jnp.float32), allowed)
            state, _, counts, _, _ = jax.vmap(env.step)(state, choice, starts)
            return (state, counting + counts.sum(), seen), None

        seen = ()
        if observed:
            seen = tuple(jnp.zeros((self.envs, *s), self.dtype) for s in ((env.count, env.obs), (env.whole,)))
        (state, counting, seen), _ = jax.lax.scan(one, (state, jnp.int32(0), seen), jax.random.split(acting, self.horizon))
        return carry._replace(key=key, state=state), (counting, seen)


# ---- what the program does ----


def timed(call, carry, iterations, keep=lambda result: result):
    """Seconds, and what is kept of the result, of each call after the one that compiles; the carry behind them."""
    seconds, results = [], []
    for _ in range(1 + iterations):
        begin = time.perf_counter()
        carry, result = jax.block_until_ready(call(carry))
        seconds.append(time.perf_counter() - begin)
        results.append(keep(result))
        del result  # it may be as large as all rows
    compiled, *seconds = seconds
    _, *results = results
    return carry, seconds, results, compiled


def report(args, learner, what, seconds, counted, **more):
    rates = [float(c) / s for c, s in zip(counted, seconds)]
    print(
        json.dumps(
            dict(
                peer="jax",
                jax=jax.__version__,
                device=jax.devices()[0].device_kind,
                what=what,
                precision=args.precision,
                num_envs=args.num_envs,
                num_uavs=args.num_uavs,
                map=args.map,
                horizon=args.horizon,
                agent_steps_per_s=round(statistics.median(rates), 1),
                rows_per_s=round(learner.rows / statistics.median(seconds), 1),
                seconds=round(statistics.median(seconds), 6),
                iterations=len(seconds),
                **more,
            )
        ),
        flush=True,
    )


def bench(args):
    learner = Learner(args)
    carry = jax.jit(learner.begin, static_argnums=0)(args.seed)
    if args.env_only:
        for observed in (False, True):
            call = jax.jit(partial(learner.fly, observed=observed), donate_argnums=0)
            carry, seconds, results, compiled = timed(call, carry, args.iterations, lambda result: result[0])
            what = "environment, observed" if observed else "environment"
            report(args, learner, what, seconds, results, compile_s=round(compiled, 2))
        return
    call = jax.jit(learner.iterate, donate_argnums=0)
    carry, seconds, results, compiled = timed(call, carry, args.iterations)
    counted, losses, episodes, arrived, rewards = zip(*jax.device_get(results))
    # The rollout by itself, in a program of its own.
    acting = jax.jit(lambda c: (c, learner.collect(c.params, c.state, c.key)[1:]))
    alone = statistics.median(timed(acting, carry, min(args.iterations, 3), lambda result: None)[1])
    ended = [(e, a) for e, a in zip(episodes, arrived) if e > 0]
    report(
        args,
        learner,
        "ppo",
        seconds,
        counted,
        compile_s=round(compiled, 2),
        share_collect=round(alone / statistics.median(seconds), 4),
        loss=round(float(losses[-1]), 5),
        reward=round(float(rewards[-1]), 5),
        arrived=round(float(ended[-1][1]), 4) if ended else None,
    )


def check(args):
    """Steps of copies from the same starts, with allowed and with any actions, against the version in NumPy."""
    import uav_torch

    steps, copies = args.check_steps, 8
    env, random = Uavs(args), np.random.default_rng(args.seed)
    key = jax.random.key(args.seed, impl="rbg")
    starts = jax.jit(lambda k: env.pool(k, copies, 4 * STEPS_OF_A_START))(key)
    state = jax.jit(env.first, static_argnums=1)(key, copies)
    others = [uav_torch.Uavs(args, i) for i in range(copies)]
    see = jax.jit(
        jax.vmap(lambda s: (env.observe(s, env.air(s), jnp.float32), env.observe_whole(s, jnp.float32), env.allowed(s, env.air(s))))
    )
    step = jax.jit(jax.vmap(env.step))
    ended = refused = 0

    def begin(other, i):
        bits = (np.asarray(state.rock[i])[..., None] >> np.arange(32, dtype=np.uint32)) & 1
        other.free = bits.reshape(env.size, -1)[:, : env.size] == 0
        other.at, other.target = np.array(state.at[i]), np.array(state.target[i])
        other.landed, other.last, other.time = np.zeros(env.count, bool), np.zeros(env.count, int), 0
        places = {tuple(c) for c in np.concatenate([other.at, other.target])}
        seen = other.reachable(other.free, other.at[0])
        assert (~other.free).sum() == env.obstacles, "obstacles"
        assert len(places) == 2 * env.count and all(seen[c] for c in places), "starts and targets"

    for i, other in enumerate(others):
        begin(other, i)
    for t in range(steps):
        own, whole, allowed = jax.device_get(see(state))
        choice = np.zeros((copies, env.count), np.int32)
        for i, other in enumerate(others):
            own2, seen2, masks = other.observe()
            flying = ~other.landed
            np.testing.assert_allclose(own[i][flying], own2[flying], atol=1e-6)
            np.testing.assert_allclose(whole[i], seen2[0, own2.shape[1] :], atol=1e-6)
            np.testing.assert_array_equal(allowed[i][flying], masks[flying])
            weights = masks[:] if (t + i) % 2 else np.ones_like(masks)
            for a in range(env.count):
                # Mostly to the target, so that episodes end by arrival too.
                to = np.sign(other.target[a] - other.at[a])
                best = int(np.flatnonzero((MOVES == to).all(1))[0])
                choice[i, a] = best if i < copies // 2 and random.random() < 0.7 else random.choice(np.flatnonzero(weights[a]))
        before = state
        state, reward, counts, last, cut = jax.device_get(step(state, jnp.asarray(choice), starts))
        for i, other in enumerate(others):
            if before.over[i]:
                assert not counts[i].any() and not reward[i].any()
                begin(other, i)
                continue
            reward2, counts2, over2, cut2 = other.step(choice[i])
            refused += int((counts2 & (choice[i] != 0) & (state.at[i] == before.at[i]).all(1)).sum())
            np.testing.assert_allclose(reward[i], reward2, atol=1e-6)
            np.testing.assert_array_equal(counts[i], counts2)
            np.testing.assert_array_equal(state.at[i], other.at)
            np.testing.assert_array_equal(state.landed[i], other.landed)
            assert state.over[i] == (over2 or cut2)
            np.testing.assert_array_equal(last[i], other.landed | over2 | cut2)
            np.testing.assert_array_equal(cut[i], ~other.landed & cut2)
            ended += over2 or cut2
    print(json.dumps(dict(check="equal", copies=copies, steps=steps, episodes=int(ended), refused=refused)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in dict(num_envs=1024, num_uavs=10, map=32, num_obstacles=None, window=7, max_steps=200, horizon=128, hidden=64,
                            iterations=5, seed=0, check_steps=600).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--precision", choices=("f32", "tf32", "bf16"), default="f32")
    parser.add_argument("--env-only", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.num_obstacles is None:
        args.num_obstacles = args.map**2 * 5 // 128
    if args.precision == "f32":
        jax.config.update("jax_default_matmul_precision", "highest")
    if args.check:
        check(args)
    else:
        bench(args)


if __name__ == "__main__":
    main()
