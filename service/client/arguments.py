"""Values of the command's options, from text."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from pydantic import ValidationError

from service.client.messages import RunOn
from service.contracts.nnapi_settings import NnapiSettings
from service.contracts.targets import Abi


def split(text: str) -> list[str]:
    """Items of a comma separated list."""
    return [item.strip() for item in text.split(",") if item.strip()]


def levels(text: str) -> tuple[int, ...]:
    """Feature levels of `--levels`."""
    return tuple(_int(level, "--levels") for level in split(text))


def abis(text: str) -> tuple[Abi, ...]:
    """ABIs of `--abi`."""
    return tuple(_abi(name) for name in split(text))


def run_on(text: str) -> RunOn:
    """Devices of `--run-on`."""
    match text:
        case "none" | "any" | "all":
            return text
    ids = tuple(split(text))
    if not ids:
        raise typer.BadParameter("--run-on: give none, any, all or device ids")
    return ids


def input_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of `--input-shape`, by input."""
    found = (_assignment(text, "SIZE,SIZE,...") for text in texts)
    return {
        name: tuple(_int(size, "--input-shape") for size in split(shape)) for name, shape in found
    }


def nnapi_settings(texts: Sequence[str]) -> NnapiSettings:
    """Settings of `--nnapi`."""
    given = dict(_assignment(text, "VALUE") for text in texts)
    try:
        return NnapiSettings.model_validate({k.replace("-", "_"): v for k, v in given.items()})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("_", "-")
        raise typer.BadParameter(f"--nnapi {name}: {first['msg']}") from None


def _assignment(text: str, value: str) -> tuple[str, str]:
    name, separator, given = text.rpartition("=")
    if not separator or not name:
        raise typer.BadParameter(f"{text!r} is not NAME={value}")
    return name, given


def _int(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: {text!r} is not a number") from None


def _abi(text: str) -> Abi:
    try:
        return Abi(text)
    except ValueError:
        raise typer.BadParameter(f"--abi: {text!r} is not one of {', '.join(Abi)}") from None
