"""Celery task names and queues. Tasks are sent by name and carry ids only."""

from __future__ import annotations

COMPILE_TASK = "nnfarm.compile"
"""Arguments: (compilation_id: str,)."""

COMPILE_QUEUE = "compile"
