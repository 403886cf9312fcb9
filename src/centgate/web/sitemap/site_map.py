"""Build the site map from fetched documents, in a sandbox.

A site can name a quarter of a million pages. They stay packed between the steps, since unpacking them in the
server process would block its event loop.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from centgate.sanitize import clean_line
from centgate.web.results import Hit, PageSource
from centgate.web.sitemap.links import extract_links
from centgate.web.sitemap.ranking import page_words, score_relevance, spread_over_folders
from centgate.web.sitemap.sitemaps import MAX_BYTES, ChildSitemap, parse_sitemap
from centgate.web.sitemap.urls import PageEntry, PageUrl, parse_page_url

MAX_PAGES = 50_000
"""Maximum number of a site's pages that are compared, over all its parts."""
MAX_CHILD_SITEMAPS = 200
"""Sitemaps of one index that are kept: more than are read."""
MAX_TITLE_LENGTH = 200
MAX_DESCRIPTION_LENGTH = 500

PackedEntries = bytes
"""Page entries as deflated MessagePack: a tenth of their size."""


class SitemapPart(Struct, frozen=True):
    """Contribution of one page or sitemap to the site map."""

    entries: PackedEntries
    count: int
    """Number of pages it names."""
    child_sitemaps: tuple[str, ...] = ()
    """Sitemaps that it names, the most relevant to the search first, then by turns of their sections."""
    child_count: int = 0
    """Number of sitemaps that it names, including those not kept."""
    is_cut: bool = False
    """True if only its beginning was read, as it is damaged or too long."""
    size: int = 0
    """Bytes that were parsed, decompressed."""
    refresh_target: str | None = None
    """Page that a page leads to at once."""


def build_page_part(body: bytes, content_type: str | None, url: str) -> SitemapPart:
    """Build the part of an HTML page: the page and its links."""
    page_links = extract_links(body, content_type, url)
    entries = pack_entries((page_links.page, *page_links.links))
    return SitemapPart(
        entries,
        len(page_links.links),
        is_cut=len(body) > MAX_BYTES,
        refresh_target=page_links.refresh_target,
    )


def build_sitemap_part(body: bytes, url: str, words: str) -> SitemapPart | None:
    """Build the part of a sitemap; None if it is not one. `words` rank the sitemaps that it names."""
    sitemap = parse_sitemap(body, url)
    if sitemap is None:
        return None
    children = _sort_child_sitemaps(sitemap.child_sitemaps, words)
    return SitemapPart(
        pack_entries(sitemap.pages),
        len(sitemap.pages),
        children[:MAX_CHILD_SITEMAPS],
        len(children),
        sitemap.is_cut,
        sitemap.size,
    )


def pack_entries(entries: Iterable[PageEntry]) -> PackedEntries:
    """Pack entries for a part."""
    return zlib.compress(msgspec.msgpack.encode(tuple(entries)), level=1)


def unpack_entries(entries: PackedEntries) -> list[PageEntry]:
    """Unpack the entries of a part."""
    return msgspec.msgpack.decode(zlib.decompress(entries), type=list[PageEntry])


class RankedPages(Struct, frozen=True):
    """The first pages of a site."""

    hits: tuple[Hit, ...]
    total: int
    """Number of the site's distinct pages that were compared."""
    matching: int | None = None
    """Number of those that match the search; None without one."""
    left_out: int = 0
    """Number of entries that were not compared."""


def rank_pages(
    parts: Sequence[PackedEntries], requested_url: str, final_url: str, search: str | None, limit: int
) -> RankedPages:
    """Return up to `limit` pages of a site, best first, without duplicates.

    `requested_url` is the URL of the request and `final_url` its target after redirects; the hosts of both
    are the site. Pages that match `search` come first, the others follow in the site's own order; without a
    match there are none.
    """
    endpoints = [each for each in (parse_page_url(requested_url), parse_page_url(final_url)) if each]
    if not endpoints:
        return RankedPages((), 0)
    selected, left_out = _select_entries([unpack_entries(part) for part in parts])
    candidates = _collect_candidates(selected, {endpoint.host for endpoint in endpoints})
    _share_alternates(candidates, endpoints[-1])
    ordered = _sort_by_site(candidates, endpoints)
    if not search:
        folded = _fold_languages(ordered)
        return RankedPages(tuple(map(_to_hit, folded[:limit])), len(folded), left_out=left_out)
    scores = score_relevance(search, [page_words(each.url, each.title) for each in ordered])
    ranks = sorted(range(len(ordered)), key=lambda n: -scores[n])  # a stable sort
    matches = {ordered[n].url.key for n in ranks if scores[n] > 0}
    folded = _fold_languages([ordered[n] for n in ranks])  # the language that matches best is kept
    matching = sum(each.url.key in matches for each in folded)
    hits = tuple(map(_to_hit, folded[:limit] if matching else ()))
    return RankedPages(hits, len(folded), matching, left_out)


class _PageCandidate(Struct):
    url: PageUrl
    title: str | None
    description: str | None
    part: int
    """Number of the part that provided the title."""
    modified: str | None
    source: PageSource | None
    alternates: tuple[str, ...]


