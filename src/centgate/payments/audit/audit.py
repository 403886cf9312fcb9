"""Audit: compares the journal with the transfers by authorization (EIP-3009) to the seller's addresses.

There are two kinds of findings: payments that are paid on the chain but are refused, never sent, open or
unknown here; and payments that are settled here but not paid on the chain. Only `safe` blocks are read. Plain
transfers are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from functools import partial
from typing import Literal, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from centgate.payments.audit import audit_queries
from centgate.payments.audit.audit_queries import AuditPosition, Recipient
from centgate.payments.audit.transfer_reader import FoundTransfer, TransferReader, call_with_retry
from centgate.payments.chain.chain_client import ChainClient
from centgate.payments.chain.onchain_status import CLOCK_ALLOWANCE, PaymentQuery
from centgate.payments.chain.payment_node import SPAN
from centgate.payments.database.sql import ResultRow
from centgate.payments.database.store import Store
from centgate.payments.journal.queries import key_of
from centgate.payments.journal.read_model import JournalReader
from centgate.payments.payment_key import PaymentKey
from centgate.settings import Settings

FindingKind = Literal["refused", "open", "unknown", "not_on_chain"]
FINDING_KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
FINDING_MEANINGS: Mapping[FindingKind, str] = {
    "refused": "paid on the chain, but refused here: the buyer's response says that no money moved",
    "open": "paid on the chain, and not settled here yet",
    "unknown": "paid on the chain, and not by a payment of this journal",
    "not_on_chain": "settled here, and not paid on the chain",
}
FINDING_ADVICE: Mapping[FindingKind, str] = {
    "refused": "refund it by a plain transfer, and record that with `centgate payments refunded`",
    "open": "run `centgate payments reconcile`",
    "unknown": "another seller uses this address, or rows are missing: deployments that share a payTo must "
    "share a journal",
    "not_on_chain": "the facilitator reported a settlement that did not happen, or blocks were reorganised: "
    "ask the facilitator",
}
SETTLED_WITHIN = 900
"""Maximum seconds from the submission of a payment to its transfer, including clock differences."""
BLOCK_TIME_ALLOWANCE = 5
"""Seconds that a block may seem older than a payment in it, if no block number was known at its claim."""


class BlockRange(Struct, frozen=True):
    """Blocks to audit, and the submission times of the payments to look up on the chain."""

    first: int
    last: int
    since: float
    until: float
    safe: int
    """The newest safe block."""
    complete_block: int
    """The last block whose payments can be compared in both directions."""
    complete_time: float


class AuditFinding(Struct, frozen=True):
    """A difference between journal and chain."""

    kind: FindingKind
    key: PaymentKey
    pay_to: str
    amount: int
    transaction: str | None
    """Transaction of the transfer; without a transfer, the one in the journal."""
    block: int | None
    state: str | None
    """State of the payment in the journal; None if it is not there."""
    service: str | None
    presented_at: float | None


class AuditResult(Struct):
    """Result of the audit of one recipient, up to its current position."""

    recipient: Recipient
    blocks: BlockRange | None = None
    audited_to: int | None = None
    """Last block that was read."""
    position: tuple[int, float] | None = None
    """Block and its time up to which both directions are compared."""
    transfers: int = 0
    """Number of transfers by authorization that were read."""
    payments: int = 0
    """Number of payments of the journal that were looked up on the chain."""
    findings: list[AuditFinding] = field(default_factory=list[AuditFinding])
    problem: str | None = None
    """Error that ended the audit early."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by kind, without zeros."""
        counted = Counter(finding.kind for finding in self.findings)
        return {kind: counted[kind] for kind in FINDING_KINDS if counted[kind]}


def describe_counts(counts: Mapping[str, int]) -> str:
    """Describe the number of findings by kind in a sentence."""
    return "; ".join(
        f"{count} {FINDING_MEANINGS[kind]}" for kind in FINDING_KINDS if (count := counts.get(kind, 0))
    )


async def find_range_by_time(
    chain: ChainClient, since: float, until: float, *, after: int | None = None
) -> BlockRange:
    """Return the safe blocks of a period, and all those after a block. Raises ChainUnreachable."""
    blocks = await _safe_range(chain)
    first = await chain.find_first_block_since(since, blocks.safe)
    first = first if after is None else min(first, after + 1)
    last = await chain.find_first_block_since(until, blocks.safe) - 1
    return replace(blocks, first=first, last=last, since=since, until=min(until, blocks.complete_time))


