"""The facilitator of the development chain over HTTP: each payment once, and no reverted transaction."""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest
from eth_account import Account as Wallet
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from web3 import Web3
from web3.contract import Contract
from x402.mechanisms.evm.eip712 import hash_eip3009_authorization
from x402.mechanisms.evm.types import ExactEIP3009Authorization

from centgate.devchain.accounts import FACILITATOR_ACCOUNT, Account
from centgate.devchain.devnet import DevChain, open_devchain
from centgate.devchain.http_server import serve_app
from centgate.devchain.token import CHAIN_ID, TOKEN_ADDRESS

Body = dict[str, Any]
Pay = Callable[..., Body]
Post = Callable[[str, Body], Body]
Someone = Callable[[], Account]

# a wallet with code: it accepts its owner's signature with a prefix byte, so that it is not 65 bytes long
WALLET = """
owner: address

@deploy
def __init__(owner: address):
    self.owner = owner

@external
@view
def isValidSignature(digest: bytes32, signature: Bytes[66]) -> bytes4:
    v: uint256 = convert(slice(signature, 65, 1), uint256)
    r: uint256 = extract32(signature, 1, output_type=uint256)
    s: uint256 = extract32(signature, 33, output_type=uint256)
    if ecrecover(digest, v, r, s) == self.owner:
        return 0x1626ba7e
    return 0xffffffff
"""


@pytest.fixture
def post(devchain: DevChain, http: httpx.Client) -> Post:
    def post(path: str, body: Body) -> Body:
        response = http.post(devchain.facilitator_url + path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    return post


@pytest.fixture
def count_sent(w3: Web3) -> Callable[[], int]:
    """Function that returns the number of transactions of the facilitator."""
    return lambda: w3.eth.get_transaction_count(Web3.to_checksum_address(FACILITATOR_ACCOUNT.address))


def test_only_exact_scheme_on_this_chain_is_offered(devchain: DevChain, http: httpx.Client):
    supported = http.get(devchain.facilitator_url + "/supported").json()

    assert supported["kinds"] == [{"x402Version": 2, "scheme": "exact", "network": "eip155:84532"}]
    assert supported["signers"] == {"eip155:*": [FACILITATOR_ACCOUNT.address]}


def test_payment_of_official_client_is_verified_and_settled(
    devchain: DevChain, post: Post, pay: Pay, take_account: Someone, shop: str
):
    buyer = take_account()
    held, taken = devchain.token_balance(buyer.address), devchain.token_balance(shop)
    payment = pay(buyer)

    verified, settled = post("/verify", payment), post("/settle", payment)

    assert verified == {"isValid": True, "payer": buyer.address}
    assert settled["success"] is True
    assert settled["network"] == "eip155:84532"
    assert (devchain.token_balance(buyer.address), devchain.token_balance(shop)) == (
        held - 10_000,
        taken + 10_000,
    )
    nonce = payment["paymentPayload"]["payload"]["authorization"]["nonce"]
    assert devchain.is_authorization_used(buyer.address, nonce)


@pytest.mark.extended
def test_second_settlement_returns_first_transaction(
    post: Post, pay: Pay, take_account: Someone, count_sent: Callable[[], int]
):
    payment = pay(take_account())

    first = post("/settle", payment)
    broadcast = count_sent()

    assert post("/settle", payment) == first
    assert count_sent() == broadcast
    assert post("/verify", payment)["invalidReason"] == "invalid_exact_evm_nonce_already_used"


@pytest.mark.extended
def test_settled_nonce_under_other_terms_is_not_settled_again(
    post: Post, pay: Pay, take_account: Someone, count_sent: Callable[[], int]
):
    payment = pay(take_account())
    post("/settle", payment)
    broadcast = count_sent()
    signature = payment["paymentPayload"]["payload"]["signature"]
    payment["paymentPayload"]["payload"]["signature"] = signature[:-2] + (
        "00" if signature[-2:] == "1b" else "01"
    )

    again = post("/settle", payment)

    assert (again["success"], again["errorReason"]) == (False, "invalid_exact_evm_nonce_already_used")
    assert count_sent() == broadcast


def test_twenty_concurrent_settlements_are_one_transaction(
    post: Post, pay: Pay, take_account: Someone, count_sent: Callable[[], int]
):
    payment = pay(take_account())
    broadcast = count_sent()

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(partial(post, "/settle"), [payment] * 20))

    assert count_sent() == broadcast + 1
    assert answers == [answers[0]] * 20
    assert answers[0]["success"]


