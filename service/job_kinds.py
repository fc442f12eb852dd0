"""All kinds of job; what time does to jobs is done to each."""

from __future__ import annotations

from typing import Any

from service.jobs.kind import JobKind
from service.resources.compilations.kind import COMPILATION
from service.resources.quantizations.kind import QUANTIZATION
from service.resources.tunings.kind import TUNING

JOB_KINDS: tuple[JobKind[Any], ...] = (COMPILATION, QUANTIZATION, TUNING)
