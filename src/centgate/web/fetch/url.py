"""Parse URLs by the URL Standard into their connection target."""

from __future__ import annotations

import re

import ada_url
from ada_url import URL
from msgspec import Struct

from centgate.web.fetch.ip_ranges import IpAddress, parse_ip_address

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_URL_LENGTH = 2048
"""Maximum characters of a URL that a buyer sends or a page contains."""
MAX_LABEL_LENGTH = 100
_DNS_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
PRIVATE_NAMES = ("localhost", "localdomain", "local", "internal", "home.arpa", "onion")
"""Ends of names of private networks: RFC 6761, 6762, 7686 and 8375, and the name that ICANN reserved."""
_PRIVATE_NAME = re.compile(rf"[^.]*|(.*\.)?({'|'.join(map(re.escape, PRIVATE_NAMES))})")


class Target(Struct, frozen=True):
    """Parsed URL, in ASCII; unusual spellings of an IP address are normalised."""

    url: str
    """Canonical, without its fragment."""
    scheme: str
    has_credentials: bool
    host: str
    """In lower case, without brackets around IPv6 and without a final dot."""
    address: IpAddress | None
    """The host if it is an IP address; None for a name."""
    port: int
    path: str
    """Including the query."""

    @property
    def label(self) -> str:
        """Host for messages, shortened if it is long."""
        return (
            self.host if len(self.host) <= MAX_LABEL_LENGTH else self.host[: MAX_LABEL_LENGTH - 1] + "\u2026"
        )

    @property
    def authority(self) -> str:
        """Value of the `Host` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS.get(self.scheme) == self.port else f"{host}:{self.port}"

    @property
    def is_dns_name(self) -> bool:
        """True if the host is a valid DNS name: the URL Standard allows more."""
        return _DNS_NAME.fullmatch(self.host) is not None

    @property
    def is_private_name(self) -> bool:
        """True if the host is a name of private networks."""
        return _PRIVATE_NAME.fullmatch(self.host) is not None


def parse_target(url: str, base: str | None = None) -> Target | None:
    """Parse a URL, resolved against `base`; None if it is invalid."""
    try:
        parsed = URL(url, base)
        parsed.hash = ""
    except ValueError:
        return None
    scheme = parsed.protocol.removesuffix(":")
    literal = parsed.hostname.strip("[]")
    return Target(
        url=parsed.href,
        scheme=scheme,
        has_credentials=bool(parsed.username or parsed.password),
        host=literal.removesuffix("."),
        address=parse_ip_address(literal),
        port=int(parsed.port or DEFAULT_PORTS.get(scheme, 0)),
        path=parsed.pathname + parsed.search,
    )


def join_url(base: str, url: str) -> str | None:
    """Resolve a URL that may be relative; None if it is invalid or too long."""
    if len(url) > MAX_URL_LENGTH:
        return None
    try:
        return ada_url.join_url(base, url)
    except ValueError:
        return None


def normalize_escapes(text: str) -> str:
    """Return a path or query in the spelling by which two are compared (RFC 3986, 6.2.2).

    Escaped characters that need no escape stand for themselves, and the other escapes are in upper case. The
    URL Standard's parser keeps both as they are written.
    """
    return _ESCAPE.sub(_normalize_escape, text) if "%" in text else text


def _normalize_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()
