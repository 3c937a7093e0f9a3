"""Models whose leaf `blk` only Python can run, what eager PyTorch gives for them, and leaves that fail. GPL-3.0-or-later.

worker_models.py OUT NAME...: writes into OUT for each model NAME.fxt and the records "in" and "out"."""
import collections
import dataclasses
import os
import sys
import time

import numpy
import torch
import torch.fx
import torch.nn.functional as F

Pair = collections.namedtuple("Pair", "high low")


@dataclasses.dataclass
class Boxes:
    corners: torch.Tensor
    sizes: list


class Leaf(torch.nn.Module):
    """What does not script: forward with a try around it."""

    def forward(self, *args, **kwargs):
        try:
            return self.work(*args, **kwargs)
        finally:
            pass


class Branch(Leaf):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(6, 6)
        self.norm = torch.nn.BatchNorm1d(6)
        self.register_buffer("scale", torch.rand(6) + 0.5)

    def work(self, x):
        if x.abs().max().item() > 0.5:
            x = self.norm(self.proj(x)) * self.scale
        return x[x.sum(1).argsort()]


class Numpy(Leaf):
    def work(self, x):
        return torch.from_numpy(numpy.sort(x.numpy(), axis=1)), numpy.float64(x.shape[0] / 3), x.numpy().argmax(1)


class Values(Leaf):
    def work(self, x, y, *, mode, shape, scale=1.0, dtype=None, cut=None, table=None, nothing="?"):
        assert mode == "wide" and isinstance(shape, tuple) and nothing is None and table == {"k": [1, 2.5, True]} and cut == slice(0, 2, None)
        return {"sum": (x + y).to(dtype) * scale, "list": [x[cut], 3, "text", None, float("inf")], 7: torch.Size(shape), "c": 1 + 2j, "big": 2**70}


class Strides(Leaf):
    def work(self, x, view, empty, scalar):
        assert not view.is_contiguous() and view.stride() == (2, 6), view.stride()
        assert empty.shape == (0, 3) and scalar.dim() == 0
        last = x.contiguous().to(memory_format=torch.channels_last)
        return last * 2, view.t(), empty.new_zeros(2, 0), scalar + 1, x.expand(2, -1, -1, -1), view


class DTypes(Leaf):
    def work(self, x):
        return (x.half(), x > 0, (x * 10).long(), (x * 10).to(torch.uint8), x.double(), x.bfloat16(), (x * 9).int(), x.to(torch.complex64),
                (x * 5).short(), (x * 5).char())


class TakesTypes(Leaf):
    def work(self, values):
        assert [str(v.dtype) for v in values] == ["torch.float16", "torch.bool", "torch.int64", "torch.float64", "torch.bfloat16", "torch.complex64"]
        return sum(v.to(torch.float64) if not v.is_complex() else v.real.double() for v in values)


class InPlace(Leaf):
    def work(self, x):
        x[:, 0] = 7
        x.numpy()[:, 1] = 9
        return x[:, 1:], x


class Random(Leaf):
    def work(self, x, seed=None):
        if seed is not None:
            torch.manual_seed(seed)
        return x + torch.rand(x.shape)


class Objects(Leaf):
    def work(self, x):
        if isinstance(x, Boxes):
            return x.corners * len(x.sizes)
        if isinstance(x, Pair):
            return x.high - x.low
        return Pair(x.amax(1), x.amin(1)), Boxes(x * 2, [x.shape[0], 3])


class Counter(Leaf):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def work(self, x):
        self.calls += 1
        return x * self.calls


class Net(torch.nn.Module):
    """The leaf between two things that Fuseboard runs itself."""

    def __init__(self, blk, body):
        super().__init__()
        self.pre = torch.nn.Linear(6, 6)
        self.blk = blk
        self.body = body

    def forward(self, x):
        return type(self).bodies[self.body](self, self.pre(x))


