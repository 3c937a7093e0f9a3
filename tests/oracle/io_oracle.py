"""Arrays, weights and archives as NumPy, torch and zipfile see them.

    io_oracle.py arrays FOLDER     writes arrays in every layout that NumPy has, prints {file: {name: facts}}
    io_oracle.py read FILE...      prints {file: {name: facts}} of arrays that Fuseboard wrote
    io_oracle.py weights FILE      loads a torch weights file, prints {name: facts}
    io_oracle.py zip FILE          checks a zip archive, prints {member: [size, data offset]}
    io_oracle.py foreign FOLDER    writes files that people mistake for traces
"""
import json
import os
import struct
import sys
import zipfile

import numpy as np
import torch


def plain(values):
    return [str(v) if v != v or v in (float("inf"), float("-inf")) else v for v in values]


def facts(a):
    flat = np.asarray(a).reshape(-1)
    return {"dtype": flat.dtype.name, "shape": list(np.shape(a)), "values": plain(flat.real.astype(np.float64).tolist())}


def make_arrays(folder):
    base = np.arange(24).reshape(2, 3, 4) - 7
    arrays = {
        "f4": base.astype("<f4"), "f8": base.astype("<f8") / 3, "f2": base.astype("<f2"), "b1": base > 0, "u1": base.astype("u1"),
        "i1": base.astype("i1"), "i2": base.astype("<i2"), "i4": base.astype("<i4"), "i8": base.astype("<i8"), "u2": base.astype("<u2"),
        "u4": base.astype("<u4"), "u8": (base + 7).astype("<u8"), "c8": base.astype("<c8") * (1 + 2j), "big_f4": base.astype(">f4"),
        "big_i2": base.astype(">i2"), "big_c16": base.astype(">c16") * 1j + base, "fortran": np.asfortranarray(base.astype("<f4")),
        "fortran_big": np.asfortranarray(base.astype(">f8")), "scalar": np.float32(2.5), "vector": np.array([1.5]),
        "empty": np.zeros((0, 3), "f4"), "special": np.array([np.nan, np.inf, -np.inf, -0.0], "f4")}
    out = {}
    for name, a in arrays.items():
        a = np.asarray(a)
        np.save(os.path.join(folder, name + ".npy"), a)
        out[name + ".npy"] = {"": facts(a)}
    for version in ((2, 0), (3, 0)):
        name = f"version{version[0]}.npy"
        with open(os.path.join(folder, name), "wb") as file:
            np.lib.format.write_array(file, arrays["f4"], version=version)
        out[name] = {"": facts(arrays["f4"])}
    members = {k: arrays[k] for k in ("f4", "fortran", "empty", "b1")}
    np.savez(os.path.join(folder, "stored.npz"), **members)
    np.savez_compressed(os.path.join(folder, "deflated.npz"), **members)
    for name in ("stored.npz", "deflated.npz"):
        out[name] = {k: facts(v) for k, v in members.items()}
    np.save(os.path.join(folder, "objects.npy"), np.array([{}, None], dtype=object), allow_pickle=True)
    np.save(os.path.join(folder, "fields.npy"), np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    np.save(os.path.join(folder, "text.npy"), np.array(["a", "bc"]))
    return out


def read_safetensors(path):
    types = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64, "U8": torch.uint8, "BOOL": torch.bool, "BF16": torch.bfloat16, "F16": torch.float16}
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(size))
        body = file.read()
    out = {}
    for name, e in header.items():
        begin, end = e["data_offsets"]
        t = torch.frombuffer(bytearray(body[begin:end]), dtype=types[e["dtype"]]) if end > begin else torch.zeros(0, dtype=types[e["dtype"]])
        t = t.reshape(e["shape"])
        out[name] = dict(facts(t.double().numpy()), dtype=str(t.dtype)[6:])
    return out


def read_arrays(path):
    if path.endswith(".safetensors"):
        return read_safetensors(path)
    data = np.load(path, allow_pickle=False)
    return {k: facts(data[k]) for k in data.files} if path.endswith(".npz") else {"": facts(data)}


def weights(path):
    options = {} if torch.__version__.startswith("1.") else {"weights_only": True}      # 1.13 allows no quantized tensors
    out = {}
    loaded = torch.load(path, **options)
    pointers = {}
    for name, t in loaded.items():
        whole = t.dequantize() if t.is_quantized else t
        entry = facts(whole.resolve_conj().to(torch.float64).numpy() if not whole.is_complex() else whole.numpy())
        entry["dtype"] = str(t.dtype)[6:]
        if t.is_quantized:
            entry["raw"] = t.int_repr().reshape(-1).tolist()
            if t.qscheme() == torch.per_tensor_affine:
                entry.update(scales=[t.q_scale()], zeros=[t.q_zero_point()], axis=-1)
            else:
                entry.update(scales=t.q_per_channel_scales().tolist(), zeros=t.q_per_channel_zero_points().tolist(), axis=t.q_per_channel_axis())
        entry["tied"] = pointers.setdefault(t.storage().data_ptr(), name) if t.numel() else name
        out[name] = entry
    return out


def check_zip(path):
    out = {}
    with zipfile.ZipFile(path) as z, open(path, "rb") as file:
        assert z.testzip() is None
        for info in z.infolist():
            file.seek(info.header_offset + 26)
            name, extra = struct.unpack("<HH", file.read(4))
            out[info.filename] = [info.file_size, info.header_offset + 30 + name + extra]
    return out


class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2


def foreign(folder):
    torch.jit.script(Net()).save(os.path.join(folder, "script.pt"))
    torch.save({"w": torch.ones(2)}, os.path.join(folder, "saved.pt"))
    torch.save({"w": torch.ones(2)}, os.path.join(folder, "old.pt"), _use_new_zipfile_serialization=False)
    if hasattr(torch, "export"):
        torch.export.save(torch.export.export(Net(), (torch.ones(2),)), os.path.join(folder, "program.pt2"))


command, *paths = sys.argv[1:]
if command == "arrays":
    print(json.dumps(make_arrays(paths[0])))
elif command == "read":
    print(json.dumps({os.path.basename(p): read_arrays(p) for p in paths}))
elif command == "weights":
    print(json.dumps(weights(paths[0])))
elif command == "zip":
    print(json.dumps(check_zip(paths[0])))
elif command == "foreign":
    foreign(paths[0])
