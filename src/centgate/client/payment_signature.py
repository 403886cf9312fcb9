"""Signature of a payment for one request: its canonical body, and the authorization under chosen terms."""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

from centgate.client.errors import InputIssue, InvalidInput
from centgate.client.payment import Payment, PurchaseOrder
from centgate.client.quote import PaymentOption
from centgate.client.wallet import Wallet
from centgate.signing.eip3009 import domain_separator, transfer_digest

IDENTIFIER = "payment-identifier"


def canonical_json(body: Mapping[str, Any]) -> bytes:
    """Serialize a body canonically, so that equal requests are equal bytes. Raises InvalidInput."""
    try:
        text = json.dumps(
            body,
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
            default=_mapping_to_dict,
        )
        content = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the body cannot be written as JSON: {error}"
        raise InvalidInput(message, [InputIssue("", message)]) from None
    if not content.startswith(b"{"):
        raise InvalidInput(
            "the body must be a JSON object", [InputIssue("", "the body must be a JSON object")]
        )
    return content


def _mapping_to_dict(value: Any) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(cast(Mapping[Any, Any], value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def generate_nonce() -> str:
    """Return 32 random bytes in hex, the unique nonce of a payment (EIP-3009)."""
    return "0x" + secrets.token_hex(32)


def sign_payment(
    option: PaymentOption, order: PurchaseOrder, wallet: Wallet, *, nonce: str, now: float
) -> Payment:
    """Sign a payment under the chosen terms for one request."""
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
        "extensions": _echo_extensions(option.offer.extensions),
    }
    return Payment(
        api=order.api,
        path=order.path,
        service=order.service,
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


def _echo_extensions(extensions: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the extensions, with an idempotency key if one is required (x402 `payment-identifier`)."""
    echoed = dict(extensions)
    identifier = echoed.get(IDENTIFIER)
    if isinstance(identifier, dict):
        block = cast(dict[str, Any], identifier)
        info = block.get("info")
        offered_info = cast(dict[str, Any], info) if isinstance(info, dict) else {}
        echoed[IDENTIFIER] = {**block, "info": {**offered_info, "id": "pay_" + secrets.token_hex(16)}}
    return echoed
