"""Channels-last layout for the whole graph.

NNAPI takes NCHW only from feature level 3 and most drivers are slower there, and the CPU's
schedules want channels innermost too. Convolutions, pools and resizes are put into NHWC; what
follows them computes in NHWC as far as it can; a layout change is emitted only where a value is
asked for in the other order. A layout change that moves no element (one channel, or one pixel)
is a reshape, which every feature level has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tvm import relax

from workers.graph.graph import Binding, Graph, constant_value, static_shape
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
from workers.pipeline.passes.movement import find_movements

TO_LAST = (0, 2, 3, 1)
"""NHWC axis -> the NCHW axis it holds."""

TO_FIRST = (0, 3, 1, 2)
"""NCHW axis -> the NHWC axis that holds it."""

_UNARY = (
    "nn.relu nn.leakyrelu nn.gelu nn.silu clip sigmoid tanh exp log sqrt rsqrt abs negative "
    "floor ceil round erf sin cos sign square astype"
)
_BINARY = (
    "add subtract multiply divide power maximum minimum "
    "equal not_equal less less_equal greater greater_equal"
)
_REDUCE = frozenset(f"relax.{name}" for name in ("mean", "sum", "max", "min", "prod"))


def channels_last(graph: Graph) -> Graph:
    """The same graph with image operations in NHWC, inputs and outputs as they were."""
    return _LayoutPass(graph).run()


class _LayoutPass:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._rewriter = GraphRewriter(graph)
        self._last: dict[relax.Var, relax.Expr] = {}  # old variable -> its NHWC value
        self._movements = find_movements(graph)
        self._inner = {var for m in self._movements.values() for var in m.inner}
        self._dequantized: dict[relax.Var, Quantization] = {}  # new variables
        handlers: dict[str, Callable[[relax.Call], relax.Expr | None]] = {
            "relax.nn.conv2d": self._conv2d,
            "relax.nn.max_pool2d": self._pool,
            "relax.nn.avg_pool2d": self._pool,
            "relax.image.resize2d": self._resize,
            "relax.vision.roi_align": self._regions,
            "relax.concat": self._concat,
            "relax.nn.softmax": self._softmax,
            "relax.nn.log_softmax": self._softmax,
            "relax.nn.pad": self._pad,
            "relax.strided_slice": self._slice,
            QUANTIZE: self._quantization,
            DEQUANTIZE: self._quantization,
        }
        for name in _UNARY.split():
            handlers[f"relax.{name}"] = self._unary
        for name in _BINARY.split():
            handlers[f"relax.{name}"] = self._binary
        self._handlers = handlers

    def run(self) -> Graph:
        return self._rewriter.run(self._rule)

    def _rule(self, rewriter: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        call = binding.call
        if call is None:
            return None
        name = call.op.name
        if binding.var in self._movements:
            return self._move(binding.var)
        if binding.var in self._inner:
            return lambda: rewriter.emit(rewriter.new(binding.value))
        if name == "relax.permute_dims":
            return self._permute(call, binding)
        if name == "relax.reshape":
            return self._reshape(call)
        if name in _REDUCE:
            return self._reduce(call, binding)
        handler = self._handlers.get(name)
        result = handler(call) if handler is not None else None
        if result is None:
            return self._first_dequantized(binding)
        value = rewriter.emit(result)
        self._note(call, value)
        self._last[binding.var] = value
        return lambda: self._to_first(value)

    def _first_dequantized(self, binding: Binding) -> relax.Expr | None:
        """A dequantize call that stays in NCHW, noted for layout changes that may follow."""
        if binding.op_name != DEQUANTIZE:
            return None
        value = self._rewriter.emit(self._rewriter.new(binding.value))
        self._note(binding.value, value)
        return value

    def _note(self, call: relax.Call, value: relax.Expr) -> None:
        numbers = quantization_of(call) if call.op.name == DEQUANTIZE else None
        is_variable = call.op.name == DEQUANTIZE and constant_value(call.args[0]) is None
        if is_variable and numbers is not None and numbers.is_per_tensor:
            self._dequantized[value] = numbers

    # Moving between the two orders.

    def _has_last(self, expr: relax.Expr) -> bool:
        return isinstance(expr, relax.Var) and expr in self._last

    def _to_first(self, value: relax.Expr) -> relax.Expr:
        n, h, w, c = static_shape(value) or (0, 0, 0, 0)
        if c == 1 or (h == 1 and w == 1):
            return self._moved(value, relax.op.reshape(value, (n, c, h, w)))
        return self._moved(value, relax.op.permute_dims(value, list(TO_FIRST)))

    def _inserted(self, expr: relax.Expr) -> relax.Expr:
        return self._rewriter.emit(expr, frozenset())

    def _moved(self, source: relax.Expr, movement: relax.Expr) -> relax.Expr:
        """A layout change; of a dequantized tensor as a quantized operation of its own."""
        value = self._inserted(movement)
        numbers = self._dequantized.get(source) if isinstance(source, relax.Var) else None
        if numbers is None:
            return value
        again = self._inserted(dequantize(self._inserted(quantize(value, numbers)), numbers))
        self._dequantized[again] = numbers
        return again

    def _as_last(self, expr: relax.Expr) -> relax.Expr:
        """An NCHW expression of the old graph, in NHWC."""
        if self._has_last(expr):
            return self._last[expr]
        constant = self._constant_as(expr, TO_LAST)
        if constant is not None:
            return constant
        value = self._rewriter.new(expr)
        n, c, h, w = static_shape(expr) or (0, 0, 0, 0)
        if c == 1 or (h == 1 and w == 1):
            moved = self._moved(value, relax.op.reshape(value, (n, h, w, c)))
        else:
            moved = self._moved(value, relax.op.permute_dims(value, list(TO_LAST)))
        if isinstance(expr, relax.Var):
            self._last[expr] = moved
        return moved

    def _constant_as(
        self, expr: relax.Expr, order: Sequence[int], shape: Sequence[int] | None = None
    ) -> relax.Expr | None:
        """A constant, quantized or not, reshaped and then transposed; None where it is none."""
        array, quantized = constant_value(expr), quantized_constant(self._graph, expr)
        if array is not None:
            array = array if shape is None else array.reshape(shape)
            return relax.const(np.ascontiguousarray(array.transpose(order)))
        if quantized is not None and shape is not None:
            quantized = quantized.reshaped(shape)
        if quantized is None:
            return None
        origins = self._graph.origin_of(expr)
        return self._rewriter.emit(quantized.transposed(order).expression(), origins)

    def _operand_as_last(self, expr: relax.Expr) -> relax.Expr:
        """An operand of a broadcasting operation whose result is NCHW, in NHWC."""
        shape = static_shape(expr)
        assert shape is not None  # _binary asked
        if len(shape) == 4:
            return self._as_last(expr)
        if not shape:
            return self._rewriter.new(expr)
        padded = (1,) * (4 - len(shape)) + shape
        constant = self._constant_as(expr, TO_LAST, padded)
        if constant is not None:
            return constant
        full = self._inserted(relax.op.reshape(self._rewriter.new(expr), padded))
        return self._inserted(relax.op.permute_dims(full, list(TO_LAST)))

    # Operations that are put into NHWC wherever they stand.

    def _conv2d(self, call: relax.Call) -> relax.Expr | None:
        attrs = call.attrs
        is_plain = attrs.data_layout == "NCHW" and attrs.kernel_layout == "OIHW"
        if not is_plain or static_shape(call.args[0]) is None:
            return None
        weight = self._constant_as(call.args[1], (2, 3, 1, 0))
        if weight is None:
            return None
        return relax.op.nn.conv2d(
            self._as_last(call.args[0]),
            weight,
            strides=_ints(attrs.strides),
            padding=_ints(attrs.padding),
            dilation=_ints(attrs.dilation),
            groups=int(attrs.groups),
            data_layout="NHWC",
            kernel_layout="HWIO",
            out_layout="NHWC",
        )

    def _pool(self, call: relax.Call) -> relax.Expr | None:
        attrs = call.attrs
        if attrs.layout != "NCHW" or static_shape(call.args[0]) is None:
            return None
        op = relax.op.nn.max_pool2d if "max" in call.op.name else relax.op.nn.avg_pool2d
        return op(
            self._as_last(call.args[0]),
            pool_size=_ints(attrs.pool_size),
            strides=_ints(attrs.strides),
            padding=_ints(attrs.padding),
            dilation=_ints(attrs.dilation),
            ceil_mode=bool(attrs.ceil_mode),
            count_include_pad=bool(attrs.count_include_pad),
            layout="NHWC",
            out_layout="NHWC",
        )

    def _resize(self, call: relax.Call) -> relax.Expr | None:
        attrs = call.attrs
        if attrs.layout != "NCHW" or static_shape(call.args[0]) is None:
            return None
        return relax.op.image.resize2d(
            self._as_last(call.args[0]),
            call.args[1],
            roi=[float(r) for r in attrs.roi],
            layout="NHWC",
            method=attrs.method,
            coordinate_transformation_mode=attrs.coordinate_transformation_mode,
            rounding_method=attrs.rounding_method,
            cubic_alpha=float(attrs.cubic_alpha),
            cubic_exclude=int(attrs.cubic_exclude),
            extrapolation_value=float(attrs.extrapolation_value),
        )

    def _regions(self, call: relax.Call) -> relax.Expr | None:
        attrs = call.attrs
        if attrs.layout != "NCHW" or static_shape(call.args[0]) is None:
            return None
        return relax.op.vision.roi_align(
            self._as_last(call.args[0]),
            self._rewriter.new(call.args[1]),
            pooled_size=_ints(attrs.pooled_size),
            spatial_scale=float(attrs.spatial_scale),
            sample_ratio=int(attrs.sample_ratio),
            aligned=bool(attrs.aligned),
            layout="NHWC",
            mode=str(attrs.mode),
        )

    # Operations that follow their input.

    def _unary(self, call: relax.Call) -> relax.Expr | None:
        if not self._has_last(call.args[0]):
            return None
        args = [self._last[call.args[0]], *call.args[1:]]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _quantization(self, call: relax.Call) -> relax.Expr | None:
        numbers = quantization_of(call)
        if not self._has_last(call.args[0]) or numbers is None or not numbers.is_per_tensor:
            return None
        return relax.Call(call.op, [self._last[call.args[0]], *call.args[1:]], call.attrs)

    def _binary(self, call: relax.Call) -> relax.Expr | None:
        shapes = [static_shape(arg) for arg in call.args]
        if not any(self._has_last(arg) for arg in call.args):
            return None
        if any(s is None for s in shapes) or max(len(s) for s in shapes if s is not None) != 4:
            return None
        args = [self._operand_as_last(arg) for arg in call.args]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _concat(self, call: relax.Call) -> relax.Expr | None:
        items = call.args[0]
        if not isinstance(items, relax.Tuple) or not any(map(self._has_last, items.fields)):
            return None
        fields = [self._as_last(item) for item in items.fields]
        return relax.op.concat(fields, TO_FIRST[int(call.attrs.axis) % 4])

    def _softmax(self, call: relax.Call) -> relax.Expr | None:
        if not self._has_last(call.args[0]):
            return None
        axis = TO_FIRST[int(call.attrs.axis) % 4]
        op = relax.op.nn.log_softmax if "log" in call.op.name else relax.op.nn.softmax
        return op(self._last[call.args[0]], axis)

    def _pad(self, call: relax.Call) -> relax.Expr | None:
        if not self._has_last(call.args[0]):
            return None
        widths = np.array(_ints(call.attrs.pad_width)).reshape(4, 2)[list(TO_LAST)]
        return relax.op.nn.pad(
            self._last[call.args[0]],
            [int(w) for w in widths.reshape(-1)],
            call.attrs.pad_mode,
            float(call.attrs.pad_value),
        )

    def _slice(self, call: relax.Call) -> relax.Expr | None:
        axes = call.args[1]
        if not self._has_last(call.args[0]) or not isinstance(axes, relax.Tuple):
            return None
        moved = [TO_FIRST[_prim_int(a) % 4] for a in axes.fields]
        return relax.op.strided_slice(
            self._last[call.args[0]],
            moved,
            *call.args[2:],
            assume_inbound=bool(call.attrs.assume_inbound),
        )

    # Operations with a result whose order they choose themselves.

    def _reduce(self, call: relax.Call, binding: Binding) -> relax.Expr | Lazy | None:
        if not self._has_last(call.args[0]) or call.attrs.axis is None:
            return None
        axes = sorted(int(a) % 4 for a in call.attrs.axis)
        keep = bool(call.attrs.keepdims)
        kept_order = [a for a in TO_LAST if a not in axes]
        if not keep and kept_order != sorted(kept_order):
            return None
        value = self._rewriter.emit(
            relax.Call(call.op, [self._last[call.args[0]]], _reduce_attrs(call, axes), call.ty_args)
        )
        if not keep:
            return value
        self._last[binding.var] = value
        return lambda: self._to_first(value)

    def _permute(self, call: relax.Call, binding: Binding) -> relax.Expr | Lazy | None:
        source, order = call.args[0], call.attrs.axes
        rank = len(static_shape(source) or ())
        axes = range(rank)[::-1] if order is None else [int(a) % rank for a in order]
        if not self._has_last(source):
            return self._from_last(binding, source) if tuple(axes) == TO_FIRST else None
        composed = [TO_FIRST[a] for a in axes]
        value = self._last[source]
        if composed == list(range(rank)):
            return value
        return self._rewriter.emit(relax.op.permute_dims(value, composed))

    def _from_last(self, binding: Binding, source: relax.Expr) -> Lazy | None:
        """The model's own change from NHWC: what it reads is the result in NHWC already."""
        value = self._rewriter.new(source)
        if not isinstance(value, relax.Var) or value in self._dequantized:
            return None  # a quantized transpose stays with the quantize call behind it
        self._last[binding.var] = value
        origins = self._graph.origin_of(binding.var)
        moved = relax.op.permute_dims(value, list(TO_FIRST))
        return lambda: self._rewriter.emit(moved, origins)

    def _move(self, var: relax.Var) -> Lazy:
        movement = self._movements[var]
        pieces, order, shape = movement.channels_last()
        behind_first, behind_second = movement.rounded

        def moved(value: relax.Expr, numbers: Quantization | None) -> relax.Expr:
            value = self._rewriter.emit(value, movement.origins)
            if numbers is None:
                return value
            value = self._rewriter.emit(quantize(value, numbers), movement.origins)
            return self._rewriter.emit(dequantize(value, numbers), movement.origins)

        value = self._as_last(movement.source)
        value = moved(relax.op.reshape(value, pieces), behind_first)
        value = moved(relax.op.permute_dims(value, order), behind_second)
        value = moved(relax.op.reshape(value, shape), None)
        self._last[var] = value
        return lambda: self._to_first(value)

    def _reshape(self, call: relax.Call) -> relax.Expr | None:
        source, shape = call.args[0], static_shape(call)
        if not self._has_last(source) or shape is None:
            return None
        value = self._last[source]
        _, h, w, c = static_shape(value) or (0, 0, 0, 0)
        if not (c == 1 or (h == 1 and w == 1)):
            return None
        return self._rewriter.emit(relax.op.reshape(value, shape))


def _reduce_attrs(call: relax.Call, axes: Sequence[int]) -> object:
    op = getattr(relax.op, call.op.name.removeprefix("relax."))
    moved = sorted(TO_FIRST[a] for a in axes)
    placeholder = relax.Var("x", relax.TensorType(static_shape(call.args[0]), "float32"))
    return op(placeholder, moved, bool(call.attrs.keepdims)).attrs


def _ints(values: Sequence[object]) -> list[int]:
    return [int(v) for v in values]  # type: ignore[call-overload]


def _prim_int(expr: relax.Expr) -> int:
    return int(getattr(expr, "value", expr))