async def find_range_by_blocks(chain: ChainClient, first: int, last: int | None) -> BlockRange:
    """Return the safe blocks from one to another, None for the newest. Raises ChainUnreachable."""
    blocks = await _safe_range(chain)
    if first > blocks.safe:
        return replace(blocks, first=first)
    since = await chain.read_block_time(first)
    if last is None or last >= blocks.safe:
        return replace(blocks, first=first, since=since)
    until = min(await chain.read_block_time(last + 1), blocks.complete_time)
    return replace(blocks, first=first, last=last, since=since, until=until)


async def _safe_range(chain: ChainClient) -> BlockRange:
    """Return an empty range that ends at the newest safe block."""
    safe = await chain.read_safe_block()
    complete = float(await chain.read_block_time(safe) - SETTLED_WITHIN)
    complete_block = await chain.find_first_block_since(complete, safe) - 1
    return BlockRange(safe + 1, safe, complete, complete, safe, complete_block, complete)


class Auditor:
    """Compares the payments of a journal with those on the chain."""

    def __init__(self, journal: JournalReader, *, span: int = SPAN) -> None:
        self._journal = journal
        self._reader = TransferReader(span)

    async def audit(self, chain: ChainClient, result: AuditResult, blocks: BlockRange) -> None:
        """Audit the payments of one recipient; `result` is updated after each span.

        Raises ChainUnreachable and JournalUnavailable.
        """
        result.blocks = blocks
        since, earlier_transfers = blocks.since, dict[PaymentKey, FoundTransfer]()
        for first, last in _split_range(blocks.first, blocks.last, self._reader.span):
            span_transfers = await self._read_transfers(chain, result.recipient, blocks, first, last)
            transfers = {each.key: each for each in span_transfers}
            span_end = await self._find_end_time(chain, blocks, last)
            rows = await self._read_rows(result.recipient, since, span_end)
            findings = await self._compare_transfers(chain, result.recipient, span_transfers)
            findings += await self._compare_rows(chain, rows, earlier_transfers | transfers, blocks.safe)
            result.findings += findings
            result.transfers += len(span_transfers)
            result.payments += len(rows)
            result.audited_to = last
            result.position = _comparison_position(blocks, last, span_end)
            since, earlier_transfers = max(since, span_end), transfers

    async def _read_transfers(
        self, chain: ChainClient, recipient: Recipient, blocks: BlockRange, first: int, last: int
    ) -> list[FoundTransfer]:
        if first > last:
            return []
        return await self._reader.read_span(chain, recipient, first, last, final=blocks.complete_block)

    async def _find_end_time(self, chain: ChainClient, blocks: BlockRange, last: int) -> float:
        """Return the time up to which payments are compared once a block was read."""
        if last >= blocks.last:
            return blocks.until
        return min(blocks.until, await call_with_retry(chain, partial(chain.read_block_time, last)))

    async def _read_rows(self, recipient: Recipient, since: float, until: float) -> list[ResultRow]:
        if since >= until:
            return []
        return await self._journal.read(partial(audit_queries.list_settled_payments, recipient, since, until))

    async def _compare_transfers(
        self, chain: ChainClient, recipient: Recipient, transfers: list[FoundTransfer]
    ) -> list[AuditFinding]:
        """Return the transfers that are not settled in the journal."""
        keys = [each.key for each in transfers]
        rows = await self._journal.read(partial(audit_queries.find_payments, keys)) if keys else {}
        findings: list[AuditFinding] = []
        for each in transfers:
            row = rows.get(each.key)
            if kind := await self._classify_transfer(chain, each, row):
                findings.append(_build_transfer_finding(kind, recipient, each, row))
        return findings

    async def _classify_transfer(
        self, chain: ChainClient, transfer: FoundTransfer, row: ResultRow | None
    ) -> FindingKind | None:
        """Return the kind of finding for a transfer, None if it matches the journal."""
        if row is None:
            return "unknown"
        match row["state"]:
            case "settling":
                return "open"
            case "refused" | "unused" if not row["refunded"]:
                return "refused" if await self._was_submitted_before(chain, transfer, row) else "unknown"
            case _:
                return None

    async def _was_submitted_before(
        self, chain: ChainClient, transfer: FoundTransfer, row: ResultRow
    ) -> bool:
        """Return True if a payment had been submitted here before it was paid.

        One that was paid earlier has bought something elsewhere. A refused payment that was submitted once
        more has a later claim, so its first event counts.
        """
        claim_block: int | None = row["claim_block"]
        if claim_block is not None and transfer.block > claim_block:
            return True
        first_event = await self._journal.read(partial(audit_queries.find_first_event_time, row))
        submitted_at = row["created_at"] if first_event is None else min(row["created_at"], first_event)
        allowance = BLOCK_TIME_ALLOWANCE if claim_block is None else 0
        return (
            await call_with_retry(chain, partial(chain.read_block_time, transfer.block))
            >= submitted_at - allowance
        )

    async def _compare_rows(
        self,
        chain: ChainClient,
        rows: list[ResultRow],
        transfers: Mapping[PaymentKey, FoundTransfer],
        safe: int,
    ) -> list[AuditFinding]:
        """Return findings for payments that are settled here but not paid on the chain since their claim."""
        return [
            _build_unpaid_finding(row)
            for row in rows
            if not _is_paid_by(transfers.get(key_of(row)), row)
            and await call_with_retry(chain, partial(chain.find_payment, _build_query(row), safe)) is None
        ]


