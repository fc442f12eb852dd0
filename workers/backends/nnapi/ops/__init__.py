"""NNAPI operations, one file each or one a family; a new file here is found by itself.

Each module names its operations in `OPERATIONS`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from workers.backends.nnapi.operation import Operation


@cache
def operations() -> tuple[Operation, ...]:
    """Every operation of every module of this package, in the modules' alphabetical order."""
    names = sorted(m.name for m in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(op for module in modules for op in module.OPERATIONS)
