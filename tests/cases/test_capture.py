#!/usr/bin/env python3
# Fuseboard: real cases of tracing and generated code that went wrong for people, each under its name, through the command
# line alone: a file as its user writes it, `fuseboard-cli`, and what is exported run in real PyTorch. TR-06 and CG-06 (edits)
# are tests of tests/passes/tst_edits.cpp. GPL-3.0-or-later.
import importlib.util
import json
import os
import py_compile
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy
import torch
import torch.fx

HERE = os.path.dirname(os.path.abspath(__file__))
CLI = os.environ["FUSEBOARD_CLI"]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "../../resources/python"))
import fuseboard_trace  # noqa: E402

NAN, INF = float("nan"), float("inf")
HEADER = "import torch, math\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


def imported(path):
    name = "case_" + str(abs(hash((path, os.path.getmtime(path)))))
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def cli(self, *arguments, status=0):
        """-> standard output, or standard error where it has to fail"""
        done = subprocess.run([CLI, "--quiet", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder.name,
                              text=True)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}{done.stderr}")
        if status:
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr if status else done.stdout

    def source(self, text):
        with open(self.path("net.py"), "w", encoding="utf-8") as file:
            file.write(HEADER + textwrap.dedent(text))
        return self.path("net.py")

    def module(self, forward, init="pass", name="Net"):
        """A file with one module class, as people write it."""
        return self.source(f"class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                           + textwrap.indent(textwrap.dedent(init).strip(), " " * 8) + "\n\n"
                           + textwrap.indent(textwrap.dedent(forward).strip(), " " * 4) + "\n")

    def trace(self, *arguments, name="Net"):
        answer = json.loads(self.cli("trace", f"net.py:{name}", "-o", "net.fxt", "--python", sys.executable, "--json", *arguments))
        self.assertTrue(answer["ok"], answer)
        return answer

    def refused(self, *arguments, name="Net"):
        done = subprocess.run([CLI, "--quiet", "trace", f"net.py:{name}", "-o", "net.fxt", "--python", sys.executable, "--json", *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder.name, text=True)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertFalse(os.path.exists(self.path("net.fxt")))
        return json.loads(done.stdout)["problems"]

    def by_hand(self, root, graph):
        """The archive of a graph that was built with torch.fx.Graph."""
        graph.lint()
        fuseboard_trace.write_graph(root, graph, self.path("net.fxt"))

    def arrays(self, tensors):
        for i, tensor in enumerate(tensors):
            numpy.save(self.path(f"in{i}.npy"), tensor.numpy())
        return [f"in{i}.npy" for i in range(len(tensors))]

    def run_cli(self, *tensors):
        """The outputs of the interpreter, in order."""
        self.cli("run", "net.fxt", "--input", *self.arrays(tensors), "-o", "out.npz")
        with numpy.load(self.path("out.npz")) as out:
            return [torch.from_numpy(out[key]) for key in out]

    def exported(self, file="net.fxt"):
        """load() of the exported float model.py, which compiles and checks itself."""
        self.cli("export", file, "--form", "python", "-o", "out")
        py_compile.compile(self.path("out/model.py"), cfile=self.path("model.pyc"), doraise=True)
        return imported(self.path("out/model.py")).load()

    def check(self, *tensors, expected=None):
        """Interpreter and export give what the user's own model gives (and what the case says)."""
        eager = imported(self.path("net.py")).Net().eval()
        with torch.no_grad():
            right = eager(*tensors)
            self.assertSame(self.exported()(*tensors), right)
        if expected is not None:
            self.assertSame(right, expected)
        for ours, torchs in zip(self.run_cli(*tensors), self.leaves(right)):
            self.assertSame(ours, torchs)

    @classmethod
    def leaves(cls, value):
        if isinstance(value, (torch.Tensor, int, float)):
            return [torch.as_tensor(value, dtype=torch.float64 if isinstance(value, float) else None)]      # as an array file holds it
        children = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        return [leaf for child in children for leaf in cls.leaves(child)]

    def assertSame(self, ours, right):
        if isinstance(right, torch.Tensor):
            self.assertEqual((tuple(ours.shape), ours.dtype), (tuple(right.shape), right.dtype))
            self.assertTrue(torch.equal(torch.nan_to_num(ours), torch.nan_to_num(right)), f"{ours} is not {right}")
        elif isinstance(right, dict):
            self.assertEqual((type(ours), list(ours)), (type(right), list(right)))
            for key in right:
                self.assertSame(ours[key], right[key])
        elif isinstance(right, (list, tuple)):
            self.assertEqual((type(ours), len(ours)), (type(right), len(right)))
            for a, b in zip(ours, right):
                self.assertSame(a, b)
        else:
            self.assertEqual((type(ours), ours), (type(right), right))

    def forward_of_code(self, *arguments, **names):
        """The function that `code` prints, as Python makes it."""
        code = self.cli("code", "net.fxt", *arguments)
        space = {"torch": torch, "device": torch.device, "inf": INF, "nan": NAN, "NoneType": type(None), **names}
        exec(compile(code, "code", "exec"), space)
        return space["forward"]


class Tracing(Case):
    def test_TR_01(self):
        self.source("""
            class Blk(nn.Module):
                def forward(self, x):
                    return x*2 if x.mean() > 0 else x-1

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    torch.manual_seed(0)
                    self.conv, self.blk, self.out = nn.Conv2d(1, 1, 1), Blk(), nn.Conv2d(1, 1, 1)

                def forward(self, x):
                    return self.out(self.blk(self.conv(x)))
            """)
        found, = self.refused("--input", "1x1x2x2")
        self.assertEqual((found["module"], found["class"], found["line"], found["source"]),
                         ("blk", "net.Blk", 8, "return x*2 if x.mean() > 0 else x-1"))
        self.assertEqual(found["fixes"][0], {"kind": "leaf", "module": "blk", "label": "Mark as leaf"})
        self.assertIn("'blk'", self.refused("--input", "1x1x2x2", "--leaf", "self.blk")[0]["message"])
        self.trace("--input", "1x1x2x2", "--leaf", "blk")
        self.assertEqual(self.cli("print", "net.fxt").count("call_module[target=blk]"), 1)
        self.check(torch.ones(1, 1, 2, 2))
        self.check(-torch.ones(1, 1, 2, 2))

    def test_TR_02(self):
        forwards = {"Length": "x * len(x)", "Loop": "sum(x[i] for i in range(x.size(0)))", "Integer": "x[:, : int(x.shape[0] / 2)]",
                    "Arange": "x + torch.arange(x.shape[1])", "Zeros": "x + torch.zeros(x.shape[0], 2).sum()"}
        self.source("".join(f"class {name}(nn.Module):\n    def forward(self, x):\n        return {what}\n\n" for name, what in forwards.items())
                    + "".join(f"def {name.lower()}():\n    return nn.Sequential({name}())\n\n" for name in forwards))
        for number, (name, what) in enumerate(forwards.items()):
            with self.subTest(name):
                if name == "Arange":            # traces since torch 2: arange takes a proxy
                    self.trace("--input", "2x3", name="arange")
                    os.unlink(self.path("net.fxt"))
                    continue
                found, = self.refused("--input", "2x3", name=name.lower())
                self.assertEqual((found["module"], found["class"], found["line"], found["source"]),
                                 ("0", f"net.{name}", 7 + 4 * number, f"return {what}"))
                self.assertEqual(found["fixes"][0]["kind"], "leaf")
                self.assertNotRegex(found["message"], "Proxy|Error|Traceback")

    def test_TR_03(self):
        self.source("""
            class Star(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = nn.Sequential(nn.Identity())

                def forward(self, *args):
                    return self.inner(*args) * 2

            class Gain(nn.Module):
                def forward(self, x, *, gain=2.):
                    return x * gain

            class Pair(nn.Module):
                def forward(self, x):
                    a, b = x.chunk(2, 1)
                    return a - b

            class Sizes(nn.Module):
                def forward(self, x):
                    b, c, h, w = x.shape
                    return x.view(b, c * h * w)

            class Indexed(nn.Module):
                def forward(self, x):
                    t = x.chunk(2, 1)
                    return t[0] - t[1]
            """)
        x = torch.arange(16.).view(1, 4, 2, 2)
        numpy.save(self.path("x.npy"), x.numpy())
        net = imported(self.path("net.py"))
        for name in ("Star", "Gain", "Pair", "Sizes", "Indexed"):
            with self.subTest(name):
                self.trace("--input", "1x4x2x2", name=name)
                self.assertSame(self.run_cli(x)[0], getattr(net, name)()(x))
                self.assertSame(self.exported()(x), getattr(net, name)()(x))
        graph = torch.fx.Graph()
        node = graph.placeholder("*args")
        graph.output(graph.call_function(torch.cat, (node, 0)))
        self.by_hand(torch.nn.Module(), graph)
        self.assertIn("*args", self.cli("code", "net.fxt").split("\n")[3])
        self.assertSame(self.forward_of_code()(None, x, x + 1), torch.cat((x, x + 1), 0))
        self.assertSame(self.exported()(x, x + 1), torch.cat((x, x + 1), 0))

    def test_TR_04(self):
        with self.subTest("a"):
            self.module("def forward(self, x, y=3):\n    return x + y")
            self.trace("--input", "2")
            self.assertIn("y = 3", self.cli("code", "net.fxt"))
            self.check(torch.ones(2), expected=torch.tensor([4., 4.]))
        with self.subTest("b"):
            self.module("def forward(self, x, mask=None):\n    if mask is not None:\n        x = x * mask\n    return x")
            kinds = [w["kind"] for w in self.trace("--input", "2", "--kwarg", "mask=2")["warnings"]]
            self.assertEqual(kinds, ["fixed_branch"])
            self.trace("--input", "2", "--concrete", "mask=None")
            model = self.exported()
            self.assertSame(model(torch.ones(2)), torch.ones(2))
            with self.assertRaises((AssertionError, TypeError)):
                model(torch.ones(2), torch.zeros(2))
        with self.subTest("c"):
            self.module("def forward(self, x, bias=torch.tensor([1.,2.])):\n    return x + bias")
            self.trace("--input", "2")
            self.check(torch.zeros(2), expected=torch.tensor([1., 2.]))
            self.assertSame(self.exported()(torch.zeros(2), torch.ones(2)), torch.ones(2))
        with self.subTest("no default before an argument without one"):
            graph = torch.fx.Graph()
            a = graph.placeholder("a", default_value=2)
            b = graph.placeholder("b")
            graph.output(graph.call_function(torch.sub, (b, a)))
            self.by_hand(torch.nn.Module(), graph)
            self.assertSame(self.exported()(b=torch.ones(1)), torch.tensor([-1.]))

    def test_TR_05(self):
        self.module("""
            def forward(self, d):
                a, b = self.scale(d['a']), d['b']
                return {'sum': a + b, 'parts': [a, (b,)]}
            """, "self.scale = nn.Linear(1, 1)\nnn.init.ones_(self.scale.weight)\nnn.init.zeros_(self.scale.bias)")
        with open(self.path("net.py"), "a") as file:
            file.write("\ndef samples():\n    return ({'a': torch.ones(1), 'b': torch.ones(1)},)\n")
        self.trace("--samples", "samples")
        one = torch.ones(1)
        self.assertSame(self.exported()({"a": one, "b": one}), {"sum": torch.tensor([2.]), "parts": [one, (one,)]})
        self.cli("edit", "net.fxt", "--apply", self.edits({"op": "replace", "node": "add", "with": "torch.mul"}), "-o", "edited.fxt")
        self.assertSame(self.exported("edited.fxt")({"a": one, "b": one}), {"sum": one, "parts": [one, (one,)]})

        self.module("def forward(self, x):\n    return 3, None, 'a', x + 1")
        self.trace("--input", "2")
        self.check(torch.zeros(2), expected=(3, None, "a", torch.ones(2)))
        self.module("def forward(self, x):\n    y = self.lin(x)\n    return {'y': [y, y], 'x': (x, {'again': y})}",
                    "torch.manual_seed(0)\nself.lin = nn.Linear(4, 4)")
        self.trace("--input", "3x4")
        x = torch.rand(3, 4)
        self.check(x)
        numpy.save(self.path("data.npy"), torch.rand(16, 4).numpy())
        self.cli("quantize", "net.fxt", "--data", "data.npy", "-o", "int8")
        int8, right = imported(self.path("int8/model.py")).load()(x), imported(self.path("net.py")).Net().eval()(x)
        self.assertEqual((list(int8), type(int8["y"]), type(int8["x"])), (["y", "x"], list, tuple))
        for ours, torchs in zip(self.leaves(int8), self.leaves(right)):
            self.assertFalse(ours.is_quantized)
            self.assertTrue(torch.allclose(ours, torchs, atol=.05))

    def edits(self, *edits):
        with open(self.path("edits.json"), "w") as file:
            json.dump(edits, file)
        return "edits.json"

    def test_TR_07(self):
        self.source("""
            def Net():
                lin = nn.Linear(1, 1, bias=False)
                nn.init.constant_(lin.weight, 2)
                m = nn.Sequential(lin)
                lin.register_forward_hook(lambda module, inputs, out: out + 1)
                m.register_forward_hook(lambda module, inputs, out: out * 10)
                return m
            """)
        self.assertEqual(imported(self.path("net.py")).Net()(torch.ones(1, 1)).item(), 30)
        warnings = self.trace("--input", "1x1")["warnings"]
        self.assertEqual([(w["kind"], w["module"]) for w in warnings], [("hook", ""), ("hook", "0")])
        self.assertEqual(len(json.loads(self.cli("info", "net.fxt", "--json"))["problems"]), 2)

    def test_TR_08(self):
        self.module("def forward(self, x):\n    return x + self.pos + self.p2",
                    "self.register_buffer('pos', torch.tensor([1., 2.]), persistent=False)\nself.register_buffer('p2', torch.tensor([3., 4.]))")
        self.trace("--input", "2")
        self.check(torch.zeros(2), expected=torch.tensor([4., 6.]))
        self.assertEqual(list(self.exported().state_dict()), ["p2"])

    def test_TR_09(self):
        with self.subTest("a"):
            self.module("def forward(self, i):\n    return self.head(self.emb(i))", """
                torch.manual_seed(0)
                self.emb, self.head = nn.Embedding(3, 2), nn.Linear(2, 3, bias=False)
                self.head.weight = self.emb.weight""")
            self.trace("--input", "2:int64")
            self.assertEqual(json.loads(self.cli("info", "net.fxt", "--json"))["parameters"], 6)
            self.check(torch.tensor([0, 2]))
            for file in ("net.fxt", "edited.fxt"):
                model = self.exported(file if os.path.exists(self.path(file)) else "net.fxt")
                self.assertEqual(set(model.state_dict()), {"emb.weight", "head.weight"})
                self.assertEqual(len(list(model.parameters())), 1)
                self.cli("edit", "net.fxt", "--apply", self.edits({"op": "rename", "node": "head", "name": "scores"}), "-o", "edited.fxt")
        for name, init, forward, keys, parameters in (
                ("b", "self.a = nn.Linear(2, 2)\nself.b = self.a", "self.b(self.a(x))", {"a.weight", "a.bias", "b.weight", "b.bias"}, 6),
                ("c", "self.a = nn.Linear(2, 2)", "self.a(self.a(x))", {"a.weight", "a.bias"}, 6)):
            with self.subTest(name):
                self.module(f"def forward(self, x):\n    return {forward}", "torch.manual_seed(0)\n" + init)
                self.trace("--input", "1x2")
                self.check(torch.ones(1, 2))
                model, original = self.exported(), imported(self.path("net.py")).Net()
                self.assertEqual(set(original.state_dict()), keys)
                model.load_state_dict(original.state_dict())
                self.assertEqual(set(model.state_dict()), keys)
                info = json.loads(self.cli("info", "net.fxt", "--json"))
                self.assertEqual((info["opcodes"]["call_module"], info["parameters"]), (2, parameters))

    def test_TR_10(self):
        self.module("def forward(self, x):\n    return F.dropout(x, .5, self.training)")
        warnings = self.trace("--input", "1x8", "--keep-mode")["warnings"]
        self.assertEqual([(w["kind"], w["node"]) for w in warnings], [("training", "dropout")])
        numpy.save(self.path("data.npy"), numpy.ones((4, 8), numpy.float32))
        for command in ("calibrate", "quantize"):
            said = self.cli(command, "net.fxt", "--data", "data.npy", "-o", "out", status=1)
            self.assertIn("dropout", said)
            self.assertIn("--accept-training", said)
            self.assertFalse(os.path.exists(self.path("out")))
        self.cli("calibrate", "net.fxt", "--data", "data.npy", "-o", "accepted.stats", "--accept-training")
        for edit in ({"op": "set_arg", "node": "dropout", "arg": "training", "value": False}, {"op": "eval"}):
            said = self.cli("edit", "net.fxt", "--apply", self.edits(edit), "-o", "fixed.fxt")
            self.assertIn("dropout: training=False\n" if edit["op"] == "eval" else "dropout", said)
            self.cli("calibrate", "fixed.fxt", "--data", "data.npy", "-o", "fixed.stats")
            self.assertEqual(json.loads(self.cli("info", "fixed.fxt", "--json"))["problems"], [])
        os.unlink(self.path("net.fxt"))

        self.module("def forward(self, x):\n    return x + torch.rand(1)")
        self.assertIn("random_constant", [w["kind"] for w in self.trace("--input", "8")["warnings"]])


class Code(Case):
    def test_CG_01(self):
        self.module("def forward(self, scores, inf):\n    return (scores + inf).clamp(max=float('inf'))")
        self.trace("--input", "2", "2")
        inputs = torch.tensor([1., 2.]), torch.tensor([1., 1.])
        self.check(*inputs, expected=torch.tensor([2., 3.]))
        self.assertSame(self.forward_of_code()(None, *inputs), torch.tensor([2., 3.]))
        self.assertSame(self.forward_of_code("--strict-torch")(None, *inputs), torch.tensor([1., 1.]))      # torch's own fault
        self.module("def forward(self, x, nan):\n    return x.masked_fill(nan > 0, -math.inf), x.nan_to_num(math.nan), -math.inf, x * math.nan")
        self.trace("--input", "2", "2")
        self.check(torch.tensor([1., 2.]), torch.tensor([0., 1.]))

    def test_CG_02(self):
        names = ["class", "lambda", 'a"b', "a\\tb", "it's", "sp ace", "dash-name"]
        for name in names:
            with self.subTest(name):
                self.source(f"def Net():\n    m = nn.Module()\n    m.add_module({name!r}, nn.ReLU())\n    return Named(m)\n\n"
                            "class Named(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n"
                            f"        self.add_module({name!r}, nn.ReLU())\n\n    def forward(self, x):\n        return self._modules[{name!r}](x)\n")
                self.trace("--input", "1")
                self.check(torch.tensor([-1.]), expected=torch.tensor([0.]))
                root = torch.nn.Module()
                root.add_module(name, torch.nn.ReLU())
                self.assertSame(self.forward_of_code()(root, torch.tensor([-1.])), torch.tensor([0.]))

    def test_CG_03(self):
        self.source("def Net():\n    torch.manual_seed(0)\n    return nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU())")
        self.trace("--input", "1x1x4x4")
        self.assertIn("%_0 : [num_users=1] = call_module[target=0]", self.cli("print", "net.fxt"))
        self.check(torch.rand(1, 1, 4, 4) - .5)
        self.cli("fuse", "net.fxt", "-o", "fused.fxt")
        x = torch.rand(1, 1, 4, 4) - .5
        right = imported(self.path("net.py")).Net()(x)
        self.assertSame(self.exported("fused.fxt")(x), right)
        numpy.save(self.path("data.npy"), torch.rand(8, 1, 4, 4).numpy() - .5)
        self.cli("quantize", "net.fxt", "--data", "data.npy", "-o", "int8")
        py_compile.compile(self.path("int8/model.py"), cfile=self.path("int8.pyc"), doraise=True)
        self.assertTrue(torch.allclose(imported(self.path("int8/model.py")).load()(x), right, atol=.02))

    def test_CG_04(self):
        one, two, three = torch.tensor([1.]), torch.tensor([2.]), torch.tensor([3.])
        self.source("""
            class Net(nn.Module):
                def forward(self, x, torch, float):
                    return relu(x + torch + float)

            relu = torch.relu
            """)
        self.trace("--input", "1", "1", "1")
        self.assertSame(self.exported()(x=one, torch=two, float=three), torch.tensor([6.]))
        self.assertSame(self.run_cli(one, two, three)[0], torch.tensor([6.]))
        self.assertSame(self.forward_of_code()(None, x=one, torch=two, float=three), torch.tensor([6.]))
        self.module("def forward(self, x, sum):\n    return x + sum")
        self.trace("--input", "1", "1")
        self.assertSame(self.exported()(x=one, sum=two), three)
        self.module("def forward(this, self, x):\n    return self - x")
        self.trace("--input", "1", "1")
        self.assertSame(self.exported()(three, one), two)       # by name torch's own Module.__call__ refuses `self`
        self.assertSame(self.run_cli(three, one)[0], two)

    def test_CG_05(self):
        expressions = ["x[..., 1:-1:2, None]", "x.to(torch.float64)", "x.to(device=torch.device('cpu'))", "x + 2**40", "x.clamp(min=1e-45)",
                       "x.view(1, 1, 2, 3).contiguous(memory_format=torch.channels_last)", "F.pad(x, (1, 1), mode='constant')", "x[None, :, ::2]"]
        self.module("def forward(self, x):\n    return " + ", ".join(expressions))
        self.trace("--input", "1x6")
        x = torch.arange(6.).view(1, 6)
        self.check(x)
        self.assertEqual(self.run_cli(x)[0].tolist(), [[[1.], [3.]]])
        self.assertSame(self.forward_of_code()(None, x), imported(self.path("net.py")).Net()(x))
        self.assertSame(self.forward_of_code("--strict-torch")(None, x), imported(self.path("net.py")).Net()(x))

    def test_CG_07(self):
        graph = torch.fx.Graph()
        y = graph.placeholder("x")
        for _ in range(20000):
            y = graph.call_function(torch.add, (y, 1.0))
        graph.output(y)
        self.by_hand(torch.nn.Module(), graph)
        self.assertEqual(self.run_cli(torch.zeros(1))[0].tolist(), [20000])
        self.assertEqual(self.cli("print", "net.fxt"), str(graph) + "\n")
        self.assertEqual(self.cli("code", "net.fxt", "--strict-torch"), graph.python_code("self").src + "\n")
        self.assertEqual(self.exported()(torch.zeros(1)).tolist(), [20000])
        numpy.save(self.path("data.npy"), numpy.zeros((1, 1), numpy.float32))
        self.cli("quantize", "net.fxt", "--data", "data.npy", "-o", "int8")
        py_compile.compile(self.path("int8/model.py"), cfile=self.path("int8.pyc"), doraise=True)

        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(torch.cat, ([x] * 400,)))
        self.by_hand(torch.nn.Module(), graph)
        self.assertEqual(self.run_cli(torch.ones(1))[0].sum().item(), 400)
        self.assertEqual(self.exported()(torch.ones(1)).sum().item(), 400)

        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(20000)
            graph = torch.fx.Graph()
            nested = graph.placeholder("x")
            for _ in range(1200):
                nested = (nested,)
            graph.output(nested)
            self.by_hand(torch.nn.Module(), graph)
        finally:
            sys.setrecursionlimit(limit)
        self.assertEqual(self.run_cli(torch.ones(1))[0].tolist(), [1])
        self.assertIn("((((", self.cli("code", "net.fxt"))


if __name__ == "__main__":
    unittest.main()
