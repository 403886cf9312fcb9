"""The journal on PostgreSQL."""

from __future__ import annotations

from buyer import Api, Buyer, pay, payment_for
from facilitators import StubFacilitator

from centgate.settings import Settings


def test_a_payment_is_served_once_and_then_repeated(
    api: Api, settings: Settings, database_url: str, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"database_url": database_url}))
    payment = payment_for(client, buyer)

    first, again = pay(client, payment), pay(client, payment)

    assert (first.status_code, first.content) == (200, again.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert facilitator.asked == 1
