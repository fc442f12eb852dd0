"""A PyTorch exported program becomes a graph, through TVM's translator with node names kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.contracts.errors import NnfarmError
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from workers.frontends.imported import ImportedModel
from workers.frontends.pytorch.archive import load_program
from workers.graph.graph import Graph, OriginalNode

if TYPE_CHECKING:
    import torch
    from torch.export import ExportedProgram


def import_pytorch(
    path: Path, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> ImportedModel:
    """Read a .pt2 archive into a graph.

    Args:
        path: the archive.
        input_shapes: shapes of inputs whose program leaves dimensions open.

    Raises:
        NnfarmError: `model.unreadable`, `model.unsafe`, `compile.unsupported_operation`,
            `compile.unsupported_model`, `compile.bad_option`.
    """
    program = load_program(path, input_shapes)
    signature = signature_of(program)
    from workers.frontends.pytorch.translator import Translator  # loads PyTorch

    nodes = tuple(
        OriginalNode(i, node.name, _operation(node))
        for i, node in enumerate(n for n in program.graph.nodes if n.op == "call_function")
    )
    index_of = {node.name: node.index for node in nodes}
    try:
        function, module, names = Translator().translate(program)
    except NnfarmError:
        raise
    except Exception as error:
        raise _explained(error) from error
    origins = {var: frozenset({index_of[name]}) for var, name in names.items() if name in index_of}
    return ImportedModel(Graph(function, origins, nodes, module), signature)


def _operation(node: Any) -> str:
    """`conv2d` of `aten.conv2d.default`."""
    return str(node.target.__name__).partition(".")[0]


def _explained(error: Exception) -> NnfarmError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1][:300] if lines else repr(error)
    if "nsupported function types" in text:
        return NnfarmError("compile.unsupported_operation", text)
    return NnfarmError("compile.unsupported_model", f"The importer cannot take the program: {text}")


def signature_of(program: ExportedProgram) -> ModelSignature:
    """The program's own inputs and outputs, under the names of its graph."""
    values = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
    signature = program.graph_signature
    return ModelSignature(
        inputs=tuple(_spec(name, values) for name in signature.user_inputs),
        outputs=tuple(_spec(name, values) for name in signature.user_outputs),
    )


def _spec(name: object, values: Mapping[str, torch.Tensor]) -> TensorSpec:
    value = values.get(name) if isinstance(name, str) else None
    if value is None:
        raise NnfarmError(
            "compile.unsupported_model",
            f"{name!r} cannot cross the model's border: inputs and outputs are tensors.",
        )
    element = str(value.dtype).removeprefix("torch.")
    try:
        dtype = DType(element)
    except ValueError as error:
        raise NnfarmError(
            "compile.unsupported_model",
            f"{name!r} is of {element}, which cannot cross the model's border; float32 and float16 "
            "can.",
        ) from error
    return TensorSpec(name=str(name), dtype=dtype, shape=tuple(int(d) for d in value.shape))
