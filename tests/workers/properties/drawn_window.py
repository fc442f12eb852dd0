"""Drawn operations on images: windows, resizing, normalization."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np

from tests.workers.properties.drawing import Drawing

_PADDINGS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")


def _window(d: Drawing, kernel: list[int], size: list[int], dilated: bool) -> dict[str, Any]:
    """Legal strides, paddings and dilations of a window on an image."""
    dilations = [d.draw(st.integers(1, 2)) for _ in kernel] if dilated else [1, 1]
    extent = [(k - 1) * r + 1 for k, r in zip(kernel, dilations, strict=True)]
    attributes: dict[str, Any] = {"strides": [d.draw(st.integers(1, 3)) for _ in kernel]}
    if dilated and dilations != [1, 1]:
        attributes["dilations"] = dilations
    padding = d.draw(st.sampled_from(_PADDINGS))
    if padding != "NOTSET":
        fits = all(e <= s for e, s in zip(extent, size, strict=True))
        attributes["auto_pad"] = padding if fits or padding != "VALID" else "SAME_UPPER"
        return attributes
    pads = [[d.draw(st.integers(0, k - 1)) for k in kernel] for _ in range(2)]
    for axis, needed in enumerate(extent):
        missing = needed - size[axis] - pads[0][axis] - pads[1][axis]
        pads[1][axis] += max(missing, 0)
    return attributes | {"pads": pads[0] + pads[1]}


def conv(d: Drawing) -> None:
    name, (_, channels, *size) = d.pick(4)
    group = d.draw(st.sampled_from([g for g in range(1, channels + 1) if channels % g == 0]))
    out = group * d.draw(st.integers(1, 3))
    kernel = [d.draw(st.integers(1, 3)) for _ in size]
    names = [name, d.weights(out, channels // group, *kernel)]
    if d.draw(st.booleans()):
        names.append(d.weights(out))
    d.keep(*d.node("Conv", names, group=group, **_window(d, kernel, size, dilated=True)))


def conv1d(d: Drawing) -> None:
    name, (_, channels, size) = d.pick(3)
    kernel = d.draw(st.integers(1, min(3, size)))
    names = [name, d.weights(d.draw(st.integers(1, 4)), channels, kernel)]
    pads = [d.draw(st.integers(0, 2)), d.draw(st.integers(0, 2))]
    d.keep(*d.node("Conv", names, pads=pads, strides=[d.draw(st.integers(1, 3))]))


def conv_transpose(d: Drawing) -> None:
    name, (_, channels, *size) = d.pick(4)
    kernel = [d.draw(st.integers(1, 3)) for _ in size]
    out = d.draw(st.integers(1, 3))
    names = [name, d.weights(channels, out, *kernel)]
    if d.draw(st.booleans()):
        names.append(d.weights(out))
    strides = [d.draw(st.integers(1, 3)) for _ in kernel]
    d.keep(*d.node("ConvTranspose", names, strides=strides))


def pool(d: Drawing) -> None:
    name, (_, _, *size) = d.pick(4)
    op = d.draw(st.sampled_from(("MaxPool", "AveragePool")))
    kernel = [d.draw(st.integers(1, 3)) for _ in size]
    attributes = _window(d, kernel, size, dilated=False)
    if "pads" in attributes:
        # ONNX wants padding smaller than the window, and a window no larger than what is padded.
        kernel = [min(k, n) for k, n in zip(kernel, size, strict=True)]
        pads = zip(attributes["pads"], kernel * 2, strict=True)
        attributes["pads"] = [min(p, k - 1) for p, k in pads]
        attributes["ceil_mode"] = d.draw(st.integers(0, 1))
    if op == "AveragePool":
        attributes["count_include_pad"] = d.draw(st.integers(0, 1))
    d.keep(*d.node(op, [name], kernel_shape=kernel, **attributes))


def global_pool(d: Drawing) -> None:
    name, _ = d.pick(4)
    op = d.draw(st.sampled_from(("GlobalAveragePool", "GlobalMaxPool")))
    d.keep(*d.node(op, [name]))


def batch_norm(d: Drawing) -> None:
    name, (_, channels, *_) = d.pick(4)
    variance = d.constant(np.linspace(0.5, 2, channels, dtype=np.float32))
    parameters = [d.weights(channels) for _ in range(3)]
    d.keep(*d.node("BatchNormalization", [name, *parameters, variance]))


def instance_norm(d: Drawing) -> None:
    name, (_, channels, height, width) = d.pick(4)
    if height * width < 4:
        return  # a variance of nearly nothing magnifies what is rounded
    parameters = [d.weights(channels) for _ in range(2)]
    d.keep(*d.node("InstanceNormalization", [name, *parameters]))


def local_response_norm(d: Drawing) -> None:
    name, _ = d.pick(4)
    d.keep(*d.node("LRN", [name], size=d.draw(st.sampled_from((1, 3, 5))), alpha=0.1, bias=1.5))


def resize(d: Drawing) -> None:
    name, (_, _, *size) = d.pick(4)
    mode = d.draw(st.sampled_from(("nearest", "linear")))
    frames = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel")
    attributes: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": d.draw(st.sampled_from(frames)),
    }
    if mode == "nearest":
        rounding = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        attributes["nearest_mode"] = d.draw(st.sampled_from(rounding))
    scales = [d.draw(st.sampled_from((0.5, 1.0, 2.0, 3.0))) for _ in size]
    if any(s * f < 1 for s, f in zip(size, scales, strict=True)):  # nothing would be left
        scales = [2.0, 2.0]
    constant = d.constant(np.array([1, 1, *scales], np.float32))
    d.keep(*d.node("Resize", [name, "", constant], **attributes))


def depth_space(d: Drawing) -> None:
    name, (_, channels, height, width) = d.pick(4)
    if channels % 4 == 0:
        mode = d.draw(st.sampled_from(("DCR", "CRD")))
        d.keep(*d.node("DepthToSpace", [name], blocksize=2, mode=mode))
    elif height % 2 == 0 and width % 2 == 0:
        d.keep(*d.node("SpaceToDepth", [name], blocksize=2))


WINDOW = (
    conv,
    conv1d,
    conv_transpose,
    pool,
    global_pool,
    batch_norm,
    instance_norm,
    local_response_norm,
    resize,
    depth_space,
)
