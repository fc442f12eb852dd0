"""Operations NNAPI does not have at a level, written as those it has.

Done to the graph before anything is claimed, so that each piece is claimed, checked and explained
like any other. The CPU twin keeps the original operations.
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm import relax

from workers.backends.nnapi.composites import (
    activations,
    convolutions,
    early,
    normalizations,
    pools,
    powers,
    products,
    remainders,
    resizes,
    selection,
    softmax,
    windows,
)
from workers.backends.nnapi.composites.rewrite import Composite, Place, Rewrite
from workers.backends.nnapi.opset import opset
from workers.graph.graph import Binding, Graph, constant_value, dtype_of, static_shape
from workers.graph.quantization import DEQUANTIZE
from workers.graph.rewriter import GraphRewriter, Lazy

_COMPOSITES: Mapping[str, Composite] = {
    **convolutions.COMPOSITES,
    **pools.COMPOSITES,
    **products.COMPOSITES,
    **resizes.COMPOSITES,
    **selection.COMPOSITES,
    **softmax.COMPOSITES,
    **windows.COMPOSITES,
}


_KEYSTONES: Mapping[str, str] = {
    "relax.floor_divide": "DIV",
    "relax.floor_mod": "DIV",
    "relax.mod": "DIV",
    "relax.nn.selu": "EXP",
    "relax.nn.softplus": "LOG",
    "relax.round": "SELECT",
    "relax.cos": "SIN",
    "relax.logical_xor": "NOT_EQUAL",
    "relax.isnan": "NOT_EQUAL",
    "relax.triu": "SELECT",
    "relax.tril": "SELECT",
    "relax.topk": "TOPK_V2",
}
"""Without this operation what is composed would be computed by the CPU, piece by piece."""


def decompose(graph: Graph, feature_level: int, half: bool) -> Graph:
    """Replace what has no NNAPI operation at a level by what has.

    Only where it is known how: elsewhere the operation stays, and is refused with its reason.

    Args:
        graph: normalised.
        feature_level: the level to be claimed for.
        half: whether float32 tensors will be computed as float16.
    """
    rewrites = {
        **activations.REWRITES,
        **activations.with_sign(half),
        **normalizations.REWRITES,
        **powers.REWRITES,
        **remainders.REWRITES,
    }
    too_early = {n for n, op in _KEYSTONES.items() if opset()[op].level > feature_level}
    known = {*rewrites, *_COMPOSITES, "relax.topk"} - too_early
    if any(binding.op_name in known for binding in graph.bindings):
        graph = _composed(graph, feature_level, half, rewrites, known)
    earlier = early.before(feature_level)
    if any(binding.op_name in earlier for binding in graph.bindings):
        graph = _earlier(graph, feature_level, half, earlier)
    return graph


def _composed(
    graph: Graph, feature_level: int, half: bool, rewrites: Mapping[str, Rewrite], known: set[str]
) -> Graph:
    rewriter = GraphRewriter(graph)
    place = Place(graph, rewriter, feature_level, half)

    def rule(_: GraphRewriter, binding: Binding) -> relax.Expr | Lazy | None:
        if isinstance(binding.value, relax.TupleGetItem) and "relax.topk" in known:
            return selection.top_k_item(place, binding.var, binding.value)
        call = binding.call
        if call is None or call.op.name not in known:
            return None
        if call.op.name == "relax.topk":  # whose items are emitted one by one, if at all
            return lambda: rewriter.emit(rewriter.new(call))
        if call.op.name in _COMPOSITES:
            return _COMPOSITES[call.op.name](place, call)
        return _on_real_numbers(place, call, rewrites[call.op.name])

    return rewriter.run(rule)


def _earlier(
    graph: Graph, feature_level: int, half: bool, composites: Mapping[str, Composite]
) -> Graph:
    rewriter = GraphRewriter(graph)
    place = Place(graph, rewriter, feature_level, half)

    def rule(_: GraphRewriter, binding: Binding) -> relax.Expr | None:
        call = binding.call
        composite = composites.get(binding.op_name)
        if call is None or composite is None or not _is_real(place, call):
            return None
        return composite(place, call)

    # Once more: of shapes on the way, which later reshapes passed over, nothing may be left.
    return GraphRewriter(rewriter.run(rule)).run(lambda *_: None)


def _on_real_numbers(place: Place, call: relax.Call, rewrite: Rewrite) -> relax.Expr | None:
    if dtype_of(call) == "float16" and place.level >= opset()["CAST"].level:
        return _on_wider_numbers(place, call, rewrite)
    # A norm is computed in real numbers whatever is around it: it stands in no unit of integers.
    is_norm = call.op.name in normalizations.REWRITES and static_shape(call) is not None
    if not _is_real(place, call) and not (is_norm and dtype_of(call) == "float32"):
        return None
    return rewrite(place.emit, call, [place.new(arg) for arg in call.args])


def _on_wider_numbers(place: Place, call: relax.Call, rewrite: Rewrite) -> relax.Expr | None:
    """Float16 composed in float32, as runtimes do: squares and sums on the way would overflow."""
    if static_shape(call) is None:
        return None
    result = rewrite(place.emit, call, [_widened(place, arg) for arg in call.args])
    return None if result is None else place.emit(relax.op.astype(result, "float16"))


def _widened(place: Place, arg: relax.Expr) -> relax.Expr:
    array = constant_value(arg)
    if array is not None:
        return relax.const(array.astype("float32"), "float32")
    value = place.new(arg)
    is_half = isinstance(arg.ty, relax.TensorType) and dtype_of(arg) == "float16"
    return place.emit(relax.op.astype(value, "float32")) if is_half else value


def _is_real(place: Place, call: relax.Call) -> bool:
    """Whether nothing quantized is read: the unit of integers it stands in would come apart."""
    if dtype_of(call) != "float32" or static_shape(call) is None:
        return False
    return not any(_is_quantized(place, arg) for arg in call.args)


def _is_quantized(place: Place, expr: relax.Expr) -> bool:
    return place.producer(expr, DEQUANTIZE) is not None and place.real_constant(expr) is None
