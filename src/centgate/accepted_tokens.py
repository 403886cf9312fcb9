"""Tokens that payments are accepted in: the value of `CENTGATE_ACCEPTS`, a JSON list of objects.

Each entry has `network` (CAIP-2) and `payTo`, and `asset`, `name` and `version` unless the network's USDC is
known. Its order is the order in which buyers are offered the tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from centgate.signing.assets import NETWORK_ID, USDC, Asset, is_test_network
from centgate.signing.evm import to_checksum_address

NETWORK_PATTERN = rf"^{NETWORK_ID}$"
ADDRESS_PATTERN = r"^0x[0-9a-fA-F]{40}$"
DEFAULT_VERSION = "2"
"""Version of the EIP-712 domain unless one is set: that of Circle's contracts."""
MAX_TOKENS = 6
"""Maximum number of entries: each makes the header `PAYMENT-REQUIRED` about 400 bytes longer."""
MAX_NAME_LENGTH = 80
"""Maximum bytes of the token's name and version together: they are in every challenge."""
_KEYS = ("network", "payTo", "asset", "name", "version")


@dataclass(frozen=True, slots=True)
class AcceptedToken:
    """A token that payments are accepted in, with its network (CAIP-2) and the address that receives it."""

    network: str
    asset: Asset
    pay_to: str

    def __str__(self) -> str:
        return f"{self.asset.name} ({self.asset.address}) on {self.network} to {self.pay_to}"

    @property
    def chain_id(self) -> int:
        """The EIP-155 id of the network."""
        return int(self.network.removeprefix("eip155:"))

    @property
    def is_known_usdc(self) -> bool:
        """True if this software knows the token as Circle's USDC."""
        usdc = USDC.get(self.network)
        return usdc is not None and usdc.address.lower() == self.asset.address.lower()


def parse_accepted_tokens(value: Any) -> tuple[AcceptedToken, ...]:
    """Parse `CENTGATE_ACCEPTS`; values that are parsed already are checked as a list. Raises ValueError."""
    entries = _decode_list(value) if isinstance(value, str) else value
    if not isinstance(entries, list | tuple):
        raise ValueError('needs a JSON list: [{"network": "eip155:8453", "payTo": "0x…"}, …]')
    items = cast(Sequence[Any], entries)
    if isinstance(value, str) and not items:
        raise ValueError("the list is empty: name at least one token, or do not set it")
    tokens = tuple(
        each if isinstance(each, AcceptedToken) else _parse_entry(each, f"entry {number}")
        for number, each in enumerate(items, 1)
    )
    _check_list(tokens)
    return tokens


def _decode_list(text: str) -> Any:
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


def _parse_entry(entry: Any, place: str) -> AcceptedToken:
    """Parse one entry; `place` names it in errors."""
    if not isinstance(entry, dict):
        raise ValueError(f"{place} is not a JSON object")
    fields = cast(dict[str, Any], entry)
    for name, value in fields.items():
        if name not in _KEYS:
            raise ValueError(f"{place}: unknown key {name[:40]!r}; the keys are {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value:
            raise ValueError(f"{place}: {name} is not a text in quotes")
    network = _require_match(fields, "network", NETWORK_PATTERN, "a network such as eip155:8453", place)
    pay_to = _require_address(fields, "payTo", place)
    return AcceptedToken(network, _parse_asset(fields, network, place), pay_to)


def _parse_asset(fields: dict[str, str], network: str, place: str) -> Asset:
    known = USDC.get(network)
    if "asset" not in fields and known is None:
        raise ValueError(
            f"{place}: no token is known on {network}: add its asset, name and version (EIP-712)"
        )
    address = _require_address(fields, "asset", place) if "asset" in fields else None
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


def _require_address(fields: dict[str, str], name: str, place: str) -> str:
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


def _check_list(tokens: Sequence[AcceptedToken]) -> None:
    """Raise ValueError for too many tokens, for one that is there twice, and for test money beside real."""
    if len(tokens) > MAX_TOKENS:
        raise ValueError(f"{len(tokens)} entries are too many: at most {MAX_TOKENS}")
    seen: set[tuple[str, str]] = set()
    for number, each in enumerate(tokens, 1):
        if (key := (each.network, each.asset.address)) in seen:
            raise ValueError(f"entry {number}: the token {key[1]} on {key[0]} is there twice")
        seen.add(key)
    if len({is_test_network(each.network) for each in tokens}) > 1:
        tests = ", ".join(each.network for each in tokens if is_test_network(each.network))
        raise ValueError(
            f"test networks ({tests}) and networks with real money cannot be accepted together: answers "
            "would be sold for money without value. Use one deployment for each"
        )
