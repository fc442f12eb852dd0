"""GATHER: relax.take with constant indices along one axis."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from tvm.relax.dpl import is_op, wildcard

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.builder import ModelBuilder
from workers.backends.nnapi.legality import check_tensors, unsupported
from workers.backends.nnapi.operation import Operation, Pattern, QuantizedForm, Site
from workers.graph.graph import dtype_of, static_shape


class Gather(Operation):
    """Constant int64 indices become int32, counted from the front; int32 ones may be computed."""

    name = "GATHER"
    computes = False
    quantized = QuantizedForm(is_as_input=True)

    def patterns(self) -> Iterator[Pattern]:
        data, indices = wildcard(), wildcard()
        root = is_op("relax.take")(data, indices)
        yield Pattern(root, {"data": data, "indices": indices, "take": root})

    def check(self, site: Site) -> Rejection | None:
        rejection = check_tensors(site, self.name, [site["data"]])
        if rejection is not None:
            return rejection
        if site["take"].attrs.axis is None:
            return unsupported("axes", "GATHER needs an axis.")
        indices = self._constant(site)
        if indices is None and dtype_of(site["indices"]) != "int32":
            return unsupported("dtype", "GATHER takes int32 indices, or constant ones.")
        if indices is None and not static_shape(site["indices"]):
            return unsupported("rank", "GATHER takes computed indices of rank 1 or more.")
        if indices is not None and not self._is_inside(site, indices):
            return unsupported("index", "GATHER has an index outside its axis.")
        return None

    def lower(self, site: Site, builder: ModelBuilder) -> None:
        shape, axis = site.shape("data"), self._axis(site)
        source, output = builder.operand(site["data"]), builder.output(site.output)
        constant = self._constant(site)
        if constant is None:
            indices, dims = builder.operand(site["indices"]), site.shape("indices")
        else:
            front = np.where(constant < 0, constant + shape[axis], constant).astype(np.int32)
            indices, dims = builder.constant(np.atleast_1d(front)), np.atleast_1d(front).shape
        gathered = (*shape[:axis], *dims, *shape[axis + 1 :])
        result = output if gathered == site.output_shape else builder.like(output, gathered)
        builder.add(self.name, result, input=source, axis=builder.int32(axis), indices=indices)
        if result != output:
            builder.reshape(result, site.output_shape, output)

    @staticmethod
    def _constant(site: Site) -> NDArray[np.int64] | None:
        indices = site.constant("indices")
        return None if indices is None else indices.astype(np.int64)

    @staticmethod
    def _axis(site: Site) -> int:
        return int(site["take"].attrs.axis) % len(site.shape("data"))

    def _is_inside(self, site: Site, indices: NDArray[np.int64]) -> bool:
        size = site.shape("data")[self._axis(site)]
        return bool(indices.size and (indices >= -size).all() and (indices < size).all())


OPERATIONS = (Gather(),)
