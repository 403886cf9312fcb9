"""Lost purchases: a buyer without its ledger finds its payments, reads their answers, redeems the rest."""

# eth-account is typed in parts
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from buyer import QUESTION, ApiFactory
from buyers_shell import Shell
from eth_account import Account
from eth_account.messages import encode_defunct
from failing_service import FAILING_QUERY, ServiceFailures, install_failing_service
from hostile import (
    PAYEE,
    SLUG,
    HostileApi,
    PlannedResponse,
    answer_body,
    build_payment,
    hostile_api,
    join_payments,
)
from shopping import AwaitableClient, OpenClient
from x402.extensions.sign_in_with_x import create_siwx_message, parse_siwx_header

from centgate.client.errors import Drift, InvalidInput, NotFound, NoWallet, ServiceFailed, Unresolved
from centgate.client.ledger import Ledger
from centgate.client.sign_in import answer_challenge
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.errors import ProviderError
from centgate.settings import Settings

API, PATH = "https://seller.example", "/payments"
INFO = {
    "domain": "seller.example",
    "uri": API + PATH,
    "version": "1",
    "statement": "Show my payments.",
    "nonce": "0123456789abcdef",
    "issuedAt": "2026-11-24T10:00:00Z",
    "expirationTime": "2026-11-24T10:05:00Z",
    "resources": [API + PATH],
}
TRANSACTION = "0x" + "bb" * 32
CHAINS = [{"chainId": "eip155:8453", "type": "eip191"}]
down = partial(ProviderError, "oracle", "the oracle is down")


@pytest.fixture
def failures() -> Generator[ServiceFailures]:
    """Scripted failures of a service."""
    with install_failing_service() as failures:
        yield failures


async def test_lost_purchase_is_found_and_read(api: ApiFactory, settings: Settings, shop: OpenClient) -> None:
    url = str(api(settings).base_url)
    bought = await shop(url).call("phishing-check", QUESTION)
    another = shop(url)

    page = await another.payments(limit=5)
    (payment,) = await another.payment(page.payments[0].transaction or "")

    assert [each.next for each in page.payments] == ["read_answer"]
    assert payment.answer
    assert payment.answer.body == bought.envelope
    assert (page.cursor, payment.service) == (None, "phishing-check")


async def test_owed_answer_is_redeemed_and_recorded(
    api: ApiFactory, settings: Settings, shop: OpenClient, failures: ServiceFailures
) -> None:
    url = str(api(settings).base_url)
    failures.raise_next(*[down] * 10)
    with pytest.raises(ServiceFailed):
        await shop(url).call("failing", FAILING_QUERY)
    failures.reset()
    ledger = Ledger()
    another = shop(url, ledger=ledger)
    (owed,) = (await another.payments()).payments

    answer = await another.redeem(owed.transaction or "", FAILING_QUERY)

    (record,) = ledger.records()
    assert (owed.next, answer.money, record.event) == ("redeem", "moved", "delivered")
    assert answer.receipt
    assert answer.receipt.transaction == owed.transaction == record.transaction
    assert record.payment.nonce == owed.nonce


async def test_another_request_redeems_nothing(api: ApiFactory, settings: Settings, shop: OpenClient) -> None:
    client = shop(str(api(settings).base_url))
    await client.call("phishing-check", QUESTION)
    (payment,) = (await client.payments()).payments

    with pytest.raises(InvalidInput, match="was made for this request"):
        await client.redeem(payment.transaction or "", {"url": "https://example.com"})


