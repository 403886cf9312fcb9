"""The reference clients of MPP, pympp and mppx, pay calls of an API with x402 and MPP."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import PHISHING, QUESTION, ApiFactory, decode_header, payment_note
from eth_account import Account as Wallet
from facilitators import StubFacilitator, build_settings, refuse_with, reply_with
from mpp import Receipt
from mpp.client.transport import Mpp
from mpp.methods.evm import client as evm
from mpp.methods.evm.assets import BASE_SEPOLIA_USDC
from mpp_buyer import MPP_SETTINGS

from centgate.devchain.accounts import BUYER_ACCOUNTS, Account
from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import DEFAULT_PAYEE, devchain_settings
from centgate.settings import Settings

PRICE = 10_000
PAY_WITHIN = 60


@pytest.fixture
def mpp_settings(devchain: DevChain, tmp_path: Path) -> Settings:
    """A deployment on the development chain that accepts MPP."""
    return devchain_settings(devchain, Settings(port=0, **MPP_SETTINGS), tmp_path)


def open_pympp(account: Account) -> Mpp:
    """Open the Python client with the wallet of a payer."""
    wallet: Any = Wallet.from_key(account.private_key)
    return Mpp([evm.charge(currency=BASE_SEPOLIA_USDC, account=wallet, max_amount="0.01")])


async def test_pympp_pays_call(api: ApiFactory, mpp_settings: Settings, devchain: DevChain) -> None:
    payer = devchain.accounts[3]
    url = str(api(mpp_settings).base_url)
    before = devchain.token_balance(payer.address), devchain.token_balance(DEFAULT_PAYEE)
    async with open_pympp(payer) as client:
        response = await client.fetch(f"{url}{PHISHING}", method="POST", json=QUESTION)
    assert response.json()["data"]["status"] == "blocked"
    receipt = Receipt.from_payment_receipt(response.headers["Payment-Receipt"])
    assert receipt.reference == decode_header(response.headers["PAYMENT-RESPONSE"])["transaction"]
    after = devchain.token_balance(payer.address), devchain.token_balance(DEFAULT_PAYEE)
    assert (before[0] - after[0], after[1] - before[1]) == (PRICE, PRICE)


async def test_pympp_does_not_pay_twice_on_unknown_outcome(
    api: ApiFactory, facilitator: StubFacilitator, tmp_path: Path
) -> None:
    """It returns the error, and the credential that it reports fetches the answer."""
    shop = api(build_settings(tmp_path, facilitator.url, **MPP_SETTINGS))
    facilitator.next = [facilitator.move_then_reply(reply_with(500, "a proxy's page"))]
    reported: list[Any] = []
    async with open_pympp(BUYER_ACCOUNTS[0]) as client:
        client.on_payment_failed(reported.append)
        response = await client.fetch(f"{shop.base_url}{PHISHING}", method="POST", json=QUESTION)
    assert (response.status_code, payment_note(response)["retry"]) == (502, "same_payment")
    (event,) = reported
    authorization = {"Authorization": event["credential"].to_authorization()}
    assert shop.post(PHISHING, json=QUESTION, headers=authorization).status_code == 200
    assert facilitator.moved.total() == 1


async def test_pympp_answers_new_challenge_after_refusal(
    api: ApiFactory, facilitator: StubFacilitator, tmp_path: Path
) -> None:
    shop = api(build_settings(tmp_path, facilitator.url, **MPP_SETTINGS))
    facilitator.next = [refuse_with("insufficient_funds")]
    async with open_pympp(BUYER_ACCOUNTS[0]) as client:
        response = await client.fetch(f"{shop.base_url}{PHISHING}", method="POST", json=QUESTION)
    assert response.status_code == 200
    assert (facilitator.settle_calls, facilitator.moved.total()) == (2, 1)


@pytest.mark.extended
@pytest.mark.parametrize("protocol", ["mpp", "x402"])
def test_mppx_pays_call(
    npm_project: Path, api: ApiFactory, mpp_settings: Settings, devchain: DevChain, protocol: str
) -> None:
    payer = devchain.accounts[4]
    client: httpx.Client = api(mpp_settings)
    before = devchain.token_balance(payer.address)
    environment = {
        **os.environ,
        "CENTGATE_URL": str(client.base_url).rstrip("/"),
        "PRIVATE_KEY": payer.private_key,
        "TOKEN": mpp_settings.token.address,
        "CHAIN_ID": str(mpp_settings.chain_id),
        "PROTOCOL": protocol,
    }
    done = subprocess.run(
        ["node", "pay_by_mpp.mjs"],
        cwd=npm_project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PAY_WITHIN,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["answer"]["data"]["status"] == "lookalike"
    transaction = decode_header(printed["settlement"])["transaction"]
    reference = printed["receipt"]["reference"] if printed["receipt"] else None
    assert reference == (transaction if protocol == "mpp" else None)
    assert before - devchain.token_balance(payer.address) == PRICE


@pytest.mark.extended
def test_mppx_validates_api(npm_project: Path, api: ApiFactory, mpp_settings: Settings) -> None:
    """Its validator reads the OpenAPI document, and checks the challenge of every paid route."""
    url = str(api(mpp_settings).base_url).rstrip("/")
    done = subprocess.run(
        [npm_project / "node_modules" / ".bin" / "mppx", "validate", url, "--output-json", "--yes"],
        cwd=npm_project,
        capture_output=True,
        text=True,
        timeout=PAY_WITHIN,
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["summary"]["failed"]) == (0, 0), done.stdout
    assert report["discovery"]["found"] is True
    assert report["summary"]["passed"] >= 14 * 10
