"""Sign offers and receipts, and build their extensions of x402 messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from pydantic import SecretStr

from centgate.signing.eip3009 import derive_address, sign
from centgate.signing.evm import to_checksum_address
from centgate.signing.receipts.typed_data import ANSWER, OFFER, RECEIPT, VERSION, StatementType

RECEIPT_EXTENSION = "offer-receipt"
"""x402's extension for offers and receipts."""
ANSWER_EXTENSION = "centgate-answer"
"""Centgate's own extension, for the statement about the answer."""


class ReceiptSigner:
    """Signs offers, receipts and statements about answers with the operator's receipt key."""

    def __init__(self, key: bytes) -> None:
        """Store `key`, 32 bytes. Raises ValueError if it is not a valid secp256k1 private key."""
        self._key = key
        self.address = to_checksum_address(derive_address(key))

    def sign_offers(self, accepts: Sequence[Mapping[str, Any]], url: str, *, until: int) -> dict[str, Any]:
        """Return the extension of a 402: a signed offer of each `accepts` entry, valid until a Unix time."""
        offers = [
            {**self._sign_offer(requirements, url, until), "acceptIndex": index}
            for index, requirements in enumerate(accepts)
        ]
        return {RECEIPT_EXTENSION: _build_extension("offers", offers)}

    def _sign_offer(self, requirements: Mapping[str, Any], url: str, until: int) -> dict[str, Any]:
        terms = {name: requirements[name] for name in ("scheme", "network", "asset", "payTo", "amount")}
        payload = {"version": VERSION, "resourceUrl": url, **terms, "validUntil": until}
        return self._sign_statement(OFFER, payload)

    def sign_receipt(
        self, settlement: Mapping[str, Any], url: str, body: bytes, *, now: int
    ) -> dict[str, Any]:
        """Return the extensions of a SettleResponse: the receipt, and the statement about the answer."""
        payload = {
            "version": VERSION,
            "network": settlement["network"],
            "resourceUrl": url,
            "payer": settlement["payer"],
            "issuedAt": now,
            "transaction": settlement["transaction"],
        }
        answer = {
            "receipt": "0x" + RECEIPT.digest(payload).hex(),
            "bodySha256": "0x" + sha256(body).hexdigest(),
        }
        return {
            RECEIPT_EXTENSION: _build_extension("receipt", self._sign_statement(RECEIPT, payload)),
            ANSWER_EXTENSION: _build_extension("answer", self._sign_statement(ANSWER, answer)),
        }

    def _sign_statement(self, statement: StatementType, payload: dict[str, Any]) -> dict[str, Any]:
        signature = sign(statement.digest(payload), self._key)
        return {"format": "eip712", "payload": payload, "signature": "0x" + signature.hex()}


def create_signer(key: SecretStr | None) -> ReceiptSigner | None:
    """Return a signer for the key, or None if no key is set. Raises ValueError for an invalid key."""
    if key is None:
        return None
    try:
        return ReceiptSigner(bytes.fromhex(key.get_secret_value().removeprefix("0x")))
    except ValueError:  # the original message would repeat a part of the key
        raise ValueError(
            "not a private key: expected 64 hex digits, as printed by `openssl rand -hex 32`"
        ) from None


def _build_extension(name: str, content: Any) -> dict[str, Any]:
    """Build an x402 extension; its schema is minimal because headers have little room."""
    return {"info": {name: content}, "schema": {"type": "object", "required": [name]}}
