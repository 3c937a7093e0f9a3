#!/usr/bin/env python3
# Fuseboard: the tracer against torch.fx itself. GPL-3.0-or-later.
#
# What an archive holds is enough when the graph that is built back from it prints, in this very torch, exactly as the
# live trace does. Runs under every torch that the tracer runs under (plain unittest: python test_trace.py).
import contextlib
import importlib
import io
import json
import math
import os
import re
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile

import torch
import torch.fx

HERE = os.path.dirname(os.path.abspath(__file__))
RESOURCES = os.path.join(HERE, os.pardir, os.pardir, "resources")
TRACER = os.path.join(RESOURCES, "python", "fuseboard_trace.py")
DEMO = os.path.join(RESOURCES, "demo")
sys.dont_write_bytecode = True
torch.set_num_threads(1)
sys.path[:0] = [os.path.dirname(TRACER), HERE, DEMO]
import fuseboard_trace  # noqa: E402


class Archive:
    def __init__(self, path):
        self.path = path
        self.zip = zipfile.ZipFile(path)
        self.json = json.loads(self.zip.read("graph.json"))
        self.stored = fuseboard_trace.read_safetensors(self.zip.read("tensors.safetensors"))
        self.nodes = {n["name"]: n for n in self.json["nodes"]}
        self.modules = {m["path"]: m for m in self.json["modules"]}
        self.zip.close()

    def tensor(self, path):
        return self.stored[self.json["tensors"][path]]

    def kinds(self):
        return [w["kind"] for w in self.json["warnings"]]

    # --- back to a torch.fx.Graph ---

    def graph(self):
        graph, made = torch.fx.Graph(), {}
        for n in self.json["nodes"]:
            target = named(n["target"]) if n["op"] == "call_function" else n["target"]
            kind = n.get("type_text", n["type"])
            node = made[n["name"]] = graph.create_node(
                n["op"], target, tuple(self.argument(a, made) for a in n["args"]),
                {k: self.argument(v, made) for k, v in n["kwargs"].items()}, n["name"],
                eval(kind, {name: importlib.import_module(name) for name in re.findall(r"(?<![\w.])(\w+)(?=\.)", kind)}) if kind else None)
            node.meta["is_wrapped"] = n["op"] == "call_function" and n["target"].replace(".", "_") in self.json["wrapped"]
        return graph

    def argument(self, a, made):
        def down(x):
            return self.argument(x, made)
        if isinstance(a, list):
            return [down(x) for x in a]
        if not isinstance(a, dict):
            return a
        (kind, value), = a.items()
        return {
            "node": lambda: made[value], "tuple": lambda: tuple(map(down, value)), "dict": lambda: {down(k): down(v) for k, v in value},
            "slice": lambda: slice(*map(down, value)), "float": lambda: float(value), "int": lambda: int(value),
            "complex": lambda: complex(*map(down, value)), "dtype": lambda: named(value), "device": lambda: torch.device(value),
            "layout": lambda: named(value), "memory_format": lambda: named(value), "ellipsis": lambda: Ellipsis,
            "namedtuple": lambda: named(value["type"])(*[down(v) for _, v in value["fields"]]), "size": lambda: torch.Size(value),
            "range": lambda: range(*value), "symbol": lambda: named(value), "tensor": lambda: self.stored[value]}[kind]()


def named(qualname):
    parts = qualname.split(".")
    for end in range(len(parts) - 1, 0, -1):
        with contextlib.suppress(ImportError):
            found = importlib.import_module(".".join(parts[:end]))
            for part in parts[end:]:
                found = getattr(found, part)
            return found
    raise ImportError(qualname)


class LiveTracer(torch.fx.Tracer):
    def __init__(self, leaves):
        super().__init__()
        self.leaves = leaves

    def is_leaf_module(self, m, name):
        return name in self.leaves or super().is_leaf_module(m, name)


class TracerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "out.fxt")

    def run_tracer(self, source, *arguments, output=True):
        """-> (exit status, JSON document)"""
        place = source.split(":")[0]
        if place.endswith(".py"):       # each trace imports its file anew
            sys.modules.pop(os.path.basename(place)[:-3], None)
        arguments = [source, *(["-o", self.out] if output else []), "--json", *arguments]
        out, err, path = io.StringIO(), io.StringIO(), list(sys.path)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            status = fuseboard_trace.main(arguments)
        sys.path[:] = path
        for line in err.getvalue().splitlines():
            if line.startswith("progress"):
                self.assertRegex(line, r"^progress: [01]\.\d\d \S")
        return status, json.loads(out.getvalue())

    def trace(self, source, *arguments):
        status, result = self.run_tracer(source, *arguments)
        self.assertEqual((status, result["ok"]), (0, True), result)
        self.assertEqual(result["output"], self.out)
        archive = Archive(self.out)
        self.assertEqual(result["nodes"], len(archive.json["nodes"]))
        self.assertEqual(result["warnings"], archive.json["warnings"])
        return archive

    def refuse(self, source, *arguments, **more):
        status, result = self.run_tracer(source, *arguments, **more)
        self.assertEqual((status, result["ok"]), (1, False), result)
        self.assertFalse(os.path.exists(self.out))
        for found in result["problems"]:
            self.assertEqual(list(found), ["kind", "module", "class", "file", "line", "source", "message", "fixes"])
        return result["problems"]

    def model(self, name, *arguments):
        return self.trace(os.path.join(HERE, "models.py") + ":" + name, *arguments)

    def bad_model(self, name, *arguments, **more):
        return self.refuse(os.path.join(HERE, "models.py") + ":" + name, *arguments, **more)

    def check_text(self, archive, root, leaves=(), concrete=None):
        """The archive's graph, built back, prints as the live one; the texts that it stores are torch's."""
        with fuseboard_trace.python_3_11_fixes():
            live = LiveTracer(leaves).trace(root, concrete)
        back = archive.graph()
        back.lint()
        self.assertEqual([n.name for n in back.nodes], [n.name for n in live.nodes])
        self.assertEqual(str(back), str(live))
        code = live.python_code("self")
        self.assertEqual(back.python_code("self").src, code.src)
        for n in archive.json["nodes"]:
            if n["op"] == "placeholder" and n["type"]:
                self.assertIn(f"{n['target']} : {n['type']}", code.src)
        if archive.json["return_type"]:
            self.assertIn(f" -> {archive.json['return_type']}:", code.src)
        for name in archive.json["globals"]:
            self.assertIn(name, code.globals)
        self.assertEqual(set(archive.json["globals"]), set(code.globals) - fuseboard_trace.STANDARD_GLOBALS)

    def check_state(self, archive, root):
        for path, value in root.state_dict(keep_vars=True).items():
            self.assertTrue(torch.equal(archive.tensor(path), value), path)
        for path, module in root.named_modules(remove_duplicate=False):
            self.assertEqual(archive.modules[path]["class"], fuseboard_trace.class_name(module))
            self.assertEqual(archive.modules[path]["extra_repr"], module.extra_repr())


