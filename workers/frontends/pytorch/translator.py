"""TVM's translator of exported programs, noting which node each binding came from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import tvm
from torch.export import ExportedProgram, default_decompositions
from torch.export.graph_signature import InputKind, OutputKind
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from workers.frontends.onnx_converters_attention import repeated
from workers.frontends.onnx_converters_movement import einsum
from workers.frontends.onnx_operands import Scope
from workers.frontends.pytorch import (
    dynamic_quantization,
    indexing,
    quantized,
    recurrent,
    reductions,
    windows,
)
from workers.graph.attributes import with_fields
from workers.graph.graph import dtype_of, static_shape

Convert = Callable[[torch.fx.Node], Any]
"""Emits one node; the result is a tensor, or a list of them."""


_TAKEN_APART = ("pixel_shuffle.default",)
"""What PyTorch itself writes as plainer operations; TVM's translator takes only a part of it."""


def _in_own_precision(expr: relax.Expr) -> relax.Expr:
    """Products in the element type of their operands; TVM's translator asks for float32 always."""
    if not isinstance(expr, relax.Call):
        return expr
    args = [_in_own_precision(arg) for arg in expr.args]
    attrs = expr.attrs
    is_product = str(getattr(expr.op, "name", "")).startswith(("relax.matmul", "relax.nn.conv"))
    if is_product and str(attrs.out_dtype or "") == "float32":
        attrs = with_fields(attrs, out_dtype=None)
    elif all(new.same_as(old) for new, old in zip(args, expr.args, strict=True)):
        return expr
    return relax.Call(expr.op, args, attrs, expr.ty_args)


class _NotingBuilder(relax.BlockBuilder):  # type: ignore[misc]
    """A block builder that remembers for which node it emitted."""

    def __init__(self) -> None:
        super().__init__()
        self.node = ""
        self.emitted: dict[relax.Var, str] = {}

    def emit(self, expr: relax.Expr, name_hint: str = "") -> relax.Var:
        """Bind an expression and remember the node."""
        var = super().emit(_in_own_precision(expr), name_hint)
        self.emitted[var] = self.node
        return var


