"""Everything that a graph can call, judged by real PyTorch: writes OUT.fxt, one archive whose modules are small graphs. GPL-3.0-or-later.

Each graph calls one thing on tensors that it holds, and gives (what came out, what torch gave). Calls come from torch's own testing database
(each operator's samples, run under a TorchFunctionMode that records the calls), from torch.nn as it is, from coverage_cases.py for what the
database lacks, and, by a TorchDispatchMode, from the aten operators that all of these reach. Keyword and mixed forms of a call are added where
torch takes them. `OUT.json` holds what was seen, and what no sample reaches.

    coverage_oracle.py OUT [--all]        --all: every sample; else the modules and one sample of each call
"""
import collections
import contextlib
import inspect
import itertools
import json
import operator
import os
import sys
import types
import unittest
import warnings

import torch
import torch.fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../resources/python"))
import fuseboard_trace as board  # noqa: E402

if "expecttest" not in sys.modules:     # torch.testing imports it, and the databases need nothing of it
    stub = types.ModuleType("expecttest")
    stub.TestCase, stub.assert_expected_inline = unittest.TestCase, None
    sys.modules["expecttest"] = stub
import coverage_cases  # noqa: E402

ALL = "--all" in sys.argv
SEED = 5
LARGEST = 1 << 16       # elements of a tensor in a case


class Holder(torch.nn.Module):
    """The root of a case: its tensors are plain attributes."""


class CaseDocument(board.Document):
    """Of a graph within the archive; its tensors are named under the case's own path."""

    def __init__(self, root, graph, title, path):
        self.held = board.Archive()
        super().__init__(root, graph, types.SimpleNamespace(origins={}), types.SimpleNamespace(shown=title), {}, [], [], self.held, path + "/")

    def _code(self):
        return "", {}


class Unholdable(Exception):
    pass


def plain(t):
    """A tensor as the archive holds it."""
    if type(t) not in (torch.Tensor, torch.nn.Parameter) or t.layout != torch.strided or t.is_quantized or t.is_meta or t.numel() > LARGEST \
            or t.dtype not in board.SAFETENSORS_TYPES.values():
        raise Unholdable(f"{type(t).__name__} of {t.layout}, {t.dtype}")
    return t.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def mapped(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(v, change) for v in value))
    if isinstance(value, (list, tuple)):
        items = [mapped(v, change) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {k: mapped(v, change) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(v, change) for v in (value.start, value.stop, value.step)))
    return value


def tensors_of(value):
    found = []
    mapped(value, lambda t: found.append(t) or t)
    return found


HOLDABLE = (type(None), bool, int, float, complex, str, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size, range, type(...))


def check_holdable(value):
    if isinstance(value, (list, tuple)):
        for v in value:
            check_holdable(v)
    elif isinstance(value, dict):
        for v in value.values():
            check_holdable(v)
    elif isinstance(value, slice):
        check_holdable((value.start, value.stop, value.step))
    elif not isinstance(value, HOLDABLE + (torch.Tensor, torch.fx.Node)):
        raise Unholdable(type(value).__name__)


