# What running a graph costs beside eager torch and torch.fx.Interpreter, in the same run and by turns. GPL-3.0-or-later.
# `bench_exec.py PROGRAM FUSEBOARD_CLI [ROUNDS]`; PROGRAM is bench_exec. A chain of 10,000 tiny adds shows the cost of a node, ResNet-50 that nothing
# is lost on real layers, ResNet-152 the peak memory.
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch

here = os.path.dirname(os.path.abspath(__file__))
for folder in ("../tracer", "../../resources/python"):
    sys.path.insert(0, os.path.join(here, folder))
import fuseboard_trace  # noqa: E402
import zoo  # noqa: E402

program = sys.argv[1]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 15
threads = int(os.environ.get("OMP_NUM_THREADS", "2"))
torch.set_num_threads(threads)
CHAIN = 10_000


class Chain(torch.nn.Module):
    def forward(self, x):
        for _ in range(CHAIN):
            x = x + 1
        return x


def chain():
    return Chain().eval()


def milliseconds(f, x):
    start = time.perf_counter()
    f(x)
    return (time.perf_counter() - start) * 1000


def traced(source, folder, name):
    path = os.path.join(folder, name + ".fxt")
    if fuseboard_trace.main([source, "-o", path]):
        sys.exit(f"{source} does not trace")
    return path


def ask(worker, path, shape):
    worker.stdin.write(f"{path} {shape}\n")
    worker.stdin.flush()
    answer = worker.stdout.readline().split()
    return float(answer[0]), int(answer[1])


def peak(command):
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(out.split()[-1])


def compare(worker, name, model, path, shape):
    x = torch.randn([int(n) for n in shape.split("x")])
    interpreter = torch.fx.Interpreter(torch.fx.symbolic_trace(model))
    with torch.no_grad():
        model(x), interpreter.run(x), ask(worker, path, shape)
        rows = [(ask(worker, path, shape)[0], milliseconds(model, x), milliseconds(interpreter.run, x)) for _ in range(rounds)]
    ours, eager, fx = (statistics.median(c) for c in zip(*rows))
    ratio = statistics.median(r[0] / r[1] for r in rows)
    print(f"{name:24} Fuseboard {ours:9.2f} ms   eager {eager:9.2f} ms   torch.fx.Interpreter {fx:9.2f} ms   ratio {ratio:5.2f}", flush=True)
    return ours, eager, fx


with tempfile.TemporaryDirectory() as folder:
    worker = subprocess.Popen([program, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    script = os.path.join(folder, "chain_model.py")
    with open(script, "w") as f:
        f.write(f"import torch\n\nclass Chain(torch.nn.Module):\n    def forward(self, x):\n        for _ in range({CHAIN}):\n            x = x + 1\n        return x\n\n\ndef chain():\n    return Chain().eval()\n")
    ours, eager, fx = compare(worker, f"{CHAIN} adds of 4 floats", chain(), traced(f"{script}:chain", folder, "chain"), "4")
    print(f"{'':24} a node: {ours * 1000 / CHAIN:.2f} us, eager {eager * 1000 / CHAIN:.2f} us, torch.fx.Interpreter {fx * 1000 / CHAIN:.2f} us")
    resnet = traced(f"{zoo.__file__}:resnet50", folder, "resnet50")
    for shape in ("1x3x224x224", "8x3x224x224"):
        compare(worker, f"resnet50 {shape}", zoo.seeded("resnet50"), resnet, shape)
    big = traced(f"{zoo.__file__}:resnet152", folder, "resnet152")
    eager = peak([sys.executable, "-c", f"import sys, resource; sys.path.insert(0, {os.path.dirname(zoo.__file__)!r}); import torch, zoo; torch.set_num_threads({threads})\n"
                  "m = zoo.seeded('resnet152')\nwith torch.no_grad(): m(torch.randn(8, 3, 224, 224)), m(torch.randn(8, 3, 224, 224))\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"])
    own = subprocess.run([program, str(threads)], input=f"{big} 8x3x224x224\n", capture_output=True, text=True, check=True).stdout
    print(f"resnet152 8x3x224x224    peak memory: Fuseboard {own.split()[1]} MB, eager {eager} MB, ratio {int(own.split()[1]) / eager:.2f}")
    worker.stdin.close()
    worker.wait()