class Format(TracerTest):
    def test_zip_is_stored_and_aligned(self):
        self.trace(os.path.join(DEMO, "digits_net.py:make"), "--leaf", "gain", "--input", "1x1x8x8")
        with zipfile.ZipFile(self.out) as archive, open(self.out, "rb") as raw:
            self.assertEqual([i.filename for i in archive.infolist()], ["graph.json", "tensors.safetensors", "scripts/0.pt"])
            for info in archive.infolist():
                raw.seek(info.header_offset + 26)
                name, extra = struct.unpack("<HH", raw.read(4))
                self.assertEqual((info.compress_type, (info.header_offset + 30 + name + extra) % 64), (zipfile.ZIP_STORED, 0))
            data = archive.read("tensors.safetensors")
            size, = struct.unpack("<Q", data[:8])
            self.assertEqual((8 + size) % 64, 0)
            position = 0
            for entry in json.loads(data[8:8 + size]).values():     # in order, no holes, each aligned to its type
                self.assertEqual(entry["data_offsets"][0], position)
                self.assertEqual(position % {"F32": 4, "I64": 8}[entry["dtype"]], 0)
                position = entry["data_offsets"][1]
            self.assertEqual(8 + size + position, len(data))
            with contextlib.suppress(ImportError):
                import safetensors.torch
                self.assertEqual(set(safetensors.torch.load(data)), set(fuseboard_trace.read_safetensors(data)))

    def test_same_bytes_every_time_and_no_absolute_path(self):
        def contents(name):
            with open(os.path.join(self.folder.name, name), "rb") as file:
                return file.read()
        for name in ("one.fxt", "two.fxt"):
            self.out = os.path.join(self.folder.name, name)
            self.model("Buffers", "--input", "2x2")
        self.assertEqual(contents("one.fxt"), contents("two.fxt"))
        self.model("Chain", "--leaf", "blk", "--leaf", "tail.1", "--input", "1x1x2x4")
        self.assertNotIn(HERE.encode(), contents("two.fxt"))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["one.fxt", "two.fxt"])
        self.assertTrue(os.stat(self.out).st_mode & stat.S_IRUSR)

    def test_arguments(self):
        archive = self.model("Arguments", "--input", "2x3")
        models = importlib.import_module("models")
        self.check_text(archive, models.Arguments())
        text = json.dumps([n["args"] + list(n["kwargs"].values()) for n in archive.json["nodes"]])
        for part in ('{"ellipsis": true}', '{"slice": [0, -1, 2]}', '{"dtype": "torch.float64"}', '{"device": "cpu"}',
                     '{"memory_format": "torch.contiguous_format"}', "1099511627776", '{"int": "1180591620717411303424"}', "1e-45",
                     '{"float": "inf"}', '{"float": "nan"}', '{"tuple": [1, 1]}', '{"complex": [1.0, 2.0]}'):
            self.assertIn(part, text)
        self.assertEqual(archive.nodes["pair"]["target"], "models.Pair")

    def test_typed_and_nested(self):
        archive = self.model("Nested")
        self.check_text(archive, importlib.import_module("models").Nested().eval())
        self.assertEqual(archive.nodes["n"]["args"], [2])
        self.assertEqual([k for k, _ in archive.nodes["output"]["args"][0]["dict"]], ["sum", "parts", "constants"])

    def test_modules_and_sources(self):
        archive = self.model("Chain", "--leaf-class", "Blk", "--input", "1x1x2x4")
        self.check_text(archive, importlib.import_module("models").Chain(), ("blk", "tail.1"))
        self.assertEqual({p: m["kind"] for p, m in archive.modules.items()},
                         {"": "container", "conv": "nn", "blk": "script", "tail": "container", "tail.0": "nn", "tail.1": "script"})
        self.assertEqual(archive.modules["blk"]["script"], "scripts/0.pt")
        node = archive.nodes["tail_1"]
        self.assertEqual((node["module"], node["module_stack"]), ("tail", [["tail", "torch.nn.modules.container.Sequential", 0]]))
        with open(os.path.join(HERE, "models.py")) as file:
            lines = file.read().split("\n")
        for name in ("conv", "blk", "tail_0"):
            source = archive.nodes[name]["source"]
            self.assertEqual((source["file"], source["function"], source["code"]),
                             ("models.py", "forward", lines[source["line"] - 1].strip()))
            self.assertEqual(source["code"], "return self.tail(self.blk(self.conv(x)))")
        facts = archive.modules["conv"]["attrs"]
        self.assertEqual((facts["kernel_size"], facts["bias"], facts["padding_mode"]), ({"tuple": [1, 1]}, True, "zeros"))
        self.assertEqual((archive.nodes["conv"]["shape"], archive.nodes["conv"]["dtype"]), ([1, 1, 2, 4], "float32"))

    def test_script_of_a_leaf_runs(self):
        self.model("Chain", "--leaf", "blk", "--leaf", "tail.1")
        with zipfile.ZipFile(self.out) as archive:
            leaf = torch.jit.load(io.BytesIO(archive.read("scripts/0.pt")))
        self.assertEqual(leaf(torch.tensor([3.0])).item(), 6)
        self.assertEqual(leaf(torch.tensor([-3.0])).item(), -4)

    def test_opaque_leaf(self):
        archive = self.model("opaque", "--leaf", "0")
        self.assertEqual((archive.modules["0"]["kind"], archive.modules["0"]["script"]), ("opaque", None))
        self.assertTrue(archive.modules["0"]["script_error"])
        self.assertEqual(archive.kinds(), ["opaque"])

    def test_wrapped_function(self):
        archive = self.model("UsesHelper", "--wrap", "models.choose", "--input", "2x2")
        self.assertEqual(archive.nodes["choose"]["target"], "models.choose")
        self.assertEqual((archive.json["wrapped"], archive.json["globals"]), (["models_choose"], {"models_choose": "models.choose"}))
        self.assertEqual(archive.nodes["add"]["shape"], [2, 2])

    def test_wrapped_by_its_bare_name(self):
        """A function of the file itself needs no module before its name; what the trace holds is the same."""
        archive = self.model("UsesHelper", "--wrap", "choose", "--input", "2x2")
        self.assertEqual(archive.nodes["choose"]["target"], "models.choose")
        self.assertEqual(archive.json["globals"], {"models_choose": "models.choose"})

    def test_input_without_a_file(self):
        found, = self.bad_model("UsesHelper", "--wrap", "choose", "--input", "none.npy")
        self.assertEqual(found["message"], "sample input none.npy cannot be read: there is no such file")

    def test_inputs_from_files(self):
        archive = self.trace(os.path.join(DEMO, "digits_net.py:make"), "--leaf", "gain", "--input", os.path.join(DEMO, "calib.npy"))
        self.assertEqual(archive.json["inputs"], [{"name": "x", "shape": [256, 1, 8, 8], "dtype": "float32"}])
        self.assertEqual(archive.nodes["classifier"]["shape"], [256, 10])


