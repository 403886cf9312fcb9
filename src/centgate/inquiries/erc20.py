"""Encode calls to ERC-20 tokens (EIP-20) and decode their results; a token may return anything."""

from __future__ import annotations

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from centgate.providers.rpc import Call

BALANCE_OF = bytes.fromhex("70a08231")
ALLOWANCE = bytes.fromhex("dd62ed3e")
TOTAL_SUPPLY = bytes.fromhex("18160ddd")
DECIMALS = bytes.fromhex("313ce567")
SYMBOL = bytes.fromhex("95d89b41")
NAME = bytes.fromhex("06fdde03")

TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""Topic of Transfer(address indexed from, address indexed to, uint256 value)."""
APPROVAL = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
"""Topic of Approval(address indexed owner, address indexed spender, uint256 value)."""


def balance_of(token: str, owner: str) -> Call:
    """Call balanceOf: the balance of `owner`, in base units."""
    return Call(token, BALANCE_OF + word(owner))


def allowance(token: str, owner: str, spender: str) -> Call:
    """Call allowance: the amount that `spender` may transfer from `owner`, in base units."""
    return Call(token, ALLOWANCE + word(owner) + word(spender))


def total_supply(token: str) -> Call:
    """Call totalSupply, in base units."""
    return Call(token, TOTAL_SUPPLY)


def decimals(token: str) -> Call:
    """Call decimals."""
    return Call(token, DECIMALS)


def symbol(token: str) -> Call:
    """Call symbol."""
    return Call(token, SYMBOL)


def name(token: str) -> Call:
    """Call name."""
    return Call(token, NAME)


def word(address: str) -> bytes:
    """Encode an address as an ABI word."""
    return bytes.fromhex(address[2:]).rjust(32, b"\0")


def topic(address: str) -> str:
    """Encode an address as an indexed event argument."""
    return "0x" + word(address).hex()


def address_in(topic: str) -> str:
    """Decode the address in an indexed event argument, lower case."""
    return "0x" + topic[-40:].lower()


def number(returned: bytes | None) -> int | None:
    """Decode an integer; None if the call failed or returned something else."""
    return int.from_bytes(returned[:32]) if returned and len(returned) >= 32 else None


def text(returned: bytes | None) -> str | None:
    """Decode a `string`, or `bytes32` as old tokens return it; untrusted text that the caller must clean."""
    if not returned:
        return None
    if len(returned) == 32:
        return returned.rstrip(b"\0").decode(errors="replace") or None
    try:
        (value,) = decode(["bytes"], returned, strict=False)
    except (DecodingError, OverflowError):
        return None
    return value.decode(errors="replace") or None


def small(returned: bytes | None) -> int | None:
    """Decode decimals; None above 255."""
    value = number(returned)
    return value if value is not None and value <= 255 else None
