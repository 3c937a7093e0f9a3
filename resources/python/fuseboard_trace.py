#!/usr/bin/env python3
# Fuseboard: traces a PyTorch model with torch.fx and writes it as a .fxt archive. GPL-3.0-or-later.
#
# This file runs in the user's own Python, beside the user's own packages: it is one file, needs torch alone (1.13 and
# newer) and imports nothing of Fuseboard's. The trace is torch.fx's own; what is added is what the workbench needs and
# torch.fx does not keep alike in every version: which module, which call of it and which line of source made a node,
# and, when tracing fails, where and what to do about it. The archive is described in model/io/fxt-format.md.
import argparse
import ast
import builtins
import contextlib
import copy
import ctypes
import difflib
import dis
import enum
import functools
import importlib
import importlib.util
import inspect
import io
import itertools
import json
import keyword
import linecache
import math
import os
import random
import re
import signal
import struct
import sys
import sysconfig
import tempfile
import traceback
import warnings
import zipfile

try:
    import torch
    import torch.fx
    from torch.fx import node as fx_node
except ImportError as error:
    sys.exit(f"{sys.executable} cannot import torch ({error}); choose the Python of an environment that has PyTorch")

ALIGNMENT = 64
TORCH_FOLDER = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
STDLIB_FOLDER = sysconfig.get_paths()["stdlib"] + os.sep
OWN_FILE = os.path.abspath(__file__)
# Names that torch.fx puts into the globals of all code that it generates.
STANDARD_GLOBALS = {"inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"}


class Failure(Exception):
    """Work that failed, told as the problems of the --json document."""

    def __init__(self, *problems):
        super().__init__(problems[0]["message"])
        self.problems = list(problems)
        self.meant = set()          # names of the arguments of forward that had to do with it
        self.modules = []           # of the model, where it was made


def problem(kind, message, module=None, cls=None, where=None, fixes=()):
    where = where or {}
    return {"kind": kind, "module": module, "class": cls, "file": where.get("file"), "line": where.get("line"),
            "source": where.get("code"), "message": message, "fixes": list(fixes)}


def progress(fraction, what):
    print(f"progress: {fraction:.2f} {what}", file=sys.stderr, flush=True)


def class_name(obj):
    cls = obj if isinstance(obj, type) else type(obj)
    return f"{cls.__module__}.{cls.__qualname__}"


def first_line(error):
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line if len(line) <= 200 else line[:200].rsplit(" ", 1)[0] + " ..."


def near(name, names):
    """A hint of the names that are meant, perhaps, as ' (did you mean a, b?)'."""
    names = sorted(set(names))
    found = [n for n in names if name == "self." + n]
    if not found:
        found = [n for n in names if n.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]]
        found += [n for n in difflib.get_close_matches(name, names, 3, 0.6) if n not in found]
    return f" (did you mean {', '.join(repr(n) for n in found[:3])}?)" if found else ""


# --- where a line of source is ---------------------------------------------------------------------------------------

class Sources:
    """Names files without absolute paths and tells the user's frames from those of torch and of Python."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder) + os.sep
        self.kinds, self.names = {}, {}

    def kind(self, filename):
        if filename not in self.kinds:
            path = os.path.abspath(filename)
            packages = "site-packages" in path or "dist-packages" in path
            self.kinds[filename] = (
                "other" if filename.startswith("<") or path == OWN_FILE
                else "torch" if path.startswith(TORCH_FOLDER)
                else "other" if path.startswith(STDLIB_FOLDER) and not packages
                else "user")
        return self.kinds[filename]

    def name(self, filename):
        if filename not in self.names:
            self.names[filename] = self._name(filename)
        return self.names[filename]

    def _name(self, filename):
        path = os.path.abspath(filename)
        below = [p for p in ([self.folder] + [os.path.abspath(p or ".") + os.sep for p in sys.path]) if path.startswith(p)]
        if path.startswith(self.folder) and "-packages" not in path[len(self.folder):]:
            return path[len(self.folder):]
        return path[len(max(below, key=len)):] if below else os.path.basename(path)

    def line(self, filename, line, function):
        return {"file": self.name(filename), "line": line, "code": linecache.getline(filename, line).strip(), "function": function}

    def innermost(self, frames):
        """The user's innermost of `frames` (file, line, function; innermost first), or torch.nn's where the user has none."""
        fallback = None
        for frame in frames:
            kind = self.kind(frame[0])
            if kind == "user":
                return self.line(*frame)
            if fallback is None and kind == "torch" and frame[2] == "forward" and "/nn/" in frame[0].replace(os.sep, "/"):
                fallback = frame
        return self.line(*fallback) if fallback else None

    def of_error(self, error):
        return self.innermost([(f.filename, f.lineno, f.name) for f in reversed(traceback.extract_tb(error.__traceback__))])


# --- finding the module ----------------------------------------------------------------------------------------------

class Source:
    """SOURCE of the command line: `file.py:name` or `package.module:name`."""

    def __init__(self, text):
        place, _, self.name = text.rpartition(":")
        if not place or not self.name:
            raise Failure(problem("source", f"'{text}' names no model: write file.py:name or package.module:name, where name is a module "
                                  "or a callable without arguments that returns one"))
        self.place = place
        self.is_file = place.endswith(".py") or os.sep in place
        self.shown = (os.path.basename(place) if os.path.isabs(place) else place) + ":" + self.name
        self.sources = Sources(os.path.dirname(os.path.abspath(place)) if self.is_file else os.getcwd())

    def load(self):
        """The torch.nn.Module that is meant, imported and made."""
        self.python_module = self._import()
        made = self.find(self.name)
        if not isinstance(made, torch.nn.Module):
            made = self._call(made)
        if isinstance(made, torch.jit.ScriptModule):
            raise Failure(problem("source", f"{self.shown} is TorchScript, which torch.fx cannot trace; save it with torch.jit.save and open the file"))
        if not isinstance(made, torch.nn.Module):
            raise Failure(problem("source", f"{self.shown} gave {class_name(made)}, which is no torch.nn.Module; name a module or a callable that returns one"))
        return made

    def find(self, name):
        """What the source calls `name`."""
        found = self.python_module
        for part in name.split("."):
            if not hasattr(found, part):
                raise Failure(problem("source", f"{self.place} has no '{name}'"
                                      f"{near(name, [n for n, v in vars(self.python_module).items() if callable(v)])}"))
            found = getattr(found, part)
        return found

    def made(self, name):
        """What the function `name` of the source gives, or that object itself."""
        found = self.find(name)
        return self._guard(found, "input", f"{name} failed") if inspect.isroutine(found) else found

    def _import(self):
        if self.is_file:
            path = os.path.abspath(self.place)
            if not os.path.isfile(path):
                raise Failure(problem("source", f"{self.place} is not there; check the path"))
            name = re.sub(r"\W", "_", os.path.splitext(os.path.basename(path))[0])
            if name in sys.modules or name in getattr(sys, "stdlib_module_names", ()):
                name += "_source"
            sys.path.insert(0, os.path.dirname(path))

            def load():
                spec = importlib.util.spec_from_file_location(name, path)
                module = sys.modules[name] = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
        else:
            sys.path.insert(0, os.getcwd())

            def load():
                return importlib.import_module(self.place)
        module = self._guard(load, "import", f"{self.place} cannot be imported")
        if not self.is_file and getattr(module, "__file__", None):
            depth = self.place.count(".") + (os.path.basename(module.__file__) == "__init__.py")
            folder = os.path.dirname(os.path.abspath(module.__file__))
            for _ in range(depth):
                folder = os.path.dirname(folder)
            self.sources = Sources(folder)
        return module

    def _call(self, made):
        if not callable(made):
            raise Failure(problem("source", f"{self.shown} is {class_name(made)}, neither a module nor a callable that returns one"))
        with contextlib.suppress(ValueError):
            needed = [p.name for p in inspect.signature(made).parameters.values()
                      if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
            if needed:
                raise Failure(problem("source", f"{self.shown} needs arguments ({', '.join(needed)}); write a function without arguments "
                                      "that returns the module and name that"))
        return self._guard(made, "make", f"{self.shown} failed")

    def _guard(self, work, kind, what):
        try:
            return work()
        except SystemExit as error:
            raise Failure(problem(kind, f"{what}: it ends the process (sys.exit); keep what is not the model under "
                                  "`if __name__ == \"__main__\":`", where=self.sources.of_error(error))) from error
        except SyntaxError as error:
            where = {"file": self.sources.name(error.filename or self.place), "line": error.lineno, "code": (error.text or "").strip()}
            raise Failure(problem(kind, f"{what}: syntax error, {error.msg}", where=where)) from error
        except Exception as error:
            raise Failure(problem(kind, f"{what}: {type(error).__name__}: {first_line(error)}", where=self.sources.of_error(error))) from error


# --- tracing ---------------------------------------------------------------------------------------------------------

# What a tensor tells of itself without its data.
FACTS = {"size", "dim", "ndimension", "numel", "nelement", "stride", "shape", "ndim", "is_cuda", "device", "dtype", "layout", "requires_grad", "is_sparse",
         "is_quantized", "is_contiguous", "is_floating_point", "is_complex", "get_device", "type", "itemsize", "element_size", "is_tensor"}


# What gives a tensor whose size depends on data.
DATA_SHAPED = {"nonzero", "masked_select", "argwhere", "unique", "unique_consecutive", "nms", "batched_nms", "repeat_interleave", "bincount", "item", "tolist"}
COMPARISONS = {"gt", "ge", "lt", "le", "eq", "ne", "and_", "or_", "invert", "logical_and", "logical_or", "logical_not", "isnan", "isfinite", "isinf", "bool"}


def called_name(node):
    """What a node calls, without where that is from."""
    if node.op == "call_function":
        return node.args[1] if node.target is getattr else getattr(node.target, "__name__", "")
    return node.target if node.op == "call_method" else ""


def data_shaped(node, known):
    """Whether the size of what a node gives depends on data. `known` remembers answers."""
    todo = [node]
    while todo:
        n = todo[-1]
        missing = [i for i in n.all_input_nodes if i not in known]
        if n in known or not missing:
            todo.pop()
            name = called_name(n)
            index = n.args[1] if name == "getitem" and len(n.args) > 1 else None
            known[n] = name in DATA_SHAPED or name == "where" and len(n.args) + len(n.kwargs) == 1 or any(known[i] for i in n.all_input_nodes) \
                or any(called_name(i) in COMPARISONS for i in (index if isinstance(index, tuple) else [index]) if isinstance(i, torch.fx.Node))
        todo += missing
    return known[node]


def only_facts(node, known=None):
    """Whether a node's value follows from sizes, dtypes and devices alone, not from what is in the tensors."""
    if data_shaped(node, {} if known is None else known):
        return False
    todo, seen = [node], set()
    while todo:
        n = todo.pop()
        if n in seen:
            continue
        seen.add(n)
        if called_name(n) in FACTS:
            continue
        if n.op not in ("call_function", "call_method") or not n.all_input_nodes:
            return False
        todo += n.all_input_nodes
    return True


