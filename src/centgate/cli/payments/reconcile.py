"""The command `centgate payments reconcile`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from centgate.cli.payments import render
from centgate.cli.payments.context import (
    CommandContext,
    ExitCode,
    InvalidArgument,
    OutputFormat,
    print_renderable,
)
from centgate.cli.payments.serializers import payment_entry
from centgate.cli.terminal import create_console, print_json, print_message, text_line
from centgate.payments.journal.read_model import PaymentFilter, PaymentRecord
from centgate.provider_settings import ProviderSettings
from centgate.settings import Settings

if TYPE_CHECKING:
    from centgate.payments.reconciler import ReconcileResult


async def reconcile_now(
    context: CommandContext, *, dry_run: bool, nodes: Sequence[str], output_format: OutputFormat
) -> ExitCode:
    """Look up once, now, the outcome of every open payment."""
    settings = _with_nodes(context.settings, nodes)
    before = await _list_open_payments(context)
    if dry_run:
        return _show_open_payments(context, before, output_format=output_format)
    from centgate.payments import reconciler

    resolutions = await reconciler.reconcile_all(settings) if before else []
    if before:
        await context.record_action("reconcile", reconciler.describe_results(resolutions))
    checked = {each.key for each in resolutions}
    after = await _list_open_payments(context)
    if output_format == "json":
        resolved = [_resolution_entry(each) for each in resolutions]
        print_json({"resolved": resolved, "open": [payment_entry(each, context.view) for each in after]})
    elif not before:
        print_message("no payment is open")
    else:
        if resolutions:
            print_renderable(render.resolutions_table(resolutions, create_console().width))
        busy = sum(each.key not in checked for each in after)
        busy_note = f" ({busy} claimed by servers that are processing them or have just died)" if busy else ""
        print_renderable(text_line(f"\nOpen before: {len(before)}, now: {len(after)}{busy_note}."))
        if busy:
            print_message("run it again in a few seconds: claims of a server that died expire by then")
    return 1 if after else 0


async def _list_open_payments(context: CommandContext) -> list[PaymentRecord]:
    return [each async for each in context.iterate_payments(PaymentFilter("open"))]


def _show_open_payments(
    context: CommandContext, before: list[PaymentRecord], *, output_format: OutputFormat
) -> ExitCode:
    if output_format == "json":
        print_json({"wouldAsk": [payment_entry(each, context.view) for each in before]})
    elif before:
        print_renderable(render.payments_table(before, context.view, create_console().width))
        print_renderable(text_line(f"\nOpen: {len(before)}. Nothing was looked up."))
    else:
        print_message("no payment is open")
    return 1 if before else 0


def _with_nodes(settings: Settings, nodes: Sequence[str]) -> Settings:
    """Return the settings with the nodes of --rpc: URLs, or networks and URLs. Raises InvalidArgument."""
    providers: dict[str, ProviderSettings] = {}
    for node in nodes:
        found = re.fullmatch(r"(?:eip155:([1-9][0-9]{0,18})=)?(https?://[^\s]+)", node)
        if found is None:
            raise InvalidArgument(f"--rpc must be a node's URL, http://… or https://…, not {node!r}")
        if found[1] is None and len(settings.payment_networks) > 1:
            raise InvalidArgument(f"--rpc needs the node's network: --rpc {settings.network}={found[2]}")
        chain_id = found[1] or str(settings.chain_id)
        if f"rpc_{chain_id}" in providers:
            raise InvalidArgument(f"--rpc names two nodes of eip155:{chain_id}: name one for each network")
        providers[f"rpc_{chain_id}"] = ProviderSettings(url=found[2])
    return settings.model_copy(update={"providers": {**settings.providers, **providers}})


def _resolution_entry(each: ReconcileResult) -> dict[str, Any]:
    return {
        "network": each.key.network,
        "asset": each.key.asset,
        "payer": each.key.payer,
        "nonce": each.key.nonce,
        "before": each.state_before,
        "after": each.state_after,
        "transaction": each.transaction,
        "reason": each.reason,
    }
