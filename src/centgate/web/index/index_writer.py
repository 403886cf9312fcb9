"""Write the index. Only the crawl of the operator's sites does; a server never loads this module."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tantivy import Document, Index
from tantivy import IndexWriter as EngineWriter

from centgate.web.index.page import IndexedPage, pack_page, page_key
from centgate.web.index.page_index import FORMAT, IndexUnreadable, build_schema
from centgate.web.index.vectors import vector_id
from centgate.web.index.words import STEMMERS, base_language, split_text, stem_words

HEAP_BYTES = 64 << 20
"""Memory in which pages are collected before a part of the index is written."""
TITLE_REPEATS, ADDRESS_REPEATS, HEADING_REPEATS = 4, 2, 2
"""Weights of the fields: the occurrences that a word of the title, the address or a heading counts as."""


class IndexBusy(Exception):
    """Another process writes to the index."""


class IndexUnwritable(Exception):
    """The index cannot be written, as on a full disk. What is committed stays."""


class PageIndexWriter:
    """Writer of the index in a folder, which it creates. Pages become visible to readers by `commit`."""

    def __init__(self, folder: Path) -> None:
        """Raises IndexBusy, IndexUnreadable, IndexUnwritable or OSError."""
        self._folder = folder / FORMAT
        self._folder.mkdir(parents=True, exist_ok=True)
        self._index = _open_or_create(self._folder)
        try:
            self._writer: EngineWriter = self._index.writer(HEAP_BYTES, 1)
        except ValueError as error:
            if "LockBusy" in str(error):
                raise IndexBusy(f"another process writes to {folder}: try again when it has ended") from error
            raise IndexUnwritable(f"the index cannot be written: {str(error)[:200]}") from error
        self.pending = 0
        """Changes since the last commit."""

    def put(self, page: IndexedPage) -> None:
        """Add a page, in place of the one with the same address."""
        key = page_key(page.url) or page.url
        self._writer.delete_documents_by_term("key", key)
        self._writer.add_document(_build_document(page, key))
        self.pending += 1

    def delete(self, url: str) -> None:
        """Remove a page, if it is there."""
        self._writer.delete_documents_by_term("key", page_key(url) or url)
        self.pending += 1

    def delete_site(self, site: str) -> None:
        """Remove all pages of a site."""
        self._writer.delete_documents_by_term("site", site)
        self.pending += 1

    def commit(self) -> None:
        """Make all changes visible in one step; they survive a crash from then on. Raises IndexUnwritable."""
        try:
            self._writer.commit()
        except ValueError as error:
            raise IndexUnwritable(f"the index cannot be written: {str(error)[:200]}") from error
        self.pending = 0

    def close(self) -> None:
        """Commit, and wait until parts of the index are merged."""
        self.commit()
        self._writer.wait_merging_threads()


def set_aside_damaged(folder: Path) -> Path | None:
    """Move a damaged index out of the way and return its new place; None if there is none."""
    damaged = folder / FORMAT
    if not damaged.exists():
        return None
    return damaged.rename(folder / f"{FORMAT}.damaged-{int(time.time())}")


def _open_or_create(folder: Path) -> Index:
    try:
        index = Index(build_schema(), path=str(folder), reuse=True)
        index.searcher()
    except (ValueError, OSError) as error:
        raise IndexUnreadable(f"the index in {folder} cannot be read: {str(error)[:200]}") from error
    return index


def _build_document(page: IndexedPage, key: str) -> Document:
    language = base_language(page.language)
    title = _stem_text(page.title or "", language)
    weighted = (
        *title * TITLE_REPEATS,
        *_stem_text(_address_words(page.url), language) * ADDRESS_REPEATS,
        *_stem_text(page.headings, language) * HEADING_REPEATS,
    )
    body = _stem_text(page.text, language)
    document = Document()
    document.add_text("key", key)
    document.add_text("site", page.site)
    document.add_text("language", language if language in STEMMERS else "")
    document.add_text("title", " ".join(title))
    document.add_text("words", " ".join([*body, *weighted]))
    document.add_unsigned("day", _day_of(page.modified or page.published))
    document.add_unsigned("vector", vector_id(key, page.content_hash))
    document.add_bytes("page", pack_page(page))
    return document


def _stem_text(text: str, language: str) -> list[str]:
    return stem_words(split_text(text), language)


def _address_words(url: str) -> str:
    parts = urlsplit(url)
    return unquote(f"{parts.hostname or ''} {parts.path}").replace("/", " ")


def _day_of(time: str | None) -> int:
    """Return the days since 1970 of a date or a part of one; 0 for an unknown, earlier or future one."""
    text = (time or "")[:10]
    try:
        day = datetime.fromisoformat(text + {4: "-01-01", 7: "-01"}.get(len(text), "")).replace(tzinfo=UTC)
    except ValueError:
        return 0
    days = int(day.timestamp() // 86_400)
    return days if 0 < days <= int(datetime.now(UTC).timestamp() // 86_400) + 1 else 0