class BoardTracer(torch.fx.Tracer):
    """torch.fx's tracer, which also notes for every node the stack of modules and the line of source that made it."""

    def __init__(self, sources, leaves=(), leaf_classes=(), binding=None, heal=False, samples=None):
        super().__init__()
        self.samples = samples      # name of a placeholder -> value, where the samples decide what depends on sizes, dtypes and devices
        self.values = {}            # node -> its value on the samples, as far as anybody asked
        self.evaluating = False
        self.shaped = {}            # node -> whether its size depends on data
        self.decided = {}           # "file:line" where the samples decided -> None
        self.sources = sources
        self.binding = binding      # the Binding that stands for the root's signature, or None
        self.heal = heal            # whether a submodule that fails becomes a leaf on the spot
        self.healed = {}            # path -> its problem
        self.leaves = {id(m) for m in leaves}
        self.leaf_classes = set(leaf_classes)
        self.stack = []             # [path, class, call index] of the modules that are being traced through
        self.origins = {}           # node -> (stack, source line)
        self.calls = {}             # path -> number of calls so far
        self.failed = (None, [])    # the exception that passed through a module first, and the stack at that moment
        self.tested = None          # the node whose value was tested or looped over last
        self.meant = set()          # arguments of forward that had to do with the failure

    def trace(self, root, concrete_args=None):
        forward = inspect.unwrap(type(root).forward)
        code = getattr(forward, "__code__", None)
        self.signature_line = self.sources.line(code.co_filename, code.co_firstlineno, code.co_name) \
            if code and self.sources.kind(code.co_filename) != "other" else None
        with python_3_11_fixes(), plain_numbers(self):
            return super().trace(root, concrete_args)

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        if self.binding:
            root_fn, concrete_args = self.binding.forward(root_fn), None
        return super().create_args_for_root(root_fn, is_module, concrete_args)

    def is_leaf_module(self, m, module_qualified_name):
        return (id(m) in self.leaves or class_name(m) in self.leaf_classes or type(m).__name__ in self.leaf_classes
                or super().is_leaf_module(m, module_qualified_name))

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        return attr_val if self.evaluating else super().getattr(attr, attr_val, parameter_proxy_cache)

    def _module_getattr(self, attr, attr_val, parameter_proxy_cache):       # torch 1
        return attr_val if self.evaluating else super()._module_getattr(attr, attr_val, parameter_proxy_cache)

    def call_module(self, m, forward, args, kwargs):
        if self.evaluating:
            return forward(*args, **kwargs)
        try:
            path = self.path_of_module(m)
        except NameError:
            if m.state_dict():
                raise
            return forward(*args, **kwargs)     # made on the way, as in nn.MaxPool1d(n)(x): what it does is all there is to it
        call = self.calls[path] = self.calls.get(path, -1) + 1
        if self.is_leaf_module(m, path):
            return super().call_module(m, forward, args, kwargs)
        self.stack.append([path, class_name(m), call])
        before, theirs = next(iter(reversed(self.graph.nodes)), None), copy.copy(getattr(self, "module_stack", None))
        try:
            return super().call_module(m, forward, args, kwargs)
        except Exception as error:
            if self.failed[0] is not error:
                self.failed = (error, list(self.stack))
            if not self.heal:
                raise
            self.healed = {p: found for p, found in self.healed.items() if not p.startswith(path + ".")}
            self.healed[path] = trace_failure(error, self, self.root)
        finally:
            self.stack.pop()
        self.module_stack = theirs
        while True:         # what it had done until it failed
            last = next(iter(reversed(self.graph.nodes)), None)
            if last is before:
                break
            self.graph.erase_node(last)
        return self.create_proxy("call_module", path, args, kwargs)

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        source = self.signature_line if kind == "placeholder" else None
        if kind not in ("placeholder", "output"):
            source = self.sources.innermost(self._frames())
        self.origins[node] = ([list(level) for level in self.stack], source)
        return node

    def to_bool(self, obj):
        self.tested = obj.node
        return bool(self.known(obj.node)) if self.decides(obj.node) else super().to_bool(obj)

    def iter(self, obj):
        self.tested = node = obj.node
        if self.samples is None or data_shaped(node, self.shaped):
            return super().iter(obj)
        value = self.known(node)
        self.note_decision()
        if isinstance(value, dict):
            return iter(value)
        if type(value).__name__ in ("dict_items", "dict_values"):
            entries = [(key, torch.fx.Proxy(node.args[0], self)[key]) for key in self.known(node.args[0])]
            return iter(entries if type(value).__name__ == "dict_items" else [entry for _, entry in entries])
        return iter([obj[i] for i in range(len(value))])

    def keys(self, obj):
        self.tested = obj.node
        return super().keys(obj) if self.samples is None else list(self.known(obj.node))

    def decides(self, node):
        """Whether the samples decide what a node's value is."""
        if self.samples is None or not only_facts(node, self.shaped):
            return False
        self.note_decision()
        return True

    def note_decision(self):
        where = self.sources.innermost(self._frames()) or {"file": "?", "line": 0}
        self.decided[f"{where['file']}:{where['line']}"] = None

    def known(self, node):
        """A node's value on the samples."""
        todo = [node]
        self.evaluating = True
        try:
            with torch.no_grad():
                while todo:
                    n = todo[-1]
                    missing = [i for i in n.all_input_nodes if i not in self.values]
                    if n in self.values or not missing:
                        todo.pop()
                        if n not in self.values:
                            if n.op == "placeholder" and n.target not in self.samples and not n.args:
                                raise Failure(problem("input", f"there is no sample input for '{n.target}', so it cannot decide"))
                            self.values[n] = self.samples.get(n.target, n.args[0] if n.args else None) if n.op == "placeholder" \
                                else value_of(n, self.values, self.root)
                    todo += missing
        finally:
            self.evaluating = False
        return self.values[node]

    @staticmethod
    def _frames():
        frame = sys._getframe(2)
        while frame and frame.f_code is not BoardTracer.trace.__code__:
            yield frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
            frame = frame.f_back


