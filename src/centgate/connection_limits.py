"""Limits on HTTP connections: header size, timeouts, and connections per address.

uvicorn limits none of these. Sizes are checked while bytes arrive, deadlines once a second for all
connections together.
"""

from __future__ import annotations

import asyncio
import math
import resource
import secrets
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Any

import httptools
import structlog
import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from centgate import envelope
from centgate.client_address import address_key, parse_address, parse_network
from centgate.errors import CentgateError, InternalError, InvalidRequest, Issue

MAX_HEADERS = 100
"""Maximum number of header fields of a request; each takes about 130 bytes of memory, even if it is short."""
MAX_PIPELINED = 32
"""Maximum number of requests that wait on a connection for the response to an earlier one."""
FEED_BYTES = 16 * 1024
"""Bytes passed to the parser at a time; incomplete headers exceed their limit by at most this much."""
LINGER_SECONDS = 2.0
"""Seconds for a client to read an error; closing at once could reset the connection before that."""
LINGER_BYTES = 1024 * 1024
"""Maximum number of bytes discarded in that time."""
DISCONNECTED = "client_disconnected"
"""Key in a request's state that is there if its client left before its response was complete."""
RETRY_AFTER_SECONDS = 5
"""`Retry-After` in seconds for clients rejected because of the number of connections."""


