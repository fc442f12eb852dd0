"""All routes of the service."""

from __future__ import annotations

from fastapi import APIRouter

from service import health
from service.http_errors import PROBLEM_RESPONSES
from service.resources.artifacts import routes as artifacts
from service.resources.blobs import routes as blobs
from service.resources.compilations import routes as compilations
from service.resources.compilations import worker_routes as compile_workers
from service.resources.datasets import routes as datasets
from service.resources.devices import routes as devices
from service.resources.models import routes as models
from service.resources.quantizations import routes as quantizations
from service.resources.quantizations import worker_routes as quantize_workers
from service.resources.runs import routes as runs
from service.resources.runtime_bundles import routes as runtime_bundles
from service.resources.tunings import routes as tunings
from service.resources.tunings import worker_routes as tune_workers


def make_router() -> APIRouter:
    """The whole API; the page's files are not part of it."""
    router = APIRouter(responses=PROBLEM_RESPONSES)
    for part in (
        models.router,
        datasets.router,
        quantizations.router,
        tunings.router,
        compilations.router,
        artifacts.router,
        devices.router,
        runs.router,
        runtime_bundles.router,
        compile_workers.router,
        quantize_workers.router,
        tune_workers.router,
        blobs.router,
        devices.agent_router,
        runs.agent_router,
        runtime_bundles.upload_router,
        health.router,
    ):
        router.include_router(part)
    return router
