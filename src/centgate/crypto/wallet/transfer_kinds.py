"""Tell what a transfer was part of, from the transfers of the same transaction. No I/O."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Literal

from centgate.chains import ZERO_ADDRESS, is_burn_address
from centgate.crypto.wallet.spam_rules import CounterpartyEvidence
from centgate.crypto.wallet.wallets import Transfer

TransferKind = Literal["send", "receive", "self", "swap", "mint", "burn", "call", "creation"]


def find_swaps(
    transfers: Iterable[Transfer], wallet: str, assess: Callable[[Transfer], CounterpartyEvidence]
) -> frozenset[str]:
    """Return the hashes of the transactions that exchanged one asset of a wallet for another.

    Amounts of an asset are added up, since exchanges refund what they did not need. Any contract can emit
    transfers in a wallet's name: one side at least must be of strong evidence.
    """
    changes: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    proved: set[str] = set()
    for each in transfers:
        if not each.amount or each.sender == each.recipient:
            continue
        asset = each.token.address if each.token else None
        changes[each.transaction][asset] += -each.amount if each.sender == wallet else each.amount
        if assess(each) is CounterpartyEvidence.STRONG:
            proved.add(each.transaction)
    return frozenset(
        transaction
        for transaction in proved
        if min(changes[transaction].values()) < 0 < max(changes[transaction].values())
    )


def classify_transfer(transfer: Transfer, wallet: str, swaps: Collection[str]) -> TransferKind:
    """Return what a transfer was; `swaps` are the transactions that `find_swaps` found."""
    if transfer.recipient is None:
        return "creation"
    if transfer.transaction in swaps:
        return "swap"
    if transfer.token and transfer.sender == ZERO_ADDRESS:
        return "mint"
    if transfer.token and transfer.sender == wallet and is_burn_address(transfer.recipient):
        return "burn"
    if transfer.sender != wallet:
        return "receive"
    if transfer.recipient == wallet:
        return "self"
    return "call" if transfer.token is None and transfer.amount == 0 else "send"
