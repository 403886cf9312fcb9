"""Search index of one's own: sites of the operator's choosing, crawled by `centgate index`."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from centgate.coercion import as_list, get_path
from centgate.errors import ProviderError, ProviderFailure
from centgate.provider import Provider, ProviderInfo, RequestTrace, instrumented
from centgate.sanitize import clean_line
from centgate.settings import Settings
from centgate.timestamps import format_unix_time
from centgate.upstream import Upstream, join_url
from centgate.web.index.crawl_state import find_reading_times, list_covered_sites
from centgate.web.index.page_index import CANDIDATES, IndexUnreadable, PageIndex, PageMatch
from centgate.web.index.passages import find_beginning
from centgate.web.index.vectors import MAX_DIMENSIONS, PageVectors, VectorsUnreadable
from centgate.web.results import Hit, SearchResults
from centgate.web.search_results import (
    MAX_DESCRIPTION_LENGTH,
    MAX_SITE_NAME_LENGTH,
    MAX_TITLE_LENGTH,
    distinct_hits,
    parse_language,
    parse_line,
    parse_url,
)

if TYPE_CHECKING:
    from centgate.resources import Resources

EMBEDDING_SHARE = 0.5
"""Share of a search's time for the vector of the query; the rest is for comparing words."""
NAMED_SITES = 5
"""Sites that are named in a message about what the index covers."""
EMBEDDINGS_LABEL = "the embeddings endpoint"
STALE_DAYS = 90
"""Days after which a reading of a page is reported as old."""


