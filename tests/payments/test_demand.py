"""The order in which a paid route looks at a request: what is free, what asks for money, what is refused."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from buyer import PHISHING, QUESTION, Buyer, decoded, encoded, note, pay, payment_for
from houses import House, open_house

from centgate.catalog import all_services
from centgate.settings import ProviderSettings

PATHS = [service.path for service in all_services()]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """An API that takes payments."""
    with open_house(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """An API that takes none."""
    with open_house(tmp_path_factory.mktemp("closed"), pay_to=None) as house:
        yield house


@pytest.fixture(scope="module")
def without_list(tmp_path_factory: pytest.TempPathFactory) -> Generator[House]:
    """An API whose phishing list is switched off."""
    off = {"phishinglist": ProviderSettings(enabled=False)}
    with open_house(tmp_path_factory.mktemp("without"), providers=off) as house:
        yield house


@pytest.mark.parametrize("path", PATHS)
def test_no_body_and_no_payment_is_asked_for_money(house: House, path: str) -> None:
    response = house.client.post(path)

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_required")


@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_a_valid_body_without_a_payment_is_asked_for_money(house: House, service: Any) -> None:
    response = house.client.post(service.path, json=service.input_example)

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_required")


def test_who_brought_no_payment_is_given_no_reason(house: House) -> None:
    response = house.client.post(PHISHING, json=QUESTION)

    assert "reason" not in response.json()["error"]["details"]
    assert "payment" not in response.json()["error"]["details"]


def test_the_terms_are_mirrored_in_the_error(house: House) -> None:
    response = house.client.post(PHISHING, json=QUESTION)

    offer = decoded(response.headers["PAYMENT-REQUIRED"])
    assert response.json()["error"]["details"]["accepts"] == offer["accepts"]


@pytest.mark.parametrize("path", PATHS)
def test_an_invalid_body_is_refused_before_any_payment_is_asked_for(house: House, path: str) -> None:
    response = house.client.post(path, content=b"[]")

    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")
    assert "PAYMENT-REQUIRED" not in response.headers


def test_an_invalid_body_does_not_use_up_its_payment(house: House, buyer: Buyer) -> None:
    payment = payment_for(house.client, buyer)
    asked = house.facilitator.asked

    wrong = pay(house.client, payment, body={"url": 1})
    right = pay(house.client, payment)

    assert (wrong.status_code, right.status_code) == (400, 200)
    assert house.facilitator.asked == asked + 1


def test_an_empty_body_with_a_payment_is_invalid(house: House, buyer: Buyer) -> None:
    payment = payment_for(house.client, buyer)

    response = house.client.post(PHISHING, headers={"PAYMENT-SIGNATURE": payment})

    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")


def test_an_invalid_body_wins_over_a_worthless_payment(house: House) -> None:
    response = pay(house.client, "worthless", body={})

    assert response.status_code == 400


@pytest.mark.parametrize("body", [QUESTION, None], ids=["body", "no body"])
def test_where_no_payments_are_taken_nothing_is_served(closed: House, body: Any) -> None:
    response = closed.client.post(PHISHING, json=body)

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_not_configured")
    assert "PAYMENT-REQUIRED" not in response.headers


def test_where_no_payments_are_taken_a_payment_changes_nothing(
    closed: House, house: House, buyer: Buyer
) -> None:
    response = pay(closed.client, payment_for(house.client, buyer))

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_not_configured")
    assert closed.facilitator.asked == 0


def test_where_no_payments_are_taken_an_invalid_body_is_still_invalid(closed: House) -> None:
    response = closed.client.post(PHISHING, json={})

    assert response.status_code == 400


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_a_paid_route_describes_itself_for_nothing(house: House, service: Any, method: str) -> None:
    response = house.client.request(method, service.path)

    described = house.client.get(f"/services/{service.slug}")
    assert response.status_code == 200
    assert response.content == (described.content if method == "GET" else b"")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_and_told_which_there_are(house: House, method: str) -> None:
    response = house.client.request(method, PHISHING)

    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD, POST"


def test_an_unknown_service_is_not_found_however_it_is_paid(house: House, buyer: Buyer) -> None:
    response = pay(house.client, payment_for(house.client, buyer), path="/services/none/such")

    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


def test_what_is_not_set_up_is_refused_before_the_facilitator_is_asked(
    without_list: House, buyer: Buyer
) -> None:
    response = pay(without_list.client, payment_for(without_list.client, buyer))

    assert (response.status_code, response.json()["error"]["code"]) == (503, "provider_unconfigured")
    assert response.json()["error"]["provider"] == "phishinglist"
    assert without_list.facilitator.asked == 0


def test_what_is_not_set_up_says_that_the_payment_is_unused(without_list: House, buyer: Buyer) -> None:
    response = pay(without_list.client, payment_for(without_list.client, buyer))

    assert note(response) == {"state": "unused", "charged": False, "retry": "none"}


def test_what_is_not_set_up_still_asks_for_money_first(without_list: House) -> None:
    response = without_list.client.post(PHISHING, json=QUESTION)

    assert response.status_code == 402


def test_a_worthless_payment_for_what_is_not_set_up_is_a_worthless_payment(without_list: House) -> None:
    response = pay(without_list.client, encoded({"x402Version": 2}))

    assert response.status_code == 402


def test_a_fresh_402_may_not_be_kept_by_anybody(house: House) -> None:
    response = house.client.post(PHISHING, json=QUESTION)

    assert response.headers["Cache-Control"] == "no-store"
