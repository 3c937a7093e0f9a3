#!/usr/bin/env python3
# Makes the demo: trains digits_net.py, writes its weights, data and trace beside it. GPL-3.0-or-later.
#
# Run by hand when the model changes; needs scikit-learn beside the pinned requirements (for the images alone).
# It refuses to write a demo that is not good: at least 97 % of held-out digits right, at most one point lost in int8.
import copy
import os
import subprocess
import sys

import numpy
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.ao.quantization import QConfig, QConfigMapping
from torch.ao.quantization.fx.custom_config import PrepareCustomConfig
from torch.ao.quantization.observer import MinMaxObserver, PerChannelMinMaxObserver
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from digits_net import DigitsNet, make  # noqa: E402

EPOCHS, BATCH, CALIBRATION = 20, 64, 256


def data():
    """Images as scanners give them: Nx1x8x8, 1 is black, some under- and some over-exposed."""
    digits = load_digits()
    images = (digits.images / 16).astype("float32")[:, None]
    exposure = numpy.random.default_rng(0).uniform(0.6, 1.6, len(images)).astype("float32")
    return train_test_split(images * exposure[:, None, None, None], digits.target.astype("int64"),
                            test_size=0.3, random_state=0, stratify=digits.target)


def train(images, labels):
    torch.manual_seed(0)
    model = DigitsNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=EPOCHS * (len(images) // BATCH))
    for _ in range(EPOCHS):
        order = torch.randperm(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            pick = order[start:start + BATCH]
            shift = torch.randint(-1, 2, (2,)).tolist()
            batch = torch.roll(images[pick], shift, (2, 3)) * torch.empty(BATCH, 1, 1, 1).uniform_(0.8, 1.2)
            loss = torch.nn.functional.cross_entropy(model(batch), labels[pick], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()


@torch.no_grad()
def int8(model, engine, images):
    """The model as torch.ao makes it, with MinMax observers."""
    torch.backends.quantized.engine = engine
    per_channel = engine == "x86"
    weight = PerChannelMinMaxObserver if per_channel else MinMaxObserver
    scheme = torch.per_channel_symmetric if per_channel else torch.per_tensor_symmetric
    mapping = QConfigMapping().set_global(QConfig(
        activation=MinMaxObserver.with_args(dtype=torch.quint8, reduce_range=engine == "x86"),
        weight=weight.with_args(dtype=torch.qint8, qscheme=scheme)))
    leaf = PrepareCustomConfig().set_non_traceable_module_names(["gain"])
    prepared = prepare_fx(copy.deepcopy(model), mapping, (images[:1],), prepare_custom_config=leaf)
    for batch in images.split(32):
        prepared(batch)
    return convert_fx(prepared)


def main():
    images, held_out, labels, held_out_labels = map(torch.from_numpy, data())
    model = train(images, labels)
    calibration = images[:CALIBRATION]
    exact = accuracy(model, held_out, held_out_labels)
    print(f"float: {exact:.2%} of {len(held_out)} held-out digits")
    fine = exact >= 0.97
    for engine in ("x86", "qnnpack"):
        quantized = accuracy(int8(model, engine, calibration), held_out, held_out_labels)
        print(f"int8 {engine}: {quantized:.2%}")
        fine = fine and quantized >= exact - 0.01
    if not fine:
        sys.exit("not good enough: nothing written")

    torch.save(model.state_dict(), os.path.join(HERE, "digits_weights.pt"))
    numpy.save(os.path.join(HERE, "calib.npy"), calibration.numpy())
    numpy.savez(os.path.join(HERE, "test.npz"), images=held_out.numpy(), labels=held_out_labels.numpy())
    assert accuracy(make(), held_out, held_out_labels) == exact
    tracer = os.path.join(HERE, os.pardir, "python", "fuseboard_trace.py")
    subprocess.run([sys.executable, tracer, "digits_net.py:make", "-o", "digits.fxt", "--input", "1x1x8x8", "--leaf", "gain"], cwd=HERE, check=True)


if __name__ == "__main__":
    main()
