"""Bodies in memory: capped before and after their content coding is undone, so that bombs end early."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Literal

from centgate.safefetch.failure import FetchFailed
from centgate.safefetch.fairness import Fairness

ACCEPTED = "gzip, deflate"
CHUNK = 64 * 1024
"""Bytes that are inflated before other tasks have a turn."""
GZIP = 31
"""zlib's word for the format of gzip."""
GZIP_BEGINS = 0x1F
MOST_MEMBERS = 1000
"""Parts of a gzip file that are read: each costs time, and it may be empty."""
Coding = Literal["gzip", "deflate"]
_CODINGS: dict[str, Coding | None] = {
    "": None,
    "identity": None,
    "gzip": "gzip",
    "x-gzip": "gzip",
    "deflate": "deflate",
}


def read_coding(header: str, host: str) -> Coding | None:
    """How a body is coded, by `Content-Encoding`; FetchFailed for what was not asked for, and for two."""
    name = header.strip().lower()
    if name not in _CODINGS:
        raise FetchFailed("unsupported", f"{host} answered in a coding that is not read: {name[:40]}")
    return _CODINGS[name]


async def gather(
    pieces: AsyncGenerator[bytes],
    coding: Coding | None,
    most_bytes: int,
    *,
    into: bytearray,
    host: str,
    fairness: Fairness,
) -> None:
    """Collect a body; `into` keeps what was read when this ends in FetchFailed."""
    inflater = Inflater(coding) if coding else None
    came = 0
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                came += len(piece)
                _check(came, most_bytes, host)
                for part in inflater.inflated(piece) if inflater else (piece,):
                    into += part
                    _check(len(into), most_bytes, host)
                    if inflater:
                        await fairness.turn()
        if inflater and came and not inflater.complete:
            raise FetchFailed("failed", f"{host} answered with a compressed body that is cut short")
    except zlib.error:
        raise FetchFailed("failed", f"{host} answered with a compressed body that is broken") from None


def _check(size: int, most_bytes: int, host: str) -> None:
    if size > most_bytes:
        raise FetchFailed("too_large", f"{host} answered with more than {_size(most_bytes)}")


def _size(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB" if size >= 1024 else f"{size} bytes"


class Inflater:
    """Undoes gzip, members one after another (RFC 1952), or deflate, with and without zlib's wrapping."""

    def __init__(self, coding: Coding) -> None:
        self._bits = GZIP if coding == "gzip" else 0
        self._stream = zlib.decompressobj(GZIP)
        self._members = 1

    @property
    def complete(self) -> bool:
        """Whether the body has come to its end."""
        return self._stream.eof

    def inflated(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes hold, in parts of at most `CHUNK`; zlib.error for what cannot be undone."""
        while data and self._goes_on(data):
            yield self._stream.decompress(data, CHUNK)
            data = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        # the last of the output may be held back when a part was full
        while not self._stream.eof and (rest := self._stream.decompress(b"", CHUNK)):
            yield rest

    def _goes_on(self, data: bytes) -> bool:
        """Whether `data` belongs to the body: some servers send padding after its end."""
        if not self._bits:
            # RFC 9110 means zlib's format by deflate, but some servers send it bare; the first byte tells
            self._bits = 15 if data[0] & 0x8F == 0x08 else -15
        elif not self._stream.eof:
            return True
        elif self._bits != GZIP or data[0] != GZIP_BEGINS:
            return False
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise zlib.error("too many members")
        self._stream = zlib.decompressobj(self._bits)
        return True
