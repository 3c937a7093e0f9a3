# What calibration costs beside the float forward of the same fused model: Fuseboard with a histogram on every activation, torch.ao's
# prepared model with its default observers. `bench_calibrate.py PROGRAM FUSEBOARD_CLI [ROUNDS]`; ratios within one process each.
# GPL-3.0-or-later.
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tracer"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../resources/python"))
import fuseboard_trace  # noqa: E402
import zoo  # noqa: E402
from torch.ao.quantization import get_default_qconfig_mapping  # noqa: E402
from torch.ao.quantization.quantize_fx import fuse_fx, prepare_fx  # noqa: E402

warnings.simplefilter("ignore")
program, cli = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 11
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))


def milliseconds(model, x):
    start = time.perf_counter()
    model(x)
    return (time.perf_counter() - start) * 1000


def torch_ao(model, shape):
    x = torch.randn(shape)
    fused = fuse_fx(copy.deepcopy(model))
    prepared = prepare_fx(copy.deepcopy(model), get_default_qconfig_mapping("x86"), (x,))
    with torch.no_grad():
        pairs = [(milliseconds(fused, x), milliseconds(prepared, x)) for _ in range(rounds + 2)][2:]
    return statistics.median(a for a, _ in pairs), statistics.median(b / a for a, b in pairs)


print(f"{'model':14} {'batch':>5} {'float ms':>9} {'ratio':>6}   {'torch.ao float ms':>17} {'ratio':>6}   million values")
with tempfile.TemporaryDirectory() as folder:
    for name in ("resnet18", "mobilenet_v2", "resnet50"):
        model = getattr(zoo, name)().eval()
        for batch in (1, 8):
            shape = f"{batch}x3x224x224"
            traced, fused = os.path.join(folder, "t.fxt"), os.path.join(folder, "f.fxt")
            fuseboard_trace.main([f"{zoo.__file__}:{name}", "-o", traced, "--input", shape])
            subprocess.run([cli, "fuse", traced, "-o", fused], check=True, stdout=subprocess.DEVNULL)
            ours = json.loads(subprocess.run([program, fused, shape, str(rounds)], check=True, stdout=subprocess.PIPE).stdout)
            theirs = torch_ao(model, (batch, 3, 224, 224))
            print(f"{name:14} {batch:5} {ours['float']:9.1f} {ours['ratio']:6.2f}   {theirs[0]:17.1f} {theirs[1]:6.2f}   "
                  f"{ours['values'] / 1e6:.1f}", flush=True)
