"""Demo steps for payments: terms, payment, receipt, replay, the client's cap, and balances on the chain."""

from __future__ import annotations

import json
from base64 import b64decode
from decimal import Decimal
from typing import Any

import httpx
from rich.table import Table
from x402.schemas import PaymentRequired

from centgate.cli.demo.buyer import DemoBuyer, expect
from centgate.client import Caps, Centgate, Wallet
from centgate.client.errors import CapExceeded
from centgate.devchain.environment import DevEnvironment

PHISHING = "/services/phishing-check"
PHISHING_URL, LOOKALIKE, SAFE_URL = (
    "https://wallet-ethereum.net/unlock",
    "myetherwallet.cx",
    "https://metamask.io",
)
REPLAYED_HEADER = "Idempotent-Replayed"
CENT = 10_000
"""One US cent in the token's base units."""
CAPS = Caps(per_call=Decimal("0.01"), total=Decimal("0.01"))


def ask_and_pay(buyer: DemoBuyer) -> None:
    """Request the terms, buy three verdicts, and send the first payment again."""
    terms = _show_terms(buyer, {"url": PHISHING_URL})
    first, signature = buyer.pay(PHISHING, {"url": PHISHING_URL}, terms)
    _show_verdicts(buyer, [first, *(buyer.buy(PHISHING, {"url": url}) for url in (LOOKALIKE, SAFE_URL))])
    _show_receipt(buyer, first)
    _replay_payment(buyer, first, signature)


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


def _show_terms(buyer: DemoBuyer, body: dict[str, Any]) -> str:
    header = buyer.request_terms(PHISHING, body)
    offer = PaymentRequired.model_validate_json(b64decode(header)).accepts[0]
    buyer.print_line(f"[bold]1. Ask[/]  POST {PHISHING} {json.dumps(body)}")
    buyer.print_line("   [yellow]402 Payment Required[/]; the terms, decoded:")
    for name in ("scheme", "network", "amount", "asset", "pay_to", "max_timeout_seconds", "extra"):
        buyer.print_line(f"     {name:<20} {getattr(offer, name)}")
    buyer.print_line(f"   That is {int(offer.amount) / 1e6:.2f} USDC on the development chain.\n")
    return header


def _show_verdicts(buyer: DemoBuyer, responses: list[httpx.Response]) -> None:
    buyer.print_line("[bold]2. Sign, pay, and read the answers[/]  three requests, a payment each")
    table = Table("domain", "status", "decided by", "match")
    expected = ("blocked", "lookalike", "allowed")
    for response, status in zip(responses, expected, strict=True):
        data = response.json()["data"]
        expect(data["status"] == status, f"{data['domain']} is {data['status']}, where {status} was expected")
        table.add_row(data["domain"], data["status"], data["matchedList"], data["match"])
    buyer.print_line(table)
    buyer.print_warnings(responses[0].json())


def _show_receipt(buyer: DemoBuyer, response: httpx.Response) -> None:
    receipt = json.loads(b64decode(response.headers["PAYMENT-RESPONSE"]))
    buyer.print_line(f"\n[bold]3. The receipt[/]  PAYMENT-RESPONSE of {response.json()['requestId']}")
    for name, value in receipt.items():
        buyer.print_line(f"     {name:<20} {value}")
    expect(receipt["success"] is True, "the receipt does not say that the payment succeeded")


def _replay_payment(buyer: DemoBuyer, first: httpx.Response, signature: str) -> None:
    balance = buyer.chain.token_balance(buyer.account.address)
    replayed = buyer.send_payment(PHISHING, {"url": PHISHING_URL}, signature)
    expect(replayed.content == first.content, "the repeated payment returned a different answer")
    expect(
        replayed.headers.get(REPLAYED_HEADER) == "true", f"the repeated answer lacks {REPLAYED_HEADER}: true"
    )
    expect(
        buyer.chain.token_balance(buyer.account.address) == balance, "the repeated payment was charged again"
    )
    buyer.print_line(
        "\n[bold]4. Send the first payment again[/]  the same bytes come back, "
        f"{REPLAYED_HEADER}: true, and nothing is charged\n"
    )


def read_balances(buyer: DemoBuyer, development: DevEnvironment) -> tuple[int, int]:
    """Return the token balances of buyer and seller, in millionths of a dollar."""
    return buyer.chain.token_balance(buyer.account.address), buyer.chain.token_balance(
        development.settings.pay_to or ""
    )


def show_balances(buyer: DemoBuyer, before: tuple[int, int], after: tuple[int, int]) -> None:
    """Print the balances before and after, and check that one cent moved for each answer."""
    buyer.print_line("[bold]9. The balances on the chain[/]")
    table = Table("USDC", "before", "after", "difference")
    for role, old, new in zip(("buyer", "seller"), before, after, strict=True):
        table.add_row(role, f"{old / 1e6:,.2f}", f"{new / 1e6:,.2f}", f"{(new - old) / 1e6:+,.2f}")
    buyer.print_line(table)
    due = buyer.paid_count * CENT
    moved = (before[0] - after[0], after[1] - before[1])
    expect(moved == (due, due), f"{moved} millionths of a USDC moved, where {due} were due")
