"""Demo step with the client: it pays automatically, and stops at its cap."""

from __future__ import annotations

from decimal import Decimal

from centgate.cli.demo.buyer import DemoBuyer, expect
from centgate.cli.demo.money import PHISHING_URL, SAFE_URL
from centgate.client import Caps, Centgate, Wallet
from centgate.client.errors import CapExceeded

CAPS = Caps(per_call=Decimal("0.01"), total=Decimal("0.01"))


def buy_under_caps(buyer: DemoBuyer, api: str) -> None:
    """Buy one verdict with the client; its cap rejects the second call."""
    buyer.print_line("[bold]8. Let the client pay[/]  centgate.client with a total cap of one cent\n")
    wallet = Wallet.from_key(buyer.account.private_key)
    with Centgate(
        api, wallet=wallet, caps=CAPS, watch=lambda sentence: buyer.print_line(f"   {sentence}")
    ) as client:
        verdict = client.phishing_check(url=PHISHING_URL)
        buyer.paid_count += 1
        expect(verdict.receipt is not None, "the client's answer has no receipt")
        buyer.print_line(
            f"   client.phishing_check(url={PHISHING_URL!r}).data.status is {verdict.data.status!r}"
        )
        try:
            client.phishing_check(url=SAFE_URL)
        except CapExceeded as refused:
            buyer.print_line(f"   the next call is not made: {refused}\n")
        else:
            expect(condition=False, message="the client spent more than its cap")
