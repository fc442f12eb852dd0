"""The fixture service's state, and how tests steer it."""

from __future__ import annotations

from typing import Any

import fixture_data as data
import fixture_quantizations as made
import fixture_tunings as tuned
from fastapi import APIRouter
from fixture_bench import DEVICES
from fixture_runs import RUNS

from service.resources.compilations.schemas import Compilation
from service.resources.models.schemas import Model


class Farm:
    """What the fixture service holds."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.compilations = data.compilations()
        self.runs = dict(RUNS)
        self.devices = dict(DEVICES)
        self.models: dict[str, Model] = made.models()
        self.quantizations = made.quantizations()
        self.tunings = tuned.tunings()
        self.requests: list[dict[str, Any]] = []
        self.token = ""
        self.events: list[dict[str, Any]] = []
        self.resumed_from: list[str | None] = []
        self.generation = 0
        self.refusing = False


farm = Farm()
steering = APIRouter(prefix="/_fixture", include_in_schema=False)


@steering.post("/reset")
async def reset(empty: bool = False, token: str = "") -> None:
    farm.generation += 1
    generation = farm.generation
    farm.reset()
    farm.generation, farm.token = generation, token
    if empty:
        farm.compilations, farm.devices = {}, {}
        farm.models, farm.quantizations, farm.tunings = {}, [], []


@steering.post("/events")
async def append_event(event: dict[str, Any]) -> None:
    """Append `{event, data}`; progress and status also change the running compilation."""
    farm.events.append(event)
    if event["event"] in ("progress", "status"):
        keys = {"stage", "done", "total", "status"}
        change = {key: value for key, value in event["data"].items() if key in keys}
        before = farm.compilations[data.RUNNING].model_dump(mode="json")
        farm.compilations[data.RUNNING] = Compilation.model_validate({**before, **change})


@steering.post("/cut")
async def cut(refuse: bool = False) -> None:
    """End every open event stream; with `refuse`, turn new ones away too."""
    farm.generation += 1
    farm.refusing = refuse


@steering.get("/seen")
async def seen() -> dict[str, Any]:
    return {"resumed_from": farm.resumed_from, "requests": farm.requests}