@pytest.mark.extended
def test_concurrent_payments_of_many_buyers_are_settled(
    devchain: DevChain, post: Post, pay: Pay, count_sent: Callable[[], int]
):
    payments = [pay(buyer) for buyer in devchain.accounts]
    broadcast = count_sent()

    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(partial(post, "/settle"), payments))

    assert all(answer["success"] for answer in answers)
    assert len({answer["transaction"] for answer in answers}) == 10
    assert count_sent() == broadcast + 10


@pytest.mark.extended
def test_two_payments_over_balance_are_one_transaction(
    token: Contract,
    send: Callable[..., Any],
    take_account: Someone,
    post: Post,
    pay: Pay,
    count_sent: Callable[[], int],
):
    new = Wallet.create()
    buyer = Account(new.address, new.key.to_0x_hex())
    send(take_account(), token.functions.transfer(buyer.address, 15_000))
    payments = [pay(buyer) for _ in range(2)]
    broadcast = count_sent()

    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(partial(post, "/settle"), payments))

    assert sorted(answer["success"] for answer in answers) == [False, True]
    refused = next(answer for answer in answers if not answer["success"])
    assert refused["errorReason"] == "invalid_exact_evm_insufficient_balance"
    assert count_sent() == broadcast + 1


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"value": "10001"}, "invalid_exact_evm_payload_authorization_value_mismatch"),
        ({"to": TOKEN_ADDRESS}, "invalid_exact_evm_payload_recipient_mismatch"),
        ({"validBefore": "1"}, "invalid_exact_evm_payload_authorization_valid_before"),
        ({"validAfter": "99999999999"}, "invalid_exact_evm_payload_authorization_valid_after"),
        ({"nonce": "0x" + "ab" * 32}, "invalid_exact_evm_payload_signature"),
    ],
)
def test_invalid_payment_is_refused_before_transaction(
    post: Post, pay: Pay, take_account: Someone, count_sent: Callable[[], int], changed: Body, reason: str
):
    payment = pay(take_account())
    payment["paymentPayload"]["payload"]["authorization"].update(changed)
    broadcast = count_sent()

    settled = post("/settle", payment)

    assert post("/verify", payment)["invalidReason"] == settled["errorReason"] == reason
    assert count_sent() == broadcast


@pytest.mark.parametrize("path", ["/verify", "/settle"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{}",
        b'{"x402Version": 2, "paymentPayload": {}, "paymentRequirements": {}}',
    ],
)
def test_malformed_body_is_client_error(devchain: DevChain, http: httpx.Client, path: str, body: bytes):
    response = http.post(devchain.facilitator_url + path, content=body)

    assert response.status_code == 400
    assert response.json()["error"] == "invalid_payload"


@pytest.mark.extended
@pytest.mark.parametrize(
    "broken",
    [
        {"payload": {}},
        {"payload": []},
        {"payload": {"signature": "0x12"}},
        {"accepted": None},
        {"x402Version": 1},
        {"authorization": {"value": "abc"}},
        {"authorization": {"value": 10_000}},
        {"authorization": {"from": "0x12"}},
        {"authorization": {"nonce": "0x12"}},
        {"authorization": {"validBefore": "-1"}},
        {"authorization": {"validBefore": "\u0663"}},
    ],
)
def test_malformed_payment_is_client_error(
    devchain: DevChain, http: httpx.Client, pay: Pay, take_account: Someone, broken: Body
):
    payment = pay(take_account())
    payload = payment["paymentPayload"]
    payload["payload"]["authorization"].update(broken.get("authorization", {}))
    payload.update({name: value for name, value in broken.items() if name != "authorization"})

    response = http.post(devchain.facilitator_url + "/settle", json=payment)

    assert response.status_code == 400
    assert response.json()["error"] == "invalid_payload"