class Judges(TracerTest):
    """The models whose traces the rest of the suite is built on."""

    def test_demo(self):
        archive = self.trace(os.path.join(DEMO, "digits_net.py:make"), "--leaf", "gain", "--input", "1x1x8x8")
        demo = importlib.import_module("digits_net").make()
        self.check_text(archive, demo, ("gain",))
        self.check_state(archive, demo)
        self.assertEqual(archive.json["warnings"], [])

    def test_demo_as_committed(self):
        """Whichever torch traces, the structure is the one of the archive in the repository."""
        committed = Archive(os.path.join(DEMO, "digits.fxt"))
        self.out = os.path.join(self.folder.name, "digits.fxt")
        cwd = os.getcwd()
        os.chdir(DEMO)
        try:
            archive = self.trace("digits_net.py:make", "--leaf", "gain", "--input", "1x1x8x8")
        finally:
            os.chdir(cwd)
        for part in ("source", "root_class", "inputs", "nodes", "tensors", "globals", "wrapped", "warnings", "return_type"):
            self.assertEqual(archive.json[part], committed.json[part], part)
        for ours, theirs in zip(archive.json["modules"], committed.json["modules"]):
            for volatile in ("attrs", "extra_repr"):        # torch.nn gained constructor arguments
                self.assertLessEqual(bool(ours.pop(volatile)), bool(theirs.pop(volatile)))
            self.assertEqual(ours, theirs)
        self.assertTrue(all(torch.equal(committed.stored[n], archive.stored[n]) for n in committed.stored))

    def zoo(self, name):
        try:
            import zoo
        except ImportError as error:
            self.skipTest(f"torchvision: {error}")
        archive = self.trace(os.path.join(HERE, "zoo.py") + ":" + name, "--input", "1x3x64x64")
        root = zoo.seeded(name)
        self.check_text(archive, root)
        self.check_state(archive, root)
        self.assertEqual(archive.json["warnings"], [])
        self.assertTrue(all(n["shape"] for n in archive.json["nodes"] if n["op"] != "output"))
        return archive

    def test_resnet18(self):
        archive = self.zoo("resnet18")
        calls = [n["target"] for n in archive.json["nodes"] if n["op"] == "call_module" and n["target"] == "layer1.0.relu"]
        self.assertEqual(len(calls), 2)
        self.assertEqual(archive.nodes["add"]["source"]["code"], "out += identity")
        self.assertEqual(archive.nodes["add"]["target"], "operator.add")

    def test_mobilenet_v2(self):
        archive = self.zoo("mobilenet_v2")
        self.assertEqual(archive.nodes["features_1_conv_0_0"]["module"], "features.1.conv.0")


