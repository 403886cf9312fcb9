"""Primary names of addresses by ENS and Basenames, and the contracts that state them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce

from centgate.crypto.abi import WORD, function_selector, parse_address_word
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
L2_REVERSE_REGISTRARS: Mapping[int, str] = {8453: "0x0000000000d8e504002cc26e3ec46d81971c1664"}
"""ENS' L2ReverseRegistrar by chain (github.com/ensdomains/ens-contracts, deployments/base; and npm's
@ensnode/datasources 1.17). It states the names of accounts by ENSIP-19, those of Basenames included.
"""
NAMED_CHAINS = frozenset((*ENS_RESOLVERS, *BASENAME_REGISTRIES))
"""Chains on which primary names are read."""

_COIN_TYPE_ETHER = 60
_COIN_TYPE_BASE = 0x80000000 | 8453
"""ENSIP-11."""
_BASE_REVERSE_NAME = f"{_COIN_TYPE_BASE:x}.reverse"
"""Parent of reverse names on Base (ENSIP-19)."""
_BASENAME_PARENT = ".base.eth"
_ADDRESS_BYTES = 20
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


def encode_address_lookup(name: str) -> bytes:
    """Encode `addr(bytes32)`: the address of a name without a chain (ENSIP-1)."""
    return function_selector("addr(bytes32)") + hash_name(name)


def encode_base_lookup(name: str) -> bytes:
    """Encode `addr(bytes32,uint256)`: the address of a name on Base, by which ENSIP-19 checks its claim."""
    return function_selector("addr(bytes32,uint256)") + hash_name(name) + _COIN_TYPE_BASE.to_bytes(WORD)


def parse_base_address(returned: bytes | None) -> str | None:
    """Parse the address, ABI-encoded `bytes` (ENSIP-9); None unless it has the 20 bytes of an account's."""
    head = WORD.to_bytes(WORD) + _ADDRESS_BYTES.to_bytes(WORD)
    if not returned or not returned.startswith(head):
        return None
    address = returned[len(head) : len(head) + _ADDRESS_BYTES]
    return parse_address_word(address.rjust(WORD, b"\0")) if len(address) == _ADDRESS_BYTES else None


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
