# torch's two texts of models, beside their archives: `texts.py FOLDER NAME=FILE.py:MAKE[@LEAF] ...` writes NAME.code.txt and
# NAME.graph.txt with torch.fx alone and NAME.fxt with Fuseboard's tracer, all in one process. GPL-3.0-or-later.
import importlib.util
import os
import sys
import warnings

import torch
import torch.fx

warnings.simplefilter("ignore")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../resources/python"))
import fuseboard_trace  # noqa: E402


class Tracer(torch.fx.Tracer):
    leaf = None

    def is_leaf_module(self, m, qualified):
        return qualified == self.leaf or super().is_leaf_module(m, qualified)


def load(path):
    name = os.path.basename(path)[:-3]
    if name not in sys.modules:
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


folder, *items = sys.argv[1:]
os.chdir(folder)
for item in items:
    name, source = item.split("=", 1)
    source, _, leaf = source.partition("@")
    path, make = source.rsplit(":", 1)
    try:
        model = getattr(load(path), make)().eval()
        tracer = Tracer()
        tracer.leaf = leaf
        traced = torch.fx.GraphModule(model, tracer.trace(model))
        for kind, text in (("code", traced.code), ("graph", str(traced.graph))):
            with open(f"{name}.{kind}.txt", "w", encoding="utf-8", newline="") as file:
                file.write(text)
        sys.modules.pop(os.path.basename(path)[:-3], None)  # the tracer loads the file itself, under its own name
        fuseboard_trace.main([source, "-o", name + ".fxt"] + (["--leaf", leaf] if leaf else []))
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
