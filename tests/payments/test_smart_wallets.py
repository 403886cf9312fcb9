"""Payers with code: token and facilitator, not the API, check their signatures."""

# eth-account is typed in parts
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import pytest
from buyer import Buyer, encode_header, pay, payment_note, sign_payload
from eth_account import Account
from wallets import Contracts, deploy_contracts, sign_authorization

from centgate.devchain.devnet import DevChain
from centgate.devchain.environment import devchain_settings
from centgate.server import run_in_thread
from centgate.settings import Settings

Sign = Callable[[dict[str, Any]], bytes]
"""Function that signs an authorization."""


@dataclass(frozen=True)
class Shop:
    """An API that is paid on the chain."""

    client: httpx.Client
    chain: DevChain
    contracts: Contracts

    def sign_payment(self, payer: str, sign: Sign) -> str:
        """Return a payment of a payer; `sign` makes the signature of its authorization."""
        payload = sign_payload(self.client, Buyer(), **{"from": payer})
        payload["payload"]["signature"] = "0x" + sign(payload["payload"]["authorization"]).hex()
        return encode_header(payload)


@pytest.fixture(scope="module")
def shop(devchain: DevChain, tmp_path_factory: pytest.TempPathFactory) -> Generator[Shop]:
    """An API that accepts payments."""
    settings = devchain_settings(devchain, Settings(port=0), tmp_path_factory.mktemp("shop"))
    with (
        deploy_contracts(devchain) as contracts,
        run_in_thread(settings) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield Shop(client, devchain, contracts)


def key_signer(key: Any) -> Sign:
    """Return a function that signs with a key."""
    return partial(sign_authorization, key)


def wallet_signer(key: Any) -> Sign:
    """Return a function that makes the signature which a wallet accepts from its owner."""

    def sign(authorization: dict[str, Any]) -> bytes:
        return b"\1" + sign_authorization(key, authorization)

    return sign


def counterfactual_signer(shop: Shop, owner: Any) -> Sign:
    """Return a function that signs for a wallet which is not deployed yet."""

    def sign(authorization: dict[str, Any]) -> bytes:
        return shop.contracts.sign_counterfactual(owner.address, wallet_signer(owner)(authorization))

    return sign


@pytest.mark.extended
def test_wallet_with_code_buys_one_answer(shop: Shop) -> None:
    owner = Account.create()
    wallet = shop.contracts.make_wallet(owner.address)
    shop.contracts.fund_payer(wallet)
    payment = shop.sign_payment(wallet, wallet_signer(owner))

    first, again = pay(shop.client, payment), pay(shop.client, payment)

    assert (first.status_code, again.content) == (200, first.content)
    assert shop.chain.token_balance(wallet) == 10_000


@pytest.mark.extended
@pytest.mark.parametrize("by", ["a stranger", "a stranger in 65 bytes", "its owner in 65 bytes"])
def test_signature_refused_by_wallet_buys_nothing(shop: Shop, by: str) -> None:
    owner, stranger = Account.create(), Account.create()
    wallet = shop.contracts.make_wallet(owner.address)
    shop.contracts.fund_payer(wallet)
    key = owner if "owner" in by else stranger
    sign = wallet_signer(key) if by == "a stranger" else key_signer(key)

    response = pay(shop.client, shop.sign_payment(wallet, sign))

    assert response.status_code == 402
    assert payment_note(response) == {"state": "refused", "charged": False, "retry": "new_payment"}
    assert shop.chain.token_balance(wallet) == 20_000


@pytest.mark.extended
def test_wallet_that_facilitator_does_not_deploy_buys_nothing(shop: Shop) -> None:
    owner = Account.create()
    wallet = shop.contracts.predict_wallet(owner.address)
    shop.contracts.fund_payer(wallet)

    response = pay(shop.client, shop.sign_payment(wallet, counterfactual_signer(shop, owner)))

    assert response.json()["error"]["details"]["reason"] == "eip6492_factory_not_allowed"
    assert payment_note(response)["charged"] is False
    assert shop.chain.token_balance(wallet) == 20_000


def test_account_delegated_to_accepting_code_buys(shop: Shop) -> None:
    key = shop.contracts.delegate_account(shop.contracts.delegate)
    shop.contracts.fund_payer(key.address)

    response = pay(shop.client, shop.sign_payment(key.address, key_signer(key)))

    assert response.status_code == 200
    assert shop.chain.token_balance(key.address) == 10_000


@pytest.mark.extended
def test_account_delegated_to_refusing_code_buys_nothing(shop: Shop) -> None:
    key = shop.contracts.delegate_account(shop.contracts.wallet)
    shop.contracts.fund_payer(key.address)

    response = pay(shop.client, shop.sign_payment(key.address, key_signer(key)))

    assert response.status_code == 402
    assert payment_note(response)["charged"] is False
    assert shop.chain.token_balance(key.address) == 20_000
