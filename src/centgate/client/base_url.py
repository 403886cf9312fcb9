"""Validate the base URL of an API: its syntax, and TLS for public hosts."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from centgate.client.errors import AddressRefused

PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")
"""Suffixes of non-public host names (RFC 6761, 6762, 8375, and ICANN's `internal`)."""
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]+")


def parse_origin(api: str) -> str:
    """Return `scheme://host[:port]` of an API URL, in lower case. Raises AddressRefused."""
    try:
        parts = urlsplit(api.strip())
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise AddressRefused(f"{api[:100]!r} is not a valid API URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressRefused(f"{api[:100]!r} is not a valid API URL, such as https://api.example")
    if any(not 0 < len(label) < 64 for label in host.split(".")):
        raise AddressRefused(f"{host[:100]!r} is not a valid host name")
    host_part = f"[{host}]" if ":" in host else host
    default_port = {"http": 80, "https": 443}[parts.scheme]
    origin = f"{parts.scheme}://{host_part}" + (f":{port}" if port not in (None, default_port) else "")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username or parts.password:
        raise AddressRefused(f"the API URL must be {origin}, without a path, a query or a password")
    return origin


def show_origin(url: str) -> str:
    """Return scheme, host and port of a URL, whose rest may hold a key; empty if it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host:
        return ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}" + (f":{port}" if port else "")


def require_private_or_tls(origin: str, allowed: frozenset[str]) -> None:
    """Raise AddressRefused for a public host without TLS, unless the host is in `allowed`."""
    parts = urlsplit(origin)
    host = parts.hostname or ""
    if parts.scheme == "https" or host in allowed or is_private_host(host):
        return
    raise AddressRefused(
        f"{origin} is a public host without TLS, where anyone on the network path can change the payee: use "
        "https"
    )


def is_private_host(host: str) -> bool:
    """Return True if the host name belongs to this machine or its local network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # a number without dots is also an IP address, and may be public
        return ("." not in host and not _NUMBER.fullmatch(host)) or host.endswith(PRIVATE_SUFFIXES)
    return address.is_loopback or address.is_private or address.is_link_local
