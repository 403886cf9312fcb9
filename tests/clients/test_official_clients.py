"""The official x402 clients pay a call through the real facilitator on a real EVM."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import PHISHING, QUESTION, ApiFactory, decode_header
from eth_account import Account
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact import ExactEvmClientScheme
from x402.mechanisms.evm.signers import EthAccountSigner

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE
from centgate.settings import Settings

PRICE = 10_000
PAY_WITHIN = 60


async def test_official_python_client_pays_call(
    api: ApiFactory, chain_settings: Settings, devchain: DevChain
) -> None:
    payer = devchain.accounts[1]
    url = str(api(chain_settings).base_url)
    before = devchain.token_balance(payer.address), devchain.token_balance(DEFAULT_PAYEE)
    client = x402Client()
    client.register(chain_settings.network, ExactEvmClientScheme(EthAccountSigner(_make_wallet(payer))))

    async with x402HttpxClient(client, base_url=url, timeout=30) as http:
        response = await http.post(PHISHING, json=QUESTION)

    assert response.json()["data"]["status"] == "blocked"
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["success"] is True
    after = devchain.token_balance(payer.address), devchain.token_balance(DEFAULT_PAYEE)
    assert (before[0] - after[0], after[1] - before[1]) == (PRICE, PRICE)


def _make_wallet(payer: Any) -> Any:
    return Account.from_key(payer.private_key)


@pytest.mark.extended
def test_official_javascript_client_pays_call(
    npm_project: Path, api: ApiFactory, chain_settings: Settings, devchain: DevChain
) -> None:
    payer = devchain.accounts[2]
    client: httpx.Client = api(chain_settings)
    before = devchain.token_balance(payer.address)
    environment = {
        **os.environ,
        "CENTGATE_URL": str(client.base_url).rstrip("/"),
        "PRIVATE_KEY": payer.private_key,
    }

    done = subprocess.run(
        ["node", "pay.mjs"],
        cwd=npm_project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PAY_WITHIN,
    )

    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["answer"]["data"]["status"] == "lookalike"
    assert output["receipt"]["success"] is True
    assert before - devchain.token_balance(payer.address) == PRICE