class Archive:
    def __init__(self):
        self.modules, self.tensors, self.kept = [], {}, []
        self.skipped = collections.Counter()
        self.seen = collections.Counter()

    def add(self, title, op, target, args, kwargs, module=None):
        """One case; None where torch itself refuses or it cannot be held."""
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                return self._add(title, op, target, args, kwargs, module)
        except Unholdable as e:
            self.skipped[f"{title}: not held by an archive: {e}"] += 1
        except Exception as e:
            self.skipped[f"{title}: torch refuses: {type(e).__name__}: {str(e).splitlines()[0][:100] if str(e) else ''}"] += 1
        return None

    def _add(self, title, op, target, args, kwargs, module):
        check_holdable((args, kwargs))
        root, held = Holder(), []
        same = {}

        def hold(t):
            if id(t) not in same:
                same[id(t)] = plain(t)
                held.append(same[id(t)])
            return same[id(t)]
        args, kwargs = mapped((args, kwargs), hold)
        before = [t.clone() for t in held]
        graph, nodes = torch.fx.Graph(), {}
        for i, t in enumerate(before):
            setattr(root, f"t{i}", t)
            nodes[id(held[i])] = graph.get_attr(f"t{i}")
        if module is not None:
            root.m = module
            _keep = {n: b.clone() for n, b in module.named_buffers()}
        node_args, node_kwargs = mapped((args, kwargs), lambda t: nodes[id(t)])
        call = getattr(graph, op)("m" if module is not None else target, tuple(node_args), node_kwargs)
        torch.manual_seed(SEED)
        if op == "call_method":
            result = getattr(args[0], target)(*args[1:], **kwargs)
        else:
            result = (target if module is None else module)(*args, **kwargs)
        if module is not None:
            for n, b in module.named_buffers():
                b.copy_(_keep[n])
        if isinstance(result, torch.Tensor) and result.layout != torch.strided:
            result, call = result.to_dense(), graph.call_method("to_dense", (call,))
        elif isinstance(result, torch.Tensor) and result.is_quantized:
            result, call = result.int_repr(), graph.call_method("int_repr", (call,))
        if "empty" in title.split(" ")[0] and isinstance(result, torch.Tensor):     # whatever was in that memory
            result, call = torch.zeros_like(result), graph.call_function(torch.zeros_like, (call,))
        elif "_ctc_loss" in title.split(" ")[0]:
            result, call = result[0], graph.call_function(operator.getitem, (call, 0))
        changed = [(i, t) for i, t in enumerate(held) if t.shape != before[i].shape or not torch.equal(t.nan_to_num() if t.is_floating_point() else t,
                                                                                                       before[i].nan_to_num() if t.is_floating_point() else before[i])]
        given = (call, *(nodes[id(held[i])] for i, _ in changed))
        expected = mapped((result, *(t for _, t in changed)), plain)
        check_holdable(expected)
        self.kept.append((expected, root))
        graph.output((given, expected))
        path = f"c{len(self.modules)}"
        document = CaseDocument(root, graph, title, path)
        inner = document.build()
        if document.warnings:
            raise Unholdable(document.warnings[0]["message"])
        self.tensors.update(document.held.tensors)
        self.modules.append({"path": path, "class": "Case", "kind": "graph", "training": False, "graph": inner})
        self.seen[title.split(" ")[0]] += 1
        return result

    def write(self, out):
        root = {"path": "", "class": "Cases", "kind": "container", "training": False}
        document = {"format": "fuseboard-fxt", "version": 1, "torch": torch.__version__, "python": "", "source": "", "root_class": "Cases",
                    "nodes": [{"op": "output", "name": "output", "target": "output", "args": [None]}], "modules": [root] + self.modules, "tensors": {}}
        board.write_archive(out + ".fxt", document, self.tensors, [])
        with open(out + ".json", "w") as f:
            json.dump({"cases": len(self.modules), "skipped": self.skipped, "seen": self.seen, "never": never(self.seen)}, f, indent=1)


# --- the calls that a piece of code makes --------------------------------------------------------------------------------

class Calls(TorchFunctionMode):
    def __init__(self):
        self.found = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.found.append((func, *copied((args, kwargs or {}))))
        return func(*args, **(kwargs or {}))


class AtenCalls(TorchDispatchMode):
    def __init__(self, wanted):
        super().__init__()
        self.wanted, self.found = wanted, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "aten" and self.wanted[func] > 0:
            self.wanted[func] -= 1
            self.found.append((func, *copied((args, kwargs or {}))))
        return func(*args, **(kwargs or {}))


def copied(value):
    """With copies of the tensors, the same one for the same."""
    copies = {}
    return mapped(value, lambda t: copies.setdefault(id(t), t.detach().clone() if type(t) in (torch.Tensor, torch.nn.Parameter) else t))


METHODS = {id(getattr(torch.Tensor, n)): n for n in dir(torch.Tensor) if callable(getattr(torch.Tensor, n, None))}
ATTRIBUTES = {}
for _n in dir(torch.Tensor):
    _a = inspect.getattr_static(torch.Tensor, _n)
    if hasattr(_a, "__get__") and not callable(_a):
        ATTRIBUTES[_n] = _a


def spelled(func, args):
    """(opcode, target, args, name) as torch.fx records this call."""
    name = getattr(func, "__name__", "")
    owner = getattr(func, "__self__", None)
    if name == "__get__":
        for n, a in ATTRIBUTES.items():
            if a is owner or getattr(a, "__name__", None) == getattr(owner, "__name__", 0):
                return "call_function", getattr, (args[0], n), f"Tensor.{n}"
    if name in ("__set__", "__delete__"):
        return None
    method = getattr(torch.Tensor, name, None)
    if method is not None and (method is func or method == func):
        return "call_method", name, args, f"Tensor.{name}"
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return "call_function", func, args, f"torch.ops.{func}"
    try:
        return "call_function", func, args, board.qualified(func)
    except Exception:
        return None


