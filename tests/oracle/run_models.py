"""Small models for the interpreter: together they call what real graphs call, in every spelling. GPL-3.0-or-later."""
import math
import operator

import torch
import torch.nn.functional as F
from torch import nn

MODELS = {}


def model(make):
    """`NAME()` gives (module, inputs); the tracer loads `NAME` by attribute and gets the module alone."""
    def both():
        torch.manual_seed(3)
        m, inputs = make()
        return m.eval(), inputs
    MODELS[make.__name__] = both

    def alone():
        return both()[0]
    return alone


class Net(nn.Module):
    """Children by name, and a forward given as a function of self and the inputs."""
    def __init__(self, **modules):
        super().__init__()
        for name, m in modules.items():
            setattr(self, name, m)


def net(forward, **modules):
    return type("Net", (Net,), {"forward": forward})(**modules)


def each(modules, *inputs):
    """Every module on the same inputs; a tuple of what they give."""
    names = list(modules)

    def forward(self, x):
        return tuple(getattr(self, n)(x) for n in names)
    return net(forward, **modules), list(inputs)


def lively(m):
    for part in m.modules():
        if isinstance(part, (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm)):
            if part.running_mean is not None:
                part.running_mean.normal_(0, .2)
                part.running_var.uniform_(.5, 1.5)
            if part.affine:
                nn.init.normal_(part.weight, 1, .2)
                nn.init.normal_(part.bias)
    return m


@model
def convolutions():
    m = dict(a=nn.Conv2d(4, 6, 3), b=nn.Conv2d(4, 8, (3, 2), stride=2, padding=1, groups=2, bias=False), c=nn.Conv2d(4, 4, 3, padding="same", dilation=2),
             d=nn.Conv2d(4, 4, 3, padding="valid"), e=nn.Conv2d(4, 4, 3, padding=(1, 2), padding_mode="reflect"),
             f=nn.Conv2d(4, 4, (2, 3), padding="same", padding_mode="circular"), g=nn.Conv2d(4, 4, 3, padding=1, padding_mode="replicate"),
             h=nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), i=nn.Conv2d(4, 4, 3, groups=4))
    return each(m, torch.randn(2, 4, 9, 10))


@model
def convolutions_1d():
    m = dict(a=nn.Conv1d(4, 6, 3, padding=1), b=nn.Conv1d(4, 4, 3, padding="same", padding_mode="reflect"), c=nn.ConvTranspose1d(4, 6, 3, stride=2),
             d=nn.BatchNorm1d(4), e=nn.MaxPool1d(2), f=nn.AvgPool1d(3, 1, 1), g=nn.AdaptiveAvgPool1d(3), h=nn.AdaptiveMaxPool1d(3), i=nn.LPPool1d(2, 3),
             j=nn.InstanceNorm1d(4), k=nn.ConstantPad1d((1, 2), 3.5), s=nn.Dropout1d(), l=nn.ReflectionPad1d(2), m=nn.ReplicationPad1d(1), n=nn.Upsample(scale_factor=2),
             o=nn.Upsample(size=13, mode="linear"), p=nn.LocalResponseNorm(3), q=nn.ZeroPad1d(1), r=nn.CircularPad1d(1))
    m, inputs = each(m, torch.randn(2, 4, 8))
    return lively(m), inputs


@model
def convolutions_3d():
    m = dict(a=nn.Conv3d(3, 6, 3, padding=1), b=nn.ConvTranspose3d(3, 2, 2, stride=2), c=nn.BatchNorm3d(3), d=nn.MaxPool3d(2), e=nn.AvgPool3d(2),
             f=nn.AdaptiveAvgPool3d((1, None, 2)), g=nn.AdaptiveMaxPool3d(2), h=nn.InstanceNorm3d(3, affine=True, track_running_stats=True),
             i=nn.Upsample(scale_factor=2, mode="trilinear"), j=nn.Upsample(scale_factor=(1, 2, 2)), k=nn.ReflectionPad3d(1), l=nn.LocalResponseNorm(2))
    m, inputs = each(m, torch.randn(1, 3, 4, 6, 6))
    return lively(m), inputs