@unittest.skipUnless(os.path.exists(os.environ.get("FUSEBOARD_CLI", "")), "FUSEBOARD_CLI names no program")
class Folding(TracerTest):
    """Marking a leaf in an open graph folds its nodes; tracing again with that leaf gives the same graph."""

    def check(self, source, leaf, *arguments):
        folded, edits = os.path.join(self.folder.name, "folded.fxt"), os.path.join(self.folder.name, "edits.json")
        with open(edits, "w") as file:
            json.dump([{"op": "leaf", "module": leaf}], file)
        self.trace(source, *arguments)
        subprocess.run([os.environ["FUSEBOARD_CLI"], "edit", self.out, "--apply", edits, "-o", folded], check=True, stdout=subprocess.DEVNULL)
        again = self.trace(source, "--leaf", leaf, *arguments)
        self.assertIn(leaf, again.json["options"]["leaves"])
        folded = Archive(folded)

        def graph(archive):
            """The nodes, named by their place: torch.fx counts the names of what it sees."""
            text = json.dumps([[n[key] for key in ("op", "target", "args", "kwargs", "shape", "dtype")] for n in archive.json["nodes"]])
            places = {name: str(place) for place, name in enumerate(archive.nodes)}
            return json.loads(re.sub(r'\{"node": "(\w+)"\}', lambda m: f'{{"node": "{places[m.group(1)]}"}}', text))
        self.assertEqual(graph(folded), graph(again))

    def test_demo(self):
        self.check(os.path.join(DEMO, "digits_net.py:make"), "separable", "--leaf", "gain", "--input", "1x1x8x8")

    def test_resnet18(self):
        try:
            import zoo  # noqa: F401
        except ImportError as error:
            self.skipTest(f"torchvision: {error}")
        self.check(os.path.join(HERE, "zoo.py:resnet18"), "layer2.0", "--input", "1x3x64x64")


