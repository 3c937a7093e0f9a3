# torch's two texts of a model: `texts.py FILE.py:NAME OUT [LEAF...]` writes OUT.code.txt and OUT.graph.txt. GPL-3.0-or-later.
import importlib.util
import os
import sys

import torch
import torch.fx

source, out, *leaves = sys.argv[1:]
path, name = source.rsplit(":", 1)
sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
model = getattr(module, name)
if not isinstance(model, torch.nn.Module):
    model = model()


class Tracer(torch.fx.Tracer):
    def is_leaf_module(self, m, qualified):
        return qualified in leaves or super().is_leaf_module(m, qualified)


traced = torch.fx.GraphModule(model.eval(), Tracer().trace(model))
for kind, text in (("code", traced.code), ("graph", str(traced.graph))):
    with open(f"{out}.{kind}.txt", "w", encoding="utf-8", newline="") as file:
        file.write(text)
