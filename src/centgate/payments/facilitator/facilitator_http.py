"""Minimal HTTP/1.1 connection pool for one server: every payment makes one POST to the facilitator.

A general client takes three to five times the processor time of this one, a tenth of a whole paid call
(docs/performance.md). Not implemented because not needed: redirects, cookies, proxies, compression.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from functools import cache
from typing import cast

from aiohappyeyeballs import start_connection  # pyright: ignore[reportUnknownVariableType]
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from msgspec import Struct
from yarl import URL

from centgate import __version__
from centgate.payments.shared_timer import SharedTimer

AGENT = f"Centgate/{__version__}"
MAX_IDLE_SECONDS = 4.0
"""Maximum idle seconds of a connection before it is closed: servers close theirs after five or more."""
MAX_FRAMING_BYTES = 64 * 1024
"""Maximum bytes of a response besides its body: interim responses, headers, chunk sizes."""
HAPPY_EYEBALLS_DELAY = 0.25
"""Seconds after which the next IP address of a host is tried in parallel (happy eyeballs)."""


@cache
def _default_tls() -> ssl.SSLContext:
    """Return the TLS context with the machine's certificates, which take 20 ms to load."""
    return ssl.create_default_context()


class NoResponse(OSError):
    """No complete response was received."""


class NotConnected(OSError):
    """No connection was established, so nothing of the request was sent."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class FacilitatorResponse(Struct, frozen=True):
    """Status, body and `EXTENSION-RESPONSES` header of a response."""

    status: int
    content: bytes
    extension_responses: str | None = None


class FacilitatorPool:
    """Posts JSON to one URL; opens a connection for each concurrent request and reuses idle ones."""

    def __init__(self, url: str, max_bytes: int, *, tls: ssl.SSLContext | None = None) -> None:
        """Create a pool that accepts response bodies up to a size limit.

        Without `tls`, the machine's certificates are trusted. Raises ValueError for an invalid URL.
        """
        address = URL(url)
        self._host, self._port = address.raw_host or "", address.port or 0
        self._host.encode("idna")  # name resolution does it too, but too late for a clear error
        self._tls = (tls or _default_tls()) if address.scheme == "https" else None
        self._max_bytes = max_bytes
        self._start = (
            f"POST {address.raw_path_qs} HTTP/1.1\r\nHost: {address.raw_authority.rpartition('@')[2]}\r\n"
            f"User-Agent: {AGENT}\r\nContent-Type: application/json\r\n"
        )
        self._fields: dict[str, str] = {}
        if address.user is not None:
            credentials = f"{address.user}:{address.password or ''}".encode()
            self._fields["Authorization"] = f"Basic {b64encode(credentials).decode()}"
        self._idle = deque[tuple[float, _Connection]]()
        """Idle connections with the time of their last use, most recently used last."""
        self._timer = SharedTimer()
        self._closed = False

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str],
        *,
        max_wait: float = 30.0,
        connect_timeout: float | None = None,
    ) -> FacilitatorResponse:
        """Post a body and return the response.

        Raises NotConnected if nothing was sent: to connect it waits for `connect_timeout` seconds, or for
        `max_wait` if that is less. Otherwise raises TimeoutError after `max_wait` seconds in total, or
        NoResponse if no complete and valid response is received.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        deadline = now + max_wait
        connect_deadline = deadline if connect_timeout is None else min(deadline, now + connect_timeout)
        fields = {**self._fields, **headers}.items()
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
        head = f"{self._start}{lines}Content-Length: {len(body)}\r\n\r\n".encode()
        connection = self._take_idle(now) or await self._connect(connect_deadline)
        self._timer.call_at(deadline, connection, connection.time_out)
        try:
            return await connection.send(head + body, loop.create_future())
        finally:
            self._timer.cancel(connection)
            now = loop.time()
            if connection.reusable and not self._closed:
                self._idle.append((now, connection))
            else:
                connection.close()
            self._close_expired(now)

    def close(self) -> None:
        """Close idle connections now, and those in use after their response."""
        self._closed = True
        while self._idle:
            self._idle.pop()[1].close()

    def _take_idle(self, now: float) -> _Connection | None:
        """Take the most recently used idle connection, so that others can expire; None without any."""
        self._close_expired(now)
        while self._idle:
            _, connection = self._idle.pop()
            if connection.reusable:
                return connection
            connection.close()
        return None

    def _close_expired(self, now: float) -> None:
        """Close connections that have been idle for too long."""
        before = now - MAX_IDLE_SECONDS
        while self._idle and self._idle[0][0] <= before:
            self._idle.popleft()[1].close()

    async def _connect(self, deadline: float) -> _Connection:
        """Open a connection. Raises NotConnected."""
        try:
            async with asyncio.timeout_at(deadline):
                return await self._open_connection()
        except TimeoutError as error:
            raise NotConnected("no connection in time", timed_out=True) from error
        except (OSError, UnicodeError) as error:
            raise NotConnected(type(error).__name__) from error

    async def _open_connection(self) -> _Connection:
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        sock = await start_connection(addresses, happy_eyeballs_delay=HAPPY_EYEBALLS_DELAY)
        connection = _Connection(self._max_bytes)
        try:
            await loop.create_connection(
                lambda: connection,
                sock=sock,
                ssl=self._tls,
                server_hostname=self._host if self._tls else None,
            )
        except BaseException:
            connection.close()  # first: an open transport would continue on the reused file descriptor
            sock.close()
            raise
        return connection


