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

from centgate.payments import queries
from centgate.payments.authorization import PaymentKey
from centgate.payments.refunds import Refund, record_refund
from centgate.settings import Settings

HASH, REFUND = "0x" + "ab" * 32, "0x" + "f0" * 32
DAY = 86_400


@pytest.fixture
def patient(tmp_path: Path, facilitator: StubFacilitator, database_url: str) -> Settings:
    """A deployment that redeems what was paid long ago, with a journal on each kind of database."""
    return build_settings(tmp_path, facilitator.url, database_url=database_url, redeem_hours=1000)


async def settled_long_ago(settings: Settings, buyer: Buyer, terms: str) -> dict[str, Any]:
    """A payment that was settled two days ago and bought nothing."""
    then = int(time.time()) - 2 * DAY
    payload = buyer.payload(terms, now=then)
    await record_payment(settings, encode_header(payload), then, transaction=HASH)
    return payload


def key_of(row: dict[str, Any]) -> PaymentKey:
    return PaymentKey(row["network"], row["asset"], row["payer"], row["nonce"])


async def entered(settings: Settings, key: PaymentKey) -> bool:
    """Enter that it was paid back, when payments were good for a day; whether that was entered."""
    now = time.time()
    async with open_journal_store(settings) as store:
        return await record_refund(store, key, Refund(REFUND, now), redeem_cutoff=now - DAY)


@pytest.mark.extended
async def test_it_buys_nothing_when_payments_are_good_for_longer_again(
    api: ApiFactory, patient: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(patient)
    payload = await settled_long_ago(patient, buyer, fetch_terms(client))
    assert await entered(patient, key_of(await read_row(patient, payload)))

    response = pay(client, encode_header(payload))

    assert (response.status_code, payment_note(response)["state"]) == (402, "settled")
    assert "refunded" in response.json()["error"]["message"]
    assert decode_header(response.headers["PAYMENT-REQUIRED"])["error"] == "payment_already_used"
    assert facilitator.asked == 0


async def test_a_refusal_that_moved_money_and_was_refunded_buys_nothing(
    api: ApiFactory, patient: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(patient)
    payload = sign_payload(client, buyer)
    facilitator.next.append(facilitator.move_then_reply(refuse_with("insufficient_funds")))
    assert pay(client, encode_header(payload)).status_code == 402
    key, now = key_of(await read_row(patient, payload)), time.time()
    async with open_journal_store(patient) as store:
        refund = Refund(REFUND, now)
        assert await record_refund(store, key, refund, redeem_cutoff=now - DAY, was_received=True)

    response = pay(client, encode_header(payload))

    assert response.status_code == 402
    assert "refunded" in response.json()["error"]["message"]
    assert facilitator.asked == 1


@pytest.mark.extended
async def test_who_has_seen_it_before_cannot_take_it_after(
    api: ApiFactory, patient: Settings, buyer: Buyer
) -> None:
    payload = await settled_long_ago(patient, buyer, fetch_terms(api(patient)))
    key = key_of(await read_row(patient, payload))
    async with open_journal_store(patient) as store:
        seen = await store.run(partial(queries.find_payment, key))
        assert seen is not None
        assert await entered(patient, key)

        assert not await store.run(partial(queries.update_if_unchanged, seen, {"owner": "a server"}))


@pytest.mark.extended
async def test_what_a_server_works_on_is_not_entered(
    api: ApiFactory, patient: Settings, buyer: Buyer
) -> None:
    payload = await settled_long_ago(patient, buyer, fetch_terms(api(patient)))
    key = key_of(await read_row(patient, payload))
    async with open_journal_store(patient) as store:
        seen = await store.run(partial(queries.find_payment, key))
        assert seen is not None
        await store.run(partial(queries.record_heartbeat, "elsewhere:1/2/3"))
        await store.run(partial(queries.update_if_unchanged, seen, {"owner": "elsewhere:1/2/3/7"}))

        assert not await entered(patient, key)
        row = await store.run(partial(queries.find_payment, key))

    assert row is not None
    assert not row["refunded"]


@pytest.mark.extended
async def test_it_is_entered_once(api: ApiFactory, patient: Settings, buyer: Buyer) -> None:
    payload = await settled_long_ago(patient, buyer, fetch_terms(api(patient)))
    key = key_of(await read_row(patient, payload))

    assert [await entered(patient, key), await entered(patient, key)] == [True, False]
