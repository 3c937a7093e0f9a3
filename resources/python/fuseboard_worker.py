#!/usr/bin/env python3
# Fuseboard: runs what only Python can run: the user's own modules and functions, in the user's own Python. GPL-3.0-or-later.
#
# Fuseboard starts this process on the user's command and calls modules of the user's model by their path, and functions of the
# user's by their name. Each message is one line of text, an argument in the JSON of model/io/fxt-format.md; tensors lie in
# memory that both processes map and go by "dtype:sizes:strides:place". Nothing is pickled. Standard output is the user's: the
# messages have a socket of their own. The process dies with the one that started it.
import ctypes
import os
import signal
import sys

SOCKET, MEMORY = 3, 4
ALIGNMENT = 64


def die_with_parent():
    """Has the kernel kill this process when its parent ends, however that ends and whatever runs here then."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)     # PR_SET_PDEATHSIG


if __name__ == "__main__":
    die_with_parent()
    if os.getppid() != int(sys.argv[1]):
        os._exit(0)
    os.register_at_fork(after_in_child=die_with_parent)
    for descriptor in (SOCKET, MEMORY):
        os.set_inheritable(descriptor, False)

import dataclasses      # noqa: E402
import functools        # noqa: E402
import inspect          # noqa: E402
import json             # noqa: E402
import mmap             # noqa: E402
import re               # noqa: E402
import socket           # noqa: E402
import traceback        # noqa: E402
import types            # noqa: E402

try:
    import fuseboard_trace as tracing
    import torch
except SystemExit as error:     # it says that there is no torch
    socket.socket(fileno=SOCKET).sendall(json.dumps({"dict": [["error", str(error)]]}).encode() + b"\n")
    raise


class Refused(Exception):
    """A sentence for the user."""


# --- tensors in shared memory ----------------------------------------------------------------------------------------

def extent(sizes, strides):
    """Elements from the first to the last one of a strided tensor."""
    return 0 if 0 in sizes else 1 + sum((n - 1) * step for n, step in zip(sizes, strides))


def flat(tensor):
    """Everything from the first to the last element, as it lies in memory."""
    return tensor.as_strided([extent(tensor.shape, tensor.stride())], [1])


def storage(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()


class Memory:
    """The shared memory. It only ever grows, and either side may do that."""

    def __init__(self):
        self.map = None     # what grew is mapped anew: tensors of the old map keep that

    def _span(self, size):
        if os.fstat(MEMORY).st_size < size:
            os.ftruncate(MEMORY, size)
        if self.map is None or len(self.map) < size:
            self.map = mmap.mmap(MEMORY, os.fstat(MEMORY).st_size)

    def flat(self, dtype, count, place):
        """`count` elements as a tensor that lies in the memory itself."""
        if not count:
            return torch.empty(0, dtype=dtype)
        size = torch.empty(0, dtype=dtype).element_size()
        self._span(place + count * size)
        return torch.frombuffer(self.map, dtype=dtype, count=count, offset=place)


def numbers(text):
    return [int(n) for n in text.split(",")] if text else []


class Reader:
    """A request: the argument as Python has it, with tensors of their own."""

    def __init__(self, memory):
        self.memory, self.tensors = memory, {}

    def tensor(self, name):
        if name not in self.tensors:
            kind, sizes, strides, place = name.split(":")
            dtype = getattr(torch, kind, None)
            if not isinstance(dtype, torch.dtype):
                raise Refused(f"torch {torch.__version__} has no dtype {kind}")
            sizes, strides = numbers(sizes), numbers(strides)
            self.tensors[name] = self.memory.flat(dtype, extent(sizes, strides), int(place)).clone().as_strided(sizes, strides)
        return self.tensors[name]

    def changed(self, before):
        """The tensors that are not as they came: numpy and in-place operators write into them. `before` has them as they came
        where the memory does not any more."""
        for name, tensor in self.tensors.items():
            own = flat(tensor)
            came = before[name] if before else self.memory.flat(own.dtype, own.numel(), int(name.rsplit(":", 1)[1]))
            if not torch.equal(own.view(torch.uint8), came.view(torch.uint8)):
                yield name, tensor

    def value(self, j):
        if isinstance(j, list):
            return [self.value(v) for v in j]
        if not isinstance(j, dict):
            return j
        (kind, v), = j.items()
        return getattr(self, "_" + kind)(v)

    def _tuple(self, v):
        return tuple(map(self.value, v))

    def _size(self, v):
        return torch.Size(map(self.value, v))

    def _dict(self, v):
        return {self.value(key): self.value(value) for key, value in v}

    def _slice(self, v):
        return slice(*map(self.value, v))

    def _range(self, v):
        return range(*map(self.value, v))

    def _float(self, v):
        return float(v)

    def _int(self, v):
        return int(v)

    def _complex(self, v):
        return complex(*map(self.value, v))

    def _device(self, v):
        return torch.device(v)

    def _ellipsis(self, v):
        return Ellipsis

    def _tensor(self, v):
        return None if v is None else self.tensor(v)

    def _symbol(self, v):
        v = v["name"] if isinstance(v, dict) else v
        parts = ("_" + v if v.startswith("operator.") else v).split(".")
        for cut in range(len(parts), 0, -1):
            found = sys.modules.get(".".join(parts[:cut]))      # nothing is imported because a file says so
            try:
                for part in parts[cut:]:
                    found = getattr(found, part)
            except AttributeError:
                continue
            if found is not None:
                return found
        raise Refused(f"there is no {v} here, which is an argument of it")

    _dtype = _layout = _memory_format = _symbol

    def _namedtuple(self, v):
        cls, fields = self._symbol(v["type"]), {name: self.value(value) for name, value in v["fields"]}
        if hasattr(cls, "_fields"):
            return cls(**fields)
        made = cls.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    def _opaque(self, v):
        raise Refused(f"an argument of it is {v['type']}, which cannot be sent to Python")


class Answer(tracing.Document):
    """An answer: arguments are written as in an archive, their tensors into the shared memory."""

    def __init__(self, memory, given):
        self.memory, self.given, self.end, self.names = memory, given, 0, {}

    def _argument(self, a):
        if type(a).__module__ == "numpy" and hasattr(a, "item"):
            return self._argument(torch.from_numpy(a) if getattr(a, "ndim", 0) else a.item())
        if isinstance(a, torch.Tensor):
            if id(a) not in self.names:
                self.names[id(a)] = self._place(a), a
            return {"tensor": self.names[id(a)][0]}
        j = super()._argument(a)
        if isinstance(j, dict) and "opaque" in j:
            # An object is its fields: the graph reads them by getattr.
            fields = [f.name for f in dataclasses.fields(a)] if dataclasses.is_dataclass(a) else list(getattr(a, "__dict__", {}))
            if fields and not isinstance(a, torch.nn.Module):
                return {"namedtuple": {"type": tracing.class_name(a), "fields": [[f, self._argument(getattr(a, f))] for f in fields]}}
        return j

    def _place(self, tensor):
        t = tensor.detach()
        if t.layout != torch.strided or t.is_quantized or t.is_meta:
            kind = "quantized" if t.is_quantized else "meta" if t.is_meta else str(t.layout).replace("torch.", "")
            raise Refused(f"a {kind} tensor came out, which Fuseboard cannot take from Python")
        t = t.cpu().resolve_conj().resolve_neg() if hasattr(t, "resolve_conj") else t.cpu()
        if type(t) is not torch.Tensor:
            t = t.as_subclass(torch.Tensor)
        sizes, strides = list(t.shape), list(t.stride())
        shape = f"{','.join(map(str, sizes))}:{','.join(map(str, strides))}"
        for name, source in self.given.items():     # a view of what was given stays one
            if t.dtype == source.dtype and t.numel() and storage(t).data_ptr() == storage(source).data_ptr():
                return f"given {name.rsplit(':', 1)[1]}:{shape}:{t.storage_offset()}"
        own, place = flat(t), self.end
        self.end += (own.numel() * own.element_size() + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        self.memory.flat(t.dtype, own.numel(), place).copy_(own)
        return f"{str(t.dtype).replace('torch.', '')}:{shape}:{place}"


# --- the model -------------------------------------------------------------------------------------------------------

class Model:
    def __init__(self, source):
        self.source = tracing.Source(source)
        torch.manual_seed(0)        # as the tracer does, for what is random and no parameter
        self.root = self.source.load().eval()
        self.modules = dict(self.root.named_modules(remove_duplicate=False))
        self.replaced = {}          # path -> the forward that stands aside

    def find(self, path, cls):
        module = self.modules.get(path)
        if module is None:
            raise Refused(f"{self.source.shown} has no module '{path}'{tracing.near(path, self.modules)}; name the source that was traced (--source)")
        if cls.rsplit(".", 1)[-1] != type(module).__name__:
            raise Refused(f"{repr(path) if path else 'the model'} is a {type(module).__name__} in {self.source.shown} and was a "
                          f"{cls.rsplit('.', 1)[-1]} when the model was traced; name the source that was traced (--source)")
        return module

    def function(self, name):
        """A function or class of the source's own files, or one that what it imports has torch.fx.wrap keep: an archive may name any,
        and runs nothing else."""
        place, _, word = name.rpartition(".")
        source = self.source.python_module
        # Where its name was taken, the tracer has called the source's file NAME_source.
        same = re.sub("_source$", "", place) == re.sub("_source$", "", source.__name__)
        found = getattr(source if same else sys.modules.get(place), word, None)
        wrapped = torch.fx._symbolic_trace._wrapped_fns_to_patch
        kept = [frame.get(key) for frame, key in wrapped] if isinstance(wrapped, list) else [frame.get(key[1]) for key, frame in wrapped.items()]
        home = getattr(sys.modules.get(found.__module__), "__file__", None) if isinstance(found, type) else None
        file, folder = os.path.abspath(home or getattr(getattr(found, "__code__", None), "co_filename", "")), self.source.sources.folder
        own = file.startswith(folder) and "-packages" not in file[len(folder):]
        if not callable(found) or not own and not any(found is f for f in kept):
            raise Refused(f"{name} is no function of {self.source.shown}, nor one that it has torch.fx.wrap keep; name the source that was "
                          "traced (--source), or mark the module that calls it as a leaf")
        return found

    def set_state(self, tensors, training):
        """Makes the modules hold the tensors of Fuseboard's document, which may have been edited there."""
        for name, tensor in tensors.items():
            path, _, leaf = name.rpartition(".")
            own = getattr(self.modules.get(path), leaf, None)
            if not isinstance(own, torch.Tensor):
                raise Refused(f"{self.source.shown} has no tensor '{name}'; name the source that was traced (--source)")
            if own.shape != tensor.shape or own.dtype != tensor.dtype:
                raise Refused(f"'{name}' is {own.dtype} {list(own.shape)} in {self.source.shown} and {tensor.dtype} {list(tensor.shape)} in the "
                              "document; name the source that was traced (--source)")
            with torch.no_grad():
                own.copy_(tensor)
        for path, mode in training.items():
            if path in self.modules:
                self.modules[path].training = mode

    def set_parts(self, parts, ask):
        """Has Fuseboard run these submodules: path -> (class, names of what it wants to be given)."""
        for path in set(self.replaced) - set(parts):
            self.modules[path].forward = self.replaced.pop(path)
        for path, (cls, names) in parts.items():
            module = self.find(path, cls)
            original = self.replaced.setdefault(path, module.forward)
            module.forward = functools.partial(ask, path, original, names)

    def complaint(self, error):
        """How the user's traceback ends, and where that was."""
        if isinstance(error, SystemExit):
            text = f"it calls sys.exit({'' if error.code is None else repr(error.code)})"
        else:
            text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1 if isinstance(error, SyntaxError) else 0]
        where = self.source.sources.of_error(error)
        return f"{where['file']}:{where['line']} `{where['code']}`: {text}" if where else text


