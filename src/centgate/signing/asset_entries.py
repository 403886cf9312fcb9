"""Entries of a JSON list that name dollar tokens, in the settings of servers and of buyers.

An entry has `network` (CAIP-2), and `asset`, `name` and `version` unless the network's USDC is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from centgate.signing.assets import NETWORK_ID, USDC, Asset
from centgate.signing.evm import to_checksum_address

NETWORK_PATTERN = rf"^{NETWORK_ID}$"
ADDRESS_PATTERN = r"^0x[0-9a-fA-F]{40}$"
DEFAULT_VERSION = "2"
"""Version of the EIP-712 domain unless one is set: that of Circle's contracts."""
MAX_NAME_LENGTH = 80
"""Maximum bytes of the token's name and version together: they are in every challenge."""


def decode_list(text: str) -> Any:
    """Decode JSON in which no key of an object is there twice. Raises ValueError."""
    try:
        return json.loads(text, object_pairs_hook=_build_object)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    except RecursionError:
        raise ValueError("not a list of objects: it is nested too deeply") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name[:40]!r} is there twice in one entry")
    return dict(pairs)


def require_fields(entry: Any, keys: Sequence[str], place: str) -> dict[str, str]:
    """Return an entry with no keys but these, and texts as values; `place` names it in errors.

    Raises ValueError.
    """
    if not isinstance(entry, dict):
        raise ValueError(f"{place} is not a JSON object")
    fields = cast(dict[str, Any], entry)
    for name, value in fields.items():
        if name not in keys:
            raise ValueError(f"{place}: unknown key {name[:40]!r}; the keys are {', '.join(keys)}")
        if not isinstance(value, str) or not value:
            raise ValueError(f"{place}: {name} is not a text in quotes")
    return fields


def require_network(fields: dict[str, str], place: str) -> str:
    """Return the network (CAIP-2) of an entry. Raises ValueError."""
    return _require_match(fields, "network", NETWORK_PATTERN, "a network such as eip155:8453", place)


def parse_asset(fields: dict[str, str], network: str, place: str) -> Asset:
    """Return the token of an entry: the network's USDC unless it names another. Raises ValueError."""
    known = USDC.get(network)
    if "asset" not in fields and known is None:
        raise ValueError(
            f"{place}: no token is known on {network}: add its asset, name and version (EIP-712)"
        )
    address = require_address(fields, "asset", place) if "asset" in fields else None
    if known and address in (None, known.address):
        stated = (fields.get("name", known.name), fields.get("version", known.version))
        if stated != (known.name, known.version):
            raise ValueError(
                f"{place}: USDC on {network} has the name {known.name!r} and version {known.version!r}, not "
                f"{stated[0][:MAX_NAME_LENGTH]!r} and {stated[1][:MAX_NAME_LENGTH]!r}"
            )
        return known
    assert address is not None
    if "name" not in fields:
        raise ValueError(f"{place}: add the name of the token {address} in its EIP-712 domain")
    name, version = fields["name"], fields.get("version", DEFAULT_VERSION)
    if problem := find_name_problem(name, version):
        raise ValueError(f"{place}: {problem}")
    return Asset(address, name, version)


def find_name_problem(name: str, version: str) -> str | None:
    """Return why a token's name and version (EIP-712) cannot be those of terms; None if they can."""
    if not (name + version).isprintable():
        return "the token's name or version has a character that cannot be printed"
    if len((name + version).encode()) > MAX_NAME_LENGTH:
        return f"the token's name and version are longer than {MAX_NAME_LENGTH} bytes"
    return None


def require_address(fields: dict[str, str], name: str, place: str) -> str:
    """Return an address of an entry with its EIP-55 checksum. Raises ValueError."""
    address = _require_match(fields, name, ADDRESS_PATTERN, "an address (0x and 40 hex digits)", place)
    if not int(address, 16):
        raise ValueError(f"{place}: {name} is the zero address")
    try:
        return to_checksum_address(address)
    except ValueError as error:
        raise ValueError(f"{place}: {name}: {error}") from None


def _require_match(fields: dict[str, str], name: str, pattern: str, what: str, place: str) -> str:
    if name not in fields:
        raise ValueError(f"{place} has no {name}")
    if not re.fullmatch(pattern, fields[name]):
        raise ValueError(f"{place}: {name} {fields[name][:60]!r} is not {what}")
    return fields[name]
