"""Figures of every float value of the demo model on its calibration data, as torch sees them: {node: [count, min, max, mean]}."""
import json
import os
import sys

import numpy as np
import torch
import torch.fx

demo = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "resources", "demo")
sys.path.insert(0, demo)
import digits_net  # noqa: E402


class Tracer(torch.fx.Tracer):
    def is_leaf_module(self, m, name):
        return type(m).__name__ == "GainLimit" or super().is_leaf_module(m, name)


class Watch(torch.fx.Interpreter):
    seen = {}

    def run_node(self, n):
        value = super().run_node(n)
        if isinstance(value, torch.Tensor) and value.is_floating_point() and n.op != "output":
            v = value.double()
            count, low, high, total = self.seen.get(n.name, (0, float("inf"), -float("inf"), 0.0))
            self.seen[n.name] = (count + v.numel(), min(low, v.min().item()), max(high, v.max().item()), total + v.sum().item())
        return value


torch.set_num_threads(int(sys.argv[2]))
model = digits_net.make().eval()
watch = Watch(torch.fx.GraphModule(model, Tracer().trace(model)))
data = torch.from_numpy(np.load(os.path.join(demo, "calib.npy")))
with torch.no_grad():
    for part in data.split(int(sys.argv[1])):
        watch.run(part)
print(json.dumps({k: [c, low, high, total / c] for k, (c, low, high, total) in watch.seen.items()}))
