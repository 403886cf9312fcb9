"""Keccak-256 and EIP-55 address checksums, common to all EVM chains."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast

import sha3  # safe-pysha3


def keccak(data: bytes) -> bytes:
    """Return the Keccak-256 hash, with the padding used before SHA-3 was standardised."""
    return cast(bytes, sha3.keccak_256(data).digest())  # pyright: ignore[reportUnknownMemberType]


def parse_address(text: str) -> str:
    """Return an address in lower case. Raises ValueError if it is none, or its checksum (EIP-55) is wrong."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", text):
        raise ValueError(f"{text[:60]!r} is not an address")
    if text[2:] not in (text[2:].lower(), text[2:].upper()):
        to_checksum_address(text)
    return text.lower()


def encode_word(value: str) -> str:
    """Encode an address or a nonce as a 32-byte word in hex, without 0x."""
    return value.lower().removeprefix("0x").rjust(64, "0")


@lru_cache(4096)  # a few buyers send most requests
def to_checksum_address(address: str) -> str:
    """Return an address in EIP-55's mixed case. Raises ValueError if its present mixed case is wrong."""
    digits = address[2:].lower()
    hashed = keccak(digits.encode()).hex()
    proper = "0x" + "".join(
        digit.upper() if int(nibble, 16) >= 8 else digit
        for digit, nibble in zip(digits, hashed, strict=False)
    )
    if address[2:] not in (digits, digits.upper()) and address != proper:
        raise ValueError(f"{address} is mistyped: its checksum (EIP-55) is wrong")
    return proper
