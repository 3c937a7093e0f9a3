"""Graphs made at random, from a seed, of everything that torch.fx.Graph can hold. GPL-3.0-or-later.

    random_graphs.py write FOLDER FIRST COUNT    for each seed N N.fxt, N.code.txt (gm.code), N.graph.txt (str(graph)) and the records
                                                 "in" and "out": the placeholders' values, and what comes out node by node
    random_graphs.py run FOLDER N...             runs N.py (a forward) with the globals of N.json and compares it with the graph
                                                 run node by node; prints {N: "equal" or what differs}

Every node is run while it is made, so each graph runs on the inputs that come with it. `mix` takes any arguments at all and
its result depends on their kinds and values, so code that says something else than the graph gives something else.
"""
import builtins
import collections
import contextlib
import copy
import enum
import importlib
import inspect
import io
import json
import math
import operator
import os
import random
import re
import sys
import typing
import warnings
import zlib

import torch
import torch.fx
import torch.nn.functional as F
from torch import nn

OLD = torch.__version__.startswith("1.")
Pair = collections.namedtuple("Pair", "first second")
One = collections.namedtuple("One", "only")


class Mode(enum.Enum):
    FAST = 1
    SLOW = "slow"


class Level(enum.IntEnum):
    LOW = 1


class Thing:
    def __repr__(self):
        return "<a thing>"


class Scale(nn.Module):
    """A leaf of the user's own."""

    def __init__(self, by: float):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by


