"""The requests of a purchase and what becomes of them; one driver carries them out, for both clients."""

from __future__ import annotations

import ssl
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal, TypeVar

import anyio
import httpx2

MAX_ANSWER = 8 * 1024 * 1024
"""Bytes of a response that are read."""

T = TypeVar("T")
Proxies = Literal["none", "environment"] | httpx2.Proxy


@dataclass(frozen=True, slots=True)
class Send:
    """A request to be sent."""

    method: Literal["GET", "POST"]
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    connect: float = 10
    """Seconds to connect."""
    seconds: float = 30
    """Seconds for all of it."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Time to let pass before the next request."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole response; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """No whole response; `sentence` says why, after the words "the API"."""

    why: Literal["unreachable", "late", "cut", "too_large"]
    sentence: str


Way = Generator[Send | Pause, Reply | Broken | None, T]
"""The way of a call: yields what is to be done, is sent what came of it, and returns its result."""


def ask(send: Send) -> Way[Reply | Broken]:
    """One request within a way."""
    came = yield send
    assert came is not None
    return came


def proxies_set(setting: str | None) -> Proxies:
    """What CENTGATE_PROXY means."""
    if setting is None:
        return "none"
    return "environment" if setting == "environment" else httpx2.Proxy(setting)


def async_http(api: str, proxies: Proxies, tls: ssl.SSLContext | None) -> httpx2.AsyncClient:
    """What sends the requests of a client."""
    http = httpx2.AsyncClient(**_manners(api, proxies, tls))
    http.cookies.jar.set_policy(_NO_COOKIES)
    return http


async def go(http: httpx2.AsyncClient, way: Way[T]) -> T:
    """Walk a way to its end: what it returns, or raises. Each request has a time for all of it."""
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
                came = await _sent(http, step)


_NO_COOKIES = DefaultCookiePolicy(allowed_domains=[])


def _manners(api: str, proxies: Proxies, tls: ssl.SSLContext | None) -> dict[str, Any]:
    return {
        "base_url": api,
        "verify": tls or True,
        "trust_env": proxies == "environment",
        "proxy": proxies if isinstance(proxies, httpx2.Proxy) else None,
        "follow_redirects": False,  # a payment is for the host that was called
        "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        # not compressed, so that the bound on what is read is one on what is kept
        "headers": {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "centgate-client",
        },
    }


def _request(http: httpx2.AsyncClient, send: Send) -> httpx2.Request:
    timeout = httpx2.Timeout(send.seconds, connect=min(send.connect, send.seconds))
    return http.build_request(
        send.method, send.path, content=send.body, headers=dict(send.headers), timeout=timeout
    )


async def _sent(http: httpx2.AsyncClient, send: Send) -> Reply | Broken:
    with anyio.move_on_after(send.seconds):
        try:
            response = await http.send(_request(http, send), stream=True)
            try:
                body = bytearray()
                async for chunk in response.aiter_raw():
                    body += chunk
                    if len(body) > MAX_ANSWER:
                        return _TOO_LARGE
                return _reply(response, body)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            return _broken(error, send)
    return _late(send)


_TOO_LARGE = Broken("too_large", f"answers with more than {MAX_ANSWER // 1024 // 1024} MB")


def _reply(response: httpx2.Response, body: bytearray) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, bytes(body))


def _broken(error: httpx2.HTTPError, send: Send) -> Broken:
    match error:
        case (
            httpx2.ConnectError()
            | httpx2.ConnectTimeout()
            | httpx2.UnsupportedProtocol()
            | httpx2.ProxyError()
        ):
            return Broken("unreachable", f"cannot be reached ({_why(error)})")
        case httpx2.TimeoutException():
            return _late(send)
        case _:
            return Broken("cut", f"broke the connection off ({_why(error)})")


def _why(error: Exception) -> str:
    """In a few words: an error may quote a whole header."""
    return str(error)[:200] or type(error).__name__


def _late(send: Send) -> Broken:
    return Broken("late", f"did not answer within {send.seconds:.0f} seconds")
