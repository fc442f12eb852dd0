"""The key of a job's result: the address of everything that shapes it."""

from __future__ import annotations

import hashlib
import json

from service.contracts.artifacts import Sha256


def content_key(**facts: object) -> Sha256:
    """Address of facts (JSON values); see DESIGN, "Reproducible"."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
