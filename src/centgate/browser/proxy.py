"""A browser's only way out: an HTTP proxy on loopback that connects to nothing the policy does not admit."""

from __future__ import annotations

import asyncio
import re
import secrets
import ssl
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from centgate.browser.proxied import Closed, Fields, ProxyRequest, credential, read_head, read_request
from centgate.safefetch.connecting import Connection, connected
from centgate.safefetch.failure import FetchFailed
from centgate.safefetch.policy import Policy
from centgate.safefetch.resolving import Resolve, admitted
from centgate.safefetch.target import Target, read_target

MOST_BYTES = 20 << 20
"""Of one page with all it loads, both ways."""
MOST_REQUESTS = 400
MOST_AT_ONCE = 32
"""Connections of one page; a browser opens no more than this to a proxy."""
MOST_CONNECTIONS = 256
MOST_HEAD = 32 * 1024
MOST_BODY = 1 << 20
"""Bytes that a page may send in one request over plain HTTP."""
PIECE = 32 * 1024
HEAD_SECONDS = 5.0
ANSWER_SECONDS = 20.0
LONGEST = 60.0
"""Seconds that one connection may last."""
FLUSH_SECONDS = 2.0

# Between two neighbours only (RFC 9110, section 7.6.1), and what asks for another protocol
_DROPPED = re.compile(rb"(connection|keep-alive|proxy-.*|te|trailer|upgrade|host|expect)", re.IGNORECASE)
_DROPPED_BACK = re.compile(rb"(connection|keep-alive|proxy-[^:]*|upgrade)\s*:", re.IGNORECASE)
_TLS_HANDSHAKE = b"\x16\x03"


