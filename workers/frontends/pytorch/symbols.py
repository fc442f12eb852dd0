"""Sizes that a .pt2 archive writes as expressions of symbols, computed without running them.

PyTorch writes what SymPy's `srepr` gives, such as ``Add(Symbol('s0'), Integer(-1))``, and reads it
back with `eval`. Here the text is parsed, and only the functions of the table exist.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

Number = int | float | bool

_MAX_POWER = 64


class UnknownSymbolError(ValueError):
    """An expression has a symbol that no input's size says: the size depends on values."""


class BadExpressionError(ValueError):
    """An expression is no sum, product or comparison of symbols and numbers."""


def _product(*factors: Number) -> Number:
    return math.prod(factors)


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > _MAX_POWER:
        raise BadExpressionError(f"the exponent {exponent} is out of bounds")
    result: Number = base**exponent
    return result


_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "Add": lambda *terms: sum(terms),
    "And": lambda *terms: all(terms),
    "CeilDiv": lambda a, b: -(-a // b),
    "CeilToInt": math.ceil,
    "CleanDiv": operator.floordiv,
    "Equality": operator.eq,
    "FloatTrueDiv": operator.truediv,
    "FloorDiv": operator.floordiv,
    "FloorToInt": math.floor,
    "GreaterThan": operator.ge,
    "IntTrueDiv": operator.truediv,
    "LessThan": operator.le,
    "Max": lambda *terms: max(terms),
    "Min": lambda *terms: min(terms),
    "Mod": operator.mod,
    "Mul": _product,
    "Not": operator.not_,
    "Or": lambda *terms: any(terms),
    "Pow": _power,
    "PowByNatural": _power,
    "PythonMod": operator.mod,
    "Rational": operator.truediv,
    "RoundToInt": round,
    "StrictGreaterThan": operator.gt,
    "StrictLessThan": operator.lt,
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "Unequality": operator.ne,
}
"""SymPy's functions and those of `torch.utils._sympy.functions`, by their names in `srepr`."""

_LITERALS: Mapping[str, Callable[[Any], Number]] = {"Float": float, "Integer": int}


def value_of(text: str, sizes: Mapping[str, int]) -> Number:
    """The number that an expression is for some sizes.

    Args:
        text: what SymPy's `srepr` gives.
        sizes: by symbol.

    Raises:
        UnknownSymbolError: a symbol has no size.
        BadExpressionError: anything but a computation with sizes.
    """
    try:
        return _value(ast.parse(text, mode="eval").body, sizes)
    except (SyntaxError, RecursionError, MemoryError, TypeError, ArithmeticError) as error:
        raise BadExpressionError(f"{text[:80]!r} is no expression of sizes") from error


def symbols_of(text: str) -> frozenset[str]:
    """The symbols of an expression.

    Raises:
        BadExpressionError: it is none.
    """
    try:
        calls = [node for node in ast.walk(ast.parse(text, mode="eval")) if _name(node) == "Symbol"]
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise BadExpressionError(f"{text[:80]!r} is no expression of sizes") from error
    return frozenset(_symbol(call) for call in calls if isinstance(call, ast.Call))


def solved(text: str, symbol: str, wanted: int) -> int | None:
    """The size of a symbol that makes a linear expression of it the number wanted, or None."""
    at_none, at_one = (value_of(text, {symbol: size}) for size in (0, 1))
    step = at_one - at_none
    if not step or (wanted - at_none) % step:
        return None
    size = int((wanted - at_none) // step)
    return size if size >= 0 and value_of(text, {symbol: size}) == wanted else None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, sizes)
    if isinstance(node, ast.Name) and node.id in ("true", "false"):
        return node.id == "true"
    name = _name(node)
    if isinstance(node, ast.Call) and name == "Symbol":
        symbol = _symbol(node)
        if symbol not in sizes:
            raise UnknownSymbolError(symbol)
        return sizes[symbol]
    if isinstance(node, ast.Call) and name in _LITERALS:
        return _LITERALS[name](ast.literal_eval(node.args[0]))  # Float('1.5', precision=53)
    if isinstance(node, ast.Call) and name in _FUNCTIONS and not node.keywords:
        return _FUNCTIONS[name](*(_value(argument, sizes) for argument in node.args))
    raise BadExpressionError(f"{ast.unparse(node)[:80]!r} is no expression of sizes")


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    return ""


def _symbol(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        raise BadExpressionError("a symbol has no name")
    return first.value
