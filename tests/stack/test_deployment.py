"""docker-compose.yml speaks of settings that exist."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import AliasChoices
from pydantic_settings import BaseSettings

from device_farm.settings import FarmSettings
from service.settings import Settings
from workers.settings import WorkerSettings

PROJECT_DIR = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((PROJECT_DIR / "docker-compose.yml").read_text())
    return content


def names_of(settings: type[BaseSettings]) -> set[str]:
    """Environment variables a settings class reads."""
    prefix = settings.model_config.get("env_prefix", "")
    names = set[str]()
    for name, field in settings.model_fields.items():
        match field.validation_alias:
            case None:
                names.add(f"{prefix}{name}".upper())
            case AliasChoices(choices=choices):
                names |= {str(choice).upper() for choice in choices}
            case alias:
                names.add(str(alias).upper())
    return names


@pytest.mark.parametrize(
    ("part", "settings"),
    [("service", Settings), ("worker", WorkerSettings), ("agent", FarmSettings)],
)
def test_every_setting_exists(
    compose: dict[str, Any], part: str, settings: type[BaseSettings]
) -> None:
    used = set(compose["services"][part]["environment"])
    assert used
    assert used <= names_of(settings)


@pytest.mark.parametrize("part", ["service", "worker", "agent"])
def test_parts_share_one_image_and_wait_for_what_they_need(
    compose: dict[str, Any], part: str
) -> None:
    definition = compose["services"][part]
    assert definition["build"]["dockerfile"] == "docker/Dockerfile"
    needs = definition["depends_on"]
    assert needs
    for need, terms in needs.items():
        assert terms == {"condition": "service_healthy"}
        assert "healthcheck" in compose["services"][need]


def test_no_secret_is_written_down(compose: dict[str, Any]) -> None:
    for definition in compose["services"].values():
        for name, value in definition.get("environment", {}).items():
            if name.endswith(("_TOKEN", "_KEY", "_PASSWORD")):
                assert "${NNFARM_" in value, f"{name} must come from outside"


def _has_compose() -> bool:
    docker = shutil.which("docker")
    if docker is None:
        return False
    answer = subprocess.run([docker, "compose", "version"], check=False, capture_output=True)
    return answer.returncode == 0


@pytest.mark.skipif(not _has_compose(), reason="Docker Compose is not installed here")
def test_compose_accepts_the_file() -> None:
    environment = PROJECT_DIR / "docker" / "example.env"
    secrets = [f"{line}secret" for line in environment.read_text().splitlines() if line[-1:] == "="]
    command = ["docker", "compose", "-f", str(PROJECT_DIR / "docker-compose.yml"), "config", "-q"]
    subprocess.run(["env", *secrets, *command], check=True, capture_output=True)