OVERRIDES = torch.overrides.get_testing_overrides()


def parameter_names(func):
    if isinstance(func, torch._ops.OpOverload):
        return [a.name for a in func._schema.arguments]
    f = OVERRIDES.get(func, func)
    try:
        return [p.name for p in inspect.signature(f).parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        return []


def forms(func, op, args, kwargs):
    """The call as it is, then with its last one, and with all arguments but the first by name."""
    yield args, kwargs
    names = parameter_names(func if op != "call_method" else getattr(torch.Tensor, func))
    first = 1 if op == "call_method" or not tensors_of(args[:1]) else 0
    for keep in sorted({len(args) - 1, 1, first}, reverse=True):
        if first <= keep < len(args) <= len(names):
            yield args[:keep], {**dict(zip(names[keep:], args[keep:])), **kwargs}


def kind_of(args, kwargs):
    """What overload choice sees of the arguments."""
    def one(v):
        if isinstance(v, torch.Tensor):
            return f"T{min(v.dim(), 4)}{v.dtype if not v.is_floating_point() else ''}"
        if isinstance(v, (list, tuple)):
            return type(v).__name__ + "".join(one(x) for x in v[:4])
        return f"{v}" if isinstance(v, (str, bool, type(None))) else type(v).__name__
    return tuple(one(a) for a in args), tuple((k, one(v)) for k, v in sorted(kwargs.items()))


class Collector:
    """Calls by name, a few of each kind."""

    def __init__(self, archive):
        self.archive = archive
        self.per_name, self.kinds = collections.Counter(), set()
        self.most = 60 if ALL else 2

    def call(self, func, args, kwargs):
        s = spelled(func, args)
        if s is None:
            return
        op, target, args, name = s
        self.target(op, target, args, kwargs, name)

    def target(self, op, target, args, kwargs, name):
        for form, (a, k) in enumerate(forms(target, op, args, kwargs)):
            key = (name, kind_of(a, k))
            if key in self.kinds or self.per_name[name] >= self.most or (form and not ALL and form > 1):
                continue
            self.kinds.add(key)
            if self.archive.add(f"{name} {brief(a, k)}", op, target, a, k) is not None:
                self.per_name[name] += 1


def brief(args, kwargs):
    def one(v):
        if isinstance(v, torch.Tensor):
            return f"{str(v.dtype)[6:]}{list(v.shape)}"
        if isinstance(v, (list, tuple)):
            return "[" + ",".join(one(x) for x in v[:6]) + "]"
        return repr(v)[:20]
    return ("(" + ", ".join([one(a) for a in args] + [f"{k}={one(v)}" for k, v in kwargs.items()]) + ")")[:150]


def collect_database(archive, collector, aten):
    from torch.testing._internal.common_methods_invocations import op_db
    preferred = [torch.float32, torch.int64, torch.complex64, torch.bool, torch.bfloat16]
    for info in op_db:
        dtypes = [d for d in preferred if d in info.dtypes]
        for dtype in dtypes if ALL else dtypes[:1]:
            try:
                torch.manual_seed(1)
                samples = list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), 40 if ALL else 3))
            except Exception as e:
                archive.skipped[f"{info.name}: no samples: {type(e).__name__}"] += 1
                continue
            for sample in samples:
                small = (sample.input, *sample.args)
                if any(t.numel() > LARGEST for t in tensors_of((small, sample.kwargs))):
                    continue
                for variant in (info.op, info.method_variant, info.inplace_variant, info.operator_variant, info.inplace_operator_variant):
                    if variant is None:
                        continue
                    record(collector, aten, variant, small, sample.kwargs)


