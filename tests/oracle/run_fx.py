"""What real PyTorch computes, node by node: for each MODEL of run_models.py, the demo or torchvision, writes into OUT
MODEL.fxt, MODEL.in.npz (the inputs in order) and MODEL.out.npz (every tensor a node gives, by node name). GPL-3.0-or-later."""
import importlib
import os
import sys

import numpy
import torch
import torch.fx

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../../resources/python", "../../resources/demo", "../tracer"):
    sys.path.insert(0, os.path.join(here, folder))
import fuseboard_trace  # noqa: E402
import run_models  # noqa: E402


def source(name):
    if name in run_models.MODELS:
        return f"{os.path.join(here, 'run_models.py')}:{name}", *run_models.MODELS[name]()
    if name == "demo":
        import digits_net
        model = digits_net.make()
        model.leaves = ["gain"]
        return f"{digits_net.__file__}:make", model, [torch.randn(2, 1, 8, 8)]
    zoo = importlib.import_module("zoo")
    size = 299 if name == "inception_v3" else int(os.environ.get("FUSEBOARD_SIZE", 224))
    shape = (1, 3, 8, 64, 64) if name in ("r3d_18", "mc3_18", "r2plus1d_18") else (1, 3, size, size)
    return f"{zoo.__file__}:{name}", zoo.seeded(name), [torch.randn(shape)]


class Recorder(torch.fx.Interpreter):
    def run_node(self, n):
        value = super().run_node(n)
        if isinstance(value, torch.Tensor) and n.op != "output":
            seen[n.name] = (value.dequantize() if value.is_quantized else value).detach().clone().contiguous()
        return value


def leaves(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from leaves(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from leaves(v)


def record(name, out):
    torch.manual_seed(3)
    where, model, inputs = source(name)
    kept = getattr(model, "leaves", [])
    if fuseboard_trace.main([where, "-o", out + ".fxt", *(word for leaf in kept for word in ("--leaf", leaf))]):
        raise RuntimeError("it does not trace")
    tracer = torch.fx.Tracer()
    plain = tracer.is_leaf_module
    tracer.is_leaf_module = lambda m, path: path in kept or plain(m, path)
    graph = torch.fx.GraphModule(model.eval(), tracer.trace(model))
    numpy.savez(out + ".in.npz", **{str(i): t.numpy() for i, t in enumerate(inputs)})
    seen.clear()
    torch.manual_seed(5)
    with torch.no_grad():
        result = Recorder(graph).run(*inputs)
    for i, t in enumerate(leaves(result)):
        seen[f"output.{i}"] = (t.dequantize() if t.is_quantized else t).detach().contiguous()
    numpy.savez(out + ".out.npz", **{k: v.numpy() for k, v in seen.items()})


seen = {}
failed = False
for name in sys.argv[2:]:
    try:
        record(name, os.path.join(sys.argv[1], name))
        print(name, len(seen))
    except Exception as error:      # the others are still wanted
        failed = True
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
sys.exit(failed)
