"""Interrupted commands: the message about the money follows the ledger."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hostile import PATH, SLUG, HostileApi, PlannedResponse, Reply, error_response
from shopping import SHORT_TIMEOUTS

from centgate.cli.buyer.call import PendingPurchase, report_interruption
from centgate.client.errors import BuyerError
from centgate.client.ledger import Ledger
from centgate.client.payment import PurchaseOrder
from centgate.client.payment_signature import canonical_json
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS

REFUSED = error_response(
    402, "payment_required", note={"state": "refused", "charged": False, "retry": "new_payment"}
)

UNANSWERED = error_response(
    402, "payment_required", note={"state": "settled", "charged": True, "retry": "new_payment"}
)


@pytest.mark.parametrize(
    ("paid", "code", "message"),
    [
        ([], 6, "after the payment was answered"),
        ([PlannedResponse(500, b"")] * 9, 5, "it is unknown whether it moved"),
        ([REFUSED], 4, "after the payment was refused"),
        ([UNANSWERED], 6, "after the payment was charged and not answered"),
    ],
    ids=["answered", "open", "refused", "unanswered"],
)
def test_interrupt_after_payment_does_not_deny_signing(
    hostile: HostileApi, capsys: pytest.CaptureFixture[str], paid: list[Reply], code: int, message: str
) -> None:
    began, ledger = datetime.now(UTC), Ledger()
    hostile.paid = paid
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)
    with (
        Centgate(hostile.url, wallet, ledger=ledger, patience=SHORT_TIMEOUTS) as client,
        suppress(BuyerError),
    ):
        client.call(SLUG, {})

    assert (
        report_interruption(
            PendingPurchase(ledger, PurchaseOrder(hostile.url, PATH, canonical_json({}))), began
        )
        == code
    )
    assert message in capsys.readouterr().err


def test_earlier_payment_is_not_mentioned(hostile: HostileApi, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger()
    with Centgate(hostile.url, Wallet.from_key(BUYER_ACCOUNTS[0].private_key), ledger=ledger) as client:
        client.call(SLUG, {})

    assert (
        report_interruption(
            PendingPurchase(ledger, PurchaseOrder(hostile.url, PATH, canonical_json({}))), datetime.now(UTC)
        )
        == 130
    )
    assert "nothing was signed" in capsys.readouterr().err
