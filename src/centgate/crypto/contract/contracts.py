"""Contracts as reported by registries of verified source code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, cast

from msgspec import Struct

from centgate.coercion import as_address, as_clean_name

SourceRegistry = Literal["etherscan", "sourcify", "blockscout"]
REGISTRY_LABELS: Mapping[SourceRegistry, str] = {
    "etherscan": "Etherscan",
    "sourcify": "Sourcify",
    "blockscout": "Blockscout",
}
"""Names of the registries in messages."""
ContractSource = Literal["etherscan", "sourcify", "blockscout", "rpc"]
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

CLONE_KINDS: tuple[ProxyKind, ...] = ("eip1167", "clone_with_immutable_args")
"""Proxies whose code names its implementation, so that it never changes."""
MAX_IMPLEMENTATIONS = 60
"""Implementations of one proxy that are reported."""
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
"""SPDX names by letters and digits only: each explorer spells licences in its own way."""


class NamedAddress(Struct, frozen=True):
    """Address, lower case, with the name of the contract there."""

    address: str
    name: str | None


class ProxyClaim(Struct, frozen=True):
    """Statement of a registry about a proxy; it may be long out of date."""

    is_proxy: bool
    kind: ProxyKind | None
    """Kind in our terms; None if the registry names none."""
    implementations: tuple[NamedAddress, ...]
    field: str
    """Name of the registry's own field."""
    value: str
    omitted_count: int = 0
    """Number of further implementations that the registry names."""

    @classmethod
    def from_registry(
        cls,
        kind: ProxyKind | None,
        implementations: Sequence[NamedAddress],
        field: str,
        registry_text: str,
        *,
        is_proxy: bool,
    ) -> ProxyClaim:
        """Build a claim with the first implementations; `value` lists them after the registry's own text."""
        listed = tuple(implementations[:MAX_IMPLEMENTATIONS])
        left_out = len(implementations) - len(listed)
        value = ", ".join([registry_text, *(each.address for each in listed)])
        suffix = f", and {left_out} more" if left_out else ""
        return cls(is_proxy, kind, listed, field, value + suffix, left_out)


class ContractCreation(Struct, frozen=True):
    """Creation of a contract. None where the source gives no value."""

    creator: str | None = None
    """Lower case."""
    transaction: str | None = None
    at: datetime | None = None
    block: int | None = None


class SourceRecord(Struct, frozen=True):
    """Record of one registry about the code at an address, without source and ABI themselves."""

    registry: SourceRegistry
    match: MatchLevel
    name: str | None = None
    similar_address: str | None = None
    """Address of the verified contract when the match is `similar`."""
    language: str | None = None
    compiler_version: str | None = None
    license: str | None = None
    """SPDX name where that is known."""
    url: str | None = None
    source_available: bool = False
    abi_available: bool | None = False
    signatures: tuple[str, ...] = ()
    """Signatures of the functions in the ABI; a stranger's text."""
    proxy: ProxyClaim | None = None
    created: ContractCreation | None = None
    has_code: bool = False
    """True if the registry has seen code at the address, verified or not."""
    is_self_destructed: bool = False
    is_code_changed: bool = False
    """True if the code is no longer what was verified."""

    @property
    def is_outdated(self) -> bool:
        """True if it is of code that is gone or was replaced, as after a second deployment by CREATE2."""
        return self.is_self_destructed or self.is_code_changed

    @property
    def is_verified(self) -> bool:
        """True if source that matches the code at this very address is published."""
        return self.match not in ("similar", "none") and not self.is_outdated


def parse_nonzero_address(value: Any) -> str | None:
    """Parse an address, in lower case; None for anything else and for the zero address."""
    parsed = as_address(value)
    return parsed if parsed and int(parsed, 16) else None


def spdx_license(value: Any) -> str | None:
    """Return a licence by its SPDX name if it is a known one; None if none is stated."""
    license_name = as_clean_name(value)
    key = "".join(filter(str.isalnum, license_name or "")).lower()
    return None if key in ("", "none", "unknown") else _SPDX.get(key, license_name)


def parse_named_addresses(rows: Any, *keys: str) -> tuple[NamedAddress, ...]:
    """Parse a list of objects with an address, under the first of `keys` that has one, and a name."""
    by_address: dict[str, NamedAddress] = {}
    for row in cast(list[Any], rows) if isinstance(rows, list) else []:
        if not isinstance(row, Mapping):
            continue
        entry = cast(Mapping[str, Any], row)
        found_address = next(filter(None, (parse_nonzero_address(entry.get(key)) for key in keys)), None)
        if found_address:
            by_address.setdefault(
                found_address, NamedAddress(found_address, as_clean_name(entry.get("name")))
            )
    return tuple(by_address.values())