class _Connection(asyncio.Protocol):
    """One connection, which handles one request and response at a time."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._transport: asyncio.WriteTransport | None = None
        self._response: asyncio.Future[FacilitatorResponse] | None = None
        self._has_headers = self._has_length = False
        self._is_keep_alive = False
        """True if the server keeps the connection open and has sent nothing unexpected."""

    @property
    def reusable(self) -> bool:
        """True if the connection can take another request."""
        return self._is_keep_alive and self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's transport has another base class

    def send(
        self, request: bytes, response: asyncio.Future[FacilitatorResponse]
    ) -> asyncio.Future[FacilitatorResponse]:
        """Send a request; its response, or NoResponse if it is not complete, becomes that of the future."""
        assert self._transport
        self._is_keep_alive = False
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # common, harmless deviations
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._content = bytearray()
        self._bytes_read = 0
        self._extension_responses: str | None = None
        self._has_headers = self._has_length = False
        self._response = response
        self._transport.write(request)
        return response

    def time_out(self) -> None:
        """Give up waiting for the response."""
        if self._response and self._is_waiting:
            self._response.set_exception(TimeoutError())

    def close(self) -> None:
        if self._transport:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        if not self._is_waiting:  # unsolicited data
            self.close()
            return
        self._bytes_read += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._fail("sent invalid HTTP")
        if len(self._content) > self._max_bytes or self._bytes_read - len(self._content) > MAX_FRAMING_BYTES:
            self._fail("sent a response over the size limit")

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None and self._has_headers and not self._has_length:  # such a body ends with the connection
            self._complete()
        self._fail("closed the connection before a complete response")

    def on_message_begin(self) -> None:
        if not self._is_waiting:  # a second answer to one request
            self._is_keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._has_length |= name in (b"content-length", b"transfer-encoding")
        if name == b"extension-responses":
            self._extension_responses = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_headers = self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        self._content += body

    def on_message_complete(self) -> None:
        if not self._has_headers:  # an interim response
            self._has_length = False
        elif self._is_waiting:
            self._is_keep_alive = self._parser.should_keep_alive() and self._parser.get_status_code() == 200
            self._complete()

    @property
    def _is_waiting(self) -> bool:
        """True while a response is awaited."""
        return self._response is not None and not self._response.done()

    def _complete(self) -> None:
        if self._response and self._is_waiting:
            self._response.set_result(
                FacilitatorResponse(
                    self._parser.get_status_code(), bytes(self._content), self._extension_responses
                )
            )

    def _fail(self, why: str) -> None:
        if self._response and self._is_waiting:
            self._response.set_exception(NoResponse(why))
