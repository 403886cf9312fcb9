"""Parse requests to the proxy strictly."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence

from msgspec import Struct

from centgate.web.fetch.url import Target, parse_target

ALLOWED_METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) ([\x21-\x7e]+) HTTP/1\.[01]")
_AUTHORITY = re.compile(r"[^/?#@\\]+:\d{1,5}")

Fields = Sequence[tuple[bytes, bytes]]


class ConnectionClosed(Exception):
    """Signal to close the connection; `status` is sent before, unless empty."""

    def __init__(self, status: str = "") -> None:
        super().__init__(status)
        self.status = status


class ProxyRequest(Struct, frozen=True):
    """Request of a browser; a tunnel's target has the scheme `http`, so that the proxy adds no TLS."""

    method: str
    target: Target
    fields: Fields

    def find_field(self, name: bytes) -> bytes | None:
        """Return the first field with a name (in lower case); None without one."""
        return next((value for each, value in self.fields if each.lower() == name), None)


def parse_head(head: bytes) -> tuple[bytes, Fields]:
    """Parse a head into its first line and its fields."""
    start, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    fields = [_FIELD.fullmatch(line) for line in lines]
    parsed = [(match[1], match[2].rstrip(b" \t")) for match in fields if match]
    if len(parsed) < len(fields):
        raise ConnectionClosed("400 Bad Request")
    return start, parsed


def parse_request(start: bytes, fields: Fields) -> ProxyRequest:
    """Parse a plain HTTP request with an absolute URL, or a CONNECT. Raises ConnectionClosed otherwise."""
    match = _REQUEST_LINE.fullmatch(start)
    if match is None:
        raise ConnectionClosed("400 Bad Request")
    method, destination = match[1].decode(), match[2].decode()
    target = _tunnel_target(destination) if method == "CONNECT" else parse_target(destination)
    if target is None or target.scheme != "http":
        raise ConnectionClosed("400 Bad Request")
    if method != "CONNECT" and method not in ALLOWED_METHODS:
        raise ConnectionClosed("405 Method Not Allowed")
    request = ProxyRequest(method, target, fields)
    if request.find_field(b"upgrade") is not None or request.find_field(b"transfer-encoding") is not None:
        raise ConnectionClosed("501 Not Implemented")
    return request


def _tunnel_target(destination: str) -> Target | None:
    return parse_target(f"http://{destination}/") if _AUTHORITY.fullmatch(destination) else None


def parse_credential(value: bytes) -> str:
    """Return `username:password` of a `Proxy-Authorization`; empty if invalid."""
    scheme, _, encoded = value.partition(b" ")
    try:
        return b64decode(encoded, validate=True).decode() if scheme.lower() == b"basic" else ""
    except (NotBase64, UnicodeDecodeError):
        return ""
