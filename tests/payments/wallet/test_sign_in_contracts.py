"""Sign-ins of contract wallets: the contract at the address checks the signature (ERC-1271)."""

# eth-account and web3 are typed in parts
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import Buyer, decode_header, encode_header, pay, sign_payload
from eth_abi.abi import encode
from eth_account import Account
from sign_ins import SignText, answer_challenge, fetch_challenge, send_payload, sign_text
from wallets import COUNTERFACTUAL, Contracts, deploy_contracts, sign_authorization

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import devchain_settings
from centgate.server import run_in_thread
from centgate.settings import ProviderSettings, Settings
from centgate.signing.evm import to_checksum_address

BURNS_GAS = """
@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[2000]) -> bytes4:
    x: bytes32 = digest
    for i: uint256 in range(1000000000):
        x = keccak256(x)
    return 0x1626ba7e
"""
REVERTS = """
@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[2000]) -> bytes4:
    raise "no"
"""
RETURNS_TEXT = """
@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[2000]) -> String[4000]:
    return "garbage garbage garbage garbage garbage garbage garbage"
"""
RETURNS_NOTHING = """
@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[2000]):
    pass
"""
RETURNS_TRUE = """
@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[2000]) -> bool:
    return True
"""
RETURNS_THE_VALUE_AT_THE_WRONG_END = """
@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[2000]) -> uint256:
    return 371637886
"""
HOSTILE = {
    "burns gas": BURNS_GAS,
    "reverts": REVERTS,
    "returns text": RETURNS_TEXT,
    "returns nothing": RETURNS_NOTHING,
    "returns true": RETURNS_TRUE,
    "returns the value as a number": RETURNS_THE_VALUE_AT_THE_WRONG_END,
}


pytestmark = pytest.mark.extended


@dataclass(frozen=True)
class Shop:
    """An API that is paid on the chain."""

    client: httpx.Client
    contracts: Contracts


