"""Web site on loopback with responses set by a test; records its requests."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from facilitators import build_settings
from msgspec.structs import replace

from centgate.resources import Resources, open_resources, user_agent
from centgate.sandbox import Sandbox
from centgate.settings import Settings
from centgate.web.sitemap.robots import Robots

HTML = "text/html; charset=utf-8"
XML = "application/xml"
CONDITIONS = ("If-None-Match", "If-Modified-Since")


@dataclass(frozen=True)
class SiteResponse:
    """One response of the site."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class SmallSite:
    """Site at `url`; paths without a response give 404."""

    url: str = ""
    requested_paths: list[str] = field(default_factory=list[str])
    """Requested paths, in order."""
    user_agents: set[str] = field(default_factory=set[str])
    conditions: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """Conditional fields of the last request for each path that had any."""
    silent_paths: set[str] = field(default_factory=set[str])
    """Paths that get no response before the test ends."""
    silent_path_requested: threading.Event = field(default_factory=threading.Event)
    """Set when such a path was requested."""
    test_ended: threading.Event = field(default_factory=threading.Event)
    _responses: dict[str, SiteResponse] = field(default_factory=dict[str, SiteResponse])

    @property
    def address(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    def respond(
        self, path: str, body: str | bytes, kind: str = HTML, *, status: int = 200, **headers: str
    ) -> None:
        """Set the response of a path."""
        raw = body.encode() if isinstance(body, str) else body
        self._responses[path] = SiteResponse(status, {"Content-Type": kind, **headers}, raw)

    def set_robots(self, *lines: str) -> None:
        """Set a robots.txt with these lines."""
        self.respond("/robots.txt", "\n".join(lines), "text/plain")

    def set_sitemap(self, path: str, *paths: str) -> None:
        """Set a sitemap of these pages at a path."""
        self.respond(path, render_sitemap(*(self.url_of(each) for each in paths)), XML)

    def set_sitemap_index(self, path: str, *paths: str) -> None:
        """Set an index of these sitemaps at a path."""
        locs = "".join(f"<sitemap><loc>{self.url_of(each)}</loc></sitemap>" for each in paths)
        self.respond(path, f"<sitemapindex>{locs}</sitemapindex>", XML)

    def url_of(self, path: str) -> str:
        """Return the URL of a path; URLs are returned unchanged."""
        return f"{self.url}{path}" if path.startswith("/") else path

    def response_for(self, path: str) -> SiteResponse:
        """Return the response of a path."""
        return self._responses.get(path) or SiteResponse(404, {"Content-Type": "text/plain"}, b"not found")


def render_sitemap(*urls: str) -> str:
    """Return a sitemap of these pages."""
    locs = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locs}</urlset>'
    )


@contextmanager
def serve_small_site(site: SmallSite | None = None) -> Generator[SmallSite]:
    """Serve a site on a loopback port, a new one by default."""
    site = site or SmallSite()
    server = _Server(("127.0.0.1", 0), _handler(site))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield site
    finally:
        site.test_ended.set()
        server.shutdown()
        server.server_close()


class OpenReader(Protocol):
    """Function that opens a deployment that may fetch from these sites; `changes` are settings."""

    def __call__(
        self, *sites: SmallSite, **changes: Any
    ) -> AbstractAsyncContextManager[tuple[Settings, Resources]]: ...


@asynccontextmanager
async def open_page_resources(readers: Sandbox, settings: Settings) -> AsyncGenerator[Resources]:
    """Open the resources of a deployment, with `readers` as the sandbox that parses pages."""
    async with open_resources(settings) as own:
        robots = Robots(own.fetcher, readers, user_agent(settings))
        yield replace(own, page_parsers=readers, robots=robots)


@asynccontextmanager
async def open_reader(
    readers: Sandbox, folder: Path, *sites: SmallSite, **changes: Any
) -> AsyncGenerator[tuple[Settings, Resources]]:
    """Open a deployment that may fetch from these sites, and parses pages in `readers`."""
    allowed = tuple(site.address for site in sites)
    settings = build_settings(folder, "http://127.0.0.1:9", fetch_allowed=allowed, **changes)
    async with open_page_resources(readers, settings) as resources:
        yield settings, resources


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client may close the connection


def is_same_version(conditions: dict[str, str], headers: dict[str, str]) -> bool:
    """True if a conditional request names the version of a response; the tag comes before the date."""
    if "If-None-Match" in conditions:
        return conditions["If-None-Match"] == headers.get("ETag")
    return conditions.get("If-Modified-Since", "") == headers.get("Last-Modified")


def _handler(site: SmallSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the names of the base class
            pass

        def do_GET(self) -> None:
            site.requested_paths.append(self.path)
            site.user_agents.add(self.headers.get("User-Agent", ""))
            if self.path in site.silent_paths:
                site.silent_path_requested.set()
                site.test_ended.wait(60)
                return
            response = site.response_for(self.path)
            if conditions := {name: value for name in CONDITIONS if (value := self.headers.get(name))}:
                site.conditions[self.path] = conditions
            is_unchanged = response.status == 200 and is_same_version(conditions, response.headers)
            body = b"" if is_unchanged else response.body
            self.send_response(304 if is_unchanged else response.status)
            for name, value in {**response.headers, "Content-Length": str(len(response.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler
