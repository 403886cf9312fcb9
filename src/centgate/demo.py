"""`make demo`: a buyer's first calls, for real, on a development chain; each step is checked."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import httpx
from eth_account import Account as EthAccount
from rich.console import Console
from rich.table import Column, Table
from x402 import x402ClientSync
from x402.http import encode_payment_signature_header
from x402.mechanisms.evm.exact import ExactEvmClientScheme
from x402.mechanisms.evm.signers import EthAccountSigner
from x402.schemas import PaymentRequired

from centgate import server
from centgate.dev import Development, development
from centgate.devchain.accounts import Account
from centgate.devchain.house import DevChain
from centgate.devchain.node import ask
from centgate.settings import Settings

PHISHING, WALLET, APPROVALS = "/services/phishing-check", "/services/wallet-brief", "/services/approval-risk"
KNOWN, LOOKALIKE, GOOD = "https://wallet-ethereum.net/unlock", "myetherwallet.cx", "https://metamask.io"
SENT = "Idempotent-Replayed"
CENT = 10_000
"""One US cent in the token's base units."""
EVERYTHING = 2**256 - 1
APPROVE = bytes.fromhex("095ea7b3")  # approve(address,uint256)


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
    console.print("\n[bold green]Done.[/] Five answers for five cents, and a repetition for nothing.")


