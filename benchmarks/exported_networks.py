"""Networks as their users have them: PyTorch modules exported to ONNX.

torchvision's networks keep their initial weights and the sentence encoder has its trained ones.
Needs PyTorch, and the packages of requirements-bench.txt on the path (`make bench-coverage`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks import small_networks as small
from benchmarks.sentence_encoder import load_sentence_encoder

_KERNELS = """
nms qnms roi_align _roi_align_backward roi_pool _roi_pool_backward ps_roi_align
_ps_roi_align_backward ps_roi_pool _ps_roi_pool_backward deform_conv2d _deform_conv2d_backward
"""
_NAMES = torch.library.Library("torchvision", "DEF")  # what it defines lives as long as it does


@cache
def _torchvision() -> Any:
    """The package without its kernels, which are built for another PyTorch.

    No network here calls one, but their names must be known when it is imported.
    """
    for name in _KERNELS.split():
        _NAMES.define(f"{name}(Tensor x) -> Tensor")
    return importlib.import_module("torchvision")


def _classifier(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(_torchvision().models, name)(weights=None, **options)


def _segmenter(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        options = {"weights": None, "weights_backbone": None, "num_classes": 21}
        return small.FirstOutput(getattr(_torchvision().models.segmentation, name)(**options))

    return make


def _vit_tiny() -> nn.Module:
    transformer = _torchvision().models.VisionTransformer
    module: nn.Module = transformer(
        image_size=224, patch_size=16, num_layers=12, num_heads=3, hidden_dim=192, mlp_dim=768
    )
    return module


def _image(channels: int = 3, size: int = 224) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(1, channels, size, size),)


def _tokens(count: int = 128) -> tuple[torch.Tensor, ...]:
    return torch.zeros(1, count, dtype=torch.int64), torch.ones(1, count, dtype=torch.int64)


Network = tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]

NETWORKS: Mapping[str, Network] = {
    "mobilenet_v1": (small.MobileNetV1, _image()),
    "mobilenet_v2": (_classifier("mobilenet_v2"), _image()),
    "mobilenet_v3_small": (_classifier("mobilenet_v3_small"), _image()),
    "mobilenet_v3_large": (_classifier("mobilenet_v3_large"), _image()),
    "resnet18": (_classifier("resnet18"), _image()),
    "resnet50": (_classifier("resnet50"), _image()),
    "efficientnet_b0": (_classifier("efficientnet_b0"), _image()),
    "squeezenet1_1": (_classifier("squeezenet1_1"), _image()),
    "shufflenet_v2": (_classifier("shufflenet_v2_x1_0"), _image()),
    "densenet121": (_classifier("densenet121"), _image()),
    "regnet_y_400mf": (_classifier("regnet_y_400mf"), _image()),
    "convnext_tiny": (_classifier("convnext_tiny"), _image()),
    "vit_tiny": (_vit_tiny, _image()),
    "googlenet": (_classifier("googlenet", aux_logits=False, init_weights=False), _image()),
    "lraspp": (_segmenter("lraspp_mobilenet_v3_large"), _image()),
    "deeplab_v3": (_segmenter("deeplabv3_mobilenet_v3_large"), _image()),
    "unet": (small.UNet, _image(size=128)),
    "espcn": (small.Espcn, _image(1, 64)),
    "yolo_head": (small.YoloHead, _image(size=64)),
    "sentence_encoder": (load_sentence_encoder, _tokens()),
    "lstm_tagger": (small.LstmTagger, (torch.zeros(1, 24, dtype=torch.int64),)),
}
"""By name: how to make the module, and what it is traced with."""


def export(name: str, path: Path) -> None:
    """Write a network as ONNX, as one file.

    Raises:
        KeyError: there is no such network.
    """
    make, inputs = NETWORKS[name]
    torch.manual_seed(0)
    # The fused attention of inference has no ONNX form.
    torch.backends.mha.set_fastpath_enabled(False)
    partial = path.with_suffix(".part")
    torch.onnx.export(make().eval(), inputs, str(partial), opset_version=17, dynamo=False)
    partial.rename(path)
