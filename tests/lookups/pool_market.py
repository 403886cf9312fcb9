"""A chain with exchanges, and a token whose pools are read."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from exchange_market import TEST_CONTRACTS, ExchangeMarket
from facilitators import build_settings
from lookups.changing_node import ChangingNode

from centgate.crypto.token.pools import PoolState
from centgate.devchain.chain import EvmChain, create_contract_at
from centgate.devchain.exchanges import OPERATOR
from centgate.devchain.http_server import serve_app, silence_libraries
from centgate.lookups.chain_pools import find_pools
from centgate.provider import RequestTrace
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.settings import ProviderSettings
from centgate.solidity import load_contract

CHAIN = 84532
"""A development chain, which has Ethereum's contracts."""
LAUNCHPAD_HOOKS = "0x6c24d0bcc264ef6a740754a11ca579b9d225e8cc"
"""Hooks of Clanker's pools on Ethereum."""
REFUSE = True
TOKEN, COIN, DOLLAR = 10**9, 10**18, 10**6


@dataclass
class Market:
    """A chain with exchanges, and a token without a pool yet."""

    exchanges: ExchangeMarket
    node: ChangingNode
    url: str
    """The node's URL."""
    rpc: Rpc
    chain_id: int
    token: str

    async def pools(self) -> list[PoolState]:
        """Return the token's pools."""
        return await find_pools(self.rpc, self.chain_id, self.token)


def create_fee_hooks(exchanges: ExchangeMarket, address: str) -> str:
    """Create hooks of v4 pools at an address; `set(uint24,bool)` sets the fee, and if sales are refused."""
    hooks = load_contract(TEST_CONTRACTS, "Thief", "FeeHook")
    exchanges.operator.chain.change_state(
        lambda state: create_contract_at(state, address, hooks.initcode, sender=OPERATOR.address)
    )
    return address


def new_token(exchanges: ExchangeMarket) -> str:
    """Create a token with 9 decimals."""
    return exchanges.create_token("Token", "TKN", decimals=9, supply=10**12 * TOKEN)


async def open_market(chain: EvmChain, exchanges: ExchangeMarket, folder: Path) -> AsyncGenerator[Market]:
    """Serve a chain and open a provider for it."""
    node = ChangingNode(chain)
    with silence_libraries(), serve_app(node.app, 0) as url:
        nodes = {f"rpc_{chain.chain_id}": ProviderSettings(url=url)}
        settings = build_settings(folder, "http://127.0.0.1:9", providers=nodes)
        async with open_resources(settings) as resources:
            rpc = Rpc(settings, resources).bind(RequestTrace.start())
            yield Market(exchanges, node, url, rpc, chain.chain_id, new_token(exchanges))