class Translator(ExportedProgramImporter):  # type: ignore[misc]
    """One program's translation; parameters become constants as they are."""

    def __init__(self) -> None:
        super().__init__()
        table: dict[str, Convert] = self.create_convert_map()
        table["scaled_dot_product_attention.default"] = self._attention
        for name, converter in {
            **indexing.CONVERTERS,
            **recurrent.CONVERTERS,
            **reductions.CONVERTERS,
            **windows.CONVERTERS,
        }.items():
            table[name] = self._of_named(converter)
        table["einsum.default"] = self._einsum(table["einsum.default"])
        table["where.self"] = self._where
        table["new_ones.default"] = self._new_ones
        table["eye.default"] = table["eye.m"] = self._eye
        integers = {**quantized.CONVERTERS, **dynamic_quantization.CONVERTERS}
        for name, quantization in integers.items():
            table[name] = self._of_arguments(quantization)
        for name in _TAKEN_APART:
            table.pop(name, None)
        self.convert_map = {name: self._noting(convert) for name, convert in table.items()}

    def translate(
        self, program: ExportedProgram
    ) -> tuple[relax.Function, tvm.IRModule, dict[relax.Var, str]]:
        """The main function, its module, and the original node's name of each binding."""
        program = self._decomposed(program)
        self._check_unsupported_func_type(program.graph.nodes)
        _, inputs, _ = self.create_input_vars(program)
        values = {**inputs, **self._constants(program)}
        builder = self.block_builder = _NotingBuilder()
        with builder.function("main", list(inputs.values())):
            with builder.dataflow():
                results = self._translate_fx_graph(
                    program.graph_module, program.graph.nodes, values
                )
                kinds = [spec.kind for spec in program.graph_signature.output_specs]
                own = [
                    result
                    for result, kind in zip(results, kinds, strict=True)
                    if kind is OutputKind.USER_OUTPUT
                ]
                output = builder.emit_output(own[0] if len(own) == 1 else relax.Tuple(own))
            builder.emit_func_output(output)
        module = builder.get()
        function = module["main"]
        return function, module, _names(function, builder.emitted)

    def _decomposed(self, program: ExportedProgram) -> ExportedProgram:
        """Only what the translator does not know is taken apart; in-place operations go."""
        table = {
            operator: decompose
            for operator, decompose in default_decompositions().items()
            if operator.__name__ not in self.convert_map
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PyTorch's, about itself
            return program.run_decompositions(table)

    @staticmethod
    def _constants(program: ExportedProgram) -> dict[str, relax.Expr]:
        tensors = {**program.state_dict, **program.constants}
        return {
            spec.arg.name: relax.const(tensors[spec.target].detach().contiguous().numpy())
            for spec in program.graph_signature.input_specs
            if spec.kind is not InputKind.USER_INPUT
        }

    def _noting(self, convert: Convert) -> Convert:
        def noted(node: torch.fx.Node) -> Any:
            sources = node.meta.get("from_node")
            self.block_builder.node = sources[0].name if sources else node.name
            return convert(node)

        return noted

    def _of_arguments(self, function: Callable[[list[Any], quantized.Emit], Any]) -> Convert:
        return lambda node: function(self.retrieve_args(node), self.block_builder.emit)

    def _of_named(self, function: reductions.Converter) -> Convert:
        """A converter that reads arguments by the names of the operation's schema."""

        def convert(node: torch.fx.Node) -> Any:
            given: dict[str, Any] = {}
            for place, argument in enumerate(node.target._schema.arguments):
                if place < len(node.args) and not argument.kwarg_only:
                    value = node.args[place]
                else:
                    value = node.kwargs.get(argument.name, argument.default_value)
                given[argument.name] = self._retrieve_args(value)
            return function(given, self.block_builder.emit)

        return convert

    def _einsum(self, general: Convert) -> Convert:
        """Two operands as the one matrix product that they are; others as TVM has them."""

        def convert(node: torch.fx.Node) -> Any:
            equation, operands = self.retrieve_args(node)[:2]
            scope = Scope(0, self.block_builder.emit)
            result = einsum(operands, {"equation": equation}, scope)
            return general(node) if result is None else self.block_builder.emit(result)

        return convert

    @staticmethod
    def _new_ones(node: torch.fx.Node) -> relax.Expr:
        """Ones of the element type asked for; TVM's translator takes the other tensor's."""
        value = node.meta["val"]
        dtype = str(value.dtype).removeprefix("torch.")
        return relax.const(np.ones(tuple(map(int, value.shape)), dtype), dtype)

    @staticmethod
    def _eye(node: torch.fx.Node) -> relax.Expr:
        """Ones on the diagonal, of the element type of the result."""
        value = node.meta["val"]
        dtype = str(value.dtype).removeprefix("torch.")
        return relax.const(np.eye(int(value.shape[0]), int(value.shape[1])), dtype)

    def _where(self, node: torch.fx.Node) -> relax.Expr:
        """TVM's translator makes int64 of some truth values, which then choose nothing."""
        condition, *values = self.retrieve_args(node)
        if dtype_of(condition) != "bool":
            zero = relax.const(0, dtype_of(condition))
            condition = self.block_builder.emit(relax.op.not_equal(condition, zero))
        dtype = str(node.meta["val"].dtype).removeprefix("torch.")
        given = [v if isinstance(v, relax.Expr) else relax.const(v, dtype) for v in values]
        return self.block_builder.emit(relax.op.where(condition, *given))

    def _attention(self, node: torch.fx.Node) -> relax.Expr:
        """Attention as two products and a softmax, which devices have."""
        args = self.retrieve_args(node)
        query, key, value = args[:3]
        options = {**node.kwargs}
        mask = args[3] if len(args) > 3 else self.env.get(options.get("attn_mask"))
        is_causal = args[5] if len(args) > 5 else options.get("is_causal", False)
        emit, dtype = self.block_builder.emit, dtype_of(query)
        rows, depth = (static_shape(query) or ())[-2:]
        columns = (static_shape(key) or ())[-2]
        scale = options.get("scale") or 1.0 / math.sqrt(depth)
        if options.get("enable_gqa"):
            heads, scope = (static_shape(query) or ())[1], Scope(0, emit)
            key, value = (repeated(part, heads, scope) for part in (key, value))
        rank = len(static_shape(key) or ())
        turned = emit(relax.op.permute_dims(key, [*range(rank - 2), rank - 1, rank - 2]))
        scaled = emit(relax.op.multiply(query, relax.const(scale, dtype)))
        scores = emit(relax.op.matmul(scaled, turned))
        if is_causal:
            mask = relax.const(np.tril(np.ones((rows, columns), bool)), "bool")
        if mask is not None and dtype_of(mask) == "bool":
            shut, opened = relax.const(-1e9, dtype), relax.const(0.0, dtype)
            mask = emit(relax.op.where(mask, opened, shut))
        if mask is not None:
            scores = emit(relax.op.add(scores, mask))
        return emit(relax.op.matmul(emit(relax.op.nn.softmax(scores, axis=-1)), value))


def _names(function: relax.Function, emitted: dict[relax.Var, str]) -> dict[relax.Var, str]:
    """Bindings made on the way to an emitted one belong to its node, too."""
    names: dict[relax.Var, str] = {}
    name = ""
    for block in reversed(function.body.blocks):
        for binding in reversed(block.bindings):
            name = emitted.get(binding.var, name)
            names[binding.var] = name
    return names
