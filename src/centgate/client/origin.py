"""The address of an API, and whether it may be called as it is."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from centgate.client.errors import AddressRefused

PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")
"""Names that are no public ones (RFC 6761, 6762, 8375, and ICANN's `internal`)."""
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]+")


def origin_of(api: str) -> str:
    """`scheme://host[:port]` of an API's address, in lower case; AddressRefused for what is none."""
    try:
        parts = urlsplit(api.strip())
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise AddressRefused(f"{api[:100]!r} is no address of an API: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressRefused(f"{api[:100]!r} is no address of an API: it has to be like https://api.example")
    if any(not 0 < len(label) < 64 for label in host.split(".")):
        raise AddressRefused(f"{host[:100]!r} is no name of a host")
    named = f"[{host}]" if ":" in host else host
    standard = {"http": 80, "https": 443}[parts.scheme]
    origin = f"{parts.scheme}://{named}" + (f":{port}" if port not in (None, standard) else "")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username or parts.password:
        raise AddressRefused(f"the API's address is {origin}, without a path, a query or a password")
    return origin


def require_private_or_tls(origin: str, allowed: frozenset[str]) -> None:
    """Raise AddressRefused for a public host that is called without TLS, unless it is allowed by name."""
    parts = urlsplit(origin)
    host = parts.hostname or ""
    if parts.scheme == "https" or host in allowed or _is_private(host):
        return
    raise AddressRefused(
        f"{origin} is a public address without TLS, where anybody on the way can change whom you pay: call "
        "it by https"
    )


def _is_private(host: str) -> bool:
    """Whether a host is on this machine or its network, as far as its name says."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # a number without dots is an address too, and may be a public one
        return ("." not in host and not _NUMBER.fullmatch(host)) or host.endswith(PRIVATE_SUFFIXES)
    return address.is_loopback or address.is_private or address.is_link_local
