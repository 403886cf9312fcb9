"""The EIP-712 digests of what a server signs: x402's offers and receipts, and our statement of an answer.

Offer and Receipt are those of x402's extension `offer-receipt` (https://github.com/x402-foundation/x402,
specs/extensions/extension-offer-and-receipt.md, sections 3.2, 4.3 and 5.3); Answer is our own, see
docs/decisions/0018-receipts.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from centgate.evm import keccak

VERSION = 1
"""Of offers' and receipts' payloads."""
LARGEST = 2**53 - 1
"""The largest whole number that JSON keeps whole everywhere."""

Kind = Literal["uint256", "string", "bytes32"]
_DOMAIN_TYPE = keccak(b"EIP712Domain(string name,string version,uint256 chainId)")
_BYTES32 = re.compile(r"0x[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Statement:
    """A kind of statement: its name, the domain it is signed under, and its fields in order."""

    name: str
    domain: str
    fields: Mapping[str, Kind]
    absent: Mapping[str, Any]
    """What is signed for a field that may be left out."""

    def digest(self, payload: Mapping[str, Any]) -> bytes:
        """The 32 bytes that are signed; ValueError says what is wrong with the payload.

        A field that is not among those signed is wrong too: it would look signed.
        """
        said = {**self.absent, **payload}
        if odd := next((each for each in said if each not in self.fields), None):
            raise ValueError(f"it has a field {odd[:40]!r}, which nobody signs")
        if lacking := next((each for each in self.fields if each not in said), None):
            raise ValueError(f"its field {lacking!r} is missing")
        words = [_word(kind, said[name], name) for name, kind in self.fields.items()]
        if said.get("version", VERSION) != VERSION:
            raise ValueError(f"it is of version {said['version']}, and only version {VERSION} is known")
        return keccak(b"\x19\x01" + self._separator + keccak(self._type + b"".join(words)))

    @cached_property
    def _type(self) -> bytes:
        fields = ",".join(f"{kind} {name}" for name, kind in self.fields.items())
        return keccak(f"{self.name}({fields})".encode())

    @cached_property
    def _separator(self) -> bytes:
        # chain 1 whatever the payment's network: nothing of this goes on any chain (section 3.2)
        return keccak(_DOMAIN_TYPE + keccak(self.domain.encode()) + keccak(b"1") + (1).to_bytes(32, "big"))


OFFER = Statement(
    "Offer",
    "x402 offer",
    {
        "version": "uint256",
        "resourceUrl": "string",
        "scheme": "string",
        "network": "string",
        "asset": "string",
        "payTo": "string",
        "amount": "string",
        "validUntil": "uint256",
    },
    {"validUntil": 0},
)
RECEIPT = Statement(
    "Receipt",
    "x402 receipt",
    {
        "version": "uint256",
        "network": "string",
        "resourceUrl": "string",
        "payer": "string",
        "issuedAt": "uint256",
        "transaction": "string",
    },
    {"transaction": ""},
)
ANSWER = Statement("Answer", "Centgate answer", {"receipt": "bytes32", "bodySha256": "bytes32"}, {})
"""That the answer which a receipt is for had these bytes; `receipt` is the digest of the receipt."""


def _word(kind: Kind, value: Any, name: str) -> bytes:
    """The 32 bytes that stand for a value in the struct's encoding."""
    if kind == "uint256":
        if type(value) is not int or not 0 <= value <= LARGEST:
            raise ValueError(f"its field {name!r} is no whole number")
        return value.to_bytes(32, "big")
    if not isinstance(value, str):
        raise ValueError(f"its field {name!r} is no text")
    if kind == "string":
        return keccak(value.encode())
    if not _BYTES32.fullmatch(value):
        raise ValueError(f"its field {name!r} is not 0x and 64 hex digits")
    return bytes.fromhex(value[2:])
