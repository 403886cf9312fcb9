"""Pools of a token as the chain shows them. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PoolKind = Literal["v2", "solidly", "v3", "algebra", "v4"]
"""Interface of a pool: Uniswap v2 and its forks; Aerodrome and Velodrome; Uniswap v3, PancakeSwap v3 and
Slipstream; Algebra; Uniswap v4."""


@dataclass(frozen=True, slots=True)
class PoolKey:
    """Identity of a pool: what a trade has to know of it. Addresses are in lower case."""

    kind: PoolKind
    address: str
    """The pool's contract; for v4 the PoolManager."""
    token0: str
    token1: str
    exchange: str
    """Name for people, such as `Uniswap v3`."""
    fee: int | None
    """Millionths of the amount (3000 is 0.3 %); None if the pool changes it."""
    tick_spacing: int | None = None
    stable: bool = False
    """True for a pool of two tokens of equal value (Solidly's `x³y + xy³` curve)."""
    hooks: str | None = None
    """Contract that v4 calls at each trade; None without one."""
