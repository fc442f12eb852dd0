"""A .pt2 archive loaded without executing what it carries.

`torch.export.load` runs code of the file in several places: it unpickles the sample inputs, old
weights and custom objects, evaluates expressions of dynamic shapes as Python, and resolves names of
functions and of enumerations to whatever they name. So the archive is written anew before it is
loaded: raw tensors and a graph of tensor operations only; everything else is left out where the
model can do without, and refused where it cannot.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.contracts.errors import NnfarmError
from workers.frontends.pytorch.dynamic_shapes import fix_shapes

if TYPE_CHECKING:
    from torch.export import ExportedProgram

INSTALL_HINT = "pip install 'nnfarm[torch]'"

_TARGET = re.compile(r"torch\.ops\.(aten|quantized_decomposed)\.\w+\.\w+|_operator\.getitem")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MEMBER = re.compile(
    r"archive_format|archive_version|byteorder|\.data/(version|serialization_id)"
    r"|models/[\w.-]+\.json|data/(weights|constants)/[\w.-]+",
    re.ASCII,
)
_TREE_TYPES = {"builtins.tuple", "builtins.list", "builtins.dict", "builtins.set", None}
_FORBIDDEN_VALUES = ("as_graph", "as_custom_obj", "as_operator", "as_opaque", "as_complex")


def load_program(
    path: Path, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> ExportedProgram:
    """The exported program of an archive, with fixed shapes.

    Args:
        path: the archive.
        input_shapes: shapes by input name, of those the program leaves dimensions open.

    Raises:
        NnfarmError: `model.unreadable`, `model.unsafe`, `compile.bad_option`,
            `compile.unsupported_model`; also where PyTorch is not installed.
    """
    try:
        import torch.ao.quantization.fx._decomposed  # makes operations of quantized models known
        import torch.export
    except ImportError as error:
        raise NnfarmError(
            "compile.unsupported_model",
            f"PyTorch models need PyTorch on the worker: {INSTALL_HINT}",
        ) from error
    clean = _rewritten(path, input_shapes or {})
    try:
        return torch.export.load(clean)
    except Exception as error:
        raise NnfarmError(
            "model.unreadable", f"PyTorch cannot load the archive: {str(error)[:300]}"
        ) from error


def _rewritten(path: Path, shapes: Mapping[str, Sequence[int]]) -> io.BytesIO:
    """The archive with nothing in it that loading would execute."""
    clean = io.BytesIO()
    try:
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(clean, "w") as target:
            _copy(source, target, shapes)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise NnfarmError(
            "model.unreadable", f"The file is damaged or no .pt2 archive: {error!r}"
        ) from error
    clean.seek(0)
    return clean


def _copy(
    source: zipfile.ZipFile, target: zipfile.ZipFile, shapes: Mapping[str, Sequence[int]]
) -> None:
    models = 0
    for name in source.namelist():
        root, _, member = name.partition("/")
        if member.startswith(("data/sample_inputs/", "extra/")):
            continue  # a pickle, and notes: the model computes the same without
        if not _MEMBER.fullmatch(member):
            raise _unsafe(f"it holds {member!r}")
        content = source.read(name)
        if member.startswith("models/"):
            models += 1
            content = _clean_program(content, shapes)
            samples = f"{root}/data/sample_inputs/{member[len('models/') : -len('.json')]}.pt"
            target.writestr(samples, b"")
        elif member.endswith(".json"):
            _check_payloads(content)
        elif member.endswith(".pt"):
            raise _unsafe(f"{member!r} is in the old, pickled form; export the model anew")
        target.writestr(name, content)
    if models != 1:
        raise NnfarmError(
            "compile.unsupported_model", f"The archive holds {models} programs; one is taken."
        )


def _check_payloads(content: bytes) -> None:
    for name, payload in json.loads(content)["config"].items():
        is_raw = str(payload["path_name"]).startswith(("weight_", "tensor_"))
        if payload["use_pickle"] is not False or not is_raw:
            raise _unsafe(f"{name!r} is pickled")


def _clean_program(content: bytes, shapes: Mapping[str, Sequence[int]]) -> bytes:
    program = json.loads(content)
    module = program["graph_module"]
    fix_shapes(program, shapes)
    program["guards_code"] = []
    module["metadata"], module["treespec_namedtuple_fields"] = {}, {}
    calls = [entry for entry in module["module_call_graph"] if entry["fqn"] == ""]
    for entry in calls:
        for side in ("in_spec", "out_spec"):
            _check_tree(json.loads(entry["signature"][side])[1])
        for name in entry["signature"].get("forward_arg_names") or ():
            _check_name(name)
    module["module_call_graph"] = calls
    for node in module["graph"]["nodes"]:
        _clean_node(node)
    for names in _names(module["graph"]):
        _check_name(names)
    clean = json.dumps(program)
    # Loading evaluates such text as Python, wherever it stands.
    if '"as_expr"' in clean or '"expr_str"' in clean:
        raise _unsafe("it has expressions outside of shapes")
    return clean.encode()


def _clean_node(node: dict[str, Any]) -> None:
    # Traces of the source are names to resolve when they are loaded; the graph needs none.
    node["metadata"] = {}
    target = str(node["target"])
    if not _TARGET.fullmatch(target):
        raise NnfarmError(
            "compile.unsupported_operation",
            f"Node {node.get('name')!r} calls {target!r}; operations of ATen are taken.",
            node=str(node.get("name")),
            op_type=target,
        )
    for argument in node["inputs"]:
        if argument["name"]:
            _check_name(argument["name"])


def _names(graph: Any) -> Iterator[str]:
    """Names of values, anywhere in the graph: they become names of Python variables."""
    waiting = [graph]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            for key in _FORBIDDEN_VALUES:
                if item.get(key) is not None:
                    raise _unsafe(f"its graph has a value of kind {key!r}")
            if isinstance(item.get("name"), str):
                yield item["name"]
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _check_name(name: str) -> None:
    if name and not _NAME.fullmatch(name):
        raise _unsafe(f"it names a value {name[:60]!r}")


def _check_tree(tree: dict[str, Any]) -> None:
    """How arguments nest: plain containers only, keyed by strings."""
    context = json.loads(tree["context"]) if tree["context"] else None
    plain = context is None or (
        isinstance(context, list) and all(isinstance(key, str) for key in context)
    )
    if tree["type"] not in _TREE_TYPES or not plain:
        raise _unsafe(f"its arguments are of type {tree['type']!r}")
    for child in tree["children_spec"]:
        _check_tree(child)


def _unsafe(reason: str) -> NnfarmError:
    return NnfarmError(
        "model.unsafe", f"The archive would have to run code of its own to be loaded: {reason}."
    )
