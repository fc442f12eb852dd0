"""Checks an untrusted .npz file against a model, in bounded memory and without pickle."""

from __future__ import annotations

import math
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from service.contracts.errors import NnfarmError
from service.contracts.tensors import ModelSignature, TensorSpec

LABELS = "labels"
_CHUNK_ELEMENTS = 1 << 18
_MAX_MEMBERS = 1000


@dataclass(frozen=True)
class DatasetFacts:
    """What a good dataset turned out to hold."""

    sample_count: int
    has_labels: bool


@dataclass(frozen=True)
class _Array:
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


def check_dataset(path: Path, signature: ModelSignature, max_unpacked_bytes: int) -> DatasetFacts:
    """Read a dataset once and compare it with the model's inputs.

    Raises:
        NnfarmError: a ``dataset.*`` code.
    """
    if path.stat().st_size == 0:
        raise NnfarmError("dataset.empty", "The dataset file has 0 bytes.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, max_unpacked_bytes)
            arrays = {name: _read_array(archive, info, name) for name, info in members.items()}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _unreadable(f"The .npz archive is damaged or unusual: {error}.") from error
    return _compare(arrays, signature)


def _members(archive: zipfile.ZipFile, max_unpacked_bytes: int) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if not infos:
        raise NnfarmError("dataset.empty", "The dataset holds no arrays.")
    if len(infos) > _MAX_MEMBERS:
        raise _unreadable(f"The dataset has {len(infos)} members; {_MAX_MEMBERS} are possible.")
    # zipfile never gives more than the directory promises, so this bounds the real size as well.
    if sum(info.file_size for info in infos) > max_unpacked_bytes:
        raise NnfarmError(
            "dataset.too_large",
            f"The dataset unpacks to more than {max_unpacked_bytes} bytes.",
            limit_bytes=max_unpacked_bytes,
        )
    members = {info.filename.removesuffix(".npy"): info for info in infos}
    if len(members) != len(infos):
        raise _unreadable("The dataset has two arrays of one name.")
    return members


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> _Array:
    with archive.open(info) as file:
        array = _read_header(file, name)
        if array.dtype.hasobject:
            raise _unreadable(f"Array {name!r} holds Python objects, which are never loaded.")
        left = math.prod(array.shape)
        while left > 0:
            count = min(left, _CHUNK_ELEMENTS)
            data = file.read(count * array.dtype.itemsize)
            if len(data) != count * array.dtype.itemsize:
                raise _unreadable(f"Array {name!r} is shorter than its header says.")
            chunk = np.frombuffer(data, array.dtype)
            if array.dtype.kind in "fc" and not np.isfinite(chunk).all():
                raise NnfarmError(
                    "dataset.not_finite", f"Array {name!r} has NaN or infinite values.", array=name
                )
            left -= count
        if file.read(1):
            raise _unreadable(f"Array {name!r} is longer than its header says.")
    return array


def _read_header(file: IO[bytes], name: str) -> _Array:
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise _unreadable(f"Array {name!r} has .npy version {version}, which is not taken.")
    except ValueError as error:
        raise _unreadable(f"Array {name!r} is no .npy array: {error}.") from error
    return _Array(shape, dtype)


def _compare(arrays: dict[str, _Array], signature: ModelSignature) -> DatasetFacts:
    inputs = {spec.name: spec for spec in signature.inputs}
    labels = None if LABELS in inputs else arrays.pop(LABELS, None)
    if missing := sorted(inputs.keys() - arrays.keys()):
        raise _mismatch(f"The dataset lacks an array for input {missing[0]!r}.", missing=missing)
    if surplus := sorted(arrays.keys() - inputs.keys()):
        raise _mismatch(
            f"The model has no input {surplus[0]!r}; it has {', '.join(map(repr, inputs))}.",
            surplus=surplus,
        )
    for name, spec in inputs.items():
        _check_array(arrays[name], spec)
    counts = {name: array.shape[0] for name, array in arrays.items()}
    if labels is not None:
        if len(labels.shape) != 1 or labels.dtype.kind not in "iu":
            raise _mismatch(
                f"'labels' must be 1-D integers, not {labels.dtype} {list(labels.shape)}."
            )
        counts[LABELS] = labels.shape[0]
    if len(set(counts.values())) > 1:
        raise _mismatch("The arrays have different numbers of samples.", sample_counts=counts)
    sample_count = next(iter(counts.values()), 0)
    if sample_count == 0:
        raise NnfarmError("dataset.empty", "The dataset has no samples.")
    return DatasetFacts(sample_count, labels is not None)


def _check_array(array: _Array, spec: TensorSpec) -> None:
    if array.dtype.name != spec.dtype.value:
        raise _mismatch(
            f"Array {spec.name!r} is {array.dtype.name}; the model wants {spec.dtype}.",
            array=spec.name,
        )
    accepted = [spec.shape]
    if spec.shape and spec.shape[0] in (1, -1):
        accepted.append(spec.shape[1:])
    if not array.shape or not any(_fits(array.shape[1:], shape) for shape in accepted):
        wanted = " or ".join(str(["samples", *shape]) for shape in accepted)
        raise _mismatch(
            f"Array {spec.name!r} has shape {list(array.shape)}; the model wants {wanted}.",
            array=spec.name,
        )


def _fits(sample: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(sample) == len(shape) and all(
        size == wanted or (wanted == -1 and size > 0)
        for size, wanted in zip(sample, shape, strict=True)
    )


def _unreadable(detail: str) -> NnfarmError:
    return NnfarmError("dataset.unreadable", detail)


def _mismatch(detail: str, **details: object) -> NnfarmError:
    return NnfarmError("dataset.mismatch", detail, **details)
