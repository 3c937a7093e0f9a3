"""The layer check itself is checked: a bad include must be found, a good one must not."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from check_layers import check  # noqa: E402


class Layers(unittest.TestCase):
    def problems(self, name, include):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for used in ("model/ir", "model/exec", "views", "app/window", "passes"):
                (root / used).mkdir(parents=True, exist_ok=True)
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"#pragma once\n#include {include}\n")
            return check(root)

    def test_bad_includes(self):
        for name, include in (("model/ir/a.h", "<ATen/ATen.h>"), ("model/ir/a.cpp", "<QString>"), ("model/ir/a.cpp", '"model/exec/interpreter.h"'),
                              ("passes/a.cpp", '"views/canvas.h"'), ("passes/a.cpp", "<QWidget>"), ("views/a.cpp", '"model/exec/statistics.h"'),
                              ("views/a.cpp", '"passes/fuse.h"'), ("views/a.cpp", "<torch/script.h>"), ("views/a.cpp", '"app/window/main_window.h"'),
                              ("app/document/a.cpp", "<QWidget>"), ("app/cli/a.cpp", "<QtWidgets/QApplication>"), ("passes/a.h", "<nlohmann/json.hpp>"),
                              ("model/exec/a.h", "<ATen/ATen.h>")):
            with self.subTest(name=name, include=include):
                self.assertEqual(len(self.problems(name, include)), 1)

    def test_good_includes(self):
        for name, include in (("model/ir/a.h", "<vector>"), ("model/exec/a.cpp", "<ATen/ATen.h>"), ("views/a.cpp", '"passes/pass.h"'),
                              ("views/a.cpp", "<QWidget>"), ("app/window/a.cpp", '"views/canvas.h"'), ("passes/a.cpp", "<nlohmann/json.hpp>"),
                              ("app/document/a.h", "<QObject>")):
            with self.subTest(name=name, include=include):
                self.assertEqual(self.problems(name, include), [])


if __name__ == "__main__":
    unittest.main()