@contextlib.contextmanager
def plain_numbers(tracer):
    """Where the samples decide, len(), int(), range() and the like of a traced size give a plain number."""
    if tracer.samples is None:
        yield
        return

    def number(convert, fails):
        def method(proxy, *more):
            tracer.tested = proxy.node
            if not tracer.decides(proxy.node):
                raise TypeError(fails)
            return convert(tracer.known(proxy.node), *more)
        return method

    def length(proxy):
        tracer.tested = proxy.node
        if data_shaped(proxy.node, tracer.shaped):
            raise RuntimeError("'len' is not supported in symbolic tracing by default")
        tracer.note_decision()
        return len(tracer.known(proxy.node))
    def made(create):
        """A function that makes tensors, with plain numbers for sizes where it takes no traced ones."""
        def plain(value):
            return tracer.known(value.node) if isinstance(value, torch.fx.Proxy) and tracer.decides(value.node) else \
                type(value)(map(plain, value)) if type(value) in (list, tuple) else value

        @functools.wraps(create, updated=())
        def method(*args, **kwargs):
            try:
                return create(*args, **kwargs)
            except TypeError:
                return create(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
        return method
    makers = {name: getattr(torch, name) for name in ("arange", "zeros", "ones", "full", "empty", "eye", "linspace", "tensor", "finfo", "iinfo")}
    shapers = ("expand", "view", "reshape", "repeat", "new_zeros", "new_ones", "new_full", "new_empty", "to")       # of tensors that are not traced
    methods = {"__len__": length, "__int__": number(int, "int() argument must be a number, not 'Proxy'"),
               "__float__": number(float, "float() argument must be a number, not 'Proxy'"), "__round__": number(round, "type Proxy doesn't define __round__ method"),
               "__index__": number(int, "'Proxy' object cannot be interpreted as an integer")}
    saved = {name: vars(torch.fx.Proxy).get(name) for name in methods}
    try:
        for name, method in methods.items():
            setattr(torch.fx.Proxy, name, method)
        for name, create in makers.items():
            setattr(torch, name, made(create))
        for name in shapers:
            setattr(torch.Tensor, name, made(getattr(torch.Tensor, name)))
        yield
    finally:
        for name in shapers:
            delattr(torch.Tensor, name)
        for name, create in makers.items():
            setattr(torch, name, create)
        for name, method in saved.items():
            if method:
                setattr(torch.fx.Proxy, name, method)
            else:
                delattr(torch.fx.Proxy, name)


@contextlib.contextmanager
def python_3_11_fixes():
    """torch 1.13 reads byte code as it was before Python 3.11: unpacking, *args and keyword-only arguments need help."""
    if sys.version_info < (3, 11) or int(torch.__version__.split(".")[0]) >= 2:
        yield
        return
    import torch.fx._symbolic_trace as symbolic

    def unpack(proxy):
        frame = sys._getframe(1)
        here = next((i for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti), None)
        if here is not None and here.opname == "UNPACK_SEQUENCE":
            return (proxy[i] for i in range(here.argval))
        return proxy.tracer.iter(proxy)

    def plain_arguments(function, count):
        flags = function.__code__.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        code = function.__code__.replace(co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
        return type(function)(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)

    saved = torch.fx.Proxy.__iter__, symbolic._patch_function
    torch.fx.Proxy.__iter__, symbolic._patch_function = unpack, plain_arguments
    try:
        yield
    finally:
        torch.fx.Proxy.__iter__, symbolic._patch_function = saved


# --- what went wrong -------------------------------------------------------------------------------------------------

def roots_of(node):
    """Names of the placeholders that a node's value comes from."""
    todo, seen = [node] if node else [], set()
    while todo:
        n = todo.pop()
        if n not in seen:
            seen.add(n)
            todo += n.all_input_nodes
    return {n.target for n in seen if n.op == "placeholder"}


@functools.lru_cache(maxsize=64)
def parsed(filename):
    text = "".join(linecache.getlines(filename))
    try:
        return text, ast.parse(text)
    except (SyntaxError, ValueError):
        return text, None


class Culprit:
    """Where the user's code gave up: the statement, the expression in it (as far as Python tells) and the traced value meant."""

    def __init__(self, error, tracer):
        self.frame = self.statement = self.expression = None
        self.parents, self.text = {}, ""
        steps = list(traceback.walk_tb(error.__traceback__))
        user = [(i, frame, line) for i, (frame, line) in enumerate(steps) if tracer.sources.kind(frame.f_code.co_filename) == "user"]
        if user:
            index, self.frame, line = user[-1]
            tb = error.__traceback__
            for _ in range(index):
                tb = tb.tb_next
            self._find(self.frame.f_code, line, tb.tb_lasti)
        self.node = tracer.tested
        if self.node is None:
            self.node = self._named() or next(iter(reversed(tracer.graph.nodes)), None)

    def _find(self, code, line, instruction):
        self.text, tree = parsed(code.co_filename)
        if tree is None:
            return
        span = (line, line, None, None)
        if hasattr(code, "co_positions"):
            span = next(itertools.islice(code.co_positions(), instruction // 2, None), span)
        first, last, start, end = span
        if first is None:
            first = last = line
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
            if not hasattr(node, "lineno"):
                continue
            if isinstance(node, ast.stmt) and node.lineno <= first and node.end_lineno >= last:
                self.statement = node       # walks from outside inwards
            elif isinstance(node, ast.expr) and start is not None and (node.lineno, node.col_offset) == (first, start) \
                    and (node.end_lineno, node.end_col_offset) == (last, end):
                self.expression = node

    def _named(self):
        """The traced value that the expression names, as `n` in `int(n)`."""
        for name in ast.walk(self.expression) if self.expression is not None else ():
            value = self.frame.f_locals.get(name.id) if isinstance(name, ast.Name) else None
            if isinstance(value, torch.fx.Proxy) and not isinstance(self.parents.get(name), ast.Attribute):
                return value.node

    def facts(self):
        """Whether the value meant follows from sizes and the like alone. (Of `x.dtype` there is no node until it is used.)"""
        if self.node is not None and only_facts(self.node):
            return True
        named = ast.walk(self.expression) if isinstance(self.expression, ast.Call) else ()
        return any(isinstance(n, ast.Attribute) and n.attr in FACTS and isinstance(n.value, ast.Name)
                   and isinstance(self.frame.f_locals.get(n.value.id), torch.fx.Proxy) for n in named if n is not self.expression.func)

    def segment(self, node):
        return ast.get_source_segment(self.text, node) or ""

    def find(self, *kinds):
        """The innermost syntax of these kinds around the expression, else the first in the statement."""
        node = self.expression
        while node is not None and not isinstance(node, ast.stmt):
            if isinstance(node, kinds):
                return node
            node = self.parents.get(node)
        if isinstance(self.statement, kinds):
            return self.statement
        body = ast.walk(self.statement) if self.statement is not None and not hasattr(self.statement, "body") else \
            itertools.chain.from_iterable(ast.walk(n) for f in ("test", "iter", "items") for n in [getattr(self.statement, f, None)] if isinstance(n, ast.AST))
        return next((n for n in body if isinstance(n, kinds)), None)

    def autograd_function(self):
        """The name of the torch.autograd.Function whose forward gave up, if one did."""
        code = self.frame.f_code if self.frame else None
        context = self.frame.f_locals.get(code.co_varnames[0]) if code and code.co_varnames else None
        return type(context).__name__[:-len("Backward")] if isinstance(context, torch.autograd.function.FunctionCtx) else None

    def in_type_test(self):
        """Whether the user's own error is raised below `if ... isinstance(...)`."""
        node = self.statement if isinstance(self.statement, (ast.Raise, ast.Assert)) else None
        while node is not None and not isinstance(node, ast.FunctionDef):
            test = getattr(node, "test", None)
            if test is not None and any(isinstance(n, ast.Name) and n.id == "isinstance" for n in ast.walk(test)):
                return True
            node = self.parents.get(node)
        return False

    def call(self):
        """The call around the expression and the name that it calls: (node, "torch.zeros")."""
        node = self.find(ast.Call)
        return node, self.segment(node.func) if node else ""


def explain(error, culprit):
    """-> kind, what the module does as the rest of a sentence, two lines of a rewrite (before, after) or None"""
    text = first_line(error)
    size = culprit.facts()
    on = "the size or kind of its input" if size else "its data"
    call, name = culprit.call()
    first = culprit.segment(call.args[0]) if call and call.args else ""

    function = culprit.autograd_function()
    if function:
        plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", function).lower()
        return "autograd_function", f"calls the custom autograd function {function}, whose forward torch.fx cannot follow", (
            f"{function}.apply(x)", f"{plain}(x)  # at module level: {plain} = {function}.apply; torch.fx.wrap({plain!r})")
    if "inputs to control flow" in text:
        return ("control_flow", *branch(culprit, on, size, call, name))
    if "'len' is not supported" in text:
        return "length", "takes len() of a traced value, which has no length while tracing", (f"len({first or 'x'})", f"{first or 'x'}.shape[0]")
    if "Proxy object cannot be iterated" in text or "is not iterable" in text and re.search("Proxy|Attribute", text):
        return iteration(culprit, call, name)
    if "does not support item assignment" in text and "Proxy" in text or "doesn't support item deletion" in text:
        target = next((t for t in getattr(culprit.statement, "targets", [getattr(culprit.statement, "target", None)]) if isinstance(t, ast.Subscript)), None)
        base = culprit.segment(target.value) if target else "x"
        index = culprit.segment(target.slice) if target else "i"
        value = culprit.segment(culprit.statement.value) if target and hasattr(culprit.statement, "value") else "v"
        return "item_assignment", "assigns to a part of a traced value", (
            f"{base}[{index}] = {value}", f"{base} = torch.where(mask, {value}, {base})  # mask: True at [{index}]")
    if "indices must be integers" in text and "Proxy" in text or "string indices" in text and "Proxy" in text:
        sub = culprit.find(ast.Subscript)
        table, index = (culprit.segment(sub.value), culprit.segment(sub.slice)) if sub else ("table", "i")
        return "index" if size else "data_dependent", f"takes an entry of a Python list by {on}", (
            f"{table}[{index}]", f"torch.tensor({table})[{index.replace('.item()', '')}]")
    if re.search(r"cannot be interpreted as an integer|^(int|float|complex)\(\) argument|must be real number|__round__|__index__ (?:returned|method)|__(int|float|complex)__|__cuda_array_interface__",
                 text) and not numpy_call(culprit):
        shown = f"{name}()" if name else "a plain number"
        meaning = f"turns {'a traced size' if size else 'its data'} into a plain Python number with {shown}" if name else \
            f"needs {'a traced size' if size else 'its data'} as a plain Python number"
        return "number" if size else "data_dependent", meaning, number_rewrite(name, call, first, culprit)
    if re.search("__array_struct__|__array_interface__|__array__", text) or numpy_call(culprit):
        return "numpy", "hands a traced value to NumPy, which torch.fx cannot follow", None
    if "Expected a value of type" in text and "Proxy" in text:
        return "scripted", f"calls the TorchScript function {name or text.split('(')[0]}, which takes no traced value", None
    if re.match(r"[\"']?'?(Proxy|Attribute)\(", text) and isinstance(error, KeyError):
        return "text", "looks up the text of a traced value, which is not the text of its value", None
    found = re.match(r"argument of type: <(?:class|enum) '([\w.<>]+)'>", text)
    if found:
        short = found.group(1).rsplit(".", 1)[-1]
        return "unsupported", f"hands on a {short}, which a graph cannot hold", (f"return {short}(...)", "return {...}  # a tuple, list or dict of tensors")
    if isinstance(error, NameError) and "not installed as a submodule" in text:
        return "unregistered", "calls a module that is not registered as its submodule", None
    if "co_varnames is too small" in text or "cannot be part of *args" in text:
        return "signature", "takes *args or **kwargs through a decorator, which torch.fx cannot bind", None
    called = re.match(r"(?:torch\.)?(\w+)\(\)", text)
    if isinstance(error, TypeError) and called and (hasattr(torch, called.group(1)) or hasattr(torch.Tensor, called.group(1))):
        shown = called.group(1)
        if not hasattr(torch, shown):
            return "argument", f"calls {shown}() of a tensor with a traced value where it needs a plain number", None
        rest = ", ".join(culprit.segment(a) for a in call.args) if call else "n"
        new = {"zeros": "new_zeros", "ones": "new_ones", "empty": "new_empty", "full": "new_full"}.get(shown)
        return "argument", f"calls torch.{shown}() with a traced value where it needs a plain number", (f"torch.{shown}({rest})", f"x.{new}({rest})") if new else None
    if culprit.in_type_test():
        return "isinstance", "raises its own error because a traced value is no torch.Tensor (isinstance() says no while tracing)", (
            "if not isinstance(x, torch.Tensor): raise", "if isinstance(x, (str, list)): raise  # name what is wrong, not what is right")
    if re.search(r"\b(Proxy|Attribute)\b|[Cc]annot unpack|keywords|expand", text):
        return "argument", "passes a traced value where a plain one is needed", None
    return "error", f"raised {type(error).__name__}: {text}", None


def condition(culprit, test):
    """The tensor that a test asks: bool(t) and t.item() would ask while tracing."""
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "bool" and len(test.args) == 1:
        return condition(culprit, test.args[0])
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "item" and not test.args:
        return condition(culprit, test.func.value)
    return culprit.segment(test)


def branch(culprit, on, size, call, name):
    if isinstance(culprit.statement, ast.Assert):
        test = culprit.statement.test
        return f"asserts something about {on}", (f"assert {culprit.segment(test)}", f"torch._assert({condition(culprit, test)}, '')")
    if name in ("max", "min") and len(call.args) == 2:
        a, b = map(culprit.segment, call.args)
        return f"compares traced values with {name}()", None if size else (f"{name}({a}, {b})", f"torch.{name}imum({a}, {b})")
    meaning = f"takes a branch that depends on {on}"
    s = culprit.statement
    if isinstance(s, ast.If) and isinstance(s.body[0], ast.Raise):
        return meaning, (f"if {culprit.segment(s.test)}: raise ...", f"torch._assert(({condition(culprit, s.test)}) == False, '')")
    if size:        # no tensor, so no torch.where
        return meaning, None
    choice = culprit.find(ast.IfExp)
    if choice is not None:
        test, yes, no = (culprit.segment(n) for n in (choice.test, choice.body, choice.orelse))
        return meaning, (f"{yes} if {test} else {no}", f"torch.where({condition(culprit, choice.test)}, {yes}, {no})")
    if isinstance(s, ast.If) and len(s.body) == 1 and isinstance(s.body[0], ast.Assign) and not s.orelse:
        test, target, value = (culprit.segment(n) for n in (s.test, s.body[0].targets[0], s.body[0].value))
        return meaning, (f"if {test}: {target} = {value}", f"{target} = torch.where({condition(culprit, s.test)}, {value}, {target})")
    return meaning, None


def iteration(culprit, call, name):
    unknown = "whose length tracing does not know"
    loop = culprit.find(ast.For, ast.comprehension) if not (call and any(isinstance(a, ast.Starred) for a in call.args)) else None
    looped = culprit.segment(loop.iter) if loop is not None else ""
    if call and any(k.arg is None for k in call.keywords) or re.search(r"\.(items|keys|values)\(\)$", looped):
        return "mapping", "goes through the entries of a traced dict, which tracing does not know", (
            f"for k, v in {looped or 'd.items()'}:", f"for k in ('a', 'b'): v = {(looped or 'd.items()').rsplit('.', 1)[0]}[k]  # the keys by name")
    compare = culprit.find(ast.Compare)
    if compare is not None and any(isinstance(op, (ast.In, ast.NotIn)) for op in compare.ops):
        return "membership", "asks with `in` whether a traced value holds something", None
    star = next((a for a in call.args if isinstance(a, ast.Starred)), None) if call else None
    if star is not None:
        value = culprit.segment(star.value)
        rest = "".join(f", {culprit.segment(a)}" for a in call.args if a is not star)
        joined = f"{value} + ({rest[2:]},)" if rest else value
        return "iteration", f"unpacks a traced value with *, {unknown}", (f"{name}(*{value}{rest})", f"{name}({joined})  # one tuple")
    s = culprit.statement
    if isinstance(s, ast.Assign) and isinstance(s.targets[0], (ast.Tuple, ast.List)):
        names, value = [culprit.segment(e) for e in s.targets[0].elts], culprit.segment(s.value)
        single = ", ".join(f"parts[{n}:]" if e.startswith("*") else f"parts[{n}]" for n, e in enumerate(names))
        return "iteration", f"unpacks a traced value, {unknown}", (f"{', '.join(names)} = {value}", f"parts = {value}; {', '.join(names).replace('*', '')} = {single}")
    if loop is not None:
        target = culprit.segment(loop.target)
        return "iteration", f"loops over a traced value, {unknown}", (f"for {target} in {looped}:", f"for {target} in [{looped}[i] for i in range(4)]:  # a fixed length")
    if name in ("list", "tuple", "sum", "sorted", "any", "all", "zip", "enumerate", "set", "dict", "map"):
        value = culprit.segment(call.args[0]) if call.args else "x"
        return "iteration", f"makes {name}() of a traced value, {unknown}", (f"{name}({value})", value) if name in ("list", "tuple") else None
    return "iteration", f"loops over or unpacks a traced value, {unknown}", None


def number_rewrite(name, call, first, culprit):
    argument = call.args[0] if call and call.args else None
    around = culprit.parents.get(call)
    if isinstance(around, ast.Call) and culprit.segment(around.func) == "range":
        name, first = "range", culprit.segment(call)
    if name == "int" and isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.Div):
        return f"int({first})", f"{culprit.segment(argument.left)} // {culprit.segment(argument.right)}"
    if name in ("int", "float", "round", "bool"):
        return f"{name}({first})", first.replace(" / ", " // ") if name == "round" else first
    if name == "range":
        return f"for i in range({first}):", "for i in range(4):  # a fixed number"
    if name in ("torch.tensor", "torch.as_tensor"):
        return f"{name}({first})", first
    return None


def numpy_call(culprit):
    return re.match(r"(np|numpy)\.", culprit.call()[1]) is not None


def trace_failure(error, tracer, root, optional=(), prefix=""):
    """The problem document of a trace that raised `error`. `optional` are arguments of forward that may be fixed, `prefix` is the path of `root`."""
    stack = tracer.failed[1] if tracer.failed[0] is error else []
    path, cls = (stack[-1][0], stack[-1][1]) if stack else ("", class_name(root))
    path = f"{prefix}.{path}" if prefix and path else prefix or path
    culprit = Culprit(error, tracer)
    kind, meaning, rewrite = explain(error, culprit)
    where = tracer.sources.of_error(error) or tracer.signature_line
    subject = f"module {path!r}" if path else "the root module"
    tracer.meant = set()
    if kind == "unregistered":
        return problem(kind, f"{subject} {meaning}; keep such modules in an nn.ModuleList or nn.ModuleDict", path, cls, where, [
            {"kind": "leaf", "module": path, "label": "Mark as leaf"}] if path else [])
    fixes, advice = [], []
    if path:
        fixes = [{"kind": "leaf", "module": path, "label": "Mark as leaf"},
                 {"kind": "leaf-class", "module": path, "class": cls, "label": f"Mark every {cls.rsplit('.', 1)[-1]} as leaf"}]
    tracer.meant = roots_of(culprit.node)
    for name, value in optional:
        if name in tracer.meant or (not tracer.meant and not path and value is not inspect.Parameter.empty):
            choices = [value] if value is not inspect.Parameter.empty else \
                [True, False] if culprit.node.op == "placeholder" and kind == "control_flow" else []
            fixes += [{"kind": "concrete", "module": path, "argument": name, "value": repr(v),
                       "label": f"Fix {name} to {'its default, ' if value is not inspect.Parameter.empty else ''}{v!r}"} for v in choices]
            if choices:
                advice.append(f"fix an argument (--concrete {name}={choices[0]})")
    if tracer.samples is None and (kind in ("length", "iteration", "mapping", "membership") or culprit.facts() and kind in ("control_flow", "number", "index", "argument")):
        fixes.append({"kind": "sizes", "module": path, "label": "Let the sample inputs decide what depends on sizes"})
        advice.append("let the sample inputs decide what depends on sizes (--sizes)")
    helper = "len" if kind == "length" else helper_of(error, tracer.sources)
    if kind == "scripted" and culprit.call()[1] in culprit.frame.f_globals:
        helper = f"{culprit.frame.f_globals['__name__']}.{culprit.call()[1]}"
    if helper:
        fixes.append({"kind": "wrap", "module": path, "function": helper, "label": f"Keep {helper.rsplit('.', 1)[-1]}() as one call"})
        advice.insert(0, f"keep {helper}() as one call (--wrap {helper})")
    if rewrite and all(rewrite):
        before, after = (" ".join(line.split()) for line in rewrite)
        fixes.append({"kind": "rewrite", "module": path, "before": before, "after": after, "label": "Rewrite it"})
    if path:
        return problem(kind, f"{subject} {meaning}; mark it as a leaf (--leaf {path})", path, cls, where, fixes)
    advice.append("move that part into a submodule of its own and mark that as a leaf, or trace submodules (--doctor names them)")
    return problem(kind, f"{subject}'s forward {meaning}; the root cannot be a leaf: {', or '.join(advice)}", "", cls, where, fixes)


def helper_of(error, sources):
    """The plain function of a user's Python module in which `error` was raised, as QUALNAME, if it was one."""
    found = None
    step = error.__traceback__
    while step:
        code, names = step.tb_frame.f_code, step.tb_frame.f_globals
        if sources.kind(code.co_filename) == "user":
            function = names.get(code.co_name)
            found = f"{names.get('__name__')}.{code.co_name}" if getattr(function, "__code__", None) is code else None
        step = step.tb_next
    return found


def random_states():
    states = [bytes(torch.get_rng_state().tolist()), random.getstate()]
    return states + [repr(sys.modules["numpy"].random.get_state())] if "numpy" in sys.modules else states


class Slot:
    """Where a tensor goes in the arguments of a Binding."""

    def __init__(self, name):
        self.name = name


class Binding:
    """Sample arguments of a module with a name for every tensor in them. Tracing with these names in place of the signature, torch.fx
    meets no *args or **kwargs, no list or dict to loop over, and no optional argument that has no sample."""

    def __init__(self, module, args, kwargs):
        self.values = {}        # name -> tensor
        parameters = list(inspect.signature(module.forward).parameters.values())
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        star = next((p.name for p in parameters if p.kind == p.VAR_POSITIONAL), "args")
        names += [f"{star}_{n}" for n in range(len(args) - len(names))]
        self.args = tuple(self._take(value, name) for value, name in zip(args, names))
        self.kwargs = {name: self._take(value, name) for name, value in kwargs.items()}

    def _take(self, value, name):
        if isinstance(value, torch.Tensor):
            name = re.sub(r"\W", "_", name, flags=re.ASCII)
            while name in self.values or name in ("self", "_call") or keyword.iskeyword(name) or not name.isidentifier():
                name += "_"
            self.values[name] = value
            return Slot(name)
        if isinstance(value, torch.Size):
            return value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self._take(v, f"{name}_{f}") for f, v in zip(value._fields, value)])
        if isinstance(value, (list, tuple)):
            return type(value)(self._take(v, f"{name}_{n}") for n, v in enumerate(value))
        if isinstance(value, dict) and all(isinstance(k, (str, int)) for k in value):
            return {k: self._take(v, f"{name}_{k}") for k, v in value.items()}
        if value is None or isinstance(value, (bool, int, float, complex, str, slice, torch.dtype, torch.device, enum.Enum)):
            return value
        raise Failure(problem("input", f"its argument {name} is {class_name(value)}, which cannot be bound"))

    def fill(self, given):
        """The arguments with `given[name]` in place of each tensor. -> (args, kwargs)"""
        def down(value):
            if isinstance(value, Slot):
                return given[value.name]
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*map(down, value))
            if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                return type(value)(map(down, value))
            return {k: down(v) for k, v in value.items()} if isinstance(value, dict) else value
        return down(self.args), down(self.kwargs)

    def forward(self, original):
        """A forward with a plain argument for each tensor."""
        def call(module, **given):
            args, kwargs = self.fill(given)
            return original(module, *args, **kwargs)
        names, scope = list(self.values), {"_call": call}
        exec(f"def forward({', '.join(['self'] + names)}):\n    return _call({', '.join(['self'] + [f'{n}={n}' for n in names])})", scope)
        return scope["forward"]


