"""While too many payments are unresolved, new ones are refused unused, and known ones are served."""

from __future__ import annotations

import time

import httpx
import pytest
from buyer import Buyer, pay, payment_note, sign_payment
from facilitators import StubFacilitator, reply_with

from centgate.payments.journal import journal

pytestmark = pytest.mark.extended


@pytest.fixture(autouse=True)
def low_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit of two unresolved payments."""
    monkeypatch.setattr(journal, "MAX_UNRESOLVED", 2)


def test_new_payment_is_refused_at_unresolved_limit(
    client: httpx.Client, facilitator: StubFacilitator
) -> None:
    facilitator.usually = reply_with(500, "")
    payments = [sign_payment(client, Buyer(number)) for number in range(2)]
    for payment in payments:
        pay(client, payment)
    refused = _wait_for_refusal(client)
    facilitator.usually = facilitator.settle

    known = pay(client, payments[0])

    assert payment_note(refused) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert int(refused.headers["Retry-After"]) == 60
    assert known.status_code == 200


def _wait_for_refusal(client: httpx.Client) -> httpx.Response:
    """Return the first refusal, after the unresolved payments were counted."""
    deadline = time.monotonic() + 10
    while True:
        response = pay(client, sign_payment(client, Buyer(5)))
        if payment_note(response)["state"] == "unused":
            return response
        assert time.monotonic() < deadline
        time.sleep(0.1)
