"""Who signs offers and receipts, and how they stand in x402's messages."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from pydantic import SecretStr

from centgate.eip3009 import address_of, sign
from centgate.evm import checksummed
from centgate.receipts.typed_data import ANSWER, OFFER, RECEIPT, VERSION, Statement

EXTENSION = "offer-receipt"
"""x402's own, for offers and receipts."""
ANSWERED = "centgate-answer"
"""Ours, beside it, for what an answer was."""


class Signer:
    """The operator's key for what the server says of its own."""

    def __init__(self, key: bytes) -> None:
        """`key` has 32 bytes; ValueError when it is none of secp256k1."""
        self._key = key
        self.address = checksummed(address_of(key))

    def offer(self, requirements: Mapping[str, Any], url: str, *, until: int) -> dict[str, Any]:
        """The extension of a 402: the one entry of `accepts`, promised until a time in seconds since 1970."""
        terms = {name: requirements[name] for name in ("scheme", "network", "asset", "payTo", "amount")}
        payload = {"version": VERSION, "resourceUrl": url, **terms, "validUntil": until}
        signed = {**self._signed(OFFER, payload), "acceptIndex": 0}
        return {EXTENSION: _block("offers", [signed])}

    def receipt(self, settlement: Mapping[str, Any], url: str, body: bytes, *, now: int) -> dict[str, Any]:
        """The extensions of a SettleResponse: the receipt, and what the answer was that it is for."""
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
            EXTENSION: _block("receipt", self._signed(RECEIPT, payload)),
            ANSWERED: _block("answer", self._signed(ANSWER, answer)),
        }

    def _signed(self, statement: Statement, payload: dict[str, Any]) -> dict[str, Any]:
        signature = sign(statement.digest(payload), self._key)
        return {"format": "eip712", "payload": payload, "signature": "0x" + signature.hex()}


def signer_of(key: SecretStr | None) -> Signer | None:
    """Who signs with the key that is set, nobody where none is; ValueError for what is no key."""
    if key is None:
        return None
    try:
        return Signer(bytes.fromhex(key.get_secret_value().removeprefix("0x")))
    except ValueError:  # its own words would repeat a part of the key
        raise ValueError(
            "this is no private key: it takes 64 hex digits, as `openssl rand -hex 32` makes them"
        ) from None


def _block(name: str, content: Any) -> dict[str, Any]:
    """An extension as x402 has them; its schema says no more than it must, since headers have little room."""
    return {"info": {name: content}, "schema": {"type": "object", "required": [name]}}
