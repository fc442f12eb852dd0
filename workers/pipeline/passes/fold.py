"""Constant folding."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from workers.graph.evaluation import value_of_call
from workers.graph.graph import Binding, Graph, constant_value
from workers.graph.rewriter import GraphRewriter


def fold_constants(graph: Graph) -> Graph:
    """Compute every operation on constants; what NumPy cannot stays as it is."""

    def rule(rewriter: GraphRewriter, binding: Binding) -> relax.Expr | None:
        value = rewriter.new(binding.value)
        if isinstance(value, relax.Var | tvm.ir.GenericConst):
            return value
        if binding.call is None:
            return None
        # Types of the new graph: folding an operand may have made a shape known.
        value = rewriter.typed(value)
        if not isinstance(value, relax.Call):
            return None
        array = value_of_call(value)
        if array is not None:
            return relax.const(np.asarray(array, order="C"), array.dtype.name)
        return _static_form(rewriter, value)

    return GraphRewriter(graph).run(rule)


def _static_form(rewriter: GraphRewriter, call: relax.Call) -> relax.Expr | None:
    """The form with attributes of an operation whose tensor operands turned out constant."""
    operands = [constant_value(arg) for arg in call.args[1:]]
    if call.op.name == "relax.dynamic_strided_slice" and not any(o is None for o in operands):
        begins, ends, strides = ([int(v) for v in o] for o in operands if o is not None)
        axes = list(range(len(begins)))
        return rewriter.emit(relax.op.strided_slice(call.args[0], axes, begins, ends, strides))
    if call.op.name == "relax.tensor_to_shape":
        dims = constant_value(call.args[0])
        return None if dims is None else relax.ShapeExpr([int(d) for d in dims])
    return None
