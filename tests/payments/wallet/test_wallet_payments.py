"""Wallet pages: a signed-in wallet sees its own payments and answers, and redeems what it has paid for."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from buyer import (
    QUESTION,
    ApiFactory,
    Buyer,
    decode_header,
    encode_header,
    pay,
    payment_note,
    sign_payload,
    sign_payment,
)
from eth_abi.abi import encode
from facilitators import build_settings, refuse_with, reply_with
from failing_service import FAILING_QUERY, FAILING_SERVICE, ServiceFailures, install_failing_service
from fake_upstreams import FakeUpstreams, RecordedRequest
from seeded_journals import open_journal_store
from served_api import ServedApi, serve_api
from sign_ins import fetch_challenge, get_signed, sign_in
from starlette.responses import JSONResponse, Response
from x402.extensions.sign_in_with_x import SIWxExtension
from x402.schemas import PaymentRequired

from centgate.errors import ProviderError
from centgate.payments.audit.refunds import Refund, record_refund
from centgate.payments.payment_key import PaymentKey
from centgate.payments.wallet.sign_in import SignedIn
from centgate.payments.wallet.wallet_payments import find_own_payments, list_own_payments
from centgate.settings import Settings

POOL = "/services/pool-snapshot"
down = partial(ProviderError, "oracle", "the oracle is down")


@pytest.fixture(scope="module")
def installed_failures() -> Generator[ServiceFailures]:
    """Scripted failures of a service, shared by the tests of this file."""
    with install_failing_service() as failures:
        yield failures


@pytest.fixture
def failures(installed_failures: ServiceFailures) -> ServiceFailures:
    """The same, reset for each test."""
    installed_failures.reset()
    return installed_failures


@pytest.fixture(scope="module")
def served_api(
    installed_failures: ServiceFailures, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api"), free_per_minute=0) as served_api:
        yield served_api


@pytest.fixture
def client(served_api: ServedApi) -> httpx.Client:
    return served_api.client


def list_payments(client: httpx.Client, number: int, query: str = "") -> list[dict[str, Any]]:
    response = get_signed(client, "/payments" + query, number)
    assert response.status_code == 200, response.text
    return response.json()["payments"]


def read_transaction(response: httpx.Response) -> str:
    return decode_header(response.headers["PAYMENT-RESPONSE"])["transaction"]


def buy(client: httpx.Client, number: int) -> httpx.Response:
    response = pay(client, sign_payment(client, Buyer(number)))
    assert response.status_code == 200, response.text
    return response


def buy_undelivered(client: httpx.Client, failures: ServiceFailures, number: int) -> tuple[str, str]:
    """Pay for an answer whose service fails; return the payment's header and its transaction."""
    payment = sign_payment(client, Buyer(number), FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(down)
    response = pay(client, payment, FAILING_SERVICE, FAILING_QUERY)
    return payment, payment_note(response)["transaction"]


async def find_key(settings: Settings, number: int) -> PaymentKey:
    """Return the key of the only payment of a buyer."""
    wallet = SignedIn(Buyer(number).address.lower(), None)
    async with open_journal_store(settings) as store:
        [own] = await store.read(partial(list_own_payments, wallet, limit=1))
    return own.record.key


def redeem(client: httpx.Client, transaction: str, number: int, body: Any = FAILING_QUERY) -> httpx.Response:
    path = f"/payments/{transaction}"
    return client.post(path, json=body, headers=sign_in(client, path, number))


def test_request_without_signature_is_challenged(client: httpx.Client) -> None:
    response = client.get("/payments", headers={"Origin": "https://page.example"})

    offer = decode_header(response.headers["PAYMENT-REQUIRED"])
    error = response.json()["error"]
    info = offer["extensions"]["sign-in-with-x"]["info"]
    assert (response.status_code, error["code"], offer["accepts"]) == (402, "payment_required", [])
    assert error["details"] == {"accepts": [], "extensions": offer["extensions"]}
    assert offer["resource"]["url"] == info["uri"] == f"{client.base_url}/payments"
    assert f"http://{info['domain']}" == client.base_url
    assert response.headers["Cache-Control"] == "no-store"
    assert "SIGN-IN-WITH-X" in response.headers["Vary"]
    assert "Payment-Required" in response.headers["Access-Control-Expose-Headers"]


def test_wallet_sees_its_payments(client: httpx.Client) -> None:
    bought = buy(client, 0)

    response = get_signed(client, "/payments", 0)

    payment = response.json()["payments"][0]
    assert payment["transaction"] == read_transaction(bought)
    assert payment["url"] == f"{client.base_url}/payments/{payment['transaction']}"
    shown = {name: payment[name] for name in ("service", "state", "next", "hasAnswer", "charged", "amount")}
    assert shown == {
        "service": "phishing-check",
        "state": "delivered",
        "next": "read_answer",
        "hasAnswer": True,
        "charged": True,
        "amount": "10000",
    }
    assert response.headers["Cache-Control"] == "no-store"


def test_transaction_shows_answer_byte_for_byte(client: httpx.Client) -> None:
    bought = buy(client, 0)
    transaction = read_transaction(bought)

    response = get_signed(client, f"/payments/{transaction}", 0)

    answer = response.json()["payments"][0]["answer"]
    assert bought.content in response.content
    assert answer["requestId"] == bought.headers["X-Request-Id"]
    assert (answer["status"], answer["paymentResponse"]) == (200, bought.headers["PAYMENT-RESPONSE"])


def test_transaction_is_found_in_any_letter_case(client: httpx.Client) -> None:
    transaction = "0x" + read_transaction(buy(client, 0))[2:].upper()

    assert get_signed(client, f"/payments/{transaction}", 0).status_code == 200


@pytest.mark.parametrize("whose", ["unknown", "another wallet's"])
def test_payment_of_another_wallet_is_not_found(client: httpx.Client, whose: str) -> None:
    transaction = "0x" + "12" * 32 if whose == "unknown" else read_transaction(buy(client, 0))

    response = get_signed(client, f"/payments/{transaction}", 1)

    assert (response.status_code, response.json()["error"]) == (
        404,
        {
            "code": "not_found",
            "message": "this wallet has no payment in such a transaction; GET /payments lists its payments",
        },
    )


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unsigned_request_does_not_reveal_payment(client: httpx.Client, method: str) -> None:
    paths = [f"/payments/{each}" for each in ("0x" + "12" * 32, read_transaction(buy(client, 0)))]

    unknown, known = (client.request(method, path, json=QUESTION).json()["error"] for path in paths)

    assert unknown["message"] == known["message"]
    assert unknown["details"].keys() == known["details"].keys()


def test_wallet_without_payments_gets_empty_list(client: httpx.Client) -> None:
    response = get_signed(client, "/payments", 9)

    assert response.json() == {"payments": [], "cursor": None}


def test_pages_contain_every_payment_once(client: httpx.Client) -> None:
    bought = [read_transaction(buy(client, 2)) for _ in range(5)]

    found: list[str] = []
    query = "?limit=2"
    while query:
        page = get_signed(client, "/payments" + query, 2).json()
        found += [each["transaction"] for each in page["payments"]]
        query = f"?limit=2&cursor={page['cursor']}" if page["cursor"] else ""

    assert found == bought[::-1]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "limit=²", "cursor=x", "cursor=é", "cursor=WzFlOTk5XQ"]
)
def test_wrong_parameters_leave_sign_in_unused(client: httpx.Client, query: str) -> None:
    unsigned = client.get(f"/payments?{query}")
    response = client.get(f"/payments?{query}", headers={"SIGN-IN-WITH-X": "any"})

    assert (unsigned.status_code, unsigned.json()["error"]["code"]) == (402, "payment_required")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")