class State(TracerTest):
    def test_tied(self):
        archive = self.model("Tied", "--input", "4:int64")
        self.assertEqual(archive.json["tensors"], {"emb.weight": "emb.weight", "head.weight": "emb.weight"})
        self.assertEqual(list(archive.stored), ["emb.weight"])

    def test_aliased(self):
        archive = self.model("Aliased", "--input", "2x2")
        self.assertEqual(archive.modules["b"]["alias_of"], "a")
        self.assertEqual([n["target"] for n in archive.json["nodes"] if n["op"] == "call_module"], ["a", "a"])
        self.assertEqual(archive.json["tensors"], {"a.weight": "a.weight", "a.bias": "a.bias", "b.weight": "a.weight", "b.bias": "a.bias"})

    def test_called_twice(self):
        archive = self.model("Twice", "--input", "2x2")
        self.assertEqual([n["module_stack"] for n in archive.json["nodes"] if n["op"] == "call_module"],
                         [[["inner", "torch.nn.modules.container.Sequential", call]] for call in (0, 0, 1, 1)])

    def test_buffers_and_constants(self):
        archive = self.model("Buffers", "--input", "2x2")
        root = archive.modules[""]
        self.assertEqual((root["buffers"], root["non_persistent"], root["none"]), (["pos", "p2"], ["pos"], ["none"]))
        self.assertEqual(set(archive.json["tensors"]), {"pos", "p2", "plain", "_tensor_constant0"})
        self.assertEqual(archive.tensor("p2").tolist(), [[0, 2], [1, 3]])
        self.assertEqual((archive.tensor("plain").dtype, archive.tensor("plain").tolist()), (torch.float16, [5, 5]))
        self.assertEqual(archive.tensor("_tensor_constant0").tolist(), [1, 2])

    def test_running_the_samples_changes_nothing(self):
        archive = self.model("Training", "--input", "2x2", "--keep-mode")
        self.assertEqual(archive.tensor("bn.running_mean").tolist(), [0, 0])
        self.assertEqual(archive.tensor("bn.num_batches_tracked").item(), 0)


class Arguments(TracerTest):
    def test_kinds_of_parameters(self):
        for name, nodes in (("Star", 4), ("KeywordOnly", 4), ("Unpack", 10)):
            with self.subTest(name):
                archive = self.model(name, "--input", "2x4")
                self.assertEqual(len(archive.json["nodes"]), nodes)
                self.check_text(archive, getattr(importlib.import_module("models"), name)())
                self.assertEqual(archive.kinds(), [])
        self.assertEqual(self.model("KeywordOnly", "--input", "2x4", "--kwarg", "gain=4").json["inputs"][1],
                         {"name": "gain", "shape": [4], "dtype": "float32"})

    def test_optional_argument_fixes_a_branch(self):
        archive = self.model("Defaults", "--input", "2x2", "--kwarg", "mask=2x2")
        self.assertEqual(archive.kinds(), ["fixed_branch"])
        self.assertEqual(archive.nodes["mul"]["shape"], [2, 2])
        self.check_text(archive, importlib.import_module("models").Defaults())

    def test_optional_argument_pinned(self):
        archive = self.model("Defaults", "--input", "2x2", "--concrete", "mask=None")
        self.assertEqual(archive.kinds(), [])
        self.assertNotIn("mul", archive.nodes)
        self.check_text(archive, importlib.import_module("models").Defaults(), concrete={"mask": None})

    def test_missing_sample_leaves_shapes_open(self):
        archive = self.model("Defaults", "--input", "2x2")
        self.assertEqual(archive.kinds(), ["fixed_branch", "shapes"])
        self.assertIsNone(archive.nodes["mul"]["shape"])

    def test_tensor_default(self):
        archive = self.model("TensorDefault", "--input", "2x2")
        self.assertEqual(archive.nodes["bias"]["args"], [{"node": "_tensor_constant0"}])
        self.assertEqual(archive.nodes["add"]["shape"], [2, 2])

    def test_wrong_ones(self):
        for arguments, hint in ((("--kwarg", "maks=2x2", "--input", "2x2"), "mask"), (("--concrete", "msk=None"), "mask"),
                                (("--input", "2x2", "2x2", "2x2", "2x2"), "takes 3"), (("--input", "2x2:flot"), "dtype"),
                                (("--input", "nowhere.npy"), "nowhere.npy"), (("--input", "two"), "shape")):
            with self.subTest(arguments):
                self.assertIn(hint, self.bad_model("Defaults", *arguments)[0]["message"])


