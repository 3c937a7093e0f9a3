# torch.ao's prepare_fx / convert_fx with MinMax observers, for tst_quantize and tst_export. GPL-3.0-or-later.
#
#   quant_oracle.py observe BACKEND NAME ...   for each model of quant_models.py writes NAME.fxt, NAME.npy (the data), and runs torch.ao on
#       them; writes NAME.out.npy (output of the converted model) and prints {NAME: {"observed": {node: [scale, zero_point]}, "groups":
#       [[node, ..], ..], "weights": {path: [scale, ..]}}}
#   quant_oracle.py import FOLDER              imports FOLDER/model.py in this clean process, runs its check and prints the state's keys
import contextlib
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


def observe(backend, name):
    from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
    sys.path.insert(0, os.path.join(HERE, "../../resources/python"))
    import fuseboard_trace
    import quant_models

    model, data, leaves = quant_models.make(name)
    quant_models.made = model
    np.save(name + ".npy", data.numpy())
    arguments = ["quant_models:made", "-o", name + ".fxt", "--input", "x".join(map(str, (1, *data.shape[1:])))]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        if fuseboard_trace.main(arguments + [a for leaf in leaves for a in ("--leaf", leaf)]):
            sys.exit(f"{name}: {said.getvalue()}")
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
    weights = {}
    for path, m in converted.named_modules():
        if hasattr(m, "weight") and callable(m.weight):
            w = m.weight()
            weights[path] = w.q_per_channel_scales().tolist() if w.qscheme() == torch.per_channel_affine else [w.q_scale()]
    with torch.no_grad():
        out = converted(data)
    np.save(name + ".out.npy", out.numpy())
    return {"observed": observed, "groups": sorted(sorted(g) for g in groups.values()), "weights": weights,
            "int8": sum("quantized" in str(n.target) or (n.op == "call_module" and "quantized" in str(type(converted.get_submodule(n.target))))
                        for n in converted.graph.nodes), "text": str(converted.graph)}


def check(folder):
    sys.path.insert(0, folder)
    import model
    good = model.check()
    assert "torch.ao" not in open(os.path.join(folder, "model.py"), encoding="utf-8").read()
    state = model.weights()
    own = set(model.load().state_dict())
    stored = {k for k in state if not k.startswith("__sample__")}
    print(json.dumps({"good": good, "keys": sorted(stored), "same": own == stored, "differ": sorted(own ^ stored)[:8]}))


if __name__ == "__main__":
    torch.set_num_threads(2)
    if sys.argv[1] == "import":
        check(sys.argv[2])
    else:
        print(json.dumps({name: observe(sys.argv[2], name) for name in sys.argv[3:]}))