def test_changed_cursor_is_refused(client: httpx.Client) -> None:
    cursor = encode_header([1.0, "eip155:84532", "0x" + "00" * 20, "\0"])

    headers = {"SIGN-IN-WITH-X": "any"}
    assert client.get("/payments", params={"cursor": cursor}, headers=headers).status_code == 400


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/payments", "HEAD", "GET"),
        ("/payments", "POST", "GET"),
        ("/payments", "DELETE", "GET"),
        ("/payments/0x12", "HEAD", "GET, POST"),
        ("/payments/0x12", "PUT", "GET, POST"),
    ],
)
def test_other_methods_are_not_allowed(client: httpx.Client, path: str, method: str, allowed: str) -> None:
    response = client.request(method, path)

    assert (response.status_code, response.headers["Allow"]) == (405, allowed)


def test_refused_payment_is_shown_as_uncharged(served_api: ServedApi) -> None:
    served_api.facilitator.next.append(refuse_with("insufficient_funds"))
    pay(served_api.client, sign_payment(served_api.client, Buyer(3)))

    payment = list_payments(served_api.client, 3)[0]

    assert (payment["state"], payment["next"], payment["reason"]) == (
        "refused",
        "pay_again",
        "insufficient_funds",
    )
    assert (payment["charged"], payment["transaction"], payment["redeemableUntil"]) == (False, None, None)


