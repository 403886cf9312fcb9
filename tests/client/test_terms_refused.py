"""Terms that a buyer does not sign: each check alone, and its message."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
from buyer import decode_header, encode_header
from hostile import (
    NETWORK,
    PATH,
    PAYEE,
    SLUG,
    HostileApi,
    PlannedResponse,
    build_offer,
    error_response,
    payment_required,
    service_entry,
)
from shopping import OpenClient

from centgate.client.caps import Caps
from centgate.client.errors import CapExceeded, Drift, NoWallet, TermsRefused, Unavailable
from centgate.client.ledger import Ledger
from centgate.client.policy import Allowed
from centgate.signing.assets import USDC, Asset

OTHER = "0x2222222222222222222222222222222222222222"
TOKEN = "0x3333333333333333333333333333333333333333"

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "another version": ({"x402Version": 1}, "version 1"),
    "another scheme": ({"scheme": "upto"}, "scheme 'upto'"),
    "another network": ({"network": "eip155:999"}, "'eip155:999', a network this client does not support"),
    "no evm": ({"network": "solana:mainnet"}, "a network this client does not support"),
    "another token": ({"asset": TOKEN}, "not the dollar token"),
    "the token of another network": ({"asset": USDC["eip155:8453"].address}, "not the dollar token"),
    "another name": ({"extra": {"name": "USD Coin"}}, "call the token 'USD Coin'"),
    "another token version": ({"extra": {"version": "1"}}, "version '1'"),
    "no name": ({"extra": {"name": None}}, "call the token 'None'"),
    "not an amount": ({"amount": "0"}, "not an amount"),
    "a negative amount": ({"amount": "-10000"}, "not an amount"),
    "an amount in dollars": ({"amount": "0.01"}, "not an amount"),
    "an amount in hex": ({"amount": "0x10"}, "not an amount"),
    "an amount in other digits": ({"amount": "\uff11\uff10\uff10\uff10\uff10"}, "not an amount"),
    "an amount beyond all bounds": ({"amount": "9" * 90}, "not an amount"),
    "zero payee": ({"payTo": "0x" + "0" * 40}, "an invalid payee"),
    "no address to pay": ({"payTo": "vitalik.eth"}, "an invalid payee"),
    "a mistyped payee": ({"payTo": "0xCE47ca7E00000000000000000000000000000402"}, "checksum"),
    "an unknown flow": ({"extra": {"paymentFlow": "escrow"}}, "payment flow 'escrow'"),
    "a flow that is no word": ({"extra": {"paymentFlow": [1]}}, "payment flow"),
    "another transfer": ({"extra": {"assetTransferMethod": "permit2"}}, "only EIP-3009"),
    "too short a window": ({"maxTimeoutSeconds": 1}, "valid for 1 seconds"),
    "too long a window": ({"maxTimeoutSeconds": 10**9}, "valid for 1000000000 seconds"),
    "a window of the past": ({"maxTimeoutSeconds": -60}, "valid for -60 seconds"),
    "another host": ({"resource": {"url": "https://other.example" + PATH}}, "for the host other.example"),
    "a lookalike host": ({"resource": {"url": "http://127.0.0.1.evil.example/"}}, "127.0.0.1.evil.example"),
    "no host": ({"resource": {"url": "/services"}}, "not a URL"),
    "a broken address": ({"resource": {"url": "http://[::1"}}, "not a URL"),
    "no address of what is sold": ({"resource": {}}, "do not name the paid resource"),
}


@pytest.mark.extended
@pytest.mark.parametrize(("changes", "says"), BAD.values(), ids=BAD)
async def test_invalid_terms_are_refused_unsigned(
    shop: OpenClient, hostile: HostileApi, changes: dict[str, Any], says: str
) -> None:
    hostile.unpaid = [payment_required(build_offer(hostile.url, **changes))]
    ledger = Ledger()

    with pytest.raises(TermsRefused, match=r".") as refused:
        await shop(hostile.url, ledger=ledger).call(SLUG, {})

    assert says in str(refused.value)
    assert refused.value.money == "not_moved"
    assert (hostile.payments, ledger.records()) == ([], [])


ILL = {
    "no header": PlannedResponse(402, {"error": {"code": "payment_required", "message": "pay"}}),
    "no base64": payment_required("§$%"),
    "no json": payment_required(b64encode(b"{").decode()),
    "a list": payment_required(b64encode(b"[]").decode()),
    "null": payment_required(b64encode(b"null").decode()),
    "nothing accepted": payment_required({**build_offer("http://127.0.0.1"), "accepts": []}),
    "accepts of words": payment_required({**build_offer("http://127.0.0.1"), "accepts": ["exact"]}),
    "version as a word": payment_required({**build_offer("http://127.0.0.1"), "x402Version": "2"}),
    "extensions of words": payment_required({**build_offer("http://127.0.0.1"), "extensions": ["bazaar"]}),
    "more levels than can be written": payment_required(
        b64encode(
            json.dumps(build_offer("http://127.0.0.1", extensions={"a": "deep"}))
            .replace('"deep"', "[" * 1000 + "]" * 1000)
            .encode()
        ).decode()
    ),
}


@pytest.mark.parametrize("response", ILL.values(), ids=ILL)
async def test_unreadable_terms_are_protocol_error(
    shop: OpenClient, hostile: HostileApi, response: PlannedResponse
) -> None:
    hostile.unpaid = [response]

    with pytest.raises(Drift) as drift:
        await shop(hostile.url).call(SLUG, {})

    assert drift.value.money == "not_moved"
    assert hostile.payments == []


async def test_terms_too_long_to_echo_are_refused(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [payment_required(build_offer(hostile.url, extensions={"long": "x" * 20_000}))]

    with pytest.raises(TermsRefused, match="no payment can echo them"):
        await shop(hostile.url).call(SLUG, {})


@pytest.mark.parametrize("missing", ["scheme", "network", "asset", "amount", "payTo", "maxTimeoutSeconds"])
async def test_entry_without_field_is_refused_by_its_name(
    shop: OpenClient, hostile: HostileApi, missing: str
) -> None:
    terms = build_offer(hostile.url)
    del terms["accepts"][0][missing]
    hostile.unpaid = [payment_required(terms)]

    with pytest.raises(TermsRefused, match=missing):
        await shop(hostile.url).call(SLUG, {})


async def test_signable_entry_is_chosen(shop: OpenClient, hostile: HostileApi) -> None:
    terms = build_offer(hostile.url)
    terms["accepts"] = [{**terms["accepts"][0], "network": "eip155:999"}, *terms["accepts"]]
    hostile.unpaid = [payment_required(terms)]

    answer = await shop(hostile.url).call(SLUG, {})

    assert answer.receipt
    assert answer.receipt.network == NETWORK


async def test_work_before_money_is_preferred(shop: OpenClient, hostile: HostileApi) -> None:
    terms = build_offer(hostile.url)
    after = build_offer(hostile.url, extra={"paymentFlow": "authorization"})["accepts"][0]
    terms["accepts"] = [*terms["accepts"], after]
    hostile.unpaid = [payment_required(terms)]

    await shop(hostile.url).call(SLUG, {})

    assert decode_header(hostile.payments[0])["accepted"] == after


async def test_cheapest_entry_is_chosen(shop: OpenClient, hostile: HostileApi) -> None:
    terms = build_offer(hostile.url)
    dearer = build_offer(hostile.url, amount="20000")["accepts"][0]
    hostile.unpaid = [payment_required({**terms, "accepts": [dearer, *terms["accepts"]]})]

    answer = await shop(hostile.url).call(SLUG, {})

    assert answer.receipt
    assert answer.receipt.amount == Decimal("0.01")


async def test_allowed_token_is_paid(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [
        payment_required(build_offer(hostile.url, asset=TOKEN, extra={"name": "Other", "version": "7"}))
    ]
    allowed = Allowed(assets={NETWORK: Asset(TOKEN, "Other", "7")})

    answer = await shop(hostile.url, allowed=allowed).call(SLUG, {})

    assert answer.money == "moved"


async def test_price_uses_decimals_of_token(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [
        payment_required(build_offer(hostile.url, asset=TOKEN, extra={"name": "Other", "version": "7"}))
    ]
    allowed = Allowed(assets={NETWORK: Asset(TOKEN, "Other", "7", decimals=2)})

    quote = await shop(hostile.url, allowed=allowed).terms(SLUG, {})

    assert quote.usd == 100


async def test_excluded_network_is_not_paid(shop: OpenClient, hostile: HostileApi) -> None:
    allowed = Allowed(networks=frozenset({"eip155:8453"}))

    with pytest.raises(TermsRefused, match="which is not enabled"):
        await shop(hostile.url, allowed=allowed).call(SLUG, {})


async def test_objections_to_several_networks_are_one_sentence(shop: OpenClient, hostile: HostileApi) -> None:
    offer = build_offer(hostile.url)
    networks = ("eip155:8453", "eip155:31337", "eip155:8453")
    offer["accepts"] = [{**offer["accepts"][0], "network": each} for each in networks]
    hostile.unpaid = [payment_required(offer)]

    with pytest.raises(TermsRefused) as refused:
        await shop(hostile.url).call(SLUG, {})

    assert str(refused.value) == (
        "none of the 3 offers can be paid: eip155:8453 is not enabled (CENTGATE_NETWORKS); "
        "no token is allowed on 'eip155:31337' "
        "(CENTGATE_ALLOWED_ASSETS, and CENTGATE_NETWORKS if that is set). Nothing was signed"
    )
    assert len(refused.value.objections) == 3


async def test_terms_for_another_host_can_be_allowed(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [
        payment_required(build_offer(hostile.url, resource={"url": "https://api.example" + PATH}))
    ]

    answer = await shop(hostile.url, allowed=Allowed(hosts=frozenset({"api.example"}))).call(SLUG, {})

    assert answer.money == "moved"


@pytest.mark.parametrize(
    ("caps", "says"),
    [
        (Caps(per_call=Decimal("0.0099")), "CENTGATE_CAP_PER_CALL"),
        (Caps(total=Decimal("0.0099")), r"`Caps\.total`, CENTGATE_CAP_TOTAL"),
        (Caps(per_day=Decimal("0.0099")), r"`Caps\.per_day`, CENTGATE_CAP_PER_DAY"),
    ],
    ids=["per call", "total", "per day"],
)
async def test_price_above_cap_is_not_signed(
    shop: OpenClient, hostile: HostileApi, caps: Caps, says: str
) -> None:
    with pytest.raises(CapExceeded, match=says) as error:
        await shop(hostile.url, caps=caps).call(SLUG, {})

    assert error.value.money == "not_moved"
    assert hostile.payments == []


async def test_only_pinned_payee_is_paid(shop: OpenClient, hostile: HostileApi) -> None:
    with pytest.raises(TermsRefused, match="pinned to"):
        await shop(hostile.url, payee=OTHER).call(SLUG, {})

    assert hostile.payments == []
    assert (await shop(hostile.url, payee=PAYEE).call(SLUG, {})).money == "moved"


async def test_changed_payee_is_refused_until_accepted(shop: OpenClient, hostile: HostileApi) -> None:
    ledger = Ledger()
    await shop(hostile.url, ledger=ledger).call(SLUG, {"first": 1})
    hostile.unpaid = [payment_required(build_offer(hostile.url, payTo=OTHER)) for _ in range(3)]

    with pytest.raises(TermsRefused, match=f"CENTGATE_PAYEE={OTHER}"):
        await shop(hostile.url, ledger=ledger).call(SLUG, {"second": 2})
    await shop(hostile.url, ledger=ledger, payee=OTHER).call(SLUG, {"second": 2})
    await shop(hostile.url, ledger=ledger).call(SLUG, {"third": 3})

    assert len(hostile.accepted_nonces) == 3


async def test_nothing_is_signed_without_wallet(shop: OpenClient, hostile: HostileApi) -> None:
    with pytest.raises(NoWallet, match="centgate wallet new"):
        await shop(hostile.url, wallet=None).call(SLUG, {})

    assert hostile.payments == []


async def test_api_without_payments_is_unavailable(shop: OpenClient, hostile: HostileApi) -> None:
    hostile.unpaid = [error_response(402, "payment_not_configured")]

    with pytest.raises(Unavailable, match="does not sell it"):
        await shop(hostile.url).call(SLUG, {})


async def test_terms_are_readable_without_signing(shop: OpenClient, hostile: HostileApi) -> None:
    quote = await shop(hostile.url, wallet=None, payee=OTHER, caps=Caps(total=Decimal(0))).terms(SLUG, {})

    assert (quote.usd, quote.network, quote.payee, quote.seconds) == (Decimal("0.01"), NETWORK, PAYEE, 60)
    assert ["pinned" in quote.objections[0], "CENTGATE_CAP_TOTAL" in quote.objections[1]] == [True, True]
    assert hostile.payments == []


async def test_extensions_are_echoed_with_idempotency_key(shop: OpenClient, hostile: HostileApi) -> None:
    bazaar = {"info": {"input": {"type": "http", "body": {"ü": [1, None]}}}, "schema": {"type": "object"}}
    identifier = {"info": {"required": False}, "schema": {}}
    extensions = {"bazaar": bazaar, "payment-identifier": identifier}
    hostile.unpaid = [payment_required(build_offer(hostile.url, extensions=extensions))]

    await shop(hostile.url).call(SLUG, {})

    echoed = decode_header(hostile.payments[0])["extensions"]
    key = echoed["payment-identifier"]["info"].pop("id")
    assert 16 <= len(key) <= 128
    assert echoed == extensions


@pytest.mark.parametrize("path", ["//evil.example/x", "http://evil.example/", "/a?b=c", "/a b", "/a\n", ""])
async def test_service_on_another_host_is_not_called(
    shop: OpenClient, hostile: HostileApi, path: str
) -> None:
    hostile.service_response = PlannedResponse(200, service_entry(path=path))

    with pytest.raises(Drift, match="is not a path"):
        await shop(hostile.url).call(SLUG, {})

    assert [asked.method for asked in hostile.requests] == ["GET"]


async def test_terms_without_extensions_or_padding_are_signed(shop: OpenClient, hostile: HostileApi) -> None:
    for blanks in range(3):
        terms = encode_header(build_offer(hostile.url, extensions=None, error="pay" + " " * blanks)).rstrip(
            "="
        )
        hostile.unpaid = [payment_required(terms)]

        await shop(hostile.url).call(SLUG, {})

    assert len(hostile.accepted_nonces) == 3


@pytest.mark.extended
@pytest.mark.parametrize("other", [5, None, {}, {"scheme": 1}], ids=repr)
async def test_invalid_entry_beside_valid_one_is_skipped(
    shop: OpenClient, hostile: HostileApi, other: object
) -> None:
    terms = build_offer(hostile.url)
    terms["accepts"] = [other, *terms["accepts"]]
    hostile.unpaid = [payment_required(terms)] * 2

    quote = await shop(hostile.url).terms(SLUG, {})
    answer = await shop(hostile.url).call(SLUG, {})

    assert (quote.token, answer.money) == ("USDC", "moved")
