"""Classify JSON-RPC errors, whose codes and messages differ between nodes.

Messages are expected in lower case.
"""

from __future__ import annotations

import re

REVERTED = 3
"""Error code of a call that reverts (geth, and most nodes)."""

_RATE_CODES = (-32016, 429)
_RATE_LIMIT_WORDS = (
    "rate limit",
    "rate exceeded",
    "too many request",
    "request limit",
    "request count",
    "per second",
    "throughput",
)
_RANGE_WORDS = (
    "range",
    "limit",
    "too many",
    "more than",
    "exceed",
    "too large",
    "too wide",
    "narrow",
    "response size",
    "timeout",
    "timed out",
)
_UNKNOWN_BLOCK_WORDS = ("beyond", "invalid block range", "future block", "greater than latest", "not found")
"""For ranges that end after the node's latest block: a shorter one does not help."""
_EXECUTION_FAILURE_WORDS = (
    "revert",
    "opcode",
    "out of gas",
    "outofgas",
    "gas required exceeds",
    "invalid jump",
    "stack",
    "bad instruction",
    "write protection",
    "vm execution error",
    "evm error",
    "execution aborted",
    "execution timeout",
)
"""For calls that fail on every node."""
_REFUSAL_WORDS = ("revert", "opcode", "invalid jump", "bad instruction", "stack")
_BLOCK_COUNT = re.compile(
    r"(?<![\w.,])(\d[\d,]*)\s?(k?)(?!\w|\.\d)(?!\s*(?:results?|logs?|events?|seconds?|ms|mb)\b)",
    re.IGNORECASE,
)
"""A number in an error message, unless it counts something other than blocks."""


def is_rate_limit(code: int, message: str) -> bool:
    """True for a rate limit error."""
    return code in _RATE_CODES or any(words in message for words in _RATE_LIMIT_WORDS)


def is_revert(code: int, message: str) -> bool:
    """True if the contract ended the call; the message may then have words of its own."""
    return code == REVERTED or "revert" in message


def is_execution_failure(code: int, message: str) -> bool:
    """True if the call itself fails, on every node."""
    return code == REVERTED or any(words in message for words in _EXECUTION_FAILURE_WORDS)


def is_refusal(code: int, message: str) -> bool:
    """True if an execution failure is the contract's own doing, and not a limit of the node's gas or time."""
    return code == REVERTED or any(words in message for words in _REFUSAL_WORDS)


def is_range_too_large(code: int, message: str) -> bool:
    """True if the node rejects a range of blocks, or the number of its logs, as too large."""
    return (
        not is_rate_limit(code, message)
        and any(words in message for words in _RANGE_WORDS)
        and not any(words in message for words in _UNKNOWN_BLOCK_WORDS)
    )


def parse_block_limit(message: str, refused: int) -> int | None:
    """Parse the allowed number of blocks: the largest number in the message below the refused one."""
    numbers = (
        int(match[1].replace(",", "")) * (1000 if match[2] else 1) for match in _BLOCK_COUNT.finditer(message)
    )
    return max((number for number in numbers if 0 < number < refused), default=None)
