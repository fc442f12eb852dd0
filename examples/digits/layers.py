"""The few layers of the example network, forward and backward, in NumPy.

Tensors are NCHW float32. Each layer keeps what its own backward pass needs; `parameters` and
`gradients` are parallel lists, so that one optimiser serves all layers.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Tensor = NDArray[np.float32]


class Layer(Protocol):
    """One differentiable step of the network."""

    parameters: list[Tensor]
    gradients: list[Tensor]

    def forward(self, inputs: Tensor) -> Tensor:
        """The layer's output for a batch."""

    def backward(self, gradient: Tensor) -> Tensor:
        """The loss gradient at the input, given the one at the output; stores `gradients`."""


class Conv:
    """Stride-1 convolution that keeps the image size; odd square kernel, optional groups."""

    def __init__(
        self, rng: np.random.Generator, inputs: int, outputs: int, kernel: int, groups: int = 1
    ) -> None:
        fan_in = inputs // groups * kernel * kernel
        shape = (outputs, inputs // groups, kernel, kernel)
        weight = rng.normal(0.0, np.sqrt(2.0 / fan_in), shape).astype(np.float32)
        self.groups = groups
        self.pad = kernel // 2
        self.parameters = [weight, np.zeros(outputs, np.float32)]
        self.gradients = [np.zeros_like(p) for p in self.parameters]

    def _windows(self, images: Tensor) -> Tensor:
        """[N, groups, channels a group, H, W, kernel, kernel]."""
        kernel = self.parameters[0].shape[-1]
        pads = ((0, 0), (0, 0), (self.pad, self.pad), (self.pad, self.pad))
        windows = sliding_window_view(np.pad(images, pads), (kernel, kernel), axis=(2, 3))
        return windows.reshape(len(images), self.groups, -1, *windows.shape[2:])

    def _grouped_weight(self) -> Tensor:
        weight = self.parameters[0]
        return weight.reshape(self.groups, -1, *weight.shape[1:])

    def forward(self, inputs: Tensor) -> Tensor:
        self._seen = self._windows(inputs)
        result = np.einsum(
            "ngchwij,gocij->ngohw", self._seen, self._grouped_weight(), optimize=True
        )
        shape = (len(inputs), -1, *inputs.shape[2:])
        return result.reshape(shape) + self.parameters[1][:, None, None]

    def backward(self, gradient: Tensor) -> Tensor:
        grouped = gradient.reshape(len(gradient), self.groups, -1, *gradient.shape[2:])
        weight_gradient = np.einsum("ngohw,ngchwij->gocij", grouped, self._seen, optimize=True)
        self.gradients = [
            weight_gradient.reshape(self.parameters[0].shape),
            gradient.sum(axis=(0, 2, 3)),
        ]
        flipped = self._grouped_weight()[..., ::-1, ::-1]
        result = np.einsum("ngohwij,gocij->ngchw", self._windows(gradient), flipped, optimize=True)
        return result.reshape(len(gradient), -1, *gradient.shape[2:])


class Clip:
    """Values limited to [0, ceiling]; a ReLU where the ceiling is infinite."""

    def __init__(self, ceiling: float) -> None:
        self.ceiling = ceiling
        self.parameters: list[Tensor] = []
        self.gradients: list[Tensor] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self._open = (inputs > 0) & (inputs < self.ceiling)
        return np.clip(inputs, 0.0, self.ceiling)

    def backward(self, gradient: Tensor) -> Tensor:
        return gradient * self._open


class MaxPool:
    """2x2 maximum, stride 2."""

    def __init__(self) -> None:
        self.parameters: list[Tensor] = []
        self.gradients: list[Tensor] = []

    def forward(self, inputs: Tensor) -> Tensor:
        n, c, h, w = inputs.shape
        tiles = inputs.reshape(n, c, h // 2, 2, w // 2, 2)
        result = tiles.max(axis=(3, 5))
        self._is_max = tiles == result[:, :, :, None, :, None]
        return result

    def backward(self, gradient: Tensor) -> Tensor:
        # Equal maxima share the gradient.
        shares = self._is_max / self._is_max.sum(axis=(3, 5), keepdims=True)
        n, c, h, w = gradient.shape
        return (shares * gradient[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w)


class GlobalAveragePool:
    """Mean over the image: [N, C, H, W] to [N, C]."""

    def __init__(self) -> None:
        self.parameters: list[Tensor] = []
        self.gradients: list[Tensor] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self._shape = inputs.shape
        return inputs.mean(axis=(2, 3))

    def backward(self, gradient: Tensor) -> Tensor:
        area = self._shape[2] * self._shape[3]
        return np.broadcast_to(gradient[:, :, None, None] / area, self._shape)


class Gemm:
    """Fully connected layer; weight is [outputs, inputs] as in ONNX with transB=1."""

    def __init__(self, rng: np.random.Generator, inputs: int, outputs: int) -> None:
        weight = rng.normal(0.0, np.sqrt(1.0 / inputs), (outputs, inputs)).astype(np.float32)
        self.parameters = [weight, np.zeros(outputs, np.float32)]
        self.gradients = [np.zeros_like(p) for p in self.parameters]

    def forward(self, inputs: Tensor) -> Tensor:
        self._seen = inputs
        return inputs @ self.parameters[0].T + self.parameters[1]

    def backward(self, gradient: Tensor) -> Tensor:
        self.gradients = [gradient.T @ self._seen, gradient.sum(axis=0)]
        return gradient @ self.parameters[0]


class Residual:
    """The input plus what `body` makes of it."""

    def __init__(self, body: list[Layer]) -> None:
        self.body = body

    @property
    def parameters(self) -> list[Tensor]:
        return [p for layer in self.body for p in layer.parameters]

    @property
    def gradients(self) -> list[Tensor]:
        return [g for layer in self.body for g in layer.gradients]

    def forward(self, inputs: Tensor) -> Tensor:
        result = inputs
        for layer in self.body:
            result = layer.forward(result)
        return inputs + result

    def backward(self, gradient: Tensor) -> Tensor:
        result = gradient
        for layer in reversed(self.body):
            result = layer.backward(result)
        return gradient + result
