"""HTTP/1.1 client for one GET per connection, with a limit on every part of the response.

aiohttp, which calls the upstreams, is unsuitable for two reasons: a server that sends interim responses
without end blocks its event loop for seconds, and aiohttp itself chooses the address to connect to.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from centgate.web.fetch.connector import Connection
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fairness import CooperativeScheduler
from centgate.web.fetch.url import Target

READ_BYTES = 16 * 1024
"""Bytes that are parsed before control returns to the event loop."""
MAX_HEAD = 64 * 1024
"""Maximum bytes before the body, including interim responses."""
MAX_FIELDS = 256
MAX_FRAMING = 1 << 20
"""Maximum bytes that are neither head nor body: chunk sizes and extensions, trailers."""


class Headers(Mapping[str, str]):
    """Case-insensitive header fields; repeated fields are joined with commas, cookies with newlines."""

    def __init__(self, fields: Iterable[tuple[bytes, bytes]]) -> None:
        self._fields: dict[str, str] = {}
        for raw_name, raw_value in fields:
            name, value = _decode_field(raw_name).lower(), _decode_field(raw_value)
            separator = "\n" if name == "set-cookie" else ", "  # the dates of cookies contain commas
            self._fields[name] = f"{self._fields[name]}{separator}{value}" if name in self._fields else value

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


class HttpExchange:
    """One request and its response: first the head, then the body in chunks."""

    def __init__(self, target: Target, connection: Connection, scheduler: CooperativeScheduler) -> None:
        self._target, self._host = target, target.label
        self._reader, self._writer = connection
        self._scheduler = scheduler
        self._response = _ResponseParser()
        self._read = 0

    async def send_request(self, fields: Mapping[str, str]) -> None:
        """Send the request and read the head of the response."""
        lines = [f"GET {self._target.path} HTTP/1.1", f"Host: {self._target.authority}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        self._writer.write("\r\n".join((*lines, "", "")).encode("ascii"))
        while self._response.status is None:
            await self._receive()
            if self._response.has_too_many_fields or self._overhead > MAX_HEAD:
                raise FetchFailed("too_large", f"{self._host} answered with too many or too large headers")
            if self._reader.at_eof() and self._response.status is None:
                raise FetchFailed("failed", f"{self._host} closed the connection before it answered")

    @property
    def status(self) -> int:
        """Status of the final response; 0 before its head was read."""
        return self._response.status or 0

    @property
    def headers(self) -> Headers:
        """Header fields of the final response."""
        return self._response.headers

    @property
    def _overhead(self) -> int:
        return self._read - self._response.received

    async def iter_body(self) -> AsyncGenerator[bytes]:
        """Yield the body without chunk framing, still content-coded."""
        while True:
            if chunk := self._response.take_body():
                yield chunk
            if self._response.complete:
                return
            if self._reader.at_eof():
                self._check_complete()
                return
            await self._receive()
            if self._response.has_too_many_fields or self._overhead > MAX_HEAD + MAX_FRAMING:
                raise FetchFailed("too_large", f"{self._host} sent too much framing overhead")

    async def _receive(self) -> None:
        """Read the available bytes and parse them."""
        try:
            data = await self._reader.read(READ_BYTES)
        except OSError:
            raise FetchFailed("unreachable", f"{self._host} broke the connection") from None
        self._read += len(data)
        await self._scheduler.wait_turn()
        try:
            self._response.feed(data)
        except (HttpParserError, HttpParserUpgrade):
            raise FetchFailed("failed", f"{self._host} answered with invalid HTTP") from None

    def _check_complete(self) -> None:
        headers = self.headers
        if "content-length" in headers or "transfer-encoding" in headers:
            raise FetchFailed("failed", f"{self._host} closed the connection before the end of its answer")


class _ResponseParser:
    """State of the response parser; ignores bytes after a complete response."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers = Headers(())
        self.has_too_many_fields = False
        self.complete = False
        self.received = 0
        self._fields: list[tuple[bytes, bytes]] = []
        self._trailers = 0
        self._body = bytearray()
        self._parser = HttpResponseParser(self)
        # common deviations, harmless on a connection that carries a single response
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_data_after_close=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> None:
        """Parse bytes. Raises HttpParserError or HttpParserUpgrade if they are not a response."""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if not self.complete:
                raise

    def take_body(self) -> bytes:
        """Return the part of the body received since the last call."""
        body = bytes(self._body)
        self._body.clear()
        return body

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.complete:
            return
        if self.status is None:
            self._fields.append((name, value))
        else:
            self._trailers += 1
        self.has_too_many_fields = max(len(self._fields), self._trailers) > MAX_FIELDS

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self.complete:
            return
        if status < 100:
            raise ValueError("no status")
        if status >= 200:
            self.status, self.headers = status, Headers(self._fields)
        self._fields.clear()

    def on_body(self, data: bytes) -> None:
        if not self.complete:
            self._body += data
            self.received += len(data)

    def on_message_complete(self) -> None:
        self.complete = self.status is not None


def _decode_field(raw: bytes) -> str:
    try:
        return raw.decode().strip()
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip()
