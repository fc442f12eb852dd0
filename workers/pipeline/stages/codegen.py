"""Codegen: regions become runtime modules inside the Relax module (TVM's BYOC)."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import tvm
import tvm_ffi

from service.contracts.errors import NnfarmError
from workers.backends.base import Backend, Encoding
from workers.pipeline.stages.partition import Partition, to_module


def codegen(
    partition: Partition, backend: Backend, player_library: Path
) -> tuple[tvm.IRModule, Encoding]:
    """Encode the regions and attach their runtime modules to the Relax module.

    Args:
        partition: a graph's split; `backend` made the claims.
        backend: encodes the regions.
        player_library: host build of the player, whose class carries the bytes.
    """
    encoding = backend.encode(partition.regions, partition.feature_level)
    module = to_module(partition.graph, partition.regions)
    if not encoding.regions:
        return module, encoding
    _load_player(player_library)
    externals = [
        tvm_ffi.get_global_func(f"{region.module_kind}.module_create")(region.module_bytes.decode())
        for region in encoding.regions
    ]
    return module.with_attr("external_mods", externals), encoding


@cache
def _load_player(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise NnfarmError(
            "bug.internal", f"The player library is not built or does not load: {error}"
        ) from error
