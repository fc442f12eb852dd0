"""Celery task names and queues. Tasks are sent by name and carry ids only."""

from __future__ import annotations

COMPILE_TASK = "nnfarm.compile"
"""Arguments: (compilation_id: str,)."""

QUANTIZE_TASK = "nnfarm.quantize"
"""Arguments: (quantization_id: str,)."""

TUNE_TASK = "nnfarm.tune"
"""Arguments: (tuning_id: str,)."""

COMPILE_QUEUE = "compile"
"""Every kind of job of the compile workers: a worker serves them all."""
