"""`make demo`: a buyer's first calls, for real, on a development chain; each step is checked."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import httpx
from eth_account import Account
from rich.console import Console
from rich.table import Table
from x402 import x402ClientSync
from x402.http import encode_payment_signature_header
from x402.mechanisms.evm.exact import ExactEvmClientScheme
from x402.mechanisms.evm.signers import EthAccountSigner
from x402.schemas import PaymentRequired

from centgate import server
from centgate.dev import Development, development
from centgate.settings import Settings

KNOWN, LOOKALIKE, GOOD = "https://wallet-ethereum.net/unlock", "myetherwallet.cx", "https://metamask.io"
SENT = "Idempotent-Replayed"


class DemoFailed(RuntimeError):
    """A step did not do what it says."""


def run_demo(settings: Settings) -> None:
    """Run every step; DemoFailed names the first that went wrong."""
    console = Console(highlight=False, soft_wrap=True)
    console.rule("[bold]Centgate: facts for agents at one cent a call")
    with (
        development(settings) as house,
        server.serving(house.settings) as url,
        httpx.Client(base_url=url, timeout=30) as http,
    ):
        console.print(
            f"chain [cyan]{house.chain.rpc_url}[/] ({house.chain.kind}), facilitator "
            f"[cyan]{house.chain.facilitator_url}[/], API [cyan]{url}[/]\n"
        )
        try:
            _Buyer(console, house, http).shop()
        except httpx.HTTPError as error:
            raise DemoFailed(f"the API could not be reached: {error}") from error
    console.print("\n[bold green]Done.[/] Three answers for three cents, and a repetition for nothing.")


class _Buyer:
    """Somebody with a thousand test dollars and a few doubtful links."""

    def __init__(self, console: Console, house: Development, http: httpx.Client) -> None:
        self._console, self._chain, self._http = console, house.chain, http
        self._pay_to = house.settings.pay_to or ""
        self._me = house.chain.accounts[0]
        self._wallet = x402ClientSync()
        signer = EthAccountSigner(Account.from_key(self._me.private_key))
        self._wallet.register(house.settings.network, ExactEvmClientScheme(signer))

    def shop(self) -> None:
        """The whole story."""
        before = self._balances()
        terms = self._ask(KNOWN)
        first, paid = self._pay(KNOWN, terms)
        verdicts = [first, *(self._pay(url, self._ask(url, quiet=True))[0] for url in (LOOKALIKE, GOOD))]
        self._show_verdicts(verdicts)
        self._show_receipt(first)
        self._repeat(first, paid)
        self._show_balances(before, self._balances())

    def _ask(self, url: str, *, quiet: bool = False) -> str:
        """Ask without paying: the terms, as the header carries them."""
        response = self._http.post("/services/phishing-check", json={"url": url})
        _expect(
            response.status_code == 402,
            f"an unpaid request was answered with {response.status_code}, not 402",
        )
        header = response.headers["PAYMENT-REQUIRED"]
        if not quiet:
            offer = PaymentRequired.model_validate_json(b64decode(header)).accepts[0]
            self._console.print(f"[bold]1. Ask[/]  POST /services/phishing-check {json.dumps({'url': url})}")
            self._console.print("   [yellow]402 Payment Required[/]; the terms, decoded:")
            for name in ("scheme", "network", "amount", "asset", "pay_to", "max_timeout_seconds", "extra"):
                self._console.print(f"     {name:<20} {getattr(offer, name)}")
            self._console.print(f"   That is {int(offer.amount) / 1e6:.2f} USDC on the development chain.\n")
        return header

    def _pay(self, url: str, terms: str) -> tuple[httpx.Response, str]:
        """Sign the terms and send the same request with the payment."""
        offer = PaymentRequired.model_validate_json(b64decode(terms))
        payload = self._wallet.create_payment_payload(offer)
        signature = encode_payment_signature_header(payload)
        response = self._send(url, signature)
        _expect(response.status_code == 200, f"a paid request was answered with {response.text}")
        return response, signature

    def _send(self, url: str, signature: str) -> httpx.Response:
        return self._http.post(
            "/services/phishing-check", json={"url": url}, headers={"PAYMENT-SIGNATURE": signature}
        )

    def _show_verdicts(self, responses: list[httpx.Response]) -> None:
        self._console.print("[bold]2. Sign, pay, and read the answers[/]  three requests, a payment each")
        table = Table("domain", "status", "decided by", "match")
        expected = ("blocked", "lookalike", "allowed")
        for response, status in zip(responses, expected, strict=True):
            data = response.json()["data"]
            _expect(
                data["status"] == status, f"{data['domain']} is {data['status']}, where {status} was expected"
            )
            table.add_row(data["domain"], data["status"], data["matchedList"], data["match"])
        self._console.print(table)
        for warning in responses[0].json()["warnings"]:
            self._console.print(f"   [yellow]warning[/] {warning}")

    def _show_receipt(self, response: httpx.Response) -> None:
        receipt = _receipt(response)
        self._console.print(f"\n[bold]3. The receipt[/]  PAYMENT-RESPONSE of {response.json()['requestId']}")
        for name, value in receipt.items():
            self._console.print(f"     {name:<20} {value}")
        _expect(receipt["success"] is True, "the receipt does not say that the payment succeeded")

    def _repeat(self, first: httpx.Response, signature: str) -> None:
        held = self._chain.balance(self._me.address)
        again = self._send(KNOWN, signature)
        _expect(again.content == first.content, "the repeated payment got another answer")
        _expect(again.headers.get(SENT) == "true", f"the repeated answer does not say {SENT}")
        _expect(self._chain.balance(self._me.address) == held, "the repeated payment was charged again")
        self._console.print(
            "\n[bold]4. Send the first payment again[/]  the same bytes come back, "
            f"{SENT}: true, and nothing is charged\n"
        )

    def _balances(self) -> tuple[int, int]:
        return self._chain.balance(self._me.address), self._chain.balance(self._pay_to)

    def _show_balances(self, before: tuple[int, int], after: tuple[int, int]) -> None:
        table = Table(
            "USDC",
            "before",
            "after",
            "difference",
            title_justify="left",
            title="[bold]5. The balances on the chain[/]",
        )
        for who, then, now in zip(("buyer", "seller"), before, after, strict=True):
            table.add_row(who, f"{then / 1e6:,.2f}", f"{now / 1e6:,.2f}", f"{(now - then) / 1e6:+,.2f}")
        self._console.print(table)
        moved = (before[0] - after[0], after[1] - before[1])
        _expect(moved == (30_000, 30_000), f"{moved} millionths of a USDC moved, where 30000 were due")


def _receipt(response: httpx.Response) -> dict[str, Any]:
    return json.loads(b64decode(response.headers["PAYMENT-RESPONSE"]))


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not holds:
        raise DemoFailed(otherwise)
