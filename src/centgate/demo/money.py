"""Steps about money: the terms, paying, the receipt, paying again, and what the chain says of it."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import httpx
from rich.table import Table
from x402.schemas import PaymentRequired

from centgate.demo.shopper import Shopper, expect
from centgate.dev import Development

PHISHING = "/services/phishing-check"
KNOWN, LOOKALIKE, GOOD = "https://wallet-ethereum.net/unlock", "myetherwallet.cx", "https://metamask.io"
SENT = "Idempotent-Replayed"
CENT = 10_000
"""One US cent in the token's base units."""


def ask_and_pay(buyer: Shopper) -> None:
    """Ask for the terms, buy three verdicts, and present the first payment once more."""
    terms = _ask(buyer, {"url": KNOWN})
    first, paid = buyer.pay(PHISHING, {"url": KNOWN}, terms)
    _show_verdicts(buyer, [first, *(buyer.buy(PHISHING, {"url": url}) for url in (LOOKALIKE, GOOD))])
    _show_receipt(buyer, first)
    _repeat(buyer, first, paid)


def _ask(buyer: Shopper, body: dict[str, Any]) -> str:
    header = buyer.terms(PHISHING, body)
    offer = PaymentRequired.model_validate_json(b64decode(header)).accepts[0]
    buyer.say(f"[bold]1. Ask[/]  POST {PHISHING} {json.dumps(body)}")
    buyer.say("   [yellow]402 Payment Required[/]; the terms, decoded:")
    for name in ("scheme", "network", "amount", "asset", "pay_to", "max_timeout_seconds", "extra"):
        buyer.say(f"     {name:<20} {getattr(offer, name)}")
    buyer.say(f"   That is {int(offer.amount) / 1e6:.2f} USDC on the development chain.\n")
    return header


def _show_verdicts(buyer: Shopper, responses: list[httpx.Response]) -> None:
    buyer.say("[bold]2. Sign, pay, and read the answers[/]  three requests, a payment each")
    table = Table("domain", "status", "decided by", "match")
    expected = ("blocked", "lookalike", "allowed")
    for response, status in zip(responses, expected, strict=True):
        data = response.json()["data"]
        expect(data["status"] == status, f"{data['domain']} is {data['status']}, where {status} was expected")
        table.add_row(data["domain"], data["status"], data["matchedList"], data["match"])
    buyer.say(table)
    buyer.warnings(responses[0].json())


def _show_receipt(buyer: Shopper, response: httpx.Response) -> None:
    receipt = json.loads(b64decode(response.headers["PAYMENT-RESPONSE"]))
    buyer.say(f"\n[bold]3. The receipt[/]  PAYMENT-RESPONSE of {response.json()['requestId']}")
    for name, value in receipt.items():
        buyer.say(f"     {name:<20} {value}")
    expect(receipt["success"] is True, "the receipt does not say that the payment succeeded")


def _repeat(buyer: Shopper, first: httpx.Response, signature: str) -> None:
    held = buyer.chain.balance(buyer.account.address)
    again = buyer.send(PHISHING, {"url": KNOWN}, signature)
    expect(again.content == first.content, "the repeated payment got another answer")
    expect(again.headers.get(SENT) == "true", f"the repeated answer does not say {SENT}")
    expect(buyer.chain.balance(buyer.account.address) == held, "the repeated payment was charged again")
    buyer.say(
        "\n[bold]4. Send the first payment again[/]  the same bytes come back, "
        f"{SENT}: true, and nothing is charged\n"
    )


def balances(buyer: Shopper, house: Development) -> tuple[int, int]:
    """What buyer and seller hold, in millionths of a dollar."""
    return buyer.chain.balance(buyer.account.address), buyer.chain.balance(house.settings.pay_to or "")


def show_balances(buyer: Shopper, before: tuple[int, int], after: tuple[int, int]) -> None:
    """What moved on the chain: a cent for each answer, and nothing else."""
    buyer.say("[bold]9. The balances on the chain[/]")
    table = Table("USDC", "before", "after", "difference")
    for who, then, now in zip(("buyer", "seller"), before, after, strict=True):
        table.add_row(who, f"{then / 1e6:,.2f}", f"{now / 1e6:,.2f}", f"{(now - then) / 1e6:+,.2f}")
    buyer.say(table)
    due = buyer.paid * CENT
    moved = (before[0] - after[0], after[1] - before[1])
    expect(moved == (due, due), f"{moved} millionths of a USDC moved, where {due} were due")
