"""Accelerators by name.

A package of its own can bring one: an entry point of group `nnfarm.accelerators`, whose name is the
accelerator's and whose object takes a `Precision` and returns a `Backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points

from service.contracts.errors import NnfarmError
from service.contracts.jobs import Precision
from workers.backends.base import Backend
from workers.backends.nnapi.backend import NnapiBackend
from workers.backends.preference import Preference

ENTRY_POINTS = "nnfarm.accelerators"

_OWN: Mapping[str, Callable[[Precision], Backend]] = {NnapiBackend.name: NnapiBackend}


def require_known(names: Sequence[str]) -> None:
    """Check accelerators asked for.

    Raises:
        NnfarmError: `compile.bad_option`, none, one twice, or one nobody registered.
    """
    if not names:
        raise NnfarmError("compile.bad_option", "At least one accelerator is needed.")
    known = (*_OWN, *sorted(_registered()))
    for index, name in enumerate(names):
        if name not in known:
            raise NnfarmError(
                "compile.bad_option",
                f"There is no accelerator {name!r}; there are: {', '.join(known)}.",
                accelerator=name,
            )
        if name in names[:index]:
            raise NnfarmError(
                "compile.bad_option", f"Accelerator {name!r} was named twice.", accelerator=name
            )


def make_backend(names: Sequence[str], precision: Precision) -> Backend:
    """A fresh backend: it keeps what it claimed until it has encoded it.

    Args:
        names: accelerators, the most wanted first; `require_known` took them.
        precision: how float32 tensors are computed.
    """
    backends = [_factory(name)(precision) for name in names]
    return backends[0] if len(backends) == 1 else Preference(backends)


def _factory(name: str) -> Callable[[Precision], Backend]:
    return _OWN[name] if name in _OWN else _registered()[name]


@cache
def _registered() -> Mapping[str, Callable[[Precision], Backend]]:
    """Loaded at the first use and not at import: a broken package harms who asks for it only."""
    return {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}
