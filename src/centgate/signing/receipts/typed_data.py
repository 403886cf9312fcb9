"""EIP-712 digests of the statements a server signs: x402's offers and receipts, and Centgate's answers.

Offer and Receipt are those of x402's extension `offer-receipt` (https://github.com/x402-foundation/x402,
specs/extensions/extension-offer-and-receipt.md, sections 3.2, 4.3 and 5.3); Answer is Centgate's own, see
docs/decisions/0018-receipts.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from centgate.signing.evm import keccak

VERSION = 1
"""Version of the payloads of offers and receipts."""
MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser keeps exact."""

FieldType = Literal["uint256", "string", "bytes32"]
_DOMAIN_TYPE = keccak(b"EIP712Domain(string name,string version,uint256 chainId)")
_BYTES32 = re.compile(r"0x[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class StatementType:
    """Type of a signed statement: its name, its signing domain, and its fields in order."""

    name: str
    domain: str
    fields: Mapping[str, FieldType]
    absent: Mapping[str, Any]
    """Values that are signed for omitted optional fields."""

    def digest(self, payload: Mapping[str, Any]) -> bytes:
        """Return the 32 bytes that are signed. Raises ValueError with the reason for an invalid payload.

        A field outside the signed type is an error too: it would look signed.
        """
        values = {**self.absent, **payload}
        if unknown := next((each for each in values if each not in self.fields), None):
            raise ValueError(f"it has a field {unknown[:40]!r}, which is not part of the signed type")
        if missing := next((each for each in self.fields if each not in values), None):
            raise ValueError(f"its field {missing!r} is missing")
        words = [_encode_value(kind, values[name], name) for name, kind in self.fields.items()]
        if values.get("version", VERSION) != VERSION:
            raise ValueError(f"its version is {values['version']}, but only version {VERSION} is supported")
        return keccak(b"\x19\x01" + self._domain_separator + keccak(self._type_hash + b"".join(words)))

    @cached_property
    def _type_hash(self) -> bytes:
        fields = ",".join(f"{kind} {name}" for name, kind in self.fields.items())
        return keccak(f"{self.name}({fields})".encode())

    @cached_property
    def _domain_separator(self) -> bytes:
        # always chain 1, whatever the payment's network: statements are never sent to a chain (section 3.2)
        return keccak(_DOMAIN_TYPE + keccak(self.domain.encode()) + keccak(b"1") + (1).to_bytes(32, "big"))


OFFER = StatementType(
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
RECEIPT = StatementType(
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
ANSWER = StatementType("Answer", "Centgate answer", {"receipt": "bytes32", "bodySha256": "bytes32"}, {})
"""States that the answer of a receipt had these bytes; `receipt` is the digest of the receipt."""


def _encode_value(kind: FieldType, value: Any, name: str) -> bytes:
    """Encode a value as the 32 bytes of an EIP-712 struct member."""
    if kind == "uint256":
        if type(value) is not int or not 0 <= value <= MAX_SAFE_INTEGER:
            raise ValueError(f"its field {name!r} is not an integer")
        return value.to_bytes(32, "big")
    if not isinstance(value, str):
        raise ValueError(f"its field {name!r} is not a string")
    if kind == "string":
        return keccak(value.encode())
    if not _BYTES32.fullmatch(value):
        raise ValueError(f"its field {name!r} is not 0x and 64 hex digits")
    return bytes.fromhex(value[2:])
