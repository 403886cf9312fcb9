"""Name, symbol, decimals and supply of a token. No I/O."""

from __future__ import annotations

from msgspec import Struct

MAX_DECIMALS = 77
"""Decimals with which one whole token still fits into 256 bits."""


class TokenIdentity(Struct, frozen=True):
    """Facts that a token states of itself. Its name and symbol are untrusted text, cleaned and cut."""

    name: str | None = None
    symbol: str | None = None
    decimals: int | None = None
    total_supply: int | None = None
    """Base units."""

    @property
    def supply(self) -> float | None:
        """Whole tokens that exist; None without readable decimals."""
        if self.total_supply is None or self.decimals is None or self.decimals > MAX_DECIMALS:
            return None
        return self.total_supply / 10**self.decimals
