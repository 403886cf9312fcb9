"""The official clients pay an API that signs, and the official library verifies its signatures."""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from buyer import PHISHING, QUESTION, ApiFactory, decode_header
from eth_account import Account
from pydantic import SecretStr
from x402 import x402Client
from x402.http.clients.httpx import x402HttpxClient
from x402.mechanisms.evm.exact import register_exact_evm_client

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.settings import Settings

pytestmark = pytest.mark.extended

KEY = "5e" * 32
SIGNER = str(Account.from_key(KEY).address)
PAYER = BUYER_ACCOUNTS[8]
WITHIN = 60


@pytest.fixture
def url(api: ApiFactory, chain_settings: Settings) -> str:
    """URL of an API that signs, and is paid on the development chain."""
    settings = chain_settings.model_copy(update={"receipt_key": SecretStr(KEY)})
    return str(api(settings).base_url).rstrip("/")


def test_official_library_verifies_offers_and_receipts(npm_project: Path, url: str) -> None:
    environment = {**os.environ, "CENTGATE_URL": url, "PRIVATE_KEY": PAYER.private_key}

    done = subprocess.run(
        ["node", "prove.mjs"],
        cwd=npm_project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=WITHIN,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["status"] == 200
    assert output["settled"]["success"] is True
    assert output["terms"] == output["accepts"][0]
    assert output["matches"] is True
    for (signer, *of_tampered), fields in ((output["offered"], 8), (output["received"], 6)):
        assert signer == SIGNER
        assert len(of_tampered) == fields
        assert SIGNER not in of_tampered


async def test_official_python_client_pays_signing_api(url: str) -> None:
    client = x402Client()
    register_exact_evm_client(client, Account.from_key(PAYER.private_key))

    async with x402HttpxClient(client, base_url=url, timeout=30) as http:
        response = await http.post(PHISHING, json=QUESTION)

    assert response.status_code == 200
    receipt = decode_header(response.headers["PAYMENT-RESPONSE"])["extensions"]["offer-receipt"]["info"][
        "receipt"
    ]
    assert receipt["payload"]["payer"].lower() == PAYER.address.lower()
