#!/usr/bin/env python3
# Fuseboard tests: exported programs and what PyTorch computes with them. GPL-3.0-or-later.
#
# usage: pt2_oracle.py make DIR          every model below: NAME.pt2, NAME-in.npz (by placeholder), NAME-out.npz (flat)
#        pt2_oracle.py hostile DIR       old.pt2, whose weights are a pickle that would make DIR/ran; subclass.pt2, one weight of which
#                                        is a pickled object
#        pt2_oracle.py layout DIR        one model as this PyTorch saves it: VERSION.pt2, VERSION-in.npz, VERSION-out.npz
# Made with `layout` under PyTorch 2.5.1, 2.7.1, 2.8.0 and 2.9.1: tests/oracle/pt2/.
import collections
import io
import json
import os
import sys
import warnings
import zipfile

import numpy
import torch
from torch import nn
from torch.export import Dim

import torch.ao.quantization.fx._decomposed  # noqa: F401

try:        # newer than the oldest layouts
    from torch._higher_order_ops import scan, while_loop
    from torch._higher_order_ops.map import map as mapped
except ImportError:
    pass

warnings.simplefilter("ignore")
Point = collections.namedtuple("Point", "left right")
torch.utils._pytree._register_namedtuple(Point, serialized_type_name="pt2_oracle.Point")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.register_buffer("counter", torch.zeros(1))
        self.register_buffer("shift", torch.ones(4), persistent=False)

    def forward(self, x):
        self.counter.add_(1)
        return self.lin(x) + self.shift * self.counter


class Nested(nn.Module):
    """Containers in and out, a module called twice under two names, a constant, a size of the batch."""
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.unused = nn.Linear(2, 2)
        self.w = nn.Parameter(torch.randn(4))
        self.again = self.a

    def forward(self, x, d, flag=True, *, k=None):
        y = self.again(self.a(x) * 2)
        top = torch.topk(y, 2)
        parts = d["q"].reshape(x.shape[0] * 2, -1).chunk(2, 1)
        return {"y": y * self.w + torch.tensor([1.0, 2.0, 3.0, 4.0]), "z": (top.values, [parts[0] + d["p"][1]])}, top.indices, 5, None


class Views(nn.Module):
    """Weights that do not lie in memory as they are read."""
    def __init__(self):
        super().__init__()
        self.turned = nn.Parameter(torch.randn(4, 3).t())
        self.tied = self.turned
        base = torch.randn(10)
        self.register_buffer("part", base[2:5])
        self.register_buffer("wide", torch.randn(1, 4).expand(5, 4), persistent=False)
        self.register_buffer("one", torch.tensor(3.0))
        self.register_buffer("none", torch.zeros(0, 4))

    def forward(self, x):
        y = (x * self.part) @ self.turned + self.one
        return torch.cat([y, self.wide, self.none]) @ self.tied.t()


class Types(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "complex64", "complex128", "uint16"):
            self.register_buffer("of_" + name, torch.arange(4).to(getattr(torch, name)))

    def forward(self, x):
        return [x + self.of_float16.float(), x * self.of_bfloat16, x.double() - self.of_float64, x + self.of_int8 + self.of_uint8, self.of_int16 * self.of_int32 + self.of_int64,
                torch.where(self.of_bool, x, -x), torch.view_as_real(self.of_complex64 * 2j), torch.view_as_real(self.of_complex128), self.of_uint16.to(torch.int32)]


class Arguments(nn.Module):
    """Every kind of argument that an operator takes."""
    def forward(self, x, i):
        return (torch.einsum("ij,kj->ik", x, x), nn.functional.gelu(x, approximate="tanh"), nn.functional.pad(x, (1, 1), value=float("-inf")),
                x.to(torch.float64, memory_format=torch.contiguous_format), torch.full((2, 3), float("nan")), x.clamp(max=float("inf")),
                torch.arange(5, dtype=torch.int32, device="cpu"), x[:, i], x[i, :, None], x[..., ::2], torch.zeros_like(x, dtype=torch.bool),
                torch.searchsorted(torch.arange(6.0), x, side="right"), x.new_ones((2, 2)), torch.stack([x, x], -1), x.std(1, correction=0),
                x.flatten().roll((1, 2), (0, 0)), x.sum((0, 1), keepdim=True),
                torch.complex(x, x).abs(), nn.functional.interpolate(x[None, None], scale_factor=2.0, mode="bilinear"), x.split([1, x.shape[0] - 1]))


