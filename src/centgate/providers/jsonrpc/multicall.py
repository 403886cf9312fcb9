"""Encode calls for Multicall3's `aggregate3` and parse their results.

A general ABI codec takes 6 ms for a hundred calls, which is more than all else that a request costs; the two
shapes are fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from centgate.crypto.abi import WORD, encode_address, encode_uint, function_selector, read_number

MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
"""Multicall3, at the same address on all six chains (github.com/mds1/multicall3)."""
SELECTOR = function_selector("aggregate3((address,bool,bytes)[])")
_ALLOW_FAILURE = encode_uint(1)
_DATA_OFFSET = encode_uint(3 * WORD)
_encode_target = lru_cache(maxsize=1024)(encode_address)


def encode_aggregate(calls: Sequence[tuple[str, bytes]]) -> bytes:
    """Encode calls (address and call data), each of which may fail alone."""
    entries = [_encode_entry(address, data) for address, data in calls]
    offset, offsets = len(entries) * WORD, bytearray()
    for entry in entries:
        offsets += offset.to_bytes(WORD)
        offset += len(entry)
    head = encode_uint(WORD) + encode_uint(len(entries))
    return b"".join((SELECTOR, head, offsets, *entries))


def parse_aggregate(returned: bytes, count: int) -> list[bytes | None]:
    """Parse the result of each call; None if it failed or returned nothing.

    Raises ValueError unless there are `count` results.
    """
    start = read_number(returned, 0)
    if read_number(returned, start) != count:
        raise ValueError(f"not the results of {count} calls")
    base = start + WORD
    return [_parse_entry(returned, base, base + index * WORD) for index in range(count)]


def _encode_entry(address: str, data: bytes) -> bytes:
    padded = data + bytes(-len(data) % WORD)
    return b"".join((_encode_target(address), _ALLOW_FAILURE, _DATA_OFFSET, len(data).to_bytes(WORD), padded))


def _parse_entry(returned: bytes, base: int, position: int) -> bytes | None:
    """Parse one `(bool success, bytes data)` whose offset from `base` is at `position`."""
    entry = base + read_number(returned, position)
    # the second read finds the end of what the first one needs
    data = entry + read_number(returned, entry + WORD)
    success = int.from_bytes(returned[entry : entry + WORD], "big")
    start, size = data + WORD, read_number(returned, data)
    content = returned[start : start + size]
    if success > 1 or len(content) != size:
        raise ValueError("not the result of a call")
    # a call to an address without code succeeds with an empty result
    return content if success and content else None
