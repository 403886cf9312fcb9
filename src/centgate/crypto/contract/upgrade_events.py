"""Parse the events by which proxies tell that their code was changed. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from centgate.crypto.abi import WORD, event_topic, parse_address_word, read_number
from centgate.crypto.contract.contracts import ProxyKind
from centgate.crypto.event_logs import EventLog

UPGRADED_TOPIC = event_topic("Upgraded(address)")
"""Upgraded(address implementation) of EIP-1967, also of beacons; the argument is indexed in most."""
DIAMOND_CUT_TOPIC = event_topic("DiamondCut((address,uint8,bytes4[])[],address,bytes)")
"""DiamondCut of EIP-2535: facets with an action (0 adds, 1 replaces, 2 removes functions) and selectors."""
UPGRADE_TOPICS: Mapping[ProxyKind, str] = {
    "eip1967": UPGRADED_TOPIC,
    "eip1967_beacon": UPGRADED_TOPIC,
    "zeppelinos": UPGRADED_TOPIC,
    "eip2535": DIAMOND_CUT_TOPIC,
}
"""Event of each kind of proxy whose specification or only published code has one."""
MAX_CUTS = 200
"""Facets of one event; more do not fit into a block of any chain together with their functions."""


class Upgrade(Struct, frozen=True):
    """Change of the code behind a proxy."""

    implementation: str | None
    """Lower case; None if a diamond only removed functions."""
    block: int
    timestamp: int | None
    """Seconds since 1970; None if the source does not give it."""
    transaction: str


def parse_upgrades(log: EventLog) -> list[Upgrade]:
    """Return the changes that an event tells, one for each facet of a diamond; empty if it is unreadable."""
    try:
        return [
            Upgrade(address, log.block, log.timestamp, log.transaction)
            for address in _list_implementations(log)
        ]
    except ValueError:
        return []


def contradicting_implementation(upgrade: Upgrade, implementations: Collection[str]) -> str | None:
    """Return the contract that the latest upgrade names, if a proxy shows another; None if they agree.

    A contract may keep the address of harmless code in the slot of EIP-1967, where explorers look, and run
    other code.
    """
    named = upgrade.implementation
    return named if named and implementations and named not in implementations else None


def _list_implementations(log: EventLog) -> list[str | None]:
    """Return the contracts that an event names; ValueError if it is not in the published format."""
    data = bytes.fromhex(log.data[2:])
    if log.topics[0] == DIAMOND_CUT_TOPIC:
        return list(dict.fromkeys(_list_facets(data))) or [None]
    word = bytes.fromhex(log.topics[1][2:]) if len(log.topics) == 2 else data
    if (implementation := parse_address_word(word)) is None:
        raise ValueError("not an address")
    return [implementation]


def _list_facets(data: bytes) -> Iterator[str]:
    """Yield the facets that a DiamondCut event adds or puts in place of others.

    The selectors are not decoded: hostile data may point at one long list of them from everywhere.
    """
    start = read_number(data, 0)
    count, first = read_number(data, start), start + WORD
    if count > MAX_CUTS:
        raise ValueError("too many facets")
    for position in range(count):
        cut = first + read_number(data, first + position * WORD)
        action, facet = read_number(data, cut + WORD), parse_address_word(data[cut : cut + WORD])
        if action > 2 or (facet is None and any(data[cut : cut + WORD])):
            raise ValueError("not a cut")
        if facet and action < 2:
            yield facet
