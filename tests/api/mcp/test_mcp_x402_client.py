"""The official x402 client for MCP pays a call."""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from buyer import QUESTION
from eth_account import Account
from mcp import Client
from mcp_clients import ConnectClient
from x402 import x402Client
from x402.mcp.client_async import wrap_mcp_client_with_payment
from x402.mechanisms.evm.exact import register_exact_evm_client

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE

pytestmark = pytest.mark.extended

BUYER = BUYER_ACCOUNTS[8]
CENT = 10_000


class FirstVersionClient:
    """The official MCP client with the interface of its first version, for which x402's was written."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call_tool(self, params: dict[str, Any], read_timeout_seconds: timedelta) -> Any:
        """Call with a dictionary; return the result with the names of the protocol."""
        result = await self._client.call_tool(
            params["name"],
            params["arguments"],
            read_timeout_seconds=read_timeout_seconds.total_seconds(),
            meta=params.get("_meta"),
        )
        return SimpleNamespace(**result.model_dump(mode="json", by_alias=True, exclude_none=True))


@pytest.fixture
def wallet() -> x402Client:
    """A client set up as its documentation says, without further options."""
    client = x402Client()
    register_exact_evm_client(client, Account.from_key(BUYER.private_key))
    return client


def read_balances(chain: DevChain) -> tuple[int, int]:
    return chain.token_balance(BUYER.address), chain.token_balance(DEFAULT_PAYEE)


async def test_client_pays_and_gets_answer(
    connect_client: ConnectClient, chain_client: httpx.Client, devchain: DevChain, wallet: x402Client
) -> None:
    before = read_balances(devchain)

    async with connect_client(chain_client) as mcp:
        buyer = wrap_mcp_client_with_payment(FirstVersionClient(mcp), wallet)
        result = await buyer.call_tool("phishing-check", QUESTION)

    after = read_balances(devchain)
    assert (before[0] - after[0], after[1] - before[1]) == (CENT, CENT)
    assert result.payment_made
    assert not result.is_error
    assert result.payment_response is not None
    assert result.payment_response.success
    assert '"status":"blocked"' in result.content[0]["text"]


async def test_invalid_arguments_cost_nothing(
    connect_client: ConnectClient, chain_client: httpx.Client, devchain: DevChain, wallet: x402Client
) -> None:
    before = read_balances(devchain)

    async with connect_client(chain_client) as mcp:
        buyer = wrap_mcp_client_with_payment(FirstVersionClient(mcp), wallet)
        result = await buyer.call_tool("phishing-check", {"url": 7})

    assert result.is_error
    assert not result.payment_made
    assert read_balances(devchain) == before