def describe(value):
    """A value as text that tells kinds, order and numbers apart."""
    if isinstance(value, torch.Tensor):
        return f"tensor {value.dtype} {list(value.shape)} {float(value.double().sum()) if not value.is_complex() else 0!r}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{type(value).__name__}({','.join(map(describe, value))})"
    if isinstance(value, (tuple, list)):
        return ("list" if isinstance(value, list) else "tuple") + f"({','.join(map(describe, value))})"
    if isinstance(value, dict):
        return "{" + ",".join(f"{describe(k)}:{describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({describe(value.start)},{describe(value.stop)},{describe(value.step)})"
    if inspect.isroutine(value) or isinstance(value, type):
        return getattr(value, "__qualname__", value.__name__)
    return f"{type(value).__name__} {value!r}"


def mix(x, *args, **kwargs):
    return x + zlib.crc32(describe((args, kwargs)).encode()) % 1000 / 8


def first_of(x, *rest):
    return x


def make_pair(a, b):
    return Pair(a, b)


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
    if isinstance(a, (tuple, list)):
        kind = lambda v: "list" if isinstance(v, list) else type(v).__name__ if hasattr(v, "_fields") else "tuple"
        return isinstance(b, (tuple, list)) and kind(a) == kind(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return describe(a) == describe(b)


# Names that are hard on generated code, for nodes, arguments of forward and children.
NODE_NAMES = ["class", "for", "1x", "_0", "0", "__", "a b", "x_01", "x_1", "add_5", "add", "torch", "self", "inf", "nan", "device", "float", "len",
              "getattr", "input", "it's", '"', "\u00e9", "print", "None", "NoneType", "x_007", "Mode", "random_graphs_mix", "mix", "relu", "slice", "a-b", "_x_1_2"]
ARGUMENT_NAMES = ["x", "y", "input", "torch", "inf", "nan", "device", "float", "getattr", "self", "Mode", "random_graphs_mix", "slice", "sum", "add",
                  "add_1", "len", "Ellipsis", "range", "module", "NoneType", "class", "random_graphs_Pair", "operator"]
CHILD_NAMES = ["0", "1", "body", "class", "lambda", 'a"b', "a\\tb", "it's", "sp ace", "dash-name", "self", "torch", "weight_", "None", "\u00e9t\u00e9"]
ANNOTATIONS = [torch.Tensor, int, float, bool, str, Pair, Mode, torch.dtype, torch.device, torch.Size, nn.Module, typing.Any, typing.List, list, dict,
               typing.Optional[int], typing.Optional[torch.Tensor], typing.List[torch.Tensor], typing.Dict[str, torch.Tensor],
               typing.Tuple[int, ...], typing.Tuple[torch.Tensor, int], typing.Union[int, str], typing.Union[int, str, None],
               typing.Optional[typing.List[torch.Tensor]], typing.Dict[str, typing.List[int]], typing.Tuple[Pair, Mode], typing.Tuple[()],
               list[int], tuple[int, ...], dict[str, torch.Tensor], list[dict[str, int]], typing.List[typing.Optional[int]], type(None), "torch.Tensor",
               "tuple[Tensor, int] | None", "Foo"]     # texts: `from __future__ import annotations`
if not OLD:
    ANNOTATIONS += [int | None, torch.Tensor | None, int | str, typing.List[int | None], dict[str, int | None], typing.Sequence[int]]
DEFAULTS = [None, 1, -2.5, True, "text", (1, "a"), [1, 2.0], math.inf, torch.float16, torch.device("cpu"), {"a": 1}, slice(1, None, None), 2**70, Pair(1, 2)]
CONSTANTS = [None, True, False, 0, 1, -7, 2**40, -2**63, 2**63, -10**30, 0.5, -0.0, 1e-45, 1e16, 123456789012345680.0, 1e300, -1e-5, math.inf, -math.inf,
             math.nan, 1j, complex(1, -2.5), complex(-0.0, math.inf), complex(math.nan, 0.0), "", "it's", 'say "hi"', "both ' and \"", "tab\t\\ \n\x01", "\u00e9\u20ac\U0001f600\u200b",
             "\x85\xa0\xad", Ellipsis, torch.float32, torch.int8, torch.bfloat16, torch.complex64, torch.device("cpu"), torch.device("cuda", 1), torch.device("meta"),
             torch.strided, torch.sparse_coo, torch.contiguous_format, torch.channels_last, torch.preserve_format, range(3), range(1, 9, 2), slice(None, None, None),
             Mode.FAST, Mode.SLOW, Level.LOW, mix, Pair, len, max, torch.relu, F.relu, operator.add, int, float, torch.Tensor, nn.ReLU, math.sqrt, typing.List]
POLITE = [c for c in CONSTANTS if not (inspect.isroutine(c) or isinstance(c, (type, enum.Enum)) or c is typing.List)]
METADATA = [1, "text", None, [1, 2, "a"], {"a": [1, {"b": None}], "c": 0.5}, True, -0.5, {"nested": {"deep": [[], {}]}}]


class Builder:
    def __init__(self, seed, depth=0):
        self.random = random.Random(f"{seed}/{depth}")
        self.depth = depth
        self.graph = torch.fx.Graph()
        self.root = nn.Module()
        self.values = {}        # node -> what it gave
        self.children = []      # paths that can be called with one tensor
        self.seed = seed
        self.polite = depth > 0 or self.chance(0.5)      # torch's own code of it should be valid Python
        torch.manual_seed(seed * 31 + depth)

    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return self.random.choice(items)

    # --- modules and attributes ---

    def leaf(self):
        kind = self.random.randrange(10)
        if kind == 0:
            return nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        if kind == 1 and self.depth < 3:
            return Builder(self.seed, self.depth + 1 + self.random.randrange(2)).graph_module()
        return [lambda: nn.Linear(3, 3), nn.ReLU, nn.Identity, lambda: nn.LayerNorm(3), lambda: nn.BatchNorm1d(3), lambda: Scale(1.5),
                lambda: nn.Dropout(0.5), lambda: nn.Linear(3, 3, bias=False), lambda: nn.Hardtanh(-math.inf, 1.0)][kind - 1]()

    def make_children(self):
        names = [n for n in CHILD_NAMES if not self.polite or n not in ("class", "lambda", 'a"b', "a\\tb", "None")]
        made = []
        for name in self.random.sample(names, self.random.randrange(1, 6)):
            child = self.pick(made) if made and self.chance(0.2) else self.leaf()
            made.append(child)
            if self.chance(0.25):
                inner, child = child, nn.Module()
                key = self.pick(["0", "inner", "x"])
                child.add_module(key, inner)
                self.root.add_module(name, child)
                self.children.append(f"{name}.{key}")
            else:
                self.root.add_module(name, child)
                self.children.append(name)
        linears = [m for m in made if isinstance(m, nn.Linear)]
        if len(linears) > 1 and self.chance(0.7):
            linears[1].weight = linears[0].weight
        self.root.register_buffer("kept", torch.ones(2, 3) * 2)
        self.root.register_buffer("pos", torch.arange(3.0), persistent=False)
        self.root.register_buffer("tied", self.root.kept)
        self.root.register_parameter("nothing", None)
        self.root.gain = nn.Parameter(torch.full((3,), 0.5))
        self.root.loose = torch.ones(3, dtype=torch.float64)
        for name, value in (("number", 3), ("ratio", -math.inf), ("items", [1, (2.0, "a")]), ("table", {"a": 1, 2: None}), ("flag", True), ("word", "it's"),
                            ("kind", torch.float64), ("mode", Mode.SLOW), ("thing", Thing()), ("big", 2**80), ("pair", Pair(1, [2])), ("call", mix)):
            setattr(self.root, name, value)
        self.attributes = ["kept", "pos", "tied", "gain", "loose", "number", "ratio", "items", "table", "flag", "word", "kind", "mode", "thing", "big", "pair", "call"]
        self.root.eval()

    # --- values and arguments ---

    def nodes(self, test=lambda v: True):
        return [n for n, v in self.values.items() if test(v)]

    def tensor(self):
        return self.pick(self.nodes(lambda v: isinstance(v, torch.Tensor) and v.dtype == torch.float32 and v.shape == (2, 3)))

    def own(self):
        """A tensor that an in-place operation may change: one that shares no memory with an input or the root."""
        shared = {t.storage().data_ptr() for t in list(self.root.parameters()) + list(self.root.buffers()) + self.given}
        found = self.nodes(lambda v: isinstance(v, torch.Tensor) and v.dtype == torch.float32 and v.shape == (2, 3) and v.storage().data_ptr() not in shared)
        return self.pick(found) if found else None

    def argument(self, depth=0):
        kind = self.random.randrange((13 if self.polite else 14) if depth < 3 else 6)
        if kind < 2:
            return self.pick(self.nodes())
        if kind < 6:
            return self.pick(POLITE if self.polite else CONSTANTS)
        inner = lambda low=0, high=4: [self.argument(depth + 1) for _ in range(self.random.randrange(low, high))]
        if kind < 8:
            return inner()
        if kind < 10:
            return tuple(inner())
        if kind == 10:
            return {self.pick(["a", "it's", 1, 2.5, True, None, ("t", 1), Mode.FAST, "b"]): v for v in inner()}
        if kind == 11:
            numbers = self.nodes(lambda v: type(v) is int)
            part = lambda: self.pick(numbers) if numbers and self.chance(0.4) else self.pick([None, 1, -1, 2])
            return slice(part(), part(), self.pick([None, 2]))
        if kind == 12:
            return Pair(*inner(2, 3)) if self.chance(0.7) else One(*inner(1, 2))
        return self.pick([torch.tensor([1.0, -2.5]), torch.arange(3), torch.tensor(True), torch.tensor([[0.1, 1000.0], [-3.0, 2.0]], dtype=torch.float64),
                          torch.tensor(3.5), torch.zeros(0, 2), torch.tensor([1, -200], dtype=torch.int16), torch.tensor([1e-5, 1.0, 1e6]), torch.tensor([math.inf, math.nan, 1.0])])

    # --- nodes ---

    def add(self, op, target, args=(), kwargs=None, name=None):
        """Makes the node if it runs."""
        kwargs = kwargs or {}
        kind = self.pick(ANNOTATIONS) if self.chance(0.12) else None
        if name is None and self.chance(0.25):
            name = self.pick(NODE_NAMES)
        node = self.graph.create_node(op, target, args, kwargs, name=name, type_expr=kind)
        try:
            self.values[node] = run_node(self.root, node, self.values)
        except Exception:
            self.graph.erase_node(node)
            return None
        if self.chance(0.2):
            node.meta["note"] = self.pick(METADATA)
        return node

    def step(self):
        r, t = self.random, self.tensor
        kind = r.randrange(21)
        number = lambda: self.pick([2, 0.5, -1.5, 1e-5, math.inf, 2**40, -3])
        if kind < 3:
            self.add("call_function", mix, (t(), *(self.argument() for _ in range(r.randrange(4)))),
                     {k: self.argument() for k in r.sample(["a", "from", "class", "alpha", "x_1"] if not self.polite else ["a", "alpha"], r.randrange(3))})
        elif kind < 5:
            op = self.pick([operator.add, operator.sub, operator.mul, operator.truediv, operator.eq, operator.lt, operator.ge, operator.ne, operator.pow, operator.mod, operator.floordiv])
            pair = [t(), self.pick([t(), number()])]
            self.add("call_function", op, tuple(pair if self.chance(0.7) else pair[::-1]))
        elif kind == 5:
            self.add("call_function", self.pick([operator.neg, operator.pos, operator.invert, torch.neg, abs]), (t(),))
        elif kind == 6:
            numbers = self.nodes(lambda v: type(v) is int)
            at = lambda: self.pick([0, -1, None, Ellipsis, slice(None, None, None), slice(0, self.pick(numbers) if numbers else 1, None), slice(1, None, 2)])
            self.add("call_function", operator.getitem, (t(), at() if self.chance(0.4) else (at(), at())))
        elif kind == 7:
            own = self.own()
            if own is not None:
                self.pick([lambda: self.add("call_function", self.pick([operator.iadd, operator.imul, operator.isub]), (own, self.pick([t(), 2, 0.5]))),
                           lambda: self.add("call_function", operator.setitem, (own, (0, slice(None, None, None)), self.pick([1.0, -math.inf]))),
                           lambda: self.add("call_method", self.pick(["mul_", "add_"]), (own, 2)),
                           lambda: self.add("call_function", F.relu, (own,), {"inplace": True}),
                           lambda: self.add("call_function", torch.add, (own, 1), {"out": own})])()
        elif kind == 8:
            self.pick([lambda: self.add("call_function", torch.cat, ([t(), t()],), {"dim": self.pick([0, 1])}),
                       lambda: self.add("call_function", torch.stack, ((t(), t(), t()),)),
                       lambda: self.add("call_function", torch.where, (self.add("call_function", operator.gt, (t(), 0.0)), t(), t())),
                       lambda: self.add("call_function", torch.zeros, ((2, 3),), {"dtype": torch.float32, "layout": torch.strided, "device": torch.device("cpu")}),
                       lambda: self.add("call_function", F.pad, (t(), (1, 1)), {"mode": "constant", "value": -math.inf}),
                       lambda: self.add("call_function", torch.ops.aten.add.Tensor, (t(), t()), {"alpha": 2}),
                       lambda: self.add("call_function", torch.nn.functional.linear, (t(), t())),
                       lambda: self.add("call_function", operator.matmul, (t(), self.add("call_method", "t", (t(),))))])()
        elif kind == 9:
            self.pick([lambda: self.add("call_method", "to", (t(),), {"dtype": torch.float64}), lambda: self.add("call_method", "to", (t(), torch.device("cpu"))),
                       lambda: self.add("call_method", "contiguous", (t(),), {"memory_format": torch.contiguous_format}),
                       lambda: self.add("call_method", "clamp", (t(),), {"min": -math.inf, "max": math.inf}), lambda: self.add("call_method", "view", (t(), 3, -1)),
                       lambda: self.add("call_method", "masked_fill", (t(), self.add("call_function", operator.lt, (t(), 0)), -math.inf)),
                       lambda: self.add("call_method", "sum", (t(),), {"dim": (0,), "keepdim": True}), lambda: self.add("call_method", "add", (t(), t()), {"alpha": 2})])()
        elif kind == 10:
            self.pick([lambda: self.add("call_method", "size", (t(), self.pick([0, 1, -1]))), lambda: self.add("call_method", "dim", (t(),)),
                       lambda: self.add("call_function", len, (t(),)), lambda: self.add("call_function", getattr, (t(), self.pick(["shape", "dtype", "ndim", "device"]))),
                       lambda: self.add("call_function", getattr, (t(), "missing", self.pick([None, math.inf, 3])))])()
        elif kind == 11:
            call = self.add("call_method", self.pick(["chunk", "split"]), (t(), self.pick([1, 2, 3]), 1))
            if call is not None:
                self.add("call_function", operator.getitem, (call, 0))
        elif kind < 14 and self.children:
            self.add("call_module", self.pick(self.children), (t(),) if self.chance(0.8) else (), {})
        elif kind < 16:
            self.add("get_attr", self.pick(self.attributes))
        elif kind == 16:
            node = self.add("call_function", self.pick([mix, first_of, len]), (t(),))
            if node is not None:
                node.meta["is_wrapped"] = True
        elif kind == 17:
            node = self.add("call_function", make_pair, (t(), self.argument(1)))
            if node is not None:
                self.add("call_function", getattr, (node, "first"))
        elif kind == 18:
            self.pick([lambda: self.add("call_function", builtins.dict, (), {k: t() for k in ["a", "b"]}), lambda: self.add("call_function", tuple, ([t(), 1],)),
                       lambda: self.add("call_function", range, (3,)), lambda: self.add("call_function", slice, (0, 2)),
                       lambda: self.add("call_function", math.sqrt, (2,)), lambda: self.add("call_function", max, (1, 2)), lambda: self.add("call_function", Pair, (t(), 1)),
                       lambda: self.add("call_function", isinstance, (t(), torch.Tensor))])()
        elif kind == 19:
            self.add("call_method", self.pick(["item", "tolist"]), (self.add("call_method", "sum", (t(),)),))
        else:
            self.add("call_function", self.pick([torch.relu, torch.sigmoid, F.gelu, F.softmax, torch.tanh]), (t(),), self.pick([{}, {}, {"dim": -1}]))

    def arguments(self):
        """Placeholders, and what they are given: x first, then any others, then *args and **kwargs."""
        r, rest = self.random, []
        # Three forms: as a Python signature may be, that with keyword-only ones behind, and what only fx.Graph can hold.
        names = r.sample(ARGUMENT_NAMES, r.randrange(4)) if self.depth == 0 else r.sample(["y", "mask", "k"], r.randrange(3))
        form = r.randrange(6)
        defaults = 0
        for i, name in enumerate(names):
            if name == "x":
                continue
            has = self.chance(0.35) or (defaults > 0 and not (form == 0 and self.depth == 0))
            defaults += has
            rest.append((name, has))
        items = [("x", False)]
        if self.chance(0.1) and self.depth == 0:
            items = [("self", False)] + items
            rest = [i for i in rest if i[0] != "self"]
        items += rest
        if self.chance(0.3) and self.depth == 0:
            items.append(("*" + self.pick(["args", "rest", "sum"]), False))
            if form == 1:
                items.append(("flag", self.chance(0.5)))
        if self.chance(0.3) and self.depth == 0:
            items.append(("**" + self.pick(["kwargs", "options", "dict"]), False))
        self.given = []
        self.inputs = {}        # raw name -> value
        for target, has in items:
            raw = target.strip("*")
            value = torch.randn(2, 3) if raw == "x" or not has and self.chance(0.7) else self.pick([2, 0.5, True, "word", (1, 2), None])
            if target.startswith("**"):
                value = {"k": torch.randn(2, 3), "n": 3}
            elif target.startswith("*"):
                value = (torch.randn(2, 3), 2)
            args = ()
            if has:
                args = (self.pick(DEFAULTS),)
                if self.chance(0.5):
                    value = args[0]
            kind = self.pick(ANNOTATIONS) if self.chance(0.3) and not target.startswith("*") else None
            name = self.pick(NODE_NAMES) if self.depth == 0 and self.chance(0.08) else None
            node = self.graph.create_node("placeholder", target, args, {}, name=name, type_expr=kind)
            if not has or value is not args[0]:
                self.inputs[target] = value
            self.values[node] = copy.deepcopy(value)
        for value in self.values.values():
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
            self.given += [v for v in parts if isinstance(v, torch.Tensor)]

    def result(self, depth=0):
        kind = self.random.randrange(9 if depth < 4 else 4)
        if kind < 4:
            return self.pick(self.nodes()) if self.chance(0.85) else self.pick([None, 1, "a", math.inf, torch.float32, Mode.FAST, Ellipsis])
        inner = lambda: [self.result(depth + 1) for _ in range(self.random.randrange(1, 4))]
        return [inner, lambda: tuple(inner()), lambda: dict(zip(["sum", "parts", "it's"], inner())), lambda: Pair(self.result(depth + 1), self.tensor()),
                lambda: (self.tensor(), self.tensor())][kind - 4]()

    def build(self):
        self.make_children()
        self.arguments()
        for node in list(self.values):
            if node.target.startswith("*"):
                self.add("call_function", operator.getitem, (node, "k" if node.target.startswith("**") else 0))
        for _ in range(self.random.randrange(3, 25)):
            self.step()
        output = self.tensor() if self.depth else self.result()
        self.graph.output(output, type_expr=self.pick(ANNOTATIONS) if self.chance(0.2) else None)
        return self

    def graph_module(self):
        """For a call with one tensor, as a GraphModule: torch's own code of it has to be valid."""
        for attempt in range(8):
            builder = Builder(self.seed + 1000003 * (attempt + 1), self.depth).build()
            with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()), torch.no_grad():
                module = torch.fx.GraphModule(builder.root, builder.graph).eval()
                if module(torch.zeros(2, 3)).shape == (2, 3):
                    return module
        return nn.Identity()


def attribute(root, path):
    for name in path.split("."):
        root = getattr(root, name)
    return root


def run_node(root, node, values):
    args, kwargs = (torch.fx.node.map_arg(a, lambda n: values[n]) for a in (node.args, node.kwargs))
    with torch.no_grad():
        if node.op == "get_attr":
            return attribute(root, node.target)
        if node.op == "output":
            return args[0]
        if node.op == "call_function":
            return node.target(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        return attribute(root, node.target)(*args, **kwargs)


def run_graph(root, graph, inputs):
    """The truth: node by node, without any generated code."""
    values = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = inputs[node.target] if node.target in inputs else torch.fx.node.map_arg(node.args[0], lambda n: values[n])
        else:
            values[node] = run_node(root, node, values)
    return values[node]


def run_code(root, forward, inputs):
    """Calls it as a user would: by position where it can be, else by the argument's name."""
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    own = {name: value for name, value in inputs.items() if not name.startswith("*")}
    stars = [value for name, value in inputs.items() if name.startswith("*") and not name.startswith("**")]
    # A name that no argument can have has become another one, in the same place.
    odd = [name for name in own if name not in {p.name for p in parameters}]
    values = {}
    for needed in (True, False):
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or (p.default is p.empty) != needed:
                continue
            if p.name in own:
                values[p.name] = own[p.name]
            elif odd:
                values[p.name] = own[odd.pop(0)]
    args, kwargs = [root], {}
    for p in parameters:
        if p.kind == p.VAR_POSITIONAL:
            args += stars[0]
        elif p.kind == p.VAR_KEYWORD:
            kwargs.update(next(value for name, value in inputs.items() if name.startswith("**")))
        elif stars and p.kind != p.KEYWORD_ONLY:
            args.append(values.get(p.name, p.default))
        elif p.name in values:
            kwargs[p.name] = values[p.name]
    return forward(*args, **kwargs)


def seeded(seed):
    return Builder(seed).build()


def write(folder, first, count):
    from recorder import Recorder, fuseboard_trace
    for seed in range(first, first + count):
        builder = seeded(seed)
        path = os.path.join(folder, str(seed))
        for kind, text in (("code", builder.graph.python_code("self").src), ("graph", str(builder.graph))):
            with open(f"{path}.{kind}.txt", "w", encoding="utf-8", newline="") as file:
                file.write(re.sub(r" at 0x[0-9a-f]+", "", text))       # no two runs agree on addresses
        fuseboard_trace.write_graph(builder.root, builder.graph, path + ".fxt")
        with Recorder(path) as record:
            root, inputs = copy.deepcopy((builder.root, builder.inputs))
            record("in", in_order(builder.graph, inputs))
            record("out", run_graph(root, builder.graph, inputs))


def in_order(graph, inputs):
    """One value for each placeholder, without those at the end that are left to their defaults."""
    given, values = [], {}
    for node in graph.nodes:
        if node.op == "placeholder":
            values[node] = inputs[node.target] if node.target in inputs else torch.fx.node.map_arg(node.args[0], lambda n: values[n])
            given.append(node.target in inputs)
    return list(values.values())[:max(i for i, is_given in enumerate(given) if is_given) + 1]


nothing = nn.Module     # a model for the worker: what it shall run are functions


def resolved(name):
    """The object of a dotted name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        return attribute(found, ".".join(parts[end:])) if parts[end:] else found
    return getattr(builtins, name)


def run(folder, seeds):
    answers = {}
    for seed in seeds:
        builder = seeded(int(seed))
        path = os.path.join(folder, seed)
        fresh = lambda: copy.deepcopy((builder.root, builder.inputs))
        try:
            with open(path + ".py", encoding="utf-8") as file:
                code = file.read()
            with open(path + ".json", encoding="utf-8") as file:
                names = {name: resolved(target) for name, target in json.load(file).items()}
            exec(compile(code, path + ".py", "exec"), names)
            root, inputs = fresh()
            truth = run_graph(root, builder.graph, inputs)
            root, inputs = fresh()
            with torch.no_grad():
                ours = run_code(root, names["forward"], inputs)
            answers[seed] = "equal" if same(truth, ours) else f"gives {describe(ours)} not {describe(truth)}"
        except Exception as error:
            answers[seed] = f"{type(error).__name__}: {error}"
    print(json.dumps(answers))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import random_graphs        # so that its functions have this name
    command, folder, *numbers = sys.argv[1:]
    if command == "write":
        random_graphs.write(folder, *map(int, numbers))
    else:
        random_graphs.run(folder, numbers)
