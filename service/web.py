"""Serves the built page, if there is one."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from service.contracts.errors import NnfarmError

_PAGES = ("", "compilations", "devices", "models", "upload")
"""First parts of addresses that the page itself routes; they all get index.html."""

_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nnfarm</title></head>
<body><h1>nnfarm</h1>
<p>The service runs; the dashboard is not built. Build it with <code>make web</code>
(or <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code>) and reload.</p>
<p>The API is described at <a href="/docs">/docs</a>.</p></body></html>
"""


class _PageRoute(APIRoute):
    """The route of all paths nobody else has: to other methods than its own, it is not there.

    Otherwise every unknown path would exist, and refuse the method with 405.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child_scope = super().matches(scope)
        return (match, child_scope) if match is Match.FULL else (Match.NONE, {})


def make_router(web_dir: Path) -> APIRouter:
    """Routes for everything the API has not taken; include it last.

    Args:
        web_dir: the page's build; looked at for every request, so it may be built while we run.
    """
    router = APIRouter(include_in_schema=False, route_class=_PageRoute)

    @router.api_route("/{path:path}", methods=["GET", "HEAD"])
    def show_page(path: str) -> Response:
        root = web_dir.resolve()
        file = root.joinpath(path).resolve()
        if path and file.is_relative_to(root) and file.is_file():
            # The build puts a hash into these names: such a file never changes.
            is_hashed = file.parent.name == "assets"
            control = "public, max-age=31536000, immutable" if is_hashed else "no-cache"
            return FileResponse(file, headers={"Cache-Control": control})
        if path.split("/")[0] not in _PAGES:
            raise NnfarmError("request.not_found", f"There is nothing at /{path}.")
        index = root / "index.html"
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT)
        return FileResponse(index, headers={"Cache-Control": "no-cache"})

    return router
