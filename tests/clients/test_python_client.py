"""The official Python client: receipts, wrapped clients, and the cost of refused bodies."""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

import httpx
import pytest
from buyer import PHISHING, QUESTION, ApiFactory, decode_header
from eth_account import Account
from x402 import x402Client
from x402.http.clients import wrapHttpxWithPayment
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact import register_exact_evm_client

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.settings import Settings

BUYER = BUYER_ACCOUNTS[9]
CENT = 10_000


@pytest.fixture
def wallet() -> x402Client:
    """A client set up as its documentation says, without further options."""
    client = x402Client()
    register_exact_evm_client(client, Account.from_key(BUYER.private_key))
    return client


@pytest.fixture
def url(api: ApiFactory, chain_settings: Settings) -> str:
    """URL of an API that is paid on the development chain."""
    return str(api(chain_settings).base_url).rstrip("/")


def read_balances(chain: DevChain) -> tuple[int, int]:
    return chain.token_balance(BUYER.address), chain.token_balance(DEFAULT_PAYEE)


@pytest.mark.extended
async def test_receipt_names_transaction_on_chain(wallet: x402Client, url: str, devchain: DevChain) -> None:
    async with x402HttpxClient(wallet, base_url=url, timeout=30) as http:
        response = await http.post(PHISHING, json=QUESTION)

    receipt = decode_header(response.headers["PAYMENT-RESPONSE"])
    assert receipt["success"] is True
    question = {"id": 1, "jsonrpc": "2.0", "method": "eth_getTransactionReceipt"}
    async with httpx.AsyncClient() as node:
        said = await node.post(devchain.rpc_url, json={**question, "params": [receipt["transaction"]]})
    assert said.json()["result"]["status"] == "0x1"


@pytest.mark.extended
async def test_wrapped_client_pays(wallet: x402Client, url: str, devchain: DevChain) -> None:
    before = read_balances(devchain)

    async with wrapHttpxWithPayment(wallet, base_url=url, timeout=30) as http:
        response = await http.post(PHISHING, json=QUESTION)

    assert response.status_code == 200
    after = read_balances(devchain)
    assert (before[0] - after[0], after[1] - before[1]) == (CENT, CENT)


async def test_refused_body_costs_nothing(wallet: x402Client, url: str, devchain: DevChain) -> None:
    before = read_balances(devchain)

    async with x402HttpxClient(wallet, base_url=url, timeout=30) as http:
        response = await http.post(PHISHING, json={"url": 1})

    assert response.status_code == 400
    assert read_balances(devchain) == before
