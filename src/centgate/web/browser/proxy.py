"""HTTP proxy on loopback for a browser; it connects only to addresses that the policy allows."""

from __future__ import annotations

import asyncio
import re
import secrets
import ssl
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import Struct, field

from centgate.web.browser.proxy_request import (
    ConnectionClosed,
    Fields,
    ProxyRequest,
    parse_credential,
    parse_head,
    parse_request,
)
from centgate.web.fetch.connector import Connection, open_checked_connection
from centgate.web.fetch.dns import ResolveFunction, resolve_allowed
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.policy import FetchPolicy
from centgate.web.fetch.url import Target, parse_target

MAX_BYTES = 20 << 20
"""Maximum bytes of one page with all its resources, in both directions."""
MAX_REQUESTS = 400
MAX_PAGE_CONNECTIONS = 32
"""Concurrent connections of one page; Chromium opens no more than this to a proxy."""
MAX_CONNECTIONS = 256
MAX_HEAD = 32 * 1024
MAX_BODY = 1 << 20
"""Maximum request body over plain HTTP, in bytes."""
READ_BYTES = 32 * 1024
HEAD_SECONDS = 5.0
RESPONSE_SECONDS = 20.0
MAX_CONNECTION_SECONDS = 60.0
"""Maximum seconds of one connection."""
FLUSH_SECONDS = 2.0

# Hop-by-hop fields (RFC 9110, section 7.6.1), and requests to change the protocol
_HOP_BY_HOP = re.compile(rb"(connection|keep-alive|proxy-.*|te|trailer|upgrade|host|expect)", re.IGNORECASE)
_HOP_BY_HOP_RESPONSE = re.compile(rb"(connection|keep-alive|proxy-[^:]*|upgrade)\s*:", re.IGNORECASE)
_TLS_HANDSHAKE = b"\x16\x03"


class ProxyGrant(Struct):
    """Access of one page to the proxy while it is open, with its remaining limits and its failures."""

    username: str
    password: str
    bytes_left: int
    requests_left: int
    exhausted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the page exceeded a limit; from then on all its requests fail."""
    connections: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _failures: dict[tuple[str, int], FetchFailed] = field(default_factory=dict[tuple[str, int], FetchFailed])

    def record_failure(self, target: Target, failure: FetchFailed) -> None:
        """Record why a host was not reached."""
        self._failures[target.host, target.port] = failure

    def find_failure(self, url: str) -> FetchFailed | None:
        """Return why a URL's host was not reached; None if it was reached or not requested."""
        target = parse_target(url)
        return self._failures.get((target.host, target.port)) if target else None

    def count_bytes(self, size: int) -> None:
        """Count transferred bytes. Raises ConnectionClosed above the limit."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            self.exhausted.set()
            raise ConnectionClosed

    def count_request(self) -> None:
        """Count a request. Raises ConnectionClosed above the limit."""
        self.requests_left -= 1
        if self.requests_left < 0:
            self.exhausted.set()
        if self.exhausted.is_set() or len(self.connections) >= MAX_PAGE_CONNECTIONS:
            raise ConnectionClosed


class FilteringProxy:
    """Proxy for pages with a grant: plain HTTP, and TLS through CONNECT.

    Every target is parsed, checked against the policy and resolved as `safefetch` does it, and the connection
    goes to the checked address. One connection carries one request. A rejected plain HTTP request gets an
    empty response, since a browser would attribute any error page to the site.
    """

    def __init__(self, policy: FetchPolicy, resolve: ResolveFunction) -> None:
        self._policy, self._resolve = policy, resolve
        self._grants: dict[str, ProxyGrant] = {}
        self._connections: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._tls = ssl.SSLContext(
            ssl.PROTOCOL_TLS_CLIENT
        )  # never used: TLS is end-to-end between browser and site

    async def start(self) -> str:
        """Listen on a free port and return the proxy's URL."""
        self._server = await asyncio.start_server(self._accept_connection, "127.0.0.1", 0, limit=MAX_HEAD)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @contextmanager
    def grant_access(
        self, max_bytes: int = MAX_BYTES, max_requests: int = MAX_REQUESTS
    ) -> Generator[ProxyGrant]:
        """Create a grant for one page; on exit, close the connections that still use it."""
        grant = ProxyGrant(secrets.token_hex(8), secrets.token_urlsafe(32), max_bytes, max_requests)
        self._grants[grant.username] = grant
        try:
            yield grant
        finally:
            del self._grants[grant.username]
            for connection in grant.connections:
                connection.cancel()

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        connection = asyncio.ensure_future(self._handle_connection((reader, writer)))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _handle_connection(self, browser: Connection) -> None:
        _, writer = browser
        try:
            async with asyncio.timeout(MAX_CONNECTION_SECONDS):
                await self._serve_request(browser)
        except ConnectionClosed as closed:
            writer.write(_format_response(closed.status))
        except (OSError, EOFError, asyncio.LimitOverrunError):  # includes TimeoutError
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            await _flush_and_close(writer)

    async def _serve_request(self, browser: Connection) -> None:
        head = await _read_head(browser[0])
        start, fields = parse_head(head)
        grant = self._authenticate(fields)
        grant.count_request()
        request = parse_request(start, fields)
        task = asyncio.current_task()
        assert task is not None
        grant.connections.add(task)
        try:
            await self._connect_to_site(browser, request, grant)
        except FetchFailed as failure:
            grant.record_failure(request.target, failure)
            raise ConnectionClosed("403 Forbidden" if request.method == "CONNECT" else "") from None
        finally:
            grant.connections.discard(task)

    def _authenticate(self, fields: Fields) -> ProxyGrant:
        header = next((value for name, value in fields if name.lower() == b"proxy-authorization"), b"")
        username, _, password = parse_credential(header).partition(":")
        grant = self._grants.get(username)
        if grant is None or not secrets.compare_digest(password.encode(), grant.password.encode()):
            raise ConnectionClosed("407 Proxy Authentication Required")
        return grant

    async def _connect_to_site(self, browser: Connection, request: ProxyRequest, grant: ProxyGrant) -> None:
        if rejection := self._policy.target_rejection(request.target):
            raise FetchFailed("blocked_address", f"{request.target.label} must not be fetched: {rejection}")
        addresses = await resolve_allowed(request.target, self._policy, self._resolve)
        async with open_checked_connection(request.target, addresses, self._policy, self._tls) as site:
            if request.method == "CONNECT":
                await _relay_tls(browser, site, grant)
            else:
                await _relay_http(browser, site, request, grant)


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise ConnectionClosed("431 Request Header Fields Too Large") from None