@pytest.mark.extended
@pytest.mark.parametrize("setting", ["payers_denied", "payers_allowed"])
@pytest.mark.parametrize(
    "reply", [refuse_with("insufficient_funds"), reply_with(401, {})], ids=["refused", "unsent"]
)
def test_wallet_that_is_not_sold_to_is_not_told_to_pay_again(
    tmp_path: Path, setting: str, reply: Any
) -> None:
    with serve_api(tmp_path) as served_api:
        served_api.facilitator.next.append(reply)
        assert pay(served_api.client, sign_payment(served_api.client, Buyer(0))).status_code >= 400
        before = list_payments(served_api.client, 0)[0]
    listed_payer = Buyer(0 if setting == "payers_denied" else 1).address
    with serve_api(tmp_path, **{setting: listed_payer}) as served_api:
        after = list_payments(served_api.client, 0)[0]

    assert (before["next"], after["next"]) == ("pay_again", "none")
    assert (after["retry"], after["charged"], after["state"]) == ("none", False, before["state"])


@pytest.mark.extended
@pytest.mark.parametrize("suffix", ["", "6492" * 16])
def test_payments_of_strangers_in_wallets_name_are_hidden(served_api: ServedApi, suffix: str) -> None:
    """Their signature could be one of a contract, which only the facilitator can check."""
    payload = sign_payload(served_api.client, Buyer(8))
    wrapper = encode(["address", "bytes", "bytes"], ["0x" + "11" * 20, b"", b"\1" * 65])
    payload["payload"]["signature"] = "0x" + wrapper.hex() + suffix
    served_api.facilitator.next.append(refuse_with("invalid_exact_evm_payload_signature"))
    refused = pay(served_api.client, encode_header(payload))
    nonce = payload["payload"]["authorization"]["nonce"]

    listed = list_payments(served_api.client, 8)
    response = get_signed(served_api.client, f"/payments/{nonce}", 8)

    assert payment_note(refused)["state"] == "refused"
    assert (listed, response.status_code) == ([], 404)


def test_open_payment_is_found_by_nonce(served_api: ServedApi) -> None:
    served_api.facilitator.next.append(served_api.facilitator.move_then_reply(reply_with(500, "")))
    payload = sign_payload(served_api.client, Buyer(4))
    pay(served_api.client, encode_header(payload))
    nonce = payload["payload"]["authorization"]["nonce"]

    payment = get_signed(served_api.client, f"/payments/{nonce}", 4).json()["payments"][0]

    assert (payment["state"], payment["next"], payment["answer"]) == ("in_flight", "wait", None)
    assert payment["url"].endswith(nonce)


