#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""theirs.onnx: the network that docs/exchange.md exports from PyTorch, for machines without it.

    python3 make_theirs.py          (pip install torch onnx onnxscript; writes beside itself)

The block of the page is run as it stands, from seed 0. What the exporter notes of each node, among it
paths of the machine, is left out."""
import os
import re

import onnx
import torch

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "../../docs/exchange.md")) as page:
    block = re.search(r"<!-- with torch, .*?```python\n(.*?)```", page.read(), re.S).group(1)
os.chdir(here)
torch.manual_seed(0)
exec(block)
model = onnx.load("theirs.onnx")
for part in (model, model.graph, *model.graph.node, *model.graph.value_info, *model.graph.initializer):
    del part.metadata_props[:]
for part in (*model.graph.input, *model.graph.output):
    del part.metadata_props[:]
onnx.save(model, "theirs.onnx")