class Target:
    """A module to trace as a graph of its own, with the arguments that it is called with (None where there are no samples)."""

    def __init__(self, module, path="", args=None, kwargs=None, concrete=None):
        self.module, self.path = module, path
        self.args, self.kwargs = args, kwargs or {}
        self.concrete = dict(concrete or {})        # fixed by the user
        self.pins = {}                              # optional arguments that are fixed to their defaults
        self.binding = None
        try:
            self.parameters = inspect.signature(module.forward).parameters
        except ValueError:
            self.parameters = {}

    @property
    def fixed(self):
        return {**self.concrete, **self.pins}

    def samples(self):
        """name of a placeholder -> value, as far as there are samples"""
        if self.binding:
            return self.binding.values
        names = [p.name for p in self.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return {**dict(zip(names, self.args or ())), **self.kwargs, **{f"{name}_1": value for name, value in self.fixed.items()}}

    def open_arguments(self):
        """Arguments without a sample that might be fixed. -> name -> default"""
        taken = set(self.kwargs) | set(self.fixed) | set(list(self.parameters)[:len(self.args or ())])
        return {p.name: p.default for p in self.parameters.values()
                if p.name not in taken and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)} if not self.binding else {}

    def bind(self):
        if self.args is None:
            return False
        self.pins, self.binding = {}, Binding(self.module, self.args, {**self.kwargs, **self.concrete})
        return True

    def remedy(self, failure):
        """Changes how the arguments are given, after a failure that this may help. -> whether to try again"""
        if self.binding:
            return False
        found = failure.problems[0]
        free = {n: d for n, d in self.open_arguments().items() if d is not inspect.Parameter.empty}
        involved = failure.meant & set(free)
        if involved:
            self.pins.update({n: free[n] for n in involved})
            return True
        variadic = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in self.parameters.values())
        wrapped = hasattr(type(self.module).forward, "__wrapped__")
        structured = not all(isinstance(v, torch.Tensor) for v in [*(self.args or ()), *self.kwargs.values()])
        at_fault = (variadic or wrapped or free or structured) and found["module"] == self.path or found["kind"] == "signature" \
            or any(name.startswith("*") for name in failure.meant) or structured and failure.meant
        try:
            return bool(at_fault) and self.bind()
        except Failure:
            return False


