"""Operators with a lowering of their own for the CPU; all others take TVM's.

Each is `(BlockBuilder, Call) -> Expr | None`; None leaves this call to TVM's lowering. What these
compute is what the schedule rules are made for: weights are packed here, when compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tvm
from tvm import relax

from workers.backends.cpu.operators.concat import concat
from workers.backends.cpu.operators.convolution import convolution
from workers.backends.cpu.operators.functions import FUNCTIONS
from workers.backends.cpu.operators.integer import quantize
from workers.backends.cpu.operators.matmul import matmul
from workers.backends.cpu.operators.normalization import layer_norm, softmax
from workers.backends.cpu.operators.regions import roi_align
from workers.backends.cpu.operators.resize import resize
from workers.backends.cpu.operators.transposed import conv2d_transpose
from workers.backends.cpu.vectors import Vectors

Lowering = Callable[[relax.BlockBuilder, relax.Call], relax.Expr]


def lowerings(vectors: Vectors) -> Mapping[str, Lowering]:
    """What `relax.transform.LegalizeOps` takes: an operator's name to its lowering."""
    own = {
        "relax.nn.conv2d": lambda builder, call: convolution(builder, call, vectors),
        "relax.nn.conv2d_transpose": lambda builder, call: conv2d_transpose(builder, call, vectors),
        "relax.matmul": lambda builder, call: matmul(builder, call, vectors),
        "relax.concat": concat,
        "relax.image.resize2d": resize,
        "relax.quantize": quantize,
        "relax.nn.softmax": lambda builder, call: softmax(builder, call, vectors),
        "relax.nn.layer_norm": layer_norm,
        "relax.vision.roi_align": roi_align,
        **FUNCTIONS,
    }
    return {name: _or_default(name, lower) for name, lower in own.items()}


def _or_default(name: str, lower: Callable[..., relax.Expr | None]) -> Lowering:
    default = tvm.ir.Op.get(name).get_attr("FLegalize")

    def legalize(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        result = lower(builder, call)
        return default(builder, call) if result is None else result

    return legalize
