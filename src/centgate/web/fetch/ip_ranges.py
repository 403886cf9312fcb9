"""Classify IP addresses as public or not, by tables defined here."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from msgspec import Struct

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

# The IANA registries of special-purpose addresses (RFC 6890), used as a deny list. Python's own `is_global`
# accepts multicast, NAT64, 6to4 and others that lead to addresses it would reject.
_NON_PUBLIC_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared address space of carriers (CGNAT)
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure platform, reachable from inside its machines only
        "169.254.0.0/16",  # link-local, includes the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
# The rest of IPv6 is unassigned, local, multicast, or embeds an IPv4 address (::a.b.c.d, 64:ff9b::/96).
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_NON_PUBLIC_IPV6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, including Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: embeds an IPv4 address
        "3fff::/20",  # documentation
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")


class AllowedNetwork(Struct, frozen=True):
    """Network that an operator allows; `port` None means the ports of the policy."""

    network: IpNetwork
    port: int | None


def parse_ip_address(text: str) -> IpAddress | None:
    """Parse an IP address, an IPv4-mapped IPv6 address as IPv4; None if invalid.

    An address with a zone (`fe80::1%eth0`) gives None: it is only meaningful on this machine.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    return None if address.scope_id else address.ipv4_mapped or address


def is_public(address: IpAddress) -> bool:
    """True if an address belongs to the public internet; `address` must not be IPv4-mapped."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NON_PUBLIC_IPV4)
    return address in _PUBLIC_IPV6 and not any(address in network for network in _NON_PUBLIC_IPV6)


@lru_cache(maxsize=16)
def parse_allowed_networks(texts: tuple[str, ...]) -> tuple[AllowedNetwork, ...]:
    """Parse the entries of the settings. Raises ValueError with the invalid entry."""
    return tuple(map(_parse_entry, texts))


def _parse_entry(text: str) -> AllowedNetwork:
    try:
        network, port = _split_entry(text)
        return AllowedNetwork(
            _unmap_network(ip_network(network)), _parse_port(port) if port is not None else None
        )
    except ValueError:
        raise ValueError(
            f"{text[:60]!r} is not an address, network/bits, address:port or [IPv6 address]:port"
        ) from None


def _split_entry(text: str) -> tuple[str, str | None]:
    """Split an entry into network and port (None without one), not yet parsed."""
    if "%" in text:
        raise ValueError("a zone")
    if text.startswith("["):
        address, bracket, rest = text[1:].partition("]")
        bits, colon, port = rest.partition(":")
        if not bracket or (bits and not bits.startswith("/")):
            raise ValueError("an open bracket")
        return address + bits, port if colon else None
    if "/" in text or text.count(":") == 1:
        address, slash, bits = text.rpartition("/")
        size, colon, port = bits.partition(":")
        return address + slash + size, port if colon else None
    return text, None


def _parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise ValueError("not a port")
    return int(text)


def _unmap_network(network: IpNetwork) -> IpNetwork:
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        first = network.network_address.ipv4_mapped
        return IPv4Network(f"{first}/{network.prefixlen - _MAPPED.prefixlen}")
    return network