class Sizes(nn.Module):
    """Arithmetic of sizes that are known only when it runs."""
    def forward(self, x, y):
        b, n = x.shape
        half = b // 2
        return x.view(b * n), torch.zeros(b + 1, n), x[: half + 1], y.expand(b, 3) * (b - 1) / 2, x.reshape(-1, b).sum(0)


class Keywords(nn.Module):
    def forward(self, x, *rest, scale, bias=None, mode="add", point):
        y = x * scale + rest[0] if mode == "add" else x
        return Point(y + point.left, y if bias is None else y + bias + rest[1] * point.right)


class Mutates(nn.Module):
    """Changes a buffer and an input; batch norm in training changes its statistics."""
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(3)
        self.conv = nn.Conv2d(3, 2, 3, bias=False)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        x.mul_(2)
        y = self.conv(self.bn(x))
        self.seen.add_(y.mean((0, 2, 3)))
        return y + self.seen[:, None, None], x.sum()


class Layout(nn.Module):
    """What every layout has to hold: weights, buffers of both kinds, ties, nesting, a module called twice."""
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
        self.block = Block()
        self.head = nn.Linear(4, 4)
        self.head.weight = self.block.lin.weight
        self.turned = nn.Parameter(torch.randn(4, 3).t())

    def forward(self, x, image):
        y = self.block(self.block(x))
        return (self.head(y), {"turned": x[:, :3] @ self.turned, "features": self.features(image)})


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.linear.weight, 10)

    def forward(self, x):
        return self.linear(self.linear(x))


