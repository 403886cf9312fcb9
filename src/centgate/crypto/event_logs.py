"""Event logs of contracts, in the format of `eth_getLogs` and of the explorers that follow it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from centgate.chains import from_chain_seconds

TopicFilter = Sequence[str | Sequence[str] | None]
"""A topic by position: one, any of several, or any at all."""

MAX_BLOCK_NUMBER = 2**53
_ADDRESS_PATTERN, _WORD_PATTERN = re.compile("0x[0-9a-fA-F]{40}"), re.compile("0x[0-9a-fA-F]{64}")
_DATA_PATTERN = re.compile("0x(?:[0-9a-fA-F]{2})*")


class EventLog(Struct, frozen=True):
    """Event log: emitting address, topics and data, all in lower case, and position in the chain."""

    address: str
    topics: tuple[str, ...]
    data: str
    block: int
    index: int
    transaction: str
    timestamp: int | None = None
    """Time of the block, in seconds since 1970, where the source gives it."""


class EventLogs(Struct, frozen=True):
    """Event logs of a range of blocks, oldest first."""

    entries: tuple[EventLog, ...]
    from_block: int
    to_block: int
    unread: int = 0
    """Number of logs that could not be parsed."""
    is_cut: bool = False
    """True if the source has more logs, newer than these."""


class LogRange(Struct, frozen=True, kw_only=True):
    """Range of blocks whose event logs were read, by an explorer or a node."""

    from_block: int
    """First block from which all were read, 0 for the whole history; some older ones may be there too."""
    to_block: int | None
    """Last block; None if the source does not say how far it reaches."""
    head: int | None
    """Newest block of the node; None if it gave none."""
    unread: int = 0
    """Number of events that could not be parsed."""
    lacks_recent: bool = False
    """True if newer events may be missing, as it is not known how far the source reaches."""

    @property
    def is_complete(self) -> bool:
        """True if the range is the whole chain, and every event was understood."""
        return self.from_block == 0 and not self.unread and not self.lacks_recent


def parse_event_log(entry: Any, chain_id: int) -> EventLog | None:
    """Parse a log object; None if it is not in the expected format.

    Explorers add `timeStamp`, write the number 0 as `0x`, and fill the topics up with null.
    """
    try:
        return EventLog(
            address=_require_match(_ADDRESS_PATTERN, entry["address"]),
            topics=tuple(_require_match(_WORD_PATTERN, each) for each in entry["topics"] if each is not None),
            data=_require_match(_DATA_PATTERN, entry["data"]),
            block=parse_hex_number(entry["blockNumber"]),
            index=parse_hex_number(entry["logIndex"]),
            transaction=_require_match(_WORD_PATTERN, entry["transactionHash"]),
            timestamp=_parse_time(entry, chain_id),
        )
    except (ValueError, LookupError, TypeError):
        return None


def parse_hex_number(value: Any) -> int:
    """Parse a block number or a position; ValueError if it is out of range."""
    if not 0 <= (number := 0 if value == "0x" else int(value, 16)) < MAX_BLOCK_NUMBER:
        raise ValueError("not a block number")
    return number


def has_topics(log: EventLog, topics: TopicFilter) -> bool:
    """Return True if an event has the requested topics; some sources return others."""
    return len(topics) <= len(log.topics) and all(
        filter_topic is None or topic in ([filter_topic] if isinstance(filter_topic, str) else filter_topic)
        for filter_topic, topic in zip(topics, log.topics, strict=False)
    )


def _parse_time(entry: Mapping[str, Any], chain_id: int) -> int | None:
    stated = entry.get("timeStamp")
    time = (
        from_chain_seconds(int(stated, 16), chain_id)
        if isinstance(stated, str) and stated[:2] == "0x"
        else None
    )
    return int(time.timestamp()) if time else None


def _require_match(pattern: re.Pattern[str], value: Any) -> str:
    if not pattern.fullmatch(value):
        raise ValueError("not in the expected format")
    return value.lower()