async def _relay_tls(browser: Connection, site: Connection, grant: ProxyGrant) -> None:
    """Relay bytes in both directions if they start a TLS handshake: `ws:` would be unencrypted."""
    browser[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    async with asyncio.timeout(HEAD_SECONDS):
        first = await browser[0].readexactly(len(_TLS_HANDSHAKE))
    if first != _TLS_HANDSHAKE:
        return
    site[1].write(first)
    await _run_until_first_ends(
        _pump_bytes(browser[0], site[1], grant), _pump_bytes(site[0], browser[1], grant)
    )


async def _relay_http(
    browser: Connection, site: Connection, request: ProxyRequest, grant: ProxyGrant
) -> None:
    site[1].write(_format_request(request))
    await _send_body(browser[0], site[1], request, grant)
    async with asyncio.timeout(RESPONSE_SECONDS):
        head = await _read_final_head(site[0], grant)
    browser[1].write(head)
    await _run_until_first_ends(_pump_bytes(site[0], browser[1], grant), _wait_until_closed(browser[0]))


def _format_request(request: ProxyRequest) -> bytes:
    fields = [name + b": " + value for name, value in request.fields if not _HOP_BY_HOP.fullmatch(name)]
    lines = [
        f"{request.method} {request.target.path} HTTP/1.1".encode(),
        f"Host: {request.target.authority}".encode(),
        *fields,
        b"Connection: close",
    ]
    return b"\r\n".join((*lines, b"", b""))


async def _send_body(
    reader: asyncio.StreamReader, site: asyncio.StreamWriter, request: ProxyRequest, grant: ProxyGrant
) -> None:
    length = request.find_field(b"content-length") or b"0"
    remaining = int(length) if re.fullmatch(rb"\d{1,9}", length) else MAX_BODY + 1
    if remaining > MAX_BODY:
        raise ConnectionClosed
    while remaining:
        data = await reader.read(min(remaining, READ_BYTES))
        if not data:
            raise EOFError
        grant.count_bytes(len(data))
        remaining -= len(data)
        site.write(data)
        await site.drain()


async def _read_final_head(site: asyncio.StreamReader, grant: ProxyGrant) -> bytes:
    """Return the head of the final response, with `Connection: close`; skip interim responses."""
    for _ in range(4):
        head = await site.readuntil(b"\r\n\r\n")
        grant.count_bytes(len(head))
        start, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        status = re.match(rb"HTTP/1\.[01] ([1-5]\d\d)\b", start)
        if status is None or status[1] == b"101":
            break
        if not status[1].startswith(b"1"):
            fields = [line for line in lines if not _HOP_BY_HOP_RESPONSE.match(line)]
            return b"\r\n".join((start, *fields, b"Connection: close", b"", b""))
    raise ConnectionClosed


async def _pump_bytes(source: asyncio.StreamReader, sink: asyncio.StreamWriter, grant: ProxyGrant) -> None:
    while data := await source.read(READ_BYTES):
        grant.count_bytes(len(data))
        sink.write(data)
        await sink.drain()


async def _wait_until_closed(reader: asyncio.StreamReader) -> None:
    """Wait until the other side closes; ignore what it sends."""
    while await reader.read(READ_BYTES):
        pass


async def _run_until_first_ends(*pumps: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.ensure_future(pump) for pump in pumps]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _format_response(status: str) -> bytes:
    if not status:
        return b""
    challenge = 'Proxy-Authenticate: Basic realm="pass"\r\n' if status.startswith("407") else ""
    return f"HTTP/1.1 {status}\r\n{challenge}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()


async def _flush_and_close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; drop data that is not sent in time."""
    writer.close()
    with suppress(OSError):
        async with asyncio.timeout(FLUSH_SECONDS):
            await writer.wait_closed()
    writer.transport.abort()
