"""Inspects one model file: ``python -m service.resources.models.inspection FILE``.

Prints a `ModelSignature` or a `Problem` as JSON. Run it in a process of its own: the file is
untrusted and its parser is C++.
"""

from __future__ import annotations

import argparse
import resource
import sys
from pathlib import Path

from service.contracts.errors import NnfarmError
from service.contracts.jobs import ModelFormat
from service.contracts.tensors import ModelSignature
from service.resources.models.formats import format_of


def main(arguments: list[str] | None = None) -> int:
    """Inspect the file under limits; exit code 0 unless a limit or a crash ended it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--memory-bytes", type=int, default=4 << 30)
    parser.add_argument("--cpu-s", type=int, default=60)
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (options.memory_bytes, options.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (options.cpu_s, options.cpu_s))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        answer = inspect_file(options.file).model_dump_json()
    except NnfarmError as error:
        answer = error.to_problem().model_dump_json()
    except MemoryError:
        problem = NnfarmError("model.unreadable", "Reading the model needs too much memory.")
        answer = problem.to_problem().model_dump_json()
    sys.stdout.write(answer)
    return 0


def inspect_file(path: Path) -> ModelSignature:
    """Check a model and give its signature.

    Raises:
        NnfarmError: a ``model.*`` code.
    """
    if path.stat().st_size == 0:
        raise NnfarmError("model.empty", "The model file has 0 bytes.")
    # Imported after the limits are set: loading the parser is part of what they bound.
    match format_of(path):
        case ModelFormat.TFLITE:
            from service.resources.models.tflite_model import inspect_tflite

            return inspect_tflite(path)
        case ModelFormat.PYTORCH:
            from service.resources.models.pytorch_model import inspect_pytorch

            return inspect_pytorch(path)
        case ModelFormat.ONNX:
            from service.resources.models.onnx_model import inspect_onnx

            return inspect_onnx(path)


if __name__ == "__main__":
    sys.exit(main())
