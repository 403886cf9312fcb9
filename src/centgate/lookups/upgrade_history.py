"""Read when the code behind a proxy was changed, from its event logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.contract.account_finding import AccountFinding
from centgate.crypto.contract.contracts import CLONE_KINDS
from centgate.crypto.contract.upgrade_events import (
    UPGRADE_TOPICS,
    UPGRADED_TOPIC,
    Upgrade,
    contradicting_implementation,
    parse_upgrades,
)
from centgate.errors import NoData
from centgate.fallback import attempt
from centgate.lookups.log_history import LogReader
from centgate.provider import RequestTrace

UPGRADE_REQUESTS = 4
"""Most queries of event logs to a node."""
MAX_UPGRADES = 50
"""Upgrades that are kept, the latest."""


class UpgradeHistory(Struct, frozen=True):
    """Changes of the code behind a proxy in a range of blocks, the latest first."""

    upgrades: tuple[Upgrade, ...]
    """At most `MAX_UPGRADES`."""
    count: int
    """Number of all that were found."""
    from_block: int
    """0 if the whole history was read."""
    to_block: int | None
    """Last block that was read; None if the source does not say how far it reaches."""
    unread: int = 0
    """Number of event logs that could not be read; recent ones that no source told count as one."""


async def read_contract_upgrades(
    reader: LogReader, finding: AccountFinding, address: str, trace: RequestTrace
) -> UpgradeHistory | None:
    """Return the upgrades of a proxy; None for other contracts, or, with a warning, if they are not known."""
    if not finding.is_proxy or finding.kind in CLONE_KINDS or finding.account != "contract":
        return None
    history = await attempt(read_upgrades, reader, finding, address)
    if not isinstance(history, UpgradeHistory):
        reason = (
            "its kind has no published event for them" if isinstance(history, NoData) else "no event logs"
        )
        trace.add_warning(f"the upgrades of this proxy are not known: {reason}")
        return None
    for warning in (*_list_upgrade_gaps(history), *_list_contradictions(history, finding)):
        trace.add_warning(warning)
    return history


def _list_upgrade_gaps(history: UpgradeHistory) -> Iterator[str]:
    """Yield a warning for each reason why the list of upgrades may lack some."""
    if history.unread:
        yield "the upgrades of this proxy may be incomplete: not all event logs could be read"
    if (left_out := history.count - len(history.upgrades)) > 0:
        yield f"{left_out} older upgrades of this proxy are left out"
    if not history.count and history.from_block == 0:
        yield (
            "this proxy has no event of an upgrade, nor one of its creation, which most proxies have: its "
            "code may have been changed without an event"
        )


def _list_contradictions(history: UpgradeHistory, finding: AccountFinding) -> Iterator[str]:
    """Yield a warning if the latest upgrade of a proxy was to other code than the proxy shows.

    A diamond has many facets, of which one event names few. An event older than the blocks that were read in
    full may not be the latest.
    """
    latest = history.upgrades[0] if history.upgrades else None
    if latest is None or finding.kind == "eip2535" or latest.block < history.from_block:
        return
    if named := contradicting_implementation(latest, finding.implementations):
        yield (
            f"the latest event of an upgrade names {named}, but this proxy shows "
            f"{finding.implementations[0]} as its implementation: the code that it runs may be another than "
            "the one described here"
        )


async def read_upgrades(reader: LogReader, finding: AccountFinding, proxy: str) -> UpgradeHistory:
    """Return the upgrades of a proxy; behind a beacon those of the beacon, which alone is upgraded.

    Raises ProviderFailure if no source provides logs. Raises NoData if there are no events and the kind of
    proxy has no published one: it may have been upgraded without an event.
    """
    topic = UPGRADE_TOPICS.get(finding.kind) if finding.kind else None
    logs = await reader.read(
        [topic or UPGRADED_TOPIC], address=finding.beacon or proxy, requests=UPGRADE_REQUESTS
    )
    if not topic and not logs.entries:
        raise NoData("this kind of proxy has no published event for its upgrades")
    changes = [parse_upgrades(log) for log in reversed(logs.entries)]
    found = [upgrade for upgrades in changes for upgrade in upgrades]
    return UpgradeHistory(
        tuple(await _add_times(reader, found[:MAX_UPGRADES])),
        len(found),
        logs.from_block,
        logs.to_block,
        logs.unread + changes.count([]) + int(logs.lacks_recent),
    )


async def _add_times(reader: LogReader, upgrades: Sequence[Upgrade]) -> list[Upgrade]:
    """Add the times of blocks where the source of the logs does not give them."""
    times = await reader.block_times({each.block for each in upgrades if each.timestamp is None})
    return [
        each if each.timestamp is not None else replace(each, timestamp=times.get(each.block))
        for each in upgrades
    ]
