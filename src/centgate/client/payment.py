"""A payment for one request: what is signed, and what it is bound to."""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import Any, cast

from pydantic import BaseModel, ConfigDict

from centgate.client.errors import InvalidInput, Issue
from centgate.client.terms import Option
from centgate.client.wallet import Wallet
from centgate.eip3009 import domain_separator, transfer_digest

IDENTIFIER = "payment-identifier"


@dataclass(frozen=True, slots=True)
class Order:
    """The request a payment is for: the API's origin, the path, and the body in its one spelling."""

    api: str
    path: str
    body: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of the body."""
        return sha256(self.body).hexdigest()


class Payment(BaseModel):
    """A signed payment, as it is sent and as the ledger keeps it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    api: str
    path: str
    body: str
    """SHA-256 of the request's body."""
    network: str
    asset: str
    payer: str
    payee: str
    usd: Decimal
    nonce: str
    valid_before: int
    """When its authorization ends, in seconds since 1970."""
    header: str
    """`PAYMENT-SIGNATURE`, the same bytes each time it is sent."""

    def __repr__(self) -> str:
        return f"Payment({self.usd} USD from {self.payer} to {self.payee}, nonce {self.nonce})"

    __str__ = __repr__

    def fits(self, order: Order) -> bool:
        """Whether it was signed for this request."""
        return (self.api, self.path, self.body) == (order.api, order.path, order.digest)


def canonical(body: Mapping[str, Any]) -> bytes:
    """A body in its one spelling, so that equal requests are equal bytes; InvalidInput when JSON has none."""
    try:
        text = json.dumps(
            body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
        )
        content = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the body is no JSON: {error}"
        raise InvalidInput(message, [Issue("", message)]) from None
    if not content.startswith(b"{"):
        raise InvalidInput("the body must be a JSON object", [Issue("", "the body must be a JSON object")])
    return content


def _plain(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(cast(Mapping[Any, Any], value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def fresh_nonce() -> str:
    """32 random bytes, which make a payment one of its own (EIP-3009)."""
    return "0x" + secrets.token_hex(32)


def sign(option: Option, order: Order, wallet: Wallet, *, nonce: str, now: float) -> Payment:
    """Sign what the terms ask for, for one request."""
    valid_before = int(now) + option.window
    authorization = {
        "from": wallet.address,
        "to": option.payee,
        "value": str(option.amount),
        "validAfter": "0",
        "validBefore": str(valid_before),
        "nonce": nonce,
    }
    token = option.asset
    domain = domain_separator(token.name, token.version, option.chain_id, token.address)
    digest = transfer_digest(
        domain,
        payer=wallet.address,
        to=option.payee,
        value=option.amount,
        valid_after=0,
        valid_before=valid_before,
        nonce=nonce,
    )
    payload = {
        "x402Version": 2,
        "resource": option.offer.resource,
        "accepted": option.raw,
        "payload": {"signature": "0x" + wallet.sign(digest).hex(), "authorization": authorization},
        "extensions": _echo(option.offer.extensions),
    }
    return Payment(
        api=order.api,
        path=order.path,
        body=order.digest,
        network=option.network,
        asset=token.address,
        payer=wallet.address,
        payee=option.payee,
        usd=option.usd,
        nonce=nonce,
        valid_before=valid_before,
        header=b64encode(json.dumps(payload, separators=(",", ":")).encode()).decode(),
    )


def _echo(extensions: Mapping[str, Any]) -> dict[str, Any]:
    """The extensions unchanged, and an idempotency key where one is asked for (x402 `payment-identifier`)."""
    echoed = dict(extensions)
    offered = echoed.get(IDENTIFIER)
    if isinstance(offered, dict):
        block = cast(dict[str, Any], offered)
        info = block.get("info")
        told = cast(dict[str, Any], info) if isinstance(info, dict) else {}
        echoed[IDENTIFIER] = {**block, "info": {**told, "id": "pay_" + secrets.token_hex(16)}}
    return echoed
