# SPDX-License-Identifier: Apache-2.0
"""The peer of `gpurt bench mlp`: the same models trained by PyTorch, one JSON line a row. On a GPU with automatic
mixed precision, torch.compile and a CUDA graph; else eager on the CPU. Usage: torch_mlp.py [MODEL,...] [BATCH,...]"""
import json
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS = {"small": (3, 16), "medium": (6, 64), "large": (12, 128)}
gpu = torch.cuda.is_available()
device = "cuda" if gpu else "cpu"
names = sys.argv[1].split(",") if len(sys.argv) > 1 else list(MODELS)
batches = [int(b) for b in sys.argv[2].split(",")] if len(sys.argv) > 2 else ([4096, 65536] if gpu else [1024])


def model(depth, hidden):
    layers = [nn.Linear(32, hidden), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, 1)).to(device)


def seconds(run, steps):
    """Of one step: the median of several rounds."""
    times = []
    for _ in range(9):
        if gpu:
            torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(steps):
            run()
        if gpu:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) / steps)
    return statistics.median(times)


def measure(depth, hidden, batch):
    torch.manual_seed(0)
    net = model(depth, hidden)
    opt = torch.optim.AdamW(net.parameters(), 3e-4, **({"fused": True, "capturable": True} if gpu else {}))
    x, y = torch.randn(batch, 32, device=device), torch.randn(batch, 1, device=device)
    forward = torch.compile(net) if gpu else net

    def step():
        with torch.autocast(device, torch.float16, enabled=gpu):
            loss = F.mse_loss(forward(x).float(), y)
        (loss * 1024.0 if gpu else loss).backward()
        opt.step()
        opt.zero_grad(set_to_none=not gpu)

    if not gpu:
        for _ in range(10):
            step()
        return seconds(step, 20)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return seconds(graph.replay, 100)


for name in names:
    for batch in batches:
        torch._dynamo.reset()
        s = measure(*MODELS[name], batch)
        print(json.dumps({"peer": "torch " + torch.__version__, "case": "mlp_train", "model": name, "batch": batch,
                          "mode": "amp f16, compile, CUDA graph" if gpu else "f32, eager, %d threads" % torch.get_num_threads(),
                          "ms": round(s * 1e3, 5), "msamples_per_s": round(batch / s * 1e-6, 3)}), flush=True)