@model
def activations():
    m = dict(a=nn.ReLU(), b=nn.ReLU6(), c=nn.Hardswish(), d=nn.Hardsigmoid(), e=nn.Hardtanh(-2, 1), f=nn.SiLU(), g=nn.GELU(), h=nn.GELU("tanh"),
             i=nn.Sigmoid(), j=nn.Tanh(), k=nn.LeakyReLU(.2), l=nn.PReLU(4), m=nn.ELU(.7), n=nn.SELU(), o=nn.CELU(1.3), p=nn.Softmax(1), q=nn.LogSoftmax(-1),
             r=nn.Softplus(2, 10), s=nn.Softsign(), t=nn.Mish(), u=nn.GLU(1), v=nn.Threshold(.1, -3), w=nn.LogSigmoid(), x=nn.Hardshrink(.3), y=nn.Softshrink(),
             z=nn.Tanhshrink(), aa=nn.Softmin(1), ab=nn.RReLU(), ac=nn.Softmax2d(), ad=nn.Softmax())
    return each(m, torch.randn(2, 4, 5, 3) * 3)


@model
def in_place():
    def forward(self, x):
        y = x + 1
        z = self.a(y)
        w = F.relu6(y - 1, inplace=True)
        y.mul_(2)
        w += z
        v = self.b(w)
        x.add_(v)
        return x, y, z, v, operator.imul(v, 2)
    return net(forward, a=nn.ReLU(inplace=True), b=nn.Hardswish(inplace=True)), [torch.randn(3, 4)]


@model
def norms():
    m = dict(a=nn.BatchNorm2d(4), b=nn.BatchNorm2d(4, affine=False), c=nn.BatchNorm2d(4, track_running_stats=False), d=nn.GroupNorm(2, 4), e=nn.LayerNorm([5, 3]),
             f=nn.LayerNorm(3, elementwise_affine=False), g=nn.InstanceNorm2d(4), h=nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
             i=nn.LocalResponseNorm(3), k=nn.BatchNorm2d(4, momentum=None))
    if hasattr(nn, "RMSNorm"):
        m["j"] = nn.RMSNorm(3)
    m, inputs = each(m, torch.randn(2, 4, 5, 3))
    return lively(m), inputs


@model
def pooling():
    m = dict(a=nn.MaxPool2d(2), b=nn.MaxPool2d(3, 2, 1, ceil_mode=True), c=nn.AvgPool2d(2), d=nn.AvgPool2d(3, 1, 1, count_include_pad=False), e=nn.AdaptiveAvgPool2d(1),
             f=nn.AdaptiveAvgPool2d((None, 2)), g=nn.AdaptiveMaxPool2d((3, 2)), h=nn.LPPool2d(2, 3), i=nn.MaxPool2d((3, 2), stride=(2, 1), dilation=2),
             j=nn.AvgPool2d((2, 3), divisor_override=2), k=nn.AdaptiveMaxPool2d(2, return_indices=True), l=nn.MaxPool2d(2, return_indices=True), m=nn.LPPool2d(3, (2, 3), 2, True))
    return each(m, torch.randn(2, 3, 9, 8))


@model
def shapes_2d():
    m = dict(a=nn.Identity(), b=nn.Flatten(), c=nn.Flatten(0, 1), d=nn.Unflatten(1, (2, 4)), e=nn.Upsample(scale_factor=2), f=nn.Upsample(size=(7, 5), mode="bilinear"),
             g=nn.Upsample(scale_factor=1.5, mode="bilinear", align_corners=True), h=nn.Upsample(scale_factor=(2, 3), mode="bicubic"), i=nn.PixelShuffle(2), j=nn.PixelUnshuffle(2),
             k=nn.ZeroPad2d((1, 2, 3, 0)), l=nn.ReflectionPad2d(1), m=nn.ReplicationPad2d((1, 0, 2, 1)), n=nn.ConstantPad2d(1, -1.5), o=nn.ChannelShuffle(2), p=nn.Dropout(),
             q=nn.Dropout2d(), r=nn.AlphaDropout(), s=nn.UpsamplingNearest2d(scale_factor=2), t=nn.UpsamplingBilinear2d(size=9), u=nn.Unfold(2), v=nn.CircularPad2d(1),
             w=nn.Upsample(size=7, mode="nearest-exact"), x=nn.FeatureAlphaDropout())
    return each(m, torch.randn(2, 8, 4, 6))


