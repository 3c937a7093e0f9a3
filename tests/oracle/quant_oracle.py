# torch.ao's prepare_fx / convert_fx with MinMax observers, for tst_quantize. GPL-3.0-or-later.
#
#   quant_oracle.py trace NAME ...             for each model of quant_models.py writes NAME.fxt and NAME.npy (the data)
#   quant_oracle.py observe BACKEND NAME ...   the same, and runs torch.ao on them: writes NAME.out.npy (output of the converted model) and
#       prints {NAME: {"observed": {node: [scale, zero_point]}, "groups": [[node, ..], ..], "weights": {path: [scale, ..]}}}
#   quant_oracle.py import FOLDER ...          loads FOLDER/model.py in this clean process, runs its check and compares the state's keys:
#       prints {FOLDER: what is wrong, or ""}
import contextlib
import importlib.util
import io
import json
import os
import sys
import warnings

import numpy as np
import torch

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))


def qconfig_mapping(backend):
    from torch.ao.quantization import QConfig, QConfigMapping
    from torch.ao.quantization.observer import MinMaxObserver, default_per_channel_weight_observer, default_weight_observer
    from torch.ao.quantization.qconfig_mapping import _FIXED_QPARAMS_OP_TO_OBSERVER

    narrow = backend in ("x86", "fbgemm")
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    activation = MinMaxObserver.with_args(dtype=torch.quint8, reduce_range=narrow)
    mapping = QConfigMapping().set_global(QConfig(activation=activation, weight=weight))
    for op, observer in _FIXED_QPARAMS_OP_TO_OBSERVER.items():      # ranges that are known need no data
        mapping.set_object_type(op, QConfig(activation=observer, weight=weight))
    return mapping


def trace(name):
    sys.path.insert(0, os.path.join(HERE, "../../resources/python"))
    import fuseboard_trace
    import quant_models

    model, data, leaves = quant_models.make(name)
    quant_models.made = model
    np.save(name + ".npy", data.numpy())
    shape = "x".join(map(str, (1, *data.shape[1:]))) + (":int64" if data.dtype == torch.int64 else "")
    arguments = ["quant_models:made", "-o", name + ".fxt", "--input", shape]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        if fuseboard_trace.main(arguments + [a for leaf in leaves for a in ("--leaf", leaf)]):
            sys.exit(f"{name}: {said.getvalue()}")
    return model, data, leaves


def contiguous_clamps(gm):
    """QNNPACK's clamp kernels read channels_last as if it were contiguous, and every quantized convolution gives channels_last."""
    clamps = (torch.clamp, torch.nn.functional.relu6, torch.nn.functional.hardtanh, torch._C._nn.hardtanh_, "clamp")
    for n in list(gm.graph.nodes):
        module = gm.get_submodule(n.target) if n.op == "call_module" else None
        if isinstance(module, (torch.nn.ReLU6, torch.nn.Hardtanh)) or n.target in clamps:
            with gm.graph.inserting_before(n):
                n.replace_input_with(n.args[0], gm.graph.call_method("contiguous", (n.args[0],)))
    gm.recompile()
    return gm


def observe(backend, name):
    from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    model, data, leaves = trace(name)
    torch.backends.quantized.engine = backend
    custom = PrepareCustomConfig().set_non_traceable_module_names(list(leaves))
    prepared = prepare_fx(model, qconfig_mapping(backend), (data[:1],), prepare_custom_config=custom)
    with torch.no_grad():
        for batch in data.split(4):
            prepared(batch)
    modules = dict(prepared.named_modules(remove_duplicate=False))
    observed, groups = {}, {}
    for n in prepared.graph.nodes:
        if n.op == "call_module" and "activation_post_process" in n.target:
            observer = modules[n.target]
            scale, zero_point = observer.calculate_qparams()
            observed[n.args[0].name] = [float(scale), int(zero_point)]
            groups.setdefault(id(observer), []).append(n.args[0].name)
    converted = convert_fx(prepared)
    if backend == "qnnpack":
        converted = contiguous_clamps(converted)
    weights = {}
    for path, m in converted.named_modules():
        if hasattr(m, "weight") and callable(m.weight):
            w = m.weight()
            weights[path] = w.q_per_channel_scales().tolist() if w.qscheme() == torch.per_channel_affine else [w.q_scale()]
    with torch.no_grad():
        out = converted(data)
    np.save(name + ".out.npy", out.numpy())
    return {"observed": observed, "groups": sorted(sorted(g) for g in groups.values()), "weights": weights}


def check(folder):
    spec = importlib.util.spec_from_file_location("model_" + os.path.basename(folder), os.path.join(folder, "model.py"))
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        good = model.check()
    if not good:
        return said.getvalue()
    if "torch.ao" in open(spec.origin, encoding="utf-8").read():
        return "leans on torch.ao"
    own, stored = set(model.load().state_dict()), {k for k in model.weights() if not k.startswith("__")}
    return "" if own == stored else "other keys: " + ", ".join(sorted(own ^ stored)[:8])


if __name__ == "__main__":
    torch.set_num_threads(2)
    if sys.argv[1] == "trace":
        for name in sys.argv[2:]:
            trace(name)
    elif sys.argv[1] == "import":
        print(json.dumps({folder: check(folder) for folder in sys.argv[2:]}))
    else:
        print(json.dumps({name: observe(sys.argv[2], name) for name in sys.argv[3:]}))
