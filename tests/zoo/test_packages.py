#!/usr/bin/env python3
# Fuseboard: models of other people's packages, those that are installed, through the command line as test_torchvision.py does it. What is not
# installed is said. Only for `./dev test --zoo` (FUSEBOARD_ZOO=1). GPL-3.0-or-later.
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import test_torchvision as base  # noqa: E402
import packages  # noqa: E402


class Packages(base.Torchvision):
    family, source, traced_by_torch = "packages", packages, {}

    def models(self):
        for name, why in packages.MISSING.items():
            print(f"zoo| {self.family:12} | {name}: not here ({why})", flush=True)
        return (os.environ.get("ZOO_MODELS", "").split() or list(packages.MODELS)) if base.LONG else []

    def size_of(self, name):
        return packages.MODELS[name][1]


if __name__ == "__main__":
    unittest.main()
