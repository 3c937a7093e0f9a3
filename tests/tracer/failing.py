# One model per way that torch.fx gives up, for test_diagnosis.py. GPL-3.0-or-later.
#
# WAYS: name of a function that makes a root whose submodule `blk` fails -> the kind that the tracer should report.
import dataclasses
import functools
import random
import typing

import torch
import torch.nn.functional as F
from torch import nn

WAYS = {}


def way(kind):
    """Registers a forward as `blk` of a root that fails as `kind`."""
    def register(forward):
        name = forward.__name__
        block = type(name.title().replace("_", ""), (nn.Module,), {"forward": forward, "__module__": __name__})

        def make():
            root = Root()
            root.blk = block()
            return root
        WAYS[name] = kind
        globals()[name] = make
        return make
    return register


class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(4, 4)

    def forward(self, x):
        return self.blk(self.conv(x))


# --- branches ---

@way("control_flow")
def branch_on_data(self, x):
    return x * 2 if x.mean() > 0 else x - 1


@way("control_flow")
def branch_statement(self, x):
    if (x > 3).any():
        x = x.clamp(max=3)
    return x


@way("control_flow")
def branch_on_size(self, x):
    if x.shape[0] % 2:
        x = F.pad(x, (0, 0, 0, 1))
    return x


@way("control_flow")
def assertion(self, x):
    assert x.dim() == 2, "two dimensions are needed"
    return x + 1


@way("control_flow")
def maximum(self, x):
    return max(x.shape[0], 3) * x


@way("control_flow")
def while_loop(self, x):
    while x.abs().max() > 1:
        x = x / 2
    return x


# --- length, iteration ---

@way("length")
def length(self, x):
    return x * len(x)


@way("iteration")
def loop_over_rows(self, x):
    return sum(row * 2 for row in x)


@way("iteration")
def star_shape(self, x):
    return x.view(*x.shape[:1], -1)


@way("iteration")
def star_unpack(self, x):
    first, *rest = x.chunk(2, 1)
    return first + rest[0]


@way("iteration")
def list_of_shape(self, x):
    return x.reshape(list(x.shape) + [1])


# --- numbers ---

@way("number")
def loop_over_size(self, x):
    for i in range(x.size(0)):
        x = x + i
    return x


@way("number")
def integer(self, x):
    return x[:, int(x.shape[0] / 2):]


@way("number")
def floating(self, x):
    return x * float(x.shape[0])


@way("number")
def rounding(self, x):
    return x * round(x.shape[0] / 3)


@way("argument")
def zeros(self, x):
    return x.sum() + torch.zeros(x.shape[0], 2)


@way("number")
def tensor_of_size(self, x):
    return x * torch.tensor(x.shape[0])


@way("data_dependent")
def range_of_data(self, x):
    for i in range(int(x.abs().max())):
        x = x + i
    return x


@way("data_dependent")
def item(self, x):
    return x * [1, 2, 3][(x.sum() > 0).long().item()]


@way("number")
def slice_of_plain_tensor(self, x):
    return x + torch.arange(10.0)[1:x.shape[1] + 1]


@way("argument")
def expand_plain_tensor(self, x):
    return x + torch.ones(4).expand(x.shape[0], 4)


@way("argument")
def limits_of_dtype(self, x):
    return x.clamp(min=torch.finfo(x.dtype).min)


@way("data_dependent")
def count_of_matches(self, x):
    found = (x > 0).nonzero()
    return x * [1, 2, 3, 4, 5, 6, 7, 8, 9][found.shape[0]]


@way("data_dependent")
def count_of_selected(self, x):
    return x[x > 0].sum() * float(x[x > 0].shape[0])


# --- containers and attributes ---

@way("mapping")
def double_star(self, x):
    return F.relu(**x.sin())


@way("item_assignment")
def assign(self, x):
    x[:, 0] = 0
    return x


@way("membership")
def membership(self, x):
    return x * (2 if 2 in x.shape else 1)


@way("mapping")
def items_of_dict(self, x):
    for name, value in x.items():
        x = value
    return x