async def test_api_cannot_close_payment_to_another_api(shop: OpenClient, hostile: HostileApi) -> None:
    ledger = Ledger()
    with hostile_api() as honest:
        honest.paid = [PlannedResponse(fault="no_response", accepts_payment=True)] * 4
        with pytest.raises(Unresolved):
            await shop(honest.url, ledger=ledger).call(SLUG, {})
        (nonce,) = honest.accepted_nonces
        hostile.shown_payment = build_payment(nonce)
        hostile.unpaid = [PlannedResponse(200, answer_body())]

        with pytest.raises(Drift, match="made to"):
            await shop(hostile.url, ledger=ledger).redeem("0x" + "bb" * 32, {})
        await shop(honest.url, ledger=ledger).call(SLUG, {})

        assert honest.accepted_nonces == {nonce}


async def test_ledger_keeps_signed_payment(shop: OpenClient, hostile: HostileApi) -> None:
    ledger = Ledger()
    client = shop(hostile.url, ledger=ledger)
    await client.call(SLUG, {})
    hostile.shown_payment = build_payment(ledger.records()[0].payment.nonce, asset=PAYEE, amount="1")
    hostile.unpaid = [PlannedResponse(200, answer_body())]

    await client.redeem("0x" + "bb" * 32, {})

    signed, *_, redeemed = (each.payment.model_copy(update={"header": ""}) for each in ledger.records())
    assert redeemed == signed


async def sign_undelivered(
    client: AwaitableClient, hostile: HostileApi, *bodies: dict[str, Any]
) -> list[str]:
    """Pay for requests that get no answer; return the nonces, which one transaction contains."""
    for body in bodies:
        hostile.paid = [PlannedResponse(fault="no_response", accepts_payment=True)] * 4
        with pytest.raises(Unresolved):
            await client.call(SLUG, body)
    nonces = list(dict.fromkeys(each.nonce for each in hostile.requests if each.payment))
    hostile.shown_payment = join_payments(*(build_payment(nonce) for nonce in nonces))
    return nonces


async def test_payment_for_body_is_redeemed(shop: OpenClient, hostile: HostileApi) -> None:
    ledger = Ledger()
    client = shop(hostile.url, ledger=ledger)
    _, second = await sign_undelivered(client, hostile, {"n": 1}, {"n": 2})
    hostile.unpaid = [PlannedResponse(200, answer_body())]

    await client.redeem(TRANSACTION, {"n": 2})

    delivered = [each.payment.nonce for each in ledger.records() if each.event == "delivered"]
    assert delivered == [second]
    assert hostile.requests[-1].path == f"/payments/{second}"


@pytest.mark.parametrize("amount", ["abc", "1.5", "-1", "", "9" * 79])
async def test_invalid_amount_is_clients_error(shop: OpenClient, hostile: HostileApi, amount: str) -> None:
    hostile.shown_payment = build_payment("0x" + "12" * 32, amount=amount)

    with pytest.raises(Drift, match="payments in an unknown format"):
        await shop(hostile.url, ledger=Ledger()).redeem(TRANSACTION, {"n": 1})


async def test_none_of_unknown_payments_is_redeemed(shop: OpenClient, hostile: HostileApi) -> None:
    await sign_undelivered(shop(hostile.url), hostile, {"n": 1}, {"n": 2})

    with pytest.raises(InvalidInput, match=r"2 payments can be redeemed there.*by its nonce"):
        await shop(hostile.url, ledger=Ledger()).redeem(TRANSACTION, {"n": 2})


@pytest.mark.parametrize("reference", ["0xzz", "0x12", "0x" + "12" * 33, "0x" + "1g" * 32, "a/b"])
async def test_what_is_no_transaction_is_said_without_request(
    shop: OpenClient, hostile: HostileApi, reference: str
) -> None:
    with pytest.raises(
        NotFound, match="is neither a transaction nor a nonce, which are 0x and 64 hex digits"
    ):
        await shop(hostile.url).payment(reference)

    assert hostile.requests == []


@pytest.mark.parametrize("reference", ["0x" + "12" * 32, "", "../services", "a b"])
async def test_unknown_transaction_is_not_found(
    api: ApiFactory, settings: Settings, shop: OpenClient, reference: str
) -> None:
    client = shop(str(api(settings).base_url))

    with pytest.raises(NotFound):
        await client.payment(reference)


