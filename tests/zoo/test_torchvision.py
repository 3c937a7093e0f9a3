#!/usr/bin/env python3
# Fuseboard: torchvision's models, all that torch.fx traces, through the command line: the archive's `print` and
# `code --strict-torch` byte for byte torch's own, the default code run in real Python, `run` and the exported model.py equal to
# PyTorch. One row each is printed. The short form takes a few small models; FUSEBOARD_ZOO=1 takes them all. Under an older torch
# (python3 test_torchvision.py) the texts are judged by that one, and values by the PyTorch that Fuseboard is built against.
# GPL-3.0-or-later.
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy
import torch
import torch.fx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "../../resources/python"), os.path.join(HERE, "../tracer")]
import fuseboard_trace  # noqa: E402
import zoo  # noqa: E402
import torchvision.models  # noqa: E402

warnings.simplefilter("ignore")
CLI, JUDGE, LONG = os.environ["FUSEBOARD_CLI"], os.environ["FUSEBOARD_PYTHON"], "FUSEBOARD_ZOO" in os.environ
OWN = os.path.realpath(JUDGE) == os.path.realpath(sys.executable) or sys.prefix == os.path.dirname(os.path.dirname(JUDGE))
SHORT = os.environ.get("ZOO_MODELS", "").split() or ["squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x0_5", "mnasnet0_5", "efficientnet_b0", "regnet_x_400mf", "swin_t",
         "convnext_tiny", "lraspp_mobilenet_v3_large", "quantized_mobilenet_v2", "retinanet_resnet50_fpn"]
# What torch.fx traces of each version's models; fewer would be a fault of ours.
TRACED = {"1.13": 104, "2.13": 107}
SIZES = {"inception": (3, 96, 96), "quantized_inception": (3, 96, 96), "vit": (3, 224, 224), "vit_h_14": (3, 224, 224), "maxvit": (3, 224, 224),
         "mvit": (3, 16, 224, 224), "swin3d": (3, 8, 64, 64), "s3d": (3, 16, 224, 224), "r3d": (3, 8, 64, 64), "mc3": (3, 8, 64, 64),
         "r2plus1d": (3, 8, 64, 64), "alexnet": (3, 80, 80), "regnet_y_128gf": (3, 32, 32)}
RUN = """
import importlib.util, sys, numpy, torch
sys.path.insert(0, sys.argv[4])
import zoo      # what torchvision needs to be imported: Swin's attention is a function of its own
spec = importlib.util.spec_from_file_location("model", sys.argv[1] + "/model.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
with torch.no_grad():
    numpy.savez(sys.argv[3], *[t.numpy() for t in module.tensors(module.load()(torch.from_numpy(numpy.load(sys.argv[2]))))])
"""


def size_of(name):
    return next((size for start, size in sorted(SIZES.items(), reverse=True) if name.startswith(start)), (3, 64, 64))


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value.numpy()]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for v in values for t in tensors(v)]


def apart(ours, right):
    """The largest difference by the largest value; 0 is bit equal."""
    if [a.shape for a in ours] != [b.shape for b in right] or not right:
        return float("inf")
    return max(float(numpy.abs(a - b).max() / max(numpy.abs(b).max(), 1e-30)) for a, b in zip(ours, right))


def said(value):
    return "=" if value == 0 else f"{value:.0e}"


class Row(dict):
    """One line of the table."""
    COLUMNS = ("family", "model", "torch", "nodes", "print", "code", "code runs", "run", "export")
    WIDTHS = (12, 34, 7, 6, 6, 5, 10, 6, 7)

    def __str__(self):
        return "zoo| " + " | ".join(str(self.get(c, "")).ljust(w) for c, w in zip(self.COLUMNS, self.WIDTHS))


