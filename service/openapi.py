"""Writes the OpenAPI document: ``python -m service.openapi FILE``.

The golden copy is ``tests/service/golden/openapi.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import SecretStr

from service.app import create_app
from service.settings import Settings


def render_document() -> str:
    """The document as text that changes only when the API does."""
    settings = Settings(
        secret_key=SecretStr("only for the document"),
        worker_token=SecretStr("only for the document"),
        agent_token=SecretStr("only for the document"),
        compiler_version="none",
    )
    return json.dumps(create_app(settings).openapi(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_document())