class Branches(nn.Module):
    """Operators that call graphs, and what a trace of values could not hold."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x, xs):
        y = torch.cond(x.sum() > 0, lambda v: self.lin(v).sin(), lambda v: v.cos(), (x,))
        with torch.no_grad():
            z = y * 2
        n, doubled = while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 2 + x), (torch.zeros((), dtype=torch.int64), x))
        carry, products = scan(lambda c, v: (c + v, c * v), torch.zeros(3), xs, dim=0)
        return z, torch.cond(x.sum() < 0, lambda v: v + 1, lambda v: v - 1, (x,)), n, doubled, carry, products, mapped(lambda v, w: v.sin() + w, xs, x[0])


class Decomposed(nn.Module):
    """What PT2E quantization leaves: quantize and dequantize as operators that are written in Python."""
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 127, (6, 4), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(6) / 50)
        self.register_buffer("columns", torch.rand(4) / 50)
        self.register_buffer("zeros", torch.zeros(6, dtype=torch.int64))
        self.register_buffer("shifts", torch.tensor([3, 0, -2, 1]))
        self.register_buffer("scale", torch.tensor(0.037))
        self.register_buffer("zero", torch.tensor(7))

    def forward(self, x):
        ops = torch.ops.quantized_decomposed
        q = ops.quantize_per_tensor(x, 0.03, 11, 0, 255, torch.uint8)
        y = ops.dequantize_per_tensor(q, 0.03, 11, 0, 255, torch.uint8)
        w = ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -128, 127, torch.int8)
        y = nn.functional.linear(y, w)
        t = ops.quantize_per_tensor.tensor(y, self.scale, self.zero, -128, 127, torch.int8)
        u = ops.dequantize_per_tensor.tensor(t, self.scale, self.zero, -128, 127, torch.int8)
        c = ops.quantize_per_channel(x, self.columns, self.shifts, 1, -128, 127, torch.int8)
        return q, u, c, ops.dequantize_per_channel(c, self.columns, self.shifts, 1, -128, 127, torch.int8), ops.dequantize_per_tensor(
            q, 0.03, 11, 0, 255, torch.uint8, out_dtype=torch.bfloat16)


BATCH = {0: Dim("b", min=2, max=64)}


def models():
    """name -> model, arguments, keyword arguments, dynamic shapes, whether to decompose too"""
    x = torch.randn(3, 4)
    nested = {"q": torch.randn(3, 8), "p": (torch.randn(1), torch.randn(1))}
    return {
        "nested": (Nested(), (x, nested), {"k": None}, {"x": BATCH, "d": {"q": BATCH, "p": (None, None)}, "k": None}, False),
        "views": (Views(), (torch.randn(2, 3),), {}, (BATCH,), True),
        "types": (Types(), (torch.randn(4),), {}, None, False),
        "arguments": (Arguments(), (torch.randn(4, 4), torch.tensor([1, 0, 3])), {}, None, True),
        "sizes": (Sizes(), (torch.randn(4, 3), torch.randn(1, 3)), {}, ({0: Dim.AUTO}, None), True),
        "keywords": (Keywords(), (x, torch.randn(4), torch.randn(1)), {"scale": torch.randn(4), "bias": torch.randn(4), "mode": "add",
                                                                       "point": Point(torch.randn(4), torch.randn(1))}, None, True),
        "mutates": (Mutates(), (torch.randn(2, 3, 6, 6),), {}, None, True),
        "branches": (Branches(), (torch.randn(2, 3), torch.randn(4, 3)), {}, None, False),
        "decomposed": (Decomposed(), (x,), {}, (BATCH,), False),
        "twice": (Twice(), (torch.full((1, 1), 2.0),), {}, None, False),
        "layout": (Layout(), (x, torch.randn(3, 1, 6, 6)), {}, (BATCH, BATCH), True),
    }


def flat(value):
    leaves = torch.utils._pytree.tree_leaves(value)
    return [(v if v.dtype not in (torch.bfloat16,) else v.float()).numpy() for v in leaves if isinstance(v, torch.Tensor)]


def save(program, stem, arguments, keywords):
    """The archive, its inputs by placeholder and what it computes with them."""
    torch.export.save(program, stem + ".pt2")
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    leaves = torch.utils._pytree.tree_leaves((arguments, keywords))
    inputs = {n: v.clone() for n, v in zip(names, leaves, strict=True) if isinstance(v, torch.Tensor)}
    numpy.savez(stem + "-in.npz", **{n: v.numpy() for n, v in inputs.items()})
    with torch.no_grad():
        numpy.savez(stem + "-out.npz", *flat(program.module()(*arguments, **keywords)))


def make(folder, chosen=None):
    torch.set_num_threads(2)
    for name, (model, arguments, keywords, shapes, decompose) in models().items():
        if chosen and name != chosen:
            continue
        if name != "mutates":
            model.eval()
        for form in ("", "-core") if decompose else ("",):
            def fresh(a):
                return torch.utils._pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, a)
            program = torch.export.export(model, fresh(arguments), fresh(keywords), dynamic_shapes=shapes)
            if form:
                program = program.run_decompositions()
            stem = os.path.join(folder, torch.__version__.split("+")[0] if chosen else name + form)
            save(program, stem, fresh(arguments), fresh(keywords))
            if chosen:
                return
            if name == "layout" and not form:     # deflated members are read too
                repack(stem)


def members(path):
    with zipfile.ZipFile(path) as z:
        return {n: z.read(n) for n in z.namelist()}


def write(path, contents, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, content in contents.items():
            z.writestr(name, content)


def repack(stem):
    write(stem + "-deflated.pt2", members(stem + ".pt2"), zipfile.ZIP_DEFLATED)
    for end in ("-in.npz", "-out.npz"):
        with open(stem + end, "rb") as a, open(stem + "-deflated" + end, "wb") as b:
            b.write(a.read())


class Evil:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.system, (f"touch {self.folder}/ran",)


def saved(value):
    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


def hostile(folder):
    old = members(os.path.join(os.path.dirname(os.path.abspath(__file__)), "pt2", "2.7.1.pt2"))
    old["serialized_state_dict.pt"] = saved({"head.weight": Evil(folder)})
    write(os.path.join(folder, "old.pt2"), old)
    new = members(os.path.join(folder, "twice.pt2"))
    table = next(n for n in new if n.endswith("model_weights_config.json"))
    config = json.loads(new[table])
    config["config"]["linear.weight"]["use_pickle"] = True
    new[table] = json.dumps(config).encode()
    new[table.replace("model_weights_config.json", config["config"]["linear.weight"]["path_name"])] = saved(Evil(folder))
    write(os.path.join(folder, "subclass.pt2"), new)


if __name__ == "__main__":
    torch.manual_seed(7)
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "hostile":
        hostile(sys.argv[2])
    else:
        make(sys.argv[2], "layout")
