"""Finding out now what is open: `centgate payments reconcile`."""

from __future__ import annotations

import re
from typing import Any

from centgate.client.shell.printing import console, line
from centgate.payments import telling
from centgate.payments.desk import BadArgument, Desk, ExitCode, Shape, print_json, show
from centgate.payments.entries import entry
from centgate.payments.records import Record, Wanted, every
from centgate.settings import ProviderSettings, Settings
from centgate.terminal import say


async def reconcile(desk: Desk, *, dry_run: bool, rpc: str | None, shape: Shape) -> ExitCode:
    """Ask once, now, what became of every payment whose outcome is open."""
    settings = _asking(desk.settings, rpc)
    before = [each async for each in every(desk.books.reader, Wanted("open"), desk.outlook.lapsed)]
    if dry_run:
        return _would_ask(desk, before, shape=shape)
    from centgate.payments import upkeep

    resolutions = await upkeep.reconcile(settings) if before else []
    asked = {each.key for each in resolutions}
    after = [each async for each in every(desk.books.reader, Wanted("open"), desk.outlook.lapsed)]
    if shape == "json":
        done = [_resolution(each) for each in resolutions]
        print_json({"resolved": done, "open": [entry(each, desk.outlook) for each in after]})
    elif not before:
        desk.none("nothing is open")
    else:
        if resolutions:
            show(telling.resolutions_table(resolutions, console().width))
        busy = sum(each.key not in asked for each in after)
        left_out = f" ({busy} left to servers that are at work on them, or have just died)" if busy else ""
        show(line(f"\nOpen before: {len(before)}, now: {len(after)}{left_out}."))
        if busy:
            say("run it again in a few seconds: a server that died is taken for dead by then")
    return 1 if after else 0


def _would_ask(desk: Desk, before: list[Record], *, shape: Shape) -> ExitCode:
    if shape == "json":
        print_json({"wouldAsk": [entry(each, desk.outlook) for each in before]})
    elif before:
        show(telling.payments_table(before, desk.outlook, console().width))
        show(line(f"\nOpen: {len(before)}. Nothing was asked."))
    else:
        desk.none("nothing is open")
    return 1 if before else 0


def _asking(settings: Settings, rpc: str | None) -> Settings:
    """The settings with a node for this once; BadArgument."""
    if rpc is None:
        return settings
    if not re.match(r"https?://[^\s]+$", rpc):
        raise BadArgument(f"--rpc is a node's address, http://… or https://…, not {rpc!r}")
    node = {f"rpc_{settings.chain_id}": ProviderSettings(url=rpc)}
    return settings.model_copy(update={"providers": {**settings.providers, **node}})


def _resolution(each: Any) -> dict[str, Any]:
    return {
        "network": each.key.network,
        "asset": each.key.asset,
        "payer": each.key.payer,
        "nonce": each.key.nonce,
        "before": each.before,
        "after": each.after,
        "transaction": each.transaction,
        "reason": each.reason,
    }
