# torchvision models with seeded weights and lively batch norm statistics. GPL-3.0-or-later.
import inspect

import torch
from torch import nn

if int(torch.__version__.split(".")[0]) >= 2 and not hasattr(torch.ops.torchvision, "nms"):
    # torchvision's compiled operators do not load beside the CPU build of torch; its models need only their names.
    _names = torch.library.Library("torchvision", "FRAGMENT")
    for _name in ("nms", "qnms"):
        _names.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import torchvision.models  # noqa: E402


kept = {}       # models that are given again instead of made again


def seeded(name, seed=1):
    if name in kept:
        return kept[name]
    torch.manual_seed(seed)
    make = getattr(torchvision.models, name, None)
    if make:
        model = make()
    else:       # quantizable, detection, segmentation ... go by their registered names
        more = {"quantize": False} if name.startswith("quantized_") else {"weights_backbone": None}
        make = torchvision.models.get_model_builder(name)
        model = make(weights=None, **{k: v for k, v in more.items() if k in inspect.signature(make).parameters})
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
            nn.init.normal_(module.running_mean, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return model.eval()


def __getattr__(name):
    if name.startswith("_") or not hasattr(torchvision.models, name) and name not in torchvision.models.list_models():
        raise AttributeError(name)
    return lambda: seeded(name)