def strides(net, x):
    wide = x.reshape(1, 2, 2, 6)
    return net.blk(wide, x.t()[::2], x[:0, :3], x.sum())


def types(net, x):
    out = net.blk(x)
    return net.other([out[0], out[1], out[2], out[4], out[5], out[7]]), out[0], out[1], out[2], out[3], out[4], out[6], out[7], out[8], out[9]


def in_place(net, x):
    out = net.blk(x)
    tail, same = out[0], out[1]
    y = x + 1
    tail.mul_(2)
    return x, tail, same, y


def objects(net, x):
    r = net.blk(x)
    pair, boxes = r[0], r[1]
    return net.blk(pair), boxes.corners + pair.high.unsqueeze(1), net.blk(boxes), boxes.sizes


Net.bodies = {
    "branch": lambda net, x: F.relu(net.blk(x)),
    "twice": lambda net, x: net.blk(net.blk(x) + 1),
    "arrays": lambda net, x: (lambda r: (r[0] * r[1], r[2]))(net.blk(x)),
    "values": lambda net, x: (lambda r: (r["sum"] * 2, r["list"], r[7], r["c"], r["big"]))(net.blk(
        x, y=x * 2, mode="wide", shape=(2, x.shape[1]), scale=0.1, dtype=torch.float64, cut=slice(0, 2), table={"k": [1, 2.5, True]}, nothing=None)),
    "strides": strides,
    "types": types,
    "in_place": in_place,
    "random": lambda net, x: net.blk(F.dropout(net.blk(x, seed=11), 0.5, True)),
    "objects": objects,
}
LEAVES = {"branch": Branch, "twice": Branch, "arrays": Numpy, "values": Values, "strides": Strides, "types": DTypes, "in_place": InPlace, "random": Random,
          "objects": Objects, "counter": Counter}


def make(name):
    torch.manual_seed(4)
    net = Net(LEAVES[name](), name if name != "counter" else "twice")
    if name == "types":
        net.other = TakesTypes()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.uniform_(-1, 1)
    return net


for _name in LEAVES:
    globals()[_name] = lambda name=_name: make(name)


# --- functions that torch.fx.wrap keeps -----------------------------------------------------------------------------------

def busiest(x, *, count=1):
    """Python's alone: the rows with the largest sums, halved where they lie."""
    rows = sorted(range(len(x)), key=lambda i: -float(x[i].sum()))[:count]
    x.mul_(0.5)
    return [x[i] for i in rows], count


torch.fx.wrap("busiest")


class Functions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pre = torch.nn.Linear(6, 6)

    def forward(self, x):
        y = self.pre(x)
        rows = busiest(y, count=2)
        return y + rows[0][0], rows[0][1] * rows[1]


def functions():
    torch.manual_seed(4)
    return Functions()


# --- a model of which only submodules trace ----------------------------------------------------------------------------

class Backbone(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(8)
        self.conv2 = torch.nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x, scale: float = 1.0):
        first = F.relu(self.bn1(self.conv1(x)))
        return {"fine": first, "coarse": F.relu(self.conv2(first)) * scale}


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(8, 4, 1)

    def forward(self, features):
        return F.relu(self.conv(features[0])), features[1]


class Detector(torch.nn.Module):
    """What it does hangs on the values; its backbone and its head do not."""

    def __init__(self):
        super().__init__()
        self.backbone, self.head = Backbone(), Head()
        self.register_buffer("mean", torch.rand(3, 1, 1))

    def forward(self, images):
        features = self.backbone(torch.stack([image - self.mean for image in images]))
        maps = [self.head([f, n]) for n, f in enumerate(features.values())]
        scores = torch.cat([m.flatten(2).amax(2) for m, _ in maps], 1)
        keep = scores > scores.mean()
        return [{"scores": s[k], "labels": k.nonzero()[:, 0]} for s, k in zip(scores, keep)]


def detector():
    torch.manual_seed(5)
    model = Detector()
    model.backbone.bn1.running_mean.uniform_(-1, 1)
    return model