def test_owed_answer_is_redeemed_without_payment(served_api: ServedApi, failures: ServiceFailures) -> None:
    client = served_api.client
    payment, transaction = buy_undelivered(client, failures, 5)
    before, asked = list_payments(client, 5)[0], served_api.facilitator.settle_calls

    response = redeem(client, transaction, 5)

    assert (before["state"], before["next"], before["hasAnswer"]) == ("settled", "redeem", False)
    assert response.status_code == 200, response.text
    assert read_transaction(response) == transaction
    assert pay(client, payment, FAILING_SERVICE, FAILING_QUERY).content == response.content
    assert (served_api.facilitator.settle_calls, failures.questions) == (asked, ["why", "why"])


def test_owed_payment_of_shared_transaction_is_redeemed(
    served_api: ServedApi, failures: ServiceFailures
) -> None:
    client, batch = served_api.client, "0x" + "77" * 32

    async def settle_in_batch(body: dict[str, Any]) -> Response:
        return JSONResponse(served_api.facilitator.move(body) | {"transaction": batch})

    served_api.facilitator.next += [settle_in_batch] * 2
    buy_undelivered(client, failures, 8)
    payment = sign_payment(client, Buyer(8), FAILING_SERVICE, FAILING_QUERY)
    delivered = pay(client, payment, FAILING_SERVICE, FAILING_QUERY)

    response = redeem(client, batch, 8)

    assert (delivered.status_code, response.status_code) == (200, 200)
    assert response.headers["X-Request-Id"] != delivered.headers["X-Request-Id"]
    assert [each["next"] for each in list_payments(client, 8)[:2]] == ["read_answer"] * 2


def test_repeated_failure_leaves_answer_owed(client: httpx.Client, failures: ServiceFailures) -> None:
    _, transaction = buy_undelivered(client, failures, 5)
    failures.raise_next(down)

    response = redeem(client, transaction, 5)

    assert response.status_code == 502
    assert payment_note(response) == {
        "state": "settled",
        "charged": True,
        "retry": "same_payment",
        "transaction": transaction,
    }
    assert redeem(client, transaction, 5).status_code == 200


def test_concurrent_redemptions_run_service_once(client: httpx.Client, failures: ServiceFailures) -> None:
    payment, transaction = buy_undelivered(client, failures, 5)
    path = f"/payments/{transaction}"
    signed = [sign_in(client, path, 5) for _ in range(4)]

    with ThreadPoolExecutor(5) as pool:
        redeemed = [pool.submit(client.post, path, json=FAILING_QUERY, headers=each) for each in signed]
        presented = pool.submit(pay, client, payment, FAILING_SERVICE, FAILING_QUERY)
        contents = {each.result().content for each in (*redeemed, presented)}

    assert (len(contents), failures.questions) == (1, ["why", "why"])


def test_contract_payment_redeemed_meanwhile_is_not_called_invalid(
    tmp_path: Path, upstreams: FakeUpstreams
) -> None:
    """Otherwise its buyer would pay once more for an answer that is being computed."""
    arrived, release = Event(), Event()

    def fail(_: RecordedRequest) -> tuple[int, Any]:
        return 500, {}

    def answer_later(_: RecordedRequest) -> tuple[int, Any]:
        arrived.set()
        release.wait(20)
        return 200, []

    changes: dict[str, Any] = {
        "providers": upstreams.provider_settings("dexscreener"),
        "pinned": ("pool-snapshot=dexscreener",),
    }
    body = {"chain": "base", "tokenAddress": "0x" + "a1" * 20}
    path = f"/token-pairs/v1/base/{body['tokenAddress']}"
    with serve_api(tmp_path, **changes) as served_api, ThreadPoolExecutor(2) as pool:
        client = served_api.client
        payload = sign_payload(client, Buyer(7), POOL)
        payload["payload"]["signature"] = "0x" + "ab" * 96
        payment = encode_header(payload)
        upstreams.set_response_function("dexscreener", path, fail)
        transaction = payment_note(pay(client, payment, POOL, body))["transaction"]
        upstreams.set_response_function("dexscreener", path, answer_later)

        redeemed = pool.submit(redeem, client, transaction, 7, body)
        assert arrived.wait(20)
        presented = pool.submit(pay, client, payment, POOL, body)
        time.sleep(0.3)
        release.set()

    assert redeemed.result().json()["error"]["code"] == "no_data"  # an answer
    assert presented.result().content == redeemed.result().content
    assert served_api.facilitator.settle_calls == 1