class Tracing:
    """One model and how it is to be traced; `run` may be called again with other leaves."""

    def __init__(self, root, source, options):
        self.root, self.source, self.options = root, source, options
        self.modules = dict(root.named_modules(remove_duplicate=False))
        self.concrete = self._concrete()
        self._check_paths()
        self._wrap()
        self.target = Target(root, "", *self._samples(), self.concrete)
        if options.sizes and self.target.args is None:
            raise Failure(problem("input", "--sizes lets the sample inputs decide: give them with --input"))
        self.costs = None

    def run(self, leaves, target=None, heal=False):
        """-> (graph, tracer, warnings)"""
        target = target or self.target
        if self.options.sizes and not target.binding:       # what is not given is not there
            target.pins.update({n: d for n, d in target.open_arguments().items() if d is None})
        first, kept = None, target.binding
        while True:
            try:
                return self._once(leaves, target, heal)
            except Failure as failure:
                if first and failure.problems[0]["line"] == first.problems[0]["line"]:      # got no further
                    target.pins, target.binding = {}, kept
                    raise first
                first = failure
                if not target.remedy(failure):
                    raise

    def _once(self, leaves, target, heal):
        before = set(target.module.__dict__)
        tracer = BoardTracer(self.source.sources, [self.modules[path] for path in leaves], self.options.leaf_class, target.binding, heal,
                             target.samples() if self.options.sizes else None)
        random_state = random_states()
        try:
            graph = tracer.trace(target.module, target.fixed or None)
        except Exception as error:
            for name in set(target.module.__dict__) - before:       # the constants of a trace that came to nothing
                if name.startswith("_tensor_constant"):
                    del target.module.__dict__[name]
            found = trace_failure(error, tracer, target.module, list(target.open_arguments().items()), target.path)
            if target.args is None and not target.path and (found["kind"] == "signature" or any(name.startswith("*") for name in tracer.meant)):
                found["message"] = found["message"].split("; the root cannot")[0] + "; give sample inputs (--input, --kwarg) to bind its arguments to"
            failure = Failure(found if found["kind"] != "error" else self._model_fault(found))
            failure.meant = tracer.meant
            raise failure from error
        notes = Notes(target.module, graph, tracer)
        if random_state != random_states():
            notes.add("random_constant", "forward draws random numbers while it is traced; they are constants of the graph from now on")
        if tracer.decided:
            places = list(tracer.decided)
            notes.add("sizes", f"the sample inputs decided {'what depends' if len(places) > 1 else 'something that depends'} on sizes or kinds of tensors "
                      f"({', '.join(places[:5])}{' ...' if len(places) > 5 else ''}); the graph may be wrong for inputs of other sizes")
        for name, value in target.pins.items():
            notes.add("pinned", f"argument '{name}' decides what forward does and has no sample, so it is fixed to its default {value!r}; "
                      f"--concrete {name}=VALUE fixes it to another")
        if target.binding and list(target.binding.values) != list(target.parameters):
            notes.add("bound", f"forward is traced for the sample inputs given ({', '.join(target.binding.values)}); its other arguments keep their defaults")
        below = target.path + "." if target.path else ""
        return graph, tracer, notes.check([p[len(below):] for p in leaves if p.startswith(below)], target.fixed)

    def doctor(self, target=None):
        """A smallest set of leaves that lets a module trace: none of them can be left out. -> (leaves, problems met)"""
        target = target or self.target
        below = target.path + "." if target.path else ""
        leaves, met = [p for p in self.options.leaf if p.startswith(below)], {}
        while True:
            progress(0.4, f"tracing {target.path or 'the model'} with {len(leaves)} leaves")
            try:
                self.run(leaves, target)
                break
            except Failure as failure:
                if not failure.problems[0]["module"] or failure.problems[0]["module"] == target.path or failure.problems[0]["kind"] == "model":
                    raise
            _, tracer, _ = self.run(leaves, target, heal=True)
            healed = {below + path: self._model_fault(found) if found["kind"] == "error" else found for path, found in tracer.healed.items()}
            fault = next((found for found in healed.values() if found["kind"] == "model"), None)
            if fault or not set(healed) - set(leaves):
                raise Failure(fault or problem("error", "no set of leaves lets the model trace"))
            met.update(healed)
            leaves += [path for path in healed if path not in leaves]
        for path in list(leaves) if len(leaves) <= 32 else ():
            rest = [p for p in leaves if p != path]
            with contextlib.suppress(Failure):
                self.run(rest, target)
                leaves = rest
        return leaves, [found for path, found in met.items() if path in leaves]

    def proposals(self):
        """The largest submodules that trace, nested ones not repeated. -> [(Target, its leaves)], largest first"""
        found = []
        calls = self.measure()

        def visit(module, path):
            call = calls.get(path)
            if call and not Document._is_torch_nn(module) and self.share([path], [])["parameters"]:
                with contextlib.suppress(Failure):
                    target = Target(module, path, *call)
                    target.bind()
                    leaves, _ = self.doctor(target)
                    kept, whole = self.share([path], leaves), self.share([path], [])
                    if not leaves or (kept["multiply_adds"] or kept["parameters"]) * 2 > (whole["multiply_adds"] or whole["parameters"]):
                        found.append((target, leaves))
                        return
            for name, child in module.named_children():
                visit(child, f"{path}.{name}" if path else name)
        for name, child in self.root.named_children():
            visit(child, name)
        if not found:
            return found

        def size(item):
            share = self.share([item[0].path], item[1])
            return share["multiply_adds"] or 0, share["parameters"]
        return sorted(found, key=size, reverse=True)

    def submodule(self, path):
        """The Target of a submodule that the user named."""
        call = self.measure().get(path)
        if call is None:
            raise Failure(problem("submodule", f"submodule '{path}' is not called on the sample inputs, so there is nothing to trace it with; "
                                  "name another one or give other inputs", path, class_name(self.modules[path])))
        target = Target(self.modules[path], path, *call)
        try:
            target.bind()
        except Failure as failure:
            found = failure.problems[0]
            raise Failure(problem("submodule", f"submodule '{path}' cannot be traced on its own: {found['message']}; name one below it", path,
                                  class_name(self.modules[path]))) from failure
        return target

    def measure(self):
        """Runs the model once on the samples. -> path -> (args, kwargs) of its submodules' first calls; notes multiply-adds by the way"""
        if self.costs is None:
            if self.target.args is None:
                raise Failure(problem("input", "submodules are traced on what they are called with, so the model has to run: give its sample inputs (--input)"))
            progress(0.4, "running the sample inputs")
            self.output = self.stopped = None
            with torch.no_grad(), watched(self.root) as (calls, costs):
                try:
                    self.output = self.root(*self.target.args, **self.target.kwargs, **self.concrete)
                except Exception as error:      # what was called until then may still be traced
                    self.stopped = self._fault(error, "", class_name(self.root))
                    if not calls:
                        raise Failure(self.stopped) from error
            self.calls, self.costs = calls, costs
        return self.calls

    def share(self, covered, leaves):
        """What share of parameters and multiply-adds stays quantizable in the graphs of these modules."""
        def below(path, tops):
            return any(path == top or path.startswith(top + ".") or top == "" for top in tops)
        numbers, kept, whole = {}, set(), set()
        for path, module in self.modules.items():
            for p in module._parameters.values():
                if p is not None:
                    numbers[id(p)] = p.numel()
                    whole.add(id(p))
                    if below(path, covered) and not below(path, leaves):
                        kept.add(id(p))
        total = sum(numbers.values())
        adds = None
        if self.costs is not None:
            done = sum(self.costs.values())
            own = sum(n for stack, n in self.costs.items() if any(t in stack for t in covered) and not any(t in stack for t in leaves))
            adds = round(own / done, 4) if done else 1.0
        return {"parameters": round(sum(numbers[i] for i in kept) / total, 4) if total else 1.0, "multiply_adds": adds}

    def remembered(self, target):
        """What it takes to trace like this again."""
        options = self.options
        return {"leaves": options.leaf, "leaf_classes": options.leaf_class, "wraps": options.wrap, "concrete": {k: repr(v) for k, v in target.fixed.items()},
                "keep_mode": options.keep_mode, "sizes": options.sizes, "samples": options.samples}

    def _samples(self):
        """The sample inputs as forward takes them. -> (args, kwargs), or (None, None) where none are given"""
        options = self.options
        torch.manual_seed(options.seed)
        if options.samples:
            if options.input or options.kwarg:
                raise Failure(problem("input", "--samples gives all sample inputs: leave --input and --kwarg out"))
            value = self.source.made(options.samples)
            if isinstance(value, dict) and all(isinstance(k, str) for k in value):
                return [], value
            return (list(value) if type(value) is tuple else [value]), {}
        if not options.input and not options.kwarg:
            return None, None
        parameters = list(inspect.signature(self.root.forward).parameters.values())
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        known = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for name in options.kwarg:
            if name not in known and not any(p.kind == p.VAR_KEYWORD for p in parameters):
                raise Failure(problem("input", f"forward has no argument '{name}'{near(name, known)}; it takes {', '.join(known)}"))
        free = [n for n in names if n not in options.kwarg and n not in self.concrete]
        star = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        if len(options.input) > len(free) and not star:
            raise Failure(problem("input", f"{len(options.input)} sample inputs were given, but forward takes {len(free)} ({', '.join(free)})"))
        given = {name: sample(text, name) for name, text in zip(free, options.input)}
        given.update((name, sample(text, name)) for name, text in options.kwarg.items())
        rest = [sample(text) for text in options.input[len(free):]]
        args = list(itertools.takewhile(lambda n: n in given, names))
        return [given.pop(n) for n in args] + rest, given

    def _model_fault(self, found):
        """Where forward fails in the same way without tracing, the model is to be mended, not the trace."""
        if self.target.args is None:
            return found
        try:
            with torch.no_grad():
                self.root(*self.target.args, **self.target.kwargs, **self.concrete)
        except Exception as error:
            return self._fault(error, found["module"], found["class"])
        return found

    def _fault(self, error, path, cls):
        return problem("model", f"forward fails on the sample inputs without tracing, too: {type(error).__name__}: {first_line(error)}; "
                       "mend the model or give other inputs", path, cls, self.source.sources.of_error(error))

    def _concrete(self):
        parameters = [n for n in inspect.signature(self.root.forward).parameters]
        for name in self.options.concrete:
            if name not in parameters:
                raise Failure(problem("concrete", f"forward has no argument '{name}'{near(name, parameters)}; it takes {', '.join(parameters)}"))
        return self.options.concrete

    def _check_paths(self):
        problems = []
        paths = [p for p in self.modules if p]
        for kind, wanted, what in (("leaf", self.options.leaf, "mark as a leaf"), ("submodule", self.options.submodule, "trace")):
            for path in wanted:
                if path == "":
                    problems.append(problem(kind, f"the root module is no {kind}: name one below it"))
                elif path not in self.modules:
                    problems.append(problem(kind, f"there is no module '{path}' to {what}{near(path, paths)}; "
                                            "paths are those of named_modules(), without 'self.'", path))
        for path in self.options.submodule:
            if any(path.startswith(other + ".") for other in self.options.submodule):
                problems.append(problem("submodule", f"submodule '{path}' is inside another one that is to be traced; name the outer one alone", path))
        classes = {class_name(m) for m in self.modules.values()}
        for name in self.options.leaf_class:
            if name not in classes and name not in {c.rsplit(".", 1)[-1] for c in classes}:
                problems.append(problem("leaf-class", f"no module is a '{name}'{near(name, classes)}", cls=name))
        if problems:
            raise Failure(*problems)

    def _wrap(self):
        """Tells torch.fx to keep the functions of --wrap as single calls, wherever the model's code looks them up."""
        scopes = {id(g): g for g in [vars(self.source.python_module)] + [
            getattr(inspect.unwrap(type(m).forward), "__globals__", {}) for m in self.modules.values()]}
        for qualname in self.options.wrap:
            place, _, name = qualname.rpartition(".")
            home = sys.modules.get(place) if place else self.source.python_module
            function = getattr(home, name, None) if home else None
            if function is None and not place:
                function = getattr(builtins, name, None)
            if not callable(function):
                known = [f"{self.source.python_module.__name__}.{n}" for n, f in vars(self.source.python_module).items() if inspect.isfunction(f)]
                raise Failure(problem("wrap", f"there is no function '{qualname}' to wrap{near(qualname, known)}; write it as package.module.function"))
            for scope in list(scopes.values()) + ([vars(home)] if home and id(vars(home)) not in scopes else []):
                if scope.get(name) is function or (name not in scope and getattr(builtins, name, None) is function):
                    exec(f"__import__('torch.fx').fx.wrap({name!r})", scope)


# --- what a person should know about the trace -----------------------------------------------------------------------

class Notes:
    def __init__(self, root, graph, tracer):
        self.root, self.graph, self.tracer = root, graph, tracer
        self.list = []

    def add(self, kind, message, module=None, node=None):
        source = (self.tracer.origins.get(node) or (None, None))[1] or {}
        self.list.append({"kind": kind, "message": message, "module": module, "node": node.name if node else None,
                          "file": source.get("file"), "line": source.get("line")})

    def check(self, leaves, concrete):
        called = {n.target for n in self.graph.nodes if n.op == "call_module"}
        aliases = {id(m): name for name, m in self.root.named_modules()}
        for path in leaves:
            if aliases[id(self.root.get_submodule(path))] not in called:
                self.add("unused_leaf", f"leaf '{path}' is never called", path)
        self._hooks(called)
        self._constants()
        self._arguments(concrete)
        self._training(called)
        return self.list

    def _hooks(self, called):
        if "forward" in vars(self.root):
            self.add("hook", f"forward of this {self.root._get_name()} was replaced on the object; the trace follows its class, which does not know of that", "")
        inside = tuple(path + "." for path in called)
        for path, module in self.root.named_modules():
            hooks = len(module._forward_hooks) + len(module._forward_pre_hooks)
            if not hooks or (inside and path.startswith(inside)):
                continue
            if path in called:
                self.add("hook", f"leaf '{path}' has {hooks} forward hook(s), which are not part of its stored form", path)
            elif path == "":
                self.add("hook", f"the root module has {hooks} forward hook(s), which are not part of the graph", path)
            else:
                self.add("hook", f"module '{path}' is traced through and has {hooks} forward hook(s): what they did while tracing "
                         "is in the graph, the hooks themselves are not", path)

    def _constants(self):
        made = {n.target: read_attribute(self.root, n.target) for n in self.graph.nodes if n.op == "get_attr" and n.target.startswith("_tensor_constant")}
        if made:
            shown = [f"{name} ({t.numel()} value{'s' * (t.numel() != 1)} of {str(t.dtype)[6:]})" for name, t in made.items()]
            self.add("constant", f"tensors that forward makes while it is traced are constants of the graph from now on: {', '.join(shown[:5])}"
                     f"{' ...' if len(shown) > 5 else ''}")

    def _arguments(self, concrete):
        for node in self.graph.nodes:
            if node.op == "placeholder" and node.args and node.args[0] is None and re.sub(r"_1$", "", node.target) not in concrete:
                self.add("fixed_branch", f"argument '{node.target}' may be None, but the trace took the branch where it is given; "
                         f"trace with --concrete {node.target}=None for the other one", node=node)

    def _training(self, called):
        for node in self.graph.nodes:
            if node.op == "call_function" and node.kwargs.get("training") is True:
                self.add("training", f"{node.name} calls {fx_node._get_qualified_name(node.target)} with training=True as a constant: "
                         "eval() does not change that", node=node)
        for path, module in self.root.named_modules():
            if path in called and module.training and isinstance(module, (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase)):
                self.add("training", f"module '{path}' was traced in training mode", path)


# --- running the model as it is ---

def multiply_adds(name, args, out):
    """Of one ATen call; 0 for what is no product of matrices."""
    if name in ("convolution", "_convolution", "mkldnn_convolution"):
        data, weight, transposed = args[0], args[1], args[6] if name != "mkldnn_convolution" else False
        return (data if transposed else out).numel() * weight.numel() // weight.shape[0]
    if name in ("mm", "bmm", "mv", "dot"):
        return out.numel() * args[0].shape[-1]
    if name in ("addmm", "baddbmm", "addmv", "addbmm"):
        return out.numel() * args[1].shape[-1]
    if name in ("linear", "mkldnn_linear"):
        return out.numel() * args[1].shape[-1]
    if name.startswith("_scaled_dot_product"):
        return 2 * args[0].numel() * args[1].shape[-2]
    if name == "mkldnn_rnn_layer":
        return args[0].shape[0] * args[0].shape[1] * (args[1].numel() + args[2].numel())
    return 0


