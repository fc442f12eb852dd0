"""Subgraphs put into a folder for play.py, and the child that runs them on the simulator."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from workers.backends.base import Encoding, Region
from workers.backends.nnapi.encode import WEIGHTS_FILE
from workers.graph.graph import dtype_of, static_shape

REPOSITORY = Path(__file__).parents[4]


def write_subgraph(
    folder: Path, name: str, encoding: Encoding, region: Region, inputs: Mapping[str, np.ndarray]
) -> None:
    """Put the first subgraph of an artifact into the folder.

    Args:
        folder: of one `play`.
        name: unique in it.
        encoding: the artifact's.
        region: its first region.
        inputs: arrays by the names of the region's input variables.
    """
    (folder / f"{name}.json").write_bytes(encoding.regions[0].module_bytes)
    (folder / f"{name}.weights").write_bytes(encoding.files.get(WEIGHTS_FILE, b""))
    arrays = {f"i{k}": inputs[var.name] for k, var in enumerate(region.inputs)}
    for k, var in enumerate(region.outputs):
        arrays[f"o{k}"] = np.zeros(static_shape(var) or (), dtype_of(var))
    np.savez(folder / f"{name}.npz", **arrays)


def play(folder: Path, player_library: Path, simulator_dir: Path) -> None:
    """Run all subgraphs of a folder on the simulator, in a child process for LD_LIBRARY_PATH."""
    (folder / "player.txt").write_text(str(player_library))
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("play.py")), str(folder)],
        env=os.environ | {"LD_LIBRARY_PATH": str(simulator_dir)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,  # the assertion shows the child's own words
    )
    assert result.returncode == 0, result.stderr[-3000:]


def answers(folder: Path, name: str) -> list[np.ndarray]:
    """Outputs of a subgraph that was played."""
    error = folder / f"{name}.error"
    assert not error.exists(), error.read_text()
    with np.load(folder / f"{name}.out.npz") as arrays:
        return [arrays[k] for k in arrays.files]
