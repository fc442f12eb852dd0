"""AVERAGE_POOL_2D and MAX_POOL_2D, from pools and from reductions over a whole image."""

from __future__ import annotations

from collections.abc import Iterator

from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.model import Activation
from workers.backends.nnapi.operation import (
    Operation,
    Pattern,
    QuantizedForm,
    Site,
    with_activations,
)
from workers.backends.nnapi.windows import Window, window_of


class Pool(Operation):
    """NNAPI leaves padding out of averages: count_include_pad has no equal with padding."""

    quantized = QuantizedForm(is_as_input=True)

    def __init__(self, name: str, relax_op: str) -> None:
        self.name = name
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op(self._relax_op)(data)
        yield from with_activations(root, {"data": data, "pool": root})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        attrs, window = site["pool"].attrs, self._window(site)
        if attrs.layout != "NHWC":
            return unsupported("layout", f"{self.name} is emitted for NHWC data only.")
        if window.is_dilated:
            return unsupported("dilation", f"{self.name} has no dilation.")
        counts_padding = self.name == "AVERAGE_POOL_2D" and attrs.count_include_pad
        if counts_padding and window.is_padded:
            return unsupported("padding", "AVERAGE_POOL_2D leaves padding out of the average.")
        if not self._covers_image(site, window):
            return unsupported("padding", f"A window of {self.name} would hold padding only.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        window = self._window(site)
        builder.add(
            self.name,
            builder.output(site.output),
            input=builder.operand(site["data"]),
            filter_width=builder.int32(window.kernel_width),
            filter_height=builder.int32(window.kernel_height),
            activation=builder.int32(site.activation or Activation.NONE),
            **{k: builder.int32(v) for k, v in (window.pads() | window.strides()).items()},
        )

    @staticmethod
    def _window(site: Site) -> Window:
        call = site["pool"]
        kernel = (int(call.attrs.pool_size[0]), int(call.attrs.pool_size[1]))
        _, height, width, _ = site.shape("data")
        _, out_height, out_width, _ = site.output_shape
        return window_of(call, kernel).grown_to((height, width), (out_height, out_width))

    @staticmethod
    def _covers_image(site: Site, window: Window) -> bool:
        """The last window must reach a pixel of the image."""
        _, height, width, _ = site.shape("data")
        _, out_height, out_width, _ = site.output_shape
        last_row = (out_height - 1) * window.stride_height - window.pad_top
        last_column = (out_width - 1) * window.stride_width - window.pad_left
        return last_row < height and last_column < width


class GlobalPool(Operation):
    """A mean or maximum over height and width: a pool of the image's own size, at any level."""

    quantized = QuantizedForm(is_as_input=True)

    def __init__(self, name: str, relax_op: str) -> None:
        self.name = name
        self._relax_op = relax_op

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op(self._relax_op)(data)
        yield Pattern(root, {"data": data, "reduce": root})

    def fits(self, site: Site) -> bool:
        axes = site["reduce"].attrs.axis
        if site["data"].ty.ndim != 4 or axes is None:
            return False
        return {int(a) % 4 for a in axes} == {1, 2}

    def check(self, site: Site) -> Rejection | None:
        return check_tensors(site, self.name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        batch, height, width, channels = site.shape("data")
        output = builder.output(site.output)
        pooled_shape = (batch, 1, 1, channels)
        keeps = site.output_shape == pooled_shape
        pooled = output if keeps else builder.like(output, pooled_shape)
        zero, one = builder.int32(0), builder.int32(1)
        builder.add(
            self.name,
            pooled,
            input=builder.operand(site["data"]),
            pad_left=zero,
            pad_right=zero,
            pad_top=zero,
            pad_bottom=zero,
            stride_width=one,
            stride_height=one,
            filter_width=builder.int32(width),
            filter_height=builder.int32(height),
            activation=builder.int32(Activation.NONE),
        )
        if not keeps:
            builder.reshape(pooled, site.output_shape, output)


OPERATIONS = (
    Pool("AVERAGE_POOL_2D", "relax.nn.avg_pool2d"),
    Pool("MAX_POOL_2D", "relax.nn.max_pool2d"),
    GlobalPool("AVERAGE_POOL_2D", "relax.mean"),
    GlobalPool("MAX_POOL_2D", "relax.max"),
)
