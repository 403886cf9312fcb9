"""HTTP requests of a purchase and their results; one driver sends them for both clients."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal, TypeVar

import anyio
import httpx2

MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a response."""

T = TypeVar("T")
Proxies = Literal["none", "environment"] | httpx2.Proxy


@dataclass(frozen=True, slots=True)
class Send:
    """HTTP request to send."""

    method: Literal["GET", "POST"]
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    connect: float = 10
    """Connect timeout in seconds."""
    seconds: float = 30
    """Total timeout in seconds."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Delay before the next request."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """Complete response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """Failed request without a complete response; `sentence` is the reason, to follow "the API"."""

    why: Literal["unreachable", "late", "cut", "too_large"]
    sentence: str


Way = Generator[Send | Pause, Reply | Broken | None, T]
"""Operation: a generator that yields requests and delays, receives their results, and returns a value."""


def ask(send: Send) -> Way[Reply | Broken]:
    """Yield one request and return its result."""
    came = yield send
    assert came is not None
    return came


def parse_proxy(setting: str | None) -> Proxies:
    """Parse CENTGATE_PROXY."""
    if setting is None:
        return "none"
    return "environment" if setting == "environment" else httpx2.Proxy(setting)


def create_http_client(api: str, proxies: Proxies, tls: ssl.SSLContext | None) -> httpx2.AsyncClient:
    """Create the HTTP client."""
    http = httpx2.AsyncClient(**_client_options(api, proxies, tls))
    http.cookies.jar.set_policy(_NO_COOKIES)
    return http


async def go(http: httpx2.AsyncClient, way: Way[T]) -> T:
    """Drive an operation to completion and return its result. Each request has a total timeout."""
    came: Reply | Broken | None = None
    with closing(way):
        while True:
            try:
                step = way.send(came)
            except StopIteration as end:
                return end.value
            if isinstance(step, Pause):
                await anyio.sleep(step.seconds)
                came = None
            else:
                came = await _send(http, step)


_NO_COOKIES = DefaultCookiePolicy(allowed_domains=[])


def _client_options(api: str, proxies: Proxies, tls: ssl.SSLContext | None) -> dict[str, Any]:
    return {
        "base_url": api,
        "verify": tls or True,
        "trust_env": proxies == "environment",
        "proxy": proxies if isinstance(proxies, httpx2.Proxy) else None,
        "follow_redirects": False,  # a payment is bound to the host that was called
        "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        # uncompressed, so that the limit on bytes read also limits the memory used
        "headers": {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "centgate-client",
        },
    }


def _build_request(http: httpx2.AsyncClient, send: Send) -> httpx2.Request:
    timeout = httpx2.Timeout(send.seconds, connect=min(send.connect, send.seconds))
    return http.build_request(
        send.method, send.path, content=send.body, headers=dict(send.headers), timeout=timeout
    )


async def _send(http: httpx2.AsyncClient, send: Send) -> Reply | Broken:
    with anyio.move_on_after(send.seconds):
        try:
            response = await http.send(_build_request(http, send), stream=True)
            try:
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > MAX_RESPONSE_BYTES:
                        return _TOO_LARGE
                return _parse_response(response, body)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            return _classify_error(error, send)
    return _timed_out(send)


_TOO_LARGE = Broken("too_large", f"sent a response of more than {MAX_RESPONSE_BYTES // 1024 // 1024} MB")


def _parse_response(response: httpx2.Response, body: bytearray) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, bytes(body))


def _classify_error(error: httpx2.HTTPError, send: Send) -> Broken:
    match error:
        case (
            httpx2.ConnectError()
            | httpx2.ConnectTimeout()
            | httpx2.UnsupportedProtocol()
            | httpx2.ProxyError()
        ):
            return Broken("unreachable", f"cannot be reached ({_describe_error(error)})")
        case httpx2.TimeoutException():
            return _timed_out(send)
        case _:
            return Broken("cut", f"closed the connection ({_describe_error(error)})")


def _describe_error(error: Exception) -> str:
    """Describe an error in at most 200 characters: it may quote a whole header."""
    return str(error)[:200] or type(error).__name__


def _timed_out(send: Send) -> Broken:
    return Broken("late", f"did not respond within {send.seconds:.0f} seconds")
