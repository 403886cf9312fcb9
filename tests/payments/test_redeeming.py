"""Paid and not delivered: the payment stays good for the answer it bought, and is never charged again."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import httpx
import pytest
from buyer import QUESTION, Api, Buyer, decoded, encoded, note, pay, payload_for, payment_for, terms_of
from facilitators import StubFacilitator
from houses import settings_in
from moods import MOODY, WHY, Moods, moody_on_the_shelf

from centgate.errors import (
    CentgateError,
    NoData,
    ProviderError,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnconfigured,
)
from centgate.payments.authorization import read_payment
from centgate.payments.journal import Journal, Order
from centgate.payments.store import open_store
from centgate.payments.terms import terms_of as own_terms_of
from centgate.pipeline import binding
from centgate.services.phishing_check import PhishingCheckRequest, phishing_check
from centgate.settings import ProviderSettings, Settings

down = partial(ProviderError, "oracle", "the oracle is down")


@pytest.fixture
def moods() -> Generator[Moods]:
    """A service that fails as a test says."""
    with moody_on_the_shelf() as moods:
        yield moods


@pytest.fixture
def shop(moods: Moods, api: Api, settings: Settings) -> httpx.Client:
    """A client of an API that has it."""
    return api(settings)


FAILURES: dict[str, tuple[Callable[[], Exception], int, str]] = {
    "an upstream failed": (down, 502, "provider_error"),
    "an upstream was late": (partial(ProviderTimeout, "oracle", "late"), 504, "provider_timeout"),
    "an upstream was busy": (partial(ProviderRateLimited, "oracle", "slow"), 429, "provider_rate_limited"),
    "its key was withdrawn": (partial(ProviderUnconfigured, "oracle", "no"), 503, "provider_unconfigured"),
    "nobody foresaw it": (partial(ZeroDivisionError, "secret"), 500, "internal_error"),
}
each_failure = pytest.mark.parametrize(("mood", "status", "code"), FAILURES.values(), ids=FAILURES.keys())


@each_failure
def test_a_failure_after_the_payment_says_so(
    shop: httpx.Client, moods: Moods, buyer: Buyer, mood: Callable[[], Exception], status: int, code: str
) -> None:
    payload = payload_for(shop, buyer, MOODY)
    moods.then(mood)

    response = pay(shop, encoded(payload), MOODY, WHY)

    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert note(response) == {
        "state": "settled",
        "charged": True,
        "retry": "same_payment",
        "transaction": payload["payload"]["authorization"]["nonce"],
    }


@each_failure
def test_a_failure_after_the_payment_asks_for_no_other_payment(
    shop: httpx.Client, moods: Moods, buyer: Buyer, mood: Callable[[], Exception], status: int, code: str
) -> None:
    moods.then(mood)

    response = pay(shop, payment_for(shop, buyer, MOODY, WHY), MOODY, WHY)

    assert "PAYMENT-REQUIRED" not in response.headers
    assert "secret" not in response.text


@each_failure
def test_the_same_payment_buys_the_answer_later(
    shop: httpx.Client,
    moods: Moods,
    buyer: Buyer,
    facilitator: StubFacilitator,
    mood: Callable[[], Exception],
    status: int,
    code: str,
) -> None:
    payment = payment_for(shop, buyer, MOODY, WHY)
    moods.then(mood, mood)
    failed = [pay(shop, payment, MOODY, WHY), pay(shop, payment, MOODY, WHY)]

    response = pay(shop, payment, MOODY, WHY)

    assert [one.status_code for one in failed] == [status, status]
    assert response.json()["data"] == {"answer": "why, the 3. time"}
    assert decoded(response.headers["PAYMENT-RESPONSE"])["success"] is True
    assert facilitator.asked == 1


def test_what_was_redeemed_is_delivered_again_as_it_was(
    shop: httpx.Client, moods: Moods, buyer: Buyer
) -> None:
    payment = payment_for(shop, buyer, MOODY, WHY)
    moods.then(down)
    pay(shop, payment, MOODY, WHY)
    redeemed = pay(shop, payment, MOODY, WHY)

    again = pay(shop, payment, MOODY, WHY)

    assert again.content == redeemed.content
    assert "Idempotent-Replayed" not in redeemed.headers
    assert moods.asked == ["why"] * 2


def test_a_payment_that_waits_to_be_redeemed_buys_nothing_else(
    shop: httpx.Client, moods: Moods, buyer: Buyer
) -> None:
    payment = payment_for(shop, buyer, MOODY, WHY)
    moods.then(down)
    pay(shop, payment, MOODY, WHY)

    response = pay(shop, payment, MOODY, {"question": "when"})

    assert response.json()["error"]["details"]["reason"] == "payment_already_used"
    assert note(response)["state"] == "settled"
    assert moods.asked == ["why"]


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


def test_nothing_known_is_an_answer_and_is_charged(shop: httpx.Client, moods: Moods, buyer: Buyer) -> None:
    payload = payload_for(shop, buyer, MOODY)
    moods.then(partial(NoData, "nobody knows"))

    response = pay(shop, encoded(payload), MOODY, WHY)

    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_data")
    assert decoded(response.headers["PAYMENT-RESPONSE"])["success"] is True
    assert note(response) == {
        "state": "delivered",
        "charged": True,
        "retry": "none",
        "transaction": payload["payload"]["authorization"]["nonce"],
    }


def test_nothing_known_is_delivered_again_as_it_was(
    shop: httpx.Client, moods: Moods, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    payment = payment_for(shop, buyer, MOODY, WHY)
    moods.then(partial(NoData, "nobody knows"))
    first = pay(shop, payment, MOODY, WHY)

    again = pay(shop, payment, MOODY, WHY)

    assert (again.status_code, again.content) == (404, first.content)
    assert again.headers["X-Request-Id"] == first.headers["X-Request-Id"]
    assert (moods.asked, facilitator.asked) == (["why"], 1)


def test_a_refusal_inside_a_service_leaves_the_payment_redeemable(
    shop: httpx.Client, moods: Moods, buyer: Buyer
) -> None:
    class Odd(CentgateError):
        code = "internal_error"

    payment = payment_for(shop, buyer, MOODY, WHY)
    moods.then(partial(Odd, "odd"))

    failed = pay(shop, payment, MOODY, WHY)

    assert note(failed)["state"] == "settled"
    assert pay(shop, payment, MOODY, WHY).status_code == 200


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


def test_an_answer_that_is_no_longer_kept_is_not_worked_out_again(
    moods: Moods, api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    brief = api(settings.model_copy(update={"redeem_hours": 1e-9}))
    payment = payment_for(brief, buyer, MOODY, WHY)
    pay(brief, payment, MOODY, WHY)
    brief.get("/health")  # looking after the journal removes what is old

    response = pay(brief, payment, MOODY, WHY)

    assert (response.status_code, response.json()["error"]["details"]["reason"]) == (
        402,
        "payment_already_used",
    )
    assert note(response)["state"] == "delivered"
    assert (moods.asked, facilitator.asked) == (["why"], 1)


async def _settle_in_the_past(settings: Settings, header: str, signed_at: float) -> None:
    """Leave a journal in which this payment was settled when it was signed, and nothing was delivered."""
    store = open_store(settings.database_url)
    journal = Journal(store, keep_seconds=3600, clock=lambda: signed_at)
    payment = read_payment(header, own_terms_of(phishing_check, settings), signed_at)
    order = Order(phishing_check.slug, binding(phishing_check, PhishingCheckRequest(**QUESTION)))
    async with journal.claim(payment, order) as claim:
        await journal.settled(claim, "0x" + "ab" * 32)
    await store.close()


async def test_a_settled_payment_is_good_after_its_own_window(
    api: Api, settings: Settings, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    client = api(settings)
    an_hour_ago = int(time.time()) - 3600
    payment = encoded(buyer.payload(terms_of(client), now=an_hour_ago))
    await _settle_in_the_past(settings, payment, an_hour_ago)

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
    await _settle_in_the_past(settings, payment, two_days_ago)

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
