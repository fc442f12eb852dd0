"""Reference: the original model's answers, by its own runtime, on the evaluation inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contracts.errors import NnfarmError
from service.contracts.jobs import EvaluationSet, ModelFormat
from service.contracts.tensors import ModelSignature, TensorSpec
from workers.pipeline.blobs import BlobFolder
from workers.pipeline.stages.runtimes import run_original

Array = NDArray[Any]

SYNTHETIC_SAMPLES = 4
LABELS_NAME = "labels"
_SEED = 20240501


@dataclass(frozen=True)
class Samples:
    """Inputs stacked by sample, and their labels if there are any."""

    inputs: Mapping[str, Array]
    labels: Array | None
    synthetic: bool

    @property
    def count(self) -> int:
        """How many samples."""
        return len(next(iter(self.inputs.values())))


def samples_for(signature: ModelSignature, dataset: Path | None) -> Samples:
    """Samples from a dataset, or a few drawn at random where there is none.

    Raises:
        NnfarmError: `dataset.unreadable`, `dataset.mismatch`.
    """
    if dataset is None:
        generator = np.random.default_rng(_SEED)
        drawn = {spec.name: _draw(spec, generator) for spec in signature.inputs}
        return Samples(drawn, None, synthetic=True)
    try:
        with np.load(dataset, allow_pickle=False) as arrays:
            stored = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError) as error:
        raise NnfarmError("dataset.unreadable", f"The dataset cannot be read: {error}") from error
    labels = stored.pop(LABELS_NAME, None)
    missing = [spec.name for spec in signature.inputs if spec.name not in stored]
    if missing:
        raise NnfarmError("dataset.mismatch", f"The dataset has no array {missing[0]!r}.")
    inputs = {spec.name: _with_batch(stored[spec.name], spec) for spec in signature.inputs}
    return Samples(inputs, labels, synthetic=False)


def _draw(spec: TensorSpec, generator: np.random.Generator) -> Array:
    shape = (SYNTHETIC_SAMPLES, *(1 if dim < 0 else dim for dim in spec.shape))
    if spec.dtype.value.startswith("float"):
        return generator.standard_normal(shape).astype(spec.dtype.value)
    if spec.dtype.value in ("int8", "uint8"):  # quantized numbers: their whole range
        bounds = np.iinfo(spec.dtype.value)
        return generator.integers(bounds.min, bounds.max, shape, spec.dtype.value, endpoint=True)
    # Other integers are often indexes: 0 and 1 are inside almost every table.
    return generator.integers(0, 2, shape).astype(spec.dtype.value)


def _with_batch(array: Array, spec: TensorSpec) -> Array:
    """[samples, *shape] for both accepted forms."""
    if array.ndim == len(spec.shape):
        array = array[:, None]
    per_sample = array.shape[1:]
    fits = len(per_sample) == len(spec.shape) and all(
        want in (-1, got) for want, got in zip(spec.shape, per_sample, strict=True)
    )
    if not fits:
        raise NnfarmError(
            "dataset.mismatch",
            f"Samples of {spec.name!r} have shape {list(per_sample)}; the model is compiled for "
            f"{list(spec.shape)} (an open batch is 1 unless an input shape says otherwise).",
            input=spec.name,
        )
    return np.ascontiguousarray(array.astype(spec.dtype.value, copy=False))


def evaluate(
    model: Path,
    model_format: ModelFormat,
    signature: ModelSignature,
    samples: Samples,
    blobs: BlobFolder,
) -> EvaluationSet:
    """Run the original model on every sample and keep inputs and answers.

    Raises:
        NnfarmError: `compile.reference_failed`.
    """
    outputs = run_original(model, model_format, signature, samples.inputs)
    labels = None if samples.labels is None else tuple(int(v) for v in samples.labels.reshape(-1))
    first = outputs[signature.outputs[0].name].reshape(samples.count, -1)
    top1 = None
    if labels is not None:
        top1 = float(np.mean(first.argmax(axis=1) == np.array(labels)))
    return EvaluationSet(
        sample_count=samples.count,
        inputs_sha256=blobs.add_tensors(samples.inputs),
        expected_sha256=blobs.add_tensors(outputs),
        labels=labels,
        original_top1=top1,
        synthetic=samples.synthetic,
    )