# --- leaves that fail ------------------------------------------------------------------------------------------------

class Raises(Leaf):
    def work(self, x):
        raise ValueError("the third\nline counts")


class Exits(Leaf):
    def work(self, x):
        sys.exit(3)


class Vanishes(Leaf):
    def work(self, x):
        os._exit(9)


class Crashes(Leaf):
    def work(self, x):
        import ctypes
        ctypes.string_at(0)


class Hangs(Leaf):
    def work(self, x):
        if "FUSEBOARD_TEST_PIDS" in os.environ:
            child = os.fork()
            if child:
                with open(os.environ["FUSEBOARD_TEST_PIDS"], "w") as file:
                    file.write(f"{os.getpid()} {child}\n")
        while True:
            time.sleep(0 if x.numel() else 1)


class Talks(Leaf):
    def work(self, x):
        print('{"dict": [["value", 1]]}')
        os.write(1, b"straight to the descriptor\n")
        os.system("echo from a process of its own")
        return x + 1


class Huge(Leaf):
    def work(self, x):
        return torch.ones(40_000_000) * x.sum(), list(range(200_000))


class Sparse(Leaf):
    def work(self, x):
        return x.to_sparse()


class Quantized(Leaf):
    def work(self, x):
        return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)


class Deep(Leaf):
    def work(self, x):
        value = ()
        for _ in range(3000):
            value = (value,)
        return value


FAULTS = (Raises, Exits, Vanishes, Crashes, Hangs, Talks, Huge, Sparse, Quantized, Deep)


def fault(cls):
    net = Net(cls(), "fault")
    Net.bodies["fault"] = lambda net, x: net.blk(x)
    return net


for _cls in FAULTS:
    globals()[_cls.__name__.lower()] = lambda cls=_cls: fault(cls)


def ends_on_import():
    sys.exit("not today")


# --- the oracle ------------------------------------------------------------------------------------------------------

def record(name, out):
    from recorder import Recorder, fuseboard_trace
    leaves = [word for leaf in ("blk", "other") if hasattr(globals()[name](), leaf) for word in ("--leaf", leaf)]
    parts = ["--submodule", "backbone", "--submodule", "head", "--input", "2x3x16x16"] if name == "detector" else []
    if fuseboard_trace.main([f"{os.path.abspath(__file__)}:{name}", "-o", out + ".fxt", *leaves, *parts]):
        raise RuntimeError("it does not trace")
    if name in LEAVES or name == "functions" or parts:
        torch.manual_seed(8)
        x = torch.randn(2, 3, 16, 16) if parts else torch.randn(4, 6)
        with Recorder(out) as recorder, torch.no_grad():
            recorder("in", x)
            recorder("out", globals()[name]().eval()(x.clone()))


def apply_parts(folder, data, out):
    """What the model gives as it is and with the exported parts in it."""
    sys.path.insert(0, folder)
    from model import apply
    x = torch.from_numpy(numpy.load(data))
    plain, mixed = detector().eval(), apply(detector().eval())
    kinds = {type(m).__module__.split(".")[0] + "." + type(m).__name__ for m in mixed.modules()}
    assert not any(k == "worker_models.Backbone" for k in kinds), kinds
    seen = {}
    for name, model in (("float", plain), ("int8", mixed)):
        model.backbone.register_forward_hook(lambda m, args, out, name=name: seen.update({name: out["coarse"]}))
        with torch.no_grad():
            seen[name + ".scores"] = torch.cat([r["scores"] for r in model(x)])
    numpy.savez(out, **{k: v.numpy() for k, v in seen.items()})


if __name__ == "__main__" and sys.argv[1] == "apply":
    apply_parts(*sys.argv[2:])
elif __name__ == "__main__":
    for _name in sys.argv[2:]:
        record(_name, os.path.join(sys.argv[1], _name))
        print(_name)
