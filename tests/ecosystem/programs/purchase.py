"""The purchase of every program: a verdict about a host that is on the phishing list."""

from __future__ import annotations

import sys
from collections.abc import Sized

TOOL = "phishing-check"
QUESTION = {"url": "wallet-ethereum.net"}

URL, COMMAND, API, KEY = sys.argv[1:5] if len(sys.argv) > 4 else ("", "", *sys.argv[1:3])
"""The API's MCP address and the command `centgate`, which only programs for MCP get; API; payer's key."""
ARGUMENTS = ["mcp", "--api", API]
ENVIRONMENT = {"CENTGATE_WALLET_KEY": KEY}


def report(listed: Sized, bought: Sized, answer: object) -> None:
    """Print the listed tools and the answer. Raises AssertionError if a tool or the verdict is missing."""
    assert len(listed) == len(bought) > 1
    assert "blocked" in str(answer), answer
    print(f"{len(listed)} tools, 1 answer")