def bound(forward, names, args, kwargs):
    """What a traced submodule is given, in the order of its placeholders."""
    signature = inspect.signature(forward)
    if all(name in signature.parameters for name in names):
        arguments = signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        return [arguments.arguments[name] for name in names]
    values = tracing.Binding(types.SimpleNamespace(forward=forward), args, kwargs).values
    for name in names:
        if name not in values:
            raise Refused(f"it was traced with an argument '{name}' and is called without")
    return [values[name] for name in names]


class Session:
    """The messages. While Fuseboard runs a submodule of the model it may want something run here, and so on."""

    def __init__(self, channel, model):
        self.channel, self.lines, self.model, self.memory = channel, channel.makefile("rb"), model, Memory()

    def send(self, answer):
        self.channel.sendall(json.dumps(answer).encode() + b"\n")

    def receive(self):
        """The next message that is no request, with all requests before it served."""
        for line in self.lines:
            message = dict(json.loads(line)["dict"])
            if "call" not in message:
                return message
            self.send(self.serve(message))

    def serve(self, request):
        """The answer to a request, which never is a failure of this process."""
        model, given, rest = self.model, Reader(self.memory), Reader(self.memory)
        try:
            args, kwargs = given.value(request.pop("args")), given.value(request.pop("kwargs"))
            request = {name: rest.value(value) for name, value in request.items()}
            parts = None
            if "class" in request:
                called = model.find(request["call"], request["class"])
                model.set_state(request["state"], request["training"])
                parts = request["parts"]
            else:
                called = model.function(request["call"])
            if parts is not None:       # else this is called from within such a part
                model.set_parts(parts, self.ask)
            if torch.get_num_threads() != request["threads"]:
                torch.set_num_threads(request["threads"])
            torch.set_rng_state(request["random"])
            before = {name: flat(tensor).clone() for name, tensor in given.tensors.items()} if parts else None
            with torch.no_grad():
                value = called(*args, **kwargs)
            changed = [(int(name.rsplit(":", 1)[1]), tensor.clone()) for name, tensor in given.changed(before)]
            return Answer(self.memory, given.tensors)._argument({"value": value, "changed": changed, "random": torch.get_rng_state()})
        except Refused as error:
            return {"dict": [["error", str(error)]]}
        except BaseException as error:
            return {"dict": [["error", model.complaint(error)]]}

    def ask(self, path, forward, names, *args, **kwargs):
        """A submodule that Fuseboard runs."""
        inputs = bound(forward, names, args, kwargs)
        self.send(Answer(self.memory, {})._argument({"part": path, "inputs": inputs, "random": torch.get_rng_state()}))
        answer = self.receive()
        if answer is None:
            os._exit(0)
        reader = Reader(self.memory)
        answer = {name: reader.value(value) for name, value in answer.items()}
        if "error" in answer:
            raise Refused(answer["error"])
        torch.set_rng_state(answer["random"])
        return answer["value"]


def main():
    channel = socket.socket(fileno=SOCKET)

    def send(answer):
        channel.sendall(json.dumps(answer).encode() + b"\n")

    try:
        model = Model(sys.argv[2])
    except tracing.Failure as failure:
        p = failure.problems[0]
        where = f"{p['file']}:{p['line']} `{p['source']}`: " if p["file"] else ""
        send({"dict": [["error", where + p["message"]]]})
        return
    send({"dict": [["torch", torch.__version__]]})
    Session(channel, model).receive()


if __name__ == "__main__":
    main()
    os._exit(0)     # whatever threads the user's code left
