"""Read when the code behind a proxy was changed, from its event logs."""

from __future__ import annotations

from dataclasses import dataclass

from centgate.crypto.contract.bytecode import parse_address_word
from centgate.crypto.event_logs import EventLog
from centgate.lookups.log_history import LogReader
from centgate.signing.evm import keccak

UPGRADED_TOPIC = "0x" + keccak(b"Upgraded(address)").hex()
"""Upgraded(address implementation), of proxies by EIP-1967; the argument is indexed in most."""
UPGRADE_REQUESTS = 4
"""Most queries of event logs to a node."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Change of the code behind a proxy."""

    implementation: str
    """Lower case."""
    block: int
    timestamp: int | None
    """Seconds since 1970; None if the source does not give it."""
    transaction: str


@dataclass(frozen=True, slots=True)
class UpgradeHistory:
    """Changes of the code behind a proxy in a range of blocks, the latest first."""

    upgrades: tuple[Upgrade, ...]
    from_block: int
    """0 if the whole history was read."""
    to_block: int


async def read_upgrades(reader: LogReader, proxy: str) -> UpgradeHistory:
    """Return the upgrades of a proxy. Raises ProviderFailure if no source provides logs."""
    logs = await reader.read([UPGRADED_TOPIC], address=proxy, requests=UPGRADE_REQUESTS)
    upgrades = [upgrade for log in reversed(logs.entries) if (upgrade := _parse_upgrade(log))]
    return UpgradeHistory(tuple(upgrades), logs.from_block, logs.to_block)


def _parse_upgrade(log: EventLog) -> Upgrade | None:
    word = log.topics[1] if len(log.topics) == 2 else log.data
    implementation = parse_address_word(bytes.fromhex(word[2:])) if len(word) == 66 else None
    return (implementation and Upgrade(implementation, log.block, log.timestamp, log.transaction)) or None
