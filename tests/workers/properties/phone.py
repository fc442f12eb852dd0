"""A phone with a device of every feature level, and the comparison with ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from service.contracts.targets import MAX_FEATURE_LEVEL, MIN_FEATURE_LEVEL

Array = NDArray[Any]
REPOSITORY = Path(__file__).parents[3]
LEVELS = tuple(range(MIN_FEATURE_LEVEL, MAX_FEATURE_LEVEL + 1))
FLOAT_TOLERANCE = 1e-4
"""Of the largest output."""


@dataclass(frozen=True)
class Answer:
    """What became of a model at one level.

    Attributes:
        operations: ONNX operators of the report's rows.
        rejected: those of them that stay on the CPU for a reason.
        needed_levels: level of each subgraph.
        lowered: NNAPI operations of all subgraphs.
        documents: encoded subgraphs.
        accelerators: of each row of the report, None for the CPU.
        outputs: of the model, or None where nothing was offloaded.
    """

    operations: tuple[str, ...]
    rejected: tuple[str, ...]
    needed_levels: tuple[int, ...]
    lowered: tuple[str, ...]
    documents: tuple[str, ...]
    accelerators: tuple[str | None, ...]
    outputs: tuple[Array, ...] | None


class Phone:
    """One child process that compiles and plays; it is started anew after a crash.

    Args:
        folder: for models and answers.
        player: the player library.
        simulator: folder of libneuralnetworks.so.
        accelerators: those asked for, the most wanted first.
        packages: a folder of Python packages to have beside the installed ones.
    """

    def __init__(
        self,
        folder: Path,
        player: Path,
        simulator: Path,
        accelerators: Sequence[str] = ("nnapi",),
        packages: Path | None = None,
    ) -> None:
        self._folder = folder
        self._player = player
        self._accelerators = list(accelerators)
        profile = folder / "profile.conf"
        devices = [f"device level-{n} cpu 1.0 {n}" for n in LEVELS]
        profile.write_text("\n".join([f"feature_level {MAX_FEATURE_LEVEL}", *devices, ""]))
        self._environment = os.environ | {
            "LD_LIBRARY_PATH": str(simulator),
            "NNFARM_SIM_PROFILE": str(profile),
        }
        if packages is not None:
            self._environment["PYTHONPATH"] = str(packages)
        self._log = folder / "child.log"
        self._child: subprocess.Popen[str] | None = None

    def run(self, model: onnx.ModelProto, inputs: Mapping[str, Array], level: int) -> Answer:
        """Compile a model for a level and run it on the device of that level.

        Raises:
            AssertionError: a part refused or crashed; the message says how to try again.
        """
        folder = self._written(model, inputs)
        asked = {"folder": str(folder), "level": level, "accelerators": self._accelerators}
        answer = self._ask(asked)
        if "error" in answer:
            raise AssertionError(f"{answer['error']}\n{answer['trace']}\n{replay(folder, level)}")
        outputs = None
        if "outputs" in answer:
            with np.load(answer["outputs"]) as arrays:
                outputs = tuple(arrays[name] for name in arrays.files)
        names = ("operations", "rejected", "needed_levels", "lowered", "documents", "accelerators")
        return Answer(*(tuple(answer[name]) for name in names), outputs=outputs)

    def compare(self, model: onnx.ModelProto, inputs: Mapping[str, Array], level: int) -> Answer:
        """`run`, and what was computed equals what ONNX Runtime computes."""
        answer = self.run(model, inputs, level)
        if answer.outputs is not None:
            folder = self._written(model, inputs)
            for index, (ours, theirs) in enumerate(
                zip(answer.outputs, reference(model, inputs), strict=True)
            ):
                problem = difference(ours, theirs, last_step(model, index))
                assert problem is None, f"output {index}: {problem}\n{replay(folder, level)}"
        return answer

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.communicate(timeout=60)
            self._child = None

    def _written(self, model: onnx.ModelProto, inputs: Mapping[str, Array]) -> Path:
        data = model.SerializeToString(deterministic=True)
        folder = self._folder / hashlib.sha256(data).hexdigest()[:16]
        folder.mkdir(exist_ok=True)
        (folder / "model.onnx").write_bytes(data)
        np.savez(folder / "inputs.npz", **inputs)
        return folder

    def _ask(self, request: Mapping[str, object]) -> dict[str, Any]:
        if self._child is None:
            self._child = self._start()
        stdin, stdout = self._child.stdin, self._child.stdout
        assert stdin is not None
        assert stdout is not None
        print(json.dumps(request), file=stdin, flush=True)
        line = stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = self._child.wait()
        stdin.close()
        stdout.close()
        self._child = None
        return {"error": f"the child died: {code}", "trace": self._log.read_text()[-3000:]}

    def _start(self) -> subprocess.Popen[str]:
        with self._log.open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.compile_and_play", str(self._player)],
                env=self._environment,
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )


def reference(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime computes, node by node as the model says."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    outputs: list[Array] = session.run(None, dict(inputs))
    return outputs


def last_step(model: onnx.ModelProto, output: int) -> float:
    """Scale of the quantization an output comes from, 0 where it is float."""
    name = model.graph.output[output].name
    made_by = {n.output[0]: n for n in model.graph.node}
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    node = made_by.get(name)
    if node is None or node.op_type != "DequantizeLinear":
        return 0.0
    return float(constants[node.input[1]])


def difference(ours: Array, theirs: Array, step: float = 0.0) -> str | None:
    """What is wrong with an output, or None.

    Args:
        ours: as computed on the phone.
        theirs: ONNX Runtime's.
        step: of a quantized output. Both sides round in the chain that leads to it, so two steps
            are allowed.
    """
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
    if not np.issubdtype(ours.dtype, np.floating):
        return None if np.array_equal(ours, theirs) else f"{ours!r} instead of {theirs!r}"
    finite = theirs[np.isfinite(theirs)]
    allowed = 2.01 * step or FLOAT_TOLERANCE * max(np.abs(finite).max(initial=0), 1e-3)
    if np.allclose(ours, theirs, rtol=0, atol=allowed, equal_nan=True):
        return None
    worst = np.nanmax(np.abs(ours - theirs), initial=0)
    return f"off by {worst:.3g} of {allowed:.3g} allowed\nours {ours!r}\ntheirs {theirs!r}"


def replay(folder: Path, level: int) -> str:
    """How to try a failure again: the model in words, and a command."""
    model = onnx.load(folder / "model.onnx")
    command = f"python -m {__package__}.replay {folder} {level}"
    return f"{onnx.printer.to_text(model.graph)}\nTry again with: {command}"
