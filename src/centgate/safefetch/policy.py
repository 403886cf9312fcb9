"""Which addresses may be fetched."""

from __future__ import annotations

from dataclasses import dataclass

from centgate.safefetch.addresses import public, read_address, read_entries
from centgate.safefetch.target import DEFAULT_PORTS, Target, read_target


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be fetched beside public addresses on the ports of the web.

    ValueError for a port or an entry that cannot be read.
    """

    ports: frozenset[int] = frozenset({80, 443})
    allowed: tuple[str, ...] = ()
    """`network[:port]`: addresses that may be fetched although they are not public.

    One with a port is allowed on that port, whether it is one of `ports` or not.
    """

    def __post_init__(self) -> None:
        for port in self.ports:
            if not 1 <= port <= 65535:
                raise ValueError(f"{port} is no port")
        read_entries(self.allowed)

    def objection(self, url: str) -> str | None:
        """Why a URL must not be fetched, as a clause, as far as can be told before its host is looked up."""
        target = read_target(url)
        return "it cannot be read as a URL" if target is None else self.objection_to(target)

    def objection_to(self, target: Target) -> str | None:
        """The same for a URL that was read."""
        if target.scheme not in DEFAULT_PORTS:
            return f"its scheme {target.scheme[:20]} is neither http nor https"
        if target.credentials:
            return "it carries a user name or password"
        if target.address is None:
            return self._objection_to_name(target)
        if self.admits(str(target.address), target.port):
            return None
        if not public(target.address):
            return f"its host {target.shown} is not a public address"
        return self._objection_to_port(target.port)

    def admits(self, address: str, port: int) -> bool:
        """Whether an IP address may be connected to."""
        read = read_address(address)
        if read is None:
            return False
        usual = port in self.ports
        if usual and public(read):
            return True
        return any(
            read in entry.network and (usual if entry.port is None else port == entry.port)
            for entry in read_entries(self.allowed)
        )

    def _objection_to_name(self, target: Target) -> str | None:
        if not target.proper_name:
            return f"its host {target.shown} is not a host name"
        if target.private_name:
            return f"its host {target.shown} is a name of private networks"
        # which of them the port belongs to is seen when the name has been looked up
        if target.port in self.ports or any(e.port == target.port for e in read_entries(self.allowed)):
            return None
        return self._objection_to_port(target.port)

    def _objection_to_port(self, port: int) -> str:
        return f"its port {port} is not one of {', '.join(map(str, sorted(self.ports)))}"


PUBLIC = Policy()
"""The public web alone."""