@pytest.fixture(scope="module")
def shop(devchain: DevChain, tmp_path_factory: pytest.TempPathFactory) -> Generator[Shop]:
    """An API that accepts payments."""
    settings = devchain_settings(devchain, Settings(port=0), tmp_path_factory.mktemp("shop"))
    with (
        deploy_contracts(devchain) as contracts,
        run_in_thread(settings) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield Shop(client, contracts)


def wallet_signer(key: Any) -> SignText:
    """Return a function that makes the signature which a wallet accepts from its owner."""
    return lambda text: b"\1" + sign_text(key.key, text)


def wrap_signer(sign: SignText) -> SignText:
    """Return a function that wraps a signature as for a wallet that is not deployed yet (ERC-6492)."""

    def sign_and_wrap(text: str) -> bytes:
        parts = encode(["address", "bytes", "bytes"], ["0x" + "11" * 20, b"\0" * 4, sign(text)])
        return parts + COUNTERFACTUAL

    return sign_and_wrap


def sign_in_as(shop: Shop, address: str, sign: SignText, path: str = "/payments") -> httpx.Response:
    payload = answer_challenge(fetch_challenge(shop.client, path), address=address, sign=sign)
    return send_payload(shop.client, payload, path)


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_contract_wallet_sees_its_payments(shop: Shop, is_wrapped: bool) -> None:  # noqa: FBT001
    owner = Account.create()
    wallet = shop.contracts.make_wallet(owner.address)
    shop.contracts.fund_payer(wallet)
    payload = sign_payload(shop.client, Buyer(), **{"from": wallet})
    authorization = payload["payload"]["authorization"]
    payload["payload"]["signature"] = "0x" + (b"\1" + sign_authorization(owner, authorization)).hex()
    bought = pay(shop.client, encode_header(payload))
    transaction = decode_header(bought.headers["PAYMENT-RESPONSE"])["transaction"]

    sign = wrap_signer(wallet_signer(owner)) if is_wrapped else wallet_signer(owner)
    response = sign_in_as(shop, wallet, sign, f"/payments/{transaction}")

    assert response.status_code == 200, response.text
    assert bought.content in response.content


def test_spelling_of_contract_may_differ_from_that_of_message(shop: Shop) -> None:
    owner = Account.create()
    wallet = to_checksum_address(shop.contracts.make_wallet(owner.address))
    payload = answer_challenge(fetch_challenge(shop.client), address=wallet, sign=wallet_signer(owner))

    response = send_payload(shop.client, payload | {"address": wallet.lower()})

    assert response.status_code == 200, response.text


def test_stranger_cannot_sign_for_contract_wallet(shop: Shop) -> None:
    wallet = shop.contracts.make_wallet(Account.create().address)

    response = sign_in_as(shop, wallet, wallet_signer(Account.create()))

    assert response.json()["error"]["details"]["reason"] == "invalid_siwx_signature"


def test_owners_own_signature_is_not_wallets(shop: Shop) -> None:
    owner = Account.create()
    wallet = shop.contracts.make_wallet(owner.address)

    response = sign_in_as(shop, wallet, lambda text: sign_text(owner.key, text))

    assert response.json()["error"]["details"]["reason"] == "invalid_siwx_signature"


def test_undeployed_wallet_is_refused_with_reason(shop: Shop) -> None:
    owner = Account.create()
    wallet = shop.contracts.predict_wallet(owner.address)

    response = sign_in_as(shop, wallet, wrap_signer(wallet_signer(owner)))

    error = response.json()["error"]
    assert error["details"]["reason"] == "invalid_siwx_signature"
    assert "has no contract on eip155:" in error["message"]


def test_delegating_account_signs_with_its_own_key(shop: Shop) -> None:
    key = shop.contracts.delegate_account(shop.contracts.wallet)

    response = sign_in_as(shop, key.address, lambda text: sign_text(key.key, text))

    assert response.status_code == 200


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_contract_signs_nobody_in(shop: Shop, source: str) -> None:
    contract = shop.contracts.deploy(source)

    response = sign_in_as(shop, contract, lambda _: b"\1" * 66)

    error = response.json()["error"]
    if response.status_code == 402:
        assert error["details"]["reason"] == "invalid_siwx_signature"
    else:  # a busy node did not stop the contract's code in time
        assert error["code"] in ("provider_error", "provider_timeout")


@pytest.mark.parametrize("is_repeated", [False, True])
def test_contract_sign_in_costs_ten_requests(
    devchain: DevChain,
    tmp_path: Path,
    shop: Shop,
    is_repeated: bool,  # noqa: FBT001
) -> None:
    """Whatever the contract answers: anybody can deploy one that accepts everything."""
    settings = devchain_settings(devchain, Settings(port=0), tmp_path)
    limits = {"free_per_minute": 1, "free_burst": 25}
    owner = Account.create()
    wallet = shop.contracts.make_wallet(owner.address)

    with (
        run_in_thread(settings.model_copy(update=limits)) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        first, second = fetch_challenge(client), fetch_challenge(client)
        challenges = [first] * 3 if is_repeated else [first, second, first]
        payloads = [
            answer_challenge(each, address=wallet, sign=wallet_signer(owner)) for each in (*challenges, first)
        ]
        statuses = [send_payload(client, payload).status_code for payload in payloads]

    assert statuses == ([200, 402, 402, 429] if is_repeated else [200, 200, 402, 429])


def test_silent_node_is_server_error(
    devchain: DevChain, tmp_path_factory: pytest.TempPathFactory, shop: Shop
) -> None:
    settings = devchain_settings(devchain, Settings(port=0), tmp_path_factory.mktemp("blind"))
    name = f"rpc_{devchain.chain_id}"
    blind = settings.model_copy(update={"providers": {name: ProviderSettings(url="http://127.0.0.1:9")}})
    wallet = shop.contracts.make_wallet(Account.create().address)

    with run_in_thread(blind) as url, httpx.Client(base_url=url, timeout=30) as client:
        response = sign_in_as(Shop(client, shop.contracts), wallet, wallet_signer(Account.create()))

    assert (response.status_code, response.json()["error"]["code"]) == (502, "provider_error")
    assert response.headers["Retry-After"]
