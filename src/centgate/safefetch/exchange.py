"""One GET on one connection, with every part of the answer bounded.

aiohttp, which asks our upstreams, is not used for this: a server that sends interim responses without end
holds up its event loop for seconds, and it chooses the address to connect to by itself.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from centgate.safefetch.connecting import Connection
from centgate.safefetch.failure import FetchFailed
from centgate.safefetch.fairness import Fairness
from centgate.safefetch.target import Target

PIECE = 16 * 1024
"""Bytes that are parsed before other tasks have a turn."""
MOST_HEAD = 64 * 1024
"""Bytes before the body, interim responses included."""
MOST_FIELDS = 256
MOST_FRAMING = 1 << 20
"""Bytes that are neither head nor body: sizes and extensions of chunks, trailers."""


class Headers(Mapping[str, str]):
    """Header fields, found in any case; a field that came more than once is one list."""

    def __init__(self, fields: Iterable[tuple[bytes, bytes]]) -> None:
        self._fields: dict[str, str] = {}
        for raw_name, raw_value in fields:
            name, value = _text(raw_name).lower(), _text(raw_value)
            self._fields[name] = f"{self._fields[name]}, {value}" if name in self._fields else value

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


class Exchange:
    """A request that was sent, and its answer: first the head, then the body piece by piece."""

    def __init__(self, target: Target, connection: Connection, fairness: Fairness) -> None:
        self._target, self._host = target, target.shown
        self._reader, self._writer = connection
        self._fairness = fairness
        self._incoming = _Incoming()
        self._read = 0

    async def ask(self, fields: Mapping[str, str]) -> None:
        """Send the request and read the head of its answer."""
        lines = [f"GET {self._target.path} HTTP/1.1", f"Host: {self._target.authority}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        self._writer.write("\r\n".join((*lines, "", "")).encode("ascii"))
        while self._incoming.status is None:
            await self._more()
            if self._incoming.flooded or self._beside_body > MOST_HEAD:
                raise FetchFailed("too_large", f"{self._host} answered with more headers than are read")
            if self._reader.at_eof() and self._incoming.status is None:
                raise FetchFailed("failed", f"{self._host} hung up before it had answered")

    @property
    def status(self) -> int:
        """Of the final response; 0 before its head was read."""
        return self._incoming.status or 0

    @property
    def headers(self) -> Headers:
        """Of the final response."""
        return self._incoming.headers

    @property
    def _beside_body(self) -> int:
        return self._read - self._incoming.received

    async def pieces(self) -> AsyncGenerator[bytes]:
        """The body as it comes, chunks put together, its content coding untouched."""
        while True:
            if piece := self._incoming.taken():
                yield piece
            if self._incoming.complete:
                return
            if self._reader.at_eof():
                self._ended()
                return
            await self._more()
            if self._incoming.flooded or self._beside_body > MOST_HEAD + MOST_FRAMING:
                raise FetchFailed("too_large", f"{self._host} wrapped its answer in too much beside it")

    async def _more(self) -> None:
        """Read what is there and parse it."""
        try:
            data = await self._reader.read(PIECE)
        except OSError:
            raise FetchFailed("unreachable", f"{self._host} broke the connection") from None
        self._read += len(data)
        await self._fairness.turn()
        try:
            self._incoming.feed(data)
        except (HttpParserError, HttpParserUpgrade):
            raise FetchFailed("failed", f"{self._host} answered in broken HTTP") from None

    def _ended(self) -> None:
        headers = self.headers
        if "content-length" in headers or "transfer-encoding" in headers:
            raise FetchFailed("failed", f"{self._host} hung up in the middle of its answer")


class _Incoming:
    """What the parser makes of the bytes that came; what follows a complete answer is not looked at."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers = Headers(())
        self.flooded = False
        self.complete = False
        self.received = 0
        self._fields: list[tuple[bytes, bytes]] = []
        self._trailers = 0
        self._body = bytearray()
        self._parser = HttpResponseParser(self)
        # deviations that are common, and harmless where a connection carries one answer alone
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_data_after_close=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> None:
        """Parse; HttpParserError or HttpParserUpgrade for what is no answer."""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if not self.complete:
                raise

    def taken(self) -> bytes:
        """The part of the body that came since the last time."""
        taken = bytes(self._body)
        self._body.clear()
        return taken

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.complete:
            return
        if self.status is None:
            self._fields.append((name, value))
        else:
            self._trailers += 1
        self.flooded = max(len(self._fields), self._trailers) > MOST_FIELDS

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


def _text(raw: bytes) -> str:
    try:
        return raw.decode().strip()
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip()
