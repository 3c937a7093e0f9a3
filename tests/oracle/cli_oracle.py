"""What tst_cli needs of real torch, in one process: `cli_oracle.py FOLDER` writes for the demo, ResNet-18 and MobileNetV2 what
texts.py writes, MODEL.in.npy and MODEL.out.npy (what torch makes of an input on two threads), and bad_*.fxt: archives that
nobody should trust. GPL-3.0-or-later."""
import json
import os
import runpy
import struct
import sys
import zipfile

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"demo": ("../../resources/demo/digits_net.py", "make", "@gain", (4, 1, 8, 8)),
          "resnet18": ("../tracer/zoo.py", "resnet18", "", (1, 3, 224, 224)),
          "mobilenet_v2": ("../tracer/zoo.py", "mobilenet_v2", "", (1, 3, 224, 224))}


def hostile():
    with zipfile.ZipFile("demo.fxt") as z:
        members = {name: z.read(name) for name in z.namelist()}
    graph = members["graph.json"]
    tensors = members["tensors.safetensors"]
    header = struct.unpack("<Q", tensors[:8])[0]

    def write(name, **changed):
        with zipfile.ZipFile(f"bad_{name}.fxt", "w") as z:
            for member, data in {**members, **changed}.items():
                if data is not None:
                    z.writestr(member, data)

    def edited(change):
        document = json.loads(graph)
        change(document)
        return {"graph.json": json.dumps(document)}

    def claimed(shape, offsets):
        entries = json.loads(tensors[8:8 + header])
        first = next(name for name in entries if name != "__metadata__")
        entries[first] = {"dtype": "F32", "shape": shape, "data_offsets": offsets}
        text = json.dumps(entries).encode()
        return {"tensors.safetensors": struct.pack("<Q", len(text)) + text + tensors[8 + header:]}

    def put(key, value):
        return lambda document: document["nodes"][1].update({key: value})

    write("json", **{"graph.json": graph[:len(graph) // 2]})
    write("deep", **{"graph.json": b"[" * 200000})
    write("no_graph", **{"graph.json": None})
    write("no_tensors", **{"tensors.safetensors": None})
    write("cycle", **edited(put("args", [{"node": json.loads(graph)["nodes"][-2]["name"]}])))
    write("opcode", **edited(put("op", "call_kernel")))
    write("version", **edited(lambda document: document.update(version=99)))
    write("offset", **claimed([16], [len(tensors) + 64, len(tensors) + 128]))
    write("huge", **claimed([50000, 50000], [0, 10**10]))
    write("header", **{"tensors.safetensors": struct.pack("<Q", 2**62) + tensors[8:]})


sys.argv = ["texts.py", sys.argv[1]] + [f"{name}={os.path.join(HERE, path)}:{make}{leaf}" for name, (path, make, leaf, _) in MODELS.items()]
load = runpy.run_path(os.path.join(HERE, "texts.py"))["load"]     # moves to FOLDER
torch.set_num_threads(2)
for name, (path, make, _, shape) in MODELS.items():
    torch.manual_seed(7)
    x = torch.randn(shape)
    with torch.no_grad():
        y = getattr(load(os.path.join(HERE, path)), make)().eval()(x)
    numpy.save(f"{name}.in.npy", x.numpy())
    numpy.save(f"{name}.out.npy", y.numpy())
hostile()