@model
def linears():
    def forward(self, x, y, i):
        a = self.a(x)
        b = self.c(x, y)
        return a, self.b(a), b, self.e(i), self.f(i), self.g(i.reshape(-1), torch.tensor([0, 3])), self.h(x, y), self.s(x)
    return net(forward, a=nn.Linear(5, 7), b=nn.Linear(7, 2, bias=False), c=nn.Bilinear(5, 5, 3), e=nn.Embedding(10, 4, padding_idx=-1), f=nn.EmbeddingBag(10, 4),
               g=nn.EmbeddingBag(10, 4, mode="sum"), h=nn.CosineSimilarity(), s=nn.Sequential(nn.Linear(5, 2), nn.ReLU())), \
        [torch.randn(3, 5), torch.randn(3, 5), torch.tensor([[1, 2, 9], [0, 5, 7]])]


@model
def functional():
    def forward(self, x, w):
        b = F.conv2d(x, w, padding=1)
        out = [b, F.relu(b), F.relu6(b), F.hardtanh(b, min_val=-.5, max_val=.5), F.leaky_relu(b, .1), F.elu(b), F.selu(b), F.celu(b), F.silu(b), F.gelu(b, approximate="tanh"),
               F.softmax(b, dim=1), F.log_softmax(b, 1), F.softplus(b), F.hardswish(b), F.hardsigmoid(b), F.mish(b), F.sigmoid(b), F.tanh(b), F.logsigmoid(b), F.glu(b, 1),
               F.softsign(b), F.softmin(b, 1), F.threshold(b, 0., -1.), F.max_pool2d(b, 2), F.max_pool2d(b, 3, stride=2, padding=1), F.avg_pool2d(b, 2), F.adaptive_avg_pool2d(b, (1, 1)),
               F.adaptive_max_pool2d(b, 2), F.max_pool2d(b, 2, return_indices=True)[1], F.dropout(b, .5, self.training), F.dropout2d(b, training=False), F.interpolate(b, scale_factor=2),
               F.interpolate(b, size=(5, 7), mode="bilinear", align_corners=False), F.interpolate(b, size=5, mode="bicubic"), F.interpolate(b, size=3, mode="area"), F.pad(b, (1, 2)),
               F.pad(b, [1, 1, 2, 0], mode="reflect"), F.pad(b, (1, 1), value=2.5), F.normalize(b), F.normalize(b, p=1., dim=-1), F.layer_norm(b, [6]), F.group_norm(b, 2),
               F.instance_norm(b), F.batch_norm(b, b.mean([0, 2, 3]), b.var([0, 2, 3])), F.local_response_norm(b, 3), F.pixel_shuffle(b, 2), F.unfold(b, 2), F.lp_pool2d(b, 2., 2),
               F.conv_transpose2d(x, w.transpose(0, 1), stride=2), F.conv2d(x, weight=w, bias=None, stride=(2, 2)), F.interpolate(b, scale_factor=2., mode="bilinear", antialias=True),
               F.linear(x, x[0, 0], bias=x[0, 0, 0, :5] if False else None), F.scaled_dot_product_attention(x, x, x), F.grid_sample(x, x.flatten(1)[:, :8].reshape(2, 2, 2, 2), align_corners=False),
               F.cosine_similarity(x, x), F.mse_loss(x, x * 2), F.l1_loss(x, x * 2, reduction="sum"), F.one_hot(b.argmax(1), 4), F.channel_shuffle(b, 2), F.prelu(b, w[:, 0, 0, 0])]
        return out
    return net(forward), [torch.randn(2, 3, 5, 6), torch.randn(4, 3, 3, 3)]


