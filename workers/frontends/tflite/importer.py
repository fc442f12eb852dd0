"""A TFLite file becomes a graph: one walk over its operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tvm
from tvm import relax, tirx

from service.contracts.errors import NnfarmError
from service.contracts.tensors import DType, ModelSignature, TensorSpec
from workers.frontends.imported import ImportedModel
from workers.frontends.tflite import (
    constants,
    control,
    convolution,
    detection,
    elementwise,
    gathering,
    movement,
    recurrent,
    reduction,
    slicing,
    spectra,
    variables,
)
from workers.frontends.tflite.emitter import Converter, Emitter
from workers.frontends.tflite.model import Tensor, TFLiteModel, read_model
from workers.frontends.tflite.resizing import resized
from workers.frontends.tflite.writer import Variables
from workers.graph.graph import Graph, OriginalNode

CONVERTERS: Mapping[str, Converter] = {
    **control.CONVERTERS,
    **convolution.CONVERTERS,
    **detection.CONVERTERS,
    **elementwise.CONVERTERS,
    **gathering.CONVERTERS,
    **movement.CONVERTERS,
    **recurrent.CONVERTERS,
    **reduction.CONVERTERS,
    **slicing.CONVERTERS,
    **spectra.CONVERTERS,
    **variables.CONVERTERS,
}
"""All operators that are taken, by TFLite's name."""


_MAX_DEPTH = 16
"""Of graphs inside of graphs."""


