"""HTTP requests of a client, with a total timeout each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio
from anyio.lowlevel import EventLoopToken, current_token

if TYPE_CHECKING:
    import ssl

    # as slow to import as everything else together: functions import it
    import httpx2

MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""Maximum bytes of a response."""

Proxies: TypeAlias = 'Literal["none", "environment"] | httpx2.Proxy'


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Complete response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class TransportError(Exception):
    """Request without a complete response; the message is the reason, to follow "the API"."""

    def __init__(self, reason: Literal["unreachable", "timeout", "cut", "too_large"], message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Transport:
    """HTTP connections of a client. A forked process and another event loop open their own."""

    def __init__(
        self,
        api: str = "",
        *,
        connect_timeout: float = 10,
        proxies: Proxies = "none",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._open = partial(_open_http_client, api, connect_timeout, proxies, tls)
        # by process and event loop: connections of a parent stay open in a fork, since the parent uses them,
        # and no loop can use those of another one
        self._http_clients: dict[tuple[int, EventLoopToken], httpx2.AsyncClient] = {}
        self._closed = False

    async def send(
        self,
        path: str,
        body: bytes | None = None,
        *,
        payment: str | None = None,
        sign_in: str | None = None,
        timeout: float = 30,
    ) -> HttpResponse:
        """Send a GET request, or a POST request if there is a JSON body, and read the response.

        `payment` is the header PAYMENT-SIGNATURE, `sign_in` is SIGN-IN-WITH-X; `timeout` is in total.
        Raises TransportError.
        """
        import httpx2

        method = "GET" if body is None else "POST"
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if payment is not None:
            headers["PAYMENT-SIGNATURE"] = payment
        if sign_in is not None:
            headers["SIGN-IN-WITH-X"] = sign_in
        try:
            with anyio.fail_after(timeout):
                async with self._http().stream(method, path, content=body, headers=headers) as response:
                    return await _read_response(response)
        except TimeoutError:
            message = f"did not respond within {timeout:{'.2g' if timeout < 10 else '.0f'}} s"
            raise TransportError("timeout", message) from None
        except httpx2.HTTPError as error:
            raise _classify_error(error) from error

    async def aclose(self) -> None:
        """Close the connections of this process and event loop; after that `send` raises RuntimeError."""
        self._closed = True
        # if none could be opened, opening one to close it would raise that error again
        if http := self._http_clients.get(_current_key()):
            await http.aclose()

    def _http(self) -> httpx2.AsyncClient:
        if self._closed:
            raise RuntimeError("the client is closed")
        key = _current_key()
        if key not in self._http_clients:
            self._forget_ended_loops()
            self._http_clients[key] = self._open()
        return self._http_clients[key]

    def _forget_ended_loops(self) -> None:
        """Drop the connections of loops that are closed, as `asyncio.run` closes its own."""
        for key in list(self._http_clients):
            loop = key[1].native_token
            if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_closed():
                self._http_clients.pop(key, None)


def _current_key() -> tuple[int, EventLoopToken]:
    """Return this process and the running event loop."""
    return os.getpid(), current_token()


def parse_proxy(setting: str | None) -> Proxies:
    """Parse CENTGATE_PROXY."""
    import httpx2

    if setting is None:
        return "none"
    return "environment" if setting == "environment" else httpx2.Proxy(setting)


def _open_http_client(
    api: str, connect_timeout: float, proxies: Proxies, tls: ssl.SSLContext | None
) -> httpx2.AsyncClient:
    from http.cookiejar import DefaultCookiePolicy

    import httpx2

    http = httpx2.AsyncClient(
        base_url=api,
        timeout=httpx2.Timeout(None, connect=connect_timeout),  # `Transport.send` limits the total time
        verify=tls or True,
        trust_env=proxies == "environment",
        proxy=proxies if isinstance(proxies, httpx2.Proxy) else None,
        follow_redirects=False,  # a payment is bound to the host that was called
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        # uncompressed, so that the limit on bytes read also limits the memory used
        headers={
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "centgate-client",
        },
    )
    http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return http


async def _read_response(response: httpx2.Response) -> HttpResponse:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_RESPONSE_BYTES:
            raise TransportError(
                "too_large", f"sent a response of more than {MAX_RESPONSE_BYTES // 1024 // 1024} MB"
            )
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpResponse(response.status_code, headers, bytes(body))


def _classify_error(error: httpx2.HTTPError) -> TransportError:
    import httpx2

    description = str(error)[:200] or type(error).__name__  # it may quote a whole header
    unreachable = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol, httpx2.ProxyError)
    if isinstance(error, unreachable):
        return TransportError("unreachable", f"cannot be reached ({description})")
    return TransportError("cut", f"closed the connection ({description})")
