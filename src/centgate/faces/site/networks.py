"""The payment networks that are known: what they are called, where they are shown, how they are reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from centgate.dollars import TEST_NETWORKS

FAUCET = "https://faucet.circle.com"
"""Where the issuer of USDC gives away what is worth nothing."""


@dataclass(frozen=True, slots=True)
class Network:
    """A payment network as people know it."""

    identifier: str
    """CAIP-2."""
    name: str
    explorer: str | None = None
    """Where a transaction is shown, up to its hash."""
    node: str | None = None
    """A public node that a wallet can be given; only where fees are paid in ether."""

    @property
    def test(self) -> bool:
        """Whether its money is worth nothing."""
        return self.identifier in TEST_NETWORKS

    @property
    def shown(self) -> str:
        """Its name with its identifier, as Markdown."""
        return f"{self.name} (`{self.identifier}`)" if self.name != self.identifier else f"`{self.name}`"

    def page(self, address: str) -> str | None:
        """The explorer's page on an address."""
        return f"{self.explorer.removesuffix('/tx/')}/address/{address}" if self.explorer else None


_NETWORKS = (
    Network("eip155:1", "Ethereum", "https://etherscan.io/tx/", "https://ethereum-rpc.publicnode.com"),
    Network("eip155:137", "Polygon", "https://polygonscan.com/tx/"),
    Network("eip155:8453", "Base", "https://basescan.org/tx/", "https://mainnet.base.org"),
    Network("eip155:42161", "Arbitrum One", "https://arbiscan.io/tx/", "https://arb1.arbitrum.io/rpc"),
    Network("eip155:43114", "Avalanche C-Chain", "https://snowtrace.io/tx/"),
    Network("eip155:84532", "Base Sepolia", "https://sepolia.basescan.org/tx/", "https://sepolia.base.org"),
    Network("eip155:31337", "a local development chain"),
)
_KNOWN: Mapping[str, Network] = {network.identifier: network for network in _NETWORKS}


def network_of(identifier: str) -> Network:
    """A network by its CAIP-2 identifier; one that is not known is called by it."""
    return _KNOWN.get(identifier) or Network(identifier, identifier)