@contextlib.contextmanager
def watched(root):
    """While the model runs: -> path -> (args, kwargs) of first calls, stack of paths -> multiply-adds."""
    from torch.utils._python_dispatch import TorchDispatchMode
    paths = {id(m): name for name, m in reversed(list(root.named_modules()))}
    calls, costs, stack = {}, {}, [""]
    plain = torch.nn.Module.__call__

    def call(self, *args, **kwargs):
        path = paths.get(id(self))
        if not path:
            return plain(self, *args, **kwargs)
        calls.setdefault(path, (args, kwargs))
        stack.append(path)
        try:
            return plain(self, *args, **kwargs)
        finally:
            stack.pop()

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            with contextlib.suppress(Exception):        # a count is never worth a failed run
                number = multiply_adds(func._schema.name.split("::")[1], args, out[0] if isinstance(out, tuple) else out)
                if number:
                    costs[tuple(stack)] = costs.get(tuple(stack), 0) + number
            return out
    torch.nn.Module.__call__ = call
    try:
        with Count():
            yield calls, costs
    finally:
        torch.nn.Module.__call__ = plain


# --- sample inputs and shapes ----------------------------------------------------------------------------------------

NPY_TYPES = {"f2": torch.float16, "f4": torch.float32, "f8": torch.float64, "i1": torch.int8, "i2": torch.int16, "i4": torch.int32,
             "i8": torch.int64, "u1": torch.uint8, "b1": torch.bool, "c8": torch.complex64, "c16": torch.complex128}
SAFETENSORS_TYPES = {name: getattr(torch, torch_name) for name, torch_name in {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "I16": "int16", "U16": "uint16",
    "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32", "C64": "complex64", "F64": "float64",
    "I64": "int64", "U64": "uint64"}.items() if hasattr(torch, torch_name)}


def tensor_from(data, dtype, shape):
    count = math.prod(shape)
    size = torch.empty(0, dtype=dtype).element_size()
    if len(data) < count * size:
        raise ValueError("the data is cut off")
    return torch.frombuffer(bytearray(data[:count * size]), dtype=dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)


def read_npy(data):
    if data[:6] != b"\x93NUMPY":
        raise ValueError("it is no .npy data")
    size, = struct.unpack("<H", data[8:10]) if data[6] == 1 else struct.unpack("<I", data[8:12])
    start = (10 if data[6] == 1 else 12)
    header = ast.literal_eval(data[start:start + size].decode("latin1"))
    if header["descr"][0] == ">" or header["descr"][1:] not in NPY_TYPES:
        raise ValueError(f"its type {header['descr']} is not supported")
    shape = header["shape"]
    flat = data[start + size:]
    tensor = tensor_from(flat, NPY_TYPES[header["descr"][1:]], shape[::-1] if header["fortran_order"] else shape)
    return tensor.permute(*reversed(range(len(shape)))).contiguous() if header["fortran_order"] else tensor


def read_safetensors(data):
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    body = memoryview(data)[8 + size:]
    return {name: tensor_from(body[e["data_offsets"][0]:e["data_offsets"][1]], SAFETENSORS_TYPES[e["dtype"]], e["shape"])
            for name, e in header.items() if name != "__metadata__"}


def read_tensors(path):
    """name -> tensor of a .npy (name ""), .npz or .safetensors file."""
    with open(path, "rb") as file:
        if path.endswith(".npz"):
            with zipfile.ZipFile(file) as members:
                return {name[:-4] if name.endswith(".npy") else name: read_npy(members.read(name)) for name in members.namelist()}
        return read_safetensors(file.read()) if path.endswith(".safetensors") else {"": read_npy(file.read())}


def sample(text, name=""):
    """The tensor that SHAPE or FILE stands for; `name` picks one of a file that holds several."""
    shape = re.fullmatch(r"(\d+(?:x\d+)*)?(?::(\w+))?", text)
    if shape and text:
        dtype = getattr(torch, shape.group(2) or "float32", None)
        if not isinstance(dtype, torch.dtype):
            raise Failure(problem("input", f"'{text}' has no dtype of torch after the colon; write for example 1x77:int64"))
        sizes = [int(n) for n in shape.group(1).split("x")] if shape.group(1) else []
        try:
            if dtype.is_floating_point or dtype.is_complex:
                return torch.randn(sizes, dtype=torch.float32 if dtype.is_floating_point else dtype).to(dtype)
            return torch.randint(0, 2, sizes).to(dtype)      # small enough for any index or mask
        except RuntimeError as error:
            raise Failure(problem("input", f"a sample input of {text} cannot be made: {first_line(error)}")) from error
    if not text.endswith((".npy", ".npz", ".safetensors")):
        raise Failure(problem("input", f"'{text}' is neither a shape such as 1x3x224x224 nor a .npy, .npz or .safetensors file"))
    try:
        tensors = read_tensors(text)
    except Exception as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else error
        raise Failure(problem("input", f"sample input {text} cannot be read: {why}")) from error
    if len(tensors) != 1 and name not in tensors:
        raise Failure(problem("input", f"{text} holds {len(tensors)} tensors ({', '.join(sorted(tensors)[:5])}) and none is called '{name}'; "
                              "give a file with one tensor"))
    return tensors[name] if name in tensors else next(iter(tensors.values()))


def bind_inputs(graph, target):
    """placeholder node -> value, as the samples go to forward's arguments."""
    if target.binding:
        return {n: target.binding.values[n.target] for n in graph.nodes if n.op == "placeholder"}
    if target.args is None:
        return {}
    values, names = {}, [p.name for p in target.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    given = {**dict(zip(names, target.args)), **target.kwargs}
    for node in (n for n in graph.nodes if n.op == "placeholder"):
        base = re.sub(r"_1$", "", node.target)
        if base in target.fixed and node.target != base:
            values[node] = target.fixed[base]
        elif node.target in given:
            values[node] = given[node.target]
        elif node.target.startswith("**"):
            values[node] = {k: v for k, v in target.kwargs.items() if k not in target.parameters}
        elif node.target.startswith("*"):
            values[node] = tuple(target.args[len(names):])
        elif node.args and (node.args[0] is not None or not node.users):
            values[node] = node.args[0]
    return values


def read_attribute(root, path):
    for part in path.split("."):
        root = getattr(root, part)
    return root


def facts_of(tensor):
    return list(tensor.shape), str(tensor.dtype).replace("torch.", "")


def value_of(node, values, root):
    """What a node gives, from the values of its inputs."""
    if node.op == "get_attr":
        return read_attribute(root, node.target)
    args, kwargs = fx_node.map_arg((tuple(node.args), dict(node.kwargs)), lambda n: values[n])
    if node.op == "call_module":
        return root.get_submodule(node.target)(*args, **kwargs)
    if node.op == "call_method":
        return getattr(args[0], node.target)(*args[1:], **kwargs)
    return node.target(*args, **kwargs)


def propagate(graph, root, inputs):
    """Runs the graph on the sample inputs. -> (node -> tensor facts, what it gives, what stopped it or None)"""
    facts, values, output = {}, dict(inputs), None
    last = {}
    for node in graph.nodes:
        for used in node.all_input_nodes:
            last[used] = node
    done = {}
    for node, user in last.items():
        done.setdefault(user, []).append(node)
    buffers = [(b, b.clone()) for b in root.buffers()]       # in training mode a run changes them
    try:
        with torch.no_grad():
            for node in graph.nodes:
                try:
                    if node.op == "placeholder":
                        if node not in values:
                            return facts, None, f"there is no sample input for '{node.target}'"
                        value = values[node] = fx_node.map_arg(values[node], lambda n: values[n])
                    elif node.op == "output":
                        output = fx_node.map_arg(node.args[0], lambda n: values[n])
                        break
                    else:
                        value = value_of(node, values, root)
                except Exception as error:
                    return facts, None, f"{node.name} fails on the sample inputs: {first_line(error)}"
                values[node] = value
                if isinstance(value, torch.Tensor):
                    facts[node] = facts_of(value)
                for finished in done.get(node, ()):
                    values.pop(finished, None)
    finally:
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)
    return facts, output, None


# --- graph.json ------------------------------------------------------------------------------------------------------

def qualified(obj):
    """The dotted name of a function, class, enum member or typing construct; the literal of a string (an annotation that is not evaluated)."""
    if isinstance(obj, str):
        return repr(obj)
    if isinstance(obj, enum.Enum):
        return f"{class_name(obj)}.{obj.name}"
    if inspect.ismodule(obj):
        return obj.__name__
    if obj is Ellipsis:         # of tuple[int, ...]
        return "builtins.Ellipsis"
    if type(obj).__module__ == "typing":
        return str(obj)
    if getattr(builtins, getattr(obj, "__name__", ""), None) is obj:
        return "builtins." + obj.__name__
    try:
        name = fx_node._get_qualified_name(obj)
    except Exception:
        name = f"{obj.__module__}.{getattr(obj, '__qualname__', obj.__name__)}"
    return "operator." + name[len("_operator."):] if name.startswith("_operator.") else name


def shown(value, how=repr):
    """Python's text of a value, without the addresses in memory that differ from run to run."""
    try:
        return re.sub(r" at 0x[0-9a-fA-F]+", "", how(value))[:1000]
    except Exception:
        return f"<{class_name(value)}>"


def opaque(value):
    text = {"type": class_name(value), "repr": shown(value)}
    return text if shown(value, str) == text["repr"] else {**text, "str": shown(value, str)}


def symbol(value):
    """A name, and how Python prints what it stands for."""
    texts = {"name": qualified(value), "repr": shown(value), "str": shown(value, str)}
    if texts["str"] == texts["repr"]:
        del texts["str"]
    return texts


@functools.lru_cache(maxsize=None)
def constructor_parameters(cls):
    """Names of what a module class and its bases take, without where the tensors go."""
    names = {}
    for base in cls.__mro__[:cls.__mro__.index(torch.nn.Module)]:
        if "__init__" in vars(base):
            names.update((p.name, None) for p in list(inspect.signature(base.__init__).parameters.values())[1:]
                         if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.name not in ("device", "dtype"))
    return list(names)


class Archive:
    """What stands beside graph.json."""

    def __init__(self):
        self.tensors = {}           # name in tensors.safetensors -> tensor
        self.scripts = []           # bytes
        self.keys = {}              # identity of a tensor -> its name


