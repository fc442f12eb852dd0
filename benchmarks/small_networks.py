"""Networks no package has: as their papers draw them, or just the part that is hard to offload."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

MOBILENET_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *([(512, 1)] * 5),
                (1024, 2), (1024, 1))  # fmt: skip
"""Channels and stride of each separable convolution (Howard et al. 2017, table 1)."""


class FirstOutput(nn.Module):
    """The output "out" of a network that returns several by name."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`out` of the network."""
        out: torch.Tensor = self.network(x)["out"]
        return out


def _unit(inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU6())


class MobileNetV1(nn.Sequential):
    """MobileNet 1.0 at 224 x 224."""

    def __init__(self) -> None:
        layers, channels = [_unit(3, 32, 3, 2)], 32
        for outputs, stride in MOBILENET_V1:
            layers.append(_unit(channels, channels, 3, stride, channels))
            layers.append(_unit(channels, outputs, 1, 1))
            channels = outputs
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class UNet(nn.Module):
    """Two levels down and up, with transposed convolutions and skips."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.middle = _pair(3, 16), _pair(16, 32), _pair(32, 64)
        self.up2, self.join2 = nn.ConvTranspose2d(64, 32, 2, 2), _pair(64, 32)
        self.up1, self.join1 = nn.ConvTranspose2d(32, 16, 2, 2), _pair(32, 16)
        self.head = nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Two maps of the image's size."""
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        middle = self.middle(functional.max_pool2d(second, 2))
        second = self.join2(torch.cat([self.up2(middle), second], 1))
        first = self.join1(torch.cat([self.up1(second), first], 1))
        result: torch.Tensor = self.head(first)
        return result


def _pair(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(_unit(inputs, outputs, 3, 1), _unit(outputs, outputs, 3, 1))


class Espcn(nn.Module):
    """Super-resolution by sub-pixel convolution, factor 3 (Shi et al. 2016)."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 64, 5, padding=2)
        self.second = nn.Conv2d(64, 32, 3, padding=1)
        self.third = nn.Conv2d(32, 9, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """An image three times as large."""
        hidden = torch.tanh(self.second(torch.tanh(self.first(x))))
        return torch.pixel_shuffle(self.third(hidden), 3)


class YoloHead(nn.Module):
    """A detection head: two scales, anchors in a tensor of rank 5, boxes decoded."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.LeakyReLU(0.1)
        )
        self.deep = nn.Conv2d(32, 32, 3, 2, 1)
        self.head = nn.Conv2d(64, 27, 1)
        self.grid = nn.Parameter(torch.rand(1, 3, 16, 16, 2) * 16, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Boxes [1, 768, 9]: centre, size, objectness, classes."""
        fine = self.body(x)
        coarse = functional.interpolate(self.deep(fine), scale_factor=2.0, mode="nearest")
        raw = self.head(torch.cat([fine, coarse], 1)).view(1, 3, 9, 16, 16)
        boxes = raw.permute(0, 1, 3, 4, 2).sigmoid()
        centre = (boxes[..., :2] * 2 - 0.5 + self.grid) * 4
        size = (boxes[..., 2:4] * 2) ** 2 * 10
        return torch.cat([centre, size, boxes[..., 4:]], -1).view(1, -1, 9)


class LstmTagger(nn.Module):
    """Words to tags by a bidirectional LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 32)
        self.lstm = nn.LSTM(32, 48, batch_first=True, bidirectional=True)
        self.head = nn.Linear(96, 17)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """A score for each tag of each word."""
        hidden, _ = self.lstm(self.embedding(words))
        result: torch.Tensor = self.head(hidden)
        return result