def _select_entries(parts: Sequence[list[PageEntry]]) -> tuple[list[list[PageEntry]], int]:
    """Return the entries to compare of each part, and the number of those that are left out."""
    sizes = [len(entries) for entries in parts]
    quotas = _entry_quotas(sizes)
    selected = [entries[:quota] for entries, quota in zip(parts, quotas, strict=True)]
    return selected, sum(sizes) - sum(quotas)


def _collect_candidates(parts: Sequence[list[PageEntry]], hosts: set[str]) -> list[_PageCandidate]:
    """Return the site's distinct pages, with the last title: feeds are read last and know best.

    Of the spellings of a page the one with the shortest query is kept, the first of equal ones.
    """
    candidates: dict[tuple[str, str, str], _PageCandidate] = {}
    for number, entries in enumerate(parts):
        for entry in entries:
            page = parse_page_url(entry.url)
            if page is None or page.host not in hosts or not page.is_page:
                continue
            if candidate := candidates.get(page.key):
                _update_candidate(candidate, entry, number)
                if len(page.query) < len(candidate.url.query):
                    candidate.url = page
            else:
                candidates[page.key] = _PageCandidate(
                    page,
                    *(entry.title, entry.description, number),
                    *(entry.modified, entry.source, entry.alternates),
                )
    return list(candidates.values())


def _share_alternates(candidates: Sequence[_PageCandidate], start: PageUrl) -> None:
    """Add the languages that the start page states to the pages in them, which are not fetched.

    It must name itself among them: a template that prints one block of languages on every page does not.
    """
    own = next((each for each in candidates if each.url.key == start.key), None)
    keys = _alternate_keys(own) if own else frozenset[tuple[str, str, str]]()
    if own is None or start.key not in keys:
        return
    for candidate in candidates:
        if not candidate.alternates and candidate.url.key in keys:
            candidate.alternates = own.alternates


def _entry_quotas(sizes: Sequence[int]) -> list[int]:
    """Return the number of entries to read per part: all of a short one, equally many of long ones."""
    quotas = [0] * len(sizes)
    remaining = MAX_PAGES
    for filled, number in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        quotas[number] = min(sizes[number], remaining // (len(sizes) - filled))
        remaining -= quotas[number]
    return quotas


def _update_candidate(candidate: _PageCandidate, entry: PageEntry, part: int) -> None:
    if entry.title and (candidate.title is None or part > candidate.part):
        candidate.title, candidate.part = entry.title, part
    candidate.description = candidate.description or entry.description
    candidate.modified = candidate.modified or entry.modified
    candidate.source = candidate.source or entry.source
    candidate.alternates = candidate.alternates or entry.alternates


def _sort_by_site(candidates: Sequence[_PageCandidate], endpoints: Sequence[PageUrl]) -> list[_PageCandidate]:
    """Sort by site order: the page itself, its subtree, then the rest, each spread over its folders."""
    own_keys = {endpoint.key for endpoint in endpoints}
    requested, final = endpoints[0], endpoints[-1]
    start = final if requested.path == "/" or requested.host != final.host else requested
    own = [each for each in candidates if each.url.key in own_keys]
    others = [each for each in candidates if each.url.key not in own_keys]
    return [*own, *(others[n] for n in spread_over_folders([each.url for each in others], start))]


def _fold_languages(ordered: Sequence[_PageCandidate]) -> list[_PageCandidate]:
    """Return the pages without those that are another language of an earlier one.

    Both must name each other, as the hreflang links of one page do.
    """
    named = {each.url.key: _alternate_keys(each) for each in ordered if each.alternates}
    folded: set[tuple[str, str, str]] = set()
    kept: list[_PageCandidate] = []
    for candidate in ordered:
        key = candidate.url.key
        if key in folded:
            continue
        kept.append(candidate)
        folded.update(other for other in named.get(key, ()) if key in named.get(other, ()))
    return kept


def _alternate_keys(candidate: _PageCandidate) -> frozenset[tuple[str, str, str]]:
    pages = (parse_page_url(url) for url in candidate.alternates)
    return frozenset(page.key for page in pages if page)


def _to_hit(candidate: _PageCandidate) -> Hit:
    title = clean_line(candidate.title, MAX_TITLE_LENGTH)
    description = clean_line(candidate.description, MAX_DESCRIPTION_LENGTH)
    return Hit(candidate.url.url, title, description, modified=candidate.modified, found_in=candidate.source)


def _sort_child_sitemaps(children: Iterable[ChildSitemap], words: str) -> tuple[str, ...]:
    """Sort sitemaps by the match of their names with the words, then by turns of their sections.

    Names that differ in numbers only are of one section, which gives its newest sitemap first.
    """
    ordered = sorted(children, key=lambda child: child.modified or "", reverse=True)
    addresses = {page.url: page for page in (parse_page_url(child.url) for child in ordered) if page}
    names = [page_words(page, None) for page in addresses.values()]
    scores = score_relevance(words, names)
    counts = Counter[tuple[str, ...]]()
    ranks: list[tuple[float, int]] = []
    for name, score in zip(names, scores, strict=True):
        section = tuple(word for word in name if not word.isdigit())
        ranks.append((-score, counts[section]))
        counts[section] += 1
    urls = list(addresses)
    return tuple(urls[n] for n in sorted(range(len(urls)), key=ranks.__getitem__))
