"""Policy of the addresses that may be fetched."""

from __future__ import annotations

from msgspec import Struct

from centgate.web.fetch.ip_ranges import is_public, parse_allowed_networks, parse_ip_address
from centgate.web.fetch.url import DEFAULT_PORTS, Target, parse_target


class FetchPolicy(Struct, frozen=True):
    """Addresses and ports that may be fetched; by default public addresses on the ports of the web.

    Raises ValueError for an invalid port or entry.
    """

    ports: frozenset[int] = frozenset({80, 443})
    allowed_networks: tuple[str, ...] = ()
    """`network[:port]`: non-public addresses that may be fetched.

    An entry with a port is allowed on that port, even if it is not one of `ports`.
    """

    def __post_init__(self) -> None:
        for port in self.ports:
            if not 1 <= port <= 65535:
                raise ValueError(f"{port} is not a port")
        parse_allowed_networks(self.allowed_networks)

    def rejection(self, url: str) -> str | None:
        """Return why a URL must not be fetched, as a clause, as far as is known before DNS; else None."""
        target = parse_target(url)
        return "it is not a valid URL" if target is None else self.target_rejection(target)

    def target_rejection(self, target: Target) -> str | None:
        """Return the same for a parsed URL."""
        if target.scheme not in DEFAULT_PORTS:
            return f"its scheme {target.scheme[:20]} is neither http nor https"
        if target.has_credentials:
            return "it contains a user name or password"
        if target.address is None:
            return self._name_rejection(target)
        if self.can_connect(str(target.address), target.port):
            return None
        # if the host may be fetched on one of the default ports, only another port can be wrong
        if target.port not in self.ports and any(
            self.can_connect(str(target.address), port) for port in self.ports
        ):
            return self._port_rejection(target.port)
        return f"its host {target.label} is not a public address"

    def can_connect(self, address: str, port: int) -> bool:
        """True if connecting to an IP address is allowed."""
        ip = parse_ip_address(address)
        if ip is None:
            return False
        is_default_port = port in self.ports
        if is_default_port and is_public(ip):
            return True
        return any(
            ip in entry.network and (is_default_port if entry.port is None else port == entry.port)
            for entry in parse_allowed_networks(self.allowed_networks)
        )

    def _name_rejection(self, target: Target) -> str | None:
        if not target.is_dns_name:
            return f"its host {target.label} is not a host name"
        if target.is_private_name:
            return f"its host {target.label} is a name of private networks"
        # the entry that the port belongs to is known only after the DNS lookup
        if target.port in self.ports or any(
            e.port == target.port for e in parse_allowed_networks(self.allowed_networks)
        ):
            return None
        return self._port_rejection(target.port)

    def _port_rejection(self, port: int) -> str:
        return f"its port {port} is not one of {', '.join(map(str, sorted(self.ports)))}"


PUBLIC = FetchPolicy()
"""Allows only the public web."""
