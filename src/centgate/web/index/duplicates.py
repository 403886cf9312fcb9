"""Recognise pages whose text is nearly that of another one, by a 64-bit fingerprint (Charikar's simhash)."""

from __future__ import annotations

import re
from hashlib import blake2b
from itertools import islice

MAX_DISTANCE = 3
"""Differing bits up to which two pages are the same; unrelated ones differ in about 32."""
BANDS = 4
"""Parts of a fingerprint: with three differing bits at least one part is equal."""
MIN_WORDS = 60
"""Words below which a page has no fingerprint: short pages differ in few words and still say other things."""
MAX_SHINGLES = 3000
_SHINGLE_WORDS = 3
_WORD = re.compile(r"\w+")
_BITS = 64


def compute_fingerprint(text: str) -> int | None:
    """Return the fingerprint of a text; None for a short one."""
    words = _WORD.findall(text.lower())
    if len(words) < MIN_WORDS:
        return None
    shingles = zip(*(words[n:] for n in range(_SHINGLE_WORDS)), strict=False)
    counts = [0] * _BITS
    total = 0
    for shingle in islice(shingles, MAX_SHINGLES):
        total += 1
        hashed = int.from_bytes(blake2b(" ".join(shingle).encode(), digest_size=8).digest(), "big")
        while hashed:
            lowest = hashed & -hashed
            counts[lowest.bit_length() - 1] += 1
            hashed ^= lowest
    return sum(1 << bit for bit, count in enumerate(counts) if 2 * count > total)


def split_bands(fingerprint: int) -> list[int]:
    """Return the parts of a fingerprint, each with its place, so that parts at other places differ."""
    width = _BITS // BANDS
    return [(fingerprint >> (band * width) & (1 << width) - 1) | band << width for band in range(BANDS)]


def are_near(one: int, other: int) -> bool:
    """True if two fingerprints are those of the same text with small changes."""
    return (one ^ other).bit_count() <= MAX_DISTANCE
