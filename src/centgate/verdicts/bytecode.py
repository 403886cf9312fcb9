"""What the byte code of a contract tells of itself, and a word of its storage."""

from __future__ import annotations

import re
from functools import cache

from centgate.evm import keccak
from centgate.facts.contracts import ProxyKind

DELEGATION = bytes.fromhex("ef0100")
MASTER_COPY = bytes.fromhex("a619486e")
"""masterCopy(), which Safe's proxies answer themselves."""
_RUNS_OTHERS = frozenset({0xF4, 0xF2})  # DELEGATECALL, CALLCODE
_CREATES = frozenset({0xF0, 0xF5})  # CREATE, CREATE2

_PAYABLE = (
    "(?:36602[cf]57343d527f9e4ac34f21c619cefc926c8bd93b54bf5a39c7ab2127a895af1cc0691d7e3dff593da1005b)?"
)
"""What some clones do first: plain payments are only logged."""
_TARGET = "(?:73([0-9a-f]{40})|72([0-9a-f]{38})|71([0-9a-f]{36})|70([0-9a-f]{34})|6f([0-9a-f]{32}))"
_CLONES = tuple(
    re.compile(pattern.format(target=_TARGET, payable=_PAYABLE))
    for pattern in (
        # EIP-1167; then with PUSH0 (EIP-7511, Solady), 44 bytes and 0xSplits' order of them, early Vyper, and
        # before there was a standard
        "{payable}363d3d373d3d3d363d{target}5af43d82803e903d9160..57fd5bf3",
        "365f5f375f5f365f{target}5af43d5f5f3e5f3d9160..57fd5bf3",
        "5f5f365f5f37365f{target}5af43d5f5f3e60..573d5ffd5b3d5ff3",
        "{payable}(?:3d3d3d3d363d3d37|363d3d373d3d3d3d)363d{target}5af43d3d93803e60..57fd5bf3",
        "366000600037611000600036600073([0-9a-f]{{40}})5af4602c57600080fd5b6110006000f3",
        "3660008037602060003660003473([0-9a-f]{{40}})[0-9a-f]{{2,10}}5a03f21560..5760206000f3",
    )
)
_CLONES_WITH_ARGUMENTS = (
    re.compile(f"{_PAYABLE}3d3d3d3d363d3d3761....60..36393661....013d{_TARGET}5af43d3d93803e60..57fd5bf3"),
    re.compile(f"363d3d373d3d3d3d60368038038091363936013d{_TARGET}5af43d3d93803e60..57fd5bf3"),
)
"""Clones whose arguments travel behind the call data: clones-with-immutable-args, and EIP-3448."""


@cache
def selector(signature: str) -> bytes:
    """The first four bytes of the hash of a function's signature."""
    return keccak(signature.encode())[:4]


def word_address(word: bytes | None) -> str | None:
    """The address in 32 bytes; None for zero, and where there is more than an address."""
    if word is None or len(word) != 32 or any(word[:12]) or not any(word):
        return None
    return "0x" + word[12:].hex()


def reserved(address: str) -> bool:
    """Whether an address is zero or among those that chains use for contracts built in (precompiles)."""
    return int(address, 16) < 0x200


def delegate(code: bytes) -> str | None:
    """The contract whose code a wallet lends itself (EIP-7702)."""
    return "0x" + code[3:].hex() if len(code) == 23 and code.startswith(DELEGATION) else None


def clone_of(code: bytes) -> tuple[str, ProxyKind] | None:
    """Whose code a minimal proxy runs, by its own code, and which kind it is."""
    text = code[:200].hex()
    for pattern in _CLONES_WITH_ARGUMENTS:
        if found := pattern.match(text):
            return _target(found), "clone_with_immutable_args"
    for pattern in _CLONES:
        if found := pattern.match(text):
            whole = found.end() == 2 * len(code)
            return _target(found), "eip1167" if whole else "clone_with_immutable_args"
    return None


def _target(found: re.Match[str]) -> str:
    """The address that was pushed; a shorter push leaves out leading zeros."""
    return "0x" + next(filter(None, found.groups())).rjust(40, "0")


def opcodes(code: bytes) -> frozenset[int]:
    """The instructions in some code, without what they push and without the compiler's notes behind it."""
    end = _end_of_code(code)
    found: set[int] = set()
    at = 0
    while at < end:
        found.add(opcode := code[at])
        at += opcode - 0x5E if 0x60 <= opcode <= 0x7F else 1
    return frozenset(found)


def _end_of_code(code: bytes) -> int:
    """Where the metadata begin (a CBOR map, and its length in two bytes), or the end."""
    start = len(code) - 2 - int.from_bytes(code[-2:], "big")
    return start if 0 < start < len(code) - 2 and 0xA1 <= code[start] <= 0xA4 else len(code)


def runs_others(code: bytes) -> bool:
    """Whether code has an instruction to run code from elsewhere in its own storage."""
    return bool(_RUNS_OTHERS & opcodes(code))


def creates(code: bytes) -> bool:
    """Whether code has an instruction to create contracts."""
    return bool(_CREATES & opcodes(code))
