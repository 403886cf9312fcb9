"""While too many payments are unresolved, new ones are refused unused, and known ones go on."""

from __future__ import annotations

import time

import httpx
import pytest
from buyer import Buyer, pay, payment_note, sign_payment
from facilitators import StubFacilitator, reply_with

from centgate.payments import journal


@pytest.fixture(autouse=True)
def low_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two payments may be unresolved."""
    monkeypatch.setattr(journal, "MAX_UNRESOLVED", 2)


@pytest.mark.extended
def test_new_payment_is_refused_unused_while_too_many_are_unresolved(
    client: httpx.Client, facilitator: StubFacilitator
) -> None:
    facilitator.usually = reply_with(500, "")
    payments = [sign_payment(client, Buyer(number)) for number in range(2)]
    for payment in payments:
        pay(client, payment)
    refused = _refused_in_time(client)
    facilitator.usually = facilitator.settle

    known = pay(client, payments[0])

    assert payment_note(refused) == {"state": "unused", "charged": False, "retry": "same_payment"}
    assert int(refused.headers["Retry-After"]) == 60
    assert known.status_code == 200


def _refused_in_time(client: httpx.Client) -> httpx.Response:
    """The first refusal, once the unresolved payments have been counted."""
    deadline = time.monotonic() + 10
    while True:
        response = pay(client, sign_payment(client, Buyer(5)))
        if payment_note(response)["state"] == "unused":
            return response
        assert time.monotonic() < deadline
        time.sleep(0.1)
