"""Buyer of the demo, with a thousand test dollars: requests terms, signs and pays."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import httpx
from eth_account import Account as EthAccount
from rich.console import Console, RenderableType
from rich.markup import escape
from x402 import x402ClientSync
from x402.http import encode_payment_signature_header
from x402.mechanisms.evm.exact import ExactEvmClientScheme
from x402.mechanisms.evm.signers import EthAccountSigner
from x402.schemas import PaymentRequired

from centgate.devchain.devnet import DevChain
from centgate.settings import Settings


class DemoFailed(RuntimeError):
    """A demo step failed."""


def expect(condition: bool, message: str) -> None:  # noqa: FBT001 - it reads as a sentence
    """Raise DemoFailed unless the condition holds."""
    if not condition:
        raise DemoFailed(message)


class DemoBuyer:
    """Buyer with the first account of the development chain."""

    def __init__(self, console: Console, chain: DevChain, settings: Settings, http: httpx.Client) -> None:
        self._console, self._http = console, http
        self.chain = chain
        self.account = chain.accounts[0]
        self.paid_count = 0
        """Number of paid answers so far."""
        self._wallet = x402ClientSync()
        signer = EthAccountSigner(EthAccount.from_key(self.account.private_key))
        self._wallet.register(settings.network, ExactEvmClientScheme(signer))

    def print_line(self, line: RenderableType = "") -> None:
        """Print a line or another renderable."""
        self._console.print(line)

    def print_warnings(self, answer: dict[str, Any]) -> None:
        """Print the warnings of an answer."""
        for warning in answer["warnings"]:
            self.print_line(f"   [yellow]warning[/] {escape(warning)}")

    def request_terms(self, path: str, body: dict[str, Any]) -> str:
        """Send an unpaid request and return the PAYMENT-REQUIRED header."""
        response = self._http.post(path, json=body)
        expect(
            response.status_code == 402,
            f"an unpaid request was answered with {response.status_code}, not 402",
        )
        return response.headers["PAYMENT-REQUIRED"]

    def pay(self, path: str, body: dict[str, Any], terms: str) -> tuple[httpx.Response, str]:
        """Sign the terms and repeat the request with the payment. Returns the response and the payment."""
        signature = self._sign(terms)
        response = self.send_payment(path, body, signature)
        expect(response.status_code == 200, f"a paid request was answered with {response.text}")
        self.paid_count += 1
        return response, signature

    def refuse(self, path: str, body: dict[str, Any], terms: str) -> dict[str, Any]:
        """Sign the terms for a request that cannot be answered. Returns the error, which charged nothing."""
        response = self.send_payment(path, body, self._sign(terms))
        error = response.json().get("error", {})
        charged = error.get("details", {}).get("payment", {}).get("charged")
        expect(charged is False, f"a request that cannot be answered was charged: {response.text}")
        return error

    def send_payment(self, path: str, body: dict[str, Any], signature: str) -> httpx.Response:
        """Send a request with a payment."""
        return self._http.post(path, json=body, headers={"PAYMENT-SIGNATURE": signature})

    def buy(self, path: str, body: dict[str, Any]) -> httpx.Response:
        """Pay for a request and return its response."""
        return self.pay(path, body, self.request_terms(path, body))[0]

    def _sign(self, terms: str) -> str:
        payload = self._wallet.create_payment_payload(PaymentRequired.model_validate_json(b64decode(terms)))
        return encode_payment_signature_header(payload)
