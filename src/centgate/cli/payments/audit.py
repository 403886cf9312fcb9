"""The command `centgate payments audit`, which compares the journal with the chain."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from rich.table import Table

from centgate.cli.payments.context import (
    CommandContext,
    ExitCode,
    InvalidArgument,
    OutputFormat,
    print_renderable,
)
from centgate.cli.payments.render import NETWORK_WIDTH, shorten_name
from centgate.cli.payments.serializers import format_dollars_cell
from centgate.cli.terminal import create_console, print_json, print_message, text_line
from centgate.payments.audit import audit_queries
from centgate.payments.audit.audit import (
    FINDING_ADVICE,
    FINDING_KINDS,
    FINDING_MEANINGS,
    AuditFinding,
    Auditor,
    AuditResult,
    BlockRange,
    configured_recipients,
    find_range_by_blocks,
    find_range_by_time,
    save_audit_position,
)
from centgate.payments.audit.audit_queries import AuditPosition, Recipient
from centgate.payments.chain.chain_client import ChainClient, ChainClients
from centgate.payments.chain.nodes import select_nodes
from centgate.payments.chain.payment_node import ChainUnreachable, open_node_session
from centgate.payments.journal.descriptions import format_dollars
from centgate.payments.journal.read_model import FOREVER
from centgate.payments.time_format import format_iso, parse_time
from centgate.settings import Settings

DAY_SECONDS = 86_400
_MIN_WIDTHS = {"finding": 0, "dollars": 60, "payer": 80, "nonce": 0, "transaction": 48}
"""Minimum terminal widths for these columns."""


class AuditPeriod(Struct, frozen=True):
    """Options for the blocks to audit, as entered."""

    since: str | None = None
    until: str | None = None
    from_block: int | None = None
    to_block: int | None = None
    resume: bool = False
    network: str | None = None
    """The only network to audit (CAIP-2); None for all."""

    @property
    def has_blocks(self) -> bool:
        """True if the range is given by block numbers."""
        return self.from_block is not None or self.to_block is not None

    def to_times(self, now: float) -> tuple[float, float]:
        """Return start and end in seconds since 1970. Raises InvalidArgument."""
        try:
            since = parse_time(self.since, now) if self.since else now - DAY_SECONDS
            until = parse_time(self.until, now) if self.until else FOREVER
        except ValueError as error:
            raise InvalidArgument(str(error)) from error
        if since >= until:
            raise InvalidArgument("--since must be before --until")
        return since, until

    def check(self) -> None:
        """Raise InvalidArgument for options that exclude each other."""
        has_times = self.since is not None or self.until is not None
        if self.resume and (has_times or self.has_blocks):
            raise InvalidArgument("--resume starts where the last audit ended: omit the period")
        if has_times and self.has_blocks:
            raise InvalidArgument("give the period by times or by blocks, not by both")
        if self.to_block is not None and self.from_block is None:
            raise InvalidArgument("--to-block needs --from-block")
        if self.to_block is not None and self.to_block < (self.from_block or 0):
            raise InvalidArgument("--from-block must not be after --to-block")


async def audit_now(context: CommandContext, *, period: AuditPeriod, output_format: OutputFormat) -> ExitCode:
    """Audit every payee address of the settings and of the period."""
    period.check()
    since, until = period.to_times(context.view.now)
    store = context.store
    positions = {each.recipient: each for each in await store.read(audit_queries.list_positions)}
    recipients = await _find_recipients(context, period, positions, since, until)
    async with open_node_session() as session:
        command = _Command(context, ChainClients(session, context.settings), period)
        results = [await command.run(each, positions.get(each)) for each in recipients]
    _print_results(results, output_format)
    for result in results:
        before = positions.get(result.recipient)
        if (
            before is not None or period.resume or period == AuditPeriod()
        ):  # a short period is not a start for --resume
            await save_audit_position(store, result, before)
    complete = all(result.problem is None for result in results)
    if results and complete and period == AuditPeriod():
        await store.run(
            partial(audit_queries.record_results, {each.recipient: each.counts for each in results})
        )
    return 0 if complete and not any(result.findings for result in results) else 1


async def _find_recipients(
    context: CommandContext,
    period: AuditPeriod,
    positions: dict[Recipient, AuditPosition],
    since: float,
    until: float,
) -> list[Recipient]:
    """Return the payees of the current settings, and those of payments in the period.

    Raises InvalidArgument for a network without any, and for block numbers of several networks.
    """
    own = configured_recipients(context.settings)
    if period.resume:
        since = min([since, *(each.block_time for each in positions.values() if each.block_time is not None)])
    if period.has_blocks:
        since, until = 0.0, FOREVER
    recipients = {
        *own,
        *await context.journal.reader.read(partial(audit_queries.list_recipients, since, until)),
    }
    network = period.network or _find_blocks_network(context.settings, period)
    selected = sorted(each for each in recipients if network in (None, each.network))
    if period.network and not selected:  # else a mistyped network would look like a clean audit
        networks = ", ".join(context.settings.payment_networks)
        raise InvalidArgument(
            f"--network: no payment was accepted on {period.network} in that period; "
            f"the settings name {networks}"
        )
    return selected


def _find_blocks_network(settings: Settings, period: AuditPeriod) -> str | None:
    """Return the network of the period's block numbers, None without them. Raises InvalidArgument."""
    if not period.has_blocks:
        return None
    network, *others = settings.payment_networks
    if others:
        raise InvalidArgument(f"block numbers are those of one network: add --network {network}, for example")
    return network