def import_tflite(
    path: Path, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> ImportedModel:
    """Read a TFLite file into a graph in NHWC, quantized operators in QDQ form.

    Args:
        path: the model.
        input_shapes: shapes by input name, where the file leaves dimensions open.

    Raises:
        NnfarmError: `model.unreadable`, `compile.unsupported_operation`,
            `compile.unsupported_model`, `compile.bad_option`.
    """
    model = resized(path, read_model(path), input_shapes or {})
    signature = signature_of(model)  # first: it refuses inputs and outputs that none can be
    return ImportedModel(_Importer(model).run(), signature)


def signature_of(model: TFLiteModel) -> ModelSignature:
    """Inputs and outputs under the file's own names, in its order."""
    return ModelSignature(
        inputs=tuple(_spec(model.tensors[i]) for i in model.inputs),
        outputs=tuple(_spec(model.tensors[i]) for i in model.outputs),
    )


def _spec(tensor: Tensor) -> TensorSpec:
    kind = {"complex64": "complex numbers", "resource": "variables"}.get(tensor.dtype)
    if kind is not None:
        raise NnfarmError(
            "compile.unsupported_model",
            f"Tensor {tensor.name!r} is an input or output of {kind}.",
            tensor=tensor.name,
        )
    return TensorSpec(name=tensor.name, dtype=DType(tensor.dtype), shape=tensor.shape)


class _Importer:
    """Writes the graph; a `Writer` of the operator of the first graph that is being converted."""

    def __init__(self, model: TFLiteModel) -> None:
        self._model = model
        self._builder = relax.BlockBuilder()
        self._origins: dict[relax.Var, frozenset[int]] = {}
        self._notes: dict[int, str] = {}
        self._constants: dict[tuple[int, tuple[int, ...] | None], relax.Expr] = {}
        self._current = 0
        self._depth = 0
        self.variables = Variables()

    def run(self) -> Graph:
        params = [self._parameter(i) for i in self._model.inputs]
        with self._builder.function("main", params):
            with self._builder.dataflow():
                inputs = [
                    self._from_wide(self._model.tensors[i], param)
                    for i, param in zip(self._model.inputs, params, strict=True)
                ]
                results = self._walk(self._model, inputs, is_first=True)
                outputs = [
                    self._to_wide(self._model.tensors[i], result)
                    for i, result in zip(self._model.outputs, results, strict=True)
                ]
                body = outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)
                result = self._builder.emit_output(body)
            self._builder.emit_func_output(result)
        module = self._builder.get()
        nodes = tuple(map(self._node, range(len(self._model.operators))))
        return Graph(module["main"], self._origins, nodes, module)

    def emit(self, expr: relax.Expr) -> relax.Expr:
        """See `Writer`."""
        if isinstance(expr, relax.Var | tvm.ir.GenericConst):
            return expr
        var = self._builder.emit(expr)
        self._origins[var] = frozenset({self._current})
        return var

    def define(self, function: tirx.PrimFunc, name: str) -> tvm.ir.GlobalVar:
        """See `Writer`."""
        return self._builder.add_func(function, name)

    def note(self, sentence: str) -> None:
        """See `Writer`."""
        self._notes[self._current] = sentence

    def inline(self, model: TFLiteModel, arguments: Sequence[relax.Expr]) -> list[relax.Expr]:
        """See `Writer`."""
        if self._depth == _MAX_DEPTH:
            raise ValueError("graphs of the file call each other without end")
        self._depth += 1
        results = self._walk(model, arguments)
        self._depth -= 1
        return results

    def constant(self, tensor: Tensor, axes: tuple[int, ...] | None) -> relax.Expr:
        """See `Writer`."""
        place, value = (id(tensor), axes), tensor.value
        if place not in self._constants:
            if value is None:
                raise ValueError(f"tensor {tensor.name!r} is no constant")
            ordered = value if axes is None else np.ascontiguousarray(value.transpose(axes))
            self._constants[place] = relax.const(ordered, tensor.dtype)
        return self._constants[place]

    def _parameter(self, index: int) -> relax.Var:
        tensor = self._model.tensors[index]
        return relax.Var(tensor.name, relax.TensorType(tensor.shape, tensor.dtype))

    def _from_wide(self, tensor: Tensor, value: relax.Expr) -> relax.Expr:
        """An input of 16 bits as the real numbers that the graph has in its place."""
        numbers = tensor.quantization
        if numbers is None or not tensor.is_wide:
            return value
        zero, scale = (relax.const(np.float32(v)) for v in (numbers.zero_point, numbers.scale))
        steps = self.emit(relax.op.subtract(self.emit(relax.op.astype(value, "float32")), zero))
        return self.emit(relax.op.multiply(steps, scale))

    def _to_wide(self, tensor: Tensor, value: relax.Expr) -> relax.Expr:
        """The 16 bits of an output."""
        numbers = tensor.quantization
        if numbers is None or not tensor.is_wide:
            return value
        zero, scale = (relax.const(np.float32(v)) for v in (numbers.zero_point, numbers.scale))
        steps = self.emit(relax.op.round(self.emit(relax.op.divide(value, scale))))
        moved = self.emit(relax.op.add(steps, zero))
        cut = self.emit(relax.op.clip(moved, -32768.0, 32767.0))
        return self.emit(relax.op.astype(cut, "int16"))

    def _node(self, index: int) -> OriginalNode:
        op = self._model.operators[index]
        name = self._model.tensors[op.outputs[0]].name if op.outputs else op.name
        return OriginalNode(index, name, op.name, self._notes.get(index))

    def _walk(
        self, model: TFLiteModel, arguments: Sequence[relax.Expr], is_first: bool = False
    ) -> list[relax.Expr]:
        """Emit all operators of a graph; gives its outputs."""
        values = dict(zip(model.inputs, arguments, strict=True))
        imaginary: dict[int, relax.Expr] = {}
        for index, operator in enumerate(model.operators):
            if is_first:
                self._current = index
            op = Emitter(model, operator, values, self, imaginary)
            self._convert(op)
            if imaginary.keys() & set(operator.inputs) and operator.name not in spectra.CONVERTERS:
                if operator.name not in spectra.MOVING:
                    raise op.unsupported("takes complex numbers")
                # Once more for the other part, which stands where the first one stood.
                others = {**values, **imaginary}
                self._convert(Emitter(model, operator, others, self, {}))
                imaginary[operator.outputs[0]] = others[operator.outputs[0]]
        tensors = model.tensors
        return [
            self.constant(tensors[i], None) if tensors[i].value is not None else values[i]
            for i in model.outputs
        ]

    def _convert(self, op: Emitter) -> None:
        name = op.operator.name
        converter = CONVERTERS.get(name)
        try:
            if constants.fold(op):
                return
            if converter is None:
                raise op.unsupported("is not among the TFLite operators that are taken")
            converter(op)
        except NnfarmError:
            raise
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise NnfarmError(
                "compile.unsupported_model",
                f"The importer cannot take {name} {op.node!r}: "
                f"{lines[-1][:300] if lines else repr(error)}",
                node=op.node,
                op_type=name,
            ) from error
