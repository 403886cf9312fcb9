"""The cache of one process: bounded in bytes, the least recently used goes first."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cachetools import TLRUCache


@dataclass(frozen=True, slots=True)
class _Kept:
    content: bytes
    seconds: float


class MemoryCache:
    """Content under keys, each for its own time."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._kept = TLRUCache[str, _Kept](
            max_bytes,
            ttu=lambda _key, kept, now: now + kept.seconds,
            timer=time.monotonic,
            getsizeof=lambda kept: len(kept.content) + 512,
        )

    async def get(self, key: str) -> bytes | None:
        """What was put under a key, while it is good."""
        kept = self._kept.get(key)
        return kept.content if kept else None

    async def put(self, key: str, content: bytes, seconds: float) -> None:
        """Keep content for so long; what is larger than the whole cache is not kept."""
        if len(content) + 512 <= self._kept.maxsize:
            self._kept[key] = _Kept(content, seconds)
