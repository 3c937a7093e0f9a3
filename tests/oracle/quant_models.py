# Models to quantize: (model in eval mode, calibration data, leaves). GPL-3.0-or-later.
import contextlib
import os
import sys

import torch
from torch import nn

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


def torchvision_model(name):
    library = torch.library.Library("torchvision", "FRAGMENT")     # PyPI's torchvision beside the CPU torch: its operators do not load
    for op in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):
            library.define(op + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision
    torch.manual_seed(0)
    more = {"init_weights": False, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    return spread(getattr(torchvision.models, name)(weights=None, **more))


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


class Residual(nn.Module):
    def __init__(self, relu=False):
        super().__init__()
        self.c, self.relu = nn.Conv2d(1, 1, 1, bias=False), relu
        nn.init.constant_(self.c.weight, 2.0)

    def forward(self, x):
        y = self.c(x) + x
        return torch.relu(y) if self.relu else y


class Cat(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 1, 1, bias=False), nn.Conv2d(1, 1, 1, bias=False)
        nn.init.constant_(self.a.weight, 1.0)
        nn.init.constant_(self.b.weight, 10.0)

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x)], 1)


class View(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.l = nn.Conv2d(1, 1, 1, bias=False), nn.Linear(8, 1, bias=False)
        nn.init.constant_(self.c.weight, 1.0)
        nn.init.constant_(self.l.weight, 1.0)

    def forward(self, x):
        y = self.c(x)
        return self.l(y.view(y.shape[0], -1))


SMALL = {"nested": Nested, "residual": Residual, "residual_relu": lambda: Residual(True), "cat": Cat, "view": View}


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
        return SMALL[name]().eval(), torch.linspace(-1, 1, 8).view(1, 1, 2, 4), []
    size = 299 if name == "inception_v3" else 224 if name in ("resnet18", "mobilenet_v2") else 96
    return torchvision_model(name), torch.randn(8, 3, size, size, generator=g), []
