#!/usr/bin/env python3
# Fuseboard: what the tracer says when torch.fx gives up, and that its advice is good. GPL-3.0-or-later.
import os
import sys
import unittest

from test_trace import HERE, TracerTest
import failing

OLD = failing.torch.__version__.startswith("1.")


class Diagnosis(TracerTest):
    def failing(self, name, *arguments):
        return self.refuse(os.path.join(HERE, "failing.py") + ":" + name, *arguments)

    def traced(self, name, *arguments):
        return self.trace(os.path.join(HERE, "failing.py") + ":" + name, *arguments)

    def test_every_way(self):
        """Each says kind, module, class, line and a plain sentence; the first fix, a leaf, makes it trace and run."""
        with open(os.path.join(HERE, "failing.py")) as file:
            lines = file.read().split("\n")
        for name, kind in failing.WAYS.items():
            with self.subTest(name):
                found, = self.failing(name, "--input", "2x4")
                self.assertEqual(found["kind"], kind)
                if kind != "unsupported":       # which fails where the root returns
                    self.assertEqual((found["module"], found["class"]), ("blk", f"failing.{name.title().replace('_', '')}"))
                self.assertEqual((found["file"], found["source"]), ("failing.py", lines[found["line"] - 1].strip()))
                self.assertNotRegex(found["message"], "Proxy|Error:|interpret|NoneType")
                if found["module"]:
                    self.assertEqual([f["kind"] for f in found["fixes"][:2]], ["leaf", "leaf-class"])
                    archive = self.traced(name, "--leaf", "blk", "--input", "2x4")
                    self.assertIn("blk", archive.nodes)
                    os.unlink(self.out)

    def test_rewrites_trace(self):
        """Where the advice is a whole expression, the source with it in place traces."""
        with open(os.path.join(HERE, "failing.py")) as file:
            text = file.read()
        tried = []
        for name in failing.WAYS:
            found, = self.failing(name)
            rewrite = next((f for f in found["fixes"] if f["kind"] == "rewrite"), None)
            if not rewrite or rewrite["before"] not in found["source"] or "mask" in rewrite["after"]:      # a person has to fill that in
                continue
            lines = text.split("\n")
            lines[found["line"] - 1] = lines[found["line"] - 1].replace(rewrite["before"], rewrite["after"].split(" #")[0])
            with self.subTest(name, **rewrite):
                path = os.path.join(self.folder.name, f"rewritten_{name}.py")
                with open(path, "w") as file:
                    file.write("\n".join(lines))
                self.trace(f"{path}:{name}", "--input", "2x4")
                os.unlink(self.out)
                tried.append(name)
        self.assertGreater(len(tried), 12, tried)


if __name__ == "__main__":
    unittest.main()
