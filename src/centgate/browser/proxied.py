"""What a browser asks its proxy for, read strictly."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import dataclass

from centgate.safefetch.target import Target, read_target

METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS"})
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")
_START = re.compile(rb"([A-Z]{1,16}) ([\x21-\x7e]+) HTTP/1\.[01]")
_AUTHORITY = re.compile(r"[^/?#@\\]+:\d{1,5}")

Fields = Sequence[tuple[bytes, bytes]]


class Closed(Exception):
    """The connection is closed; `status` is what is answered before, if anything."""

    def __init__(self, status: str = "") -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """What a browser asks for; a tunnel's target is of `http`, so that a bare connection is made for it."""

    method: str
    target: Target
    fields: Fields

    def value(self, name: bytes) -> bytes | None:
        """The first field of a name, given in lower case."""
        return next((value for each, value in self.fields if each.lower() == name), None)


def read_head(head: bytes) -> tuple[bytes, Fields]:
    """The first line of a head and its fields."""
    start, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    fields = [_FIELD.fullmatch(line) for line in lines]
    read = [(match[1], match[2].rstrip(b" \t")) for match in fields if match]
    if len(read) < len(fields):
        raise Closed("400 Bad Request")
    return start, read


def read_request(start: bytes, fields: Fields) -> ProxyRequest:
    """A request for plain HTTP at an absolute URL, or for a tunnel; Closed for everything else."""
    match = _START.fullmatch(start)
    if match is None:
        raise Closed("400 Bad Request")
    method, where = match[1].decode(), match[2].decode()
    target = _tunnel_target(where) if method == "CONNECT" else read_target(where)
    if target is None or target.scheme != "http":
        raise Closed("400 Bad Request")
    if method != "CONNECT" and method not in METHODS:
        raise Closed("405 Method Not Allowed")
    request = ProxyRequest(method, target, fields)
    if request.value(b"upgrade") is not None or request.value(b"transfer-encoding") is not None:
        raise Closed("501 Not Implemented")
    return request


def _tunnel_target(where: str) -> Target | None:
    return read_target(f"http://{where}/") if _AUTHORITY.fullmatch(where) else None


def credential(value: bytes) -> str:
    """`username:password` of a `Proxy-Authorization`; empty where there is none."""
    scheme, _, encoded = value.partition(b" ")
    try:
        return b64decode(encoded, validate=True).decode() if scheme.lower() == b"basic" else ""
    except (NotBase64, UnicodeDecodeError):
        return ""
