"""Writes FILE.npz: inputs and torch's own results for folding BatchNorm and for quantizing."""
import sys

import numpy as np
import torch
from torch.nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights

torch.manual_seed(0)
out = {}


def bn(n):
    return torch.randn(n), torch.rand(n) + 0.1, torch.randn(n), torch.randn(n)


def keep(case, **tensors):
    out.update({f"{case}.{k}": v.detach().numpy() for k, v in tensors.items() if v is not None})


for case, shape, bias in (("conv", (6, 3, 3, 3), False), ("conv_bias", (6, 3, 3, 3), True), ("conv1d", (4, 2, 5), True)):
    w, b = torch.randn(shape), torch.randn(shape[0]) if bias else None
    mean, var, gamma, beta = bn(shape[0])
    fw, fb = fuse_conv_bn_weights(w, b, mean, var, 1e-5, gamma, beta)
    keep(case, w=w, b=b, mean=mean, var=var, gamma=gamma, beta=beta, fw=fw, fb=fb)
w, b = torch.randn(7, 5), torch.randn(7)
mean, var, gamma, beta = bn(7)
fw, fb = fuse_linear_bn_weights(w, b, mean, var, 1e-5, gamma, beta)
keep("linear", w=w, b=b, mean=mean, var=var, gamma=gamma, beta=beta, fw=fw, fb=fb)
for groups in (1, 2):                   # torch's own fold of a grouped transposed convolution is wrong: each group by itself is right
    w, b = torch.randn(4, 6 // groups, 3, 3), torch.randn(6)
    mean, var, gamma, beta = bn(6)
    parts = [fuse_conv_bn_weights(wi, *(t.chunk(groups)[i] for t in (b, mean, var)), 1e-5, *(t.chunk(groups)[i] for t in (gamma, beta)), transpose=True)
             for i, wi in enumerate(w.chunk(groups))]
    keep(f"transposed{groups}", w=w, b=b, mean=mean, var=var, gamma=gamma, beta=beta, fw=torch.cat([p[0] for p in parts]), fb=torch.cat([p[1] for p in parts]))
x = torch.randn(4, 3, 5) * 3
scales, zeros = torch.tensor([0.1, 1 / 3, 0.02], dtype=torch.float64), torch.tensor([0, 3, -5])
tensor = torch.quantize_per_tensor(x, 0.037, 100, torch.quint8)
channel = torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8)
keep("quantize", x=x, tensor=tensor.int_repr(), tensor_back=tensor.dequantize(), channel=channel.int_repr(), channel_back=channel.dequantize())
np.savez(sys.argv[1], **out)