class SiteIndex(Provider):
    """Search over pages that this deployment has crawled: by words, and by meaning with embeddings."""

    info = ProviderInfo(
        "siteindex",
        "Site index",
        part_urls=(("embeddings", ""),),
        key="optional",
        docs_url="https://docs.rs/tantivy",
        setup="add sites by `centgate index add` and read them by `centgate index crawl`",
        resale="permitted",
        terms="Titles, addresses and short passages of pages that the operator chose to crawl, under "
        "robots.txt and `noindex`; the pages are under the rights of their sites.",
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        # the index itself has no upstream: what fails over HTTP is the endpoint
        self.upstream = self.open_upstream(resources, settings, EMBEDDINGS_LABEL)
        self._folder = settings.siteindex_folder
        self.index = PageIndex(settings.siteindex_folder)
        self._embeddings_url = settings.provider_settings("siteindex_embeddings").url
        self._model, self._min_similarity = (
            settings.siteindex_embeddings_model,
            settings.siteindex_min_similarity,
        )
        self.vectors = PageVectors(self._folder, self._model or "")

    @property
    def is_configured(self) -> bool:
        """True if there is a page to be found; a server notices an index that is created while it runs."""
        return super().is_configured and self.index.has_pages

    def unsupported_options(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Reject categories: the index does not know the kind of a page."""
        return () if options.get("category") is None else ("category",)

    def upstreams_for(self, chain_id: int | None, options: Mapping[str, Any]) -> Sequence[Upstream]:
        """Return no upstream: if the embeddings endpoint is down, words are compared alone."""
        return ()

    @property
    def embeds(self) -> bool:
        """True if the operator brings an endpoint that makes vectors."""
        return bool(self._embeddings_url and self._model)

    @instrumented
    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts. Costs what the operator's endpoint takes."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        content = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        url = join_url(self._embeddings_url or "", "/embeddings")
        reply = await self.upstream.post(url, content, headers=headers)
        try:
            vectors = _parse_vectors(reply.parse_json())
        except (ValueError, TypeError, AttributeError) as error:
            message = f"{EMBEDDINGS_LABEL} returned a response in an unknown format"
            raise ProviderError(self.info.name, message) from error
        if len(vectors) != len(texts):
            message = f"{EMBEDDINGS_LABEL} returned {len(vectors)} vectors for {len(texts)} texts"
            raise ProviderError(self.info.name, message)
        return vectors

    async def _find_near(self, query: str) -> list[int] | ProviderFailure | None:
        """Return the vectors near a query, nearest first; None or the failure if none can be compared.

        Both cause a warning, unless the operator brings no endpoint.
        """
        if not self.embeds:
            return None
        until = time.monotonic() + self.remaining_seconds * EMBEDDING_SHARE
        own = self.bind(RequestTrace(until))  # a failure here is none of the search
        try:
            if await asyncio.to_thread(self.vectors.is_empty):
                raise VectorsUnreadable("the index has no vectors yet: run `centgate index crawl`")
            (vector,) = await own.embed([query])
            near = await asyncio.to_thread(self.vectors.search, vector, CANDIDATES)
        except (ProviderFailure, VectorsUnreadable) as failure:
            self.trace.add_warning(f"{self.info.label} compared words alone: {failure}")
            return failure if isinstance(failure, ProviderFailure) else None
        return [key for key, similarity in near if similarity >= self._min_similarity]

    @instrumented
    async def search(self, query: str, limit: int, category: str | None = None) -> SearchResults:
        """Return at most `limit` pages; NoData if none of its sites has one. Costs nothing.

        If no page has the words, and pages could not be compared by meaning, that failure is raised.
        """
        if self.unsupported_options({"category": category}):
            raise self.invalid_response(f"does not support the category '{category}'")
        try:
            near = await self._find_near(query)
            failure, vectors = (near, None) if isinstance(near, ProviderFailure) else (None, near)
            matches = await asyncio.to_thread(self._search_index, query, limit, vectors or ())
            summary = self.index.summary
        except IndexUnreadable as error:
            raise self.invalid_response(f"cannot answer: {error}") from error
        sites = await asyncio.to_thread(list_covered_sites, self._folder)
        pages = "one page" if summary.pages == 1 else f"{summary.pages:,} pages"
        coverage = f"{pages} of {_name_sites(sites)}"
        hits = distinct_hits(filter(None, map(_to_hit, matches)), limit)
        if failure and not hits:
            raise failure.copy_for_caller()
        if not hits:
            raise self.no_data(f"no page that matches; it covers {coverage}")
        self.trace.add_warning(f"the pages are from an index of {coverage}, not of the whole web")
        self._warn_of_age(matches)
        return SearchResults(hits, by_meaning=vectors is not None)

    @instrumented
    async def probe(self) -> str:
        """Open the index and count its pages."""
        try:
            summary = await asyncio.to_thread(lambda: self.index.summary)
        except IndexUnreadable as error:
            raise self.invalid_response(f"cannot answer: {error}") from error
        return f"{summary.pages:,} pages"

    def _search_index(self, query: str, limit: int, near: Sequence[int]) -> list[PageMatch]:
        """Return pages with the time of their last reading: the index has that of the text."""
        matches = self.index.search(query, limit, near=near)
        times = find_reading_times(self._folder, [match.page.url for match in matches])
        return [_date_reading(match, times.get(match.page.url)) for match in matches]

    def _warn_of_age(self, matches: Sequence[PageMatch]) -> None:
        now = datetime.now(UTC)
        ages = [(now - datetime.fromisoformat(match.page.fetched)).days for match in matches]
        old = [age for age in ages if age > STALE_DAYS]
        if old:
            self.trace.add_warning(f"{len(old)} of the pages were read more than {STALE_DAYS} days ago")


def _parse_vectors(body: Any) -> list[list[float]]:
    """Parse the vectors of a response, in the order of its texts."""
    rows = sorted(as_list(get_path(body, "data")), key=lambda row: int(get_path(row, "index") or 0))
    return [_parse_vector(get_path(row, "embedding")) for row in rows]


def _parse_vector(value: Any) -> list[float]:
    """Parse a vector. Raises TypeError or ValueError for anything but finite numbers."""
    vector = [float(each) for each in as_list(value)]
    if not 0 < len(vector) <= MAX_DIMENSIONS or not all(map(math.isfinite, vector)):
        raise ValueError("not a vector of finite numbers")
    return vector


def _date_reading(match: PageMatch, seconds: float | None) -> PageMatch:
    """Return a match with the time of a later reading, which found the page unchanged."""
    if seconds is None:
        return match
    fetched = max(match.page.fetched, format_unix_time(seconds))
    return replace(match, page=replace(match.page, fetched=fetched))


def _to_hit(match: PageMatch) -> Hit | None:
    """Convert a match; the text is that of strangers, kept as they wrote it."""
    page, url = match.page, parse_url(match.page.url)
    if url is None:
        return None
    return Hit(
        url=url,
        title=parse_line(page.title, MAX_TITLE_LENGTH),
        description=parse_line(
            match.passage or page.description or find_beginning(page.text), MAX_DESCRIPTION_LENGTH
        ),
        published=page.published,
        score=round(match.score, 3),
        site_name=parse_line(page.site_name, MAX_SITE_NAME_LENGTH),
        image=parse_url(page.image),
        language=parse_language(page.language),
        indexed=page.fetched,
    )


def _name_sites(sites: Sequence[str]) -> str:
    """Name the hosts of sites, a few of many."""
    hosts = list(dict.fromkeys(clean_line(urlsplit(site).netloc, 100) or "" for site in sites))
    if not hosts:
        return "no sites"
    more = len(hosts) - NAMED_SITES
    named = hosts[:NAMED_SITES] if more > 1 else hosts
    rest = [f"{more} more sites"] if more > 1 else []
    return " and ".join(filter(None, [", ".join([*named, *rest][:-1]), [*named, *rest][-1]]))
