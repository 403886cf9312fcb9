"""Two things every EVM chain shares: its hash, and the checksum in the case of an address."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

import sha3  # safe-pysha3


def keccak(data: bytes) -> bytes:
    """Ethereum's hash: Keccak-256 as it was before SHA-3 was standardised."""
    return cast(bytes, sha3.keccak_256(data).digest())  # pyright: ignore[reportUnknownMemberType]


@lru_cache(4096)  # the same few buyers come again and again
def checksummed(address: str) -> str:
    """An address in EIP-55's mixed case; ValueError when it is in mixed case already and mistyped."""
    digits = address[2:].lower()
    hashed = keccak(digits.encode()).hex()
    proper = "0x" + "".join(
        digit.upper() if int(nibble, 16) >= 8 else digit
        for digit, nibble in zip(digits, hashed, strict=False)
    )
    if address[2:] not in (digits, digits.upper()) and address != proper:
        raise ValueError(f"{address} is mistyped: its checksum (EIP-55) is wrong")
    return proper
