"""Settings of a package, in the player's own words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from service.contracts.nnapi_settings import Buffers, Compute, NnapiSettings, Preference, Priority

SET = """
import ctypes, sys, tvm_ffi
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
for setting in sys.argv[2:]:
    tvm_ffi.get_global_func("nnfarm.nnapi.set_option")(*setting.split("=", 1))
"""

EACH = [
    *({"device": f"{choice}"} for choice in ("npu", "not:npu", "type:gpu", "type:accelerator")),
    *({"preference": value} for value in Preference),
    *({"priority": value} for value in Priority),
    *({"compute": value} for value in Compute),
    *({"buffers": value} for value in Buffers),
    {"compile_timeout_ms": 0, "execute_timeout_ms": 24 * 3600 * 1000},
]


def test_the_player_takes_every_setting(player_library: Path) -> None:
    settings = [NnapiSettings.model_validate(given).to_manifest() for given in EACH]
    assert all(settings)
    words = [f"{name}={value}" for each in settings for name, value in each.items()]
    result = subprocess.run(
        [sys.executable, "-c", SET, str(player_library), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    tried = {name.replace("-", "_") for each in settings for name in each}
    assert tried == set(NnapiSettings.model_fields)


@pytest.mark.parametrize("given", [{"device": "type:tpu"}, {"compute": "fast"}, {"speed": 1}])
def test_what_the_player_would_refuse_is_refused_first(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        NnapiSettings.model_validate(given)
