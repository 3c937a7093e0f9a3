# Models for the fusion tests: one small question each, under the case of cases it belongs to. GPL-3.0-or-later.
#
# Every function returns (module in eval mode, sample inputs). TWINS are fused by torch.ao.quantization.fuse_fx just as Fuseboard
# must fuse them; DIFFERENT are those where fuse_fx is wrong or stops early, so only the output is compared.
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

ONE = torch.ones(1, 1, 2, 2)
TWINS, DIFFERENT = {}, {}


def twin(make):
    TWINS[make.__name__] = make
    return make


def different(make):
    DIFFERENT[make.__name__] = make
    return make


def cv(w, b=None, i=1, o=1, k=1, **kw):
    """A convolution with constant weight and bias."""
    c = nn.Conv2d(i, o, k, bias=b is not None, **kw)
    nn.init.constant_(c.weight, w)
    if b is not None:
        nn.init.constant_(c.bias, b)
    return c


def bn(n=1, g=1.3, b=-.2, m=.5, v=2., cls=nn.BatchNorm2d, **kw):
    """A BatchNorm with known statistics."""
    t = cls(n, **kw)
    for p, val in ((t.weight, g), (t.bias, b), (t.running_mean, m), (t.running_var, v)):
        if p is not None:
            p.data.fill_(val)
    return t


def randomize(model):
    """Weights and statistics that no two channels share, the same in every process."""
    torch.manual_seed(7)
    for m in model.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm):
            if m.affine:
                nn.init.uniform_(m.weight, .5, 1.5)
                nn.init.normal_(m.bias, 0, .2)
            if m.running_mean is not None:
                m.running_mean.normal_(0, .2)
                m.running_var.uniform_(.5, 1.5)
        elif hasattr(m, "reset_parameters"):
            m.reset_parameters()
    return model.eval()


class Net(nn.Module):
    """Modules by name and a forward given as a function of self and the inputs."""

    def __init__(self, **modules):
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


def net(forward, **modules):
    kind = type("Net", (Net,), {"forward": forward})
    return kind(**modules).eval()


@twin
def conv_bn():
    return randomize(nn.Sequential(nn.Conv2d(3, 5, 3, padding=1, bias=False), nn.BatchNorm2d(5))), [torch.randn(2, 3, 6, 6)]


@twin
def conv_bias_bn_relu():
    return randomize(nn.Sequential(nn.Conv2d(3, 6, 3, groups=3, stride=2), nn.BatchNorm2d(6, eps=1e-3), nn.ReLU(inplace=True))), \
        [torch.randn(2, 3, 7, 7)]


@twin
def conv_relu_1d_3d():
    def forward(self, x, y):
        return self.r(self.a(x)), self.r(self.nb(self.b(y))), self.na(self.a2(x))
    m = net(forward, a=nn.Conv1d(2, 3, 3), a2=nn.Conv1d(2, 3, 1, bias=False), na=nn.BatchNorm1d(3), r=nn.ReLU(), b=nn.Conv3d(1, 2, 2),
            nb=nn.BatchNorm3d(2))
    return randomize(m), [torch.randn(1, 2, 8), torch.randn(1, 1, 4, 4, 4)]


@twin
def linear_forms():
    def forward(self, x):
        return self.d(F.relu(self.c(self.nb(self.b(self.r(self.a(x)))))))
    m = net(forward, a=nn.Linear(4, 5), r=nn.ReLU(), b=nn.Linear(5, 6, bias=False), nb=nn.BatchNorm1d(6), c=nn.Linear(6, 3), d=nn.Linear(3, 2))
    return randomize(m), [torch.randn(3, 4)]


@twin
def transposed():      # FU-04
    c, n = nn.ConvTranspose2d(2, 4, 2, bias=False), nn.BatchNorm2d(4)
    c.weight.data = torch.arange(32.).view(2, 4, 2, 2) / 10
    n.running_mean, n.running_var, n.weight.data = torch.arange(4.) * .1, torch.arange(4.) + 1, torch.arange(4.) + 1
    n.bias.data.zero_()
    return nn.Sequential(c, n).eval(), [torch.ones(1, 2, 1, 1)]


@twin
def spelled_module():      # FU-07, and the next five
    return nn.Sequential(cv(2.), bn(), nn.ReLU()).eval(), [ONE]


@twin
def spelled_functional():
    return net(lambda self, x: F.relu(self.b(self.c(x))), c=cv(2.), b=bn()), [ONE]


@twin
def spelled_functional_in_place():
    return net(lambda self, x: F.relu(self.b(self.c(x)), inplace=True), c=cv(2.), b=bn()), [ONE]


@twin
def spelled_torch():
    return net(lambda self, x: torch.relu(self.b(self.c(x))), c=cv(2.), b=bn()), [ONE]


@twin
def spelled_method():
    return net(lambda self, x: self.b(self.c(x)).relu(), c=cv(2.), b=bn()), [ONE]


@twin
def spelled_clamp():
    return net(lambda self, x: self.b(self.c(x)).clamp(min=0), c=cv(2.), b=bn()), [ONE]


@twin
def other_activations():
    m = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU6(), nn.Conv2d(2, 2, 1), nn.Hardswish(), nn.Conv2d(2, 2, 1),
                      nn.LeakyReLU(), nn.Linear(4, 3), nn.Dropout(), nn.Linear(3, 3), nn.Identity())
    return randomize(m), [torch.randn(1, 1, 4, 4)]


