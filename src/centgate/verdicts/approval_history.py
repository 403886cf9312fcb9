"""How much of a wallet's history an answer about its approvals rests on, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from centgate.facts.approvals import ApprovalSource, Live, Scan, ToldApprovals
from centgate.verdicts.approval_rules import Evidence


@dataclass(frozen=True, slots=True)
class History:
    """Which approvals the wallet gave, and whose word that is."""

    told: ToldApprovals
    source: ApprovalSource
    scan: Scan | None

    @property
    def complete(self) -> bool | None:
        """Whether these are all ERC-20 approvals; None when the source cannot tell."""
        if self.source == "rpc":
            return self.scan is not None and self.scan.complete
        return False if self.told.partial or self.told.unreadable else None

    def dated(self, times: Mapping[int, int]) -> History:
        """The same with the times of its blocks, in seconds since 1970, as far as they are known."""
        if self.scan is None:
            return self
        first, until = times.get(self.scan.from_block), self.scan.until
        days = round((until - first) / 86_400, 2) if first and first <= until else None
        return replace(self, told=_dated(self.told, times), scan=replace(self.scan, days=days))


def _dated(told: ToldApprovals, times: Mapping[int, int]) -> ToldApprovals:
    entries = (
        entry if entry.block is None else replace(entry, changed_at=times.get(entry.block))
        for entry in told.entries
    )
    return replace(told, entries=tuple(entries))


def note(history: History, *, empty: bool) -> str:
    """What the list of approvals rests on, and what it means that it is empty, if it is."""
    if not empty or history.complete:
        return f"{_basis(history)}."
    return f"{_basis(history)}. None was found, which does not mean that there are none."


def _basis(history: History) -> str:
    scan = history.scan
    if history.source == "goplus":
        more = f", completed from event logs of {_range(scan)}" if scan else ""
        if history.told.partial:
            return f"GoPlus is still collecting this wallet's approvals: a part of its index{more}"
        return "GoPlus's index of approvals, which does not say how complete it is"
    assert scan is not None
    if scan.complete:
        return f"All events of the chain up to block {scan.to_block}"
    return f"Event logs of {_range(scan)} only; older approvals may exist"


def _range(scan: Scan) -> str:
    days = f", {scan.days:g} days" if scan.days is not None else ""
    return f"blocks {scan.from_block} to {scan.to_block}{days}"


def remarks(history: History, live: Live, evidence: Sequence[Evidence]) -> list[str]:
    """What could not be seen, read or checked, and where index and chain disagree."""
    standing = [case for case in evidence if case.amount != 0]
    counted = {
        "Approvals of single NFTs, which are left out": history.scan.collectibles if history.scan else 0,
        "Approvals of which no index tells, so that reports of wrongdoing, lists of trusted and of "
        "suspicious addresses, published source and age of the contracts were not checked": sum(
            not case.told.spender.judged for case in standing
        ),
        "Listed approvals that are spent or revoked by now and left out": len(evidence) - len(standing),
        "Allowances that could not be read from the chain, with amounts as listed": live.failed,
        "Approvals that were not read from the chain, with amounts as listed": len(evidence)
        - len(live.allowances),
        "Approvals whose amount on the chain is not the listed one; the chain's is given": sum(
            case.amounts_differ for case in standing
        ),
        "Spenders whose code was not read from the chain": len(
            {case.told.spender.address for case in standing if case.kind is None}
        ),
        "Spenders of another kind on the chain than listed; the chain's word is taken": len(
            {case.told.spender.address for case in standing if case.kinds_differ}
        ),
    }
    counts = [f"{what}: {count}" for what, count in counted.items() if count]
    return [*_on_range(history, empty=not standing), *counts]


def _on_range(history: History, *, empty: bool) -> list[str]:
    """What may be missing from the list."""
    if history.complete:
        return []
    if empty:
        basis = _basis(history)
        return [f"No approval was found, which does not mean that there are none. Looked at: {basis}"]
    if history.scan:
        return [f"Event logs were read for {_range(history.scan)}; older approvals may exist"]
    return []
