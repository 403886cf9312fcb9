"""Kinds of accounts by the code at their address. No I/O."""

from __future__ import annotations

from typing import Literal

from centgate.crypto.contract.bytecode import delegation_target

CodeKind = Literal["contract", "wallet", "delegated_wallet"]
"""Code of its own; no code; only a delegation to other code (EIP-7702), by which its key still signs."""
AccountKind = Literal[CodeKind, "unknown"]
"""Kind of an account whose code may not be known. What a contract is, such as a Safe, an `Owner` tells."""
ReportedKind = Literal["contract", "wallet", "unknown"]
"""Kind of an account by what a source says of it, which knows no delegation."""

WALLET_KINDS: tuple[AccountKind, ...] = ("wallet", "delegated_wallet")
"""Accounts that are controlled by one key."""


def classify_code(code: bytes) -> CodeKind:
    """Return the kind of account that has this code."""
    if not code:
        return "wallet"
    return "delegated_wallet" if delegation_target(code) else "contract"


def classify_report(*, is_contract: bool | None) -> ReportedKind:
    """Return the kind of account by what a source says of it; None if it says nothing."""
    return "unknown" if is_contract is None else "contract" if is_contract else "wallet"


def describe_kind(kind: AccountKind) -> str:
    """Return the kind of an account as words of a sentence."""
    return {
        "contract": "a contract",
        "wallet": "a wallet",
        "delegated_wallet": "a wallet with delegated code",
        "unknown": "an account of unknown kind",
    }[kind]
