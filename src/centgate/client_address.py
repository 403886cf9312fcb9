"""The address of a client, read through the proxies that the operator trusts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.types import Scope

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

UNKNOWN_CLIENT = "unknown"
"""The name of all peers without an address, such as those of a Unix socket."""
MAX_LENGTH = 64
"""Maximum length of an address in characters; a longer text is not one, and must not fill the cache."""


class ClientAddressReader:
    """Reads the client's address of a request; entries of `X-Forwarded-For` by trusted proxies are used."""

    def __init__(self, trusted_proxies: Iterable[str] = ()) -> None:
        """`trusted_proxies` are addresses and networks; raises ValueError for anything else."""
        self._trusted = tuple(parse_network(each) for each in trusted_proxies)

    def read_client_key(self, scope: Scope) -> str:
        """Return the client's name for limits: an IPv4 address, or the /64 of an IPv6 address.

        An IPv6 subscriber has at least a /64, so a single address does not identify a client.
        """
        peer = scope.get("client")
        if peer is None:
            return UNKNOWN_CLIENT
        if not self._trusted:
            return _client_key(peer[0])
        address = parse_address(peer[0])
        return UNKNOWN_CLIENT if address is None else address_key(self._resolve_forwarded(address, scope))

    def _resolve_forwarded(self, address: Address, scope: Scope) -> Address:
        """Walk `X-Forwarded-For` from the right, as long as the last address is a trusted proxy."""
        if not self._is_trusted(address):
            return address
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        forwarded_for = b",".join(value for name, value in headers if name == b"x-forwarded-for")
        for entry in reversed(forwarded_for.split(b",")):
            previous = parse_address(entry.decode("latin-1").strip())
            if previous is None:
                break
            address = previous
            if not self._is_trusted(address):
                break
        return address

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def parse_network(text: str) -> Network:
    """Parse an address or a network. Raises ValueError for anything else, also for bits beyond the mask."""
    return ip_network(text)


@lru_cache(maxsize=4096)
def _parse_address(text: str) -> Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # one IPv4 client must not have two names on a socket that takes both families
    return (address.ipv4_mapped if isinstance(address, IPv6Address) else None) or address


def parse_address(text: str) -> Address | None:
    """Parse an address, an IPv4-mapped one as IPv4; return None for anything else."""
    return _parse_address(text) if len(text) <= MAX_LENGTH else None


@lru_cache(maxsize=4096)  # by the text, because an address takes longer to hash than the rest of a lookup
def _client_key(peer: str) -> str:
    address = parse_address(peer)
    return UNKNOWN_CLIENT if address is None else address_key(address)


@lru_cache(maxsize=4096)
def address_key(address: Address) -> str:
    """Return the key that a client is counted by: an IPv4 address, or the /64 of an IPv6 address."""
    if isinstance(address, IPv4Address):
        return str(address)
    return f"{IPv6Address(address.packed[:8] + bytes(8))}/64"
