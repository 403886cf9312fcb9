"""Describe in words how much of a wallet's history an approval answer covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.approvals.approval_evidence import ApprovalEvidence
from centgate.crypto.approvals.reported import (
    ApprovalScan,
    ApprovalSource,
    GrantScan,
    OnchainState,
    ReportedApproval,
    ReportedApprovals,
    ReportedToken,
)
from centgate.crypto.contract.bytecode import delegation_target
from centgate.crypto.wallet.spam_rules import is_imitation
from centgate.crypto.wallet.wallets import Token

MAX_NAMED_TOKENS = 5
"""Most addresses of tokens in one warning."""


class ApprovalHistory(Struct, frozen=True):
    """The approvals of a wallet, with the source that lists them."""

    reported: ReportedApprovals
    """Approvals at the tokens."""
    source: ApprovalSource
    scan: ApprovalScan | None
    grants: GrantScan | None = None
    """Grants inside Permit2; None if they could not be read."""

    @property
    def entries(self) -> tuple[ReportedApproval, ...]:
        """Approvals of both mechanisms; what the index says of a token or spender counts for both."""
        # of several assessments of one spender the worst counts
        listed = sorted(
            (entry for entry in self.reported.entries if entry.source == "goplus"),
            key=lambda entry: (bool(entry.spender.misconduct), bool(entry.spender.is_doubtful)),
        )
        tokens = {entry.token.address: entry.token for entry in listed}
        spenders = {entry.spender.address: entry.spender for entry in listed}
        return tuple(
            entry
            if entry.source == "goplus"
            else replace(
                entry,
                token=tokens.get(entry.token.address, entry.token),
                spender=spenders.get(entry.spender.address, entry.spender),
            )
            for entry in (*self.reported.entries, *(self.grants.entries if self.grants else ()))
        )

    @property
    def head(self) -> int | None:
        """Newest block of the node while the logs were read; None if that is not known."""
        heads = [each.head for each in (self.scan, self.grants) if each is not None]
        return min((head for head in heads if head is not None), default=None)

    @property
    def is_complete(self) -> bool | None:
        """True if these are all approvals on the chain; None if the source cannot tell."""
        are_logs_complete = all(each is not None and each.is_complete for each in (self.scan, self.grants))
        if are_logs_complete or self.source != "goplus":
            return are_logs_complete
        return False if self.reported.partial or self.reported.unreadable else None

    def with_times(self, times: Mapping[int, int]) -> ApprovalHistory:
        """Return a copy with block times added where known; `times` maps block number to Unix seconds."""
        grants = self.grants and replace(self.grants, entries=_add_times(self.grants.entries, times))
        if self.scan is None:
            return replace(self, grants=grants)
        first, until = times.get(self.scan.from_block), self.scan.end_time
        days = round((until - first) / 86_400, 2) if first and first <= until else None
        reported = replace(self.reported, entries=_add_times(self.reported.entries, times))
        return replace(self, reported=reported, scan=replace(self.scan, days=days), grants=grants)


def _add_times(entries: Iterable[ReportedApproval], times: Mapping[int, int]) -> tuple[ReportedApproval, ...]:
    return tuple(
        entry if entry.block is None else replace(entry, changed_at=times.get(entry.block, entry.changed_at))
        for entry in entries
    )


def describe_coverage(history: ApprovalHistory, *, empty: bool) -> str:
    """Return a sentence on the source of the list, and on what an empty list means."""
    if not empty or history.is_complete:
        return f"{_describe_source(history)}."
    return f"{_describe_source(history)}. No approval was found, but some may exist."


def _describe_source(history: ApprovalHistory) -> str:
    scan = history.scan
    if history.source == "goplus":
        added = f", completed from event logs of {_format_range(scan)}" if scan else ""
        if history.reported.partial:
            return f"GoPlus is still collecting this wallet's approvals: a part of its index{added}"
        return f"GoPlus's index of approvals, which does not say how complete it is{added}"
    assert scan is not None
    if scan.is_complete:
        by_whom = " that Etherscan lists" if scan.source == "etherscan" else ""
        return f"All events of the chain{by_whom} up to block {scan.to_block}"
    only = "" if scan.lacks_recent else " only"
    return f"Event logs of {_format_range(scan)}{only}; {_describe_gap(scan)}"


def _describe_gap(scan: ApprovalScan) -> str:
    """Return which approvals incomplete event logs may miss: before the first block there are none."""
    if scan.lacks_recent:
        return f"{'other' if scan.from_block else 'newer'} approvals may exist"
    return "older approvals may exist" if scan.from_block else "some of them could not be read"


def _format_range(scan: ApprovalScan) -> str:
    if scan.lacks_recent:
        return "the blocks that Etherscan knows"
    days = f", {scan.days:g} days" if scan.days is not None else ""
    return f"blocks {scan.from_block} to {scan.to_block}{days}"


def collect_warnings(
    history: ApprovalHistory, live: OnchainState, evidence: Sequence[ApprovalEvidence]
) -> list[str]:
    """Return warnings: a delegated wallet, what was not read, and where index and chain disagree."""
    active = [each for each in evidence if each.amount != 0]
    count_by_text = {
        "Approvals of single NFTs, which are left out": history.scan.collectibles if history.scan else 0,
        "Approval events that could not be read, or not be told to be of tokens or of NFTs, which are left "
        "out": history.scan.unread if history.scan else 0,
        "Approvals that are in no index, so that reports of wrongdoing, lists of trusted and of "
        "suspicious addresses, published source and age of the contracts were not checked": sum(
            not each.entry.spender.is_assessed for each in active
        ),
        "Listed approvals that are used up, ended or revoked by now and left out": len(evidence)
        - len(active),
        "Allowances that could not be read from the chain, with amounts as listed": live.unreadable_count,
        "Approvals that were not read from the chain, with amounts as listed": len(evidence)
        - len(live.allowances),
        "Approvals whose amount on the chain differs from the listed one; the chain's is given": sum(
            each.amounts_differ for each in active
        ),
        "Spenders whose code was not read from the chain": len(
            {each.entry.spender.address for each in active if each.kind is None}
        ),
        "Spenders of another kind on the chain than listed; the chain's kind is given": len(
            {each.entry.spender.address for each in active if each.kinds_differ}
        ),
    }
    counts = [f"{text}: {count}" for text, count in count_by_text.items() if count]
    return [
        *_warn_delegated(live),
        *_warn_imitated_symbols(live, active),
        *_warn_missing(history, empty=not active),
        *counts,
    ]


def _warn_delegated(live: OnchainState) -> list[str]:
    """Return a warning if the wallet runs other code, or if that was not read."""
    if live.wallet_code is None:
        return ["Whether the wallet delegates to a contract (EIP-7702) could not be read"]
    delegation = describe_delegation(live)
    return [delegation] if delegation else []


def describe_delegation(live: OnchainState) -> str | None:
    """Return the warning about a wallet that runs other code; None if it does not, or that was not read."""
    target = delegation_target(live.wallet_code) if live.wallet_code is not None else None
    if target is None:
        return None
    return (
        f"The wallet runs the code of {target} (EIP-7702 delegation), which can move all its tokens without "
        "any approval: check that contract first"
    )


def _warn_imitated_symbols(live: OnchainState, active: Sequence[ApprovalEvidence]) -> list[str]:
    """Return a warning about tokens whose symbols look like those of others."""
    imitations = dict.fromkeys(
        each.entry.token.address
        for each in active
        if is_imitation(
            Token(each.entry.token.address, symbol=choose_symbol(each.entry.token, live)), each.chain_id
        )
    )
    if not imitations:
        return []
    named = ", ".join([*imitations][:MAX_NAMED_TOKENS])
    more = f" and {len(imitations) - MAX_NAMED_TOKENS} more" if len(imitations) > MAX_NAMED_TOKENS else ""
    return [
        "Tokens whose symbol looks like that of a major token or of a chain's native coin, but which are "
        f"other contracts: {named}{more}"
    ]


def choose_symbol(token: ReportedToken, live: OnchainState) -> str | None:
    """Return a token's symbol on the chain, else the source's."""
    current = live.tokens.get(token.address)
    return (current.symbol if current else None) or token.symbol


def _warn_missing(history: ApprovalHistory, *, empty: bool) -> list[str]:
    """Return warnings about approvals that the list may miss."""
    if history.is_complete:
        return []
    return [*_warn_missing_grants(history.grants), *_warn_missing_at_tokens(history, empty=empty)]


def _warn_missing_grants(grants: GrantScan | None) -> list[str]:
    """Return warnings about grants inside Permit2 that the list may miss; `notCovered` names older ones."""
    if grants is None:
        return ["Grants inside Permit2 could not be read"]
    text_by_gap = {
        "Grants inside Permit2 in the newest blocks could not be read": grants.lacks_recent,
        f"Events of Permit2 that could not be read: {grants.unread}": grants.unread > 0,
    }
    return [text for text, is_there in text_by_gap.items() if is_there]


def _warn_missing_at_tokens(history: ApprovalHistory, *, empty: bool) -> list[str]:
    """Return warnings about approvals at tokens that the list may miss."""
    if empty:
        basis = _describe_source(history)
        return [f"No approval was found, but some may exist. Searched: {basis}"]
    if history.scan and not history.scan.is_complete:
        return [f"Event logs were read for {_format_range(history.scan)}; {_describe_gap(history.scan)}"]
    return []
