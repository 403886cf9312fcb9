"""Parse a phishing list: names to allow, to block and to protect, in list order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard, cast

from msgspec import Struct, field

from centgate.phishing.path_rules import PathTree, Tree

DEFAULT_TOLERANCE: Final = 3
WELL_KNOWN_NAMES: Final = (
    *("metamask.io", "myetherwallet.com", "etherscan.io", "uniswap.org", "opensea.io", "coinbase.com"),
    *("phantom.app", "polkadot.network", "ethereum.org", "google.com", "github.com", "wikipedia.org"),
)
"""Names that no list may block, since it would be a defective one, and that are worth imitating."""

# IPFS content identifiers as they occur in addresses: version 0, then version 1 in base32 of both cases,
# base58 and base16 (https://github.com/multiformats/cid).
BASE58: Final = "1-9A-HJ-NP-Za-km-z"
CID: Final = re.compile(
    rf"Qm[{BASE58}]{{44,}}|b[A-Za-z2-7]{{58,}}|B[A-Z2-7]{{58,}}|z[{BASE58}]{{48,}}|F[0-9A-F]{{50,}}"
)


class InvalidPhishingList(ValueError):
    """The document is not a phishing list in a known format; the message says what is wrong."""


class PhishingRules(Struct, frozen=True):
    """One list. Names cover their subdomains; if several match, the first in the list is reported."""

    allowlist: Sequence[str] = ()
    blocklist: Sequence[str] = ()
    fuzzylist: Sequence[str] = ()
    """Names that are often imitated."""
    tolerance: int = 0
    """Maximum number of letters by which an imitation differs; zero disables the check."""
    paths: PathTree = field(default_factory=PathTree)
    name: str | None = None
    version: str | None = None


def parse_rules(config: object) -> PhishingRules:
    """Parse one list in the format of eth-phishing-detect or of MetaMask's wallets; entries are not changed.

    Both spellings are accepted (`whitelist`/`blacklist`, `allowlist`/`blocklist`). Raises
    `InvalidPhishingList`.
    """
    if not is_object(config):
        raise InvalidPhishingList("the list is not a JSON object")
    tolerance = config.get("tolerance")
    if tolerance is not None and config.get("fuzzylist") is None:
        raise InvalidPhishingList("the list has a tolerance and no fuzzylist")
    return PhishingRules(
        allowlist=read_names(config, "allowlist", "whitelist"),
        blocklist=read_names(config, "blocklist", "blacklist"),
        fuzzylist=read_names(config, "fuzzylist"),
        tolerance=DEFAULT_TOLERANCE if tolerance is None else parse_tolerance(tolerance),
        paths=parse_paths(config.get("blocklistPaths")),
        name=parse_name(config),
        version=parse_version(config),
    )


def read_names(config: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if not is_array(value):
            raise InvalidPhishingList(f"'{key}' is not an array")
        return tuple(entry for entry in value if isinstance(entry, str))
    return ()


def parse_tolerance(tolerance: object) -> int:
    if isinstance(tolerance, int) and not isinstance(tolerance, bool) and tolerance >= 0:
        return tolerance
    raise InvalidPhishingList(f"the tolerance {tolerance!r} is not a whole number of 0 or more")


def parse_paths(value: object) -> PathTree:
    """Parse blocked paths in the form of published lists (`host/path`) or of wallets (nested objects)."""
    if value is None:
        return PathTree()
    if is_array(value):
        return PathTree.from_entries(text for text in value if isinstance(text, str))
    if is_tree(value):
        return PathTree(value)
    raise InvalidPhishingList("'blocklistPaths' is neither an array nor an object of objects")


def parse_name(config: Mapping[str, Any]) -> str | None:
    name = config.get("name")
    if name is not None and (not isinstance(name, str) or not name):
        raise InvalidPhishingList(f"the name {name!r} is not a text")
    return name


def parse_version(config: Mapping[str, Any]) -> str | None:
    version = config.get("version")
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, int | str) or version == "":
        raise InvalidPhishingList(f"the version {version!r} is neither a number nor a text")
    return str(version)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", value))


def is_tree(value: object) -> TypeGuard[Tree]:
    return is_object(value) and all(map(is_tree, value.values()))


def is_array(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