@model
def arithmetic():
    def forward(self, x, y):
        return [x + y, x + 2, 2 + x, x - 1, 1 - x, x * y, 3 * x, x / y, 1 / y, x / 2, x // 2, 5 // y, x % 2, x ** 2, 2 ** x, x ** .5, -x, abs(x), +x, x @ y.t(), x > 0, 0 > x, x >= y,
                x == y, x != 1, (x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0), (x > 0) ^ (y > 0), torch.add(x, y, alpha=2), x.add(1), x.sub(y, alpha=3), x.mul(y), x.div(2), torch.div(x, y, rounding_mode="floor"),
                torch.rsub(x, y), x.clamp(-1, 1), torch.clamp(x, min=0), x.clamp(max=.5), torch.clamp(x, 0., 2.), x.clamp_min(0), torch.pow(x, 3), x.exp(), torch.sqrt(y.abs()), x.abs().log1p(), x.sigmoid(),
                x.tanh(), torch.relu(x), x.relu(), x.max(), x.min(1)[0], x.max(dim=1).values, torch.max(x, y), torch.maximum(x, y), x.sum(), x.sum(1), x.sum((0, 1)), x.mean(-1, keepdim=True), torch.mean(x, [0]),
                x.mean(dim=(0, 1)), x.std(1), x.var(0, unbiased=False), x.norm(), x.norm(dim=1), torch.norm(x, p=1, dim=1), x.softmax(-1), x.log_softmax(dim=1), x.argmax(1), x.cumsum(0), x.prod(1), x.amax((0, 1)),
                torch.where(x > 0, x, y), torch.where(x > 0, x, 0.), x.masked_fill(x > 0, -math.inf), x.erf(), torch.einsum("ij,kj->ik", x, y), torch.matmul(x, y.T), torch.bmm(x[None], y.t()[None]), torch.addmm(x @ y.t(), x, y.t()),
                torch.lerp(x, y, .3), x.round(), x.floor(), x.sign(), torch.logsumexp(x, 1), torch.topk(x, 2)[0], x.sort(dim=1, descending=True)[1], torch.linalg.norm(x), torch.linalg.vector_norm(x, dim=1),
                torch.special.expit(x), torch.outer(x[0], y[0]), torch.var_mean(x, 1)[0], x.all(), torch.any(x > 0, 1), torch.tensordot(x, y, ([1], [1])), torch.isnan(x), x.nan_to_num(), torch.cdist(x, y), x.float() + x.double()]
    return net(forward), [torch.randn(3, 4), torch.randn(3, 4)]


