"""What a .pt2 archive must keep to be worth a worker's time; imported only by the inspection.

Read as the zip of JSON and raw tensors that it is: PyTorch itself is not needed here, and nothing
is unpickled.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from service.contracts.errors import NnfarmError
from service.contracts.models_archive import bad_archive
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from service.resources.models.dimensions import check_shape

_MAX_GRAPH_BYTES = 1 << 28

# torch._export.serde.schema.ScalarType
_DTYPES: dict[int, DType] = {
    1: DType.UINT8,
    2: DType.INT8,
    3: DType.INT16,
    4: DType.INT32,
    5: DType.INT64,
    6: DType.FLOAT16,
    7: DType.FLOAT32,
    8: DType.FLOAT64,
    12: DType.BOOL,
}


def inspect_pytorch(path: Path) -> ModelSignature:
    """Check an archive and give its program's signature.

    Raises:
        NnfarmError: a ``model.*`` code.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _check_payloads(archive)
            return _signature(_program(archive))
    except (zipfile.BadZipFile, KeyError, IndexError, ValueError, TypeError) as error:
        raise NnfarmError(
            "model.unreadable", f"The file is damaged or no exported PyTorch program: {error!r}"
        ) from error


def _program(archive: zipfile.ZipFile) -> dict[str, Any]:
    programs = [
        info
        for info in archive.infolist()
        if "/models/" in info.filename and info.filename.endswith(".json")
    ]
    if not programs and any(name.endswith("data.pkl") for name in archive.namelist()):
        raise NnfarmError(
            "model.unsafe",
            "The file is a pickled PyTorch model; upload what torch.export.save writes (.pt2).",
        )
    if not programs and any(name.endswith(".onnx") for name in archive.namelist()):
        raise bad_archive("the .onnx file has to be its first entry, in no folder")
    if len(programs) != 1:
        raise NnfarmError(
            "model.invalid", f"The archive holds {len(programs)} exported programs, not one."
        )
    return _json(archive, programs[0])


def _json(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any]:
    if info.file_size > _MAX_GRAPH_BYTES:
        raise NnfarmError("model.invalid", f"{info.filename!r} has {info.file_size} bytes.")
    content: dict[str, Any] = json.loads(archive.read(info))
    return content


def _check_payloads(archive: zipfile.ZipFile) -> None:
    for info in archive.infolist():
        if info.filename.endswith("_config.json"):
            for name, payload in _json(archive, info)["config"].items():
                if payload["use_pickle"] is not False:
                    raise NnfarmError(
                        "model.unsafe", f"Tensor {name!r} is pickled, which could run code."
                    )


def _signature(program: dict[str, Any]) -> ModelSignature:
    module = program["graph_module"]
    values = module["graph"]["tensor_values"]
    signature = module["signature"]
    inputs = [s["user_input"]["arg"] for s in signature["input_specs"] if "user_input" in s]
    outputs = [s["user_output"]["arg"] for s in signature["output_specs"] if "user_output" in s]
    if not outputs:
        raise NnfarmError("model.invalid", "The model has no outputs.")
    return ModelSignature(
        inputs=tuple(_spec(argument, values, "Input") for argument in inputs),
        outputs=tuple(_spec(argument, values, "Output") for argument in outputs),
    )


def _spec(argument: dict[str, Any], values: dict[str, Any], role: str) -> TensorSpec:
    if "as_tensor" not in argument:
        raise NnfarmError("model.invalid", f"{role} {argument!r:.80} is not a tensor.")
    name = argument["as_tensor"]["name"]
    meta = values[name]
    dtype = _DTYPES.get(meta["dtype"])
    if dtype is None:
        raise NnfarmError(
            "model.invalid",
            f"{role} {name!r} has element type {meta['dtype']}, which is not taken.",
        )
    # -1 where the program leaves a dimension open, as of ONNX models.
    shape = tuple(int(size.get("as_int", -1)) for size in meta["sizes"])
    check_shape(name, [size for size in shape if size >= 0])
    return TensorSpec(name=name, dtype=dtype, shape=shape)
