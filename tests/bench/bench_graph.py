# What a graph of 100,000 nodes costs beside torch.fx: opening, copying, printing, checking. GPL-3.0-or-later.
# `bench_graph.py PROGRAM`; PROGRAM is bench_graph. Both hold the same nodes; torch.fx's are built here, its archive is torch.save's.
import copy
import io
import subprocess
import sys
import time
import warnings

import torch
import torch.fx

warnings.simplefilter("ignore")
NODES = 100_000


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = torch.nn.ReLU()


class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(NODES // 100))


def deep_model():
    graph = torch.fx.Graph()
    last = skip = graph.placeholder("x")
    for i in range(NODES - 2):
        if i % 2 == 0:
            last = skip = graph.call_module(f"blocks.{i // 100}.act", (last,))
        else:
            last = graph.call_function(torch.ops.aten.add.Tensor, (last, skip))
    graph.output(last)
    return torch.fx.GraphModule(Deep(), graph)


def milliseconds(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def reopened(saved):
    saved.seek(0)
    return torch.load(saved, weights_only=False)


module = deep_model()
saved = io.BytesIO()
sys.setrecursionlimit(1_000_000)
torch.save(module, saved)
rows = {"open": lambda: reopened(saved), "copy": lambda: copy.deepcopy(module.graph), "print": lambda: str(module.graph),
        "code": lambda: module.graph.python_code("self").src, "lint": lambda: module.graph.lint()}
ours = dict(line.split() for line in subprocess.run([sys.argv[1], str(NODES)], check=True, capture_output=True, text=True).stdout.splitlines())
print(f"{NODES} nodes{'':10} Fuseboard ms   torch.fx ms   ratio")
for name, work in rows.items():
    theirs = sorted(milliseconds(work) for _ in range(3))[1]
    print(f"{name:22} {float(ours[name]):12.1f} {theirs:13.1f} {float(ours[name]) / theirs:7.3f}", flush=True)
print(f"{'write':22} {float(ours['write']):12.1f}")