@model
def shape_flow():
    def forward(self, x):
        n, c, h, w = x.shape[0], x.size(1), x.shape[2], x.size(-1)
        a = x.view(n, c // 2, 2, h, w).transpose(1, 2).reshape(n, -1, h, w)
        b = x.permute(0, 2, 3, 1).contiguous().view(n, h * w, c)
        d = x.reshape(x.shape[0], -1)
        e = x.new_zeros(n, c, 1, 1) + x.new_zeros(x.shape) + torch.ones(x.size()) + x.new_full((c, h, w), 1.5) + torch.arange(w)
        f = x[:, : c // 2] + x[:, c // 2:]
        g = x[..., ::2, None, 1:-1]
        s = torch.split(x, c // 2, dim=1)
        k = x.chunk(2, 1)
        p = math.sqrt(c) * x
        q = x.flatten(1).unsqueeze(1).expand(-1, 3, -1).squeeze(1)
        t = torch.stack([s[0], k[1]], 0).unbind(0)[1]
        u = torch.cat((x, x), 1).repeat(1, 1, 2, 1).flip(2).roll(1, 3)
        v = x[0][1, 2] + x[-1, 0, 0]
        i = x[:, [0, 2]] + x[:, torch.tensor([1, 0])]
        y = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        z = x.to(torch.float64).float().type_as(x).half().float()
        m = torch.tril(x.new_ones(h, h)).bool()
        r = x.unflatten(1, (2, -1)).movedim(1, 0).select(0, 1).narrow(1, 0, 1)
        o = torch.nn.functional.interpolate(x, size=x.shape[-2:], mode="nearest")
        aa = x.gather(1, x.new_zeros(n, 1, h, w).long()).index_select(2, torch.tensor([0, 1]))
        ab = x.ndim + x.dim() + x.numel() * torch.ones(1)
        ac = x.clone()
        ac[:, 0].fill_(5.)
        ac[:, 1].add_(1)
        ad = x.tile(1, 2).repeat_interleave(2, dim=0).swapaxes(1, 2).unfold(1, 2, 1).diagonal(0, 1, 2)
        return {"a": a, "rest": [b, d, e, f, g, s[0], s[1], k[0], k[1], p, q, t, u, v, i, y[0], y[1], z, m, r, o, aa, ab, ac, ad, x.mT, x.eq(x).int()]}
    return net(forward), [torch.randn(2, 4, 6, 5)]


@model
def recurrent():
    def forward(self, x):
        a, (h, c) = self.a(x)[0], self.a(x)[1]
        b = self.b(x)
        g = self.g(x)
        r = self.r(x)
        q = self.p(x)
        return a, h, c, b[0], b[1], g[0], g[1], r[0], q[0], q[1], self.lc(x[0])[0], self.gc(x[0])
    m = net(forward, a=nn.LSTM(4, 5), b=nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True, dropout=.3), g=nn.GRU(4, 3, bias=False), r=nn.RNN(4, 3, nonlinearity="relu", batch_first=True),
            p=nn.LSTM(4, 5, proj_size=2), lc=nn.LSTMCell(4, 3), gc=nn.GRUCell(4, 3))

    def forward2(self, x):
        y = self.a(x)
        b = self.b(x)
        g = self.g(x)
        r = self.r(x)
        q = self.p(x)
        return y[0], y[1][0], y[1][1], b[0], b[1][0], g[0], g[1], r[0], q[0], q[1][0], self.lc(x[0])[0], self.gc(x[0]), self.a(x, (y[1][0], y[1][1]))[0], g[1] + self.g(x, hx=g[1])[1]
    type(m).forward = forward2
    return m, [torch.randn(6, 3, 4)]


@model
def attention():
    def forward(self, x, y):
        a = self.a(x, x, x, need_weights=False)[0]
        b = self.b(x, y, y)
        c = self.a(x, y, y, need_weights=False)[0]
        d = self.c(x, x, x, average_attn_weights=False)
        e = self.d(x, y, y)
        return a, b[0], b[1], c, d[0], d[1], e[0], self.a(x, x, x, attn_mask=torch.zeros(5, 5))[0]
    return net(forward, a=nn.MultiheadAttention(8, 2, batch_first=True), b=nn.MultiheadAttention(8, 4), c=nn.MultiheadAttention(8, 2, bias=False, batch_first=True),
               d=nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)), [torch.randn(3, 5, 8), torch.randn(3, 5, 8)]


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([.5, -1., 2.]))

    def forward(self, x: torch.Tensor, flip: bool = False):
        if bool(x.sum() > 0) != flip:
            return x * self.weight, x.mean()
        return x, x.max()


@model
def script_leaf():
    def forward(self, x):
        y = self.gate(x)
        return self.fc(y[0]) + y[1], self.gate(x, flip=True)[0]
    m = net(forward, gate=Gate(), fc=nn.Linear(3, 2))
    m.leaves = ["gate"]
    return m, [torch.randn(4, 3)]


@model
def tied_and_constants():
    def forward(self, x):
        return F.linear(self.b(self.a(x)) + self.scale, self.a.weight, None) * self.table + torch.tensor([1., 2., 3., 4.])
    m = net(forward, a=nn.Linear(4, 4), b=nn.Linear(4, 4))
    m.b.weight = m.a.weight
    m.scale = nn.Parameter(torch.randn(4))
    m.register_buffer("table", torch.randn(4), persistent=False)
    return m, [torch.randn(2, 4)]


globals().update({name: (lambda both: lambda: both()[0])(both) for name, both in MODELS.items()})
