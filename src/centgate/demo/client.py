"""Demo step with the client: it pays automatically, and stops at its cap."""

from __future__ import annotations

from decimal import Decimal

from centgate.client import Caps, Centgate, Wallet
from centgate.client.errors import CapExceeded
from centgate.demo.money import GOOD, KNOWN
from centgate.demo.shopper import Shopper, expect

CAPS = Caps(per_call=Decimal("0.01"), total=Decimal("0.01"))


def buy_under_caps(buyer: Shopper, api: str) -> None:
    """Buy one verdict with the client; its cap rejects the second call."""
    buyer.say("[bold]8. Let the client pay[/]  centgate.client with a total cap of one cent\n")
    wallet = Wallet.from_key(buyer.account.private_key)
    with Centgate(
        api, wallet=wallet, caps=CAPS, watch=lambda sentence: buyer.say(f"   {sentence}")
    ) as client:
        verdict = client.phishing_check(url=KNOWN)
        buyer.paid += 1
        expect(verdict.receipt is not None, "the client's answer has no receipt")
        buyer.say(f"   client.phishing_check(url={KNOWN!r}).data.status is {verdict.data.status!r}")
        try:
            client.phishing_check(url=GOOD)
        except CapExceeded as refused:
            buyer.say(f"   the next call is not made: {refused}\n")
        else:
            expect(holds=False, otherwise="the client spent more than its cap")