def test_expired_payment_is_owed_as_money(
    failures: ServiceFailures, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with serve_api(tmp_path_factory.mktemp("brief"), free_per_minute=0, redeem_hours=1e-9) as brief:
        _, transaction = buy_undelivered(brief.client, failures, 5)

        payment = list_payments(brief.client, 5)[0]
        response = redeem(brief.client, transaction, 5)

    assert (payment["state"], payment["next"], payment["retry"]) == ("settled", "await_refund", "new_payment")
    assert (response.status_code, payment_note(response)["charged"]) == (404, True)
    assert failures.questions == ["why"]


@pytest.mark.extended
async def test_refunded_payment_is_described_alike_everywhere(
    failures: ServiceFailures, tmp_path: Path
) -> None:
    settings = build_settings(tmp_path, "http://127.0.0.1:9")
    with serve_api(tmp_path, free_per_minute=0) as served_api:
        client = served_api.client
        payment, transaction = buy_undelivered(client, failures, 5)
        key = await find_key(settings, 5)
        refund = Refund("0x" + "ab" * 32, time.time())
        async with open_journal_store(settings) as store:
            assert await record_refund(store, key, refund, redeem_cutoff=time.time() + 60)

        shown = list_payments(client, 5)[0]
        presented = pay(client, payment, FAILING_SERVICE, FAILING_QUERY)
        redeemed = redeem(client, transaction, 5)

    notes = [payment_note(presented), payment_note(redeemed), shown]
    assert (presented.status_code, redeemed.status_code) == (402, 404)
    assert [(note["state"], note["charged"], note["retry"]) for note in notes] == [
        ("settled", True, "new_payment")
    ] * 3
    assert (shown["next"], shown["refund"]["transaction"]) == ("none", refund.transaction)


@pytest.mark.extended
def test_test_money_is_not_redeemed_for_real_money(failures: ServiceFailures, tmp_path: Path) -> None:
    with serve_api(tmp_path) as served_api:
        payment, transaction = buy_undelivered(served_api.client, failures, 5)
    with serve_api(tmp_path, network="eip155:8453") as served_api:
        shown = list_payments(served_api.client, 5)[0]
        presented = pay(served_api.client, payment, FAILING_SERVICE, FAILING_QUERY)
        redeemed = redeem(served_api.client, transaction, 5)

    assert (presented.status_code, redeemed.status_code) == (402, 404)
    assert {note["retry"] for note in (payment_note(presented), payment_note(redeemed), shown)} == {
        "new_payment"
    }
    assert shown["next"] == "none"


@pytest.mark.extended
async def test_used_payment_of_wallet_that_is_not_sold_to_has_no_retry(
    failures: ServiceFailures, tmp_path: Path
) -> None:
    with serve_api(tmp_path) as served_api:
        payment, transaction = buy_undelivered(served_api.client, failures, 5)
    with serve_api(tmp_path, payers_denied=Buyer(5).address, redeem_hours=1e-9) as served_api:
        shown = list_payments(served_api.client, 5)[0]
        presented = pay(served_api.client, payment, FAILING_SERVICE, FAILING_QUERY)
        redeemed = redeem(served_api.client, transaction, 5)

    assert shown["next"] == "await_refund"
    assert (presented.status_code, redeemed.status_code) == (402, 404)
    assert {note["retry"] for note in (payment_note(presented), payment_note(redeemed), shown)} == {"none"}


def test_redeeming_repeats_stored_answer(served_api: ServedApi) -> None:
    bought, asked = buy(served_api.client, 0), served_api.facilitator.settle_calls

    response = redeem(served_api.client, read_transaction(bought), 0, QUESTION)

    assert (response.status_code, response.content) == (200, bought.content)
    assert response.headers["Idempotent-Replayed"] == "true"
    assert response.headers["PAYMENT-RESPONSE"] == bought.headers["PAYMENT-RESPONSE"]
    assert response.headers["Cache-Control"] == "no-store"
    assert served_api.facilitator.settle_calls == asked


@pytest.mark.parametrize("is_delivered", [True, False], ids=["stored", "owed"])
def test_answer_is_redeemed_after_sales_ended(
    tmp_path: Path, failures: ServiceFailures, *, is_delivered: bool
) -> None:
    with serve_api(tmp_path) as selling:
        if is_delivered:
            transaction, query = read_transaction(buy(selling.client, 0)), QUESTION
        else:
            (_, transaction), query = buy_undelivered(selling.client, failures, 0), FAILING_QUERY

    with serve_api(tmp_path, pay_to=None) as idle:
        response = redeem(idle.client, transaction, 0, query)

    assert response.status_code == 200, response.text
    assert read_transaction(response) == transaction
    assert idle.facilitator.settle_calls == 0


@pytest.mark.parametrize("body", [{"url": "https://example.com/"}, {}, {"url": 5}])
def test_another_request_redeems_nothing(client: httpx.Client, body: Any) -> None:
    response = redeem(client, read_transaction(buy(client, 0)), 0, body)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")


def test_another_wallet_redeems_nothing(client: httpx.Client) -> None:
    response = redeem(client, read_transaction(buy(client, 0)), 1, QUESTION)

    assert response.status_code == 404


def test_open_payment_is_not_redeemed(served_api: ServedApi) -> None:
    served_api.facilitator.next.append(served_api.facilitator.move_then_reply(reply_with(500, "")))
    payload = sign_payload(served_api.client, Buyer(6))
    pay(served_api.client, encode_header(payload))

    response = redeem(served_api.client, payload["payload"]["authorization"]["nonce"], 6, QUESTION)

    assert response.status_code == 404
    assert payment_note(response)["state"] == "in_flight"


@pytest.mark.extended
def test_limits_apply_as_to_unpaid_requests(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("limited")
    with serve_api(folder, free_per_minute=1, free_burst=3) as limited:
        get_signed(limited.client, "/payments", 0)

        statuses = [limited.client.get("/payments").status_code for _ in range(2)]

    assert statuses[-1] == 429


def test_extension_has_official_shape(client: httpx.Client) -> None:
    response = client.get("/payments")

    offer = PaymentRequired.model_validate_json(
        json.dumps(decode_header(response.headers["PAYMENT-REQUIRED"]))
    )
    extension = SIWxExtension.model_validate(fetch_challenge(client))
    assert offer.accepts == []
    assert extension.supported_chains[0].chain_id == "eip155:84532"
    assert extension.info.nonce


@pytest.mark.extended
@pytest.mark.parametrize(("network", "shown"), [(None, 1), ("eip155:84532", 1), ("eip155:1", 0)])
async def test_contract_sign_in_shows_payments_of_its_network_only(
    api: ApiFactory, settings: Settings, network: str | None, shown: int
) -> None:
    """The same address may belong to another owner on another network."""
    transaction = read_transaction(buy(api(settings), 0))
    wallet = SignedIn(Buyer().address.lower(), network)

    async with open_journal_store(settings) as store:
        listed = await store.read(partial(list_own_payments, wallet, limit=10))
        found = await store.read(partial(find_own_payments, wallet, transaction))

    assert (len(listed), len(found)) == (shown, shown)
