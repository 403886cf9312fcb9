"""Redeem period: how long a payment can fetch its answer, and the error after that."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest
from buyer import Api, Buyer, decoded, encoded, identified, note, pay, payload_for, payment_for, terms_of
from facilitators import StubFacilitator, settings_in
from moods import MOODY, WHY, Moods, moody_on_the_shelf
from pasts import presented, pruned

from centgate.errors import ProviderError
from centgate.settings import ProviderSettings, Settings

down = partial(ProviderError, "oracle", "the oracle is down")


@pytest.fixture
def moods() -> Generator[Moods]:
    """A service that fails as a test says."""
    with moody_on_the_shelf() as moods:
        yield moods


def test_it_is_redeemed_by_a_server_started_later(
    moods: Moods, api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    first, second = api(settings), api(settings)
    payment = payment_for(first, buyer, MOODY, WHY)
    moods.then(down)
    pay(first, payment, MOODY, WHY)

    response = pay(second, payment, MOODY, WHY)

    assert response.status_code == 200
    assert facilitator.asked == 1


def test_after_the_redeem_period_a_payment_is_used(
    moods: Moods, api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    brief = api(settings.model_copy(update={"redeem_hours": 1e-9}))
    payment = payment_for(brief, buyer, MOODY, WHY)
    moods.then(down)
    pay(brief, payment, MOODY, WHY)

    response = pay(brief, payment, MOODY, WHY)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (
        402,
        "payment_already_used",
    )
    assert note(response) | {"transaction": ""} == {
        "state": "settled",
        "charged": True,
        "retry": "new_payment",
        "transaction": "",
    }
    assert (moods.asked, facilitator.asked) == (["why"], 1)


async def test_an_answer_that_is_no_longer_kept_is_not_worked_out_again(
    moods: Moods, api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    brief = api(settings.model_copy(update={"redeem_hours": 1e-9}))
    payment = payment_for(brief, buyer, MOODY, WHY)
    pay(brief, payment, MOODY, WHY)
    await pruned(settings)

    response = pay(brief, payment, MOODY, WHY)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (
        402,
        "payment_already_used",
    )
    assert note(response)["state"] == "delivered"
    assert (moods.asked, facilitator.asked) == (["why"], 1)


async def test_a_key_whose_answer_is_no_longer_kept_leaves_a_new_payment_untouched(
    api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    pay(client, identified(payload_for(client, buyer), "one-key-of-a-buyer"))
    await pruned(settings)

    response = pay(client, identified(payload_for(client, buyer), "one-key-of-a-buyer"))

    assert (response.status_code, note(response)["state"]) == (409, "unused")
    assert facilitator.asked == 1


async def test_a_settled_payment_is_good_after_its_own_window(
    api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    an_hour_ago = int(time.time()) - 3600
    payment = encoded(buyer.payload(terms_of(client), now=an_hour_ago))
    await presented(settings, payment, an_hour_ago, transaction="0x" + "ab" * 32)

    response = pay(client, payment)

    assert response.status_code == 200
    assert decoded(response.headers["PAYMENT-RESPONSE"])["transaction"] == "0x" + "ab" * 32
    assert facilitator.asked == 0


async def test_a_settled_payment_is_not_good_for_ever(
    api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    two_days_ago = int(time.time()) - 48 * 3600
    payment = encoded(buyer.payload(terms_of(client), now=two_days_ago))
    await presented(settings, payment, two_days_ago, transaction="0x" + "ab" * 32)

    response = pay(client, payment)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (
        402,
        "payment_already_used",
    )


def test_what_was_delivered_is_still_given_when_its_source_is_switched_off(
    api: Api, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with_list = api(settings_in(tmp_path, facilitator.url))
    off = {"phishinglist": ProviderSettings(enabled=False)}
    without = api(settings_in(tmp_path, facilitator.url, providers=off))
    payment = payment_for(with_list, buyer)
    first = pay(with_list, payment)

    again = pay(without, payment)

    assert (again.status_code, again.content) == (200, first.content)


def test_what_was_settled_is_still_owed_when_its_source_is_switched_off(
    moods: Moods, api: Api, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with_list = api(settings_in(tmp_path, facilitator.url))
    off = {"phishinglist": ProviderSettings(enabled=False)}
    without = api(settings_in(tmp_path, facilitator.url, providers=off))
    payment = payment_for(with_list, buyer, MOODY, WHY)
    moods.then(down)
    pay(with_list, payment, MOODY, WHY)

    response = pay(without, payment, MOODY, WHY)

    assert response.status_code == 503
    assert note(response)["state"] == "settled"
    assert pay(with_list, payment, MOODY, WHY).status_code == 200
