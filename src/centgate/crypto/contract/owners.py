"""Owners of contracts: who can use an owner's powers. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from msgspec import Struct

from centgate.chains import is_burn_address
from centgate.crypto.abi import function_selector

OwnerKind = Literal["none", "renounced", "wallet", "safe", "timelock", "governor", "contract", "unknown"]
"""`none`: the contract names no owner; `renounced`: an address that no one controls. `timelock` and
`governor` are what a contract answers, and any contract can answer so; a `safe` runs the published code.
"""

OWNER_CALL = "owner()"
GET_OWNER_CALL = "getOwner()"
"""Getter of the owner in tokens of BNB Smart Chain (BEP-20)."""
OWNER_GETTERS = (OWNER_CALL, GET_OWNER_CALL)


class Owner(Struct, frozen=True):
    """Owner of a contract as the chain shows it. None is unknown."""

    address: str | None
    """Lower case."""
    kind: OwnerKind
    threshold: int | None = None
    """Signatures that a Safe needs."""
    owner_count: int | None = None
    """Owners of a Safe."""
    has_modules: bool | None = None
    """True if contracts may act for a Safe without its owners' signatures."""
    delay_seconds: int | None = None
    """Delay of a timelock."""
    delegate_address: str | None = None
    """Contract whose code a wallet runs by EIP-7702, lower case."""


def has_owner_function(selectors: Collection[bytes]) -> bool:
    """True if one of a contract's functions names its owner."""
    return any(function_selector(getter) in selectors for getter in OWNER_GETTERS)


def choose_owner(stated: Iterable[str | None]) -> str | None:
    """Return the owner by what a contract's getters stated, in order: a living one before a burn address.

    None if they stated none.
    """
    owners = [each for each in stated if each]
    return next((each for each in owners if not is_burn_address(each)), owners[0] if owners else None)


def parse_owner(returned: bytes | None) -> str | None:
    """Parse what owner() returned: an address, the zero address if it was renounced; None for others."""
    if returned is None or len(returned) != 32 or any(returned[:12]):
        return None
    return "0x" + returned[12:].hex()
