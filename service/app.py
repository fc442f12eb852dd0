"""The ASGI application, and ``python -m service.app`` to serve it."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from pydantic import ValidationError

from service import __version__, api, api_docs, http_errors, web
from service.bell import Bell
from service.body_limit import BodyLimit
from service.components import Components
from service.db import Database
from service.outbox import Dispatcher, celery_publisher
from service.settings import Settings
from service.storage.store import open_store
from service.sweeper import Sweeper
from service.tokens import TokenSigner

_DESCRIPTION = """Compiles neural networks for Android's NNAPI and measures them on phones.

Errors are `application/problem+json`; `code` is stable, `error_class` says whose turn it is. Lists
take `limit` and `cursor` and answer `items`, newest first, and `next_cursor`.
"""


def create_app(settings: Settings) -> FastAPI:
    """The application; nothing is opened before its lifespan begins."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        components = open_components(settings)
        components.database.upgrade()
        publish = celery_publisher(settings.redis_url)
        dispatcher = Dispatcher(components.database, components.bell, publish)
        sweeper = Sweeper(components.database, settings)
        app.state.components = components
        dispatcher.start()
        sweeper.start()
        try:
            yield
        finally:
            sweeper.stop()
            dispatcher.stop()
            components.database.close()

    app = FastAPI(
        title="nnfarm",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        openapi_url=api_docs.OPENAPI_URL,
        docs_url=None,  # FastAPI's own viewers load their scripts from other hosts
        redoc_url=None,
    )
    app.add_middleware(BodyLimit, limit_bytes=settings.max_body_bytes)
    http_errors.install(app)
    app.include_router(api.make_router())
    app.include_router(api_docs.make_router(settings.web_dir))
    app.include_router(web.make_router(settings.web_dir))
    return app


def open_components(settings: Settings) -> Components:
    """Everything requests work with, made from the settings."""
    bell = Bell()
    return Components(
        settings=settings,
        bell=bell,
        database=Database(settings.database_url, bell),
        blobs=open_store(settings.blob_url, settings.s3_endpoint_url),
        tokens=TokenSigner(settings.secret_key.get_secret_value(), settings.token_lifetime_s),
    )


def main() -> int:
    """Serve until a signal says stop; exit code 2 for settings that are missing or wrong."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = Settings()
    except ValidationError as error:
        for mistake in error.errors():
            name = "NNFARM_" + "_".join(map(str, mistake["loc"])).upper()
            sys.stderr.write(f"{name}: {mistake['msg']}\n")
        return 2
    # Streams of events may stay open for hours: a stop waits for them only this long.
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
