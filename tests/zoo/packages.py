# Models of other people's packages, with random weights: vision, segmentation, microscopy, faces, reading. A package that is not installed, or
# that lacks one of its own, gives no model, and MISSING says why. GPL-3.0-or-later.
import importlib

import torch
from torch import nn

import zoo  # noqa: F401  (torchvision, which several of these import, needs the names that it registers)

kept = {}       # models that are given again instead of made again
MODELS = {}     # name -> (what makes it, shape of a sample)
MISSING = {}    # package -> why


def package(name, *modules):
    """The modules of a package, or None each."""
    try:
        return [importlib.import_module(f"{name}.{m}" if m else name) for m in modules]
    except Exception as error:
        MISSING[name] = f"{type(error).__name__}: {error}".splitlines()[0]
        return [None] * len(modules)


timm, = package("timm", "")
smp, = package("segmentation_models_pytorch", "")
mtcnn, faces = package("facenet_pytorch", "models.mtcnn", "models.inception_resnet_v1")
crnn, = package("legere", "model")
denoising, = package("topaz", "denoising.models")

if timm:
    for _name in """convnextv2_atto cspresnet50 dla34 dpn48b eca_nfnet_l0 edgenext_xx_small efficientnet_lite0 ese_vovnet19b_dw fastvit_t8 gernet_s ghostnet_100
                    hardcorenas_a hrnet_w18_small inception_v4 lcnet_050 levit_128s mixer_s32_224 mixnet_s mobilenetv3_small_050 mobileone_s0 nf_resnet26 poolformer_s12
                    regnety_002 repvgg_a0 resnest14d rexnet_100 selecsls42 skresnet18 tinynet_e vit_tiny_patch16_224 xception41""".split():
        if timm.is_model(_name):
            MODELS["timm_" + _name] = (lambda n=_name: timm.create_model(n)), (3, 224, 224)
if smp:
    for _name in ("Unet", "UnetPlusPlus", "FPN", "PSPNet", "Linknet", "PAN", "DeepLabV3Plus", "MAnet"):
        MODELS["smp_" + _name] = (lambda n=_name: getattr(smp, n)("resnet18", encoder_weights=None, classes=3)), (3, 128, 128)
if mtcnn:
    for _name, _size in (("PNet", 24), ("RNet", 24), ("ONet", 48)):
        MODELS["facenet_" + _name] = (lambda n=_name: getattr(mtcnn, n)(pretrained=False)), (3, _size, _size)
    MODELS["facenet_resnet"] = (lambda: faces.InceptionResnetV1(num_classes=10, classify=True)), (3, 160, 160)
if crnn:
    MODELS["legere_crnn"] = crnn.CompactCRNN, (1, 32, 96)
if denoising:
    MODELS["topaz_udenoise"] = denoising.UDenoiseNet, (1, 64, 64)


def seeded(name):
    if name in kept:
        return kept[name]
    torch.manual_seed(1)
    model = MODELS[name][0]()
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.running_mean, 0, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return model.eval()


def __getattr__(name):
    if name not in MODELS:
        raise AttributeError(name)
    return lambda: seeded(name)
