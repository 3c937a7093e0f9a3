# Models whose texts are hard to print, one trap each. GPL-3.0-or-later.
import collections
import math
import typing

import torch
import torch.fx
import torch.nn.functional as F
from torch import nn

Pair = collections.namedtuple("Pair", "first second")
torch.fx.wrap("helper")
torch.fx.wrap("len")


def helper(x, k=1):
    return x * k


def take(pair):
    return pair.first


torch.fx.wrap("take")


class Values(nn.Module):
    def forward(self, x, y: torch.Tensor, k: int = 3, *, gain: float = 0.1) -> torch.Tensor:
        a = x[..., 1:-1:2, None] + y.to(torch.float64)
        b = a.to(device=torch.device("cpu")).contiguous(memory_format=torch.contiguous_format)
        c = F.pad(b, (1, 1), mode="constant") + 2**40 - 1e-5 * 1e16 + 1e-45 + 123456789012345680.0
        d = torch.zeros((1,), dtype=torch.int8, layout=torch.strided) ** 2
        return helper(c, k=k) @ d / gain


class Strings(nn.Module):
    def forward(self, x):
        return {"it's": x, 'say "hi"': [x, (x,)], "both ' and \"": None, "tab\t\n\\": "é", 1: 1.5, None: True}


class Operators(nn.Module):
    def forward(self, x, y):
        z = -x + (+y) - ~x * y // 2 % 3 << 1 >> y & x | y ^ x
        z = (z < x) + (z <= x) + (z > 1) + (z >= 1) + (z == x) + (z != 2) + z ** y
        z += 1
        z *= y
        return z[0][1, 2], x.shape[0], getattr(x, "data"), len(x)


class Names(nn.Module):
    """Children and arguments that collide with Python."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Conv2d(1, 1, 1)))
        self.register_buffer("input_1", torch.ones(1))
        self.add_module("sp ace", nn.ReLU())
        self.add_module("dash-name", nn.ReLU())

    def forward(self, input, sum, *args, **kwargs):
        y = self.body(input) + self.input_1 + sum
        return getattr(self, "dash-name")(getattr(self, "sp ace")(y)), args, kwargs


class Unused(nn.Module):
    def forward(self, x, m):
        scores = x.masked_fill(m, -math.inf).softmax(-1)
        scores.mean()
        return scores, math.inf


class Annotated(nn.Module):
    def forward(self, x: typing.List[torch.Tensor], n: typing.Optional[int] = None) -> typing.Dict[str, torch.Tensor]:
        return {"out": x[0]}


class Unevaluated(nn.Module):
    """What `from __future__ import annotations` leaves: texts."""

    def forward(self, x: "torch.Tensor", n: "typing.Optional[int]" = None, words: "dict[str, 'Tensor']" = 2) -> "tuple[torch.Tensor, int]":
        return x + 1, words


class Wrapped(nn.Module):
    def forward(self, x):
        return take(Pair(x, (x, 1)))


class Constant(nn.Module):
    def forward(self, x):
        return 3, None, "a", x, x


class Nothing(nn.Module):
    def forward(self, x, y=(1, "a")):
        return None

