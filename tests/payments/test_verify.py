"""Order of checks on a paid route: free requests, payment required, refusals."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from buyer import PHISHING, QUESTION, Buyer, decode_header, encode_header, pay, payment_note, sign_payment
from served_api import ServedApi, serve_api

from centgate.catalog import all_services
from centgate.settings import ProviderSettings

PATHS = [service.path for service in all_services()]


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


@pytest.fixture(scope="module")
def unpaid_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts no payments."""
    with serve_api(tmp_path_factory.mktemp("closed"), pay_to=None) as served_api:
        yield served_api


@pytest.fixture(scope="module")
def without_list(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API whose phishing list is switched off."""
    off = {"phishinglist": ProviderSettings(enabled=False)}
    with serve_api(tmp_path_factory.mktemp("without"), providers=off) as served_api:
        yield served_api


@pytest.mark.parametrize("path", PATHS)
def test_missing_body_and_payment_is_402(served_api: ServedApi, path: str) -> None:
    response = served_api.client.post(path)

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_required")


@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_valid_body_without_payment_is_402(served_api: ServedApi, service: Any) -> None:
    response = served_api.client.post(service.path, json=service.input_example)

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_required")


def test_402_without_payment_has_no_reason(served_api: ServedApi) -> None:
    response = served_api.client.post(PHISHING, json=QUESTION)

    assert "reason" not in response.json()["error"]["details"]
    assert "payment" not in response.json()["error"]["details"]


def test_error_repeats_terms(served_api: ServedApi) -> None:
    response = served_api.client.post(PHISHING, json=QUESTION)

    offer = decode_header(response.headers["PAYMENT-REQUIRED"])
    assert response.json()["error"]["details"]["accepts"] == offer["accepts"]


@pytest.mark.parametrize("path", PATHS)
def test_invalid_body_is_refused_before_402(served_api: ServedApi, path: str) -> None:
    response = served_api.client.post(path, content=b"[]")

    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")
    assert "PAYMENT-REQUIRED" not in response.headers


def test_invalid_body_leaves_payment_unused(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)
    calls = served_api.facilitator.settle_calls

    wrong = pay(served_api.client, payment, body={"url": 1})
    right = pay(served_api.client, payment)

    assert (wrong.status_code, right.status_code) == (400, 200)
    assert served_api.facilitator.settle_calls == calls + 1


def test_empty_body_with_payment_is_invalid(served_api: ServedApi, buyer: Buyer) -> None:
    payment = sign_payment(served_api.client, buyer)

    response = served_api.client.post(PHISHING, headers={"PAYMENT-SIGNATURE": payment})

    assert (response.status_code, response.json()["error"]["code"]) == (400, "validation_error")


def test_invalid_body_is_reported_before_invalid_payment(served_api: ServedApi) -> None:
    response = pay(served_api.client, "worthless", body={})

    assert response.status_code == 400


@pytest.mark.parametrize("body", [QUESTION, None], ids=["body", "no body"])
def test_disabled_payments_serve_nothing(unpaid_api: ServedApi, body: Any) -> None:
    response = unpaid_api.client.post(PHISHING, json=body)

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_not_configured")
    assert "PAYMENT-REQUIRED" not in response.headers


def test_disabled_payments_ignore_payment(unpaid_api: ServedApi, served_api: ServedApi, buyer: Buyer) -> None:
    response = pay(unpaid_api.client, sign_payment(served_api.client, buyer))

    assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_not_configured")
    assert unpaid_api.facilitator.settle_calls == 0


def test_disabled_payments_still_report_invalid_body(unpaid_api: ServedApi) -> None:
    response = unpaid_api.client.post(PHISHING, json={"url": 1})

    assert response.status_code == 400


@pytest.mark.extended
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_get_describes_paid_route_free(served_api: ServedApi, service: Any, method: str) -> None:
    response = served_api.client.request(method, service.path)

    described = served_api.client.get(f"/services/{service.slug}")
    assert response.status_code == 200
    assert response.content == (described.content if method == "GET" else b"")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_with_allow(served_api: ServedApi, method: str) -> None:
    response = served_api.client.request(method, PHISHING)

    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD, POST"


def test_unknown_service_is_not_found_with_payment(served_api: ServedApi, buyer: Buyer) -> None:
    response = pay(served_api.client, sign_payment(served_api.client, buyer), path="/services/none/such")

    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


def test_unconfigured_service_is_refused_before_facilitator(without_list: ServedApi, buyer: Buyer) -> None:
    response = pay(without_list.client, sign_payment(without_list.client, buyer))

    assert (response.status_code, response.json()["error"]["code"]) == (503, "provider_unconfigured")
    assert response.json()["error"]["provider"] == "phishinglist"
    assert without_list.facilitator.settle_calls == 0


def test_unconfigured_service_leaves_payment_unused(without_list: ServedApi, buyer: Buyer) -> None:
    response = pay(without_list.client, sign_payment(without_list.client, buyer))

    assert payment_note(response) == {"state": "unused", "charged": False, "retry": "none"}


def test_unconfigured_service_requires_payment_first(without_list: ServedApi) -> None:
    response = without_list.client.post(PHISHING, json=QUESTION)

    assert response.status_code == 402


@pytest.mark.extended
def test_invalid_payment_for_unconfigured_service_is_invalid(without_list: ServedApi) -> None:
    response = pay(without_list.client, encode_header({"x402Version": 2}))

    assert response.status_code == 402


@pytest.mark.extended
def test_402_is_not_cacheable(served_api: ServedApi) -> None:
    response = served_api.client.post(PHISHING, json=QUESTION)

    assert response.headers["Cache-Control"] == "no-store"
