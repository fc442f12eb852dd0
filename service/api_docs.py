"""The page at ``/docs``: Swagger UI over the OpenAPI document, all of it from this host."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse

OPENAPI_URL = "/openapi.json"

_FOLDER = "swagger-ui"
"""Where the page's build puts the npm package `swagger-ui-dist`."""

_NOT_BUILT = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nnfarm API</title></head>
<body><h1>nnfarm API</h1>
<p>The viewer of the API is part of the dashboard, which is not built. Build it with
<code>make web</code> (or <code>npm ci &amp;&amp; npm run build</code> in <code>web/</code>) and
reload.</p>
<p>The document itself is always at <a href="{OPENAPI_URL}">{OPENAPI_URL}</a>.</p></body></html>
"""


def make_router(web_dir: Path) -> APIRouter:
    """The route of the viewer; its files are served with the page's.

    Args:
        web_dir: the page's build; looked at for every request, so it may be built while we run.
    """
    router = APIRouter(include_in_schema=False)

    @router.get("/docs")
    def show_api() -> HTMLResponse:
        if not web_dir.joinpath(_FOLDER, "swagger-ui-bundle.js").is_file():
            return HTMLResponse(_NOT_BUILT)
        return get_swagger_ui_html(
            openapi_url=OPENAPI_URL,
            title="nnfarm API",
            swagger_js_url=f"/{_FOLDER}/swagger-ui-bundle.js",
            swagger_css_url=f"/{_FOLDER}/swagger-ui.css",
            swagger_favicon_url=f"/{_FOLDER}/favicon-32x32.png",
            # Swagger UI would have the document checked by a validator on another host.
            swagger_ui_parameters={"validatorUrl": None},
        )

    return router