class Document:
    """Builds graph.json, or one for a graph inside it, and collects the tensors and scripts that it names."""

    def __init__(self, root, graph, tracer, source, facts, inputs, notes, archive, prefix="", cut=None):
        self.root, self.graph, self.tracer = root, graph, tracer
        self.source, self.facts, self.inputs = source, facts, inputs
        self.warnings = notes
        self.prefix = prefix        # of its tensors' names in the archive
        self.cut = cut or {}        # path -> why it stays opaque, or None where a graph of its own stands for it and all below
        self.archive, self.tensors, self.scripts, self.keys = archive, archive.tensors, archive.scripts, archive.keys
        self.annotations = {}

    def build(self):
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20000))     # arguments may be nested deeply
        self._find_graphs()
        names, attributes = {}, {}
        for path, module in self._entries():
            for name, tensor in () if self.cut.get(path, "") is None else list(module._parameters.items()) + list(module._buffers.items()):
                if tensor is not None:
                    self._tensor(f"{path}.{name}" if path else name, tensor, names)
        for node in self.graph.nodes:
            if node.op == "get_attr" and node.target not in names:
                value = read_attribute(self.root, node.target)
                held = isinstance(value, torch.Tensor) and self._tensor(node.target, value, names)
                if not held and not isinstance(value, torch.nn.Module):
                    attributes[node.target] = {"opaque": opaque(value)} if isinstance(value, torch.Tensor) else self._argument(value)
                    if "opaque" in str(attributes[node.target])[:10]:
                        self._warn("unsupported", f"{node.name} reads {node.target}, a {class_name(value)}, which the archive cannot hold", node=node.name)
        self.names = names
        nodes = [self._node(n) for n in self.graph.nodes]
        modules = self._modules()
        code, names_used = self._code()
        output = next((n for n in reversed(self.graph.nodes) if n.op == "output"), None)
        return {
            "format": "fuseboard-fxt", "version": 1, "torch": torch.__version__, "python": sys.version.split()[0],
            "source": self.source.shown, "root_class": self.root._get_name(),
            "inputs": [{"name": n.name, "shape": self.facts[n][0], "dtype": self.facts[n][1]} for n in self.graph.nodes if n in self.inputs and n in self.facts],
            "nodes": nodes, "modules": modules, "tensors": names, **({"attributes": attributes} if attributes else {}), "globals": names_used,
            "wrapped": re.findall(r"^torch\.fx\._symbolic_trace\.wrap\(\"(.*?)\"\)$", code, re.M), "warnings": self.warnings,
            "return_type": self._annotation(output.type) if output is not None else ""}

    def _warn(self, kind, message, module=None, node=None):
        self.warnings.append({"kind": kind, "message": message, "module": module, "node": node, "file": None, "line": None})

    def _code(self):
        try:
            code = self.graph.python_code("self")
        except Exception as error:
            self._warn("code", f"torch.fx cannot print this graph as code: {error}")
            return "", {}
        return code.src, {name: qualified(obj) for name, obj in code.globals.items() if name not in STANDARD_GLOBALS}

    def _annotation(self, kind):
        """A type annotation, spelled as the code that torch.fx generates spells it."""
        if kind is None:
            return ""
        key = repr(kind)
        if key not in self.annotations:
            graph = torch.fx.Graph()
            graph.placeholder("x", type_expr=kind)
            graph.output(None)
            found = re.search(r"^def forward\(self, x : (.*)\):$", graph.python_code("self").src, re.M)
            self.annotations[key] = found.group(1) if found else fx_node._type_repr(kind)
        return self.annotations[key]

    def _find_graphs(self):
        """Graphs inside this one: GraphModules that it calls or reads, whole, unless it also reaches into them."""
        reached = dict.fromkeys(n.target for n in self.graph.nodes if n.op in ("call_module", "get_attr"))
        modules = dict(self.root.named_modules(remove_duplicate=False))
        self.graphs = {path: modules[path] for path in reached if isinstance(modules.get(path), torch.fx.GraphModule)}
        self.cut.update((path, None) for path in self.graphs if not any(other.startswith(path + ".") for other in reached))

    @staticmethod
    def _origin(node):
        """Stack and source line of a node that another tracer made."""
        stack = [[path, kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}", int(key.rpartition("@")[2]) if "@" in key else 0]
                 for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items() if path]
        return (stack[:-1] if node.op == "call_module" and stack and stack[-1][0] == node.target else stack), None

    def _meta(self, node):
        """What node.meta holds that is plain data and has no place of its own."""
        def plain(value):
            return value is None or isinstance(value, (bool, int, float, str)) or isinstance(value, (list, tuple)) and all(map(plain, value)) \
                or isinstance(value, dict) and all(plain(k) and plain(v) for k, v in value.items())
        return {key: self._argument(value) for key, value in node.meta.items()
                if isinstance(key, str) and key not in ("is_wrapped", "nn_module_stack", "stack_trace", "tensor_meta", "val") and plain(value)}

    def _node(self, node):
        stack, line = self.tracer.origins[node] if node in self.tracer.origins else self._origin(node)
        shape, dtype = self.facts.get(node, (None, None))
        kind = self._annotation(node.type)
        entry = {"op": node.op, "name": node.name, "target": qualified(node.target) if node.op == "call_function" else str(node.target),
                 "args": [self._argument(a) for a in node.args], "kwargs": {k: self._argument(v) for k, v in node.kwargs.items()},
                 "type": kind, "module": stack[-1][0] if stack else "", "module_stack": stack, "source": line, "shape": shape, "dtype": dtype}
        text = fx_node._type_repr(node.type) if node.type else ""
        if text != kind:
            entry["type_text"] = text
        meta = self._meta(node)
        if meta:
            entry["meta"] = meta
        return entry

    def _argument(self, a):
        if a is None or isinstance(a, bool) or type(a) is str:
            return a
        if isinstance(a, torch.fx.Node):
            return {"node": a.name}
        if isinstance(a, enum.Enum):
            return {"symbol": symbol(a)}
        if type(a).__name__ == "SymInt" and a.node.maybe_as_int() is not None:
            a = a.node.maybe_as_int()
        if type(a) is int:
            return a if -2**63 <= a < 2**63 else {"int": str(a)}
        if type(a) is float:
            return a if math.isfinite(a) else {"float": "nan" if math.isnan(a) else "inf" if a > 0 else "-inf"}
        if type(a) is complex:
            return {"complex": [self._argument(a.real), self._argument(a.imag)]}
        if isinstance(a, torch.Size):
            return {"size": [self._argument(x) for x in a]}
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return {"namedtuple": {"type": class_name(a), "fields": [[f, self._argument(v)] for f, v in zip(a._fields, a)]}}
        if isinstance(a, tuple):
            return {"tuple": [self._argument(x) for x in a]}
        if isinstance(a, list):
            return [self._argument(x) for x in a]
        if isinstance(a, dict):
            return {"dict": [[self._argument(k), self._argument(v)] for k, v in a.items()]}
        if isinstance(a, slice):
            return {"slice": [self._argument(a.start), self._argument(a.stop), self._argument(a.step)]}
        if isinstance(a, range):
            return {"range": [a.start, a.stop, a.step]}
        if a is Ellipsis:
            return {"ellipsis": True}
        for kind, cls in (("dtype", torch.dtype), ("device", torch.device), ("layout", torch.layout), ("memory_format", torch.memory_format)):
            if isinstance(a, cls):
                return {kind: str(a)}
        if isinstance(a, torch.Tensor):
            name = self._tensor(f"_argument{len(self.tensors)}", a, {})
            return {"tensor": name} if name else {"opaque": opaque(a)}
        if isinstance(a, type) or inspect.isroutine(a) or type(a).__module__ in ("typing", "torch._ops"):
            return {"symbol": symbol(a)}
        return {"opaque": opaque(a)}

    def _tensor(self, path, tensor, names):
        """Takes a tensor in, once however many names it has, and returns its name in the archive (None where it cannot be held)."""
        if tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer if hasattr(torch.nn, "Buffer") else torch.Tensor) \
                or tensor.layout != torch.strided or tensor.dtype not in SAFETENSORS_TYPES.values():
            what = "has no data (meta device)" if tensor.is_meta else f"is a {type(tensor).__name__} of {tensor.dtype}, {tensor.layout}, which the archive cannot hold"
            self._warn("tensor", f"tensor '{path}' {what}", path.rpartition(".")[0])
            return None
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, str(tensor.device)) if tensor.numel() else id(tensor)
        name = self.keys.setdefault(key, self.prefix + path)
        self.tensors.setdefault(name, tensor)
        names[path] = name
        return name

    def _entries(self):
        graphs = tuple(path + "." for path, why in self.cut.items() if why is None)
        return [(path, m) for path, m in self.root.named_modules(remove_duplicate=False) if not path.startswith(graphs)]

    def _modules(self):
        called = {n.target for n in self.graph.nodes if n.op == "call_module"}
        first, modules = {}, []
        for path, module in self._entries():
            entry = {"path": path, "class": class_name(module), "training": module.training, "called": path in called,
                     "attrs": self._facts(module), "extra_repr": self._extra_repr(module), "parameters": [n for n, p in module._parameters.items() if p is not None],
                     "buffers": [n for n, b in module._buffers.items() if b is not None],
                     "non_persistent": [n for n in module._buffers if n in module._non_persistent_buffers_set and module._buffers[n] is not None],
                     "none": [n for n, v in list(module._parameters.items()) + list(module._buffers.items()) if v is None],
                     "alias_of": first.get(id(module)), "kind": "container", "script": None, "script_error": None}
            first.setdefault(id(module), path)
            if path in self.graphs:
                inner = Document(module, module.graph, self.tracer, self.source, {}, {}, [], self.archive, f"{self.prefix}{path}/")
                entry.update(kind="graph", graph=inner.build())
                if path in self.cut:
                    entry.update(parameters=[], buffers=[], non_persistent=[], none=[])
            elif self._is_torch_nn(module) and (path in called or not isinstance(module, (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict))):
                entry["kind"] = "nn"
            elif self.cut.get(path):
                entry["kind"], entry["script_error"] = "opaque", self.cut[path]
            elif path in called:
                self._script(module, entry)
            modules.append(entry)
        return modules

    @staticmethod
    def _is_torch_nn(module):
        """Is its class one of torch.nn's own, not one made at run time or by the user?"""
        home = type(module).__module__
        return home.startswith(("torch.nn.", "torch.ao.nn.")) and getattr(sys.modules.get(home), type(module).__name__, None) is type(module)

    @staticmethod
    def _extra_repr(module):
        try:
            return module.extra_repr()
        except Exception:
            return ""

    def _facts(self, module):
        facts = {}
        for name in constructor_parameters(type(module)):
            with contextlib.suppress(Exception):        # not kept, or a property that fails
                value = getattr(module, name)
                if inspect.ismethod(value):        # a name that means something else: the `modules` of a ModuleList
                    continue
                facts[name] = True if isinstance(value, (torch.Tensor, torch.nn.Module)) else self._argument(value)
        for name in getattr(type(module), "__constants__", ()):     # PairwiseDistance keeps its p as norm
            if name not in facts and len(facts) < len(constructor_parameters(type(module))) and hasattr(module, name):
                facts[name] = self._argument(getattr(module, name))
        return facts

    def _script(self, module, entry):
        """A leaf of the user's travels as TorchScript, which runs without the user's Python."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = without_debug_files(torch.jit.script(module))
        except Exception as error:
            entry["kind"], entry["script_error"] = "opaque", first_line(error).rstrip(":")
            self._warn("opaque", f"leaf '{entry['path']}' ({entry['class']}) does not script, so it is shown and exported but cannot run "
                       f"in Fuseboard: {entry['script_error']}", entry["path"])
            return
        entry["kind"], entry["script"] = "script", f"scripts/{len(self.scripts)}.pt"
        self.scripts.append(data)


# --- the archive -----------------------------------------------------------------------------------------------------

def raw_bytes(tensor):
    """Chunks of a tensor's contents; large ones are never copied whole."""
    tensor = tensor.detach().cpu().contiguous()
    tensor = tensor.resolve_conj().resolve_neg()
    size = tensor.numel() * tensor.element_size()
    if size:
        view = memoryview((ctypes.c_char * size).from_address(tensor.data_ptr()))
        for start in range(0, size, 1 << 24):
            yield view[start:start + (1 << 24)]


def safetensors_header(tensors):
    types = {dtype: name for name, dtype in SAFETENSORS_TYPES.items()}
    header, offset = {}, 0
    for name, tensor in tensors:
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return struct.pack("<Q", len(text)) + text, offset


def add_member(archive, name, size, chunks):
    """Stores a member whose data begins at a multiple of 64 bytes in the file."""
    info = zipfile.ZipInfo(name)
    large = size >= 1 << 31
    info.file_size = size
    before = archive.fp.tell() + 30 + len(name.encode()) + (20 if large else 0) + 4
    padding = -before % ALIGNMENT
    info.extra = struct.pack("<HH", 0xD935, padding) + bytes(padding)      # the padding field of Android's zipalign
    with archive.open(info, "w", force_zip64=large) as member:
        for chunk in chunks:
            member.write(chunk)


def without_debug_files(script):
    """The TorchScript archive of a module, without the absolute paths of its source that torch keeps in *.debug_pkl."""
    saved, stripped = io.BytesIO(), io.BytesIO()
    torch.jit.save(script, saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(stripped, "w", zipfile.ZIP_STORED) as target:
        for name in source.namelist():
            if not name.endswith(".debug_pkl"):
                data = source.read(name)
                add_member(target, name, len(data), [data])
    return stripped.getvalue()


def write_archive(path, document, tensors, scripts):
    """Writes beside the target and renames, so an interrupted run leaves an old file as it was."""
    ordered = sorted(tensors.items(), key=lambda item: -item[1].element_size())     # so that each is aligned to its own type
    header, body = safetensors_header(ordered)
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    folder = os.path.dirname(os.path.abspath(path))
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".fxt", dir=folder)
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            add_member(archive, "graph.json", len(text), [text])

            def contents():
                yield header
                written = 0
                for _, tensor in ordered:
                    for chunk in raw_bytes(tensor):
                        yield chunk
                        before, written = written, written + len(chunk)
                        if before * 20 // body != written * 20 // body and len(chunk) == 1 << 24:
                            progress(0.7 + 0.3 * written / body, "writing")
            add_member(archive, "tensors.safetensors", len(header) + body, contents())
            for number, script in enumerate(scripts):
                add_member(archive, f"scripts/{number}.pt", len(script), [script])
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise Failure(problem("write", f"{path} cannot be written: {error.strerror or error}; choose another place with -o")) from error
    finally:
        if temporary:
            os.unlink(temporary)


