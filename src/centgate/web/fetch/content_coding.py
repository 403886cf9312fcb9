"""Read bodies into memory, limited before and after decompression, so that bombs are stopped early."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Literal

from centgate.sanitize import quote_line
from centgate.web.fetch.failure import FetchFailed
from centgate.web.fetch.fairness import CooperativeScheduler

ACCEPT_ENCODING = "gzip, deflate"
CHUNK_BYTES = 64 * 1024
"""Bytes that are inflated before control returns to the event loop."""
GZIP_WBITS = 31
"""zlib's `wbits` value for the gzip format."""
GZIP_FIRST_BYTE = 0x1F
MAX_MEMBERS = 1000
"""Maximum number of gzip members: each costs time, and it may be empty."""
ContentCoding = Literal["gzip", "deflate"]
_CODINGS: dict[str, ContentCoding | None] = {
    "": None,
    "identity": None,
    "gzip": "gzip",
    "x-gzip": "gzip",
    "deflate": "deflate",
}


def parse_coding(header: str, host: str) -> ContentCoding | None:
    """Return the coding in `Content-Encoding`. Raises FetchFailed for an unrequested or second coding."""
    name = header.strip().lower()
    if name not in _CODINGS:
        raise FetchFailed(
            "unsupported", f"{host} answered with an unsupported content coding: {quote_line(name, 40)}"
        )
    return _CODINGS[name]


async def read_body(
    chunks: AsyncGenerator[bytes],
    coding: ContentCoding | None,
    max_bytes: int,
    *,
    buffer: bytearray,
    host: str,
    scheduler: CooperativeScheduler,
) -> None:
    """Read a body into `buffer`, which keeps the bytes read if this raises FetchFailed."""
    inflater = Inflater(coding) if coding else None
    received = 0
    try:
        async with aclosing(chunks):
            async for piece in chunks:
                received += len(piece)
                for part in inflater.inflate(piece) if inflater else (piece,):
                    buffer += part
                    _check_size(len(buffer), max_bytes, host)
                    if inflater:
                        await scheduler.wait_turn()
                _check_size(received, max_bytes, host)
        if inflater and received and not inflater.is_complete:
            raise FetchFailed("failed", f"{host} answered with a truncated compressed body")
    except zlib.error:
        raise FetchFailed("failed", f"{host} answered with a broken compressed body") from None


def _check_size(size: int, max_bytes: int, host: str) -> None:
    if size > max_bytes:
        raise FetchFailed("too_large", f"{host} answered with more than {_format_size(max_bytes)}")


def _format_size(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB" if size >= 1024 else f"{size} bytes"


class Inflater:
    """Decompressor for gzip with several members (RFC 1952), and deflate with or without zlib header."""

    def __init__(self, coding: ContentCoding) -> None:
        self._bits = GZIP_WBITS if coding == "gzip" else 0
        self._stream = zlib.decompressobj(GZIP_WBITS)
        self._members = 1

    @property
    def is_complete(self) -> bool:
        """True if the end of the compressed stream was reached."""
        return self._stream.eof

    def inflate(self, data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes in parts of at most `CHUNK_BYTES`. Raises zlib.error if invalid."""
        while data and self._prepare_member(data):
            yield self._stream.decompress(data, CHUNK_BYTES)
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        # zlib may hold back output when a part was full
        while not self._stream.eof and (rest := self._stream.decompress(b"", CHUNK_BYTES)):
            yield rest

    def _prepare_member(self, data: bytes) -> bool:
        """Prepare to inflate `data`; return False for padding, which some servers send after the end."""
        if not self._bits:
            # by RFC 9110 deflate has a zlib header, but some servers omit it; the first byte decides
            self._bits = 15 if data[0] & 0x8F == 0x08 else -15
        elif not self._stream.eof:
            return True
        elif self._bits != GZIP_WBITS or data[0] != GZIP_FIRST_BYTE:
            return False
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise zlib.error("too many members")
        self._stream = zlib.decompressobj(self._bits)
        return True
