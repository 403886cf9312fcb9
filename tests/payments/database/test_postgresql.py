"""The journal on PostgreSQL: replays, and row numbers after an import."""

from __future__ import annotations

from functools import partial

import pytest
from buyer import ApiFactory, Buyer, pay, sign_payment
from facilitators import StubFacilitator
from journal_rows import insert_rows, payment_row

from centgate.payments.database.store_factory import open_store
from centgate.payments.journal.queries import insert_payment
from centgate.payments.payment_key import PaymentKey
from centgate.settings import Settings


@pytest.mark.smoke
def test_payment_is_served_once_then_replayed(
    api: ApiFactory, settings: Settings, database_url: str, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"database_url": database_url}))
    payment = sign_payment(client, buyer)

    first, again = pay(client, payment), pay(client, payment)

    assert (first.status_code, first.content) == (200, again.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert facilitator.settle_calls == 1


async def test_row_numbers_continue_after_imported_rows(postgres_url: str) -> None:
    await insert_rows(postgres_url, payments=[payment_row(number, id=1 + number) for number in range(50)])
    new = payment_row(50)
    key = PaymentKey(*(new.pop(name) for name in ("network", "asset", "payer", "nonce")))
    store = open_store(postgres_url)

    taken = [await store.run(partial(insert_payment, key, new)) for _ in range(2)]
    await store.close()

    assert taken == [True, False]
