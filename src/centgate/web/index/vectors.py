"""Vectors of pages, made by an embeddings endpoint of the operator's, for searches by meaning.

One vector stands for a page as it was read: its id changes with the text. They are kept in a graph of
neighbours (HNSW), one file for each model, which servers map into memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from centgate.files import Fingerprint, find_fingerprint

MAX_EMBEDDED_LENGTH = 6000
"""Characters of a page that its vector stands for; longer inputs are refused by common models."""
MAX_DIMENSIONS = 8192
MISSING_EXTRA = "vectors need an extra of the package: pip install 'centgate[vectors]'"


class VectorsUnreadable(Exception):
    """The vectors are damaged, of other dimensions, or without their library; the message is a clause."""


def vector_id(key: str, content_hash: str) -> int:
    """Return the id of the vector of a page, by its key and the hash of its text; 63 bits."""
    digest = blake2b(f"{key}\n{content_hash}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


class PageVectors:
    """Vectors of one model in a folder: searched by servers, changed by the crawl. Safe for threads."""

    def __init__(self, folder: Path, model: str) -> None:
        name = blake2b(model.encode(), digest_size=6).hexdigest()
        self.file = folder / f"vectors-1-{name}.usearch"
        self._lock = Lock()
        self._open: Any = None
        self._fingerprint: Fingerprint = None

    def is_empty(self) -> bool:
        """True if there are no vectors yet. Raises VectorsUnreadable."""
        index = self._load()
        return index is None or len(index) == 0

    def search(self, vector: Sequence[float], count: int) -> list[tuple[int, float]]:
        """Return the ids of the nearest vectors with their cosine similarity, nearest first.

        Empty if there are none yet. Raises VectorsUnreadable.
        """
        index = self._load()
        if index is None or len(index) == 0:
            return []
        matches: Any = index.search(_as_array(vector, index.ndim), count)
        return [
            (int(key), 1 - float(distance))
            for key, distance in zip(matches.keys, matches.distances, strict=True)
        ]

    def ids(self) -> set[int]:
        """Return the ids of all vectors. Raises VectorsUnreadable."""
        index = self._load()
        return set() if index is None else {int(key) for key in _all_keys(index)}

    def change(self, added: Iterable[tuple[int, Sequence[float]]], removed: Collection[int]) -> None:
        """Add and remove vectors, and replace the file in one step. Raises VectorsUnreadable or OSError."""
        added = list(added)
        is_new = not self.file.exists()
        if not added and (is_new or not removed):
            return
        index: Any = _create_index(len(added[0][1])) if is_new else _open_file(self.file, view=False)
        for key in () if is_new else removed:
            index.remove(key)
        for key, vector in added:
            index.add(key, _as_array(vector, index.ndim), threads=1)
        written = self.file.with_suffix(".new")
        index.save(str(written))
        written.replace(self.file)

    def _load(self) -> Any:
        with self._lock:
            fingerprint = find_fingerprint(self.file)
            if fingerprint != self._fingerprint:
                self._open = _open_file(self.file, view=True) if fingerprint else None
                self._fingerprint = fingerprint
            return self._open


def _create_index(dimensions: int) -> Any:
    return _index_class()(ndim=dimensions, metric="cos", dtype="f16")


def _open_file(file: Path, *, view: bool) -> Any:
    try:
        index = _index_class().restore(str(file), view=view)
    except (ValueError, RuntimeError, OSError) as error:
        raise VectorsUnreadable(f"the vectors in {file.name} cannot be read: {str(error)[:200]}") from error
    if index is None:
        raise VectorsUnreadable(f"the vectors in {file.name} cannot be read")
    return index


def _index_class() -> Any:
    """Return the library's class; it is loaded only where vectors are used."""
    try:
        from usearch.index import Index
    except ImportError as error:
        raise VectorsUnreadable(MISSING_EXTRA) from error
    return Index


def _all_keys(index: Any) -> Any:
    import numpy as np

    return np.asarray(index.keys)


def _as_array(vector: Sequence[float], dimensions: int) -> Any:
    """Return a vector as an array of the library's. Raises VectorsUnreadable for other dimensions."""
    import numpy as np

    if len(vector) != dimensions:
        raise VectorsUnreadable(f"a vector has {len(vector)} dimensions, the others have {dimensions}")
    return np.asarray(vector, dtype=np.float32)
