"""Read when the code behind a proxy was changed, from its event logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from centgate.crypto.contract.account_finding import AccountFinding
from centgate.crypto.contract.upgrade_events import UPGRADE_TOPICS, UPGRADED_TOPIC, Upgrade, parse_upgrades
from centgate.errors import NoData
from centgate.lookups.log_history import LogReader

UPGRADE_REQUESTS = 4
"""Most queries of event logs to a node."""
MAX_UPGRADES = 50
"""Upgrades that are kept, the latest."""


@dataclass(frozen=True, slots=True)
class UpgradeHistory:
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


async def read_upgrades(reader: LogReader, finding: AccountFinding, proxy: str) -> UpgradeHistory:
    """Return the upgrades of a proxy; behind a beacon those of the beacon, which alone is upgraded.

    Raises ProviderFailure if no source provides logs, and NoData if there are none and the kind of proxy has
    no published event: it may have been upgraded without one.
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
