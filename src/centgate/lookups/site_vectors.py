"""Bring the vectors of the site index up to date: one for each page that can be found."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from centgate.errors import ProviderFailure
from centgate.provider import RequestTrace
from centgate.providers.siteindex import SiteIndex
from centgate.web.index.page import IndexedPage
from centgate.web.index.page_index import PageIndex
from centgate.web.index.vectors import MAX_EMBEDDED_LENGTH, PageVectors

BATCH_PAGES = 32
"""Pages of one request to the embeddings endpoint."""
SAVE_PAGES = 4096
"""Pages after which the file of vectors is written: what is not written is made again by the next crawl."""


class VectorReport(Struct, frozen=True):
    """Result of an update."""

    total: int
    """Vectors in the file."""
    added: int
    missing: int
    """Pages that have no vector, as the endpoint failed."""
    message: str | None
    """Why pages have none; None if all have one."""


async def update_vectors(
    provider: SiteIndex, index: PageIndex, vectors: PageVectors, wanted: set[int]
) -> VectorReport:
    """Make the vectors of the pages `wanted`, by their ids, and remove all others.

    Raises IndexUnreadable, VectorsUnreadable or OSError.
    """
    known = vectors.ids()
    vectors.change((), known - wanted)
    missing = sorted(wanted - known)
    added, message = 0, None
    for start in range(0, len(missing), SAVE_PAGES):
        made, message = await _embed_pages(provider, index, missing[start : start + SAVE_PAGES])
        vectors.change(made.items(), ())
        added += len(made)
        if message:
            break
    return VectorReport(len(known & wanted) + added, added, len(missing) - added, message)


async def _embed_pages(
    provider: SiteIndex, index: PageIndex, ids: Sequence[int]
) -> tuple[dict[int, list[float]], str | None]:
    """Return the vectors of pages, and the reason if the endpoint failed before the last one."""
    made: dict[int, list[float]] = {}
    for start in range(0, len(ids), BATCH_PAGES):
        pages = {each: page for each in ids[start : start + BATCH_PAGES] if (page := index.find_page(each))}
        if not pages:
            continue
        try:
            embedded = await provider.bind(RequestTrace()).embed(
                [_embedded_text(page) for page in pages.values()]
            )
            made |= zip(pages, embedded, strict=True)
        except ProviderFailure as failure:
            return made, failure.message
    return made, None


def _embedded_text(page: IndexedPage) -> str:
    return f"{page.title or ''}\n{page.text}".strip()[:MAX_EMBEDDED_LENGTH]
