#!/usr/bin/env python3
# Fuseboard: what the tracer says when torch.fx gives up, and that its advice is good. GPL-3.0-or-later.
import os
import subprocess
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


class Signatures(TracerTest):
    """What torch.fx cannot bind, bound to the sample inputs."""

    def check(self, name, *arguments, old=(), nodes, kinds):
        archive = self.trace(os.path.join(HERE, "failing.py") + ":" + name, *arguments)
        self.assertEqual([n["name"] for n in archive.json["nodes"] if n["op"] == "placeholder"], nodes)
        self.assertEqual(archive.kinds(), kinds)
        return archive

    def equal(self, archive, module, *args, **kwargs):
        """The graph gives what the module gives."""
        torch = failing.torch
        for n in archive.json["nodes"]:
            self.assertNotIn("Proxy", str(n["args"]))
        graph_module = torch.fx.GraphModule(module, archive.graph())
        call = archive.json["call"]
        values = [v for v in [*args, *kwargs.values()]]
        out, expected = graph_module(*values), module(*args, **kwargs)
        self.assertEqual(len(values), len(archive.json["inputs"]), call)
        torch.testing.assert_close(out, expected)

    def test_star(self):
        archive = self.check("StarRoot", "--input", "2x4", "2x4", nodes=["xs_0", "xs_1"], kinds=["bound"])
        self.assertEqual(archive.json["call"], {"args": [{"node": "xs_0"}, {"node": "xs_1"}], "kwargs": {}})
        self.equal(archive, failing.StarRoot(), failing.torch.ones(2, 4), failing.torch.ones(2, 4))

    def test_double_star(self):
        archive = self.check("KeywordRoot", "--input", "2x4", "--kwarg", "y=2x4", nodes=["x", "y"], kinds=["bound"])
        self.assertEqual(archive.json["call"], {"args": [{"node": "x"}], "kwargs": {"y": {"node": "y"}}})
        self.equal(archive, failing.KeywordRoot(), failing.torch.ones(2, 4), y=failing.torch.ones(2, 4))

    def test_decorator_that_writes_into_kwargs(self):
        """torch.fx: co_varnames is too small."""
        archive = self.check("Decorated", "--input", "2x4", nodes=["x"], kinds=["bound"])
        self.equal(archive, failing.Decorated(), failing.torch.ones(2, 4))
        archive = self.check("Decorated", "--input", "2x4", "--concrete", "scale=3.0", nodes=["x"], kinds=["bound"])
        self.assertEqual(archive.nodes["mul"]["args"][1], 3.0)

    def test_signature_needs_samples(self):
        found, = self.refuse(os.path.join(HERE, "failing.py") + ":Decorated")
        self.assertEqual(found["kind"], "signature")
        self.assertIn("--input", found["message"])

    def test_optional_argument_is_pinned(self):
        archive = self.check("Optional", "--input", "2x4", "--kwarg", "mask=2x4", nodes=["x", "flag_1", "mask"], kinds=["pinned", "fixed_branch"])
        self.assertEqual(archive.json["options"]["concrete"], {"flag": "False"})
        self.assertIn("eq", archive.nodes)          # torch.fx's own check of a fixed argument

    def test_flag_offers_its_values(self):
        found, = self.refuse(os.path.join(HERE, "failing.py") + ":Flag", "--input", "2x4")
        self.assertEqual([(f["kind"], f.get("value")) for f in found["fixes"]][:2], [("concrete", "True"), ("concrete", "False")])
        archive = self.check("Flag", "--input", "2x4", "--concrete", "flag=True", nodes=["x", "flag_1"], kinds=[])
        self.assertIn("mul", archive.nodes)

    def test_samples_from_a_function(self):
        source = os.path.join(HERE, "failing.py") + ":"
        archive = self.trace(source + "ListHead", "--samples", "named_samples")     # loops over a list: bound
        self.assertEqual([n["name"] for n in archive.json["nodes"]][:3], ["parts_0", "parts_1", "more_scale"])
        self.assertEqual(archive.kinds(), ["bound"])
        archive = self.trace(source + "TakesBatch", "--samples", "batch_sample")    # a dataclass
        self.assertEqual((archive.kinds(), archive.nodes["mul"]["shape"]), ([], [2, 4]))
        found, = self.refuse_again(source + "TakesBatch", "--samples", "batch_samples")
        self.assertIn("did you mean 'batch_sample'", found["message"])

    def refuse_again(self, *arguments):
        os.unlink(self.out)
        return self.refuse(*arguments)

    def test_dataclass_goes_to_a_leaf(self):
        source = os.path.join(HERE, "failing.py") + ":MakesBatch"
        if OLD:
            found, = self.refuse(source, "--leaf", "uses")
            self.assertEqual(found["kind"], "unsupported")
            self.assertIn("hands on a Batch", found["message"])
        else:
            self.assertIn("uses", self.trace(source, "--leaf", "uses").nodes)


