"""Selectors, topics and words of the contract ABI. No I/O.

Contracts may return anything: the decoders never raise, except `read_number`.
"""

from __future__ import annotations

from functools import cache

from centgate.signing.evm import keccak

WORD = 32
"""Bytes of a word of storage or of ABI-encoded data."""


@cache
def function_selector(signature: str) -> bytes:
    """Return the function selector: the first four bytes of the hash of a signature."""
    return keccak(signature.encode())[:4]


def event_topic(signature: str) -> str:
    """Return the first topic of an event: the hash of its signature."""
    return "0x" + keccak(signature.encode()).hex()


def encode_address(address: str) -> bytes:
    """Encode an address as an ABI word."""
    return bytes.fromhex(address[2:]).rjust(32, b"\0")


def encode_uint(number: int) -> bytes:
    """Encode a number as an ABI word."""
    return number.to_bytes(WORD, "big")


def encode_topic(address: str) -> str:
    """Encode an address as an indexed event argument."""
    return "0x" + encode_address(address).hex()


def decode_address(topic: str) -> str:
    """Decode the address in an indexed event argument, lower case."""
    return "0x" + topic[-40:].lower()


def decode_uint(returned: bytes | None) -> int | None:
    """Decode an integer; None if the call failed or returned something else."""
    return int.from_bytes(returned[:32]) if returned and len(returned) >= 32 else None


def decode_word(returned: bytes, index: int) -> int:
    """Decode the word at an index as an integer; the caller has checked the length."""
    return int.from_bytes(returned[index * WORD : (index + 1) * WORD], "big")


def decode_text(returned: bytes | None) -> str | None:
    """Decode a `string`, or `bytes32` as old tokens return it; untrusted text that the caller must clean."""
    if not returned:
        return None
    if len(returned) == WORD:
        return returned.rstrip(b"\0").decode(errors="replace") or None
    start = int.from_bytes(returned[:WORD])
    size = decode_uint(returned[start:])
    content = returned[start + WORD : start + WORD + (size or 0)]
    return content.decode(errors="replace") or None if len(content) == size else None


def parse_address_word(word: bytes | None) -> str | None:
    """Parse a 32-byte word as an address; None for zero, or if it is not only an address."""
    if word is None or len(word) != 32 or any(word[:12]) or not any(word):
        return None
    return "0x" + word[12:].hex()


def read_number(data: bytes, position: int) -> int:
    """Return the word at a position of ABI-encoded data; ValueError if it is beyond the data."""
    word = data[position : position + WORD]
    if len(word) < WORD:
        raise ValueError("beyond the end of the data")
    return int.from_bytes(word)
