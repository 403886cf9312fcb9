"""Policy of the addresses that may be fetched."""

from __future__ import annotations

from dataclasses import dataclass

from centgate.safefetch.addresses import public, read_address, read_entries
from centgate.safefetch.target import DEFAULT_PORTS, Target, read_target


@dataclass(frozen=True, slots=True)
class Policy:
    """Addresses and ports that may be fetched; by default public addresses on the ports of the web.

    Raises ValueError for an invalid port or entry.
    """

    ports: frozenset[int] = frozenset({80, 443})
    allowed: tuple[str, ...] = ()
    """`network[:port]`: non-public addresses that may be fetched.

    An entry with a port is allowed on that port, even if it is not one of `ports`.
    """

    def __post_init__(self) -> None:
        for port in self.ports:
            if not 1 <= port <= 65535:
                raise ValueError(f"{port} is not a port")
        read_entries(self.allowed)

    def objection(self, url: str) -> str | None:
        """Return why a URL must not be fetched, as a clause, as far as is known before DNS; else None."""
        target = read_target(url)
        return "it is not a valid URL" if target is None else self.objection_to(target)

    def objection_to(self, target: Target) -> str | None:
        """Return the same for a parsed URL."""
        if target.scheme not in DEFAULT_PORTS:
            return f"its scheme {target.scheme[:20]} is neither http nor https"
        if target.credentials:
            return "it contains a user name or password"
        if target.address is None:
            return self._name_rejection(target)
        if self.admits(str(target.address), target.port):
            return None
        if not public(target.address):
            return f"its host {target.shown} is not a public address"
        return self._port_rejection(target.port)

    def admits(self, address: str, port: int) -> bool:
        """True if connecting to an IP address is allowed."""
        ip = read_address(address)
        if ip is None:
            return False
        is_default_port = port in self.ports
        if is_default_port and public(ip):
            return True
        return any(
            ip in entry.network and (is_default_port if entry.port is None else port == entry.port)
            for entry in read_entries(self.allowed)
        )

    def _name_rejection(self, target: Target) -> str | None:
        if not target.proper_name:
            return f"its host {target.shown} is not a host name"
        if target.private_name:
            return f"its host {target.shown} is a name of private networks"
        # the entry that the port belongs to is known only after the DNS lookup
        if target.port in self.ports or any(e.port == target.port for e in read_entries(self.allowed)):
            return None
        return self._port_rejection(target.port)

    def _port_rejection(self, port: int) -> str:
        return f"its port {port} is not one of {', '.join(map(str, sorted(self.ports)))}"


PUBLIC = Policy()
"""Allows only the public web."""