@way("isinstance")
def check_type(self, x):
    if not isinstance(x, torch.Tensor):
        raise TypeError("a tensor is needed")
    return x + 1


@dataclasses.dataclass
class Batch:
    data: torch.Tensor
    scale: float = 2.0


class UsesBatch(nn.Module):
    def forward(self, batch):
        return batch.data * batch.scale if batch.data.sum() > 0 else batch.data


@way("control_flow")
def dataclass_inside(self, x):
    batch = Batch(x)
    return x if batch.data.sum() > 0 else batch.data


class MakesBatch(nn.Module):
    """A dataclass goes to a leaf: torch 1 cannot hold it, torch 2.13 can."""

    def __init__(self):
        super().__init__()
        self.uses = UsesBatch()

    def forward(self, x):
        return self.uses(Batch(x + 1))


class Opaque:
    def __init__(self, data):
        self.data = data


@way("unsupported")
def custom_result(self, x):
    return Opaque(x)


# --- functions that look into the tensor ---

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2 if x.sum() > 0 else x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 + ctx.saved_tensors[0] * 0


@way("autograd_function")
def autograd_function(self, x):
    return Double.apply(x)


def helper(x):
    return x if x.sum() > 0 else -x


@way("control_flow")
def in_helper(self, x):
    return helper(x) + 1


@way("numpy")
def to_numpy(self, x):
    import numpy
    return x * float(numpy.asarray(x).max())


@torch.jit.script
def scripted_helper(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


@way("scripted")
def calls_script(self, x):
    return scripted_helper(x, 2)


@way("text")
def key_of_text(self, x):
    return {"4": 2}[str(x.shape[1])] * x


@way("index")
def index_of_list(self, x):
    return [1, 2, 3][x.shape[0]] * x


# --- signatures of the root ---

class StarRoot(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair()

    def forward(self, *xs):
        return self.pair(*xs)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y=None, scale=1.0):
        x = self.linear(x)
        return x * scale if y is None else x * scale + y


class KeywordRoot(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair()

    def forward(self, x, **more):
        return self.pair(x, **more)


def decorated(forward):
    @functools.wraps(forward)
    def wrapper(self, *args, **kwargs):
        kwargs["scale"] = kwargs.get("scale") or 2.0
        return forward(self, *args, **kwargs)
    return wrapper


class Decorated(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @decorated
    def forward(self, x, y: typing.Optional[torch.Tensor] = None, scale=None, **more):
        x = self.linear(x) * scale
        return {"out": x if y is None else x + y}


class Optional(nn.Module):
    """Tests its optional arguments."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, flag=False, mask=None):
        x = self.linear(x)
        if flag:
            x = x + 1
        return x if mask is None else x * mask


class Flag(nn.Module):
    def forward(self, x, flag):
        return x * 2 if flag else x


class ListInput(nn.Module):
    """Its submodule takes a list of tensors and a dict."""

    def __init__(self):
        super().__init__()
        self.head = ListHead()
        self.limit = 3.0

    def forward(self, x):
        if x.sum() > self.limit:
            x = x / 2
        return self.head([x, x + 1], {"scale": x.mean()})


def list_samples():
    return torch.ones(2, 4)


def batch_sample():
    return Batch(torch.ones(2, 4))


def named_samples():
    return {"parts": [torch.ones(2, 4), torch.zeros(2, 4)], "more": {"scale": torch.tensor(2.0)}}


class TakesBatch(nn.Module):
    def forward(self, batch):
        return batch.data * batch.scale


class ListHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, parts, more):
        return [self.linear(part) * more["scale"] for part in parts]


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        return x if x.sum() > 0 else -x


class HalfBranches(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = Branching()

    def forward(self, x):
        return self.second(self.first(x))


class PoolMadeInForward(nn.Module):
    def forward(self, x):
        return nn.MaxPool1d(x.size(-1))(x).flatten(1)


class MakesConstants(nn.Module):
    def forward(self, x):
        return x + torch.arange(4.0) * random.random()


class AsksForItsType(nn.Module):
    """torch.fx follows the branch for what is no tensor."""

    def forward(self, x):
        return x + 1 if isinstance(x, torch.Tensor) else x
