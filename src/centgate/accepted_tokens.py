"""Tokens that payments are accepted in: the value of `CENTGATE_ACCEPTS`, a JSON list of objects.

Each entry has `network` (CAIP-2) and `payTo`, and `asset`, `name` and `version` unless the network's USDC is
known. Its order is the order in which buyers are offered the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct

from centgate.signing.asset_entries import (
    decode_list,
    parse_asset,
    require_address,
    require_fields,
    require_network,
)
from centgate.signing.assets import USDC, Asset, is_test_network

MAX_TOKENS = 6
"""Maximum number of entries: each makes the header `PAYMENT-REQUIRED` about 400 bytes longer."""
_KEYS = ("network", "payTo", "asset", "name", "version")


class AcceptedToken(Struct, frozen=True):
    """A token that payments are accepted in, with its network (CAIP-2) and the address that receives it."""

    network: str
    asset: Asset
    pay_to: str

    def __str__(self) -> str:
        return f"{self.asset.name} ({self.asset.address}) on {self.network} to {self.pay_to}"

    @property
    def is_known_usdc(self) -> bool:
        """True if this software knows the token as Circle's USDC."""
        usdc = USDC.get(self.network)
        return usdc is not None and usdc.address.lower() == self.asset.address.lower()


def parse_accepted_tokens(value: Any) -> tuple[AcceptedToken, ...]:
    """Parse `CENTGATE_ACCEPTS`; values that are parsed already are checked as a list. Raises ValueError."""
    entries = decode_list(value) if isinstance(value, str) else value
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


def _parse_entry(entry: Any, place: str) -> AcceptedToken:
    """Parse one entry; `place` names it in errors."""
    fields = require_fields(entry, _KEYS, place)
    network = require_network(fields, place)
    pay_to = require_address(fields, "payTo", place)
    return AcceptedToken(network, parse_asset(fields, network, place), pay_to)


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
