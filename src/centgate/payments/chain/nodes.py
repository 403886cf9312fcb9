"""RPC nodes for payment checks: those of the operator, else three public ones of different operators.

They are used only for the code of payers (`eth_getCode`), the signatures of contract wallets that sign in,
the newest block number, the status of payments whose outcome is unknown, the audit of the journal, and the
check of refunds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from yarl import URL

from centgate.settings import Settings, is_loopback_host
from centgate.signing.assets import TEST_NETWORKS

PUBLIC_NODES: Mapping[str, tuple[str, str, str]] = {
    "eip155:1": (
        "https://ethereum-rpc.publicnode.com",
        "https://eth.drpc.org",
        "https://1rpc.io/eth",
    ),
    "eip155:137": (
        "https://polygon-bor-rpc.publicnode.com",
        "https://polygon.drpc.org",
        "https://1rpc.io/matic",
    ),
    "eip155:8453": (
        "https://mainnet.base.org",
        "https://base-rpc.publicnode.com",
        "https://base.drpc.org",
    ),
    "eip155:42161": (
        "https://arb1.arbitrum.io/rpc",
        "https://arbitrum-one-rpc.publicnode.com",
        "https://arbitrum.drpc.org",
    ),
    "eip155:43114": (
        "https://api.avax.network/ext/bc/C/rpc",
        "https://avalanche-c-chain-rpc.publicnode.com",
        "https://avalanche.drpc.org",
    ),
    "eip155:84532": (
        "https://sepolia.base.org",
        "https://base-sepolia-rpc.publicnode.com",
        "https://base-sepolia.drpc.org",
    ),
}
"""Three nodes of different operators for each network with known USDC, as their documentation names them."""

PUBLIC_QUORUM = 2
"""Number of public nodes that must give the same answer. An operator's own node is trusted alone."""


class NodeSet(Struct, frozen=True):
    """The nodes of one network, and how many of them must agree."""

    network: str
    urls: tuple[str, ...]
    quorum: int
    origin: Literal["own", "public", "none"]

    @property
    def description(self) -> str:
        """Short text for logs and commands; omits URLs of own nodes, which may contain API keys."""
        match self.origin:
            case "own":
                own = "1 own node" if len(self.urls) == 1 else f"{len(self.urls)} own nodes"
                return f"{own} of {self.network}"
            case "public":
                hosts = ", ".join(URL(url).host or "" for url in self.urls)
                return f"public nodes of {self.network} ({hosts}), of which {self.quorum} must agree"
            case "none":
                return f"no node of {self.network}"


def select_nodes(settings: Settings, network: str) -> NodeSet:
    """Return the nodes for payment checks on a network.

    `CENTGATE_RPC_<CHAINID>_URL` replaces the public ones, `CENTGATE_RPC_<CHAINID>_ENABLED=false` disables
    all. A test network that is settled by a facilitator on this machine is a development chain, which no
    public node serves.
    """
    configured = settings.provider_settings(f"rpc_{network.removeprefix('eip155:')}")
    if not configured.enabled:
        return NodeSet(network, (), 1, "none")
    if configured.url:
        urls = tuple(url.strip() for url in configured.url.split(",") if url.strip())
        return NodeSet(network, urls, 1, "own")
    if network not in PUBLIC_NODES or _is_development_chain(settings, network):
        return NodeSet(network, (), 1, "none")
    return NodeSet(network, PUBLIC_NODES[network], PUBLIC_QUORUM, "public")


def list_networks_with_nodes(settings: Settings) -> frozenset[str]:
    """Return the networks (CAIP-2) that have nodes for payment checks."""
    chain_ids = (name.removeprefix("rpc_") for name in settings.providers if name.startswith("rpc_"))
    configured = {f"eip155:{chain_id}" for chain_id in chain_ids if chain_id.isdecimal()}
    networks = {*settings.payment_networks, *PUBLIC_NODES, *configured}
    return frozenset(network for network in networks if select_nodes(settings, network).urls)


def _is_development_chain(settings: Settings, network: str) -> bool:
    return network in TEST_NETWORKS and is_loopback_host(URL(settings.facilitator).host or "")
