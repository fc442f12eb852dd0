"""Backends by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.contracts.jobs import Precision
from workers.backends.base import Backend
from workers.backends.nnapi.backend import NnapiBackend

BACKENDS: Mapping[str, Callable[[Precision], Backend]] = {"nnapi": NnapiBackend}
"""A fresh backend for each artifact: a backend keeps what it claimed until it has encoded it."""
