"""Known payment networks: name, block explorer and public node of each."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from centgate.signing.assets import TEST_NETWORKS

FAUCET = "https://faucet.circle.com"
"""Faucet of the issuer of USDC, for test tokens without value."""


class PaymentNetwork(Struct, frozen=True):
    """A payment network."""

    identifier: str
    """CAIP-2 identifier."""
    name: str
    explorer: str | None = None
    """URL of a transaction's page, without its hash."""
    rpc_url: str | None = None
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
    PaymentNetwork("eip155:1", "Ethereum", "https://etherscan.io/tx/", "https://ethereum-rpc.publicnode.com"),
    PaymentNetwork("eip155:137", "Polygon", "https://polygonscan.com/tx/"),
    PaymentNetwork("eip155:8453", "Base", "https://basescan.org/tx/", "https://mainnet.base.org"),
    PaymentNetwork("eip155:42161", "Arbitrum One", "https://arbiscan.io/tx/", "https://arb1.arbitrum.io/rpc"),
    PaymentNetwork("eip155:43114", "Avalanche C-Chain", "https://snowtrace.io/tx/"),
    PaymentNetwork(
        "eip155:84532", "Base Sepolia", "https://sepolia.basescan.org/tx/", "https://sepolia.base.org"
    ),
    PaymentNetwork("eip155:31337", "a local development chain"),
)
_NETWORK_BY_ID: Mapping[str, PaymentNetwork] = {network.identifier: network for network in _NETWORKS}


def find_network(identifier: str) -> PaymentNetwork:
    """Return a network by its CAIP-2 identifier; the identifier is the name of an unknown one."""
    return _NETWORK_BY_ID.get(identifier) or PaymentNetwork(identifier, identifier)