class Torchvision(unittest.TestCase):
    family, source = "torchvision", zoo     # a module that makes each model by its name
    traced_by_torch = TRACED

    def models(self):
        known = torchvision.models.list_models()
        return known if LONG else [n for n in SHORT if n in known]

    def size_of(self, name):
        return size_of(name)

    def cli(self, *arguments):
        done = subprocess.run([CLI, "--quiet", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
        if done.returncode:
            raise AssertionError(done.stderr.decode().strip())
        return done.stdout.decode()

    def trace(self, name, size):
        """The traced module by torch.fx alone, or None; the archive is written beside."""
        model = getattr(self.source, name)()
        try:
            with fuseboard_trace.python_3_11_fixes():
                traced = torch.fx.GraphModule(model, torch.fx.Tracer().trace(model))
        except Exception:
            return None
        self.source.kept[name] = model
        out = io.StringIO()
        with contextlib.redirect_stderr(out), contextlib.redirect_stdout(out):
            status = fuseboard_trace.main([f"{self.source.__file__}:{name}", "-o", os.path.join(self.folder, "net.fxt"), "--input", "x".join(map(str, (1, *size)))])
        self.source.kept.clear()
        if status:
            raise AssertionError("torch.fx traces it, Fuseboard's tracer does not: " + out.getvalue())
        return traced

    def row(self, name):
        size = self.size_of(name)
        row = Row(family=self.family, model=name, torch=re.match(r"\d+\.\d+", torch.__version__).group())
        torch.manual_seed(5)
        x = torch.randn(1, *size)
        traced = self.trace(name, size)
        if traced is None:
            row["nodes"] = "-"
            return row
        row["nodes"] = len(traced.graph.nodes)
        numpy.save(os.path.join(self.folder, "x.npy"), x.numpy())
        row["print"] = "=" if self.cli("print", "net.fxt") == str(traced.graph) + "\n" else "differs"
        row["code"] = "=" if self.cli("code", "net.fxt", "--strict-torch") == traced.code + "\n" else "differs"
        with torch.no_grad():
            eager = tensors(traced(x))
            names = dict(traced.forward.__globals__)
            exec(compile(self.cli("code", "net.fxt"), name, "exec"), names)
            row["code runs"] = said(apart(tensors(names["forward"](traced, x)), eager))
        del traced
        # Functions that torchvision has torch.fx.wrap keep run in Python.
        self.cli("run", "net.fxt", "--input", "x.npy", "-o", "run.npz", "--worker", "--python", JUDGE, "--source", f"{zoo.__file__}:resnet18")
        self.cli("export", "net.fxt", "--form", "python", "-o", "out")
        subprocess.run([JUDGE, "-W", "ignore", "-c", RUN, "out", "x.npy", "judge.npz", os.path.dirname(zoo.__file__)], check=True, cwd=self.folder)
        with numpy.load(os.path.join(self.folder, "run.npz")) as ours, numpy.load(os.path.join(self.folder, "judge.npz")) as judge:
            ours, judge = [ours[k] for k in ours], [judge[k] for k in judge]
        row["run"] = said(apart(ours, eager if OWN else judge))
        row["export"] = said(apart(judge, ours))
        return row

    def test_models(self):
        known = self.models()
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
        print("\n" + str(Row(zip(Row.COLUMNS, Row.COLUMNS))), flush=True)
        traced, wrong = 0, []
        for name in known:
            with tempfile.TemporaryDirectory() as self.folder:
                try:
                    row = self.row(name)
                    good = row["nodes"] == "-" or all(row[c] == "=" for c in ("print", "code", "code runs")) and all(
                        row[c] == "=" or float(row[c]) <= 1e-6 for c in ("run", "export"))
                    traced += row["nodes"] != "-"
                    print(row, flush=True)
                except Exception as error:      # the others are still wanted
                    good, row = False, f"zoo| {self.family:12} | {name}: {error}"
                    print(row, flush=True)
            if not good:
                wrong.append(str(row))
        print(f"zoo| {self.family}: {len(known)} models, torch.fx traces {traced}, {len(wrong)} of them not alike", flush=True)
        self.assertEqual(wrong, [])
        if LONG and known and row["torch"] in self.traced_by_torch:
            self.assertEqual(traced, self.traced_by_torch[row["torch"]])


if __name__ == "__main__":
    unittest.main()