class Failing(TracerTest):
    def test_branch_names_module_line_and_fix(self):
        found, = self.bad_model("Chain", "--input", "1x1x2x4")
        self.assertEqual((found["kind"], found["module"], found["class"], found["file"], found["source"]),
                         ("control_flow", "blk", "models.Blk", "models.py", "return x * 2 if x.mean() > 0 else x - 1"))
        self.assertEqual(found["fixes"][0], {"kind": "leaf", "module": "blk", "label": "Mark as leaf"})
        self.assertEqual(found["fixes"][1]["class"], "models.Blk")
        archive = self.model("Chain", "--leaf", "blk", "--leaf", "tail.1")
        self.assertEqual(sum(n["op"] == "call_module" and n["target"] == "blk" for n in archive.json["nodes"]), 1)

    def test_all_ways_to_fail_read_alike(self):
        old = int(torch.__version__.split(".")[0]) < 2
        kinds = {"length": "length", "loop": "number", "iterate": "iteration", "integer": "number", "zeros": "argument"}
        for name, kind in {**kinds, **({"arange": "argument"} if old else {})}.items():
            with self.subTest(name):
                found, = self.bad_model(name, "--input", "2x3")
                self.assertEqual(found["kind"], kind)
                self.assertEqual((found["module"], found["class"], found["file"]), ("0", f"models.{name.title()}", "models.py"))
                self.assertTrue(found["message"].startswith("module '0' ") and found["message"].endswith("mark it as a leaf (--leaf 0)"))
                self.assertNotRegex(found["message"], "Proxy|Error|interpret")
                self.assertEqual([f["kind"] for f in found["fixes"]][:2], ["leaf", "leaf-class"])
                self.model(name, "--leaf", "0", "--input", "2x3")
                os.unlink(self.out)

    def test_root_has_no_leaf_fix(self):
        found, = self.bad_model("UsesHelper")
        self.assertEqual((found["module"], [f["kind"] for f in found["fixes"]]), ("", ["wrap", "rewrite"]))
        self.assertEqual(found["fixes"][0]["function"], "models.choose")
        self.assertIn("root", found["message"])
        self.assertEqual(self.bad_model("UsesHelper", "--doctor")[0]["module"], "")

    def test_wrong_leaves_are_refused(self):
        for arguments, kind, hint in ((("--leaf", "self.blk"), "leaf", "'blk'"), (("--leaf", "tail.9"), "leaf", "'tail.0'"),
                                      (("--leaf", ""), "leaf", "root"), (("--leaf-class", "models.Blck"), "leaf-class", "'models.Blk'"),
                                      (("--wrap", "models.chose"), "wrap", "'models.choose'")):
            with self.subTest(arguments):
                found, = self.bad_model("Chain", *arguments)
                self.assertEqual(found["kind"], kind)
                self.assertIn(hint, found["message"])

    def test_doctor(self):
        status, result = self.run_tracer(os.path.join(HERE, "models.py") + ":Chain", "--doctor", output=False)
        self.assertEqual((status, result["leaves"]), (0, ["blk", "tail.1"]))
        self.assertEqual([p["module"] for p in result["problems"]], ["blk", "tail.1"])
        status, result = self.run_tracer(os.path.join(HERE, "models.py") + ":Chain", "--doctor", "--leaf", "conv", "--leaf", "blk")
        self.assertEqual((status, result["leaves"]), (0, ["blk", "tail.1"]))
        self.assertEqual(Archive(self.out).modules["blk"]["kind"], "script")

    def test_models_that_are_broken(self):
        for name, kind in (("Hidden", "unregistered"), ("Broken", "model"), ("needs", "source"), ("NUMBER", "source"), ("nothing", "source")):
            with self.subTest(name):
                self.assertEqual(self.bad_model(name, "--input", "2x2")[0]["kind"], kind)

    def test_sources_that_are_broken(self):
        for text, kind, line in (("x = = 1", "import", 1), ("import sys\nsys.exit(3)", "import", 2), ("\n\nimport nowhere", "import", 3),
                                 ("def make():\n    return 1 / 0", "make", 2)):
            with self.subTest(text):
                path = os.path.join(self.folder.name, "net.py")
                with open(path, "w") as file:
                    file.write(text)
                importlib.import_module("linecache").clearcache()
                found, = self.refuse(path + ":make")
                self.assertEqual((found["kind"], found["file"], found["line"], found["source"]), (kind, "net.py", line, text.split("\n")[line - 1].strip()))
        for source in ("nowhere.py:make", "no.where:make", "models.py"):
            self.assertIn(self.refuse(source)[0]["kind"], ("source", "import"))

    def test_failed_trace_leaves_old_file(self):
        self.model("made")
        with open(self.out, "rb") as file:
            before = file.read()
        status, _ = self.run_tracer(os.path.join(HERE, "models.py") + ":Chain")
        with open(self.out, "rb") as file:
            self.assertEqual((status, file.read()), (1, before))

    def test_target_that_cannot_be_written(self):
        self.out = os.path.join(self.folder.name, "none", "x.fxt")
        self.assertEqual(self.bad_model("made")[0]["kind"], "write")


