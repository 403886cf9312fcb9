"""In-memory LRU cache of one process with a maximum size in bytes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cachetools import TLRUCache


@dataclass(frozen=True, slots=True)
class _MemoryEntry:
    content: bytes
    seconds: float


class MemoryCache:
    """LRU cache with a TTL per entry."""

    def __init__(self, max_bytes: int = 64 << 20) -> None:
        self._entries = TLRUCache[str, _MemoryEntry](
            max_bytes,
            ttu=lambda _key, entry, now: now + entry.seconds,
            timer=time.monotonic,
            getsizeof=lambda entry: len(entry.content) + 512,
        )

    async def get(self, key: str) -> bytes | None:
        """Return the content of a key; None if missing or expired."""
        entry = self._entries.get(key)
        return entry.content if entry else None

    async def put(self, key: str, content: bytes, ttl_seconds: float) -> None:
        """Store content with a TTL in seconds; content larger than the whole cache is not stored."""
        if len(content) + 512 <= self._entries.maxsize:
            self._entries[key] = _MemoryEntry(content, ttl_seconds)