@pytest.mark.parametrize("changed", [{"network": "eip155:8453"}, {"scheme": "upto"}])
def test_other_network_or_scheme_is_client_error(
    devchain: DevChain, http: httpx.Client, pay: Pay, take_account: Someone, changed: Body
):
    payment = pay(take_account())
    for terms in (payment["paymentRequirements"], payment["paymentPayload"]["accepted"]):
        terms.update(changed)

    response = http.post(devchain.facilitator_url + "/verify", json=payment)

    assert (response.status_code, response.json()["error"]) == (400, "unsupported_scheme")


@pytest.mark.extended
def test_wallet_with_code_pays_by_own_rule(
    w3: Web3,
    token: Contract,
    devchain: DevChain,
    send: Callable[..., Any],
    post: Post,
    take_account: Someone,
    terms: Callable[[int], Body],
    shop: str,
):
    from importlib import import_module

    vyper: Any = import_module("vyper")
    compiled = vyper.compile_code(WALLET, output_formats=["abi", "bytecode"])
    owner = take_account()
    factory = w3.eth.contract(abi=compiled["abi"], bytecode=compiled["bytecode"])
    wallet: str = send(owner, factory.constructor(owner.address))["contractAddress"]
    send(owner, token.functions.transfer(wallet, 10_000))
    window = {"validAfter": "0", "validBefore": str(int(time.time()) + 60)}
    nonce = "0x" + os.urandom(32).hex()
    authorization = {"from": wallet, "to": shop, "value": "10000", **window, "nonce": nonce}
    digest = hash_eip3009_authorization(
        ExactEIP3009Authorization(
            wallet, shop, "10000", window["validAfter"], window["validBefore"], authorization["nonce"]
        ),
        CHAIN_ID,
        TOKEN_ADDRESS,
        "USDC",
        "2",
    )
    signature = Wallet.from_key(owner.private_key).unsafe_sign_hash(digest).signature
    payment: Body = {
        "x402Version": 2,
        "paymentPayload": {
            "x402Version": 2,
            "payload": {"signature": "0x01" + signature.hex(), "authorization": authorization},
            "accepted": terms(10_000),
        },
        "paymentRequirements": terms(10_000),
    }

    assert post("/verify", payment)["isValid"] is True
    assert post("/settle", payment)["success"] is True
    assert devchain.token_balance(wallet) == 0


@pytest.fixture
def failing_devchain(devchain: DevChain) -> Iterator[DevChain]:
    """A second facilitator, on a node that fails the first transaction."""
    stumbles = [True]

    async def endpoint(request: Request) -> Response:
        body = await request.body()
        if b"eth_sendRawTransaction" in body and stumbles:
            stumbles.clear()
            return JSONResponse({"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "not now"}})
        async with httpx.AsyncClient() as client:
            answer = await client.post(devchain.rpc_url, content=body)
        return Response(answer.content, answer.status_code, media_type="application/json")

    node = Starlette(routes=[Route("/", endpoint, methods=["POST"])])
    with serve_app(node, 0) as url, open_devchain(rpc=url) as running:
        yield running


@pytest.mark.extended
def test_failed_broadcast_leaves_no_nonce_gap(
    failing_devchain: DevChain, http: httpx.Client, pay: Pay, take_account: Someone
):
    def settle(payment: Body) -> Body:
        return http.post(failing_devchain.facilitator_url + "/settle", json=payment).json()

    payment = pay(take_account())

    assert settle(payment)["success"] is False
    assert settle(payment)["success"] is True
    assert settle(pay(take_account()))["success"] is True
