#!/usr/bin/env python3
"""Quantized submodules, to be put into the model that they were traced from. Made by Fuseboard; needs torch alone.

    from model import apply
    model = apply(model)        # your own model, in eval mode: its submodules are replaced in place
"""
import importlib.util
import inspect
import keyword
import os
import re
import runpy

import torch

PARTS = {}      # paths of the submodules; each has its folder beside this file
FOLDER = os.path.dirname(os.path.abspath(__file__))


def file_of(path):
    return os.path.join(FOLDER, path, "model.py")


def load(path):
    """The quantized submodule by itself."""
    spec = importlib.util.spec_from_file_location("quantized_" + re.sub(r"\W", "_", path), file_of(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load()


def name_tensors(value, name, found):
    """Finds the tensors in an argument, by the names that the trace gave them."""
    if isinstance(value, torch.Tensor):
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        while name in found or name in ("self", "_call") or keyword.iskeyword(name) or not name.isidentifier():
            name += "_"
        found[name] = value
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for field, item in zip(value._fields, value):
            name_tensors(item, f"{name}_{field}", found)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            name_tensors(item, f"{name}_{number}", found)
    elif isinstance(value, dict):
        for key, item in value.items():
            name_tensors(item, f"{name}_{key}", found)


class Part(torch.nn.Module):
    """A quantized submodule that is called as the one whose place it takes."""

    def __init__(self, quantized, replaced):
        super().__init__()
        self.__dict__.update((k, v) for k, v in vars(replaced).items() if k not in self.__dict__ and not k.startswith("_"))
        self.quantized = quantized
        self.signature = inspect.signature(replaced.forward)
        self.names = list(inspect.signature(quantized.forward).parameters)
        self.plain = all(name in self.signature.parameters for name in self.names)
        self.eval()

    def forward(self, *args, **kwargs):
        given = self.signature.bind(*args, **kwargs)
        if self.plain:
            return self.quantized(**{name: value for name, value in given.arguments.items() if name in self.names})
        found = {}
        for name, value in given.arguments.items():
            kind = self.signature.parameters[name].kind
            for key, item in value.items() if kind is inspect.Parameter.VAR_KEYWORD else [(name, value)]:
                name_tensors(item, key, found)
        return self.quantized(**{name: found[name] for name in self.names})


def apply(model):
    """Puts the quantized submodules into `model`, and returns it."""
    for path in PARTS:
        parent, _, name = path.rpartition(".")
        owner = model.get_submodule(parent)
        setattr(owner, name, Part(load(path), getattr(owner, name)))
    return model


if __name__ == "__main__":
    for path in PARTS:
        print(path)
        runpy.run_path(file_of(path), run_name="__main__")