async def test_nothing_is_signed_without_wallet(
    api: ApiFactory, settings: Settings, shop: OpenClient
) -> None:
    with pytest.raises(NoWallet):
        await shop(str(api(settings).base_url), wallet=None).payments()


async def test_api_at_another_url_gets_no_signature(
    api: ApiFactory, settings: Settings, shop: OpenClient
) -> None:
    client = api(settings.model_copy(update={"public_url": "https://another.example"}))

    with pytest.raises(Drift, match=r"at another\.example for https://another\.example/payments"):
        await shop(str(client.base_url)).payments()


def challenge(**changes: Any) -> str:
    extension = {"info": {**INFO, **changes}, "supportedChains": CHAINS, "schema": {}}
    return b64encode(json.dumps({"extensions": {"sign-in-with-x": extension}}).encode()).decode()


@pytest.mark.extended
def test_client_signs_what_it_sends() -> None:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)

    header = answer_challenge(challenge(), wallet, api=API, path=PATH)

    payload = parse_siwx_header(header)
    text = create_siwx_message(payload, payload.address)
    signer = Account.recover_message(encode_defunct(text=text), signature=payload.signature)
    assert (signer, payload.domain, payload.uri) == (wallet.address, "seller.example", API + PATH)


HOSTILE = {
    "another domain": {"domain": "bank.example"},
    "another address": {"uri": "https://bank.example/payments"},
    "another path": {"uri": API + "/payments/0x12"},
    "another resource": {"resources": ["https://bank.example/"]},
    "more resources": {"resources": [API + PATH, API + PATH]},
    "a line break in the statement": {"statement": "a\n\nURI: https://bank.example/"},
    "a line break in a time": {"issuedAt": "2026-11-24T10:00:00Z\nResources:"},
    "a line break in the nonce": {"nonce": "0123456789\nabcdef"},
    "a text that reads backwards": {"statement": "\u202eabc"},
    "another version": {"version": "2"},
    "no statement": {"statement": None},
    "a long statement": {"statement": "a" * 10_000},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE.keys())
def test_other_challenge_is_not_signed(changes: dict[str, Any]) -> None:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)

    with pytest.raises(Drift, match="Nothing was signed"):
        answer_challenge(challenge(**changes), wallet, api=API, path=PATH)


@pytest.mark.parametrize("header", [None, "", "%", "e30=", b64encode(b"[]").decode()])
def test_402_without_challenge_is_not_signed(header: str | None) -> None:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)

    with pytest.raises(Drift, match="Nothing was signed"):
        answer_challenge(header, wallet, api=API, path=PATH)


@pytest.mark.extended
def test_command_lists_shows_and_redeems(api: ApiFactory, settings: Settings, tmp_path: Path) -> None:
    url = str(api(settings).base_url)
    shell = Shell(
        tmp_path,
        {"CENTGATE_API_URL": url, "CENTGATE_WALLET_KEY": BUYER_ACCOUNTS[0].private_key},
    )
    shell("call", "phishing-check", f"url={QUESTION['url']}")

    listed = json.loads(shell("wallet", "payments", "--json").stdout)
    (payment,) = listed["payments"]
    result = shell("wallet", "payments", payment["transaction"])
    redeemed = shell("wallet", "payments", payment["transaction"], "--body", json.dumps(QUESTION), "--json")
    text = shell("wallet", "payments").stdout

    assert payment["next"] == "read_answer"
    assert '"wallet-ethereum.net"' in result.stdout, result.stderr
    assert json.loads(redeemed.stdout)["receipt"]["transaction"] == payment["transaction"]
    assert f"  in {payment['transaction']} on {payment['network']}\n" in text
    assert "the answer is stored until" in text
    assert "phishing-check" in text
    assert shell("wallet", "payments", "0x" + "12" * 32).returncode == 2
