"""Paid and not delivered: the payment stays good for the answer it bought, and is never charged again."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

import httpx
import pytest
from buyer import Buyer, decoded, encoded, note, pay, payload_for, payment_for
from facilitators import StubFacilitator
from houses import House, open_house
from moods import MOODY, WHY, Moods, moody_on_the_shelf

from centgate.errors import (
    CentgateError,
    NoData,
    ProviderError,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnconfigured,
)

down = partial(ProviderError, "oracle", "the oracle is down")


@pytest.fixture(scope="module")
def shelved() -> Generator[Moods]:
    """A service that fails as a test says."""
    with moody_on_the_shelf() as moods:
        yield moods


@pytest.fixture
def moods(shelved: Moods) -> Moods:
    """The same, with nothing in mind."""
    shelved.forget()
    return shelved


@pytest.fixture(scope="module")
def house(shelved: Moods, tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """An API that has it."""
    with open_house(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture
def shop(house: House) -> httpx.Client:
    """A client of it."""
    return house.client


@pytest.fixture
def facilitator(house: House) -> StubFacilitator:
    """Its facilitator, with counters at zero."""
    house.facilitator.asked = 0
    return house.facilitator


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
