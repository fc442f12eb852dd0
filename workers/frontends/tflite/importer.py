"""A TFLite file becomes a graph: one walk over its operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import tvm
from tvm import relax

from service.contracts.errors import NnfarmError
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from workers.frontends.imported import ImportedModel
from workers.frontends.tflite import (
    constants,
    convolution,
    elementwise,
    movement,
    recurrent,
    reduction,
    slicing,
)
from workers.frontends.tflite.emitter import Converter, Emitter
from workers.frontends.tflite.model import Operator, Tensor, TFLiteModel, read_model
from workers.graph.graph import Graph, OriginalNode

CONVERTERS: Mapping[str, Converter] = {
    **convolution.CONVERTERS,
    **elementwise.CONVERTERS,
    **movement.CONVERTERS,
    **recurrent.CONVERTERS,
    **reduction.CONVERTERS,
    **slicing.CONVERTERS,
}
"""All operators that are taken, by TFLite's name."""

_CONTROL_FLOW = ("CALL", "CALL_ONCE", "IF", "WHILE")


def import_tflite(
    path: Path, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> ImportedModel:
    """Read a TFLite file into a graph in NHWC, quantized operators in QDQ form.

    Args:
        path: the model.
        input_shapes: shapes by input name; a TFLite file fixes its shapes, so only those fit.

    Raises:
        NnfarmError: `model.unreadable`, `compile.unsupported_operation`,
            `compile.unsupported_model`, `compile.bad_option`.
    """
    model = read_model(path)
    signature = signature_of(model)
    _check_shapes(signature, input_shapes or {})
    return ImportedModel(_Importer(model).run(), signature)


def signature_of(model: TFLiteModel) -> ModelSignature:
    """Inputs and outputs under the file's own names, in its order."""
    return ModelSignature(
        inputs=tuple(_spec(model.tensors[i]) for i in model.inputs),
        outputs=tuple(_spec(model.tensors[i]) for i in model.outputs),
    )


def _spec(tensor: Tensor) -> TensorSpec:
    return TensorSpec(name=tensor.name, dtype=DType(tensor.dtype), shape=tensor.shape)


def _check_shapes(signature: ModelSignature, wanted: Mapping[str, Sequence[int]]) -> None:
    own = {spec.name: spec.shape for spec in signature.inputs}
    for name, shape in wanted.items():
        if name not in own:
            raise NnfarmError(
                "compile.bad_option",
                f"The model has no input {name!r}; it has {', '.join(sorted(own))}.",
                input=name,
            )
        if tuple(shape) != own[name]:
            raise NnfarmError(
                "compile.bad_option",
                f"Input {name!r} has shape {list(own[name])} in the TFLite file, which fixes the "
                f"shapes of all that follows; {list(shape)} needs a file converted for it.",
                input=name,
            )


class _Importer:
    def __init__(self, model: TFLiteModel) -> None:
        self._model = model
        self._builder = relax.BlockBuilder()
        self._values: dict[int, relax.Expr] = {}
        self._origins: dict[relax.Var, frozenset[int]] = {}

    def run(self) -> Graph:
        tensors = self._model.tensors
        params = [self._parameter(i) for i in self._model.inputs]
        self._values.update(zip(self._model.inputs, params, strict=True))
        with self._builder.function("main", params):
            with self._builder.dataflow():
                for index, operator in enumerate(self._model.operators):
                    self._convert(index, operator)
                outputs = [self._output(i) for i in self._model.outputs]
                body = outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)
                result = self._builder.emit_output(body)
            self._builder.emit_func_output(result)
        module = self._builder.get()
        nodes = tuple(
            OriginalNode(i, tensors[op.outputs[0]].name if op.outputs else op.name, op.name)
            for i, op in enumerate(self._model.operators)
        )
        return Graph(module["main"], self._origins, nodes, module)

    def _parameter(self, index: int) -> relax.Var:
        tensor = self._model.tensors[index]
        return relax.Var(tensor.name, relax.TensorType(tensor.shape, tensor.dtype))

    def _output(self, index: int) -> relax.Expr:
        tensor = self._model.tensors[index]
        if tensor.value is not None:
            return relax.const(tensor.value, tensor.dtype)
        return self._values[index]

    def _convert(self, index: int, operator: Operator) -> None:
        converter = CONVERTERS.get(operator.name)

        def emit(expr: relax.Expr) -> relax.Expr:
            if isinstance(expr, relax.Var | tvm.ir.GenericConst):
                return expr
            var = self._builder.emit(expr)
            self._origins[var] = frozenset({index})
            return var

        op = Emitter(self._model, operator, self._values, emit)
        try:
            if constants.fold(op):
                return
            if operator.name in _CONTROL_FLOW:
                raise op.unsupported("is control flow; recurrent layers can be converted unrolled")
            if converter is None:
                raise op.unsupported("is not among the TFLite operators that are taken")
            converter(op)
        except NnfarmError:
            raise
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise NnfarmError(
                "compile.unsupported_model",
                f"The importer cannot take {operator.name} {op.output().name!r}: "
                f"{lines[-1][:300] if lines else repr(error)}",
                node=op.output().name,
                op_type=operator.name,
            ) from error
