"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, needs_level, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site

FLAGS_LEVEL = 4
"""align_corners and half_pixel_centers came with Android 11."""

_FLAGS = {
    "asymmetric": (False, False),
    "align_corners": (True, False),
    "half_pixel": (False, True),
    "pytorch_half_pixel": (False, True),
}
"""Coordinate transformation -> (align_corners, half_pixel_centers)."""

_ROUNDINGS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda x: np.floor(x + 0.5),
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


class Resize(Operation):
    """The flags select one of NNAPI's coordinate rules; anything else is refused."""

    quantized = QuantizedForm(is_as_input=True)

    def __init__(self, name: str, method: str) -> None:
        self.name = name
        self._method = method

    def patterns(self) -> Iterator[Pattern]:
        data, size = wildcard(), wildcard()
        root = is_op("relax.image.resize2d")(data, size)
        yield Pattern(root, {"data": data, "resize": root})

    def fits(self, site: Site) -> bool:
        return bool(site["resize"].attrs.method == self._method)

    def check(self, site: Site) -> Rejection | None:
        attrs = site["resize"].attrs
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        mode = attrs.coordinate_transformation_mode
        if attrs.layout != "NHWC" or mode not in _FLAGS:
            return unsupported("resize_mode", f"{self.name} has no {mode} coordinates.")
        if any(_FLAGS[mode]):
            too_old = needs_level(f"{self.name} with {mode}", FLAGS_LEVEL, site.feature_level)
            if too_old is not None:
                return too_old
        if mode == "pytorch_half_pixel" and 1 in site.output_shape[1:3]:
            return unsupported("resize_mode", "pytorch_half_pixel to one pixel has no equal.")
        if self._method == "nearest_neighbor" and not self._same_pixels(site):
            return unsupported("resize_mode", f"{self.name} would pick other pixels.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        _, height, width, _ = site.output_shape
        flags = _FLAGS[site["resize"].attrs.coordinate_transformation_mode]
        roles = {"width": builder.int32(width), "height": builder.int32(height)}
        if any(flags) or self._method == "nearest_neighbor":
            roles["nchw"] = builder.bool(False)
        if any(flags):
            roles["align_corners"] = builder.bool(flags[0])
            roles["half_pixel_centers"] = builder.bool(flags[1])
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            level=FLAGS_LEVEL if any(flags) else 1,
            **roles,
        )

    @staticmethod
    def _same_pixels(site: Site) -> bool:
        """Whether the model's rounding picks the pixels NNAPI picks, on both axes."""
        attrs = site["resize"].attrs
        mode, rounding = attrs.coordinate_transformation_mode, attrs.rounding_method or "round"
        if rounding not in _ROUNDINGS:
            return False
        for axis in (1, 2):
            source, target = site.shape("data")[axis], site.output_shape[axis]
            ours = _ROUNDINGS[rounding](_coordinates(mode, source, target))
            if not np.array_equal(ours.clip(0, source - 1), _nnapi_pixels(mode, source, target)):
                return False
        return True


def _coordinates(mode: str, source: int, target: int) -> NDArray[np.float64]:
    """Source coordinate of each target pixel (ONNX Resize, coordinate_transformation_mode)."""
    x = np.arange(target, dtype=np.float64)
    if mode == "align_corners":
        return x * (source - 1) / max(target - 1, 1)
    scale = source / target
    return x * scale if mode == "asymmetric" else (x + 0.5) * scale - 0.5


def _nnapi_pixels(mode: str, source: int, target: int) -> NDArray[np.float64]:
    """Pixels RESIZE_NEAREST_NEIGHBOR reads (NeuralNetworks.h; as TensorFlow Lite)."""
    x = np.arange(target, dtype=np.float64)
    if mode == "align_corners":
        picked = np.floor(x * (source - 1) / max(target - 1, 1) + 0.5)
    elif mode == "asymmetric":
        picked = np.floor(x * source / target)
    else:
        picked = np.floor((x + 0.5) * source / target)
    clipped: NDArray[np.float64] = picked.clip(0, source - 1)
    return clipped


OPERATIONS = (
    Resize("RESIZE_BILINEAR", "linear"),
    Resize("RESIZE_NEAREST_NEIGHBOR", "nearest_neighbor"),
)
