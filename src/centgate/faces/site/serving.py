"""The website as a standalone server that regularly reads the API again."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from urllib.parse import quote

import structlog
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from centgate.client.catalog import CatalogUnread
from centgate.connection_limits import LimitedConfig
from centgate.faces import verification
from centgate.faces.negotiation import named
from centgate.faces.site.deployment import Deployment, read_deployment
from centgate.faces.site.discovery import link_header
from centgate.faces.site.file import PLAIN, File
from centgate.faces.site.files import all_files
from centgate.faces.site.policy import safety
from centgate.faces.verification import VerificationFile
from centgate.server import ReadyServer, connection_limits, open_listener
from centgate.settings import Settings

FRESH = 30.0
"""Seconds between two readings of the API."""
STOP_WITHIN = 5
"""Seconds allowed for open connections to finish after SIGTERM."""

_HTML, _MARKDOWN, _PLAIN = "text/html", "text/markdown", "text/plain"


class Window:
    """The website's files as of the latest reading of the API. Requests never wait for a reading."""

    def __init__(self, api: str, deployment: Deployment, own: Sequence[VerificationFile]) -> None:
        self._api = api
        self._own = own
        self.deployment = deployment
        self.files = all_files(deployment, own)

    async def keep_fresh(self, every: float) -> None:
        """Read the API repeatedly, in a thread; log failures and continue."""
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(self.read_again)
            except Exception:  # noqa: BLE001 - outermost handler of this task; the site stays unchanged
                structlog.get_logger().exception("could not update the website")

    def read_again(self) -> None:
        """Update the files from the API; on failure keep the old content and mark the API as unreachable."""
        try:
            deployment = read_deployment(self._api, self.deployment.site)
            files = all_files(deployment, self._own)
        except CatalogUnread as error:
            structlog.get_logger().warning("could not read the API", error=str(error))
            deployment = self.deployment.lost(datetime.now(UTC))
            files = all_files(deployment, self._own)
        self.files, self.deployment = files, deployment


def site_app(
    api: str, deployment: Deployment, *, own: Sequence[VerificationFile] = (), every: float = FRESH
) -> Starlette:
    """Return the website as an ASGI application; `own` are the operator's files under `/.well-known/`."""
    window = Window(api, deployment, own)

    async def endpoint(request: Request) -> Response:
        return _file_response(request, window)

    async def method_not_allowed(_request: Request, _error: Exception) -> Response:
        headers = {"Allow": "GET, HEAD", **safety(window.deployment)}
        return Response("Only GET and HEAD are supported.\n", 405, headers, _PLAIN)

    async def server_error(request: Request, _error: Exception) -> Response:
        return _error_page(request, window, 500)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        updates = asyncio.create_task(window.keep_fresh(every))
        yield
        updates.cancel()
        with suppress(asyncio.CancelledError):
            await updates

    return Starlette(
        routes=[Route("/{path:path}", endpoint)],
        middleware=[Middleware(GZipMiddleware, minimum_size=500, compresslevel=6)],
        exception_handlers={405: method_not_allowed, 500: server_error},
        lifespan=lifespan,
    )


def _file_response(request: Request, window: Window) -> Response:
    files, path = window.files, str(request.scope["path"])
    file = files.get(path)
    if file is None:
        return _canonical_redirect(request, files) or _error_page(request, window, 404)
    if path in ("/404.html", "/500.html"):
        return _error_page(request, window, 404)
    if file.alternate and file.media_type.startswith(_HTML):
        accept = request.headers.get("accept", "")
        file = files[file.alternate] if named(accept, (_MARKDOWN,), _HTML) == _MARKDOWN else file
    headers = headers_of(file, window.deployment)
    if _has_tag(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers)


def _canonical_redirect(request: Request, files: Mapping[str, File]) -> Response | None:
    """Redirect variants of an existing path (`/index.html`, trailing slash) to its canonical form."""
    path = str(request.scope["path"])
    canonical = path.removesuffix("index.html").rstrip("/") or "/"
    if canonical not in files:
        return None
    query = request.scope["query_string"].decode("latin-1")
    return Response(status_code=308, headers={"Location": quote(canonical) + (f"?{query}" if query else "")})


def _error_page(request: Request, window: Window, status: int) -> Response:
    """Return an error page in the format that the client prefers: Markdown, HTML or plain text."""
    kind = named(request.headers.get("accept", ""), (_MARKDOWN, _HTML), _PLAIN)
    file = window.files[f"/{status}.html" if kind == _HTML else f"/{status}.md"]
    media_type = file.media_type if kind != _PLAIN else PLAIN
    headers = {"Content-Type": media_type, "Cache-Control": "no-store", "Vary": "Accept"}
    return Response(file.content, status, headers | safety(window.deployment))


def _has_tag(request: Request, tag: str) -> bool:
    """Return True if `If-None-Match` contains the tag (RFC 9110 section 13.1.2)."""
    tags = [each.strip() for each in request.headers.get("if-none-match", "").split(",")]
    return "*" in tags or tag in tags or tag.removeprefix("W/") in tags


def headers_of(file: File, deployment: Deployment) -> dict[str, str]:
    """Return the response headers of a file. The ETag is weak, as middleware may compress the content."""
    return {
        "Content-Type": file.media_type,
        "Cache-Control": "public, max-age=60",
        "ETag": f'W/"{hashlib.sha256(file.content).hexdigest()[:20]}"',
        "Link": ", ".join([*_page_links(file, deployment), link_header(deployment)]),
        "Access-Control-Allow-Origin": "*",
        **({"Vary": "Accept"} if file.alternate else {}),
        **safety(deployment),
    }


def _page_links(file: File, deployment: Deployment) -> list[str]:
    """Return the alternate and canonical links of a page."""
    if not file.alternate:
        return []
    is_page = file.media_type.startswith(_HTML)
    page, markdown = (file.path, file.alternate) if is_page else (file.alternate, file.path)
    canonical = f'<{deployment.site}{page}>; rel="canonical"'
    return [f'<{markdown}>; rel="alternate"; type="{_MARKDOWN}"', canonical] if is_page else [canonical]


def run_site(api: str, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises CatalogUnread if the API cannot be read at start-up."""
    own = verification.files(settings.well_known)
    listener, settings = open_listener(settings)
    with listener:
        address = settings.site_url or settings.model_copy(update={"public_url": None}).base_url
        config = LimitedConfig(
            site_app(api, read_deployment(api, address), own=own),
            connection_limits(settings),
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=STOP_WITHIN,
        )
        ReadyServer(config, settings).run(sockets=[listener])
