#!/usr/bin/env python3
# Fuseboard: torchvision's models as torch.export writes them (.pt2), through the command line: `run` on the flat ATen graph and on
# the one that is regrouped into modules, at another batch than the exported one, equal to PyTorch's own program, and so is the
# decomposed (core ATen) form; the regrouped graph fuses and quantizes as the symbolic trace of the same model does. One row each is
# printed. The short form takes a few small models; FUSEBOARD_ZOO=1 takes all that torch.export exports. GPL-3.0-or-later.
import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE]
import test_torchvision as common  # noqa: E402
from test_torchvision import CLI, JUDGE, LONG, apart, said, size_of, tensors, zoo  # noqa: E402
import torchvision.models  # noqa: E402

SHORT = os.environ.get("ZOO_MODELS", "").split() or ["resnet18", "mobilenet_v2", "squeezenet1_1", "shufflenet_v2_x0_5"]
COLUMNS = (("model", 34), ("ATen", 5), ("nodes", 5), ("traced", 6), ("run", 6), ("aten", 6), ("core", 6), ("int8", 10))
# What torch.export exports of torchvision 0.28 with torch 2.13 on one tensor; fewer would be a fault of this test.
EXPORTED = 100
TRACED = "import sys, torch\nsys.path.insert(0, {zoo!r})\nimport zoo\n\n\ndef make():\n    m = zoo.{name}()\n    m.load_state_dict(torch.load({weights!r}))\n    return m\n"


def line(row):
    return "zoo| " + " | ".join(str(row.get(c, "")).ljust(w) for c, w in COLUMNS)


class ExportedPrograms(unittest.TestCase):
    def cli(self, *arguments):
        done = subprocess.run([CLI, "--quiet", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
        if done.returncode:
            raise AssertionError(done.stderr.decode().strip())
        return done.stdout.decode()

    def path(self, name):
        return os.path.join(self.folder, name)

    def nodes(self, *arguments):
        return json.loads(self.cli("info", *arguments, "--json"))["nodes"]

    def run_apart(self, program, x, *arguments):
        with torch.no_grad():
            right = tensors(program.module()(x))
        self.cli("run", *arguments, "--input", "x.npy", "-o", "run.npz")
        with numpy.load(self.path("run.npz")) as ours:
            return said(apart([ours[k] for k in ours], right))

    def quantized(self, file):
        self.cli("quantize", file, "--data", "data.npy", "-o", "int8")
        with open(self.path("int8/report.json")) as f:
            report = json.load(f)
        rows = {r["node"]: (r["scale"], r["zero_point"]) for r in report["layers"] if r["state"] == "int8" and "scale" in r}
        weights = torch.load(self.path("int8/weights.pt"))
        return report["int8_nodes"], rows, {k: torch.dequantize(v) if v.is_quantized else v for k, v in weights.items() if isinstance(v, torch.Tensor)}

    def row(self, name):
        row = {"model": name}
        size = size_of(name)
        model = getattr(zoo, name)()
        torch.manual_seed(5)
        try:
            program = torch.export.export(model, (torch.randn(2, *size),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
            torch.export.save(program, self.path("net.pt2"))
        except Exception:
            row["ATen"] = "-"
            return row
        x = torch.randn(3, *size)
        try:
            with torch.no_grad():
                program.module()(x)
        except Exception:       # the export has fixed the batch
            x = x[:2]
        numpy.save(self.path("x.npy"), x.numpy())
        row["ATen"] = self.nodes("net.pt2", "--aten")
        row["nodes"] = self.nodes("net.pt2")
        row["run"] = self.run_apart(program, x, "net.pt2")
        row["aten"] = self.run_apart(program, x, "net.pt2", "--aten")
        try:
            core = program.run_decompositions()
            torch.export.save(core, self.path("core.pt2"))
            row["core"] = self.run_apart(core, x, "core.pt2")
            del core
        except AssertionError:
            raise
        except Exception:       # torch's own decomposition failed
            row["core"] = "-"
        torch.save(model.state_dict(), self.path("weights.pt"))
        with open(self.path("source.py"), "w") as f:
            f.write(TRACED.format(zoo=os.path.dirname(zoo.__file__), name=name, weights=self.path("weights.pt")))
        try:
            self.cli("trace", "source.py:make", "-o", "net.fxt", "--input", "x".join(map(str, (1, *size))), "--python", JUDGE)
        except AssertionError:
            row["traced"] = "-"
            return row
        row["traced"] = self.nodes("net.fxt")
        if any(p["kind"] == "not executable" for p in json.loads(self.cli("info", "net.fxt", "--json"))["problems"]):
            row["int8"] = "-"   # the trace needs Python to run
            return row
        numpy.save(self.path("data.npy"), torch.randn(4, *size).numpy())
        (ours, rows, weights), (theirs, traced_rows, traced_weights) = self.quantized("net.pt2"), self.quantized("net.fxt")
        same = rows == traced_rows and weights.keys() == traced_weights.keys() and all(torch.equal(weights[k], v) for k, v in traced_weights.items())
        row["int8"] = "=" if same else f"{ours} / {theirs}"
        return row

    def test_models(self):
        known = [n for n in torchvision.models.list_models() if not n.startswith("quantized_")] if LONG else SHORT
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
        print("\n" + line({c: c for c, _ in COLUMNS}), flush=True)
        exported, wrong = 0, []
        for name in known:
            with tempfile.TemporaryDirectory() as self.folder:
                try:
                    row = self.row(name)
                    exported += row["ATen"] != "-"
                    good = all(row.get(c, "-") in ("=", "-") or float(row[c]) <= 1e-6 for c in ("run", "aten", "core"))
                    # The same graph must give the same int8 model.
                    good = good and (row.get("nodes") != row.get("traced") or row.get("int8", "-") in ("=", "-"))
                    print(line(row), flush=True)
                except Exception as error:      # the others are still wanted
                    good, row = False, {"model": f"{name}: {error}"}
                    print(line(row), flush=True)
            if not good:
                wrong.append(line(row))
        print(f"zoo| exported programs: {len(known)} models, torch.export exports {exported}, {len(wrong)} of them not alike", flush=True)
        self.assertEqual(wrong, [])
        if LONG and not os.environ.get("ZOO_MODELS"):
            self.assertGreaterEqual(exported, EXPORTED)


if __name__ == "__main__":
    unittest.main()
