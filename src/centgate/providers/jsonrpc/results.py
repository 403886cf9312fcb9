"""Values of a node's results, parsed from JSON. The parsers raise ValueError, LookupError or TypeError."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from centgate.coercion import from_unix_seconds
from centgate.crypto.event_logs import parse_hex_number


class BlockHeader(Struct, frozen=True):
    number: int
    timestamp: int
    """Seconds since 1970."""


class OnchainAccount(Struct, frozen=True):
    """State of an account: code, number of transactions sent, and 32 bytes of storage slot 0."""

    code: bytes
    transaction_count: int
    first_slot: bytes


def parse_bytes(value: Any) -> bytes:
    return bytes.fromhex(value.removeprefix("0x"))


def parse_padded(value: Any) -> bytes:
    """Parse hex digits, also those of a quantity, which may be odd in number."""
    digits = value.removeprefix("0x")
    return bytes.fromhex("0" * (len(digits) % 2) + digits)


def parse_word(value: Any) -> bytes:
    # some nodes omit leading zeros, or all of them
    return int(value.removeprefix("0x") or "0", 16).to_bytes(32, "big")


def parse_number(value: Any) -> int:
    return int(value, 16)


def parse_block(block: Any) -> BlockHeader:
    seconds = parse_number(block["timestamp"])
    if seconds and not from_unix_seconds(seconds):
        raise ValueError("not a block time")
    return BlockHeader(parse_hex_number(block["number"]), seconds)
