"""One development chain for all tests here, with fixtures that pay and send transactions."""

# x402 has type annotations but no py.typed marker
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import httpx
import pytest
import requests
from buyer import SHARED
from eth_account import Account as Wallet
from web3 import HTTPProvider, Web3
from web3.contract import Contract
from x402 import x402ClientSync
from x402.mechanisms.evm.exact import register_exact_evm_client
from x402.schemas import PaymentRequired

from centgate.devchain.accounts import Account
from centgate.devchain.devnet import DevChain, open_devchain
from centgate.devchain.token import TOKEN_ADDRESS, load_artefact

SHOP = "0x2222222222222222222222222222222222222222"
NETWORK = "eip155:84532"

Body = dict[str, Any]


@pytest.fixture(scope="session")
def devchain() -> Iterator[DevChain]:
    with open_devchain() as running:
        yield running


@pytest.fixture(scope="session")
def w3(devchain: DevChain) -> Iterator[Web3]:
    with requests.Session() as session:
        yield Web3(HTTPProvider(devchain.rpc_url, session=session))


@pytest.fixture(scope="session")
def token(w3: Web3) -> Contract:
    return w3.eth.contract(address=Web3.to_checksum_address(TOKEN_ADDRESS), abi=load_artefact()["abi"])


@pytest.fixture(scope="session")
def http() -> Iterator[httpx.Client]:
    """An HTTP client."""
    with httpx.Client(timeout=30, limits=SHARED) as client:
        yield client


@pytest.fixture(scope="session")
def take_account(devchain: DevChain) -> Callable[[], Account]:
    """Function that returns the accounts in turn, so that tests rarely share one."""
    accounts = cycle(devchain.accounts)
    return lambda: next(accounts)


@pytest.fixture(scope="session")
def send(w3: Web3) -> Callable[..., Any]:
    """Function that sends a contract call or constructor from an account, and returns the receipt."""

    def send(account: Account, function: Any) -> Any:
        address = Web3.to_checksum_address(account.address)
        nonce = w3.eth.get_transaction_count(address, "pending")
        transaction = function.build_transaction({"from": address, "nonce": nonce})
        signed = Wallet.from_key(account.private_key).sign_transaction(transaction)
        return w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(signed.raw_transaction))

    return send


@pytest.fixture(scope="session")
def pay() -> Callable[..., Body]:
    """Function that builds a facilitator request with a payment signed by the official client."""

    def pay(account: Account, amount: int = 10_000) -> Body:
        client = x402ClientSync()
        register_exact_evm_client(client, Wallet.from_key(account.private_key), NETWORK)
        terms = build_terms(amount)
        offer = {"x402Version": 2, "resource": {"url": "http://shop.test/"}, "accepts": [terms]}
        payment = client.create_payment_payload(PaymentRequired.model_validate(offer))
        payload = payment.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": terms}

    return pay


def build_terms(amount: int) -> Body:
    return {
        "scheme": "exact",
        "network": NETWORK,
        "asset": TOKEN_ADDRESS,
        "amount": str(amount),
        "payTo": SHOP,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2", "paymentFlow": "upfront"},
    }


@pytest.fixture(scope="session")
def terms() -> Callable[[int], Body]:
    return build_terms


@pytest.fixture(scope="session")
def shop() -> str:
    return SHOP
