"""Calibration: the float model runs on every sample, and the range of each tensor is noted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import (
    CalibrationDataReader,
    TensorsData,
    create_calibrator,
)
from onnxruntime.quantization import CalibrationMethod as Method

from service.contracts.errors import NnfarmError
from service.contracts.quantization import CalibrationMethod, QuantizeOptions
from workers.frontends.onnx_lifting import first_line
from workers.quantization.float_model import FloatModel

Array = NDArray[Any]
Inputs = Mapping[str, Array]
"""Arrays by the input's name, samples first."""

METHODS: Mapping[CalibrationMethod, Method] = {
    CalibrationMethod.MINMAX: Method.MinMax,
    CalibrationMethod.ENTROPY: Method.Entropy,
    CalibrationMethod.PERCENTILE: Method.Percentile,
}

_KEPT_BYTES = 1 << 30
_ENTROPY_BINS = 1024  # the tool's own 128 leave the search nothing but the whole range


def calibrate(
    model: FloatModel,
    inputs: Inputs,
    options: QuantizeOptions,
    folder: Path,
    on_sample: Callable[[int], None],
) -> TensorsData:
    """The range of every tensor on the samples, by the method asked for.

    Args:
        model: the prepared float model.
        inputs: the samples.
        options: which method.
        folder: for scratch files.
        on_sample: called with the number of samples seen so far.

    Raises:
        NnfarmError: `quantize.unsupported_model`.
    """
    extra = {"symmetric": False, "percentile": options.percentile}
    if options.method is CalibrationMethod.ENTROPY:
        extra["num_bins"] = _ENTROPY_BINS
    try:
        calibrator = create_calibrator(
            model.path,
            augmented_model_path=str(folder / "augmented.onnx"),
            calibrate_method=METHODS[options.method],
            extra_options=extra,
        )
        samples = _Samples(inputs, on_sample)
        # The calibrator keeps every tensor of what it is given at a time.
        for count in _portions(model.graph, samples.count):
            samples.allow(count)
            calibrator.collect_data(samples)
        return calibrator.compute_data()
    except MemoryError:
        raise
    except Exception as error:
        raise NnfarmError(
            "quantize.unsupported_model",
            f"ONNX Runtime cannot calibrate the model: {first_line(error)}",
        ) from error


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    """Gives samples one by one, as many as are allowed."""

    def __init__(self, inputs: Inputs, on_sample: Callable[[int], None]) -> None:
        self.count = len(next(iter(inputs.values())))
        self._inputs = inputs
        self._on_sample = on_sample
        self._next, self._end = 0, 0

    def allow(self, count: int) -> None:
        """Let so many more be given."""
        self._end += count

    def get_next(self) -> dict[str, Array] | None:
        """The next sample, or None for the time being."""
        if self._next == self._end:
            return None
        index, self._next = self._next, self._next + 1
        self._on_sample(self._next)
        return {name: array[index] for name, array in self._inputs.items()}


def _portions(graph: onnx.GraphProto, sample_count: int) -> Iterator[int]:
    per_sample = sum(map(_size_bytes, (*graph.value_info, *graph.output)))
    largest = max(1, _KEPT_BYTES // max(per_sample, 1))
    for start in range(0, sample_count, largest):
        yield min(largest, sample_count - start)


def _size_bytes(value: onnx.ValueInfoProto) -> int:
    """Bytes of a float tensor; an open dimension counts as 1."""
    tensor = value.type.tensor_type
    if tensor.elem_type != onnx.TensorProto.FLOAT:
        return 0
    sizes = (dim.dim_value or 1 for dim in tensor.shape.dim)
    return math.prod(sizes) * np.dtype(np.float32).itemsize
