"""PAD with zeros, PAD_V2 with any other value, MIRROR_PAD with the tensor's own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site

MIRROR_MODES = {"reflect": 0, "symmetric": 1}
"""MIRROR_PAD's mode: whether the border's own values are left out or repeated."""


class Pad(Operation):
    """relax.nn.pad; mirrors came with level 7."""

    name = "PAD"
    quantized = QuantizedForm(is_as_input=True)

    def patterns(self) -> Iterator[Pattern]:
        data = wildcard()
        root = is_op("relax.nn.pad")(data)
        yield Pattern(root, {"data": data, "pad": root})

    def check(self, site: Site) -> Rejection | None:
        attrs = site["pad"].attrs
        if attrs.pad_mode in MIRROR_MODES:
            return check_tensors(site, "MIRROR_PAD", [site["data"]])
        if attrs.pad_mode != "constant":
            return unsupported("pad_mode", f"No NNAPI operation pads by {attrs.pad_mode}.")
        name = "PAD_V2" if float(attrs.pad_value) else self.name
        return check_tensors(site, name, [site["data"]])

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        attrs = site["pad"].attrs
        widths = np.array([int(w) for w in attrs.pad_width], np.int32).reshape(-1, 2)
        source, output = builder.operand(site["data"]), builder.output(site.output)
        paddings, value = builder.constant(widths), float(attrs.pad_value)
        if attrs.pad_mode in MIRROR_MODES:
            mode = builder.int32(MIRROR_MODES[attrs.pad_mode])
            builder.add("MIRROR_PAD", output, input=source, paddings=paddings, mode=mode)
        elif value:
            fill = self._fill(site, builder, source)
            builder.add("PAD_V2", output, input=source, paddings=paddings, value=fill)
        else:
            builder.add("PAD", output, input=source, paddings=paddings)

    @staticmethod
    def _fill(site: Site, builder: ModelBuilder, source: int) -> int:
        value = float(site["pad"].attrs.pad_value)
        numbers = site.quantization(site.output) if site.takes_integers else None
        if numbers is None:
            return builder.real(value, source)
        return builder.int32(int(numbers.quantize(np.array(value))))


OPERATIONS = (Pad(),)
