"""Facts of an account on the chain, and the contracts that state them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from centgate.crypto.contract.owners import Owner

WalletAccountKind = Literal["wallet", "delegated_wallet", "safe", "contract", "unknown"]
"""An `AccountKind`, of which a wallet contract with the published code of Safe is a kind of its own."""

SANCTIONS_LISTS: Mapping[int, str] = {
    1: "0x40c57923924b5c5c5455c48d93317139addac8fb",
    56: "0x40c57923924b5c5c5455c48d93317139addac8fb",
    137: "0x40c57923924b5c5c5455c48d93317139addac8fb",
    42161: "0x40c57923924b5c5c5455c48d93317139addac8fb",
    10: "0x40c57923924b5c5c5455c48d93317139addac8fb",
    8453: "0x3a91a31cb3dc49b4db9ce721f50a9d076c8d739b",
}
"""Chainalysis' list of the addresses that OFAC names, by chain (go.chainalysis.com, sanctions oracle)."""


class Account(Struct, frozen=True):
    """Account as the chain shows it. None is unknown."""

    kind: WalletAccountKind
    delegate_address: str | None = None
    """Contract whose code a delegated wallet runs, lower case."""
    threshold: int | None = None
    """Signatures that a Safe needs."""
    owner_count: int | None = None
    """Owners of a Safe."""
    has_modules: bool | None = None
    """True if contracts may act for a Safe without its owners' signatures."""
    transaction_count: int | None = None
    """Transactions that a wallet has sent."""
    name: str | None = None
    """Primary name, which resolves back to the account."""
    is_sanctioned: bool | None = None


def classify_account_owner(
    owner: Owner, *, transaction_count: int | None, name: str | None, is_sanctioned: bool | None
) -> Account:
    """Return the account behind what the chain tells of it as an owner."""
    is_wallet = owner.kind in ("wallet", "renounced")
    return Account(
        _account_type(owner),
        delegate_address=owner.delegate_address,
        threshold=owner.threshold if owner.kind == "safe" else None,
        owner_count=owner.owner_count if owner.kind == "safe" else None,
        has_modules=owner.has_modules,
        transaction_count=transaction_count if is_wallet else None,
        name=name,
        is_sanctioned=is_sanctioned,
    )


def _account_type(owner: Owner) -> WalletAccountKind:
    match owner.kind:
        case "wallet" | "renounced" | "none":
            return "delegated_wallet" if owner.delegate_address else "wallet"
        case "safe":
            return "safe"
        case "unknown":
            return "unknown"
        case _:
            return "contract"


def list_account_findings(account: Account) -> list[str]:
    """Return the sentences that an answer about the account opens with."""
    findings: list[str] = []
    if account.delegate_address:
        findings.append(
            f"the wallet runs the code of {account.delegate_address} (EIP-7702 delegation), which can move "
            "everything it holds"
        )
    if account.is_sanctioned:
        findings.append("the address is on OFAC's sanctions list, by Chainalysis' list on the chain")
    return findings


def parse_flag(returned: bytes | None) -> bool | None:
    """Parse a boolean; None if the call failed or returned something else."""
    if returned is None or len(returned) != 32 or int.from_bytes(returned) > 1:
        return None
    return bool(returned[-1])