class ConnectionLimits(Struct, frozen=True):
    """Limits of one server process; times are in seconds."""

    header_bytes: int = 64 * 1024
    header_timeout: float = 10
    """From the first byte of a request; from the connection's start if no byte is sent."""
    body_timeout: float = 30
    """From the end of the headers."""
    write_timeout: float = 60
    """Time that bytes of a response may wait for the client to read them."""
    connections: int = 4096
    connections_per_address: int = 1024
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks without a limit per address."""
    sweep_interval: float = 1


class LimitedConfig(uvicorn.Config):
    """uvicorn configuration with connection limits; it can be pickled for worker processes."""

    def __init__(
        self, app: ASGIApp | Callable[[], ASGIApp] | str, limits: ConnectionLimits, **options: Any
    ) -> None:
        """`options` are those of uvicorn."""
        super().__init__(app, http=LimitedProtocol, **options)
        self.connection_table = ConnectionTable(limits)


class ConnectionTable:
    """The open connections of one server process."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._maximum = min(limits.connections, _open_file_limit() // 2)  # half is left for other files
        self._trusted = tuple(parse_network(each) for each in limits.trusted_proxies)
        self._open: dict[LimitedProtocol, str | None] = {}  # values: the key it is counted by
        self._per_address = Counter[str]()
        self._rejected = 0
        self._sweeping = False

    def try_add(self, connection: LimitedProtocol) -> bool:
        """Add a connection and return True; False if there are too many."""
        key = self._address_key(connection)
        full = len(self._open) >= self._maximum
        if full or (key and self._per_address[key] >= self.limits.connections_per_address):
            self._rejected += 1
            return False
        self._open[connection] = key
        if key:
            self._per_address[key] += 1
        if not self._sweeping:
            self._sweeping = True
            self._schedule_sweep(connection.loop)
        return True

    def remove(self, connection: LimitedProtocol) -> None:
        """Forget a closed connection; one that was not admitted is ignored."""
        if key := self._open.pop(connection, None):
            self._per_address[key] -= 1
            if not self._per_address[key]:
                del self._per_address[key]

    def _address_key(self, connection: LimitedProtocol) -> str | None:
        """Return the key that a client's connections are counted by; None if they are not limited."""
        if connection.client is None:
            return None
        address = parse_address(connection.client[0])
        if address is None or any(address in network for network in self._trusted):
            return None
        return address_key(address)

    def _schedule_sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_later(self.limits.sweep_interval, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Check the deadlines of all connections. One timer for all is cheaper than one for each request."""
        self._sweeping = bool(self._open)
        if self._sweeping:
            self._schedule_sweep(loop)
        now = loop.time()
        for connection in tuple(self._open):
            connection.check_deadlines(now)
        if self._rejected:  # at most one line per second
            structlog.get_logger().warning(
                "connections over the limit were rejected", rejected=self._rejected, open=len(self._open)
            )
            self._rejected = 0


class RequestPhase(Enum):
    """Progress in receiving the latest request of a connection."""

    CONNECTED = "nothing has been sent yet"
    HEADERS = "its headers are being sent"
    BODY = "its body is being sent"
    RECEIVED = "it is complete"
    REFUSED = "it broke a limit, and no more is read"


class LimitReached(Exception):
    """Stops the parser; the error response is prepared."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(config, LimitedConfig)
        self._table = config.connection_table
        self._limits = config.connection_table.limits
        self._phase = RequestPhase.CONNECTED
        self._deadline = math.inf
        self._write_deadline = math.inf
        self._unanswered = 0  # requests whose headers are complete and whose responses are not
        self._bytes_since_progress = 0  # since the start of a request, or the latest part of its body
        self._error_response = b""
        self._running: RequestResponseCycle | None = None  # uvicorn's `cycle` is the latest that was received

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Admit the connection, or answer 503 and close it."""
        super().connection_made(transport)
        if self._table.try_add(self):
            self._deadline = self.loop.time() + self._limits.header_timeout
            return
        self._phase = RequestPhase.REFUSED
        error = InternalError(
            "too many connections are open; try again later", retry_after=RETRY_AFTER_SECONDS
        )
        self.transport.write(self._render_error(503, error, _new_request_id()))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the table, and tell the request at work that its client has left."""
        self._table.remove(self)
        super().connection_lost(exc)
        running = self._running
        if running is not None and not running.response_complete:
            # uvicorn tells only the latest of pipelined requests; an earlier one would write to a closed
            # socket
            running.disconnected = True
            running.message_event.set()
            running.scope.setdefault("state", {})[DISCONNECTED] = True

    def data_received(self, data: bytes) -> None:
        """Parse received bytes in parts."""
        if len(data) <= FEED_BYTES:
            self._feed_parser(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), FEED_BYTES):
            self._feed_parser(view[start : start + FEED_BYTES])

    def on_message_begin(self) -> None:
        """Start the header deadline at the first byte of a request, unless an earlier one waits."""
        super().on_message_begin()
        self._phase = RequestPhase.HEADERS
        # reading is paused while a request waits for earlier ones, which is not the client's fault
        self._deadline = math.inf if self.pipeline else self.loop.time() + self._limits.header_timeout
        self._bytes_since_progress = 0

    def on_headers_complete(self) -> None:
        """Check the headers, and start the request unless earlier ones are unanswered."""
        if self._has_too_large_header() or len(self.headers) > MAX_HEADERS:
            self._refuse_headers()
            raise LimitReached
        if len(self.pipeline) >= MAX_PIPELINED:
            self._refuse(400, f"more than {MAX_PIPELINED} requests were sent without waiting for a response")
            raise LimitReached
        super().on_headers_complete()
        # the parser reports trailers as headers; they must not reach the headers the application reads
        self.headers = []
        self._phase = RequestPhase.BODY
        # as for its headers: reading may be paused
        self._deadline = math.inf if self._unanswered else self.loop.time() + self._limits.body_timeout
        self._bytes_since_progress = 0
        self._unanswered += 1

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Append to the body, which counts as progress."""
        super().on_body(body)
        self._bytes_since_progress = 0

    def on_message_complete(self) -> None:
        """Stop the body deadline of a request."""
        super().on_message_complete()
        self._phase = RequestPhase.RECEIVED
        self._deadline = math.inf if self._unanswered else self.loop.time() + self.timeout_keep_alive

    def on_response_complete(self) -> None:
        """Start the next request, or wait for one; replaces uvicorn's method, which sets timers."""
        self.server_state.total_requests += 1
        self._unanswered -= 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self._phase is RequestPhase.HEADERS and self._deadline == math.inf:
            self._deadline = self.loop.time() + self._limits.header_timeout
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            if self._phase is RequestPhase.BODY and not self.pipeline:
                self._deadline = self.loop.time() + self._limits.body_timeout
        elif self._phase is RequestPhase.REFUSED:
            self._close_with_error()
        elif self._phase is RequestPhase.RECEIVED:
            self._deadline = self.loop.time() + self.timeout_keep_alive

    def check_deadlines(self, now: float) -> None:
        """End the connection if a deadline has passed."""
        if not self.transport.get_write_buffer_size():
            self._write_deadline = math.inf
        elif self._write_deadline == math.inf:
            self._write_deadline = now + self._limits.write_timeout
        elif now >= self._write_deadline:
            self.transport.abort()
            return
        if now >= self._deadline:
            self._deadline = math.inf
            self._handle_timeout()

    def _handle_timeout(self) -> None:
        """End the connection: with a 408 response where its phase allows one."""
        match self._phase:
            case RequestPhase.HEADERS:
                self._refuse(408, f"the headers were not complete within {self._limits.header_timeout:g} s")
            case RequestPhase.BODY:
                self._refuse(408, f"the body was not complete within {self._limits.body_timeout:g} s")
            case RequestPhase.REFUSED:
                self.transport.abort()
            case RequestPhase.CONNECTED | RequestPhase.RECEIVED:
                self.transport.close()

    def _feed_parser(self, data: bytes | memoryview) -> None:
        """Pass bytes to the parser, and refuse the request if its headers or trailers get too large."""
        if self._phase is RequestPhase.REFUSED:
            self._discard(data)
            return
        assert self.parser is not None  # set until the connection is lost
        self._bytes_since_progress += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # only HTTP/1.1 is supported: the upgrade is ignored and the request answered
        except httptools.HttpParserError:
            self._refuse(400, "the request is not valid HTTP/1.1")
        if self._phase is not RequestPhase.HEADERS and self._phase is not RequestPhase.BODY:
            return
        if self._bytes_since_progress > self._limits.header_bytes or len(self.headers) > MAX_HEADERS:
            self._refuse_headers()  # applies to trailers too

    def _discard(self, data: bytes | memoryview) -> None:
        """Keep reading for a short time, so that the client can read the error."""
        if self._unanswered:
            self.flow.pause_reading()
            return
        self._bytes_since_progress += len(data)
        if self._bytes_since_progress > LINGER_BYTES:
            self.transport.abort()

    def _has_too_large_header(self) -> bool:
        """True if complete headers exceed the limit; measured only if enough bytes were received."""
        limit = self._limits.header_bytes
        if self._bytes_since_progress + FEED_BYTES <= limit:
            return False
        fields = sum(len(name) + len(value) + len(b": \r\n") for name, value in self.headers)
        return len(b"POST  HTTP/1.1\r\n") + len(self.url) + fields > limit

    def _refuse_headers(self) -> None:
        limit = f"{self._limits.header_bytes} bytes or {MAX_HEADERS} fields"
        self._refuse(431, f"the headers are larger than {limit}")

    def _refuse(self, status: int, message: str) -> None:
        """Stop parsing; send an error after the responses to all earlier requests, and close."""
        if self._phase is RequestPhase.REFUSED:
            return
        error, request_id = InvalidRequest([Issue("", message)]), _new_request_id()
        self._error_response = self._render_error(status, error, request_id)
        if self._phase is RequestPhase.BODY:
            self._abandon_request()
        self._phase, self._deadline = RequestPhase.REFUSED, math.inf
        structlog.get_logger().info(
            "a request was refused", status=status, reason=message, request_id=request_id
        )
        if not self._unanswered:
            self._close_with_error()

    def _abandon_request(self) -> None:
        """Abort the request whose body is incomplete."""
        request = self.cycle
        if self.pipeline and self.pipeline[0][0] is request:
            self.pipeline.popleft()
            self._unanswered -= 1
        elif request.response_started:  # too late to send an error response
            self._error_response = b""
            request.keep_alive = False
        else:  # the application sees a disconnected client
            request.disconnected = True
            request.message_event.set()
            self._unanswered -= 1

    def _close_with_error(self) -> None:
        """Send the error and end the stream; close when the client does, or after LINGER seconds."""
        if self.transport.is_closing():
            return
        self.transport.write(self._error_response)
        try:
            self.transport.write_eof()
        except OSError:  # the client has reset the connection
            self.transport.abort()
            return
        self.flow.resume_reading()  # otherwise the client's close would not be noticed
        self._bytes_since_progress = 0
        self._deadline = self.loop.time() + LINGER_SECONDS

    def _render_error(self, status: int, error: CentgateError, request_id: str) -> bytes:
        """Build a complete error response, bypassing the application."""
        body = envelope.render_error(error, request_id)
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
            (b"x-request-id", request_id.encode()),
        ]
        if error.retry_after is not None:
            headers.append((b"retry-after", str(error.retry_after).encode()))
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
        return STATUS_LINE[status] + lines + b"\r\n" + body


def _new_request_id() -> str:
    return "req_" + secrets.token_hex(12)


def _open_file_limit() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if limit == resource.RLIM_INFINITY else limit
