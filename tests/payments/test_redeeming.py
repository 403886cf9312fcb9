"""Redemption: a paid and undelivered payment fetches its answer later, and is never charged again."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

import httpx
import pytest
from buyer import Buyer, decode_header, encode_header, pay, payment_note, sign_payload, sign_payment
from facilitators import StubFacilitator
from failing_service import FAILING_QUERY, FAILING_SERVICE, ServiceFailures, install_failing_service
from served_api import ServedApi, serve_api

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
    """An API with that service."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


@pytest.fixture
def shop(served_api: ServedApi) -> httpx.Client:
    """A client of that API."""
    return served_api.client


@pytest.fixture
def facilitator(served_api: ServedApi) -> StubFacilitator:
    """The facilitator of that API, with counters at zero."""
    served_api.facilitator.settle_calls = 0
    return served_api.facilitator


FAILURES: dict[str, tuple[Callable[[], Exception], int, str]] = {
    "an upstream failed": (down, 502, "provider_error"),
    "an upstream was late": (partial(ProviderTimeout, "oracle", "late"), 504, "provider_timeout"),
    "an upstream was busy": (partial(ProviderRateLimited, "oracle", "slow"), 429, "provider_rate_limited"),
    "its key was withdrawn": (partial(ProviderUnconfigured, "oracle", "no"), 503, "provider_unconfigured"),
    "an unexpected error": (partial(ZeroDivisionError, "secret"), 500, "internal_error"),
}
each_failure = pytest.mark.parametrize(("failure", "status", "code"), FAILURES.values(), ids=FAILURES.keys())


@each_failure
def test_failure_after_payment_states_outcome(
    shop: httpx.Client,
    failures: ServiceFailures,
    buyer: Buyer,
    failure: Callable[[], Exception],
    status: int,
    code: str,
) -> None:
    payload = sign_payload(shop, buyer, FAILING_SERVICE)
    failures.raise_next(failure)

    response = pay(shop, encode_header(payload), FAILING_SERVICE, FAILING_QUERY)

    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert payment_note(response) == {
        "state": "settled",
        "charged": True,
        "retry": "same_payment",
        "transaction": payload["payload"]["authorization"]["nonce"],
    }


@each_failure
def test_failure_after_payment_asks_for_no_new_payment(
    shop: httpx.Client,
    failures: ServiceFailures,
    buyer: Buyer,
    failure: Callable[[], Exception],
    status: int,
    code: str,
) -> None:
    failures.raise_next(failure)

    response = pay(
        shop, sign_payment(shop, buyer, FAILING_SERVICE, FAILING_QUERY), FAILING_SERVICE, FAILING_QUERY
    )

    assert "PAYMENT-REQUIRED" not in response.headers
    assert "secret" not in response.text


@each_failure
def test_same_payment_buys_answer_later(
    shop: httpx.Client,
    failures: ServiceFailures,
    buyer: Buyer,
    facilitator: StubFacilitator,
    failure: Callable[[], Exception],
    status: int,
    code: str,
) -> None:
    payment = sign_payment(shop, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(failure, failure)
    failed = [
        pay(shop, payment, FAILING_SERVICE, FAILING_QUERY),
        pay(shop, payment, FAILING_SERVICE, FAILING_QUERY),
    ]

    response = pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)

    assert [one.status_code for one in failed] == [status, status]
    assert response.json()["data"] == {"answer": "why, the 3. time"}
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["success"] is True
    assert facilitator.settle_calls == 1


def test_redeemed_answer_is_replayed(shop: httpx.Client, failures: ServiceFailures, buyer: Buyer) -> None:
    payment = sign_payment(shop, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(down)
    pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)
    redeemed = pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)

    again = pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)

    assert again.content == redeemed.content
    assert "Idempotent-Replayed" not in redeemed.headers
    assert failures.questions == ["why"] * 2


def test_redeemable_payment_buys_no_other_request(
    shop: httpx.Client, failures: ServiceFailures, buyer: Buyer
) -> None:
    payment = sign_payment(shop, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(down)
    pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)

    response = pay(shop, payment, FAILING_SERVICE, {"question": "when"})

    assert response.json()["error"]["details"]["reason"] == "payment_already_used"
    assert payment_note(response)["state"] == "settled"
    assert failures.questions == ["why"]


def test_no_data_is_answer_and_charged(shop: httpx.Client, failures: ServiceFailures, buyer: Buyer) -> None:
    payload = sign_payload(shop, buyer, FAILING_SERVICE)
    failures.raise_next(partial(NoData, "nobody knows"))

    response = pay(shop, encode_header(payload), FAILING_SERVICE, FAILING_QUERY)

    assert (response.status_code, response.json()["error"]["code"]) == (404, "no_data")
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["success"] is True
    assert payment_note(response) == {
        "state": "delivered",
        "charged": True,
        "retry": "none",
        "transaction": payload["payload"]["authorization"]["nonce"],
    }


def test_no_data_is_replayed(
    shop: httpx.Client, failures: ServiceFailures, buyer: Buyer, facilitator: StubFacilitator
) -> None:
    payment = sign_payment(shop, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(partial(NoData, "nobody knows"))
    first = pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)

    again = pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)

    assert (again.status_code, again.content) == (404, first.content)
    assert again.headers["X-Request-Id"] == first.headers["X-Request-Id"]
    assert (failures.questions, facilitator.settle_calls) == (["why"], 1)


@pytest.mark.extended
def test_refusal_inside_service_keeps_payment_redeemable(
    shop: httpx.Client, failures: ServiceFailures, buyer: Buyer
) -> None:
    class Odd(CentgateError):
        code = "internal_error"

    payment = sign_payment(shop, buyer, FAILING_SERVICE, FAILING_QUERY)
    failures.raise_next(partial(Odd, "odd"))

    failed = pay(shop, payment, FAILING_SERVICE, FAILING_QUERY)

    assert payment_note(failed)["state"] == "settled"
    assert pay(shop, payment, FAILING_SERVICE, FAILING_QUERY).status_code == 200
