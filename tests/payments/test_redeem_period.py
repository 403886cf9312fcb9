"""Redeem period: how long a payment can fetch its answer, and the error after that."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import partial
from pathlib import Path

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
    sign_payment,
    with_identifier,
)
from facilitators import StubFacilitator, build_settings
from failing_service import FAILING_QUERY, FAILING_SERVICE, ServiceFailures, install_failing_service
from seeded_journals import prune_answers, record_payment

from centgate.errors import ProviderError
from centgate.settings import ProviderSettings, Settings

down = partial(ProviderError, "oracle", "the oracle is down")


@pytest.fixture
def moods() -> Generator[ServiceFailures]:
    """A service that fails as a test says."""
    with install_failing_service() as moods:
        yield moods


def test_it_is_redeemed_by_a_server_started_later(
    moods: ServiceFailures, api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    first, second = api(settings), api(settings)
    payment = sign_payment(first, buyer, FAILING_SERVICE, FAILING_QUERY)
    moods.raise_next(down)
    pay(first, payment, FAILING_SERVICE, FAILING_QUERY)

    response = pay(second, payment, FAILING_SERVICE, FAILING_QUERY)

    assert response.status_code == 200
    assert facilitator.asked == 1


def test_after_the_redeem_period_a_payment_is_used(
    moods: ServiceFailures, api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    brief = api(settings.model_copy(update={"redeem_hours": 1e-9}))
    payment = sign_payment(brief, buyer, FAILING_SERVICE, FAILING_QUERY)
    moods.raise_next(down)
    pay(brief, payment, FAILING_SERVICE, FAILING_QUERY)

    response = pay(brief, payment, FAILING_SERVICE, FAILING_QUERY)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (
        402,
        "payment_already_used",
    )
    assert "the operator owes the amount back" in response.json()["error"]["message"]
    assert payment_note(response) | {"transaction": ""} == {
        "state": "settled",
        "charged": True,
        "retry": "new_payment",
        "transaction": "",
    }
    assert (moods.asked, facilitator.asked) == (["why"], 1)


async def test_an_answer_that_is_no_longer_kept_is_not_worked_out_again(
    moods: ServiceFailures, api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    brief = api(settings.model_copy(update={"redeem_hours": 1e-9}))
    payment = sign_payment(brief, buyer, FAILING_SERVICE, FAILING_QUERY)
    pay(brief, payment, FAILING_SERVICE, FAILING_QUERY)
    await prune_answers(settings)

    response = pay(brief, payment, FAILING_SERVICE, FAILING_QUERY)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (
        402,
        "payment_already_used",
    )
    assert payment_note(response)["state"] == "delivered"
    assert "its answer is no longer stored" in response.json()["error"]["message"]
    assert (moods.asked, facilitator.asked) == (["why"], 1)


async def test_a_key_whose_answer_is_no_longer_kept_leaves_a_new_payment_untouched(
    api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    pay(client, with_identifier(sign_payload(client, buyer), "one-key-of-a-buyer"))
    await prune_answers(settings)

    response = pay(client, with_identifier(sign_payload(client, buyer), "one-key-of-a-buyer"))

    assert (response.status_code, payment_note(response)["state"]) == (409, "unused")
    assert facilitator.asked == 1


async def test_a_settled_payment_is_good_after_its_own_window(
    api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    an_hour_ago = int(time.time()) - 3600
    payment = encode_header(buyer.payload(fetch_terms(client), now=an_hour_ago))
    await record_payment(settings, payment, an_hour_ago, transaction="0x" + "ab" * 32)

    response = pay(client, payment)

    assert response.status_code == 200
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["transaction"] == "0x" + "ab" * 32
    assert facilitator.asked == 0


async def test_a_settled_payment_is_not_good_for_ever(
    api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    two_days_ago = int(time.time()) - 48 * 3600
    payment = encode_header(buyer.payload(fetch_terms(client), now=two_days_ago))
    await record_payment(settings, payment, two_days_ago, transaction="0x" + "ab" * 32)

    response = pay(client, payment)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (
        402,
        "payment_already_used",
    )


def test_what_was_delivered_is_still_given_when_its_source_is_switched_off(
    api: ApiFactory, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with_list = api(build_settings(tmp_path, facilitator.url))
    off = {"phishinglist": ProviderSettings(enabled=False)}
    without = api(build_settings(tmp_path, facilitator.url, providers=off))
    payment = sign_payment(with_list, buyer)
    first = pay(with_list, payment)

    again = pay(without, payment)

    assert (again.status_code, again.content) == (200, first.content)


def test_what_was_settled_is_still_owed_when_its_source_is_switched_off(
    moods: ServiceFailures, api: ApiFactory, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with_list = api(build_settings(tmp_path, facilitator.url))
    off = {"phishinglist": ProviderSettings(enabled=False)}
    without = api(build_settings(tmp_path, facilitator.url, providers=off))
    payment = sign_payment(with_list, buyer, FAILING_SERVICE, FAILING_QUERY)
    moods.raise_next(down)
    pay(with_list, payment, FAILING_SERVICE, FAILING_QUERY)

    response = pay(without, payment, FAILING_SERVICE, FAILING_QUERY)

    assert response.status_code == 503
    assert payment_note(response)["state"] == "settled"
    assert pay(with_list, payment, FAILING_SERVICE, FAILING_QUERY).status_code == 200
