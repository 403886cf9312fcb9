"""Where a URL leads, as the parser of the URL Standard reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ada_url import URL

from centgate.safefetch.addresses import Address, read_address

DEFAULT_PORTS = {"http": 80, "https": 443}
LONGEST_SHOWN = 100
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
# RFC 6761, RFC 6762, RFC 7686, RFC 8375, and the name ICANN reserved for private use
_PRIVATE = re.compile(r"[^.]*|(.*\.)?(localhost|localdomain|local|internal|home\.arpa|onion)")


@dataclass(frozen=True, slots=True)
class Target:
    """A URL in parts, all in ASCII; odd spellings of an address are the address."""

    url: str
    """Canonical, without its fragment."""
    scheme: str
    credentials: bool
    host: str
    """In lower case; no brackets around IPv6, no dot at the end."""
    address: Address | None
    """The host, where it is an address and not a name."""
    port: int
    path: str
    """With the query."""

    @property
    def shown(self) -> str:
        """The host as a message names it."""
        return self.host if len(self.host) <= LONGEST_SHOWN else self.host[: LONGEST_SHOWN - 1] + "\u2026"

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS.get(self.scheme) == self.port else f"{host}:{self.port}"

    @property
    def proper_name(self) -> bool:
        """Whether the host is written as names in the DNS can be: the URL Standard allows more."""
        return _NAME.fullmatch(self.host) is not None

    @property
    def private_name(self) -> bool:
        """Whether the host is a name that means something in a private network alone."""
        return _PRIVATE.fullmatch(self.host) is not None


def read_target(url: str, base: str | None = None) -> Target | None:
    """Where a URL leads, resolved against `base`; None where it cannot be read."""
    try:
        read = URL(url, base)
        read.hash = ""
    except ValueError:
        return None
    scheme = read.protocol.removesuffix(":")
    literal = read.hostname.strip("[]")
    return Target(
        url=read.href,
        scheme=scheme,
        credentials=bool(read.username or read.password),
        host=literal.removesuffix("."),
        address=read_address(literal),
        port=int(read.port or DEFAULT_PORTS.get(scheme, 0)),
        path=read.pathname + read.search,
    )
