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
def failures() -> Generator[ServiceFailures]:
    """Scripted failures of a service."""
    with install_failing_service() as failures:
        yield failures


def test_later_server_redeems_payment(
    failures: ServiceFailures, api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    first, second = api(settings), api(settings)
    payment = sign_payment(first, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(down)
    pay(first, payment, FAILING_SERVICE, FAILING_QUERY)

    response = pay(second, payment, FAILING_SERVICE, FAILING_QUERY)

    assert response.status_code == 200
    assert facilitator.settle_calls == 1


def test_payment_is_used_after_redeem_period(
    failures: ServiceFailures, api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    brief = api(settings.model_copy(update={"redeem_hours": 1e-9}))
    payment = sign_payment(brief, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(down)
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
    assert (failures.questions, facilitator.settle_calls) == (["why"], 1)


async def test_pruned_answer_is_not_computed_again(
    failures: ServiceFailures, api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
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
    assert (failures.questions, facilitator.settle_calls) == (["why"], 1)


async def test_key_of_pruned_answer_leaves_new_payment_unused(
    api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    pay(client, with_identifier(sign_payload(client, buyer), "one-key-of-a-buyer"))
    await prune_answers(settings)

    response = pay(client, with_identifier(sign_payload(client, buyer), "one-key-of-a-buyer"))

    assert (response.status_code, payment_note(response)["state"]) == (409, "unused")
    assert facilitator.settle_calls == 1


async def test_settled_payment_outlives_its_own_window(
    api: ApiFactory, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    an_hour_ago = int(time.time()) - 3600
    payment = encode_header(buyer.payload(fetch_terms(client), now=an_hour_ago))
    await record_payment(settings, payment, an_hour_ago, transaction="0x" + "ab" * 32)

    response = pay(client, payment)

    assert response.status_code == 200
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["transaction"] == "0x" + "ab" * 32
    assert facilitator.settle_calls == 0


async def test_settled_payment_expires(
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


def test_delivered_answer_is_replayed_with_source_disabled(
    api: ApiFactory, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with_list = api(build_settings(tmp_path, facilitator.url))
    off = {"phishinglist": ProviderSettings(enabled=False)}
    without = api(build_settings(tmp_path, facilitator.url, providers=off))
    payment = sign_payment(with_list, buyer)
    first = pay(with_list, payment)

    again = pay(without, payment)

    assert (again.status_code, again.content) == (200, first.content)


def test_settled_payment_stays_owed_with_source_disabled(
    failures: ServiceFailures, api: ApiFactory, tmp_path: Path, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    with_list = api(build_settings(tmp_path, facilitator.url))
    off = {"phishinglist": ProviderSettings(enabled=False)}
    without = api(build_settings(tmp_path, facilitator.url, providers=off))
    payment = sign_payment(with_list, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(down)
    pay(with_list, payment, FAILING_SERVICE, FAILING_QUERY)

    response = pay(without, payment, FAILING_SERVICE, FAILING_QUERY)

    assert response.status_code == 503
    assert payment_note(response)["state"] == "settled"
    assert pay(with_list, payment, FAILING_SERVICE, FAILING_QUERY).status_code == 200
