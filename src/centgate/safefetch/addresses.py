"""Which IP addresses belong to the public internet, by tables of our own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# The registries of special-purpose addresses (IANA, RFC 6890), read as a list of what is refused. Python's
# own `is_global` says yes to multicast, NAT64, 6to4 and others that lead to addresses it would refuse.
_NOT_PUBLIC_4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers' customers (CGNAT)
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform, from inside its machines alone
        "169.254.0.0/16",  # link-local, and there the metadata of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/3",  # multicast, reserved, broadcast
    )
)
# All else in IPv6 is unassigned, local, multicast, or carries an IPv4 address (::a.b.c.d, 64:ff9b::/96).
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries an IPv4 address
        "3fff::/20",  # documentation
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")


@dataclass(frozen=True, slots=True)
class Entry:
    """Addresses that an operator allows; `port` None stands for the ports of the policy."""

    network: Network
    port: int | None


def read_address(text: str) -> Address | None:
    """An address, an IPv4 address mapped into IPv6 as the IPv4 address it is; None for all else.

    An address with a zone (`fe80::1%eth0`) is None: it means something on this machine alone.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    return None if address.scope_id else address.ipv4_mapped or address


def public(address: Address) -> bool:
    """Whether an address is one of the public internet; `address` is not mapped."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


@lru_cache(maxsize=16)
def read_entries(texts: tuple[str, ...]) -> tuple[Entry, ...]:
    """Entries as they are written in the settings; ValueError names one that cannot be read."""
    return tuple(map(_entry, texts))


def _entry(text: str) -> Entry:
    try:
        network, port = _parts(text)
        return Entry(_unmapped(ip_network(network)), _port(port) if port is not None else None)
    except ValueError:
        raise ValueError(
            f"{text[:60]!r} is no address, network/bits, address:port or [IPv6 address]:port"
        ) from None


def _parts(text: str) -> tuple[str, str | None]:
    """Network and port (None where there is none) of an entry, not yet read."""
    if "%" in text:
        raise ValueError("a zone")
    if text.startswith("["):
        address, closed, rest = text[1:].partition("]")
        bits, colon, port = rest.partition(":")
        if not closed or (bits and not bits.startswith("/")):
            raise ValueError("an open bracket")
        return address + bits, port if colon else None
    if "/" in text or text.count(":") == 1:
        address, slash, bits = text.rpartition("/")
        last, colon, port = bits.partition(":")
        return address + slash + last, port if colon else None
    return text, None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise ValueError("no port")
    return int(text)


def _unmapped(network: Network) -> Network:
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        first = network.network_address.ipv4_mapped
        return IPv4Network(f"{first}/{network.prefixlen - _MAPPED.prefixlen}")
    return network