class _Command(Struct):
    """One run of the command."""

    context: CommandContext
    chains: ChainClients
    period: AuditPeriod
    is_interrupted: bool = False

    async def run(self, recipient: Recipient, before: AuditPosition | None) -> AuditResult:
        """Audit one recipient; findings before an interruption are kept."""
        result = AuditResult(recipient)
        chain = self.chains.for_network(recipient.network)
        if self.is_interrupted:
            result.problem = "interrupted"
        elif chain is None:
            result.problem = select_nodes(self.context.settings, recipient.network).description
        else:
            await self._audit(chain, result, before)
        return result

    async def _audit(self, chain: ChainClient, result: AuditResult, before: AuditPosition | None) -> None:
        try:
            await Auditor(self.context.store).audit(chain, result, await self._block_range(chain, before))
        except ChainUnreachable as error:
            result.problem = str(error)
        except asyncio.CancelledError:
            self.is_interrupted = True
            result.problem = "interrupted"

    async def _block_range(self, chain: ChainClient, before: AuditPosition | None) -> BlockRange:
        if self.period.from_block is not None:
            return await find_range_by_blocks(chain, self.period.from_block, self.period.to_block)
        since, until = self.period.to_times(self.context.view.now)
        if self.period.resume and before is not None and before.block_time is not None:
            return await find_range_by_time(chain, before.block_time, until, after=before.block)
        return await find_range_by_time(chain, since, until)


def _print_results(results: Sequence[AuditResult], output_format: OutputFormat) -> None:
    findings = [finding for result in results for finding in result.findings]
    if output_format == "json":
        print_json({"findings": [*map(_finding_entry, findings)], "audited": [*map(_result_entry, results)]})
        return
    if findings:
        print_renderable(_findings_table(findings, create_console().width))
        for kind in FINDING_KINDS:
            if any(finding.kind == kind for finding in findings):
                advice = FINDING_ADVICE[kind]
                print_renderable(
                    text_line(f"\n{kind}: {FINDING_MEANINGS[kind]}. {advice[0].upper()}{advice[1:]}.")
                )
    for result in results:
        print_renderable(text_line(f"\n{_describe_result(result)}" if findings else _describe_result(result)))
    if not results:
        print_message(
            "nothing to audit: CENTGATE_PAY_TO is not set, and there are no payments in that period"
        )


def _describe_result(result: AuditResult) -> str:
    """Describe the audit of a recipient in one sentence."""
    recipient = result.recipient
    target = f"{recipient.pay_to} on {recipient.network} (token {recipient.asset})"
    problem = f" Not complete: {result.problem}." if result.problem else ""
    if result.blocks is None or result.audited_to is None:
        return f"{target}: no blocks were read.{problem}"
    findings = "no findings" if not result.findings else f"{len(result.findings)} findings"
    return (
        f"{target}: blocks {result.blocks.first} to {result.audited_to}, {result.transfers} transfers by "
        f"authorization, {result.payments} payments looked up, {findings}.{problem}"
    )


def _findings_table(findings: Sequence[AuditFinding], width: int) -> Table:
    """Return a table with a line for each finding."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    has_networks = len({each.key.network for each in findings}) > 1
    room = width - NETWORK_WIDTH if has_networks else width
    names = [name for name, min_room in _MIN_WIDTHS.items() if room >= min_room]
    if has_networks:
        names.insert(1, "network")
    for name in names:
        justify = "right" if name == "dollars" else "left"
        table.add_column(name, overflow="fold", justify=justify, no_wrap=True)
    for each in findings:
        cells = {
            "finding": each.kind,
            "network": each.key.network,
            "dollars": format_dollars_cell(each.amount, each.key.network),
            "payer": shorten_name(each.key.payer, width),
            "nonce": shorten_name(each.key.nonce, width),
            "transaction": shorten_name(each.transaction or "", width),
        }
        table.add_row(*(cells[name] for name in names))
    return table


def _finding_entry(finding: AuditFinding) -> dict[str, Any]:
    return {
        "finding": finding.kind,
        "network": finding.key.network,
        "asset": finding.key.asset,
        "payTo": finding.pay_to,
        "payer": finding.key.payer,
        "nonce": finding.key.nonce,
        "amount": str(finding.amount),
        "dollars": format_dollars(finding.amount),
        "transaction": finding.transaction,
        "block": finding.block,
        "state": finding.state,
        "service": finding.service,
        "time": None if finding.presented_at is None else format_iso(finding.presented_at),
        "meaning": FINDING_MEANINGS[finding.kind],
        "toDo": FINDING_ADVICE[finding.kind],
    }


def _result_entry(result: AuditResult) -> dict[str, Any]:
    return {
        "network": result.recipient.network,
        "asset": result.recipient.asset,
        "payTo": result.recipient.pay_to,
        "fromBlock": result.blocks and result.blocks.first,
        "toBlock": result.audited_to,
        "transfers": result.transfers,
        "payments": result.payments,
        "problem": result.problem,
    }
