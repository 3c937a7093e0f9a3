# Traces the models of fuse_models.py and fuses them with torch.ao, for tst_fuse. GPL-3.0-or-later.
#
#   fuse_oracle.py NAME ...     writes into the current folder, for each: NAME.fxt (the trace), NAME.in.safetensors and
#   NAME.out.safetensors (inputs and eager outputs, "0", "1" ...), and where fuse_fx is right NAME.weights.safetensors; prints
#   {NAME: {"graph": str(fused.graph), "repr": {path: repr(module)}, "state": [state_dict names]}}
import contextlib
import copy
import io
import json
import os
import sys

import torch
from safetensors.torch import save_file
from torch.ao.quantization.fx.fuse import fuse        # what fuse_fx does after tracing; fuse_fx would trace into leaves

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../resources/python"))
import fuseboard_trace  # noqa: E402
import fuse_models  # noqa: E402

LEAVES = {"demo": ["gain"]}


def numbered(tensors):
    tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    return {str(i): t.detach().contiguous().clone() for i, t in enumerate(tensors)}


def main(names):
    result = {}
    for name in names or fuse_models.ALL:
        model, inputs = fuse_models.ALL[name]()
        fuse_models.made = model
        sample = [a for t in inputs for a in ("--input", "x".join(map(str, t.shape)))]
        leaves = LEAVES.get(name, ())
        arguments = ["fuse_models:made", "-o", name + ".fxt", *sample, *[a for leaf in leaves for a in ("--leaf", leaf)]]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            failed = fuseboard_trace.main(arguments)
        if failed:
            sys.exit(f"{name}: {said.getvalue()}")
        save_file(numbered(inputs), name + ".in.safetensors")
        with torch.no_grad():
            save_file(numbered(model(*[t.clone() for t in inputs])), name + ".out.safetensors")
        result[name] = {}
        if name in fuse_models.TWINS:
            fused = fuse(trace(copy.deepcopy(model), leaves), is_qat=False)
            state = fused.state_dict()
            save_file({k: v.detach().contiguous().clone() for k, v in state.items()}, name + ".weights.safetensors")
            result[name] = {"graph": str(fused.graph), "state": list(state),
                            "repr": {n.target: repr(fused.get_submodule(n.target)) for n in fused.graph.nodes if n.op == "call_module"}}
    print(json.dumps(result))


def trace(model, leaves):
    class Tracer(torch.fx.Tracer):
        def is_leaf_module(self, m, path):
            return path in leaves or super().is_leaf_module(m, path)
    return torch.fx.GraphModule(model, Tracer().trace(model))


main(sys.argv[1:])
