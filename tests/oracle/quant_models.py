# Models to quantize: (model in eval mode, calibration data, leaves). GPL-3.0-or-later.
import contextlib
import importlib
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))


def spread(model):
    """Running statistics and weights that an untrained model does not have, so that ranges differ by layer."""
    g = torch.Generator().manual_seed(1)
    for m in model.modules():
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            m.running_mean.uniform_(-0.1, 0.1, generator=g)
            m.running_var.uniform_(0.6, 1.4, generator=g)
            with torch.no_grad():
                m.weight.uniform_(0.7, 1.3, generator=g)
                m.bias.uniform_(-0.2, 0.2, generator=g)
    return model.eval()


def torchvision():
    library = torch.library.Library("torchvision", "FRAGMENT")     # PyPI's torchvision beside the CPU torch: its operators do not load
    for op in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):
            library.define(op + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return importlib.import_module("torchvision")


def torchvision_model(name):
    torch.manual_seed(0)
    more = {"init_weights": False, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    return spread(getattr(torchvision().models, name)(weights=None, **more))


def cv(weight, bias=None):
    """A 1x1 convolution with one weight."""
    c = nn.Conv2d(1, 1, 1, bias=bias is not None)
    nn.init.constant_(c.weight, weight)
    if bias is not None:
        nn.init.constant_(c.bias, bias)
    return c


class Blk(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.conv1 = nn.Conv2d(1, 1, 1, bias=False), nn.Conv2d(1, 1, 1, bias=False)

    def forward(self, x):
        return self.conv1(self.conv(x))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.enc2, self.head = Blk(), Blk(), nn.Conv2d(1, 1, 1, bias=False)

    def forward(self, x):
        return self.head(self.enc2(self.enc(x)))


class Net(nn.Module):
    """Modules by name, and a forward over them."""

    def __init__(self, run, **modules):
        super().__init__()
        self.run = run
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, x):
        return self.run(self, x)


class Gate(nn.Module):
    """Branches on its data: cannot be traced, and scripts."""

    def __init__(self):
        super().__init__()
        self.inner = cv(1.0)

    def forward(self, x):
        x = self.inner(x)
        return x * 2 if bool(x.mean() > 0) else x - 1


class Opaque(nn.Module):
    """Neither traced nor scripted."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = factor

    def forward(self, x, **kwargs):
        return x * self.factor if float(x.mean()) > 0 else x


class TwoGates(nn.Module):
    def __init__(self, leaf):
        super().__init__()
        self.a, self.leaf, self.b = cv(1.0), leaf, cv(2.0)

    def forward(self, x):
        return self.b(self.leaf(self.a(x)))


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.eye(2)), nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return F.linear(input=x, weight=self.w, bias=self.b)


class FunctionalConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.eye(2).view(2, 2, 1, 1)), nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return F.conv2d(input=x, weight=self.w, bias=self.b)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.head(y)


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.table(x))


def norm():
    m = nn.Sequential(nn.Linear(2, 4, bias=False), nn.LayerNorm(4))
    m[0].weight.data.copy_(torch.tensor([[1.0, 0], [0, 1], [1, 1], [1, -1]]))
    return m


def odd_names():
    m = nn.Sequential()
    for name in ("class", "lambda", 'a"b', "a\\tb", "it's", "sp ace", "dash-name", "0"):
        m.add_module(name, cv(1.0))
    return m


def ones(features):
    l = nn.Linear(features, 1, bias=False)
    nn.init.constant_(l.weight, 1.0)
    return l


class Scaled(nn.Module):
    """A number among the arguments, with a default: nothing to observe."""

    def __init__(self, conv):
        super().__init__()
        self.conv = conv

    def forward(self, x, scale: float = 0.5):
        return self.conv(self.conv(x) * scale)


X = torch.linspace(-1, 3, 8).view(1, 1, 2, 4)
PAIR = torch.tensor([[1.0, -1.0]])
# name: (model, data, leaves)
SMALL = {
    "nested": (Nested, X, []),
    "residual": (lambda: Net(lambda m, x: m.c(x) + x, c=cv(2.0)), X, []),
    "residual_relu": (lambda: Net(lambda m, x: torch.relu(m.c(x) + x), c=cv(2.0)), X, []),
    "cat": (lambda: Net(lambda m, x: torch.cat([m.a(x), m.b(x)], 1), a=cv(1.0), b=cv(10.0)), X, []),
    "view": (lambda: Net(lambda m, x: m.l(m.c(x).view(x.shape[0], -1)), c=cv(1.0), l=ones(8)), X, []),
    "sequential": (lambda: nn.Sequential(cv(1.0), nn.ReLU()), X, []),
    "odd_names": (odd_names, X, []),
    "zeros": (lambda: Net(lambda m, x: m.c(x * 0), c=cv(2.0)), X, []),
    "bad_data": (lambda: Net(lambda m, x: m.c(x), c=cv(2.0)),
                 torch.cat([X, torch.full_like(X, float("nan")), torch.full_like(X, float("inf"))]), []),
    "sigmoid": (lambda: Net(lambda m, x: torch.sigmoid(m.c(x)), c=cv(1.0)), X, []),
    "tanh": (lambda: Net(lambda m, x: torch.tanh(m.c(x)), c=cv(1.0)), X, []),
    "softmax": (lambda: nn.Sequential(cv(1.0), nn.Softmax(1)), X, []),
    "alpha": (lambda: Net(lambda m, x: torch.add(m.c(x), x, alpha=2), c=cv(1.0)), X, []),
    "tiny": (lambda: nn.Sequential(cv(1e-7, 5.0)), torch.full((1, 1, 1, 1), 0.01), []),
    "masked": (lambda: Net(lambda m, x: m.c(x).masked_fill(x > 0, float("-inf")), c=cv(1.0)), X, []),
    "leaf": (lambda: TwoGates(Gate()), X, ["leaf"]),
    "opaque": (lambda: TwoGates(Opaque()), X, ["leaf"]),
    "keywords": (Functional, PAIR, []),
    "keywords_conv": (FunctionalConv, PAIR.view(1, 2, 1, 1), []),
    "lstm": (Lstm, torch.linspace(-1, 1, 6).view(3, 1, 2), []),
    "embedding": (Embed, torch.tensor([[0, 1, 2]]), []),
    "gelu": (lambda: Net(lambda m, x: F.gelu(m.c(x)), c=cv(1.0)), X, []),
    "norm": (norm, PAIR, []),
    "number": (lambda: Scaled(cv(1.0)), X, []),
    "drop_path": (lambda: nn.Sequential(cv(1.0), torchvision().ops.StochasticDepth(0.1, "row"), cv(2.0)), X, []),
}


def make(name):
    g = torch.Generator().manual_seed(0)
    if name == "demo":
        sys.path.insert(0, os.path.join(HERE, "../../resources/demo"))
        import digits_net
        import numpy as np
        data = torch.from_numpy(np.load(os.path.join(HERE, "../../resources/demo/calib.npy"))[:32].astype("float32"))
        return digits_net.make().eval(), data, ["gain"]
    if name in SMALL:
        torch.manual_seed(0)
        build, data, leaves = SMALL[name]
        return build().eval(), data, leaves
    return torchvision_model(name), torch.randn(8, 3, 64, 64, generator=g), []
