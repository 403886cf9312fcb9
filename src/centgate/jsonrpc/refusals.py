"""What a node's refusal means: nodes differ in codes and words, and here they come to the same.

What a node says is in lower case throughout.
"""

from __future__ import annotations

import re
from typing import Any, cast

LONGEST = 1000
"""Characters of a message that are looked at."""
REVERTED = 3
"""The error code of a call that reverts (geth's, and most nodes')."""

_RATE_CODES = (-32016, 429)
_TOO_OFTEN = (
    "rate limit",
    "rate exceeded",
    "too many request",
    "request limit",
    "request count",
    "per second",
    "throughput",
)
_TOO_MUCH = (
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
_OFF_THE_CHAIN = ("beyond", "invalid block range", "future block", "greater than latest", "not found")
"""Of ranges that end after what the node knows: a shorter one does not help."""
_HALTS = (
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
"""How nodes say that the call itself fails, whoever is asked."""
_NUMBER = re.compile(
    r"(?<![\w.,])(\d[\d,]*)\s?(k?)(?!\w|\.\d)(?!\s*(?:results?|logs?|events?|seconds?|ms|mb)\b)",
    re.IGNORECASE,
)
"""A number in a refusal, unless it counts something other than blocks."""


def error_in(entry: dict[str, Any]) -> tuple[int, str]:
    """Code and message, as it was written, of an error; some nodes say what they mean only in its data."""
    error: Any = entry.get("error")
    if not isinstance(error, dict):
        return 0, str(error or "")[:LONGEST]
    details = cast(dict[str, Any], error)
    code, message, data = str(details.get("code")), str(details.get("message") or ""), details.get("data")
    payload = cast(dict[str, Any], data).get("payload") if isinstance(data, dict) else None
    told = f"{message} {payload or ''}"
    return int(code) if code.removeprefix("-").isdigit() else 0, told.strip()[:LONGEST]


def is_rate(code: int, said: str) -> bool:
    """Whether it was asked too often."""
    return code in _RATE_CODES or any(words in said for words in _TOO_OFTEN)


def is_halt(code: int, said: str) -> bool:
    """Whether the call itself fails, whoever is asked."""
    return code == REVERTED or any(words in said for words in _HALTS)


def is_too_much(code: int, said: str) -> bool:
    """Whether it finds the blocks whose logs were asked for, or what is in them, too many."""
    return (
        not is_rate(code, said)
        and any(words in said for words in _TOO_MUCH)
        and not any(words in said for words in _OFF_THE_CHAIN)
    )


def blocks_allowed(said: str, refused: int) -> int | None:
    """The blocks that a refusal says are allowed: its largest number below those it refuses."""
    numbers = (int(match[1].replace(",", "")) * (1000 if match[2] else 1) for match in _NUMBER.finditer(said))
    return max((number for number in numbers if 0 < number < refused), default=None)
