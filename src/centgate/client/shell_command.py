"""The shell command of a purchase, as code samples and error messages show it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, cast


def format_command(slug: str, body: Mapping[str, Any], *, network: str | None = None) -> str:
    """Return the shell command that sends a body to a service, with the network to pay on."""
    pairs = [f"{name}={value}" for name, value in body.items() for value in _to_arguments(value)]
    return shlex.join(["centgate", "call", slug, *pairs, *(["--network", network] if network else [])])


def _to_arguments(value: Any) -> list[str]:
    """Return the command-line texts of a value: one for each item of a list."""
    if isinstance(value, list):
        return [text for each in cast(list[Any], value) for text in _to_arguments(each)]
    return [value if isinstance(value, str) else json.dumps(value)]
