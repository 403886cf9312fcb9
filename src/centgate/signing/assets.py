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

TEST_NETWORKS = frozenset(
    {
        "eip155:1337",  # local node
        "eip155:31337",  # local node
        "eip155:51",  # Apothem
        "eip155:97",  # BNB Smart Chain Testnet
        "eip155:300",  # ZKsync Sepolia
        "eip155:919",  # Mode Testnet
        "eip155:998",  # Hyperliquid EVM Testnet
        "eip155:1301",  # Unichain Sepolia
        "eip155:1328",  # Sei Testnet
        "eip155:1946",  # Soneium Minato
        "eip155:2442",  # Polygon zkEVM Cardona
        "eip155:4002",  # Fantom Testnet
        "eip155:4801",  # World Chain Sepolia
        "eip155:10143",  # Monad Testnet
        "eip155:10200",  # Gnosis Chiado
        "eip155:11124",  # Abstract Testnet
        "eip155:17000",  # Holesky
        "eip155:43113",  # Avalanche Fuji
        "eip155:44787",  # Celo Alfajores
        "eip155:50312",  # Somnia Testnet
        "eip155:57054",  # Sonic Blaze Testnet
        "eip155:59141",  # Linea Sepolia
        "eip155:64165",  # Sonic Testnet
        "eip155:80002",  # Polygon Amoy
        "eip155:80069",  # Berachain Bepolia
        "eip155:84532",  # Base Sepolia
        "eip155:98867",  # Plume Testnet
        "eip155:421614",  # Arbitrum Sepolia
        "eip155:534351",  # Scroll Sepolia
        "eip155:560048",  # Hoodi
        "eip155:763373",  # Ink Sepolia
        "eip155:5042002",  # Arc Testnet
        "eip155:11142220",  # Celo Sepolia
        "eip155:11155111",  # Sepolia
        "eip155:11155420",  # OP Sepolia
        "eip155:168587773",  # Blast Sepolia
    }
)
"""Networks whose tokens have no value: local nodes, and public test chains by viem's definitions."""


def parse_chain_id(network: str) -> int:
    """Return the EIP-155 id of a payment network's identifier (CAIP-2)."""
    return int(network.removeprefix("eip155:"))


def describe_token(network: str, address: str) -> str:
    """Return "USDC" for Circle's token on a network, and the address of any other."""
    known = USDC.get(network)
    return "USDC" if known and known.address.lower() == address.lower() else f"the token {address}"


def is_test_network(network: str) -> bool:
    """True if tokens of this network have no value."""
    return network in TEST_NETWORKS
