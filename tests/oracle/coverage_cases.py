"""Calls that torch's testing database has no samples of: modules, functions, indexing, operators of Python. GPL-3.0-or-later."""
import builtins
import math
import operator

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

# Classes of torch.nn that are never the target of a call_module: bases, containers, and what needs several devices.
NO_LEAF = {"Container", "DataParallel", "Module", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase"}

R = torch.randn


def lively(module):
    """Weights that show: norms that scale, biases that are not zero."""
    for m in module.modules():
        for name, p in list(m.named_parameters(recurse=False)):
            if p.is_floating_point() and p.dim() == 1:
                nn.init.normal_(p, 1 if "weight" in name else 0, .2)
        if isinstance(m, (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm)) and m.running_mean is not None:
            m.running_mean.normal_(0, .2)
            m.running_var.uniform_(.5, 1.5)
    return module


def packed(*sizes, lengths=(4, 2, 1)):
    return nn.utils.rnn.pack_padded_sequence(R(*sizes), torch.tensor(lengths))


def modules():
    """(class, constructor arguments, forward arguments, training)"""
    def one(cls, *c_args, x=(), k=None, training=False, **c_kwargs):
        return cls, c_args, c_kwargs, x, k or {}, training
    image, volume, line = R(2, 4, 9, 8), R(1, 4, 6, 6, 6), R(2, 4, 10)
    for d, x in ((1, line), (2, image), (3, volume)):
        for cls in (nn.Conv1d, nn.Conv2d, nn.Conv3d)[d - 1], (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[d - 1]:
            yield one(cls, 4, 6, 3, x=(x,))
            yield one(cls, 4, 6, 3, x=(x[0],), stride=2, groups=2, bias=False)
        up = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[d - 1]
        size = tuple(2 * s for s in x.shape[2:])
        yield one(up, 4, 3, 3, x=(x, size), stride=2, padding=1)
        yield one(up, 4, 3, 3, x=(x,), k={"output_size": [*x.shape[:1], 3, *size]}, stride=2, padding=1)
        pool = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[d - 1]
        y, i = pool(2, return_indices=True)(x)
        unpool = (nn.MaxUnpool1d, nn.MaxUnpool2d, nn.MaxUnpool3d)[d - 1]
        yield one(unpool, 2, x=(y, i))
        yield one(unpool, 2, x=(y, i), k={"output_size": x.shape})
        yield one(unpool, 2, x=(y, i, x.shape[2:]))
        yield one(pool, 2, x=(x,), return_indices=True)
        yield one((nn.LPPool1d, nn.LPPool2d, nn.LPPool3d)[d - 1], 2, 2, x=(x,))
        for mode in ("nearest", "nearest-exact", ("linear", "bilinear", "trilinear")[d - 1]) + (("bicubic",) if d == 2 else ()):
            yield one(nn.Upsample, x=(x,), scale_factor=1.7, mode=mode)
            yield one(nn.Upsample, x=(x,), size=7, mode=mode)
            if "nearest" not in mode:
                yield one(nn.Upsample, x=(x,), scale_factor=2, mode=mode, align_corners=True)
            yield one(nn.Upsample, x=(x,), scale_factor=1.7, mode=mode, recompute_scale_factor=True)
        for batch in ((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[d - 1], (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)[d - 1]):
            for training in (False, True):
                yield one(batch, 4, x=(x,), training=training)
                yield one(batch, 4, x=(x,), training=training, affine=True, track_running_stats=True, momentum=None)
                yield one(batch, 4, x=(x,), training=training, affine=False, track_running_stats=False)
        yield one((nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)[d - 1], 4, x=(x[0],))
        yield one((nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)[d - 1], .4, x=(x,), training=True)
        yield one((nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d)[d - 1], 1, x=(x,))
        yield one((nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d)[d - 1], 1, x=(x,))
        for lazy in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm"):
            yield one(getattr(nn, f"Lazy{lazy}{d}d"), *((5, 3) if "Conv" in lazy else ()), x=(x,))
    yield one(nn.LazyLinear, 3, x=(line,))
    yield one(nn.SyncBatchNorm, 4, x=(image,))
    for cls in (nn.Dropout, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.RReLU):
        for inplace in (False, True):
            for training in (False, True):
                yield one(cls, x=(image,), inplace=inplace, training=training)
    yield one(nn.ChannelShuffle, 2, x=(image,))
    yield one(nn.PixelShuffle, 2, x=(image,))
    yield one(nn.PixelUnshuffle, 2, x=(R(2, 4, 8, 6),))
    yield one(nn.Flatten, x=(image,))
    yield one(nn.Unflatten, 1, (2, 2), x=(image,))
    yield one(nn.Fold, (4, 5), (2, 2), x=(R(1, 12, 12),))
    yield one(nn.Unfold, (2, 3), x=(image,), dilation=2, padding=1, stride=2)
    yield one(nn.FractionalMaxPool2d, 3, x=(image,), output_size=(4, 3))
    yield one(nn.FractionalMaxPool2d, 2, x=(image,), output_ratio=(.5, .6), return_indices=True)
    yield one(nn.FractionalMaxPool3d, 2, x=(volume,), output_size=3)
    yield one(nn.UpsamplingBilinear2d, x=(image,), scale_factor=2)
    yield one(nn.UpsamplingNearest2d, x=(image,), size=(5, 6))
    yield one(nn.CrossMapLRN2d, 3, x=(image,))
    yield one(nn.LocalResponseNorm, 3, x=(image,))
    yield one(nn.RMSNorm, 8, x=(image,))
    yield one(nn.PairwiseDistance, x=(R(3, 4), R(3, 4)), p=1.5, keepdim=True)
    yield one(nn.CosineSimilarity, 1, x=(R(3, 4), R(3, 4)))
    yield one(nn.Softmax, x=(line,))
    yield one(nn.Softmin, x=(line,), dim=1)
    yield one(nn.Softmax2d, x=(image,))
    yield one(nn.Threshold, .1, 2., x=(line,), inplace=True)
    bags = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
    for mode in ("sum", "mean", "max"):
        yield one(nn.EmbeddingBag, 10, 3, mode=mode, x=(bags, torch.tensor([0, 4])))
        yield one(nn.EmbeddingBag, 10, 3, mode=mode, x=(bags.reshape(2, 4),), padding_idx=4)
    yield one(nn.EmbeddingBag, 10, 3, mode="sum", x=(bags,), k={"offsets": torch.tensor([0, 4, 8]), "per_sample_weights": R(8)}, include_last_offset=True)
    yield one(nn.EmbeddingBag, 10, 3, max_norm=1., x=(bags, torch.tensor([0, 4])))
    yield one(nn.Embedding, 10, 3, padding_idx=2, x=(bags,))
    yield one(nn.Embedding, 10, 3, max_norm=1., x=(bags,))
    # recurrent
    x = R(4, 3, 5)
    for cls, more in ((nn.LSTM, {}), (nn.GRU, {}), (nn.RNN, {}), (nn.RNN, {"nonlinearity": "relu"}), (nn.LSTM, {"proj_size": 2})):
        for extra in ({}, {"batch_first": True}, {"bidirectional": True, "num_layers": 2}, {"bias": False}, {"num_layers": 2, "dropout": .4}):
            yield one(cls, 5, 6, x=(x,), **more, **extra)
        yield one(cls, 5, 6, x=(x[0],), **more)
        yield one(cls, 5, 6, x=(x,), num_layers=2, dropout=.4, training=True, **more)
        h = R(1, 3, 2 if more.get("proj_size") else 6)
        state = (h, R(1, 3, 6)) if cls is nn.LSTM else h
        yield one(cls, 5, 6, x=(x, state), **more)
        yield one(cls, 5, 6, x=(x,), k={"hx": state}, **more)
        yield one(cls, 5, 6, x=(x[:, 0], tuple(s[:, 0] for s in state) if cls is nn.LSTM else state[:, 0]), **more)
        yield one(cls, 5, 6, x=(packed(4, 3, 5),), **more)
        yield one(cls, 5, 6, x=(packed(4, 3, 5), state), bidirectional=False, **more)
    for cls in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        yield one(cls, 5, 6, x=(x[0],))
        yield one(cls, 5, 6, x=(x[0, 0],), bias=False)
        h = R(3, 6)
        yield one(cls, 5, 6, x=(x[0], (h, R(3, 6)) if cls is nn.LSTMCell else h))
    yield one(nn.RNNCell, 5, 6, x=(x[0],), nonlinearity="relu")
    # attention
    s, t = R(5, 3, 8), R(7, 3, 8)
    mask, padding = torch.triu(torch.ones(5, 5), 1).bool(), torch.tensor([[0, 0, 0, 0, 1]] * 3).bool()
    for kw in ({}, {"batch_first": True}, {"bias": False}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 4, "vdim": 6}):
        if "kdim" in kw:
            yield one(nn.MultiheadAttention, 8, 2, x=(s, R(7, 3, 4), R(7, 3, 6)), **kw)
            continue
        for training in (False, True):
            yield one(nn.MultiheadAttention, 8, 2, x=(s, s, s), training=training, dropout=.2 if training else 0., **kw)
            yield one(nn.MultiheadAttention, 8, 2, x=(s, s, s), k={"need_weights": False}, training=training, **kw)
    yield one(nn.MultiheadAttention, 8, 2, x=(s, t, t), k={"average_attn_weights": False})
    yield one(nn.MultiheadAttention, 8, 2, x=(s, s, s), k={"attn_mask": mask, "key_padding_mask": padding})
    yield one(nn.MultiheadAttention, 8, 2, x=(s, s, s), k={"attn_mask": mask, "is_causal": True, "need_weights": False})
    yield one(nn.MultiheadAttention, 8, 2, x=(s[:, 0], s[:, 0], s[:, 0]))
    yield one(nn.MultiheadAttention, 8, 2, x=(s[:, 0], s[:, 0], s[:, 0]), batch_first=True)
    for training in (False, True):
        for kw in ({}, {"batch_first": True}, {"norm_first": True}, {"activation": "gelu"}, {"batch_first": True, "norm_first": True, "bias": False}):
            yield one(nn.TransformerEncoderLayer, 8, 2, 16, x=(s,), training=training, **kw)
            yield one(nn.TransformerDecoderLayer, 8, 2, 16, x=(s, t), training=training, **kw)
        yield one(nn.TransformerEncoderLayer, 8, 2, 16, x=(s,), k={"src_mask": mask, "src_key_padding_mask": padding}, training=training)
        yield one(nn.TransformerEncoderLayer, 8, 2, 16, x=(s,), k={"src_mask": mask, "is_causal": True}, training=training)
        yield one(nn.TransformerEncoderLayer, 8, 2, 16, x=(R(5, 5, 8),), k={"src_mask": mask}, batch_first=True, training=training)
        yield one(nn.TransformerDecoderLayer, 8, 2, 16, x=(s, t), k={"tgt_mask": mask, "tgt_key_padding_mask": padding}, training=training)
        yield one(nn.TransformerEncoder, nn.TransformerEncoderLayer(8, 2, 16), 2, x=(s,), training=training)
        yield one(nn.TransformerEncoder, nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, nn.LayerNorm(8), x=(R(3, 5, 8),), training=training)
        yield one(nn.TransformerEncoder, nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, x=(R(3, 5, 8),), k={"src_key_padding_mask": padding}, training=training)
        yield one(nn.TransformerEncoder, nn.TransformerEncoderLayer(8, 2, 16), 2, x=(s, mask), training=training)
        yield one(nn.TransformerDecoder, nn.TransformerDecoderLayer(8, 2, 16), 2, x=(s, t), training=training)
        yield one(nn.TransformerDecoder, nn.TransformerDecoderLayer(8, 2, 16), 2, nn.LayerNorm(8), x=(s, t, mask), training=training)
        yield one(nn.Transformer, 8, 2, 1, 2, 16, x=(s, t), training=training)
        yield one(nn.Transformer, 8, 2, 1, 1, 16, x=(R(3, 5, 8), R(3, 7, 8)), batch_first=True, training=training)
    # losses
    a, b, target = R(4, 5), R(4, 5), torch.tensor([1, 0, 4, 2])
    for reduction in ("mean", "sum", "none"):
        kw = {"reduction": reduction}
        yield one(nn.L1Loss, x=(a, b), **kw)
        yield one(nn.MSELoss, x=(a, b), **kw)
        yield one(nn.SmoothL1Loss, x=(a, b), beta=.5, **kw)
        yield one(nn.HuberLoss, x=(a, b), delta=.7, **kw)
        yield one(nn.CrossEntropyLoss, x=(a, target), label_smoothing=.1, **kw)
        yield one(nn.CrossEntropyLoss, torch.rand(5), x=(a, b.softmax(1)), **kw)
        yield one(nn.NLLLoss, x=(a.log_softmax(1), target), **kw)
        yield one(nn.NLLLoss, torch.rand(5), x=(a.log_softmax(1), target), ignore_index=0, **kw)
        yield one(nn.BCELoss, x=(a.sigmoid(), b.sigmoid()), **kw)
        yield one(nn.BCEWithLogitsLoss, x=(a, b.sigmoid()), pos_weight=torch.rand(5), **kw)
        yield one(nn.KLDivLoss, x=(a.log_softmax(1), b.softmax(1)), **kw)
        yield one(nn.PoissonNLLLoss, x=(a, b.abs()), full=True, **kw)
        yield one(nn.GaussianNLLLoss, x=(a, b, torch.rand(4, 5)), full=True, **kw)
        yield one(nn.SoftMarginLoss, x=(a, b.sign()), **kw)
        yield one(nn.MultiMarginLoss, x=(a, target), **kw)
        yield one(nn.MultiLabelMarginLoss, x=(a, torch.tensor([[1, 2, -1, 0, 0]] * 4)), **kw)
        yield one(nn.MultiLabelSoftMarginLoss, x=(a, (b > 0).float()), **kw)
        yield one(nn.HingeEmbeddingLoss, x=(a, b.sign()), **kw)
        yield one(nn.MarginRankingLoss, x=(a, b, b.sign()), margin=.2, **kw)
        yield one(nn.CosineEmbeddingLoss, x=(a, b, torch.tensor([1, -1, 1, -1])), margin=.1, **kw)
        yield one(nn.TripletMarginLoss, x=(a, b, R(4, 5)), swap=True, **kw)
        yield one(nn.TripletMarginWithDistanceLoss, x=(a, b, R(4, 5)), **kw)
        yield one(nn.CTCLoss, x=(R(12, 2, 5).log_softmax(2), torch.randint(1, 5, (2, 4)), torch.tensor([12, 10]), torch.tensor([4, 3])), **kw)
        if hasattr(nn, "LinearCrossEntropyLoss"):
            yield one(nn.LinearCrossEntropyLoss, 6, 5, x=(R(4, 6), target), **kw)
    yield one(nn.NLLLoss2d, x=(R(2, 5, 3, 3).log_softmax(1), torch.randint(0, 5, (2, 3, 3))))
    yield one(nn.AdaptiveLogSoftmaxWithLoss, 8, 20, [4, 10], x=(R(6, 8), torch.tensor([0, 3, 5, 12, 19, 9])))
    yield one(nn.AdaptiveLogSoftmaxWithLoss, 8, 20, [4, 10], x=(R(8), torch.tensor(11)), head_bias=True, div_value=2.)
    yield one(nn.Bilinear, 5, 6, 3, x=(R(4, 5), R(4, 6)))
    yield one(nn.Identity, x=(a,))
    yield one(nn.Sequential, nn.Linear(5, 3), nn.ReLU(), x=(a,))


def calls():
    """(opcode, target, args, kwargs, name): what Python itself does."""
    x, y, n = R(3, 4, 5), R(4, 5), torch.arange(4)

    def function(f, *args, **kwargs):
        module = "builtins" if f.__name__ in vars(builtins) and vars(builtins)[f.__name__] is f else f.__module__.lstrip("_")
        return "call_function", f, args, kwargs, f"{module}.{f.__name__}"

    def method(name, *args, **kwargs):
        return "call_method", name, args, kwargs, f"Tensor.{name}"
    indices = [0, -1, True, None, ..., slice(None), slice(1, None), slice(None, -1), slice(0, 3, 2), (0, 1), (0, slice(1, 3)), (..., 0), (None, 0), (slice(None), None, 2), (0, ..., -1),
               [0, 2], [[0, 1], [1, 2]], ([0, 1], [1, 2]), (slice(None), [0, 2]), torch.tensor([0, 2]), torch.tensor(1), torch.tensor([True, False, True]), (..., torch.tensor([0, 2])), (torch.tensor([0, 1]), 1),
               (slice(None), torch.tensor([[0, 1], [1, 2]]), 0), (x > 0), (slice(None), y > 0), (None, None, ...), (True, 0), (torch.tensor(0), slice(None)), [True, False, True], (slice(torch.tensor(1), None),), torch.tensor([1, 2], dtype=torch.uint8)[:0].long(),
               (0, None, torch.tensor([1, 3]), ..., None)]
    for i in indices:
        yield function(operator.getitem, x, i)
        yield method("__getitem__", x, i)
        yield function(operator.setitem, x, i, 2.5)
        yield function(operator.setitem, x, i, torch.tensor(7))
    yield function(operator.setitem, x, (slice(None), 0), R(3, 5))
    yield method("__setitem__", x, x > 0, 0.)
    sequence, table = [1, 2.5, "a", x, None], {"a": 1, "b": x}
    for s in (sequence, tuple(sequence), x.shape):
        for i in (0, -1, slice(1, None), slice(None, None, -1), slice(-2, None)):
            yield function(operator.getitem, s, i)
        yield function(len, s)
        yield function(operator.add, s, s)
        yield function(operator.mul, s, 2)
    yield function(operator.getitem, table, "b")
    yield function(len, x)
    numbers = [(7, 3), (-7, 3), (7, -3), (7.5, 2), (-7.5, 2), (7, 2.5), (True, 2), (2, 0.5)]
    binary = "add sub mul truediv floordiv mod pow eq ne lt le gt ge and_ or_ xor lshift rshift matmul iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift imatmul".split()
    for name in binary:
        f = getattr(operator, name)
        operands = list(numbers)
        if "and" in name or "or" in name or "shift" in name:
            operands += [(n, 1), (1, n), (n, n)]
            if "shift" not in name:
                operands += [(x > 0, y > 0)]
        elif "matmul" in name:
            operands += [(R(4, 4), R(4, 4)), (R(4), R(4)), (x, R(5, 2))]
        else:
            operands += [(x, y), (x, 2), (x, 2.5), (2, x), (2.5, x), (n, 2), (n, 2.5), (2, n), (n, x[:, :, :4]), (x, True), (x.abs(), n[:1]), (n, n + 1), (x > 0, 2), (x, torch.tensor(2.)), (n, torch.tensor(2.)), (1 + 2j, x)]
        for a, b in operands:
            yield function(f, a, b)
    for name in "neg pos abs invert not_ truth index inv".split():
        for a in (3, -2.5, True, n, x, torch.tensor(1)):
            yield function(getattr(operator, name), a)
    for f in (operator.is_, operator.is_not):
        for a, b in ((None, None), (1, None), (x, None), (x, x), (True, True)):
            yield function(f, a, b)
    yield function(operator.contains, [1, 2, 3], 2)
    yield function(operator.contains, n, 2)
    yield function(operator.contains, "abc", "b")
    yield function(operator.concat, [1], [2])
    for name in sorted(n for n in dir(math) if not n.startswith("_")):
        f = getattr(math, name)
        if callable(f):
            for a in ((.5,), (2.25,), (3,), (-1.5,), (3, 2), (2., 3.5), (7, 3, 2), ([1, 2, 3],), ([1.5, 2.],), ((1., 2.), (4., 6.))):
                yield function(f, *a)
    for f, argss in ((int, [(2.7,), (True,), (torch.tensor(3),), (torch.tensor(2.5),), ("12",)]), (float, [(2,), (torch.tensor(3),), ("1.5",)]), (bool, [(2,), ([],), (torch.tensor(0),)]), (complex, [(1, 2)]),
                     (len, [([1, 2],), ("abc",), ({"a": 1},)]), (min, [(1, 2.5), ([3, 1, 2],), ((x.amax(), x.amin()),)]), (max, [(1, 2.5, 2), ([3, 1, 2],)]), (sum, [([1, 2.5],), ([x, x],), (n,), ([1, 2], 5)]), (abs, [(-2,), (-2.5,), (x,)]),
                     (round, [(2.5,), (3.14159, 2), (7,), (x,)]), (pow, [(2, 3), (2., .5), (7, 3, 5), (x, 2)]), (divmod, [(7, 3), (-7.5, 2)]), (range, [(5,), (1, 6, 2), (5, 0, -2)]), (list, [(range(3),), ((1, 2),), (n,)]), (tuple, [([1, 2],), (range(4),)]),
                     (reversed, [([1, 2, 3],)]), (sorted, [([3, 1, 2],)]), (any, [([0, 1],)]), (all, [([0, 1],)]), (zip, [([1, 2], [3, 4])]), (enumerate, [([1, 2],)]), (str, [(3,)]), (dict, [([("a", 1)],)]), (set, []), (isinstance, []), (hash, []),
                     (getattr, [(x, a) for a in "shape dtype device layout ndim T mT H mH real data is_quantized requires_grad itemsize nbytes is_cuda is_sparse grad is_leaf is_cpu is_meta is_nested is_mkldnn is_mps names is_complex".split()]
                      + [(R(3, 4), "T"), (R(3, 4), "H"), (R(3, 4).to(torch.complex64), "imag"), (R(3, 4).to(torch.complex64), "real"), (x, "nothing", 3)])):
        for a in argss:
            yield function(f, *a)
    for name, argss in (("size", [(), (0,), (-1,)]), ("stride", [(), (1,)]), ("dim", [()]), ("ndimension", [()]), ("numel", [()]), ("nelement", [()]), ("element_size", [()]), ("is_contiguous", [()]), ("is_floating_point", [()]), ("is_complex", [()]),
                        ("is_signed", [()]), ("tolist", [()]), ("storage_offset", [()]), ("get_device", [()]), ("float", [()]), ("double", [()]), ("half", [()]), ("bfloat16", [()]), ("int", [()]), ("long", [()]), ("short", [()]), ("char", [()]),
                        ("byte", [()]), ("bool", [()]), ("cfloat", [()]), ("cdouble", [()]), ("chalf", [()]), ("cpu", [()]), ("contiguous", [()]), ("type", [(), (torch.float64,), ("torch.DoubleTensor",)]), ("to", [(torch.float64,), ("cpu",), (torch.device("cpu"), torch.int64), (n,), (torch.float64, False, True)]),
                        ("view", [(3, 20), (-1,), ((12, 5),), (torch.int32,)]), ("reshape", [(3, 20), ((-1, 5),)]), ("permute", [(2, 0, 1), ((2, 1, 0),)]), ("expand", [(2, 3, 4, 5), ((2, 3, 4, 5),), (-1, 4, 5)]), ("repeat", [(2, 1, 1), ((1, 2, 1, 1),)]), ("tile", [(2, 1), ((2,),)]),
                        ("transpose", [(0, 1)]), ("unflatten", [(1, (2, 2)), (1, [2, -1])]), ("flatten", [(), (1,)]), ("split", [(2,), (2, 1), ([1, 3], 1)]), ("chunk", [(2,), (2, 1)]), ("unbind", [(), (1,)]), ("norm", [(), (1,), (2, 1), ("fro",), (float("inf"), (0, 1)), (2, 1, True)]),
                        ("new_zeros", [(2, 3), ((2, 3),)]), ("new_ones", [(2,)]), ("new_full", [((2, 3), 1.5)]), ("new_tensor", [([1, 2],), ([1.5, 2.5],), (3,)]), ("new_empty", [(0,)]), ("item", []), ("detach", [()]), ("clone", [()]), ("requires_grad_", [()]), ("retain_grad", []),
                        ("max", [(), (1,), (1, True), (torch.zeros(4, 5),)]), ("min", [(), (-1,)]), ("sort", [(), (1,), (1, True)]), ("topk", [(2,)]), ("unique", [(), (True, True, True)]), ("unique_consecutive", [()]), ("nonzero", [()]), ("masked_fill", [(x > 0, 2.)]), ("clamp", [(0,), (-1, 1), (None, .5)]),
                        ("sum", [(), (0,), ((0, 1),), (0, True)]), ("mean", [(), (1,), ([0, 1],)]), ("std", [(), (1,), (1, False), (False,)]), ("var", [(), (1, True, True)]), ("any", [(), (1,)]), ("all", [(), (1,)]), ("argmax", [(), (1,), (1, True)]), ("squeeze", [(), (1,), ((0, 1),)]),
                        ("unsqueeze_", [(0,)]), ("squeeze_", [()]), ("t_", []), ("transpose_", [(0, 1)]), ("add_", [(1,), (y,)]), ("fill_", [(2,), (torch.tensor(3.),)]), ("zero_", [()]), ("copy_", [(y,)]), ("uniform_", [(), (0, 2)]), ("normal_", [(), (1, 2)]), ("random_", [(10,), (), (2, 9)]),
                        ("bernoulli_", [(), (.3,)]), ("exponential_", [()]), ("geometric_", [(.4,)]), ("cauchy_", [()]), ("log_normal_", [()]), ("__len__", [()]), ("__add__", [(2,)]), ("__radd__", [(2,)]), ("__rsub__", [(2,)]), ("__rtruediv__", [(2,)]), ("__rpow__", [(2,)]), ("__rmul__", [(2,)]), ("__rfloordiv__", [(2,)]),
                        ("__rmod__", [(2,)]), ("__and__", []), ("__matmul__", [(R(5, 2),)]), ("__rmatmul__", [(R(2, 4),)]), ("__contains__", [(5,)]), ("__iadd__", [(1,)]), ("__neg__", [()]), ("__eq__", [(x,)]), ("__invert__", []), ("__bool__", []), ("__abs__", [()]), ("__pow__", [(2,)]),
                        ("type_as", [(n,)]), ("expand_as", [(R(2, 3, 4, 5),)]), ("view_as", [(R(12, 5),)]), ("reshape_as", [(R(60),)]), ("index_fill", [(1, n[:2], 3.)]), ("scatter", [(1, torch.zeros(3, 4, 5).long(), 2.), (1, torch.zeros(3, 4, 5).long(), x)]), ("map_", []), ("apply_", []),
                        ("repeat_interleave", [(2,), (2, 1), (torch.tensor([1, 2, 0, 1]), 1)]), ("movedim", [(0, 1), ((0, 1), (1, 0))]), ("swapaxes", [(0, 1)]), ("roll", [(1,), ((1, 2), (0, 1))]), ("flip", [(0,), (0, 1), ((0, 1),)]), ("stft", []), ("dsplit", [(5,)]), ("tensor_split", [(2,), ((1, 2),), (torch.tensor([1, 2]),)]),
                        ("data_ptr", []), ("storage", []), ("numpy", []), ("has_names", [()]), ("is_same_size", [(x,)]), ("is_inference", []), ("is_pinned", [()]), ("is_shared", [()]), ("allclose", [(x,)]), ("equal", [(x,)]), ("dim_order", [()]), ("resize_as_", [(y,)]), ("resize_", [(2, 2)]), ("set_", []), ("to_dense", [()]), ("to_sparse", [()]),
                        ("__getattr__", [])):
        for a in argss:
            yield method(name, x, *a)
    yield method("item", torch.tensor(2.5))
    yield method("item", torch.tensor(3))
    yield method("item", torch.tensor(True))
    yield method("random_", n, 3)
    yield method("__and__", n, 1)
    yield method("__invert__", n)
    yield method("t", y)
    yield method("stft", R(64), 16, return_complex=True)
    yield method("to", x, dtype=torch.float64)
    yield method("to", x, device="cpu", dtype=torch.float16)
    yield method("to", x, memory_format=torch.contiguous_format)
    yield method("to", x, y, non_blocking=True)
    yield method("type", x, dtype=torch.float16)
    yield method("max", x, dim=1, keepdim=True)
    yield method("size", x, dim=1)
    yield method("view", x, size=(60,))
    yield method("view", x, dtype=torch.int32)
    yield method("permute", x, dims=(2, 0, 1))
    yield method("reshape", x, shape=(60,))
    yield method("expand", y, size=(2, 4, 5))
    yield method("sum", x, dim=[0, 1])
    yield method("sum", x, axis=1, keepdims=True)
    yield method("clamp", x, min=0)
    yield method("clamp", x, max=y)
    yield method("new_zeros", x, size=(2, 2), dtype=torch.int64)
    yield method("new_tensor", x, [1, 2], dtype=torch.float64)


def functions():
    """(function, args, kwargs) whose calls are recorded."""
    x, y, image, n = R(3, 4), R(3, 4), R(2, 4, 8, 8), torch.arange(6)
    table = [
        (torch.zeros, 2, 3), (torch.zeros, (2, 3)), (torch.ones, 2), (torch.full, (2, 3), 1.5), (torch.full, (2,), True), (torch.arange, 5), (torch.arange, 1, 6, 2), (torch.arange, 0, 1, .25), (torch.linspace, 0, 1, 5), (torch.logspace, 0, 1, 5), (torch.eye, 3), (torch.eye, 3, 4),
        (torch.rand, 2, 3), (torch.randn, (2, 3)), (torch.randint, 5, (2, 3)), (torch.randint, 1, 5, (4,)), (torch.randperm, 7), (torch.rand_like, x), (torch.randn_like, x), (torch.randint_like, x, 5), (torch.bernoulli, x.sigmoid()), (torch.bernoulli, x.sigmoid(), .3), (torch.multinomial, x.sigmoid(), 2),
        (torch.normal, x, y.abs()), (torch.normal, 0., y.abs()), (torch.normal, x, 1.), (torch.normal, 0., 1., (2, 3)), (torch.poisson, x.abs() * 5), (torch.binomial, torch.full((3, 4), 9.), x.sigmoid()), (torch.dropout, x, .5, True), (torch.feature_dropout, image, .5, True), (torch.alpha_dropout, x, .5, True),
        (torch.feature_alpha_dropout, image, .5, True), (torch.zeros_like, x), (torch.ones_like, x), (torch.full_like, x, 3), (torch.empty, 0), (torch.scalar_tensor, 3), (torch.tensor, [1, 2]), (torch.tensor, 2.5), (torch.tensor, [[1., 2.], [3., 4.]]), (torch.tensor, True), (torch.tensor, [1j]), (torch.as_tensor, x), (torch.as_tensor, [1, 2.5]),
        (torch.asarray, [1, 2]), (torch.complex, x, y), (torch.polar, x, y), (torch.is_tensor, x), (torch.is_floating_point, x), (torch.is_complex, x), (torch.is_nonzero, torch.tensor(1)), (torch.is_signed, x), (torch.numel, x), (torch.is_storage, x), (torch.is_conj, x), (torch.is_neg, x), (torch.is_same_size, x, y), (torch.is_inference, x), (torch.is_distributed, x),
        (torch.norm, x), (torch.norm, x, 2), (torch.norm, x, "fro"), (torch.norm, x, "nuc"), (torch.norm, x, 1, 0), (torch.norm, x, "fro", (0, 1)), (torch.norm, x, "nuc", (0, 1)), (torch.norm, x, float("inf")), (torch.norm, x, 0), (torch.norm, x, 3., (0, 1), True), (torch.norm, x, float("-inf"), 1), (torch.norm, x, None, 1),
        (torch.einsum, "ij,kj->ik", x, y), (torch.einsum, "ij,kj", [x, y]), (torch.einsum, x, [0, 1], y, [2, 1], [0, 2]), (torch.einsum, "...i->...", x), (torch.tensordot, x, y, 2), (torch.tensordot, x, y, ([1], [1])), (torch.cdist, x, y), (torch.cdist, x, y, 1.), (torch.cdist, x, y, 2., "donot_use_mm_for_euclid_dist"),
        (torch.stft, R(64), 16), (torch.istft, torch.stft(R(64), 16, return_complex=True, window=torch.ones(16)), 16), (torch.meshgrid, n, n), (torch.meshgrid, [n, n]), (torch.cartesian_prod, n, n), (torch.cartesian_prod, n), (torch.block_diag, x, y), (torch.atleast_1d, torch.tensor(1.), x), (torch.atleast_1d, torch.tensor(1.)), (torch.atleast_2d, x[0]), (torch.atleast_3d, x),
        (torch.atleast_3d, [x, y]), (torch.broadcast_tensors, x, y[:1]), (torch.broadcast_shapes, (3, 1), (4,)), (torch.broadcast_shapes, 3, (2, 1)), (torch.chain_matmul, x, y.t(), x), (torch.split, x, 2), (torch.split, x, [1, 3], 1), (torch.unique, n % 3), (torch.unique, n % 3, True, True, True), (torch.unique, x, True, False, False, 0), (torch.unique_consecutive, n // 2),
        (torch.unique_consecutive, n // 2, True, True), (torch.unravel_index, torch.tensor([3, 7]), (3, 4)), (torch.lu, R(3, 3)), (torch.pca_lowrank, R(6, 4), 2), (torch.svd_lowrank, R(6, 4), 2), (torch.lobpcg, torch.eye(9), 1), (torch.result_type, x, 2), (torch.promote_types, torch.float32, torch.int64), (torch.can_cast, torch.int32, torch.float32),
        (torch.get_default_dtype,), (torch.finfo, torch.float32), (torch.iinfo, torch.int32), (torch.nonzero, x > 0), (torch.where, x > 0), (torch.where, x > 0, x, 1.), (torch.where, x > 0, 1., 2.), (torch.where, x > 0, 1, y), (torch.max, x), (torch.max, x, 1), (torch.max, x, y), (torch.min, x, 0, True), (torch.sum, x, 1), (torch.sum, x, (0, 1), True), (torch.std, x, 1, False),
        (torch.std_mean, x), (torch.var_mean, x, 1), (torch.sort, x), (torch.sort, x, 1, True), (torch.argsort, x), (torch.topk, x, 2), (torch.kthvalue, x, 2), (torch.mode, n), (torch.median, x), (torch.median, x, 1), (torch.quantile, x, .3), (torch.quantile, x, torch.tensor([.1, .9]), 1), (torch.histc, x, 5), (torch.histogram, x, 5), (torch.histogramdd, x, [2, 2, 2, 2]),
        (torch.bincount, n), (torch.bucketize, x, torch.tensor([0., 1.])), (torch.bucketize, .5, torch.tensor([0., 1.])), (torch.searchsorted, torch.tensor([0., 1.]), x), (torch.cat, [x, y]), (torch.cat, (x, y), 1), (torch.concat, [x, y]), (torch.stack, [x, y], 1), (torch.hstack, [x, y]), (torch.clamp, x, 0), (torch.clamp, x, None, 1.), (torch.addmm, x, R(3, 2), R(2, 4)),
        (torch.add, x, 2), (torch.add, x, y), (torch.sub, x, 2.5), (torch.mul, 2, x), (torch.div, x, 2), (torch.pow, x, 2), (torch.pow, 2, x), (torch.pow, x.abs(), y), (torch.remainder, 5, x), (torch.fmod, x, 2), (torch.float_power, x.abs(), 2), (torch.true_divide, x, 3), (torch.floor_divide, x, 3), (torch.bitwise_and, n, 3), (torch.bitwise_left_shift, n, 1), (torch.eq, x, 0), (torch.gt, x, y),
        (torch.lerp, x, y, .3), (torch.lerp, x, y, y), (torch.round, x), (torch.nan_to_num, x), (torch.tril_indices, 3, 4), (torch.triu_indices, 3, 3, 1), (torch.combinations, n), (torch.combinations, n, 3, True), (torch.vander, n), (torch.cov, x), (torch.corrcoef, x), (torch.gradient, x), (torch.gradient, x, ), (torch.trapezoid, x), (torch.cumulative_trapezoid, x), (torch.diff, x), (torch.tensor_split, x, 2, 1),
        (torch.index_select, x, 1, torch.tensor([0, 2])), (torch.take, x, n), (torch.take_along_dim, x, torch.zeros(3, 1).long(), 1), (torch.gather, x, 1, torch.zeros(3, 2).long()), (torch.scatter, x, 1, torch.zeros(3, 2).long(), 1.5), (torch.masked_select, x, x > 0), (torch.repeat_interleave, n, 2), (torch.repeat_interleave, torch.tensor([1, 0, 2])), (torch.flip, x, (0,)), (torch.rot90, x),
        (torch.squeeze, x[None]), (torch.unsqueeze, x, 0), (torch.flatten, image, 1), (torch.unflatten, x, 1, (2, 2)), (torch.reshape, x, (-1,)), (torch.permute, image, (0, 2, 3, 1)), (torch.movedim, image, 1, -1), (torch.narrow, x, 1, 0, 2), (torch.select, x, 1, 0), (torch.chunk, x, 2), (torch.unbind, x), (torch.t, x), (torch.diagonal, x), (torch.diag_embed, x), (torch.tril, x), (torch.clone, x),
        (torch.hann_window, 8), (torch.hamming_window, 8), (torch.blackman_window, 8), (torch.bartlett_window, 8), (torch.kaiser_window, 8), (torch.fft.fft, x), (torch.fft.rfft2, x), (torch.fft.fftfreq, 8), (torch.fft.fftshift, x), (torch.fft.irfftn, torch.fft.rfftn(x)), (torch.linalg.norm, x), (torch.linalg.norm, x, "nuc"), (torch.linalg.norm, x, 2, 1), (torch.linalg.vector_norm, x, 3),
        (torch.linalg.matrix_norm, x), (torch.linalg.multi_dot, [x, y.t(), x]), (torch.linalg.svd, x), (torch.linalg.qr, x), (torch.linalg.inv, torch.eye(3) * 2), (torch.linalg.solve, torch.eye(3) * 2, x), (torch.linalg.eigh, torch.eye(3)), (torch.linalg.cond, torch.eye(3)), (torch.special.expit, x), (torch.special.softmax, x, 1), (torch.special.log_softmax, x, 1), (torch.special.logit, x.sigmoid()),
        (torch._assert, True, "no"), (torch._check, True), (torch.sym_int, 2.5), (torch.sym_float, 2), (torch.sym_max, 2, 3), (torch.sym_min, 2, 3), (torch.sym_not, True), (torch.sym_ite, True, 1, 2), (torch.sym_sum, [1, 2]), (torch.sym_sqrt, 4), (torch.sym_fresh_size, 3), (torch.Size, [1, 2]), (torch.device, "cpu"), (torch.typename, x), (torch.from_numpy, None), (torch.relu, x), (torch.relu_, x), (torch.selu_, x), (torch.celu_, x), (torch.rrelu_, x), (torch.threshold_, x, 0., 1.),
        (torch.conv1d, R(1, 2, 8), R(3, 2, 3)), (torch.conv2d, image, R(3, 4, 3, 3)), (torch.conv_transpose2d, image, R(4, 3, 3, 3)), (torch.conv_tbc, R(5, 2, 4), R(3, 4, 6), R(6)), (torch.convolution, image, R(3, 4, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1), (torch.batch_norm, image, None, None, R(4), R(4), True, .1, 1e-5, False), (torch.layer_norm, image, [8]), (torch.group_norm, image, 2), (torch.instance_norm, image, None, None, None, None, True, .1, 1e-5, False),
        (torch.native_layer_norm, image, [8], None, None, 1e-5), (torch.embedding, R(5, 3), n % 5), (torch.embedding_bag, R(5, 3), n % 5, torch.tensor([0, 3])), (torch.max_pool2d, image, 2), (torch.max_pool1d, image[0], 2), (torch.avg_pool1d, image[0], 2), (torch.adaptive_avg_pool1d, image[0], 2), (torch.adaptive_max_pool1d, image[0], 2), (torch.pixel_shuffle, image, 2), (torch.channel_shuffle, image, 2), (torch.bilinear, x, y, R(2, 4, 4)), (torch.cosine_similarity, x, y), (torch.pairwise_distance, x, y), (torch.pdist, x), (torch.hinge_embedding_loss, x, y.sign()),
        (torch.lstm_cell, R(2, 4), [R(2, 3), R(2, 3)], R(12, 4), R(12, 3)), (torch.gru_cell, R(2, 4), R(2, 3), R(9, 4), R(9, 3)), (torch.rnn_tanh_cell, R(2, 4), R(2, 3), R(3, 4), R(3, 3)), (torch.rnn_relu_cell, R(2, 4), R(2, 3), R(3, 4), R(3, 3)), (torch.lstm, R(5, 2, 4), [R(1, 2, 3), R(1, 2, 3)], [R(12, 4), R(12, 3), R(12), R(12)], True, 1, 0., False, False, False), (torch.gru, R(5, 2, 4), R(1, 2, 3), [R(9, 4), R(9, 3), R(9), R(9)], True, 1, 0., False, False, False),
        (torch.rnn_tanh, R(5, 2, 4), R(1, 2, 3), [R(3, 4), R(3, 3), R(3), R(3)], True, 1, 0., False, False, False), (torch.quantize_per_tensor, x, .1, 10, torch.quint8), (torch.quantize_per_channel, x, torch.tensor([.1, .2, .3]), torch.tensor([0, 1, 2]), 0, torch.qint8), (torch.fake_quantize_per_tensor_affine, x, .1, 0, -128, 127), (torch.fake_quantize_per_channel_affine, x, torch.tensor([.1, .2, .3]), torch.tensor([0, 0, 0]), 0, -128, 127),
        (torch.ops.aten.relu, x), (torch.ops.aten.add, x, 2), (torch.ops.aten.add.Tensor, x, y), (torch.ops.aten.max, x, 1), (torch.ops.aten.max.dim, x, 1), (torch.ops.aten.view, x, [12]), (torch.ops.aten.sym_size.int, x, 1), (torch.ops.aten.size, x), (torch.ops.aten.split, x, 2), (torch.ops.aten.clamp, x, 0), (torch.ops.aten.index, x, [torch.tensor([0, 1]), None]), (torch.ops.aten.slice, x, 1, 0, 2), (torch.ops.aten.linear, x, y), (torch.ops.prims.add, x, y), (torch.ops.aten.to, x, torch.float64), (torch.ops.aten.mean, x, [1], True), (torch.ops.aten.pow, 2, x), (torch.ops.aten.sum.dim_IntList, x, [1]),
        (torch.utils.checkpoint.checkpoint, None), (torch.signal.windows.hann, 8), (torch.signal.windows.gaussian, 8), (torch.functional.norm, x), (torch.functional.split, x, 2),
        (F.pad, image, (1, 1)), (F.pad, image, (1, 1), "reflect"), (F.pad, image, (1, 1), "constant", 2), (F.pad, image, [1, 2, 0, 1], "replicate"), (F.pad, image, (1, 1, 1, 1), "circular"), (F.interpolate, image, None, 2), (F.interpolate, image, 5), (F.interpolate, image, (5, 6), None, "bilinear"), (F.interpolate, image, None, 1.5, "bilinear", True), (F.interpolate, image, None, (1.5, 2.), "bicubic"),
        (F.interpolate, image, None, 1.7, "nearest", None, True), (F.interpolate, image, 4, None, "area"), (F.interpolate, image, None, .5, "area"), (F.interpolate, image, 5, None, "bilinear", None, None, True), (F.interpolate, image, None, .6, "bicubic", False, True, True), (F.interpolate, image[0], 5, None, "linear"), (F.interpolate, image, 5, None, "nearest-exact"), (F.interpolate, R(1, 2, 4, 4, 4), None, 2, "trilinear"), (F.interpolate, R(1, 2, 4, 4, 4), 3, None, "area"),
        (F.upsample, image, None, 2), (F.upsample_nearest, image, None, 2), (F.upsample_bilinear, image, 5), (F.gumbel_softmax, x), (F.gumbel_softmax, x, 1., True), (F.dropout, x), (F.dropout, x, .3, True, True), (F.dropout1d, image[0]), (F.dropout2d, image), (F.dropout3d, image[:, :, None]), (F.alpha_dropout, x, .5, True), (F.feature_alpha_dropout, image, .5, True), (F.rrelu, x, .1, .3, True), (F.softmax, x), (F.softmax, x, 1, 3, torch.float64), (F.log_softmax, x, -1), (F.softmin, x, 1),
        (F.multi_head_attention_forward, R(5, 3, 8), R(5, 3, 8), R(5, 3, 8), 8, 2, R(24, 8), R(24), None, None, False, 0., R(8, 8), R(8)), (F.scaled_dot_product_attention, R(2, 2, 5, 8), R(2, 2, 5, 8), R(2, 2, 5, 8), None, 0., True), (F.scaled_dot_product_attention, R(2, 2, 5, 8), R(2, 2, 6, 8), R(2, 2, 6, 8), torch.rand(5, 6) > .3), (F.scaled_dot_product_attention, R(2, 4, 5, 8), R(2, 2, 5, 8), R(2, 2, 5, 8), None, 0., False),
        (F.one_hot, n), (F.embedding, n % 5, R(5, 3), 1), (F.embedding, n % 5, R(5, 3), None, 1.), (F.embedding_bag, n % 5, R(5, 3), torch.tensor([0, 2])), (F.normalize, x), (F.normalize, x, 1., 0), (F.max_pool2d, image, 2), (F.max_pool2d, image, (2, 3), 1, 1), (F.max_pool2d_with_indices, image, 2), (F.adaptive_max_pool2d, image, 3), (F.adaptive_max_pool2d, image, (3, None), True), (F.adaptive_avg_pool2d, image, (None, 3)), (F.fractional_max_pool2d, image, 2, (3, 3)), (F.fractional_max_pool2d, image, 2, None, .5, True),
        (F.lp_pool1d, image[0], 2., 2), (F.lp_pool2d, image, 2., 2), (F.lp_pool3d, R(1, 2, 4, 4, 4), 2., 2), (F.grid_sample, image, torch.rand(2, 3, 3, 2)), (F.grid_sample, image, torch.rand(2, 3, 3, 2), "bicubic", "reflection", True), (F.affine_grid, R(2, 2, 3), (2, 3, 4, 5)), (F.fold, R(1, 12, 12), (4, 5), (2, 2)), (F.unfold, image, 2), (F.bilinear, x, y, R(2, 4, 4)), (F.glu, x), (F.tanhshrink, x), (F.softsign, x), (F.hardshrink, x), (F.softshrink, x), (F.logsigmoid, x), (F.local_response_norm, image, 3),
        (F.ctc_loss, R(12, 2, 5).log_softmax(2), torch.randint(1, 5, (2, 4)), torch.tensor([12, 10]), torch.tensor([4, 3])), (F.cross_entropy, x, torch.tensor([0, 1, 2])), (F.binary_cross_entropy, x.sigmoid(), y.sigmoid()), (F.binary_cross_entropy, x.sigmoid(), y.sigmoid(), torch.rand(4)), (F.mse_loss, x, y, None, None, "mean", y.abs()), (F.l1_loss, x, y, None, None, "sum", y.abs()), (F.smooth_l1_loss, x, y), (F.huber_loss, x, y), (F.huber_loss, x, y, "mean", 1., y.abs()), (F.triplet_margin_with_distance_loss, x, y, R(3, 4)),
    ]
    for f, *args in table:
        yield f, tuple(args), {}
    named = [
        (torch.zeros, ((2, 3),), {"dtype": torch.int64}), (torch.zeros, (), {"size": (2, 3)}), (torch.arange, (5,), {"dtype": torch.float32, "device": "cpu"}), (torch.add, (x, y), {"alpha": 2}), (torch.add, (), {"input": x, "other": y}), (torch.sum, (x,), {"dim": 1, "dtype": torch.float64}), (torch.sum, (x,), {"axis": 1, "keepdims": True}), (torch.cat, (), {"tensors": [x, y], "dim": 1}),
        (torch.cat, ([x, y],), {"axis": 1}), (torch.add, (x, y), {"out": torch.empty(3, 4)}), (torch.max, (x, 1), {"out": (torch.empty(3), torch.empty(3).long())}), (torch.matmul, (x, y.t()), {"out": torch.empty(0)}), (torch.nonzero, (x > 0,), {"as_tuple": True}), (torch.nonzero, (x > 0,), {"as_tuple": False}), (torch.div, (x, y), {"rounding_mode": "trunc"}), (torch.clamp, (x,), {"max": .5}),
        (torch.stft, (R(64), 16), {"window": torch.hann_window(16), "return_complex": True}), (torch.stft, (R(2, 64), 16, 4), {"center": False, "normalized": True, "return_complex": True}), (torch.stft, (R(64), 16), {"return_complex": True, "pad_mode": "constant", "onesided": False}), (torch.meshgrid, (n, n), {"indexing": "xy"}), (torch.tensor, ([1, 2],), {"dtype": torch.float64}), (torch.tensor, (3,), {"device": "cpu"}),
        (torch.full, (), {"size": (2,), "fill_value": 3}), (torch.rand, (2,), {"dtype": torch.float64}), (torch.randint, (), {"high": 5, "size": (3,)}), (torch.std, (x,), {"correction": 0}), (torch.var, (x,), {"dim": 1, "unbiased": False}), (torch.unique, (n % 3,), {"return_counts": True}), (torch.sort, (x,), {"stable": True, "dim": 0}), (torch.where, (), {"condition": x > 0, "input": x, "other": y}), (torch.einsum, ("ij->i", x), {}),
        (torch.einsum, (), {"equation": "ij->j", "operands": [x]}) if False else (torch.norm, (x,), {"p": 1, "dim": (0,), "keepdim": True, "dtype": torch.float64}), (torch.split, (), {"tensor": x, "split_size_or_sections": 2, "dim": 1}), (torch.tensordot, (x, y), {"dims": 1 if False else 2}), (torch.gradient, (x,), {"spacing": 2., "dim": 1}), (torch.gradient, (x,), {"dim": (0, 1), "edge_order": 1}), (torch.lu, (R(3, 3),), {"get_infos": True}),
        (F.relu, (x,), {"inplace": True}), (F.conv2d, (image,), {"weight": R(3, 4, 3, 3), "padding": "same"}), (F.conv2d, (image, R(3, 4, 3, 3)), {"stride": 2, "padding": 1, "bias": R(3)}), (F.max_pool2d, (), {"input": image, "kernel_size": 2, "stride": None, "return_indices": True}), (F.layer_norm, (image, (8,)), {"weight": R(8), "bias": None}), (F.scaled_dot_product_attention, (R(2, 2, 5, 8), R(2, 2, 5, 8), R(2, 2, 5, 8)), {"scale": .3}),
        (F.scaled_dot_product_attention, (R(2, 4, 5, 8), R(2, 2, 5, 8), R(2, 2, 5, 8)), {"enable_gqa": True}), (F.batch_norm, (image, None, None), {"training": True}), (F.batch_norm, (image, R(4), R(4).abs()), {"training": True, "momentum": .3}), (F.embedding_bag, (n.reshape(2, 3) % 5, R(5, 3)), {"mode": "max"}), (F.multi_head_attention_forward, (R(5, 3, 8), R(5, 3, 8), R(5, 3, 8), 8, 2, R(24, 8), R(24), None, None, False, 0., R(8, 8), R(8)), {"need_weights": False, "training": False}),
    ]
    yield from named
