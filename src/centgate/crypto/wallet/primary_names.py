"""Primary names of addresses by ENS and Basenames, and the contracts that state them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce

from centgate.crypto.contract.bytecode import function_selector
from centgate.signing.evm import keccak

ENS_RESOLVERS: Mapping[int, str] = {1: "0xeeeeeeee14d718c2b47d9923deab1335e144eeee"}
"""ENS' UniversalResolver by chain (docs.ens.domains, deployments)."""
BASENAME_REGISTRIES: Mapping[int, str] = {8453: "0xb94704422c2a1e396835a571837aa5ae53285a95"}
"""Registry of Basenames by chain (github.com/base/basenames, and npm's @ensnode/datasources)."""
BASENAME_RESOLVERS = (
    "0xc6d566a56a1aff6508b41f6c90ff131615583bcd",
    "0x426fa03fb86e510d0dd9f70335cf102a98b10875",
)
"""Resolvers of Basenames on Base: the first L2Resolver, and the upgradeable one of names since 2025.

The first is also in npm's @coinbase/onchainkit, both in @ensnode/datasources.
"""
NAMED_CHAINS = frozenset((*ENS_RESOLVERS, *BASENAME_REGISTRIES))
"""Chains on which primary names are read."""

_COIN_TYPE_ETHER = 60
_BASE_REVERSE_NAME = "80002105.reverse"
"""Parent of reverse names on Base: 0x80000000 plus the chain's id, in hexadecimal (ENSIP-11 and ENSIP-19)."""
_BASENAME_PARENT = ".base.eth"
_PLAIN_NAME = re.compile(r"(?=.{3,64}\Z)(?:(?!..--)[a-z0-9_](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}")
"""Names of letters without lookalikes, of which two hyphens in places 3 and 4 are not normalized.

Others would need ENSIP-15's tables to be told from imitations: 80 MB of memory.
"""


def encode_ens_lookup(address: str) -> bytes:
    """Encode `reverse(bytes,uint256)`: the primary name of an address, checked by the resolver."""
    from eth_abi.abi import encode  # imported late, by `runtime`

    values = encode(["bytes", "uint256"], [bytes.fromhex(address[2:]), _COIN_TYPE_ETHER])
    return function_selector("reverse(bytes,uint256)") + values


def parse_ens_name(returned: bytes | None) -> str | None:
    """Parse the name; None without one, and for a name with letters that may imitate others."""
    if not returned:
        return None
    from eth_abi.abi import decode
    from eth_abi.exceptions import DecodingError

    try:
        (name, *_) = decode(["bytes", "address", "address"], returned, strict=False)
        text = name.decode("ascii")
    except (DecodingError, OverflowError, UnicodeDecodeError):
        return None
    return text if _PLAIN_NAME.fullmatch(text) else None


def is_plain_basename(name: str) -> bool:
    """True for a Basename without letters that may imitate others."""
    return name.endswith(_BASENAME_PARENT) and bool(_PLAIN_NAME.fullmatch(name))


def hash_name(name: str) -> bytes:
    """Return the node of a normalized name (ENSIP-1, namehash)."""
    labels = reversed(name.split("."))
    return reduce(lambda node, label: keccak(node + keccak(label.encode())), labels, bytes(32))


def hash_reverse_basename(address: str) -> bytes:
    """Return the node of the reverse name of an address (lower case) on Base."""
    return hash_name(f"{address[2:]}.{_BASE_REVERSE_NAME}")
