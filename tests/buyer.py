"""Buyer that signs any payment, with eth-account's EIP-712 encoder as an oracle."""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from eth_account import Account

from centgate.devchain.accounts import BUYER_ACCOUNTS

ApiFactory = Callable[..., httpx.Client]
"""Function that serves an API with these settings and returns its client."""

SHARED = httpx.Limits(max_connections=None, max_keepalive_connections=None)
"""Limits for a client that many threads use.

With a limit on idle connections, httpcore's pool may close a connection that another thread was just
given, and that thread's read fails with EBADF.
"""

PHISHING = "/services/phishing-check"
QUESTION = {"url": "https://wallet-ethereum.net/unlock"}

TYPES = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


def decode_header(header: str) -> Any:
    """Decode the JSON of an x402 header."""
    return json.loads(b64decode(header))


def encode_header(content: Any) -> str:
    """Encode JSON as an x402 header."""
    return b64encode(json.dumps(content).encode()).decode()


@dataclass(frozen=True)
class Buyer:
    """One of the ten payers of the development chain."""

    number: int = 0

    @property
    def address(self) -> str:
        return BUYER_ACCOUNTS[self.number].address

    def payload(self, terms: str, *, now: int, seconds: int = 120, **changes: Any) -> dict[str, Any]:
        """Return a signed PaymentPayload for the terms of a 402; `changes` replace fields before signing."""
        offer = decode_header(terms)
        requirements = offer["accepts"][0]
        authorization: dict[str, Any] = {
            "from": self.address,
            "to": requirements["payTo"],
            "value": requirements["amount"],
            "validAfter": "0",
            "validBefore": str(now + seconds),
            "nonce": "0x" + secrets.token_hex(32),
        } | changes
        return {
            "x402Version": 2,
            "resource": {"url": offer["resource"]["url"]},
            "accepted": requirements,
            "payload": {
                "signature": self.signature(requirements, authorization),
                "authorization": authorization,
            },
        }

    def signature(self, wanted: dict[str, Any], authorization: dict[str, Any]) -> str:
        """Return the payer's signature over an authorization."""
        numbers = {name: int(authorization[name]) for name in ("value", "validAfter", "validBefore")}
        signed = Account.sign_typed_data(
            BUYER_ACCOUNTS[self.number].private_key,
            domain_data={
                "name": wanted["extra"]["name"],
                "version": wanted["extra"]["version"],
                "chainId": int(wanted["network"].removeprefix("eip155:")),
                "verifyingContract": wanted["asset"],
            },
            message_types=TYPES,
            message_data={**authorization, **numbers},
        )
        return "0x" + signed.signature.hex().removeprefix("0x")


def fetch_terms(client: httpx.Client, path: str = PHISHING, body: Any = QUESTION) -> str:
    """Return the terms of an unpaid request, as encoded in the header."""
    response = client.post(path, json=body)
    assert response.status_code == 402, response.text
    return response.headers["PAYMENT-REQUIRED"]


def sign_payload(client: httpx.Client, buyer: Buyer, path: str = PHISHING, **changes: Any) -> dict[str, Any]:
    """Sign a new payment for a route, not encoded; `changes` as in `Buyer.payload`."""
    return buyer.payload(fetch_terms(client, path, None), now=int(time.time()), **changes)


def sign_payment(client: httpx.Client, buyer: Buyer, path: str = PHISHING, body: Any = QUESTION) -> str:
    """Sign a new payment for a request, encoded as `PAYMENT-SIGNATURE`."""
    return encode_header(buyer.payload(fetch_terms(client, path, body), now=int(time.time())))


def with_identifier(payload: dict[str, Any], identifier: Any) -> str:
    """Encode a payment with an idempotency key as `PAYMENT-SIGNATURE`."""
    extension = {"payment-identifier": {"info": {"required": False, "id": identifier}}}
    return encode_header({**payload, "extensions": extension})


def pay(client: httpx.Client, payment: str, path: str = PHISHING, body: Any = QUESTION) -> httpx.Response:
    """Send a request with a payment and return the response."""
    return client.post(path, json=body, headers={"PAYMENT-SIGNATURE": payment})


def payment_note(response: httpx.Response) -> dict[str, Any]:
    """Return the payment note of an error."""
    return response.json()["error"]["details"]["payment"]