@twin
def one_bn_two_convs():      # FU-01, the control
    return net(lambda self, x, y: (self.b(self.c(x)), self.b(self.d(y))), c=cv(2.), d=cv(3.), b=bn()), [ONE, ONE]


@twin
def conv_twice_same_bn():
    return net(lambda self, x, y: (F.relu(self.b(self.c(x))), F.relu(self.b(self.c(y)))), c=cv(2.), b=bn()), [ONE, 2 * ONE]


@twin
def users_three():      # FU-02
    def forward(self, x):
        y = self.c(x)
        return self.b(y), torch.relu(y), y
    return net(forward, c=cv(-2.), b=bn()), [ONE]


@twin
def users_residual():
    def forward(self, x):
        y = self.c(x)
        return F.relu(y) + y
    return net(forward, c=cv(-2.)), [ONE]


@twin
def bn_before_conv():      # FU-03
    c = nn.Conv2d(1, 1, 3, padding=1, bias=False)
    nn.init.ones_(c.weight)
    return net(lambda self, x: self.c(self.b(x)), b=bn(), c=c), [ONE]


@twin
def bn_relu():
    def forward(self, x):
        y = self.r(self.b(x + 1))
        return F.relu(self.d(y.unsqueeze(2)))
    return randomize(net(forward, b=nn.BatchNorm2d(2), r=nn.ReLU(), d=nn.BatchNorm3d(2))), [torch.randn(1, 2, 3, 3)]


@twin
def affine_false():      # FU-06, and the next three
    return net(lambda self, x: self.b(self.c(x)), c=cv(2.), b=bn(affine=False)), [ONE]


@twin
def large_eps():
    return net(lambda self, x: self.b(self.c(x)), c=cv(2., 1.5), b=bn(eps=1.)), [ONE]


@twin
def no_variance():
    return net(lambda self, x: self.b(self.c(x)), c=cv(2.), b=bn(v=0.)), [ONE]


@twin
def no_gain():
    return net(lambda self, x: self.b(self.c(x)), c=cv(2.), b=bn(g=0.)), [ONE]


@twin
def half_bias():
    return net(lambda self, x: self.b(self.c(x)), c=cv(2., 1.5), b=bn()), [ONE]


@different
def conv_twice_one_bn():      # FU-01: fuse_fx changes the other call too
    return net(lambda self, x, y: (self.b(self.c(x)), self.c(y)), c=cv(2.), b=bn()), [ONE, ONE]


@different
def conv_twice_two_bns():
    return net(lambda self, x, y: (self.b(self.c(x)), self.d(self.c(y))), c=cv(2.), b=bn(), d=bn(g=2.)), [ONE, ONE]


@different
def conv_twice_one_relu():
    return net(lambda self, x, y: (F.relu(self.c(x)), self.c(y)), c=cv(-2.)), [ONE, ONE]


@different
def linear_bn_three_dims():      # FU-05
    a, n = nn.Linear(2, 3, bias=False), nn.BatchNorm1d(3)
    a.weight.data = torch.arange(6.).view(3, 2)
    n.running_mean, n.running_var, n.weight.data = torch.arange(3.), torch.arange(3.) + 1, torch.arange(3.) + 1
    return net(lambda self, x: self.n(self.a(x)), a=a, n=n), [torch.ones(2, 3, 2)]


@different
def linear_bn_relu():      # fuse_fx leaves the ReLU
    return randomize(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU())), [torch.randn(5, 4)]


@different
def transposed_bn_relu():      # fuse_fx makes a BNReLU2d behind an unfolded transposed convolution
    return randomize(nn.Sequential(nn.ConvTranspose2d(4, 6, 2, groups=2), nn.BatchNorm2d(6), nn.ReLU())), [torch.randn(1, 4, 3, 3)]


@different
def functional_conv():      # FU-08: fuse_fx makes a BNReLU2d
    m = net(lambda self, x: F.relu(self.b(F.conv2d(x, self.w))), b=bn())
    m.w = nn.Parameter(torch.full((1, 1, 1, 1), 2.))
    return m, [ONE]


@different
def weight_read_elsewhere():
    def forward(self, x):
        return self.b(self.c(x)) + self.c.weight.sum()
    return net(forward, c=cv(2.), b=bn()), [ONE]


@different
def no_statistics():
    return net(lambda self, x: self.b(self.c(x)), c=cv(2.), b=bn(track_running_stats=False)), [torch.randn(1, 1, 4, 4)]


@different
def changed_in_place_between():      # fuse_fx moves the convolution behind x.add_
    def forward(self, x):
        x = x + 0
        y = self.c(x)
        x.add_(1)
        return F.relu(self.b(y)) + x
    return net(forward, c=cv(2.), b=bn()), [ONE]


def _zoo(name):
    """A torchvision model. PyPI's torchvision misses its compiled operators beside the CPU torch; its models do not need them."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for op in ("nms", "qnms"):
        library.define(op + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision
    return randomize(getattr(torchvision.models, name)())


@twin
def resnet18():
    return _zoo("resnet18"), [torch.randn(1, 3, 64, 64)]


@twin
def mobilenet_v2():
    return _zoo("mobilenet_v2"), [torch.randn(1, 3, 64, 64)]


@twin
def demo():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../resources/demo"))
    import digits_net
    return digits_net.make(), [torch.randn(2, 1, 8, 8)]


ALL = {**TWINS, **DIFFERENT}
