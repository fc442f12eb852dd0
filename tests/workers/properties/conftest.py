from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workers.properties.phone import Phone


@pytest.fixture(scope="session")
def phone(
    tmp_path_factory: pytest.TempPathFactory, player_library: Path, simulator_dir: Path
) -> Iterator[Phone]:
    phone = Phone(tmp_path_factory.mktemp("phone"), player_library, simulator_dir)
    yield phone
    phone.close()
