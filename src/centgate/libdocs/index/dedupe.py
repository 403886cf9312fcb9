"""Remove chunks that repeat others: variants of one example, copies for other versions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from zlib import crc32

from centgate.libdocs.archive.file_selection import importance_rank
from centgate.libdocs.parse.chunk import Chunk
from centgate.libdocs.parse.documents import PackageDocument

DUPLICATE_SIMILARITY = 0.82
"""Share of common words of two chunks above which the second one is dropped."""
MAX_COMPARISONS = 30
"""Maximum number of chunks with one title that a further chunk is compared with."""
_EXAMPLE = re.compile(r"^(?P<name>.+?)(?P<plain>_non)?(?P<annotated>_an)?(?:_py(?P<python>\d+))?\.py$")
_WORD = re.compile(r"\w+")
_NUMBERS = re.compile(r"[\d_\W]+")


def drop_repeats(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the first of each group of similar chunks. Only chunks with similar titles are compared."""
    checksums: set[int] = set()
    groups: dict[tuple[str, str], list[frozenset[str]]] = {}
    for chunk in chunks:
        words = _WORD.findall(f"{chunk.code or ''} {chunk.text or ''}")
        checksum = (
            crc32(" ".join(words).encode()) if len(words) > 3 else crc32(repr((chunk.title, words)).encode())
        )
        if checksum in checksums:
            continue
        checksums.add(checksum)
        title = chunk.names[-1] if chunk.names else _NUMBERS.sub("", chunk.title.lower())
        group = groups.setdefault((title.lower(), _comparison_folder(chunk)), [])
        word_set = frozenset(words)
        if any(are_alike(word_set, each) for each in group):
            continue
        if len(group) < MAX_COMPARISONS:
            group.append(word_set)
        yield chunk


def drop_variants(documents: Iterable[PackageDocument]) -> list[PackageDocument]:
    """Keep one variant of each example that exists for several versions: annotated, for the newest Python."""
    best: dict[str, tuple[tuple[bool, bool, int], PackageDocument]] = {}
    for document in documents:
        # modules of the library itself may have such names too: `compat_py3.py`
        is_example = document.kind == "python" and importance_rank(document.path) in (1, 2)
        name = _EXAMPLE.match(document.path) if is_example else None
        family = f"{name['name']}.py" if name else document.path
        newness = (
            (not name["plain"], bool(name["annotated"]), int(name["python"] or 0))
            if name
            else (True, False, 0)
        )
        if family not in best or newness > best[family][0]:
            best[family] = (newness, document)
    return [document for _, document in best.values()]


def _comparison_folder(chunk: Chunk) -> str:
    """Return the folder in which equal titles are compared; "" (everywhere) for declarations."""
    return chunk.path.rsplit("/", 1)[0] if not chunk.names else ""


def are_alike(one: frozenset[str], other: frozenset[str], share: float = DUPLICATE_SIMILARITY) -> bool:
    """True if two chunks have so many words in common that one of them is enough."""
    if min(len(one), len(other)) < share * max(len(one), len(other)):
        return False
    return len(one & other) >= share * len(one | other)
