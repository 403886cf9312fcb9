"""Parse the signatures of functions from a published ABI, which anybody can write. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from centgate.signing.evm import keccak

MAX_ABI_ENTRIES = 1_000
"""Functions, events and errors of one ABI that are read; a genuine contract has far fewer."""
MAX_SIGNATURE_CHARACTERS = 300
MAX_TYPE_DEPTH = 8
"""Structs in structs; each level is a recursion."""
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,63}")
_ELEMENTARY = re.compile(r"(?:u?int\d{1,3}|address|bool|string|function|bytes\d{0,2})((?:\[\d{0,5}\])*)")
_TUPLE = re.compile(r"tuple((?:\[\d{0,5}\])*)")


def parse_signatures(abi: Any) -> tuple[str, ...]:
    """Return the signatures of the functions in an ABI, without those in an unknown format."""
    entries = cast(list[Any], abi)[:MAX_ABI_ENTRIES] if isinstance(abi, list) else []
    signatures = (
        _parse_function(cast(Mapping[str, Any], each)) for each in entries if isinstance(each, Mapping)
    )
    return tuple(dict.fromkeys(filter(None, signatures)))


def index_signatures(signatures: Iterable[str]) -> dict[bytes, str]:
    """Return signatures by selector. They are hashed, so that a false one fits no function."""
    return {keccak(signature.encode())[:4]: signature for signature in signatures}


def _parse_function(entry: Mapping[str, Any]) -> str | None:
    name = entry.get("name")
    if entry.get("type") != "function" or not isinstance(name, str) or not _NAME.fullmatch(name):
        return None
    types = _parse_types(entry.get("inputs"), MAX_TYPE_DEPTH)
    if types is None or len(name) + len(types) > MAX_SIGNATURE_CHARACTERS:
        return None
    return name + types


def _parse_types(inputs: Any, depth: int) -> str | None:
    """Return the types of arguments or of a struct's members in brackets; None in an unknown format."""
    if not isinstance(inputs, list) or depth == 0:
        return None
    types: list[str] = []
    for each in cast(list[Any], inputs)[:MAX_SIGNATURE_CHARACTERS]:
        parsed = _parse_type(cast(Mapping[str, Any], each), depth) if isinstance(each, Mapping) else None
        if parsed is None:
            return None
        types.append(parsed)
    return f"({','.join(types)})"


def _parse_type(argument: Mapping[str, Any], depth: int) -> str | None:
    stated = argument.get("type")
    if not isinstance(stated, str):
        return None
    if _ELEMENTARY.fullmatch(stated):
        return stated
    if (match := _TUPLE.fullmatch(stated)) is None:
        return None
    members = _parse_types(argument.get("components"), depth - 1)
    return members + match[1] if members is not None else None
