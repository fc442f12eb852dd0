"""A transposed convolution's surroundings in NHWC.

Relax has transposed convolutions in NCHW only, between two layout changes. Here they, and what
follows each of them up to the next layout change, are put into NHWC like the rest of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.backends.nnapi.transposed.convolutions import NAME, convolved
from workers.backends.nnapi.transposed.images import TO_FIRST, TO_LAST, Image, placed
from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.quantization import (
    DEQUANTIZE,
    QUANTIZE,
    Quantization,
    dequantize,
    quantization_of,
    quantize,
    quantized_constant,
)
from workers.graph.rewriter import GraphRewriter, Lazy

_UNARY = frozenset(
    f"relax.{name}"
    for name in ("nn.relu", "clip", "sigmoid", "tanh", "nn.leakyrelu", "nn.silu", "nn.gelu")
)
_BINARY = frozenset(
    f"relax.{n}" for n in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
)


def transposed_convolutions(graph: Graph, feature_level: int) -> Graph:
    """The same graph, transposed convolutions with constant weights as the level has them."""
    if not any(binding.op_name == NAME for binding in graph.bindings):
        return graph
    return _Pass(graph, feature_level).run()


class _Pass:
    def __init__(self, graph: Graph, level: int) -> None:
        self._graph = graph
        self._level = level
        self._rewriter = GraphRewriter(graph)
        self._images: dict[relax.Expr, Image] = {}  # by the old variable
        self._integers: dict[relax.Expr, tuple[relax.Expr, Quantization]] = {}  # by the new one
        self._last: dict[relax.Expr, relax.Expr] = {}  # finished images, by the old variable

    def run(self) -> Graph:
        # Once more, without what nothing reads: forms of a value that were not asked for.
        return GraphRewriter(self._rewriter.run(self._rule)).run(lambda *_: None)

    def _rule(self, _: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call, var = binding.call, binding.var
        if call is None:
            return None
        if call.op.name == "relax.permute_dims" and call.args[0] in self._images:
            return self._finished(call.args[0]) if _axes(call) == TO_LAST else None
        image = self._convolved(call) if call.op.name == NAME else self._followed(call)
        if image is None:
            return self._same_integers(call)
        self._images[var] = image
        return lambda: self._to_first(var)

    def _convolved(self, call: relax.Call) -> Image | None:
        quantized, array = (
            quantized_constant(self._graph, call.args[1]),
            constant_value(call.args[1]),
        )
        weight = array if quantized is None else quantized
        attrs, shape = call.attrs, static_shape(call.args[0])
        is_known = attrs.data_layout == "NCHW" and attrs.kernel_layout == "IOHW"
        if weight is None or not is_known or shape is None or static_shape(call) is None:
            return None
        data = self._as_last(call.args[0])

        def move(value: relax.Expr, movement: Callable[[relax.Expr], relax.Expr]) -> relax.Expr:
            known = self._integers.get(value)
            numbers = None if known is None else known[1]
            return self._moved(value, numbers, lambda v: self._rewriter.emit(movement(v)))

        return convolved(self._rewriter.emit, move, call, data, weight, self._level)

    def _same_integers(self, call: relax.Call) -> relax.Expr | None:
        """Quantizing again what was just dequantized: around a change of layout that is gone."""
        if call.op.name != QUANTIZE:
            return None
        known = self._integers.get(self._rewriter.new(call.args[0]))
        return known[0] if known is not None and known[1] == quantization_of(call) else None

    # What follows a transposed convolution computes in NHWC, before its pixels are in their places.

    def _followed(self, call: relax.Call) -> Image | None:
        name, emit = call.op.name, self._rewriter.emit
        if name in _BINARY:
            return self._with_constant(call)
        image = self._images.get(call.args[0]) if call.args else None
        if image is None:
            return None
        if name in _UNARY:
            same = relax.Call(call.op, [image.value, *call.args[1:]], call.attrs, call.ty_args)
            return replace(image, value=emit(same), numbers=None)
        numbers = quantization_of(call) if name in (QUANTIZE, DEQUANTIZE) else None
        if numbers is None or not numbers.is_per_tensor:
            return None
        if name == QUANTIZE:
            return replace(image, value=emit(quantize(image.value, numbers)), numbers=numbers)
        return replace(image, value=self._dequantized(image.value, numbers), numbers=numbers)

    def _with_constant(self, call: relax.Call) -> Image | None:
        """A constant a channel, or one for all, beside an image."""
        image = next((self._images[a] for a in call.args if a in self._images), None)
        if image is None or static_shape(call) != image.first_shape:
            return None
        args: list[relax.Expr] = []
        for arg in call.args:
            array = self._real_constant(arg)
            constant = None if array is None else image.beside(array)
            if constant is None and self._images.get(arg) is not image:
                return None
            args.append(image.value if constant is None else constant)
        value = self._rewriter.emit(relax.Call(call.op, args, call.attrs, call.ty_args))
        return replace(image, value=value, numbers=None)

    def _real_constant(self, expr: relax.Expr) -> NDArray[np.generic] | None:
        quantized = quantized_constant(self._graph, expr)
        if quantized is None:
            return constant_value(expr)
        return quantized.quantization.dequantize(quantized.array)

    # Layout changes and pixels put into their places; quantized, they are units of their own.

    def _finished(self, var: relax.Expr) -> relax.Expr:
        if var not in self._last:
            image = self._images[var]
            is_there = static_shape(image.value) == image.shape
            self._last[var] = (
                image.value
                if is_there
                else self._moved(
                    image.value, image.numbers, lambda v: placed(self._rewriter.emit, v, image)
                )
            )
        return self._last[var]

    def _to_first(self, var: relax.Expr) -> relax.Expr:
        value, numbers = self._finished(var), self._images[var].numbers
        return self._moved(
            value, numbers, lambda v: self._inserted(relax.op.permute_dims(v, TO_FIRST))
        )

    def _inserted(self, expr: relax.Expr) -> relax.Expr:
        return self._rewriter.emit(expr, frozenset())

    def _dequantized(self, value: relax.Expr, numbers: Quantization) -> relax.Expr:
        real = self._rewriter.emit(dequantize(value, numbers))
        self._integers[real] = value, numbers
        return real

    def _moved(
        self,
        value: relax.Expr,
        numbers: Quantization | None,
        movement: Callable[[relax.Expr], relax.Expr],
    ) -> relax.Expr:
        if numbers is None:
            return movement(value)
        is_integers = dtype_of(value) == numbers.dtype
        real = self._inserted(dequantize(value, numbers)) if is_integers else value
        integers = self._rewriter.emit(quantize(movement(real), numbers))
        return integers if is_integers else self._dequantized(integers, numbers)

    def _as_last(self, expr: relax.Expr) -> relax.Expr:
        """An image of the old graph in NHWC."""
        if expr in self._images:
            return self._finished(expr)
        if expr not in self._last:
            back = self._turned_back(expr)
            self._last[expr] = self._turned(expr) if back is None else back
        return self._last[expr]

    def _turned(self, expr: relax.Expr) -> relax.Expr:
        value, call = self._rewriter.new(expr), self._graph.producer(expr, DEQUANTIZE)
        numbers = None if call is None else quantization_of(call)
        return self._moved(
            value, numbers, lambda v: self._inserted(relax.op.permute_dims(v, TO_LAST))
        )

    def _turned_back(self, expr: relax.Expr) -> relax.Expr | None:
        """What an expression is the NCHW form of, if a layout change made it."""
        call = self._graph.producer(expr, "relax.permute_dims")
        if call is not None:
            return self._rewriter.new(call.args[0]) if _axes(call) == TO_FIRST else None
        outer = self._graph.producer(expr, DEQUANTIZE)
        rounded = None if outer is None else self._graph.producer(outer.args[0], QUANTIZE)
        moved = (
            None if rounded is None else self._graph.producer(rounded.args[0], "relax.permute_dims")
        )
        source = None if moved is None else self._graph.producer(moved.args[0], DEQUANTIZE)
        if outer is None or moved is None or source is None or _axes(moved) != TO_FIRST:
            return None
        numbers = quantization_of(outer)
        if numbers is None or numbers != quantization_of(source):
            return None
        value = self._rewriter.new(moved.args[0])
        self._integers[value] = self._rewriter.new(source.args[0]), numbers
        return value


def _axes(call: relax.Call) -> tuple[int, ...]:
    return () if call.attrs.axes is None else tuple(int(axis) for axis in call.attrs.axes)
