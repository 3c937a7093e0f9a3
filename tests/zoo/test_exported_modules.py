#!/usr/bin/env python3
# Fuseboard: every module of torch.nn that traces as a leaf, through `export`: the model.py that comes out makes the same module (the same
# repr, the same weights) and gives what the module gave. The short form takes one case of each class; FUSEBOARD_ZOO=1 all cases of
# tests/oracle/coverage_cases.py. GPL-3.0-or-later.
import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
import warnings

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, "../../resources/python"), os.path.join(HERE, "../oracle")]
import coverage_cases  # noqa: E402
import fuseboard_trace  # noqa: E402

warnings.simplefilter("ignore")
CLI, LONG = os.environ["FUSEBOARD_CLI"], "FUSEBOARD_ZOO" in os.environ
# What a graph cannot take as an input or give as a result: packed sequences.
UNTENSORED = nn.utils.rnn.PackedSequence


class One(nn.Module):
    """One module, called with tensors that come in and constants that stay."""

    def __init__(self, module):
        super().__init__()
        self.m = module


def one(module, args, kwargs):
    """-> (a class of its own with this call as forward, its inputs)"""
    inputs, constants = [], {}

    def spelled(value):
        if isinstance(value, torch.Tensor):
            inputs.append(value)
            return f"x{len(inputs) - 1}"
        constants[f"c{len(constants)}"] = value
        return f"c{len(constants) - 1}"
    call = [spelled(a) for a in args] + [f"{k}={spelled(v)}" for k, v in kwargs.items()]
    exec(f"def forward(self, {', '.join(f'x{i}' for i in range(len(inputs)))}):\n    return self.m({', '.join(call)})", constants)
    return type("One", (One,), {"forward": constants["forward"]})(module), inputs


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in (value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()) for t in tensors(v)]


def cases():
    seen = set()
    for cls, c_args, c_kwargs, args, kwargs, training in coverage_cases.modules():
        title = f"nn.{cls.__name__}({', '.join([str(a) for a in c_args] + [f'{k}={v}' for k, v in c_kwargs.items()])})"
        key = title if LONG else cls
        if training or key in seen or any(isinstance(a, UNTENSORED) for a in args):
            continue
        try:
            cls(*c_args, **c_kwargs)(*args, **kwargs)
        except RuntimeError:        # a case of what torch refuses
            continue
        seen.add(key)
        yield title, cls, c_args, c_kwargs, args, kwargs


class ExportedModules(unittest.TestCase):
    def exported(self, model, inputs):
        sys.modules["case"] = case = types.ModuleType("case")
        case.make, case.inputs = lambda: model, lambda: tuple(inputs)
        with tempfile.TemporaryDirectory() as folder:
            said = io.StringIO()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                status = fuseboard_trace.main(["case:make", "-o", os.path.join(folder, "net.fxt"), "--samples", "inputs"])
            self.assertEqual(status, 0, said.getvalue())
            done = subprocess.run([CLI, "--quiet", "export", os.path.join(folder, "net.fxt"), "--form", "python", "-o", os.path.join(folder, "out")],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout.decode())
            spec = importlib.util.spec_from_file_location("model", os.path.join(folder, "out", "model.py"))
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module.load()

    def test_each(self):
        count = 0
        for title, cls, c_args, c_kwargs, args, kwargs in cases():
            with self.subTest(title):
                torch.manual_seed(4)
                module = cls(*c_args, **c_kwargs)
                if hasattr(module, "initialize_parameters"):
                    module(*args, **kwargs)
                module = coverage_cases.lively(module).eval()
                model, inputs = one(module, args, kwargs)
                loaded = self.exported(model, inputs)
                self.assertEqual(repr(loaded.m), repr(module))
                state, wanted = loaded.m.state_dict(), module.state_dict()
                self.assertEqual(list(state), list(wanted))
                for name, value in wanted.items():
                    self.assertTrue(torch.equal(state[name], value), name)
                with torch.no_grad():
                    torch.manual_seed(9)
                    right = tensors(model(*inputs))
                    torch.manual_seed(9)
                    got = tensors(loaded(*inputs))
                self.assertEqual([t.shape for t in got], [t.shape for t in right])
                for a, b in zip(got, right):
                    self.assertTrue(torch.equal(a, b) or torch.allclose(a, b, equal_nan=True, rtol=1e-6, atol=1e-7))
                count += 1
        print(f"zoo| exported modules of torch.nn: {count} make the same module again")


if __name__ == "__main__":
    unittest.main()
