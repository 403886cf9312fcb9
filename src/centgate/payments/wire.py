"""HTTP/1.1 over kept-alive connections to one server, for the one request that every payment makes.

A general client takes three to five times the processor time of this, a tenth of a whole paid call
(docs/performance.md). What is not needed here is not here: redirects, cookies, proxies, compression.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import cast

from aiohappyeyeballs import start_connection  # pyright: ignore[reportUnknownVariableType]
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from yarl import URL

AGENT = f"Centgate/{version('centgate')}"
IDLE = 4.0
"""Seconds after which a connection that was not used is not used again: servers close theirs from five on."""
FRAMING = 64 * 1024
"""Bytes of a response besides its body: interim responses, heads, the sizes of chunks."""
SECOND_TRY = 0.25
"""Seconds after which the next address of a host is tried beside the one that has not answered."""


class NoResponse(OSError):
    """No whole response came."""


class NotConnected(OSError):
    """No connection came about, so that nothing of the request was sent."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Response:
    """A response as it came."""

    status: int
    content: bytes


class Wire:
    """Posts JSON to one address; as many connections as there are requests at once."""

    def __init__(self, url: str, most: int) -> None:
        """`most`: bytes of a response's body that are read. ValueError for an address that cannot be one."""
        address = URL(url)
        self._host, self._port = address.raw_host or "", address.port or 0
        self._host.encode("idna")  # what looks names up does so too, when it is late for a word on it
        self._tls = ssl.create_default_context() if address.scheme == "https" else None
        self._most = most
        self._start = (
            f"POST {address.raw_path_qs} HTTP/1.1\r\nHost: {address.raw_authority.rpartition('@')[2]}\r\n"
            f"User-Agent: {AGENT}\r\nContent-Type: application/json\r\n"
        )
        self._fields: dict[str, str] = {}
        if address.user is not None:
            credentials = f"{address.user}:{address.password or ''}".encode()
            self._fields["Authorization"] = f"Basic {b64encode(credentials).decode()}"
        self._idle = deque[tuple[float, _Connection]]()
        """Connections that can take a request, and since when; the last used is the last."""
        self._closed = False

    async def post(self, body: bytes, headers: Mapping[str, str], *, max_wait: float = 30.0) -> Response:
        """Return the response to a body.

        Raises NotConnected when nothing was sent, else TimeoutError after `max_wait` seconds in all, or
        NoResponse when no whole and proper response comes.
        """
        deadline = asyncio.get_running_loop().time() + max_wait
        fields = {**self._fields, **headers}.items()
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        head = f"{self._start}{lines}Content-Length: {len(body)}\r\n\r\n".encode()
        connection = self._unused() or await self._connect(deadline)
        try:
            async with asyncio.timeout_at(deadline):
                return await connection.ask(head + body)
        finally:
            if connection.reusable and not self._closed:
                self._idle.append((asyncio.get_running_loop().time(), connection))
            else:
                connection.close()
            self._let_go()

    def close(self) -> None:
        """Let go of all connections, those in use when they are through."""
        self._closed = True
        while self._idle:
            self._idle.pop()[1].close()

    def _unused(self) -> _Connection | None:
        """A connection from before, the last that was used first, so that the others can go."""
        self._let_go()
        while self._idle:
            _, connection = self._idle.pop()
            if connection.reusable:
                return connection
            connection.close()
        return None

    def _let_go(self) -> None:
        """Close what was not used for long."""
        before = asyncio.get_running_loop().time() - IDLE
        while self._idle and self._idle[0][0] <= before:
            self._idle.popleft()[1].close()

    async def _connect(self, deadline: float) -> _Connection:
        """Open a connection. Raises NotConnected."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._connected()
        except TimeoutError as error:
            raise NotConnected("no connection in time", timed_out=True) from error
        except (OSError, UnicodeError) as error:
            raise NotConnected(type(error).__name__) from error

    async def _connected(self) -> _Connection:
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        reached = await start_connection(addresses, happy_eyeballs_delay=SECOND_TRY)
        connection = _Connection(self._most)
        try:
            await loop.create_connection(
                lambda: connection,
                sock=reached,
                ssl=self._tls,
                server_hostname=self._host if self._tls else None,
            )
        except BaseException:
            connection.close()  # first, since a transport that is left goes on with the socket's number
            reached.close()
            raise
        return connection


class _Connection(asyncio.Protocol):
    """One connection: a request, its response, and then perhaps the next."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._begun = self._measured = False
        self._kept = False
        """Whether the server keeps it, and nothing has come that was not asked for."""

    @property
    def reusable(self) -> bool:
        """Whether it can take another request."""
        return self._kept and self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is none by its class

    async def ask(self, request: bytes) -> Response:
        """Send a request; NoResponse unless all of the response comes."""
        assert self._transport
        self._kept = False
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # deviations that are common, and harmless
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._content = bytearray()
        self._read = 0
        self._begun = self._measured = False
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        if self._transport:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._waiting:  # nobody has asked for that
            self.close()
            return
        self._read += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._fail("answered in broken HTTP")
        if len(self._content) > self._most or self._read - len(self._content) > FRAMING:
            self._fail("answered more than is read")

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._begun and not self._measured:  # such a body ends with the connection
            self._complete()
        self._fail("hung up before it had answered")

    def on_message_begin(self) -> None:
        if not self._waiting:  # a second answer to one request
            self._kept = False

    def on_header(self, name: bytes, _value: bytes) -> None:
        self._measured |= name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        self._begun = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._content += body

    def on_message_complete(self) -> None:
        if not self._begun:  # an interim response
            self._measured = False
        elif self._waiting:
            self._kept = self._parser.should_keep_alive() and self._parser.get_status_code() == 200
            self._complete()

    @property
    def _waiting(self) -> bool:
        """Whether a response is waited for."""
        return self._answer is not None and not self._answer.done()

    def _complete(self) -> None:
        if self._answer and self._waiting:
            self._answer.set_result(Response(self._parser.get_status_code(), bytes(self._content)))

    def _fail(self, why: str) -> None:
        if self._answer and self._waiting:
            self._answer.set_exception(NoResponse(why))
