"""Parse contract bytecode: minimal proxies, delegations, opcodes; and words of storage and of results."""

from __future__ import annotations

import re
from collections.abc import Iterator

from centgate.crypto.contract.contracts import ProxyKind

DELEGATION_PREFIX = bytes.fromhex("ef0100")
MASTER_COPY_SELECTOR = bytes.fromhex("a619486e")
"""Selector of masterCopy(), which Safe proxies implement themselves."""
DELEGATING_OPCODES = frozenset({0xF4, 0xF2})  # DELEGATECALL, CALLCODE
CREATING_OPCODES = frozenset({0xF0, 0xF5})  # CREATE, CREATE2
_JUMPDEST = 0x5B
_METADATA = re.compile(
    rb"[\xa1-\xa5](?:\x64ipfs\x58\x22.{34}|\x65bzzr[01]\x58\x20.{32}|\x6cexperimental[\xf4\xf5]"
    rb"|\x64solc(?:\x43.{3}|[\x60-\x78].{0,100})|\x65vyper\x83(?:[\0-\x17]|\x18.){3}){1,5}",
    re.DOTALL,
)
"""Metadata of Solidity and Vyper: a map whose keys are known, with values of the right length."""

_PAYABLE_PREFIX = (
    "(?:36602[cf]57343d527f9e4ac34f21c619cefc926c8bd93b54bf5a39c7ab2127a895af1cc0691d7e3dff593da1005b)?"
)
"""Optional prefix of some clones: plain payments are only logged."""
_TARGET = "(?:73([0-9a-f]{40})|72([0-9a-f]{38})|71([0-9a-f]{36})|70([0-9a-f]{34})|6f([0-9a-f]{32}))"
_CLONES = tuple(
    re.compile(pattern.format(target=_TARGET, payable=_PAYABLE_PREFIX))
    for pattern in (
        # EIP-1167; with PUSH0 (EIP-7511, Solady); 44 bytes and 0xSplits' order of them; early Vyper; and from
        # before the standard, whose jump leads to no instruction that can be jumped to
        "{payable}363d3d373d3d3d363d{target}5af43d82803e903d9160(?P<jump>..)57fd5bf3",
        "365f5f375f5f365f{target}5af43d5f5f3e5f3d9160(?P<jump>..)57fd5bf3",
        "5f5f365f5f37365f{target}5af43d5f5f3e60(?P<jump>..)573d5ffd5b3d5ff3",
        "{payable}(?:3d3d3d3d363d3d37|363d3d373d3d3d3d)363d{target}5af43d3d93803e60(?P<jump>..)57fd5bf3",
        "366000600037611000600036600073([0-9a-f]{{40}})5af4602c57600080fd5b6110006000f3",
        "3660008037602060003660003473([0-9a-f]{{40}})61[0-9a-f]{{4}}5a03f215600[0-2]5760206000f3",
    )
)
_CLONES_WITH_ARGUMENTS = (
    re.compile(
        f"{_PAYABLE_PREFIX}3d3d3d3d363d3d3761....60..36393661....013d{_TARGET}5af43d3d93803e60(?P<jump>..)57fd5bf3"
    ),
    re.compile(f"363d3d373d3d3d3d60368038038091363936013d{_TARGET}5af43d3d93803e60(?P<jump>..)57fd5bf3"),
)
"""Clones that append arguments to the call data: clones-with-immutable-args, and EIP-3448."""


def is_reserved(address: str) -> bool:
    """True for the zero address and the range that chains use for precompiles."""
    return int(address, 16) < 0x200


def delegation_target(code: bytes) -> str | None:
    """Return the contract that a wallet delegates to (EIP-7702), or None."""
    return "0x" + code[3:].hex() if len(code) == 23 and code.startswith(DELEGATION_PREFIX) else None


def match_clone(code: bytes) -> tuple[str, ProxyKind] | None:
    """Match a minimal proxy; return its implementation and kind, or None."""
    text = code[:200].hex()
    for pattern in _CLONES_WITH_ARGUMENTS:
        if (match := pattern.match(text)) and _jumps_to_end(match):
            return _target_address(match), "clone_with_immutable_args"
    for pattern in _CLONES:
        if (match := pattern.match(text)) and _jumps_to_end(match):
            is_whole = match.end() == 2 * len(code)
            return _target_address(match), "eip1167" if is_whole else "clone_with_immutable_args"
    return None


def _jumps_to_end(match: re.Match[str]) -> bool:
    """True unless the jump of a proxy's code leads elsewhere than to its end, where other code may stand."""
    if (jump := match.groupdict().get("jump")) is None:
        return True
    return match.string[2 * int(jump, 16) : match.end()] in ("5bf3", "5b3d5ff3")


def _target_address(match: re.Match[str]) -> str:
    """Return the pushed address; a shorter push omits leading zeros."""
    return "0x" + next(filter(None, match.groups())).rjust(40, "0")


def list_opcodes(code: bytes) -> frozenset[int]:
    """Return the opcodes of some code, without push data and without the compiler's metadata."""
    return frozenset(opcode for part in _list_parts(code) for opcode in _iter_opcodes(part))


def _list_parts(code: bytes) -> list[bytes]:
    """Return the parts of some code that can run: without the compiler's metadata.

    Code in the metadata counts if the code before it pushes its place, as it does to jump there.
    """
    end = _code_length(code)
    hidden = [place for place in range(end, len(code)) if code[place] == _JUMPDEST]
    pushed = _list_pushed(code[:end]) if hidden else frozenset[int]()
    return [code[:end], *(code[place:] for place in hidden if place in pushed)]


def has_account_constant(code: bytes) -> bool:
    """Return True if code pushes a number of the length of an address, which is not the mask of one.

    An address that begins with up to five zero bytes counts, also if it is shifted within a word. A text does
    not count, such as the reason of an error.
    """
    pushed = (number for part in _list_parts(code) for number in _list_pushed(part))
    numbers = (number.to_bytes(32, "big").strip(b"\0") for number in pushed)
    return any(15 <= len(each) <= 20 and each.strip(b"\xff") and not _is_text(each) for each in numbers)


def _is_text(data: bytes) -> bool:
    return data.isascii() and data.decode("ascii").isprintable()


def _iter_opcodes(code: bytes) -> Iterator[int]:
    position = 0
    while position < len(code):
        opcode = code[position]
        yield opcode
        position += opcode - 0x5E if 0x60 <= opcode <= 0x7F else 1


def _list_pushed(code: bytes) -> frozenset[int]:
    """Return the numbers that instructions push."""
    pushed: set[int] = set()
    position = 0
    while position < len(code):
        size = code[position] - 0x5F if 0x5F <= code[position] <= 0x7F else None
        if size is not None:
            pushed.add(int.from_bytes(code[position + 1 : position + 1 + size]))
        position += 1 + (size or 0)
    return frozenset(pushed)


def _code_length(code: bytes) -> int:
    """Return the offset of the compiler's metadata (CBOR, then its length in two bytes), else the length."""
    start = len(code) - 2 - int.from_bytes(code[-2:], "big")
    is_metadata = 0 < start < len(code) - 2 and _METADATA.fullmatch(code, start, len(code) - 2)
    return start if is_metadata else len(code)


def has_delegatecall(code: bytes) -> bool:
    """True if the code can run another contract's code on its own storage (DELEGATECALL, CALLCODE)."""
    return bool(DELEGATING_OPCODES & list_opcodes(code))


def has_create(code: bytes) -> bool:
    """True if the code can create contracts (CREATE, CREATE2)."""
    return bool(CREATING_OPCODES & list_opcodes(code))
