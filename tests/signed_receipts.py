"""Signed receipts and offers as a Centgate server creates them, and invalid variants."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from centgate.signing.receipts.signer import ReceiptSigner

SIGNER = ReceiptSigner(bytes.fromhex("5e" * 32))
OTHER = ReceiptSigner(bytes.fromhex("07" * 32))
URL = "https://api.centgate.example/services/phishing-check"
BODY = b'{"service":"phishing-check","data":{"status":"blocked","note":"\xc3\xa4\xe2\x82\xac"}}'
TERMS = {
    "scheme": "exact",
    "network": "eip155:84532",
    "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
    "amount": "10000",
    "payTo": "0x2222222222222222222222222222222222222222",
}
SETTLED = {
    "success": True,
    "payer": "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a",
    "transaction": "0x" + "ab" * 32,
    "network": "eip155:84532",
    "amount": "10000",
}


def signed_settle_response(
    signer: ReceiptSigner = SIGNER, body: bytes = BODY, **changes: Any
) -> dict[str, Any]:
    """Return a SettleResponse with its receipt."""
    settled = {**SETTLED, **changes}
    return json.loads(
        json.dumps({**settled, "extensions": signer.sign_receipt(settled, URL, body, now=1_790_000_000)})
    )


def signed_payment_required(signer: ReceiptSigner = SIGNER, url: str = URL) -> dict[str, Any]:
    """Return a PaymentRequired with its offer."""
    return {
        "x402Version": 2,
        "accepts": [dict(TERMS)],
        "extensions": signer.sign_offers([TERMS], url, until=1_790_000_150),
    }


RECEIPT = ("extensions", "offer-receipt", "info", "receipt")
ANSWER = ("extensions", "centgate-answer", "info", "answer")
OFFER = ("extensions", "offer-receipt", "info", "offers", 0)


def with_value_at(message: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Return a copy with another value at a path."""
    changed = deepcopy(message)
    node: Any = changed
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    return changed


FLIPPED = "0x" + "12" * 65
TAMPERED: dict[str, dict[str, Any]] = {
    "payer": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "payer"), "0x" + "11" * 20),
    "payer everywhere": with_value_at(
        with_value_at(signed_settle_response(), (*RECEIPT, "payload", "payer"), "0x" + "11" * 20),
        ("payer",),
        "0x" + "11" * 20,
    ),
    "network": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "network"), "eip155:8453"),
    "resource": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "resourceUrl"), URL + "s"),
    "issued": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "issuedAt"), 1_790_000_001),
    "issued as text": with_value_at(
        signed_settle_response(), (*RECEIPT, "payload", "issuedAt"), "1790000000"
    ),
    "issued too large": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "issuedAt"), 2**53),
    "issued negative": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "issuedAt"), -1),
    "issued as truth": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "issuedAt"), value=True),
    "transaction": with_value_at(
        signed_settle_response(), (*RECEIPT, "payload", "transaction"), "0x" + "cd" * 32
    ),
    "transaction emptied": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "transaction"), ""),
    "version": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "version"), 2),
    "a field more": with_value_at(signed_settle_response(), (*RECEIPT, "payload", "amount"), "1"),
    "payload": with_value_at(signed_settle_response(), (*RECEIPT, "payload"), None),
    "payload is a list": with_value_at(signed_settle_response(), (*RECEIPT, "payload"), []),
    "signature": with_value_at(signed_settle_response(), (*RECEIPT, "signature"), FLIPPED),
    "signature cut": with_value_at(signed_settle_response(), (*RECEIPT, "signature"), "0x1234"),
    "signature no hex": with_value_at(signed_settle_response(), (*RECEIPT, "signature"), "0x" + "zz" * 65),
    "signature a number": with_value_at(signed_settle_response(), (*RECEIPT, "signature"), 5),
    "format": with_value_at(signed_settle_response(), (*RECEIPT, "format"), "jws"),
    "receipt a text": with_value_at(signed_settle_response(), RECEIPT, "receipt"),
    "no receipt": with_value_at(signed_settle_response(), ("extensions",), {}),
    "extensions a list": with_value_at(signed_settle_response(), ("extensions",), []),
    "settlement failed": with_value_at(signed_settle_response(), ("success",), value=False),
    "settlement's payer": with_value_at(signed_settle_response(), ("payer",), "0x" + "11" * 20),
    "settlement's network": with_value_at(signed_settle_response(), ("network",), "eip155:8453"),
    "settlement's transaction": with_value_at(signed_settle_response(), ("transaction",), "0x" + "cd" * 32),
    "answer's receipt": with_value_at(
        signed_settle_response(), (*ANSWER, "payload", "receipt"), "0x" + "00" * 32
    ),
    "answer's hash": with_value_at(
        signed_settle_response(), (*ANSWER, "payload", "bodySha256"), "0x" + "00" * 32
    ),
    "answer's hash cut": with_value_at(signed_settle_response(), (*ANSWER, "payload", "bodySha256"), "0x00"),
    "answer's signature": with_value_at(signed_settle_response(), (*ANSWER, "signature"), FLIPPED),
    "answer of another receipt": with_value_at(
        signed_settle_response(),
        ("extensions", "centgate-answer"),
        signed_settle_response(transaction="0x" + "cd" * 32)["extensions"]["centgate-answer"],
    ),
    "answer by another": with_value_at(
        signed_settle_response(),
        ("extensions", "centgate-answer"),
        signed_settle_response(OTHER)["extensions"]["centgate-answer"],
    ),
}
"""Deliveries that fail verification against the body."""
