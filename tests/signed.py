"""Signed receipts and offers as a Centgate server creates them, and invalid variants."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from centgate.receipts.signer import Signer

SIGNER = Signer(bytes.fromhex("5e" * 32))
OTHER = Signer(bytes.fromhex("07" * 32))
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


def delivery(signer: Signer = SIGNER, body: bytes = BODY, **changes: Any) -> dict[str, Any]:
    """Return a SettleResponse with its receipt."""
    settled = {**SETTLED, **changes}
    return json.loads(
        json.dumps({**settled, "extensions": signer.receipt(settled, URL, body, now=1_790_000_000)})
    )


def demand(signer: Signer = SIGNER, url: str = URL) -> dict[str, Any]:
    """Return a PaymentRequired with its offer."""
    return {
        "x402Version": 2,
        "accepts": [dict(TERMS)],
        "extensions": signer.offer(TERMS, url, until=1_790_000_150),
    }


RECEIPT = ("extensions", "offer-receipt", "info", "receipt")
ANSWER = ("extensions", "centgate-answer", "info", "answer")
OFFER = ("extensions", "offer-receipt", "info", "offers", 0)


def altered(message: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Return a copy with another value at a path."""
    changed = deepcopy(message)
    node: Any = changed
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    return changed


FLIPPED = "0x" + "12" * 65
TAMPERED: dict[str, dict[str, Any]] = {
    "payer": altered(delivery(), (*RECEIPT, "payload", "payer"), "0x" + "11" * 20),
    "payer everywhere": altered(
        altered(delivery(), (*RECEIPT, "payload", "payer"), "0x" + "11" * 20), ("payer",), "0x" + "11" * 20
    ),
    "network": altered(delivery(), (*RECEIPT, "payload", "network"), "eip155:8453"),
    "resource": altered(delivery(), (*RECEIPT, "payload", "resourceUrl"), URL + "s"),
    "issued": altered(delivery(), (*RECEIPT, "payload", "issuedAt"), 1_790_000_001),
    "issued as text": altered(delivery(), (*RECEIPT, "payload", "issuedAt"), "1790000000"),
    "issued too large": altered(delivery(), (*RECEIPT, "payload", "issuedAt"), 2**53),
    "issued negative": altered(delivery(), (*RECEIPT, "payload", "issuedAt"), -1),
    "issued as truth": altered(delivery(), (*RECEIPT, "payload", "issuedAt"), value=True),
    "transaction": altered(delivery(), (*RECEIPT, "payload", "transaction"), "0x" + "cd" * 32),
    "transaction emptied": altered(delivery(), (*RECEIPT, "payload", "transaction"), ""),
    "version": altered(delivery(), (*RECEIPT, "payload", "version"), 2),
    "a field more": altered(delivery(), (*RECEIPT, "payload", "amount"), "1"),
    "payload": altered(delivery(), (*RECEIPT, "payload"), None),
    "payload is a list": altered(delivery(), (*RECEIPT, "payload"), []),
    "signature": altered(delivery(), (*RECEIPT, "signature"), FLIPPED),
    "signature cut": altered(delivery(), (*RECEIPT, "signature"), "0x1234"),
    "signature no hex": altered(delivery(), (*RECEIPT, "signature"), "0x" + "zz" * 65),
    "signature a number": altered(delivery(), (*RECEIPT, "signature"), 5),
    "format": altered(delivery(), (*RECEIPT, "format"), "jws"),
    "receipt a text": altered(delivery(), RECEIPT, "receipt"),
    "no receipt": altered(delivery(), ("extensions",), {}),
    "extensions a list": altered(delivery(), ("extensions",), []),
    "settlement failed": altered(delivery(), ("success",), value=False),
    "settlement's payer": altered(delivery(), ("payer",), "0x" + "11" * 20),
    "settlement's network": altered(delivery(), ("network",), "eip155:8453"),
    "settlement's transaction": altered(delivery(), ("transaction",), "0x" + "cd" * 32),
    "answer's receipt": altered(delivery(), (*ANSWER, "payload", "receipt"), "0x" + "00" * 32),
    "answer's hash": altered(delivery(), (*ANSWER, "payload", "bodySha256"), "0x" + "00" * 32),
    "answer's hash cut": altered(delivery(), (*ANSWER, "payload", "bodySha256"), "0x00"),
    "answer's signature": altered(delivery(), (*ANSWER, "signature"), FLIPPED),
    "answer of another receipt": altered(
        delivery(),
        ("extensions", "centgate-answer"),
        delivery(transaction="0x" + "cd" * 32)["extensions"]["centgate-answer"],
    ),
    "answer by another": altered(
        delivery(), ("extensions", "centgate-answer"), delivery(OTHER)["extensions"]["centgate-answer"]
    ),
}
"""Deliveries that fail verification against the body."""
