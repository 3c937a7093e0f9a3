# Small models for test_trace.py, one per trap of tracing. GPL-3.0-or-later.
import enum
import math
import typing

import torch
import torch.nn.functional as F
from torch import nn


def module(forward, **members):
    """A class-less module: its forward and its members."""
    made = type(forward.__name__.title().replace("_", ""), (nn.Module,), {"forward": forward, "__module__": __name__})()
    for name, value in members.items():
        setattr(made, name, value)
    return made


def between(block):
    return nn.Sequential(nn.Conv2d(1, 1, 1), block, nn.Conv2d(1, 1, 1))


# --- what torch.fx cannot trace ---

class Blk(nn.Module):
    def forward(self, x):
        return x * 2 if x.mean() > 0 else x - 1


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)
        self.blk = Blk()
        self.tail = nn.Sequential(nn.ReLU(), Blk())

    def forward(self, x):
        return self.tail(self.blk(self.conv(x)))


class Length(nn.Module):
    def forward(self, x):
        return x * len(x)


class Loop(nn.Module):
    def forward(self, x):
        for i in range(x.size(0)):
            x = x + i
        return x


class Iterate(nn.Module):
    def forward(self, x):
        return sum(row * 2 for row in x)


class Integer(nn.Module):
    def forward(self, x):
        return x[:, int(x.shape[0] / 2):]


class Arange(nn.Module):
    def forward(self, x):
        return x + torch.arange(x.shape[1])


class Zeros(nn.Module):
    def forward(self, x):
        return x.sum() + torch.zeros(x.shape[0], 2)


def length():
    return nn.Sequential(Length())


def loop():
    return nn.Sequential(Loop())


def iterate():
    return nn.Sequential(Iterate())


def integer():
    return nn.Sequential(Integer())


def arange():
    return nn.Sequential(Arange())


def zeros():
    return nn.Sequential(Zeros())


def choose(x):
    return x if x.sum() > 0 else -x


class UsesHelper(nn.Module):
    def forward(self, x):
        return choose(x) + 1


class Hidden(nn.Module):
    """Calls a module that torch.nn does not know of."""

    def __init__(self):
        super().__init__()
        self.others = [nn.Linear(2, 2)]

    def forward(self, x):
        return self.others[0](x)


class Broken(nn.Module):
    def forward(self, x):
        return self.nothing(x)


class Loud(nn.Module):
    def forward(self, x):
        print("forward says hello")
        return x + 1


def loud():
    print("make says hello")
    return Loud()


def needs(width):
    return nn.Linear(width, 1)


NUMBER = 3


# --- arguments of forward ---

class Star(nn.Module):
    def forward(self, *a):
        return a[0] + 1


class KeywordOnly(nn.Module):
    def forward(self, x, *, gain=2.0):
        return x * gain


class Unpack(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, 1)
        n, c = x.shape
        return a + b * c


class Defaults(nn.Module):
    def forward(self, x, y=3, mask: typing.Optional[torch.Tensor] = None):
        if mask is not None:
            x = x * mask
        return x + y


class TensorDefault(nn.Module):
    def forward(self, x, bias=torch.tensor([1.0, 2.0])):
        return x + bias


class Nested(nn.Module):
    def forward(self, d: typing.Dict[str, torch.Tensor], n: int = 2) -> typing.Dict[str, torch.Tensor]:
        a, b = d["a"], d["b"]
        return {"sum": a + b, "parts": [a, (b,)], "constants": (3, None, "a", -math.inf, n)}


# --- state ---

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(3, 2)
        self.head = nn.Linear(2, 3, bias=False)
        self.head.weight = self.emb.weight

    def forward(self, x):
        return self.head(self.emb(x))


class Aliased(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = self.a

    def forward(self, x):
        return self.b(self.a(x))


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(self, x):
        return self.inner(self.inner(x))


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pos", torch.ones(2), persistent=False)
        self.register_buffer("p2", torch.arange(4.0).reshape(2, 2).t())
        self.register_parameter("none", None)
        self.plain = torch.full((2,), 5, dtype=torch.float16)

    def forward(self, x):
        return x + self.pos + self.p2 + self.plain + torch.tensor([1.0, 2.0])


# --- arguments of nodes ---

class Mode(enum.Enum):
    FAST = 1


class Pair(typing.NamedTuple):
    left: torch.Tensor
    right: int


class Arguments(nn.Module):
    def forward(self, x):
        x = x[..., 0:-1:2, None]
        x = x.to(torch.float64).to(device=torch.device("cpu")).contiguous(memory_format=torch.contiguous_format)
        x = x + 2 ** 40
        x = x + 2 ** 70
        x = x.clamp(min=1e-45, max=math.inf).masked_fill(x > 1, float("nan"))
        x = F.pad(x, (1, 1), mode="constant")
        x = torch.add(x, 1 + 2j).real
        return Pair(x, 3)


class Training(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(2)

    def forward(self, x):
        return F.dropout(self.bn(x), 0.5, self.training)


class Random(nn.Module):
    def forward(self, x):
        return x + torch.rand(1)


def hooked():
    """On 1, eager gives 30 and a trace gives 3."""
    lin = nn.Linear(1, 1, bias=False)
    nn.init.constant_(lin.weight, 2.0)
    made = nn.Sequential(lin)
    made.register_forward_hook(lambda m, i, o: o * 10)
    lin.register_forward_hook(lambda m, i, o: o + 1)
    return made


def hooked_inside():
    made = nn.Sequential(nn.Sequential(nn.ReLU()))
    made[0].register_forward_pre_hook(lambda m, i: (i[0] * 10,))
    return made


class NoScript(nn.Module):
    """Runs in Python only: TorchScript knows no lambda."""

    def forward(self, x):
        return (lambda y: y * 2)(x) if x.sum() > 0 else x


def opaque():
    return nn.Sequential(NoScript())


made = nn.Sequential(nn.ReLU())
