"""Free documents: unchanging bytes with an entity tag, compressed for clients that accept it.

Paid answers are never compressed here: their stored bytes and the hash in a signed receipt are those that are
sent. Of the largest document gzip saves 146 KB. Brotli would save 6 KB more, for one more dependency.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from centgate.api.content_negotiation import accepts_encoding

CACHE_CONTROL = "public, max-age=60"
COMPRESSION_MINIMUM = 1024
"""Bytes from which a document is compressed."""
_GZIP_LEVEL = 9


class StaticDocument:
    """A document of fixed bytes. A client that has them already gets 304 (RFC 9110, section 13.1.2)."""

    def __init__(
        self, build: Callable[[], bytes], media_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """`build` is called by the first request: all documents together take longer than the start.

        `headers` are sent besides those of the document itself; its own `Vary` is added to theirs.
        """
        self._build = build
        self._media_type = media_type
        self._own_headers = {"Cache-Control": CACHE_CONTROL, **(headers or {})}

    def respond(self, request: Request) -> Response:
        """Return the document in the coding that the request accepts, or 304."""
        accepted = request.headers.get("accept-encoding", "")
        if self._is_compressible and accepts_encoding(accepted, "gzip"):
            tag, headers = f'"{self._digest}-gzip"', self._headers | {"Content-Encoding": "gzip"}
        else:
            tag, headers = f'"{self._digest}"', self._headers
        if has_tag(request.headers.get("if-none-match", ""), tag):
            return Response(status_code=304, headers=self._headers | {"ETag": tag})
        content = self._compressed if "Content-Encoding" in headers else self._content
        return Response(content, 200, headers | {"Content-Type": self._media_type, "ETag": tag})

    @cached_property
    def _content(self) -> bytes:
        return self._build()

    @cached_property
    def _digest(self) -> str:
        return sha256(self._content).hexdigest()[:32]

    @cached_property
    def _is_compressible(self) -> bool:
        return len(self._content) >= COMPRESSION_MINIMUM and _is_text(self._media_type)

    @cached_property
    def _headers(self) -> dict[str, str]:
        if not self._is_compressible:
            return self._own_headers
        vary = self._own_headers.get("Vary")
        return self._own_headers | {"Vary": f"{vary}, Accept-Encoding" if vary else "Accept-Encoding"}

    @cached_property
    def _compressed(self) -> bytes:
        return gzip.compress(self._content, _GZIP_LEVEL, mtime=0)


def has_tag(header: str, tag: str) -> bool:
    """Return True if an `If-None-Match` header has the tag, compared weakly (RFC 9110, section 13.1.2)."""
    return any(each.strip().removeprefix("W/") in (tag.removeprefix("W/"), "*") for each in header.split(","))


def _is_text(media_type: str) -> bool:
    kind = media_type.partition(";")[0]
    return kind.startswith("text/") or kind.endswith(("json", "xml"))