class Warned(TracerTest):
    def test_hooks(self):
        archive = self.model("hooked", "--input", "2x1")
        self.assertEqual([(w["kind"], w["module"]) for w in archive.json["warnings"]], [("hook", ""), ("hook", "0")])
        archive = self.model("hooked_inside")
        self.assertEqual([(w["kind"], w["module"]) for w in archive.json["warnings"]], [("hook", "0")])
        self.assertIn("mul", archive.nodes)

    def test_training(self):
        self.assertEqual(self.model("Training", "--input", "2x2").kinds(), [])
        archive = self.model("Training", "--input", "2x2", "--keep-mode")
        self.assertEqual([(w["kind"], w["module"], w["node"]) for w in archive.json["warnings"]],
                         [("training", None, "dropout"), ("training", "bn", None)])
        self.assertTrue(archive.modules["bn"]["training"])

    def test_random_constant(self):
        self.assertEqual(self.model("Random").kinds(), ["random_constant", "constant"])

    def test_unused_leaf(self):
        with open(os.path.join(self.folder.name, "net.py"), "w") as file:
            file.write("import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                       "        self.spare = torch.nn.ReLU()\n    def forward(self, x):\n        return x + 1\n")
        self.assertEqual(self.trace(os.path.join(self.folder.name, "net.py") + ":Net", "--leaf", "spare").kinds(), ["unused_leaf"])


class CommandLine(TracerTest):
    """As a process of its own, the way the application calls it."""

    def call(self, *arguments):
        done = subprocess.run([sys.executable, "-B", TRACER, *arguments], cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        errors = [line for line in done.stderr.splitlines() if not line.startswith("progress: ")]
        return done.returncode, done.stdout, errors

    def test_what_the_model_prints_is_no_result(self):
        status, out, errors = self.call("models.py:loud", "-o", self.out, "--json")
        self.assertEqual((status, json.loads(out)["nodes"], errors), (0, 3, ["make says hello", "forward says hello"]))

    def test_failure_is_one_sentence(self):
        status, out, errors = self.call("models.py:Chain", "-o", self.out)
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(len(errors), 1)
        self.assertRegex(errors[0], r"^cannot trace models\.py:Chain: module 'blk' takes a branch .* \(--leaf blk\) \(models\.py:\d+: return x \* 2")

    def test_wrong_usage(self):
        for arguments in ((), ("models.py:made",), ("models.py:made", "-o", self.out, "--concrete", "x"), ("a:b", "-o", "c", "--what")):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), self.assertRaises(SystemExit) as stopped:
                fuseboard_trace.main(list(arguments))
            self.assertEqual((stopped.exception.code, out.getvalue(), err.getvalue()[:6]), (2, "", "usage:"))


if __name__ == "__main__":
    unittest.main()
