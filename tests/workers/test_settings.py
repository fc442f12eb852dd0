import platform
from pathlib import Path

import pytest
from pydantic import ValidationError

from workers.settings import WorkerSettings


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNFARM_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("NNFARM_WORKER_TOKEN", "a-long-token")
    monkeypatch.setenv("NNFARM_NATIVE_DIR", "/opt/native")
    monkeypatch.setenv("NNFARM_JOB_CPU_S", "7")
    settings = WorkerSettings()
    assert settings.url == "http://127.0.0.1:1"
    assert settings.limits.cpu_s == 7
    assert settings.limits.memory_bytes == 8 << 30
    player = f"/opt/native/runtime/linux-{platform.machine()}/libnnfarm_nnapi.so"
    assert settings.player_library == Path(player)
    assert "a-long-token" not in repr(settings)


def test_token_has_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NNFARM_WORKER_TOKEN", raising=False)
    with pytest.raises(ValidationError, match="worker_token"):
        WorkerSettings()


@pytest.mark.parametrize("name", ["JOB_MEMORY_BYTES", "JOB_WALL_S", "HEARTBEAT_INTERVAL_S"])
def test_limits_are_positive(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NNFARM_WORKER_TOKEN", "a-long-token")
    monkeypatch.setenv(f"NNFARM_{name}", "0")
    with pytest.raises(ValidationError, match="greater than 0"):
        WorkerSettings()