def record(collector, aten, f, args, kwargs):
    """Runs f and takes in the calls that it makes."""
    calls, inner = Calls(), AtenCalls(aten)
    with warnings.catch_warnings(), torch.no_grad(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        if getattr(f, "__module__", None) in ("_operator", "builtins"):
            collector.call(f, args, kwargs)
        torch.manual_seed(SEED)
        fresh = copied((args, kwargs))
        with calls:
            f(*fresh[0], **fresh[1])
        fresh = copied((args, kwargs))
        with inner:
            f(*fresh[0], **fresh[1])
    for func, a, k in calls.found[:4] + inner.found:
        collector.call(func, a, k)


# --- modules -----------------------------------------------------------------------------------------------------------

def module_samples():
    """(class, constructor arguments, forward arguments, training)"""
    from torch.testing._internal.common_modules import module_db
    for info in module_db:
        if not info.module_cls.__module__.startswith("torch.nn."):
            continue
        for training in (False, True):
            try:
                torch.manual_seed(2)
                inputs = list(info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=training))
            except Exception:
                continue
            for s in inputs if ALL else inputs[:4]:
                if s.forward_input is not None:
                    yield info.module_cls, s.constructor_input.args, s.constructor_input.kwargs, s.forward_input.args, s.forward_input.kwargs, training
    yield from coverage_cases.modules()


def collect_modules(archive):
    done = set()
    for cls, c_args, c_kwargs, args, kwargs, training in module_samples():
        torch.manual_seed(4)
        title = f"nn.{cls.__name__} {brief(c_args, {k: v for k, v in c_kwargs.items() if k not in ('device', 'dtype')})}{' training ' if training else ' '}{brief(args, kwargs)}"
        if title in done:
            continue
        done.add(title)
        try:
            module = cls(*c_args, **c_kwargs)
            if hasattr(module, "initialize_parameters"):
                module(*args, **kwargs)
            coverage_cases.lively(module).train(training)
        except Exception as e:
            archive.skipped[f"{title}: {type(e).__name__}: {e}"[:160]] += 1
            continue
        archive.add(title, "call_module", None, args, kwargs, module)


# What has no value to compare or no meaning in a graph: addresses, counters, text, gradients, other devices and processes.
UNCOMPARED = {"grad_dtype", "volatile", "__dlpack_device__", "module_load", "index", "fbgemm_pack_gemm_matrix_fp16",
              "data_ptr", "const_data_ptr", "_cdata", "_version", "output_nr", "storage_type", "share_memory_", "backward", "pin_memory", "cuda", "__repr__", "__format__"}


def collect_rest(archive):
    """Methods and functions that no sample calls, mostly other names of those that are: on a matrix, and with what else they take."""
    torch.manual_seed(6)
    x, y = torch.rand(3, 3) + .1, torch.rand(3, 3) + .1
    for name in never(archive.seen):
        owner, _, base = name.rpartition(".")
        if owner not in ("Tensor", "torch") or base in UNCOMPARED or base.startswith(("is_", "_")) and not base.startswith("__"):
            continue
        for more in ((), (y,), (2,), (0, 1), (y > .5,)):
            if owner == "torch":
                done = archive.add(f"{name} {brief((x, *more), {})}", "call_function", getattr(torch, base), (x, *more), {})
            elif callable(getattr(torch.Tensor, base, None)):
                done = archive.add(f"{name} {brief((x, *more), {})}", "call_method", base, (x, *more), {})
            else:
                done = archive.add(f"{name} {brief((x,), {})}", "call_function", getattr, (x, base), {})
            if done is not None:
                break


def never(seen):
    """Of everything that torch.fx can record: what no case calls, and of torch.nn what is no leaf."""
    missing = []
    for functions in torch.overrides.get_overridable_functions().values():
        for f in functions:
            s = spelled(f, (None,))
            if s and s[3] not in seen:
                missing.append(s[3])
    classes = [n for n in dir(torch.nn) if inspect.isclass(getattr(torch.nn, n)) and issubclass(getattr(torch.nn, n), torch.nn.Module)]
    missing += [f"nn.{n}" for n in classes if f"nn.{n}" not in seen and not n.startswith("Lazy") and n not in coverage_cases.NO_LEAF]
    return sorted(set(missing))


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    archive = Archive()
    collect_modules(archive)
    modules = len(archive.modules)
    collector = Collector(archive)
    aten = collections.defaultdict(lambda: 3 if ALL else 1)
    for op, target, args, kwargs, name in coverage_cases.calls():
        archive.add(f"{name} {brief(args, kwargs)}", op, target, args, kwargs)
    for f, args, kwargs in coverage_cases.functions():
        record(collector, aten, f, args, kwargs)
    collect_database(archive, collector, aten)
    collect_rest(archive)
    archive.write(sys.argv[1])
    print(modules, "module cases,", len(archive.modules) - modules, "calls,", len(archive.seen), "names,", sum(archive.skipped.values()), "skipped")


main()
