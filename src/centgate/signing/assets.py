"""Dollar tokens for payments, used by the server's terms and by the client's signer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TOKEN_DECIMALS = 6
"""Decimals of every payment token; so base units of different tokens can be added."""
NETWORK_ID = r"eip155:[1-9][0-9]{0,18}"
"""Pattern of a payment network's identifier (CAIP-2)."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A dollar token with EIP-3009 transfers: its address, EIP-712 domain and decimals."""

    address: str
    name: str
    version: str
    decimals: int = TOKEN_DECIMALS


USDC: Mapping[str, Asset] = {
    "eip155:1": Asset("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "USD Coin", "2"),
    "eip155:137": Asset("0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USD Coin", "2"),
    "eip155:8453": Asset("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin", "2"),
    "eip155:42161": Asset("0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "USD Coin", "2"),
    "eip155:43114": Asset("0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", "USD Coin", "2"),
    "eip155:84532": Asset("0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", "2"),
}
"""Circle's USDC by network (CAIP-2). The domain name differs by chain; signatures for a wrong one fail."""

_TEST_CHAINS: Mapping[int, str] = {
    1337: "local node",
    31337: "local node",
    51: "Apothem",
    97: "BNB Smart Chain Testnet",
    300: "ZKsync Sepolia",
    919: "Mode Testnet",
    998: "Hyperliquid EVM Testnet",
    1301: "Unichain Sepolia",
    1328: "Sei Testnet",
    1946: "Soneium Minato",
    2442: "Polygon zkEVM Cardona",
    4002: "Fantom Testnet",
    4801: "World Chain Sepolia",
    10143: "Monad Testnet",
    10200: "Gnosis Chiado",
    11124: "Abstract Testnet",
    17000: "Holesky",
    43113: "Avalanche Fuji",
    44787: "Celo Alfajores",
    50312: "Somnia Testnet",
    57054: "Sonic Blaze Testnet",
    59141: "Linea Sepolia",
    64165: "Sonic Testnet",
    80002: "Polygon Amoy",
    80069: "Berachain Bepolia",
    84532: "Base Sepolia",
    98867: "Plume Testnet",
    421614: "Arbitrum Sepolia",
    534351: "Scroll Sepolia",
    560048: "Hoodi",
    763373: "Ink Sepolia",
    5042002: "Arc Testnet",
    11142220: "Celo Sepolia",
    11155111: "Sepolia",
    11155420: "OP Sepolia",
    168587773: "Blast Sepolia",
}
"""Public test chains, by chain id (EIP-155); ids and names as in viem's chain definitions."""
TEST_NETWORKS = frozenset(f"eip155:{chain_id}" for chain_id in _TEST_CHAINS)
"""Networks whose tokens have no value."""


def is_test_network(network: str) -> bool:
    """True if tokens of this network have no value."""
    return network in TEST_NETWORKS
