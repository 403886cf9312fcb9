"""Contracts, as every registry of published sources tells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from centgate.readings import address, name

Registry = Literal["etherscan", "sourcify", "blockscout"]
ContractSource = Literal["etherscan", "sourcify", "blockscout", "rpc"]
AccountKind = Literal["contract", "wallet", "delegated_wallet", "unknown"]
MatchLevel = Literal["exact", "bytecode", "unspecified", "similar", "none"]
ProxyKind = Literal[
    "eip1167",
    "eip1822",
    "eip1967",
    "eip1967_beacon",
    "eip2535",
    "eip7702",
    "clone_with_immutable_args",
    "safe",
    "zeppelinos",
    "other",
]

MOST_NAMED = 60
"""Implementations of one proxy that are told."""
_SPDX = {
    "mit": "MIT",
    "unlicense": "Unlicense",
    "gnugplv2": "GPL-2.0",
    "gnugplv3": "GPL-3.0",
    "gnulgplv21": "LGPL-2.1",
    "gnulgplv3": "LGPL-3.0",
    "gnuagplv3": "AGPL-3.0",
    "bsd2clause": "BSD-2-Clause",
    "bsd3clause": "BSD-3-Clause",
    "mpl20": "MPL-2.0",
    "osl30": "OSL-3.0",
    "apache20": "Apache-2.0",
    "bsl11": "BUSL-1.1",
}
"""Licences by their letters and digits alone: each explorer spells them in its own way."""


@dataclass(frozen=True, slots=True)
class NamedAddress:
    """An address, lower case, and what the contract there is called."""

    address: str
    name: str | None


@dataclass(frozen=True, slots=True)
class ProxyClaim:
    """What a registry says of a proxy; it may be long out of date."""

    is_proxy: bool
    kind: ProxyKind | None
    """Our word for its kind; None where the registry says none."""
    implementations: tuple[NamedAddress, ...]
    field: str
    """The registry's own field that says so."""
    value: str
    left_out: int = 0
    """How many more implementations it names."""

    @classmethod
    def told(
        cls, kind: ProxyKind | None, named: Sequence[NamedAddress], field: str, said: str, *, is_proxy: bool
    ) -> ProxyClaim:
        """A claim with the first implementations, and in its value what the registry said beside them."""
        kept = tuple(named[:MOST_NAMED])
        left_out = len(named) - len(kept)
        value = ", ".join([said, *(each.address for each in kept)])
        more = f", and {left_out} more" if left_out else ""
        return cls(is_proxy, kind, kept, field, value + more, left_out)


@dataclass(frozen=True, slots=True)
class Created:
    """How a contract came to be; None is what the source does not say."""

    creator: str | None = None
    """Lower case."""
    transaction: str | None = None
    at: datetime | None = None
    block: int | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What one registry has of the code at an address, without source and ABI themselves."""

    registry: Registry
    match: MatchLevel
    name: str | None = None
    similar_address: str | None = None
    """Whose source it is when the match is `similar`."""
    language: str | None = None
    compiler_version: str | None = None
    license: str | None = None
    """By its SPDX name where that is known."""
    url: str | None = None
    source_available: bool = False
    abi_available: bool | None = False
    proxy: ProxyClaim | None = None
    created: Created | None = None
    code_seen: bool = False
    """Whether the registry has seen code at the address, published or not."""
    self_destructed: bool = False
    changed: bool = False
    """The code is no longer what was verified."""

    @property
    def verified(self) -> bool:
        """Whether source that matches the code at this very address is published."""
        return self.match not in ("similar", "none")


def an_address(value: Any) -> str | None:
    """An address in lower case; None for anything else and for the zero address."""
    told = address(value)
    return told if told and int(told, 16) else None


def licence(value: Any) -> str | None:
    """A licence by its SPDX name where it is a known one; None where none is stated."""
    told = name(value)
    plain = "".join(filter(str.isalnum, told or "")).lower()
    return None if plain in ("", "none", "unknown") else _SPDX.get(plain, told)


def named(rows: Any, *keys: str) -> tuple[NamedAddress, ...]:
    """The addresses in a list of objects, each under the first of `keys` that has one, with their names."""
    found: dict[str, NamedAddress] = {}
    for row in cast(list[Any], rows) if isinstance(rows, list) else []:
        if not isinstance(row, Mapping):
            continue
        entry = cast(Mapping[str, Any], row)
        where = next(filter(None, (an_address(entry.get(key)) for key in keys)), None)
        if where:
            found.setdefault(where, NamedAddress(where, name(entry.get("name"))))
    return tuple(found.values())
