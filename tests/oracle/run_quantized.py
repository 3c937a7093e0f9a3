"""The quantized graph that tst_interpreter.cpp builds by hand, as torch runs it on every engine: quantized.npz in the folder
given. Weights are made here, per channel where the engine has that. GPL-3.0-or-later."""
import sys

import numpy
import torch
import torch.ao.nn.intrinsic.quantized as nniq
import torch.ao.nn.quantized as nnq

torch.manual_seed(1)
x, w, b = torch.randn(2, 3, 8, 8), torch.randn(6, 3, 3, 3), torch.randn(6)
w1, lw, lb = torch.randn(6, 1, 3, 3), torch.randn(5, 12), torch.randn(5)
arrays = dict(x=x, w=w, b=b, w1=w1, lw=lw, lb=lb)


def packed(weight, engine):
    if engine == "qnnpack":
        return torch.quantize_per_tensor(weight, .02, 0, torch.qint8)
    scales = torch.linspace(.01, .03, weight.shape[0], dtype=torch.float64)
    return torch.quantize_per_channel(weight, scales, torch.zeros(weight.shape[0], dtype=torch.int64), 0, torch.qint8)


for engine in torch.backends.quantized.supported_engines:
    if engine == "none":
        continue
    torch.backends.quantized.engine = engine
    q = torch.quantize_per_tensor(x, .05, 64, torch.quint8)
    conv = nniq.ConvReLU2d(3, 6, 3, stride=2, padding=1)
    conv.set_weight_bias(packed(w, engine), b)
    conv.scale, conv.zero_point = .1, 3
    c = conv(q)
    depthwise = nnq.Conv2d(6, 6, 3, padding=1, groups=6, bias=False)
    depthwise.set_weight_bias(packed(w1, engine), None)
    depthwise.scale, depthwise.zero_point = .2, 60
    d = depthwise(c)
    a = torch.ops.quantized.add(c, d, .25, 40)
    r = torch.ops.quantized.add_relu(a, d, .25, 0)
    k = torch.cat([a, d], 1)
    m = torch.nn.functional.max_pool2d(k, 2)
    p = torch.nn.functional.adaptive_avg_pool2d(m, (1, 1))
    f = torch.flatten(p, 1)
    h = torch.clamp(f, 0., 2.)
    linear = nnq.Linear(12, 5)
    linear.set_weight_bias(packed(lw, engine), lb)
    linear.scale, linear.zero_point = .15, 70
    o = linear(h)
    for name, value in dict(c=c, d=d, a=a, r=r, k=k, m=m, p=p, f=f, h=h, o=o, out=o.dequantize()).items():
        arrays[f"{engine}.{name}"] = value.dequantize() if value.is_quantized else value
numpy.savez(sys.argv[1], **{k: v.contiguous().numpy() for k, v in arrays.items()})
