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

from centgate.api import wellknown_files
from centgate.api.content_negotiation import choose_named_type
from centgate.api.documents import has_tag
from centgate.api.wellknown_files import WellKnownFile
from centgate.client.catalog import CatalogUnavailable
from centgate.connection_limits import LimitedConfig
from centgate.server import KEEP_ALIVE_SECONDS, ReadyServer, connection_limits, open_listener
from centgate.settings import Settings
from centgate.website.api_snapshot import ApiSnapshot, read_snapshot
from centgate.website.discovery import site_link_header
from centgate.website.file import PLAIN_TEXT, SiteFile
from centgate.website.files import SEARCH_PATH, build_site, render_search
from centgate.website.security_headers import security_headers

REFRESH_INTERVAL = 30.0
"""Seconds between two readings of the API."""
SHUTDOWN_TIMEOUT = 5
"""Seconds allowed for open connections to finish after SIGTERM."""

_HTML, _MARKDOWN, _PLAIN = "text/html", "text/markdown", "text/plain"


class SiteState:
    """The website's files as of the latest reading of the API. Requests never wait for a reading."""

    def __init__(self, api: str, deployment: ApiSnapshot, operator_files: Sequence[WellKnownFile]) -> None:
        self._api = api
        self._operator_files = operator_files
        self.deployment = deployment
        self.site = build_site(deployment, operator_files)

    @property
    def files(self) -> Mapping[str, SiteFile]:
        """All files by path."""
        return self.site.files

    async def refresh_forever(self, interval: float) -> None:
        """Read the API repeatedly, in a thread; log failures and continue."""
        while True:
            await asyncio.sleep(interval)
            try:
                await asyncio.to_thread(self.refresh)
            except Exception:  # noqa: BLE001 - outermost handler of this task; the site stays unchanged
                structlog.get_logger().exception("the website could not be updated")

    def refresh(self) -> None:
        """Update the files from the API; on failure keep the old content and mark the API as unreachable."""
        try:
            deployment = read_snapshot(self._api, self.deployment.site)
            site = build_site(deployment, self._operator_files, self.site.versions)
        except CatalogUnavailable as error:
            structlog.get_logger().warning("the API could not be read", error=str(error))
            if self.deployment.unreachable_since:
                return  # the pages say so already
            deployment = self.deployment.as_unreachable(datetime.now(UTC))
            site = build_site(deployment, self._operator_files, self.site.versions)
        self.site, self.deployment = site, deployment


def create_site_app(
    api: str,
    deployment: ApiSnapshot,
    *,
    operator_files: Sequence[WellKnownFile] = (),
    interval: float = REFRESH_INTERVAL,
) -> Starlette:
    """Return the website as an ASGI application; `operator_files` are those under `/.well-known/`."""
    state = SiteState(api, deployment, operator_files)

    async def endpoint(request: Request) -> Response:
        return _file_response(request, state)

    async def method_not_allowed(_request: Request, _error: Exception) -> Response:
        headers = {"Allow": "GET, HEAD", **security_headers(state.deployment)}
        return Response("Only GET and HEAD are supported.\n", 405, headers, _PLAIN)

    async def server_error(request: Request, _error: Exception) -> Response:
        return _error_page(request, state, 500)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        updates = asyncio.create_task(state.refresh_forever(interval))
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


def _file_response(request: Request, state: SiteState) -> Response:
    files, path = state.files, str(request.scope["path"])
    file = files.get(path)
    if file is None:
        return _canonical_redirect(request, files) or _error_page(request, state, 404)
    if path in ("/404.html", "/500.html"):
        return _error_page(request, state, 404)
    if file.alternate and file.media_type.startswith(_HTML):
        accept = request.headers.get("accept", "")
        file = files[file.alternate] if choose_named_type(accept, (_MARKDOWN,), _HTML) == _MARKDOWN else file
        if path == SEARCH_PATH and file.path == path and (query := request.query_params.get("q", "").strip()):
            file = render_search(state.site, state.deployment, query)
    headers = response_headers(file, state.deployment)
    if has_tag(request.headers.get("if-none-match", ""), headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers)


def _canonical_redirect(request: Request, files: Mapping[str, SiteFile]) -> Response | None:
    """Redirect variants of an existing path (`/index.html`, trailing slash) to its canonical form."""
    path = str(request.scope["path"])
    canonical = path.removesuffix("index.html").rstrip("/") or "/"
    if canonical not in files:
        return None
    query = request.scope["query_string"].decode("latin-1")
    return Response(status_code=308, headers={"Location": quote(canonical) + (f"?{query}" if query else "")})


def _error_page(request: Request, state: SiteState, status: int) -> Response:
    """Return an error page in the format that the client prefers: Markdown, HTML or plain text."""
    kind = choose_named_type(request.headers.get("accept", ""), (_MARKDOWN, _HTML), _PLAIN)
    file = state.files[f"/{status}.html" if kind == _HTML else f"/{status}.md"]
    media_type = file.media_type if kind != _PLAIN else PLAIN_TEXT
    headers = {"Content-Type": media_type, "Cache-Control": "no-store", "Vary": "Accept"}
    return Response(file.content, status, headers | security_headers(state.deployment))


def response_headers(file: SiteFile, deployment: ApiSnapshot) -> dict[str, str]:
    """Return the response headers of a file. The ETag is weak, as middleware may compress the content."""
    return {
        "Content-Type": file.media_type,
        "Cache-Control": "public, max-age=60",
        "ETag": f'W/"{hashlib.sha256(file.content).hexdigest()[:20]}"',
        "Link": ", ".join([*_page_links(file, deployment), site_link_header(deployment)]),
        "Access-Control-Allow-Origin": "*",
        **({"Vary": "Accept"} if file.alternate else {}),
        **security_headers(deployment),
    }


def _page_links(file: SiteFile, deployment: ApiSnapshot) -> list[str]:
    """Return the alternate and canonical links of a page."""
    if not file.alternate:
        return []
    is_page = file.media_type.startswith(_HTML)
    page, markdown = (file.path, file.alternate) if is_page else (file.alternate, file.path)
    canonical = f'<{deployment.site}{page}>; rel="canonical"'
    return [f'<{markdown}>; rel="alternate"; type="{_MARKDOWN}"', canonical] if is_page else [canonical]


def run_site(api: str, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises CatalogUnavailable if the API cannot be read at start-up."""
    operator_files = wellknown_files.read_wellknown_files(settings.well_known)
    listener, settings = open_listener(settings, "--host and --port")
    with listener:
        address = settings.site_url or settings.model_copy(update={"public_url": None}).base_url
        config = LimitedConfig(
            create_site_app(api, read_snapshot(api, address), operator_files=operator_files),
            connection_limits(settings),
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        )
        ReadyServer(config, settings).run(sockets=[listener])
