"""Bounds JSON bodies, which are read whole into memory. Uploads have limits of their own."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.contracts.errors import NnfarmError
from service.http_errors import problem_response

_STREAMED = ("/v1/models", "/v1/datasets", "/internal/v1/blobs/", "/internal/v1/runtime-bundles")


class BodyLimit:
    """ASGI middleware: answers 413 as soon as a body grows over the limit."""

    def __init__(self, app: ASGIApp, limit_bytes: int) -> None:
        self._app = app
        self._limit_bytes = limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting its body."""
        if scope["type"] != "http" or scope["path"].startswith(_STREAMED):
            await self._app(scope, receive, send)
            return
        received = 0

        async def count() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit_bytes:
                raise _BodyTooLargeError
            return message

        try:
            await self._app(scope, count, send)
        except _BodyTooLargeError:
            error = NnfarmError(
                "request.too_large",
                f"The body may have {self._limit_bytes} bytes at most.",
                limit_bytes=self._limit_bytes,
            )
            await problem_response(error.to_problem())(scope, receive, send)


class _BodyTooLargeError(BaseException):
    """Not an Exception: FastAPI turns those of a body into an answer of its own."""