def write_graph(root, graph, path, source=""):
    """Writes any graph of torch.fx, on the module that it runs on (a GraphModule and its .graph, for one), however it was made."""
    archive = Archive()
    no_tracer, named = argparse.Namespace(origins={}), argparse.Namespace(shown=source)
    document = Document(root, graph, no_tracer, named, {}, {}, [], archive).build()
    write_archive(path, document, archive.tensors, archive.scripts)


# --- command line ----------------------------------------------------------------------------------------------------

def pairs(parser, option, items, convert=lambda value: value):
    found = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            parser.error(f"{option} takes NAME=VALUE, not '{item}'")
        found[name] = convert(value)
    return found


def constant(parser):
    def convert(text):
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
        if value is not None and not isinstance(value, (bool, int, float, str)):
            parser.error(f"--concrete takes None, True, False, a number or a string, not '{text}'")
        return value
    return convert


def parse(arguments):
    parser = argparse.ArgumentParser(prog="fuseboard_trace.py", description="Traces a PyTorch model with torch.fx and writes a .fxt archive.")
    parser.add_argument("source", metavar="SOURCE", help="file.py:name or package.module:name; a module, or a callable without arguments that returns one")
    parser.add_argument("-o", "--output", metavar="OUT.fxt")
    parser.add_argument("--input", nargs="+", action="append", default=[], metavar="SHAPE|FILE", help="a sample input, such as 1x3x224x224 or 1x77:int64")
    parser.add_argument("--kwarg", action="append", default=[], metavar="NAME=SHAPE|FILE", help="a sample input by name")
    parser.add_argument("--samples", metavar="NAME", help="a function of SOURCE's file that gives the sample inputs: a value, a tuple of arguments or a dict by name")
    parser.add_argument("--concrete", action="append", default=[], metavar="NAME=VALUE", help="fixes an argument of forward")
    parser.add_argument("--leaf", action="append", default=[], metavar="PATH", help="keeps a module as one node")
    parser.add_argument("--leaf-class", action="append", default=[], metavar="QUALNAME", help="keeps every module of a class as one node")
    parser.add_argument("--wrap", action="append", default=[], metavar="QUALNAME", help="keeps a function as one call")
    parser.add_argument("--submodule", action="append", default=[], metavar="PATH", help="traces this submodule as a graph of its own; the model around it stays opaque")
    parser.add_argument("--sizes", action="store_true", help="lets the sample inputs decide what depends on sizes, dtypes and devices")
    parser.add_argument("--keep-mode", action="store_true", help="traces in the mode the module is in; else in eval mode")
    parser.add_argument("--doctor", action="store_true", help="finds a smallest set of leaves that lets the model trace, or submodules that do")
    parser.add_argument("--seed", type=int, default=0, help="for sample inputs given as shapes (0)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not options.output and not options.doctor:
        parser.error("-o OUT.fxt is needed (only --doctor goes without)")
    options.input = [text for group in options.input for text in group]
    options.kwarg = pairs(parser, "--kwarg", options.kwarg)
    options.concrete = pairs(parser, "--concrete", options.concrete, constant(parser))
    return options


def work(options):
    """Everything the options ask for. -> the --json document of a success"""
    progress(0.0, "importing")
    source = Source(options.source)
    root = source.load()
    if not options.keep_mode:
        root.eval()
    try:
        return trace(root, source, options)
    except Failure as failure:
        failure.modules = list(root.named_modules())
        raise


def trace(root, source, options):
    tracing = Tracing(root, source, options)
    progress(0.4, "tracing")
    result = {"ok": True}
    leaves, targets = list(options.leaf), [(tracing.submodule(path), list(options.leaf)) for path in options.submodule]
    if options.doctor:
        leaves, targets, met = diagnose(tracing)
        covered = [t.path for t, _ in targets] if targets else [""]
        result.update(sizes=options.sizes, leaves=[] if targets else leaves, submodules=[
            {"path": t.path, "class": class_name(t.module), "leaves": inner, **tracing.share([t.path], inner)} for t, inner in targets],
            **tracing.share(covered, leaves + [p for _, inner in targets for p in inner]), problems=met)
        advice(result)
        if not options.output:
            return result
    archive = Archive()
    document = whole_document(tracing, leaves, archive) if not targets else partial_document(tracing, targets, archive)
    progress(0.7, "writing")
    write_archive(options.output, document, archive.tensors, archive.scripts)
    progress(1.0, "done")
    return {**result, "output": options.output, "nodes": len(document["nodes"]), "warnings": document["warnings"]}


def diagnose(tracing):
    """What --doctor finds. -> (leaves, [(submodule's Target, its leaves)], problems met)"""
    with contextlib.suppress(Failure):
        if tracing.target.args is not None:
            tracing.measure()
    targets = [(target, tracing.doctor(target)[0]) for target in map(tracing.submodule, tracing.options.submodule)]
    if targets:
        return [], targets, []
    try:
        leaves, met = tracing.doctor()
        return leaves, [], met
    except Failure as failure:
        found = failure.problems[0]
        if found["module"] or found["kind"] in ("model", "unregistered"):
            raise
        if tracing.target.args is not None and not tracing.options.sizes:
            tracing.options.sizes = True
            with contextlib.suppress(Failure):
                leaves, met = tracing.doctor()
                return leaves, [], failure.problems + met
            tracing.options.sizes = False
        if tracing.target.args is None:
            found["message"] += "; with --input, --doctor finds the submodules that trace"
            raise
        try:
            targets = tracing.proposals()
        except Failure as other:
            raise failure if other.problems[0]["kind"] == "model" else other
        if not targets:
            raise
        return [], targets, failure.problems


def advice(result):
    """The doctor's answer for a person: the options to trace with, and what that is worth."""
    def shares(of):
        adds = "" if of["multiply_adds"] is None else f" and {of['multiply_adds']:.1%} of the multiply-adds"
        return f"{of['parameters']:.1%} of the parameters{adds}"
    options = [f"--submodule {s['path']}{''.join(f' --leaf {leaf}' for leaf in s['leaves'])}" for s in result["submodules"]]
    worth = [f"{s['path']} ({s['class']}) holds {shares(s)}" for s in result["submodules"]]
    result["advice"] = "\n".join(["--sizes"] * result["sizes"] + (options or result["leaves"]) or ["no leaf is needed"])
    nothing_lost = not worth and result["parameters"] == 1 and result["multiply_adds"] in (None, 1)
    result["worth"] = "" if nothing_lost else "; ".join([*worth, f"quantizable: {shares(result)}"])


def whole_document(tracing, leaves, archive):
    target = tracing.target
    graph, tracer, notes = tracing.run(leaves)
    progress(0.5, "running the sample inputs")
    return graph_document(tracing, target, graph, tracer, notes, archive, "")


def graph_document(tracing, target, graph, tracer, notes, archive, prefix):
    inputs, facts = bind_inputs(graph, target), {}
    if target.args is not None:
        facts, output, stopped = propagate(graph, target.module, inputs)
        apart = None if stopped else difference(target, tracing.concrete if not target.path else {}, output)
        if stopped:
            notes.append({"kind": "shapes", "message": f"some shapes are not known: {stopped}", "module": None, "node": None, "file": None, "line": None})
        elif apart and not {n["kind"] for n in notes} & {"hook", "random_constant", "fixed_branch", "training"}:
            notes.append({"kind": "differs", "message": f"on the sample inputs the graph does not give what the module gives (largest difference {apart:.3g}): while it is "
                          "traced, forward goes another way than on tensors, perhaps because of isinstance(); mark the module that does so as a leaf",
                          "module": None, "node": None, "file": None, "line": None})
    document = Document(target.module, graph, tracer, tracing.source, facts, inputs, notes, archive, prefix)
    contents = document.build()
    contents["options"] = tracing.remembered(target)
    if target.binding:
        args, kwargs = target.binding.fill({n.target: n for n in graph.nodes if n.op == "placeholder"})
        contents["call"] = {"args": [document._argument(a) for a in args], "kwargs": {k: document._argument(v) for k, v in kwargs.items()}}
    return contents


def difference(target, concrete, output):
    """The largest difference between what a graph gave and what its module gives, where it is more than rounding; else None."""
    def tensors(value):
        if isinstance(value, torch.Tensor):
            return [value]
        if isinstance(value, dict):
            value = list(value.values())
        return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []
    if any(m.training for m in target.module.modules()):
        return None
    try:
        with torch.no_grad():
            expected = tensors(target.module(*target.args, **target.kwargs, **concrete))
        found = tensors(output)
        if [t.shape for t in expected] != [t.shape for t in found]:
            return math.inf
        if all(torch.allclose(a.double(), b.double(), 1e-3, 1e-4, equal_nan=True) for a, b in zip(found, expected) if not a.is_complex()):
            return None
        return max((a.double() - b.double()).abs().max().item() for a, b in zip(found, expected) if not a.is_complex() and a.numel())
    except Exception:       # it cannot tell
        return None


def partial_document(tracing, targets, archive):
    """The model as one opaque call, in which each submodule that traces is a graph of its own."""
    root, whole = tracing.root, torch.nn.Module()
    whole.model = root
    target = Target(root, "", tracing.target.args, {**tracing.target.kwargs, **tracing.concrete})
    target.bind()
    graph = torch.fx.Graph()
    nodes = {name: graph.placeholder(name) for name in target.binding.values}
    call = graph.call_module("model", *target.binding.fill(nodes))
    graph.output(call)
    facts = {nodes[name]: facts_of(value) for name, value in target.binding.values.items()}
    if isinstance(tracing.output, torch.Tensor):
        facts[call] = facts_of(tracing.output)
    inside, warned = {}, []
    for number, (part, leaves) in enumerate(targets):
        progress(0.5 + 0.2 * number / len(targets), f"tracing {part.path}")
        traced = tracing.run(leaves, part)
        inside[f"model.{part.path}"] = graph_document(tracing, part, *traced, archive, f"model.{part.path}/")
        inside[f"model.{part.path}"]["share"] = tracing.share([part.path], leaves)
        warned += [{**w, "module": f"model.{part.path}" + (f".{w['module']}" if w["module"] else ""), "node": None} for w in inside[f"model.{part.path}"]["warnings"]]
    tracer = BoardTracer(tracing.source.sources)
    document = Document(whole, graph, tracer, tracing.source, facts, dict.fromkeys(nodes.values()), [], archive, "", {
        "model": "only some of its submodules are traced", **dict.fromkeys(inside)})
    contents = document.build()
    contents["root_class"], contents["options"] = root._get_name(), tracing.remembered(tracing.target)
    contents["options"]["submodules"] = [part.path for part, _ in targets]
    if tracing.stopped:
        document._warn("shapes", f"the shares count what ran until {tracing.stopped['message']}")
    contents["warnings"] += warned
    for entry in contents["modules"]:
        if entry["path"] in inside:
            entry.update(kind="graph", graph=inside[entry["path"]], keep_float=False, parameters=[], buffers=[], non_persistent=[], none=[])
    return contents


def main(arguments=None):
    options = parse(arguments)
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(sys.stderr):        # whatever the user's code prints is no result
            result = work(options)
    except Failure as failure:
        if options.json:
            print(json.dumps({"ok": False, "problems": failure.problems, "modules": [[p, class_name(m)] for p, m in failure.modules]}))
        else:
            first = failure.problems[0]
            where = f" ({first['file']}:{first['line']}: {first['source']})" if first["file"] else ""
            print(f"cannot trace {options.source}: {first['message']}{where}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(result))
    else:
        for warning in result.get("warnings", ()):
            print(f"warning: {warning['message']}", file=sys.stderr)
        if options.doctor:
            if result["worth"]:
                print(result["worth"], file=sys.stderr)
            print(result["advice"])
    return 0


def end(*_):
    """Ended from outside: with all that the model started, and the temporary file removed on the way out."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGTERM)
    sys.exit(1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    sys.exit(main())