class _Buyer:
    """Somebody with a thousand test dollars and a few doubtful links."""

    def __init__(self, console: Console, house: Development, http: httpx.Client) -> None:
        self._console, self._chain, self._http = console, house.chain, http
        self._pay_to = house.settings.pay_to or ""
        self._me = house.chain.accounts[0]
        self._wallet = x402ClientSync()
        signer = EthAccountSigner(EthAccount.from_key(self._me.private_key))
        self._wallet.register(house.settings.network, ExactEvmClientScheme(signer))

    def shop(self) -> None:
        """The whole story."""
        before = self._balances()
        terms = self._ask(PHISHING, {"url": KNOWN})
        first, paid = self._pay(PHISHING, {"url": KNOWN}, terms)
        verdicts = [first, *(self._buy(PHISHING, {"url": url}) for url in (LOOKALIKE, GOOD))]
        self._show_verdicts(verdicts)
        self._show_receipt(first)
        self._repeat(first, paid)
        self._let_spend()
        wallet = {"chainId": self._chain.chain_id, "walletAddress": self._me.address}
        self._show_approvals(self._buy(APPROVALS, wallet).json())
        self._show_wallet(self._buy(WALLET, wallet).json())
        self._show_balances(before, self._balances())

    def _ask(self, path: str, body: dict[str, Any]) -> str:
        """Ask without paying: the terms, as the header carries them."""
        header = self._terms(path, body)
        offer = PaymentRequired.model_validate_json(b64decode(header)).accepts[0]
        self._console.print(f"[bold]1. Ask[/]  POST {path} {json.dumps(body)}")
        self._console.print("   [yellow]402 Payment Required[/]; the terms, decoded:")
        for name in ("scheme", "network", "amount", "asset", "pay_to", "max_timeout_seconds", "extra"):
            self._console.print(f"     {name:<20} {getattr(offer, name)}")
        self._console.print(f"   That is {int(offer.amount) / 1e6:.2f} USDC on the development chain.\n")
        return header

    def _terms(self, path: str, body: dict[str, Any]) -> str:
        response = self._http.post(path, json=body)
        _expect(
            response.status_code == 402,
            f"an unpaid request was answered with {response.status_code}, not 402",
        )
        return response.headers["PAYMENT-REQUIRED"]

    def _pay(self, path: str, body: dict[str, Any], terms: str) -> tuple[httpx.Response, str]:
        """Sign the terms and send the same request with the payment."""
        offer = PaymentRequired.model_validate_json(b64decode(terms))
        payload = self._wallet.create_payment_payload(offer)
        signature = encode_payment_signature_header(payload)
        response = self._send(path, body, signature)
        _expect(response.status_code == 200, f"a paid request was answered with {response.text}")
        return response, signature

    def _buy(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self._pay(path, body, self._terms(path, body))[0]

    def _send(self, path: str, body: dict[str, Any], signature: str) -> httpx.Response:
        return self._http.post(path, json=body, headers={"PAYMENT-SIGNATURE": signature})

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
        again = self._send(PHISHING, {"url": KNOWN}, signature)
        _expect(again.content == first.content, "the repeated payment got another answer")
        _expect(again.headers.get(SENT) == "true", f"the repeated answer does not say {SENT}")
        _expect(self._chain.balance(self._me.address) == held, "the repeated payment was charged again")
        self._console.print(
            "\n[bold]4. Send the first payment again[/]  the same bytes come back, "
            f"{SENT}: true, and nothing is charged\n"
        )

    def _let_spend(self) -> None:
        """Do on the chain what many regret later: let a stranger spend everything."""
        self._stranger = self._chain.accounts[9].address.lower()
        approve(self._chain, self._me, self._stranger, EVERYTHING)
        self._console.print(
            "[bold]5. Look at a wallet[/]  the buyer lets a stranger spend all its USDC, and asks the chain\n"
        )

    def _show_approvals(self, answer: dict[str, Any]) -> None:
        spender = Column("spender", overflow="fold")
        table = Table(
            "token", spender, "allowance", "severity", "why", title="approval-risk", title_justify="left"
        )
        approvals = answer["data"]["approvals"]
        for approval in approvals:
            allowance = approval["allowance"]
            table.add_row(
                approval["token"]["symbol"],
                approval["spender"]["address"],
                "unlimited" if allowance["unlimited"] else str(allowance["amount"]),
                approval["severity"],
                ", ".join(finding["id"] for finding in approval["findings"]),
            )
        self._console.print(table)
        for recommendation in answer["data"]["recommendations"]:
            self._console.print(f"   [yellow]{recommendation['action']}[/] {recommendation['reason']}\n")
        spenders = [approval["spender"]["address"] for approval in approvals]
        _expect(spenders == [self._stranger], f"the approval just given is not the one found: {spenders}")
        _expect(answer["data"]["unlimitedCount"] == 1, "the unlimited approval is not counted")

    def _show_wallet(self, answer: dict[str, Any]) -> None:
        data = answer["data"]
        table = Table("holding", "amount", title="wallet-brief", title_justify="left")
        held = {each["tokenAddress"]: each for each in data["tokenBalances"]}
        for each in (data["nativeBalance"], *held.values()):
            table.add_row(each["symbol"], f"{each['amount']:,.4f}")
        self._console.print(table)
        out = [each for each in data["recentTransfers"] if each["direction"] == "out"]
        self._console.print(f"   {len(out)} recent payments out, the latest in {out[0]['transactionHash']}\n")
        for warning in answer["warnings"]:
            self._console.print(f"   [yellow]warning[/] {warning}")
        self._console.print()
        usdc = held[self._chain.token.lower()]["amountBaseUnits"]
        _expect(
            int(usdc) == self._chain.balance(self._me.address),
            f"{usdc} is not what the buyer holds of the token",
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
            title="[bold]6. The balances on the chain[/]",
        )
        for who, then, now in zip(("buyer", "seller"), before, after, strict=True):
            table.add_row(who, f"{then / 1e6:,.2f}", f"{now / 1e6:,.2f}", f"{(now - then) / 1e6:+,.2f}")
        self._console.print(table)
        moved = (before[0] - after[0], after[1] - before[1])
        _expect(
            moved == (5 * CENT, 5 * CENT), f"{moved} millionths of a USDC moved, where {5 * CENT} were due"
        )


def approve(chain: DevChain, owner: Account, spender: str, amount: int) -> None:
    """Let `spender` move so much of the owner's USDC: a transaction by the owner, mined when this returns."""
    data = APPROVE + bytes.fromhex(spender[2:]).rjust(32, b"\0") + amount.to_bytes(32)
    transaction = {
        "chainId": chain.chain_id,
        "nonce": int(ask(chain.rpc_url, "eth_getTransactionCount", owner.address, "latest"), 16),
        "to": chain.token,
        "data": "0x" + data.hex(),
        "gas": 100_000,
        "maxFeePerGas": 10**10,
        "maxPriorityFeePerGas": 10**9,
    }
    signed = EthAccount.sign_transaction(transaction, owner.private_key)
    ask(chain.rpc_url, "eth_sendRawTransaction", "0x" + signed.raw_transaction.hex().removeprefix("0x"))


def _receipt(response: httpx.Response) -> dict[str, Any]:
    return json.loads(b64decode(response.headers["PAYMENT-RESPONSE"]))


def _expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not holds:
        raise DemoFailed(otherwise)
