"""Rules every NNAPI operation has, and the rejections that name the one in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import relax

from service.contracts.artifacts import Rejection
from workers.backends.nnapi.operation import QUANTIZED_TYPES, QuantizedForm, Site
from workers.backends.nnapi.opset import OperationSpec, opset
from workers.graph.graph import static_shape
from workers.graph.quantization import quantization_of


def needs_level(what: str, level: int, asked: int) -> Rejection | None:
    """A rejection where `what` needs a higher level than asked."""
    if level <= asked:
        return None
    return Rejection(
        code="nnapi.needs_level",
        sentence=f"{what} needs NNAPI feature level {level}; level {asked} was asked.",
        needed_level=level,
    )


def unsupported(code: str, sentence: str) -> Rejection:
    """A rejection that no feature level lifts."""
    return Rejection(code=f"nnapi.{code}", sentence=sentence, needed_level=None)


def check_tensors(site: Site, name: str, exprs: Sequence[relax.Expr]) -> Rejection | None:
    """The rules every operation has: level, element types, static shapes, ranks.

    Args:
        site: the match.
        name: operation of the table.
        exprs: tensors that cross the operation's border; the first sets type and rank rules.
    """
    spec = opset()[name]
    too_old = needs_level(name, spec.level, site.feature_level)
    if too_old is not None:
        return too_old
    for expr in exprs:
        rejection = _check_tensor(site, spec, expr, spec.types)
        if rejection is not None:
            return rejection
    rejection = _check_tensor(site, spec, site.output, spec.results or spec.types)
    if rejection is not None:
        return rejection
    rank = len(static_shape(exprs[0]) or ())
    if rank < spec.rank[0] and site.constant_of(exprs[0]) is None:
        return unsupported("rank", f"{name} takes rank {spec.rank[0]} or more, not {rank}.")
    return None


_CONVERSIONS = frozenset({"QUANTIZE", "DEQUANTIZE"})

_MOVING = {name for name, spec in opset().items() if spec.family == "movement"}
_ORDER_ONLY = (_MOVING - {"PAD", "PAD_V2", "FILL", "RANK"}) | {
    *("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "MAX_POOL_2D"),
    *("MAXIMUM", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN"),
}
"""Operations that are the same on integers and on the numbers they stand for, if all of one scale.

Others on integers that no dequantize stands before mean the integers themselves.
"""


def _check_tensor(
    site: Site, spec: OperationSpec, expr: relax.Expr, types: Mapping[str, int]
) -> Rejection | None:
    name = spec.name
    shape, dtype = static_shape(expr), site.element_type(expr)
    if shape is None:
        return unsupported("dynamic_shape", f"{name} needs shapes known at compile time.")
    if dtype not in types:
        return unsupported("dtype", f"{name} does not take {dtype or 'untyped'} tensors.")
    too_old = needs_level(f"{name} on {dtype} tensors", types[dtype], site.feature_level)
    if too_old is not None:
        return too_old
    if site.takes_integers and dtype.startswith("float"):
        return unsupported("quantization", f"{name} has quantized and real operands.")
    if dtype in QUANTIZED_TYPES.values():
        numbers = site.quantization(expr)
        if not site.takes_integers and name not in _CONVERSIONS:
            is_same = name in _ORDER_ONLY and numbers == site.quantization(site.output)
            if not is_same:
                return unsupported("quantization", f"{name} would compute on integers themselves.")
        if numbers is None or not numbers.is_per_tensor:
            return unsupported("quantization", f"{name} needs one constant scale a tensor.")
    if 0 in shape:
        return unsupported("zero_size", f"{name} has an empty tensor of shape {shape}.")
    is_scalar_constant = not shape and site.constant_of(expr) is not None
    if not is_scalar_constant and not 1 <= len(shape) <= spec.rank[1]:
        return unsupported(
            "rank", f"{name} takes tensors of rank 1 to {spec.rank[1]}, not {len(shape)}."
        )
    return None


def check_quantized_form(form: QuantizedForm, site: Site, name: str) -> Rejection | None:
    """The rule for the scale and zero point of a quantized operation's output."""
    if form.gives_plain:
        return None
    output = site.quantization(site.output)
    if output is None:
        return unsupported("quantization", f"{name} needs one constant scale a tensor.")
    if form.fixed is not None:
        scale, zero_point = form.fixed
        wanted = (scale, zero_point - 128 if output.dtype == "int8" else zero_point)
        if not _is_same(wanted, (output.scale, output.zero_point)):
            return unsupported(
                "quantization", f"NNAPI's {name} gives scale {wanted[0]}, zero point {wanted[1]}."
            )
    if form.is_as_input:
        for call in site.numbers.dequantized.values():
            source = quantization_of(call)
            if source is None or not source.is_per_tensor:
                return unsupported("quantization", f"{name} needs one constant scale a tensor.")
            if not _is_same((source.scale, source.zero_point), (output.scale, output.zero_point)):
                return unsupported(
                    "quantization", f"NNAPI's {name} keeps the scale and zero point of its input."
                )
    return None


def _is_same(lhs: tuple[float, int], rhs: tuple[float, int]) -> bool:
    """Equal but for what a file format's decimal or half-precision scale rounds off."""
    return lhs[1] == rhs[1] and abs(lhs[0] - rhs[0]) <= 1e-6 * abs(rhs[0])
