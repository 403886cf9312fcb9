"""The map of a site, made in a sandbox of what was fetched.

A site can name a quarter of a million pages. They stay packed between the steps, since unpacking them where
the event loop runs would hold it up.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from centgate.facts.web import Hit
from centgate.sites.links import links
from centgate.sites.ranking import place, relevance, words_of
from centgate.sites.site import Address, Entry, address
from centgate.sites.sitemaps import parse
from centgate.text import cleaned

MOST_PAGES = 50_000
"""Pages of a site that are compared, of all its parts together."""
MOST_FURTHER = 20
LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 500

Packed = bytes
"""Entries, as MessagePack, deflated: a tenth of their size."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one page or sitemap gives to the map."""

    entries: Packed
    count: int
    """How many pages it names."""
    further: tuple[str, ...] = ()
    """Sitemaps that it names, the nearest to what is asked first."""
    further_count: int = 0
    """How many it names, beside those that are kept."""


def page_part(body: bytes, content_type: str | None, url: str) -> Part:
    """An HTML page and its links."""
    found = links(body, content_type, url)
    return Part(packed((found.page, *found.links)), len(found.links))


def sitemap_part(body: bytes, url: str, words: str) -> Part | None:
    """A sitemap; None when it is none. `words` are what is looked for, to choose among further ones."""
    found = parse(body, url)
    if found is None:
        return None
    further = _nearest(dict.fromkeys(found.further), words)
    return Part(packed(found.pages), len(found.pages), further[:MOST_FURTHER], len(further))


def packed(entries: Iterable[Entry]) -> Packed:
    """Entries for a part."""
    return zlib.compress(msgspec.msgpack.encode(tuple(entries)), level=1)


def unpacked(entries: Packed) -> list[Entry]:
    """The entries of a part."""
    return msgspec.msgpack.decode(zlib.decompress(entries), type=list[Entry])


def best(parts: Sequence[Packed], asked: str, final: str, search: str | None, most: int) -> list[Hit]:
    """The pages of a site that are worth naming, best first, each once.

    `asked` is the address that was asked for and `final` where it led; the hosts of both are the site.
    Pages that match `search` come first, the others follow in the site's own order.
    """
    ends = [each for each in (address(asked), address(final)) if each]
    if not ends:
        return []
    found = _candidates(parts, {end.host for end in ends})
    ordered = _in_site_order(found, ends)
    if search:
        scores = relevance(search, [words_of(each.address, each.title) for each in ordered])
        ranks = sorted(range(len(ordered)), key=lambda n: -scores[n])  # stable
        ordered = [ordered[n] for n in ranks]
    return [_hit(each) for each in ordered[:most]]


@dataclass(slots=True)
class _Candidate:
    address: Address
    title: str | None
    description: str | None
    part: int
    """Which part gave the title."""


def _candidates(parts: Sequence[Packed], hosts: set[str]) -> list[_Candidate]:
    """The site's pages, each once: by the first spelling and, as feeds know it best, the last title."""
    found: dict[tuple[str, str, str], _Candidate] = {}
    decoded = [unpacked(part) for part in parts]
    shares = _shares([len(entries) for entries in decoded])
    for number, entries in enumerate(decoded):
        for entry in entries[: shares[number]]:
            page = address(entry.url)
            if page is None or page.host not in hosts or not page.is_page:
                continue
            if known := found.get(page.key):
                _learn(known, entry, number)
            else:
                found[page.key] = _Candidate(page, entry.title, entry.description, number)
    return list(found.values())


def _shares(sizes: Sequence[int]) -> list[int]:
    """How many entries of each part are looked at: all of a short one, of long ones equally many."""
    shares = [0] * len(sizes)
    left = MOST_PAGES
    for done, number in enumerate(sorted(range(len(sizes)), key=sizes.__getitem__)):
        shares[number] = min(sizes[number], left // (len(sizes) - done))
        left -= shares[number]
    return shares


def _learn(known: _Candidate, entry: Entry, part: int) -> None:
    if entry.title and (known.title is None or part > known.part):
        known.title, known.part = entry.title, part
    known.description = known.description or entry.description


def _in_site_order(found: Sequence[_Candidate], ends: Sequence[Address]) -> list[_Candidate]:
    """First the page itself, then its subtree, then the rest; each from the top of the site downwards."""
    itself = {end.key for end in ends}
    asked, final = ends[0], ends[-1]
    begin = final if asked.path == "/" or asked.host != final.host else asked
    return sorted(found, key=lambda each: (each.address.key not in itself, *place(each.address, begin)))


def _hit(found: _Candidate) -> Hit:
    title = cleaned(found.title, LONGEST_TITLE)
    return Hit(found.address.url, title, cleaned(found.description, LONGEST_DESCRIPTION))


def _nearest(urls: Iterable[str], words: str) -> tuple[str, ...]:
    """Sitemaps whose names match the words first, otherwise in their order."""
    listed = [each for each in map(address, urls) if each]
    scores = relevance(words, [words_of(each, None) for each in listed])
    return tuple(listed[n].url for n in sorted(range(len(listed)), key=lambda n: -scores[n]))
