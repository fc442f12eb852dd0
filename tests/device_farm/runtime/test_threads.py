"""Several models in threads, all of it built with ThreadSanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from device_farm.runtime import build

HERE = Path(__file__).parent
GCC = ("gcc", "-std=gnu11", "-O1", "-g", "-fsanitize=thread")


@pytest.mark.gcc
def test_no_data_race_between_models(package: Any, tmp_path: Path) -> None:
    bundle = build.build("thread-sanitize")
    library, program = tmp_path / "libfault.so", tmp_path / "several_models"
    compile_c("-shared", "-fPIC", HERE / "fault_nnapi.c", "-o", library)
    link = ("-L", bundle, "-lnnfarm_runtime", f"-Wl,-rpath,{bundle}", "-pthread")
    compile_c("-I", bundle, HERE / "several_models.c", "-o", program, *link)
    result = subprocess.run(
        [program, package.folder, library],
        env={"TSAN_OPTIONS": "halt_on_error=0 exitcode=66"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "ThreadSanitizer" not in result.stderr, result.stderr[:6000]
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def compile_c(*arguments: str | Path) -> None:
    subprocess.run([*GCC, *(str(word) for word in arguments)], check=True)
