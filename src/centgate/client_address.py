"""The address of a client, read through the proxies that the operator trusts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.types import Scope

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

UNKNOWN = "unknown"
"""The name of all peers without an address, such as those of a Unix socket."""
MAX_LENGTH = 64
"""Characters of an address that are read: a longer text is none, and is not worth keeping in a cache."""


class ClientAddresses:
    """Reads the client's address of a request; `X-Forwarded-For` counts where trusted proxies wrote it."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        """Raises ValueError for a proxy that is neither an address nor a network."""
        self._trusted = tuple(read_network(each) for each in trusted)

    def read(self, scope: Scope) -> str:
        """Return the client's name for limits: an IPv4 address, or the /64 of an IPv6 address.

        An IPv6 subscriber has at least a /64, so one address of it says nothing.
        """
        peer = scope.get("client")
        address = read_address(peer[0]) if peer else None
        if address is None:
            return UNKNOWN
        return address_key(self._behind_proxies(address, scope) if self._trusted else address)

    def _behind_proxies(self, address: Address, scope: Scope) -> Address:
        """Walk `X-Forwarded-For` from the right, as long as a trusted proxy vouches for the next entry."""
        if not self._trusts(address):
            return address
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        written = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        for entry in reversed(written.split(b",")):
            previous = read_address(entry.decode("latin-1").strip())
            if previous is None:
                break
            address = previous
            if not self._trusts(address):
                break
        return address

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def read_network(text: str) -> Network:
    """Read an address or a network; raises ValueError for anything else, bits beyond its mask included."""
    return ip_network(text)


@lru_cache(maxsize=4096)
def _read_address(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # one IPv4 client must not have two names on a socket that takes both families
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def read_address(text: str) -> Address | None:
    """Read an address, an IPv4-mapped one as IPv4; None for anything else."""
    return _read_address(text) if len(text) <= MAX_LENGTH else None


@lru_cache(maxsize=4096)
def address_key(address: Address) -> str:
    """Return what a client is counted by: an IPv4 address, or the /64 of an IPv6 address."""
    if isinstance(address, IPv4Address):
        return str(address)
    return f"{IPv6Address(address.packed[:8] + bytes(8))}/64"
