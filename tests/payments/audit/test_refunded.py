"""Refunded payments cannot be used, however long payments remain valid."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from buyer import (
    ApiFactory,
    Buyer,
    decode_header,
    encode_header,
    fetch_terms,
    pay,
    payment_note,
    sign_payload,
)
from facilitators import StubFacilitator, build_settings, refuse_with
from seeded_journals import open_journal_store, read_row, record_payment

from centgate.payments.audit.refunds import Refund, record_refund
from centgate.payments.journal import process_queries, queries
from centgate.payments.payment_key import PaymentKey
from centgate.settings import Settings

HASH, REFUND = "0x" + "ab" * 32, "0x" + "f0" * 32
DAY = 86_400


@pytest.fixture
def long_redeem_settings(tmp_path: Path, facilitator: StubFacilitator, database_url: str) -> Settings:
    """A deployment with a long redeem period, with a journal on each kind of database."""
    return build_settings(tmp_path, facilitator.url, database_url=database_url, redeem_hours=1000)


async def record_old_settlement(settings: Settings, buyer: Buyer, terms: str) -> dict[str, Any]:
    """Record a payment that was settled two days ago and bought nothing."""
    then = int(time.time()) - 2 * DAY
    payload = buyer.payload(terms, now=then)
    await record_payment(settings, encode_header(payload), then, transaction=HASH)
    return payload


def build_key(row: dict[str, Any]) -> PaymentKey:
    return PaymentKey(row["network"], row["asset"], row["payer"], row["nonce"])


async def enter_refund(settings: Settings, key: PaymentKey) -> bool:
    """Enter a refund under a redeem period of one day; return True if it was entered."""
    now = time.time()
    async with open_journal_store(settings) as store:
        return await record_refund(store, key, Refund(REFUND, now), redeem_cutoff=now - DAY)


async def test_payment_that_can_still_be_redeemed_is_not_refunded(
    api: ApiFactory, long_redeem_settings: Settings, buyer: Buyer
) -> None:
    """It may have become redeemable after the operator's command read it."""
    payload = await record_old_settlement(long_redeem_settings, buyer, fetch_terms(api(long_redeem_settings)))
    key, now = build_key(await read_row(long_redeem_settings, payload)), time.time()
    async with open_journal_store(long_redeem_settings) as store:
        refund = Refund(REFUND, now)
        assert not await record_refund(store, key, refund, redeem_cutoff=now - 3 * DAY)
        assert await record_refund(store, key, refund, redeem_cutoff=now - DAY)


@pytest.mark.extended
async def test_refunded_payment_buys_nothing_in_longer_period(
    api: ApiFactory, long_redeem_settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(long_redeem_settings)
    payload = await record_old_settlement(long_redeem_settings, buyer, fetch_terms(client))
    assert await enter_refund(long_redeem_settings, build_key(await read_row(long_redeem_settings, payload)))

    response = pay(client, encode_header(payload))

    assert (response.status_code, payment_note(response)["state"]) == (402, "settled")
    assert "refunded" in response.json()["error"]["message"]
    assert decode_header(response.headers["PAYMENT-REQUIRED"])["error"] == "payment_already_used"
    assert facilitator.settle_calls == 0


async def test_refunded_refusal_buys_nothing(
    api: ApiFactory, long_redeem_settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(long_redeem_settings)
    payload = sign_payload(client, buyer)
    facilitator.next.append(facilitator.move_then_reply(refuse_with("insufficient_funds")))
    assert pay(client, encode_header(payload)).status_code == 402
    key, now = build_key(await read_row(long_redeem_settings, payload)), time.time()
    async with open_journal_store(long_redeem_settings) as store:
        refund = Refund(REFUND, now)
        assert await record_refund(store, key, refund, redeem_cutoff=now - DAY, was_received=True)

    response = pay(client, encode_header(payload))

    assert response.status_code == 402
    assert "refunded" in response.json()["error"]["message"]
    assert facilitator.settle_calls == 1


@pytest.mark.extended
async def test_refund_voids_earlier_read_row(
    api: ApiFactory, long_redeem_settings: Settings, buyer: Buyer
) -> None:
    payload = await record_old_settlement(long_redeem_settings, buyer, fetch_terms(api(long_redeem_settings)))
    key = build_key(await read_row(long_redeem_settings, payload))
    async with open_journal_store(long_redeem_settings) as store:
        payment = await store.run(partial(queries.find_payment, key))
        assert payment is not None
        assert await enter_refund(long_redeem_settings, key)

        assert not await store.run(partial(queries.update_if_unchanged, payment, {"owner": "a server"}))


@pytest.mark.extended
async def test_claimed_payment_is_not_refunded(
    api: ApiFactory, long_redeem_settings: Settings, buyer: Buyer
) -> None:
    payload = await record_old_settlement(long_redeem_settings, buyer, fetch_terms(api(long_redeem_settings)))
    key = build_key(await read_row(long_redeem_settings, payload))
    async with open_journal_store(long_redeem_settings) as store:
        payment = await store.run(partial(queries.find_payment, key))
        assert payment is not None
        await store.run(partial(process_queries.record_heartbeat, "elsewhere:1/2/3"))
        await store.run(partial(queries.update_if_unchanged, payment, {"owner": "elsewhere:1/2/3/7"}))

        assert not await enter_refund(long_redeem_settings, key)
        row = await store.run(partial(queries.find_payment, key))

    assert row is not None
    assert not row["refunded"]


@pytest.mark.extended
async def test_refund_is_entered_once(api: ApiFactory, long_redeem_settings: Settings, buyer: Buyer) -> None:
    payload = await record_old_settlement(long_redeem_settings, buyer, fetch_terms(api(long_redeem_settings)))
    key = build_key(await read_row(long_redeem_settings, payload))

    assert [await enter_refund(long_redeem_settings, key), await enter_refund(long_redeem_settings, key)] == [
        True,
        False,
    ]
