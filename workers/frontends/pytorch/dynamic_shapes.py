"""Open dimensions of an exported program, fixed in the archive's own text before it is loaded.

PyTorch writes each size that depends on an input's shape as an expression of symbols. Once the
inputs' shapes are known all of them are numbers, and the nodes that compute or check them go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.contracts.errors import NnfarmError
from workers.frontends.pytorch.symbols import (
    BadExpressionError,
    Number,
    UnknownSymbolError,
    solved,
    symbols_of,
    value_of,
)

_BATCHED_RANKS = (2, 4)
"""Of matrices and images: the first dimension is the batch. Of sequences it may be the length."""

_LEAST_CHECKED = 2
"""PyTorch traces with 2 or more and lets 0 and 1 pass when it runs; so does this."""

_CHECKS = (
    "torch.ops.aten._assert_scalar.default",
    "torch.ops.aten.sym_constrain_range.default",
    "torch.ops.aten.sym_constrain_range_for_size.default",
)
_NUMBERS = {"as_sym_int": "as_int", "as_sym_float": "as_float", "as_sym_bool": "as_bool"}
_LISTS = {f"{name}s": f"{plain}s" for name, plain in _NUMBERS.items()}
_TABLES = ("sym_int_values", "sym_float_values", "sym_bool_values")

Json = dict[str, Any]


def fix_shapes(program: Json, wanted: Mapping[str, Sequence[int]]) -> None:
    """Give every symbolic size its number.

    A batch that is left open is 1; other open dimensions have to be given.

    Args:
        program: the archive's `models/*.json`, changed in place.
        wanted: whole shapes by input name; dimensions the program fixes must agree.

    Raises:
        NnfarmError: `compile.bad_option`, an unknown input, a shape that does not fit, or one that
            is missing; `compile.unsupported_model`, sizes that depend on values.
    """
    graph = program["graph_module"]["graph"]
    inputs = _inputs(program)
    sizes = _sizes(inputs, wanted, program["range_constraints"])
    try:
        values = {
            name: _number(value, sizes, {})
            for table in _TABLES
            for name, value in graph.get(table, {}).items()
        }
        nodes = [node for node in graph["nodes"] if not _is_of_sizes(node)]
        graph["nodes"] = [_replaced(node, sizes, values) for node in nodes]
        for key in ("tensor_values", "outputs"):
            graph[key] = _replaced(graph[key], sizes, values)
    except UnknownSymbolError as error:
        raise NnfarmError(
            "compile.unsupported_model",
            f"A size of the program depends on values ({error}); shapes have to be known when it "
            "is compiled.",
        ) from error
    except BadExpressionError as error:
        raise NnfarmError(
            "compile.unsupported_model", f"A size cannot be read: {error}."
        ) from error
    for table in _TABLES:
        graph[table] = {}
    program["range_constraints"] = {}


def _inputs(program: Json) -> dict[str, list[Json]]:
    """Sizes of the inputs that are tensors, by name."""
    values = program["graph_module"]["graph"]["tensor_values"]
    specs = program["graph_module"]["signature"]["input_specs"]
    given = [spec["user_input"]["arg"] for spec in specs if "user_input" in spec]
    names = [argument["as_tensor"]["name"] for argument in given if "as_tensor" in argument]
    return {name: values[name]["sizes"] for name in names}


def _sizes(
    inputs: Mapping[str, list[Json]],
    wanted: Mapping[str, Sequence[int]],
    bounds: Mapping[str, Json],
) -> dict[str, int]:
    """The size of each symbol, by the shapes given and the rule for batches."""
    sizes: dict[str, int] = {}
    for name, shape in wanted.items():
        if name not in inputs:
            raise _bad(name, f"The program has no input {name!r}; it has {', '.join(inputs)}.")
        dims = inputs[name]
        fits = len(dims) == len(shape) and all(
            _take(dim, size, sizes, bounds) for dim, size in zip(dims, shape, strict=True)
        )
        if not fits:
            own = _written(dims, {}, bounds)
            raise _bad(name, f"Shape {list(shape)} does not fit input {name!r} of shape {own}.")
    for dims in inputs.values():
        if len(dims) in _BATCHED_RANKS and "as_expr" in dims[0]:
            symbols = symbols_of(dims[0]["as_expr"]["expr_str"])
            if not symbols & set(sizes):
                _take(dims[0], 1, sizes, bounds)
    open_inputs = [name for name, dims in inputs.items() if any(_open(dims, sizes))]
    if open_inputs:
        shapes = "; ".join(f"{n!r} {_written(inputs[n], sizes, bounds)}" for n in open_inputs)
        raise _bad(open_inputs[0], f"The program leaves dimensions open; give shapes of: {shapes}.")
    return sizes


def _take(dim: Json, size: int, sizes: dict[str, int], bounds: Mapping[str, Json]) -> bool:
    """Notes what a dimension of this size says; whether it can have it."""
    if "as_int" in dim:
        return bool(dim["as_int"] == size)
    text = dim["as_expr"]["expr_str"]
    unknown = symbols_of(text) - set(sizes)
    if not unknown:
        return value_of(text, sizes) == size
    if len(unknown) > 1 or len(symbols_of(text)) > 1:
        return False
    (symbol,) = unknown
    found = solved(text, symbol, size)
    limits = bounds.get(symbol, {})
    least, most = limits.get("min_val") or 0, limits.get("max_val")
    if found is None or (most is not None and found > most):
        return False
    if least > _LEAST_CHECKED and found < least:
        return False
    sizes[symbol] = found
    return True


def _open(dims: Sequence[Json], sizes: Mapping[str, int]) -> Iterator[bool]:
    for dim in dims:
        yield "as_expr" in dim and not symbols_of(dim["as_expr"]["expr_str"]) <= set(sizes)


def _written(dims: Sequence[Json], sizes: Mapping[str, int], bounds: Mapping[str, Json]) -> str:
    """A shape for people: numbers, and symbols with the bounds they have."""
    parts = []
    for dim, is_open in zip(dims, _open(dims, sizes), strict=True):
        if not is_open:
            parts.append(str(_number(dim, sizes, {})))
            continue
        for symbol in sorted(symbols_of(dim["as_expr"]["expr_str"])):
            limits = bounds.get(symbol, {})
            most = limits.get("max_val")
            parts.append(f"{symbol} ({limits.get('min_val') or 0} to {most or 'any'})")
    return f"[{', '.join(parts)}]"


def _is_of_sizes(node: Json) -> bool:
    """Whether a node computes nothing but sizes, or checks them."""
    outputs = node["outputs"]
    is_size = bool(outputs) and all(not out.keys().isdisjoint(_NUMBERS) for out in outputs)
    return is_size or node["target"] in _CHECKS


def _replaced(item: Any, sizes: Mapping[str, int], values: Mapping[str, Number]) -> Any:
    """The item with numbers where it has sizes, however deep."""
    if isinstance(item, list):
        return [_replaced(part, sizes, values) for part in item]
    if not isinstance(item, dict):
        return item
    if item.keys() == {"as_expr"}:
        return _plain(_number(item, sizes, values))
    for name, plain in _NUMBERS.items():
        if name in item:
            return {plain: _number(item[name], sizes, values)}
    for name, plain in _LISTS.items():
        if name in item:
            return {plain: [_number(part, sizes, values) for part in item[name]]}
    return {key: _replaced(part, sizes, values) for key, part in item.items()}


def _number(item: Json, sizes: Mapping[str, int], values: Mapping[str, Number]) -> Number:
    """The number that one of PyTorch's `SymInt`, `SymIntArgument` ... stands for."""
    if "as_expr" in item:
        return value_of(item["as_expr"]["expr_str"], sizes)
    if "as_name" in item:
        return values[item["as_name"]]
    (value,) = item.values()
    if not isinstance(value, int | float):
        raise BadExpressionError(f"{str(item)[:80]!r} is no number")
    return value


def _plain(value: Number) -> Json:
    kind = (
        "as_bool" if isinstance(value, bool) else "as_int" if isinstance(value, int) else "as_float"
    )
    return {kind: value}


def _bad(name: str, message: str) -> NnfarmError:
    return NnfarmError("compile.bad_option", message, input=name)
