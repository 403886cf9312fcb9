"""The website as a server of its own, which reads the API again every so often."""

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
from centgate.server import Announced, connection_limits, listen
from centgate.settings import Settings

FRESH = 30.0
"""Seconds after which the API is read again."""
STOP_WITHIN = 5
"""Seconds that open connections get to finish after SIGTERM."""

_HTML, _MARKDOWN, _PLAIN = "text/html", "text/markdown", "text/plain"


class Window:
    """The website's files as of the latest reading of the API. Requests never wait for the next one."""

    def __init__(self, api: str, deployment: Deployment, own: Sequence[VerificationFile]) -> None:
        self._api = api
        self._own = own
        self.deployment = deployment
        self.files = all_files(deployment, own)

    async def keep_fresh(self, every: float) -> None:
        """Read the API again and again, in a thread; what fails is logged, and tried again."""
        while True:
            await asyncio.sleep(every)
            try:
                await asyncio.to_thread(self.read_again)
            except Exception:  # noqa: BLE001 - the outermost door of this task: the site stays as it was
                structlog.get_logger().exception("the website could not be made anew")

    def read_again(self) -> None:
        """What could not be read stays as it was, except that the API is known not to answer."""
        try:
            deployment = read_deployment(self._api, self.deployment.site)
            files = all_files(deployment, self._own)
        except CatalogUnread as error:
            structlog.get_logger().warning("the API could not be read", error=str(error))
            deployment = self.deployment.lost(datetime.now(UTC))
            files = all_files(deployment, self._own)
        self.files, self.deployment = files, deployment


def site_app(
    api: str, deployment: Deployment, *, own: Sequence[VerificationFile] = (), every: float = FRESH
) -> Starlette:
    """The website as an ASGI application; `own` are the operator's files under `/.well-known/`."""
    window = Window(api, deployment, own)

    async def endpoint(request: Request) -> Response:
        return _answer(request, window)

    async def other_method(_request: Request, _error: Exception) -> Response:
        headers = {"Allow": "GET, HEAD", **safety(window.deployment)}
        return Response("Only GET and HEAD are answered here.\n", 405, headers, _PLAIN)

    async def failed(request: Request, _error: Exception) -> Response:
        return _apology(request, window, 500)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        reading = asyncio.create_task(window.keep_fresh(every))
        yield
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading

    return Starlette(
        routes=[Route("/{path:path}", endpoint)],
        middleware=[Middleware(GZipMiddleware, minimum_size=500, compresslevel=6)],
        exception_handlers={405: other_method, 500: failed},
        lifespan=lifespan,
    )


def _answer(request: Request, window: Window) -> Response:
    files, path = window.files, str(request.scope["path"])
    file = files.get(path)
    if file is None:
        return _elsewhere(request, files) or _apology(request, window, 404)
    if path in ("/404.html", "/500.html"):
        return _apology(request, window, 404)
    if file.twin and file.media_type.startswith(_HTML):
        accept = request.headers.get("accept", "")
        file = files[file.twin] if named(accept, (_MARKDOWN,), _HTML) == _MARKDOWN else file
    headers = headers_of(file, window.deployment)
    if _has(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers)


def _elsewhere(request: Request, files: Mapping[str, File]) -> Response | None:
    """Where there is one way to write an address, the others lead to it; only to what there is here."""
    path = str(request.scope["path"])
    canonical = path.removesuffix("index.html").rstrip("/") or "/"
    if canonical not in files:
        return None
    query = request.scope["query_string"].decode("latin-1")
    return Response(status_code=308, headers={"Location": quote(canonical) + (f"?{query}" if query else "")})


def _apology(request: Request, window: Window, status: int) -> Response:
    """What there is to say instead of a page, as the client would have it."""
    kind = named(request.headers.get("accept", ""), (_MARKDOWN, _HTML), _PLAIN)
    file = window.files[f"/{status}.html" if kind == _HTML else f"/{status}.md"]
    media_type = file.media_type if kind != _PLAIN else PLAIN
    headers = {"Content-Type": media_type, "Cache-Control": "no-store", "Vary": "Accept"}
    return Response(file.content, status, headers | safety(window.deployment))


def _has(request: Request, tag: str) -> bool:
    """Whether the client says that it has this very content (RFC 9110 section 13.1.2)."""
    known = [each.strip() for each in request.headers.get("if-none-match", "").split(",")]
    return "*" in known or tag in known or tag.removeprefix("W/") in known


def headers_of(file: File, deployment: Deployment) -> dict[str, str]:
    """The headers a file is served with. Its tag is a weak one, as it may be compressed on the way."""
    return {
        "Content-Type": file.media_type,
        "Cache-Control": "public, max-age=60",
        "ETag": f'W/"{hashlib.sha256(file.content).hexdigest()[:20]}"',
        "Link": ", ".join([*_links(file, deployment), link_header(deployment)]),
        "Access-Control-Allow-Origin": "*",
        **({"Vary": "Accept"} if file.twin else {}),
        **safety(deployment),
    }


def _links(file: File, deployment: Deployment) -> list[str]:
    """The other form of a page, and the address that it goes by."""
    if not file.twin:
        return []
    is_page = file.media_type.startswith(_HTML)
    page, twin = (file.path, file.twin) if is_page else (file.twin, file.path)
    canonical = f'<{deployment.site}{page}>; rel="canonical"'
    return [f'<{twin}>; rel="alternate"; type="{_MARKDOWN}"', canonical] if is_page else [canonical]


def run_site(api: str, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; CatalogUnread when the API cannot be read at the start."""
    own = verification.files(settings.well_known)
    listener, settings = listen(settings)
    with listener:
        address = settings.site_url or settings.model_copy(update={"public_url": None}).address
        config = LimitedConfig(
            site_app(api, read_deployment(api, address), own=own),
            connection_limits(settings),
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=STOP_WITHIN,
        )
        Announced(config, settings).run(sockets=[listener])