@unittest.skipUnless(os.path.exists(os.environ.get("FUSEBOARD_CLI", "")), "FUSEBOARD_CLI names no program")
class Pinned(TracerTest):
    """An argument that the trace fixed needs no input when the graph runs, though torch.fx asserts its value."""

    def test_runs_with_the_other_inputs(self):
        for name, arguments in (("Flag", ["--concrete", "flag=True"]), ("Optional", ["--concrete", "flag=False", "--concrete", "mask=None"]),
                                ("Optional", ["--sizes"])):
            with self.subTest(name, arguments=arguments):
                self.trace(os.path.join(HERE, "failing.py") + ":" + name, "--input", "2x4", *arguments)
                done = subprocess.run([os.environ["FUSEBOARD_CLI"], "run", self.out, "--input", "3x4", "-o", os.path.join(self.folder.name, "y.npy")],
                                      stderr=subprocess.PIPE, universal_newlines=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


class Sizes(TracerTest):
    """--sizes: the sample inputs decide what depends on sizes, and the graph gives what the module gives."""

    def test_what_it_makes_trace(self):
        torch = failing.torch
        for name in ("branch_on_size", "assertion", "maximum", "length", "loop_over_rows", "star_shape", "star_unpack", "list_of_shape", "loop_over_size",
                     "integer", "floating", "rounding", "zeros", "tensor_of_size", "membership", "index_of_list",
                     "slice_of_plain_tensor", "expand_plain_tensor", "limits_of_dtype"):
            with self.subTest(name):
                found, = self.refuse(os.path.join(HERE, "failing.py") + ":" + name)
                self.assertIn("sizes", [f["kind"] for f in found["fixes"]])
                archive = self.trace(os.path.join(HERE, "failing.py") + ":" + name, "--input", "2x4", "--sizes")
                self.assertEqual([k for k in archive.kinds() if k != "constant"], ["sizes"])
                os.unlink(self.out)
                module, x = getattr(failing, name)(), torch.randn(2, 4)
                for constant in archive.json["tensors"]:
                    if constant.startswith("_tensor_constant"):
                        setattr(module, constant, archive.tensor(constant))
                torch.testing.assert_close(torch.fx.GraphModule(module, archive.graph())(x), module(x))

    def test_data_stays_undecided(self):
        for name in ("branch_on_data", "range_of_data", "item", "count_of_matches", "count_of_selected"):
            with self.subTest(name):
                found, = self.refuse(os.path.join(HERE, "failing.py") + ":" + name, "--input", "2x4", "--sizes")
                self.assertEqual(found["kind"], failing.WAYS[name])

    def test_optional_tensors_that_are_not_given_are_not_there(self):
        archive = self.trace(os.path.join(HERE, "failing.py") + ":Optional", "--input", "2x4", "--sizes")
        self.assertEqual(archive.kinds(), ["pinned", "pinned"])
        self.assertNotIn("mul", archive.nodes)

    def test_needs_samples(self):
        found, = self.refuse(os.path.join(HERE, "failing.py") + ":integer", "--sizes")
        self.assertIn("--input", found["message"])

    def test_modules_made_on_the_way(self):
        """nn.MaxPool1d(n)(x) in forward is what it does; one with weights stays an error."""
        archive = self.trace(os.path.join(HERE, "failing.py") + ":PoolMadeInForward", "--input", "2x4x3")
        self.assertEqual(archive.nodes["max_pool1d"]["target"], "torch.nn.functional.max_pool1d" if OLD else archive.nodes["max_pool1d"]["target"])


class Frozen(TracerTest):
    """What the trace took for granted."""

    def test_constants(self):
        archive = self.trace(os.path.join(HERE, "failing.py") + ":MakesConstants", "--input", "2x4")
        self.assertEqual(archive.kinds(), ["random_constant", "constant"])
        self.assertIn("_tensor_constant0 (4 values of float32)", archive.json["warnings"][1]["message"])

    def test_a_graph_that_differs_from_its_model(self):
        archive = self.trace(os.path.join(HERE, "failing.py") + ":AsksForItsType", "--input", "2x4")
        self.assertEqual(archive.kinds(), ["differs"])
        self.assertIn("largest difference 1", archive.json["warnings"][0]["message"])


class Parts(TracerTest):
    """Submodules as graphs of their own."""

    def test_lists_and_dicts_are_flat(self):
        archive = self.trace(os.path.join(HERE, "failing.py") + ":ListInput", "--input", "2x4", "--submodule", "head")
        self.assertEqual([n["target"] for n in archive.json["nodes"]], ["x", "model", "output"])
        self.assertEqual({p: m["kind"] for p, m in archive.modules.items()}, {"": "nn", "model": "opaque", "model.head": "graph"})
        inside = archive.modules["model.head"]["graph"]
        self.assertEqual(inside["call"], {"args": [[{"node": "parts_0"}, {"node": "parts_1"}], {"dict": [["scale", {"node": "more_scale"}]]}], "kwargs": {}})
        self.assertEqual(inside["tensors"], {"linear.weight": "model.head/linear.weight", "linear.bias": "model.head/linear.bias"})
        self.assertEqual(inside["share"], {"parameters": 1.0, "multiply_adds": 1.0})
        self.assertEqual(archive.json["options"]["submodules"], ["head"])

    def test_doctor_proposes(self):
        status, result = self.run_tracer(os.path.join(HERE, "failing.py") + ":ListInput", "--input", "2x4", "--doctor", output=False)
        self.assertEqual((status, [s["path"] for s in result["submodules"]], result["leaves"]), (0, ["head"], []))
        self.assertEqual((result["parameters"], result["multiply_adds"]), (1.0, 1.0))
        self.assertEqual(result["problems"][0]["module"], "")

    def test_wrong_ones(self):
        source = os.path.join(HERE, "failing.py") + ":ListInput"
        for arguments, hint in ((("--submodule", "hed"), "'head'"), (("--submodule", "head"), "--input"), (("--submodule", ""), "root"),
                                (("--submodule", "head", "--submodule", "head.linear"), "outer one")):
            with self.subTest(arguments):
                self.assertIn(hint, self.refuse(source, *arguments)[0]["message"])

    def test_share_counts_what_leaves_take_away(self):
        status, result = self.run_tracer(os.path.join(HERE, "models.py") + ":Chain", "--doctor", "--input", "1x1x2x4", output=False)
        self.assertEqual((result["leaves"], result["parameters"], result["multiply_adds"]), (["blk", "tail.1"], 1.0, 1.0))
        status, result = self.run_tracer(os.path.join(HERE, "failing.py") + ":HalfBranches", "--doctor", "--input", "2x4", output=False)
        self.assertEqual((result["leaves"], result["parameters"], result["multiply_adds"]), (["second"], 0.5, 0.5))

    def torchvision(self, name):
        """--doctor on a model whose root does not trace leaves its backbone traced."""
        try:
            import zoo
        except ImportError as error:
            self.skipTest(f"torchvision: {error}")
        inputs = ["1x3x128x128", "1x3x128x128"] if name.startswith("raft") else ["1x3x96x96"]
        status, result = self.run_tracer(os.path.join(HERE, "untraceable.py") + ":" + name, "--doctor", "--input", *inputs)
        self.assertEqual(status, 0, result)
        paths = [s["path"] for s in result["submodules"]]
        print(f"{name}: {', '.join(paths) or 'whole, sizes by sample'}: {result['parameters']:.1%} of parameters, {result['multiply_adds']:.1%} of multiply-adds", file=sys.__stdout__)
        if result["sizes"]:     # the whole traces, as it only tests sizes
            self.assertEqual((paths, result["leaves"]), ([], []))
        else:
            self.assertIn("backbone", paths)
        self.assertEqual(result["sizes"], name.startswith("raft"))
        self.assertGreater(result["multiply_adds"], 0.5)
        return result

    def test_two_of_torchvision(self):
        self.torchvision("raft_small")
        self.torchvision("ssdlite320_mobilenet_v3_large")

    @unittest.skipUnless(os.environ.get("FUSEBOARD_ZOO"), "the long form runs with FUSEBOARD_ZOO=1")
    def test_all_of_torchvision(self):
        import untraceable
        for name in untraceable.NAMES:
            with self.subTest(name):
                self.torchvision(name)


if __name__ == "__main__":
    unittest.main()
