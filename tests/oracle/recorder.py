"""Values as the tests in C++ read them (tests/support/recorded.h): each a text in the JSON of an archive, its tensors by their
key in one .npz. GPL-3.0-or-later."""
import json
import os
import sys

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../resources/python"))
import fuseboard_trace  # noqa: E402


class Recorder(fuseboard_trace.Document):
    """with Recorder(OUT) as record: record("in", value) writes OUT.in.json, and OUT.npz at its end."""

    def __init__(self, out):
        self.out, self.tensors = out, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        numpy.savez(self.out + ".npz", **self.tensors)

    def _argument(self, a):
        return super()._argument(torch.from_numpy(a) if isinstance(a, numpy.ndarray) else a)

    def _tensor(self, path, tensor, names):
        key = f"{self.kind}{len(self.tensors)}"
        plain = tensor.detach().clone().contiguous()
        self.tensors[key] = plain.float().numpy() if plain.dtype == torch.bfloat16 else plain.numpy()
        return key

    def __call__(self, kind, value):
        self.kind = kind
        with open(f"{self.out}.{kind}.json", "w") as file:
            json.dump(self._argument(value), file)
