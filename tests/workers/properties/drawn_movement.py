"""Drawn operations that only move data."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np

from tests.workers.properties.drawing import Drawing

MIRRORS = ("reflect", "edge")


def reshape(d: Drawing) -> None:
    name, shape = d.pick()
    size = math.prod(shape)
    first = d.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    target = d.draw(st.sampled_from(((first, -1), (-1,), (1, first, -1), (first, 1, -1, 1))))
    d.keep(*d.node("Reshape", [name, d.int64(*target)]))


def transpose(d: Drawing) -> None:
    name, shape = d.pick(2, 3, 4)
    d.keep(*d.node("Transpose", [name], perm=d.draw(st.permutations(range(len(shape))))))


def flatten(d: Drawing) -> None:
    name, shape = d.pick(2, 3, 4)
    d.keep(*d.node("Flatten", [name], axis=d.draw(st.integers(0, len(shape)))))


def squeeze(d: Drawing) -> None:
    name, shape = d.pick()
    ones = [axis for axis, n in enumerate(shape) if n == 1]
    if ones and len(shape) > 1:
        d.keep(*d.node("Squeeze", [name, d.int64(d.draw(st.sampled_from(ones)))]))


def unsqueeze(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3)
    axis = d.draw(st.integers(-len(shape) - 1, len(shape)))
    d.keep(*d.node("Unsqueeze", [name, d.int64(axis)]))


def concat(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    axis = d.draw(st.integers(0, len(shape) - 1))
    other = list(shape)
    other[axis] = d.draw(st.integers(1, 3))
    kind = d.draw(st.sampled_from(("self", "input", "constant")))
    second = {"self": lambda: name, "input": lambda: d.input(other)}.get(
        kind, lambda: d.weights(*other)
    )()
    names = [name, second] if d.draw(st.booleans()) else [second, name]
    d.keep(*d.node("Concat", names, axis=axis))


def split(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    axes = [axis for axis, n in enumerate(shape) if n > 1]
    if not axes:
        return
    axis = d.draw(st.sampled_from(axes))
    first = d.draw(st.integers(1, shape[axis] - 1))
    sizes = d.int64(first, shape[axis] - first)
    d.keep(*d.node("Split", [name, sizes], outputs=2, axis=axis))


def slice_(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    axis = d.draw(st.integers(0, len(shape) - 1))
    size = shape[axis]
    begin = d.draw(st.integers(0, size - 1))
    if d.draw(st.booleans()):
        step, end = d.draw(st.integers(1, 3)), d.draw(st.integers(begin + 1, size + 3))
    else:
        step, end = -d.draw(st.integers(1, 2)), -(size + 1)
    bounds = [d.int64(v) for v in (begin, end, axis, step)]
    d.keep(*d.node("Slice", [name, *bounds]))


def pad(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    mode = d.draw(st.sampled_from(("constant", *MIRRORS)))
    limits = [min(2, n - 1) if mode == "reflect" else 2 for n in shape] * 2
    names = [name, d.int64(*(d.draw(st.integers(0, most)) for most in limits))]
    if mode == "constant" and d.draw(st.booleans()):
        names.append(d.constant(np.float32(1.5)))
    d.keep(*d.node("Pad", names, mode=mode))


def gather(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3)
    axis = d.draw(st.integers(0, len(shape) - 1))
    index = st.integers(-shape[axis], shape[axis] - 1)
    chosen = np.array(d.draw(st.lists(index, min_size=1, max_size=4)), np.int64)
    is_scalar = len(shape) > 1 and d.draw(st.booleans())
    constant = d.constant(chosen[0] if is_scalar else chosen)
    d.keep(*d.node("Gather", [name, constant], axis=axis))


def tile(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3, 4)
    repeats = d.int64(*(d.draw(st.integers(1, 2)) for _ in shape))
    d.keep(*d.node("Tile", [name, repeats]))


def expand(d: Drawing) -> None:
    name, shape = d.pick(1, 2, 3)
    target = [d.draw(st.integers(2, 3)) if n == 1 else n for n in shape]
    target = [2, *target] if d.draw(st.booleans()) else target
    d.keep(*d.node("Expand", [name, d.int64(*target)]))


def top_k(d: Drawing) -> None:
    name, shape = d.pick_exact(1, 2, 3)
    axis = d.draw(st.integers(0, len(shape) - 1))
    count = d.int64(d.draw(st.integers(1, shape[axis])))
    largest = d.draw(st.integers(0, 1))
    values, _ = d.node("TopK", [name, count], outputs=2, axis=axis, largest=largest)
    d.keep(values)


MOVEMENT = (
    *(reshape, transpose, flatten, squeeze, unsqueeze, concat, split, slice_, pad, gather),
    *(tile, expand, top_k),
)
