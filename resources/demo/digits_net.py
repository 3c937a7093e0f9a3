# The demo model: handwritten digits, 8x8 pixels. GPL-3.0-or-later.
#
# A small network with one of everything that matters on the way to int8. `make()` gives it trained; make_demo.py trained it.
# `gain` decides by its data whether it has work to do, so torch.fx cannot trace through it: mark it as a leaf.
import os

import torch
from torch import nn


class ConvBlock(nn.Module):
    """Convolution, batch norm, activation."""

    def __init__(self, inputs, outputs, kernel=3, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.bn(self.conv(x)))


class GainLimit(nn.Module):
    """Turns samples down whose features are too bright. Most batches have none, and then it costs nothing."""

    def __init__(self, limit: float):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        peak = x.amax(dim=[1, 2, 3], keepdim=True)
        if bool((peak > self.limit).any()):
            x = x * (self.limit / peak.clamp(min=self.limit))
        return x


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = ConvBlock(channels, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.bn(self.conv(self.first(x))) + x)


class TwoScales(nn.Module):
    """A narrow and a wide look at the same features, side by side."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.narrow = ConvBlock(inputs, outputs // 2, kernel=1)
        self.wide = ConvBlock(inputs, outputs // 2, kernel=3)

    def forward(self, x):
        return torch.cat([self.narrow(x), self.wide(x)], dim=1)


class Separable(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.depthwise = ConvBlock(inputs, inputs, groups=inputs)
        self.pointwise = ConvBlock(inputs, outputs, kernel=1)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


class DigitsNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvBlock(1, 16)
        self.gain = GainLimit(3.0)
        self.residual = Residual(16)
        self.scales = TwoScales(16, 32)
        self.down = nn.MaxPool2d(2)
        self.separable = Separable(32, 64)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.gain(self.stem(x))
        x = self.down(self.scales(self.residual(x)))
        x = torch.flatten(self.pool(self.separable(x)), 1)
        return self.classifier(torch.clamp(x, 0.0, 2.0))


def make():
    """The trained model, in eval mode."""
    model = DigitsNet()
    weights = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits_weights.pt")
    model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return model.eval()
