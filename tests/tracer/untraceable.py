# The models of torchvision whose root torch.fx cannot trace. GPL-3.0-or-later.
import zoo  # noqa: F401 (makes torchvision import beside the CPU build of torch)
import torch
from torchvision.models import detection, optical_flow

NAMES = [name for part in (detection, optical_flow) for name in dir(part) if name.endswith(("_fpn", "_fpn_v2", "_vgg16", "_large", "_small")) and name.islower()]


def __getattr__(name):
    if name not in NAMES:
        raise AttributeError(name)

    def make():
        torch.manual_seed(1)
        more = {} if name.startswith("raft") else {"weights_backbone": None}
        return (getattr(detection, name, None) or getattr(optical_flow, name))(weights=None, **more).eval()
    return make
