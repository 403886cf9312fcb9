"""Known payment networks: name, block explorer and public node of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from centgate.dollars import TEST_NETWORKS

FAUCET = "https://faucet.circle.com"
"""Faucet of the issuer of USDC, for test tokens without value."""


@dataclass(frozen=True, slots=True)
class Network:
    """A payment network."""

    identifier: str
    """CAIP-2 identifier."""
    name: str
    explorer: str | None = None
    """URL of a transaction's page, without its hash."""
    node: str | None = None
    """URL of a public node for wallets; only for networks whose fees are paid in ether."""

    @property
    def is_test(self) -> bool:
        """True for a test network, whose tokens have no value."""
        return self.identifier in TEST_NETWORKS

    @property
    def label(self) -> str:
        """Name and identifier, as Markdown."""
        return f"{self.name} (`{self.identifier}`)" if self.name != self.identifier else f"`{self.name}`"

    def address_page(self, address: str) -> str | None:
        """Return the URL of the explorer's page on an address; None if there is no explorer."""
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
_NETWORK_BY_ID: Mapping[str, Network] = {network.identifier: network for network in _NETWORKS}


def network_of(identifier: str) -> Network:
    """Return a network by its CAIP-2 identifier; the identifier is the name of an unknown one."""
    return _NETWORK_BY_ID.get(identifier) or Network(identifier, identifier)