def _split_range(first: int, last: int, span: int) -> Generator[tuple[int, int]]:
    """Split a block range at multiples of a span; an empty range yields one empty span."""
    yield first, min(last, first - first % span + span - 1)
    for start in range(first - first % span + span, last + 1, span):
        yield start, min(last, start + span - 1)


def _comparison_position(blocks: BlockRange, last: int, end: float) -> tuple[int, float] | None:
    """Return the block up to which both directions are compared once a block was read."""
    if last < blocks.complete_block:
        return last, end
    return blocks.complete_block, blocks.complete_time


def _is_paid_by(transfer: FoundTransfer | None, row: ResultRow) -> bool:
    if transfer is None or transfer.amount != int(row["amount"]):
        return False
    return row["claim_block"] is None or transfer.block > row["claim_block"]


def _build_query(row: ResultRow) -> PaymentQuery:
    """Build the on-chain query for a payment, which was paid before it was recorded as settled."""
    end = min(row["valid_before"], int(row["settled_at"] or row["updated_at"]) + CLOCK_ALLOWANCE)
    amount = int(row["amount"])
    return PaymentQuery(key_of(row), row["pay_to"], amount, end, row["created_at"], row["claim_block"])


def _build_transfer_finding(
    kind: FindingKind, recipient: Recipient, transfer: FoundTransfer, row: ResultRow | None
) -> AuditFinding:
    return AuditFinding(
        kind=kind,
        key=transfer.key,
        pay_to=recipient.pay_to,
        amount=transfer.amount,
        transaction=transfer.transaction,
        block=transfer.block,
        state=None if row is None else row["state"],
        service=None if row is None else row["service"],
        presented_at=None if row is None else row["created_at"],
    )


def _build_unpaid_finding(row: ResultRow) -> AuditFinding:
    return AuditFinding(
        kind="not_on_chain",
        key=key_of(row),
        pay_to=row["pay_to"],
        amount=int(row["amount"]),
        transaction=row["transaction"],
        block=None,
        state=row["state"],
        service=row["service"],
        presented_at=row["created_at"],
    )


def configured_recipients(settings: Settings) -> list[Recipient]:
    """Return the recipients in the current settings, empty if no payments are accepted."""
    return [
        Recipient(each.network, each.asset.address.lower(), each.pay_to.lower())
        for each in settings.accepted_tokens
    ]


async def save_audit_position(store: Store, result: AuditResult, before: AuditPosition | None) -> None:
    """Store the position of an audit, if it continues where the previous one ended.

    Raises JournalUnavailable.
    """
    if result.blocks is None or result.position is None or result.position[0] < result.blocks.first:
        return
    if before is None or before.block is None or result.blocks.first <= before.block + 1:
        await store.run(partial(audit_queries.record_position, result.recipient, *result.position))