@dataclass
class Pass:
    """What lets one page through, as long as it is open; what the page took, and what it was refused."""

    username: str
    password: str
    bytes_left: int
    requests_left: int
    spent: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the page asked for more than it may have; from then on it gets nothing."""
    connections: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _refusals: dict[tuple[str, int], FetchFailed] = field(default_factory=dict[tuple[str, int], FetchFailed])

    def refuse(self, target: Target, failure: FetchFailed) -> None:
        """Remember why a host was not reached."""
        self._refusals[target.host, target.port] = failure

    def refusal(self, url: str) -> FetchFailed | None:
        """Why a URL's host was not reached; None if it was, or was not asked for."""
        target = read_target(url)
        return self._refusals.get((target.host, target.port)) if target else None

    def count(self, size: int) -> None:
        """Count bytes that pass; Closed when they are more than are left."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            self.spent.set()
            raise Closed

    def count_request(self) -> None:
        """Count a request; Closed when it is one too many."""
        self.requests_left -= 1
        if self.requests_left < 0:
            self.spent.set()
        if self.spent.is_set() or len(self.connections) >= MOST_AT_ONCE:
            raise Closed


class FilteringProxy:
    """Carries what holders of a pass ask for: plain HTTP, and TLS through CONNECT.

    Every target is read, objected to, looked up and checked as `safefetch` does it, and the connection goes
    to the address that was checked. One connection carries one request. A target of plain HTTP that is
    refused is answered with an empty reply, since a browser would take any page of ours for the site's.
    """

    def __init__(self, policy: Policy, resolve: Resolve) -> None:
        self._policy, self._resolve = policy, resolve
        self._passes: dict[str, Pass] = {}
        self._connections: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # TLS is between browser and site: never used

    async def open(self) -> str:
        """Listen on a port that the system chooses; the proxy's URL."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MOST_HEAD)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @contextmanager
    def admitting(self, most_bytes: int = MOST_BYTES, most_requests: int = MOST_REQUESTS) -> Generator[Pass]:
        """A pass of its own for one page; what still uses it in the end is cut off."""
        holder = Pass(secrets.token_hex(8), secrets.token_urlsafe(32), most_bytes, most_requests)
        self._passes[holder.username] = holder
        try:
            yield holder
        finally:
            del self._passes[holder.username]
            for connection in holder.connections:
                connection.cancel()

    async def close(self) -> None:
        """Stop listening and cut every connection."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        connection = asyncio.ensure_future(self._carry((reader, writer)))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _carry(self, browser: Connection) -> None:
        _, writer = browser
        try:
            async with asyncio.timeout(LONGEST):
                await self._serve(browser)
        except Closed as closed:
            writer.write(_answer(closed.status))
        except (OSError, EOFError, asyncio.LimitOverrunError):  # also TimeoutError
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            await _flushed(writer)

    async def _serve(self, browser: Connection) -> None:
        head = await _head(browser[0])
        start, fields = read_head(head)
        holder = self._holder(fields)
        holder.count_request()
        request = read_request(start, fields)
        task = asyncio.current_task()
        assert task is not None
        holder.connections.add(task)
        try:
            await self._connect(browser, request, holder)
        except FetchFailed as failure:
            holder.refuse(request.target, failure)
            raise Closed("403 Forbidden" if request.method == "CONNECT" else "") from None
        finally:
            holder.connections.discard(task)

    def _holder(self, fields: Fields) -> Pass:
        given = next((value for name, value in fields if name.lower() == b"proxy-authorization"), b"")
        username, _, password = credential(given).partition(":")
        holder = self._passes.get(username)
        if holder is None or not secrets.compare_digest(password.encode(), holder.password.encode()):
            raise Closed("407 Proxy Authentication Required")
        return holder

    async def _connect(self, browser: Connection, request: ProxyRequest, holder: Pass) -> None:
        if objection := self._policy.objection_to(request.target):
            raise FetchFailed("blocked_address", f"{request.target.shown} must not be fetched: {objection}")
        addresses = await admitted(request.target, self._policy, self._resolve)
        async with connected(request.target, addresses, self._policy, self._tls) as site:
            if request.method == "CONNECT":
                await _tunnel(browser, site, holder)
            else:
                await _exchange(browser, site, request, holder)


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Closed("431 Request Header Fields Too Large") from None


async def _tunnel(browser: Connection, site: Connection, holder: Pass) -> None:
    """Bytes both ways, if they begin as TLS does: `ws:` and everything else would come unencrypted."""
    browser[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    async with asyncio.timeout(HEAD_SECONDS):
        first = await browser[0].readexactly(len(_TLS_HANDSHAKE))
    if first != _TLS_HANDSHAKE:
        return
    site[1].write(first)
    await _until_one_ends(_pump(browser[0], site[1], holder), _pump(site[0], browser[1], holder))


async def _exchange(browser: Connection, site: Connection, request: ProxyRequest, holder: Pass) -> None:
    site[1].write(_forwarded(request))
    await _send_body(browser[0], site[1], request, holder)
    async with asyncio.timeout(ANSWER_SECONDS):
        head = await _final_head(site[0], holder)
    browser[1].write(head)
    await _until_one_ends(_pump(site[0], browser[1], holder), _gone(browser[0]))


def _forwarded(request: ProxyRequest) -> bytes:
    kept = [name + b": " + value for name, value in request.fields if not _DROPPED.fullmatch(name)]
    lines = [
        f"{request.method} {request.target.path} HTTP/1.1".encode(),
        f"Host: {request.target.authority}".encode(),
        *kept,
        b"Connection: close",
    ]
    return b"\r\n".join((*lines, b"", b""))


async def _send_body(
    reader: asyncio.StreamReader, site: asyncio.StreamWriter, request: ProxyRequest, holder: Pass
) -> None:
    length = request.value(b"content-length") or b"0"
    left = int(length) if re.fullmatch(rb"\d{1,9}", length) else MOST_BODY + 1
    if left > MOST_BODY:
        raise Closed
    while left:
        data = await reader.read(min(left, PIECE))
        if not data:
            raise EOFError
        holder.count(len(data))
        left -= len(data)
        site.write(data)
        await site.drain()


async def _final_head(site: asyncio.StreamReader, holder: Pass) -> bytes:
    """The head of an answer, said to be the connection's last; interim ones are left out."""
    for _ in range(4):
        head = await site.readuntil(b"\r\n\r\n")
        holder.count(len(head))
        start, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        status = re.match(rb"HTTP/1\.[01] ([1-5]\d\d)\b", start)
        if status is None or status[1] == b"101":
            break
        if not status[1].startswith(b"1"):
            kept = [line for line in lines if not _DROPPED_BACK.match(line)]
            return b"\r\n".join((start, *kept, b"Connection: close", b"", b""))
    raise Closed


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, holder: Pass) -> None:
    while data := await source.read(PIECE):
        holder.count(len(data))
        sink.write(data)
        await sink.drain()


async def _gone(reader: asyncio.StreamReader) -> None:
    """Wait until the other side hangs up; it has nothing more to say."""
    while await reader.read(PIECE):
        pass


async def _until_one_ends(*pumps: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.ensure_future(pump) for pump in pumps]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _answer(status: str) -> bytes:
    if not status:
        return b""
    demand = 'Proxy-Authenticate: Basic realm="pass"\r\n' if status.startswith("407") else ""
    return f"HTTP/1.1 {status}\r\n{demand}Content-Length: 0\r\nConnection: close\r\n\r\n".encode()


async def _flushed(writer: asyncio.StreamWriter) -> None:
    """Close a connection; what is not taken in time is lost."""
    writer.close()
    with suppress(OSError):
        async with asyncio.timeout(FLUSH_SECONDS):
            await writer.wait_closed()
    writer.transport.abort()
