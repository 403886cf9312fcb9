"""A directory of DeFi protocols: a list of megabytes, read a slice at a time and found again by any name."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from centgate.readings import usd
from centgate.text import hidden

MOST_SLUG = 100
"""Characters of a slug; what is longer is none."""
MOST_CHAINS = 200
"""Chains of a protocol that are handed on."""
MOST_LINKS = {"website": 1, "social": 1, "code": 5, "audit": 10}
"""How many links of a kind are handed on, kinds in this order."""

LinkKind = Literal["website", "social", "code", "audit"]


@dataclass(frozen=True, slots=True)
class Link:
    """A page about a protocol, https only."""

    kind: LinkKind
    url: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """What the directory knows of a protocol."""

    slug: str
    name: str
    category: str | None
    chains: tuple[str, ...]
    """In the directory's words."""
    tvl_usd: float | None
    """US dollars locked; what is borrowed, staked or held in a treasury aside."""
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """A row of the list: what names it, its size, and the rest as it came."""

    slug: str
    name: str
    symbol: str | None
    gecko_id: str | None
    parent: str | None
    """The slug of the protocol it is a part of."""
    tvl_usd: float | None
    counts: bool
    """Whether its value is counted in that of its parent."""
    row: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Directory:
    """Listings by their names, each in one spelling: `slugged` for slugs, `letters` for what people write."""

    parse_row: Callable[[Listing], Protocol]
    """Parses a listing's row, in the directory's own format."""
    by_slug: dict[str, Listing] = field(default_factory=dict[str, Listing])
    by_name: dict[str, list[Listing]] = field(default_factory=dict[str, list[Listing]])
    by_gecko_id: dict[str, list[Listing]] = field(default_factory=dict[str, list[Listing]])
    by_symbol: dict[str, list[Listing]] = field(default_factory=dict[str, list[Listing]])
    children: dict[str, list[Listing]] = field(default_factory=dict[str, list[Listing]])
    """By the slug of the parent."""

    def add(self, listing: Listing) -> None:
        """Enter a listing; of two with one slug the first stays."""
        if self.by_slug.setdefault(slugged(listing.slug), listing) is not listing:
            return
        for index, key in (
            (self.by_name, letters(listing.name)),
            (self.by_gecko_id, listing.gecko_id),
            (self.by_symbol, listing.symbol),
            (self.children, listing.parent),
        ):
            if key:
                index.setdefault(key, []).append(listing)

    def slugs(self) -> Iterator[str]:
        """Every slug there is, those of parents too."""
        yield from self.by_slug
        yield from self.children.keys() - self.by_slug.keys()

    def protocol(self, listing: Listing) -> Protocol:
        """A listing with all that its row says."""
        return self.parse_row(listing)

    def parent(self, slug: str) -> Protocol:
        """A parent, which has no row of its own, as the sum of its children."""
        listings = sorted(self.children[slug], key=largest)
        children = [self.protocol(listing) for listing in listings]
        counted = [listing.tvl_usd for listing in listings if listing.counts]
        known = [tvl for tvl in counted if tvl is not None]
        return Protocol(
            slug,
            _family_name(slug, [child.name for child in children]),
            next((child.category for child in children if child.category), None),
            tuple(dict.fromkeys(chain for child in children for chain in child.chains))[:MOST_CHAINS],
            usd(math.fsum(known)) if known else None,
            select_links(link for child in children for link in child.links),
        )


def largest(listing: Listing) -> tuple[float, str]:
    """A key that sorts the most valuable first."""
    return -(listing.tvl_usd or 0), listing.slug


def slugged(name: str) -> str:
    """A name as the directory makes slugs: lower case, hyphens for spaces, no apostrophes; dots stay."""
    plain = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return re.sub(r"[\s_-]+", "-", re.sub(r"['\u2019`]", "", plain.lower())).strip("-")


def letters(name: str) -> str:
    """The letters and digits of a name, in lower case."""
    plain = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return "".join(filter(str.isalnum, plain.lower()))


def is_slug(text: str) -> bool:
    """Whether a text can be a slug: short, in one piece, and all to be seen."""
    if len(text) > MOST_SLUG or " " in text or not letters(text):
        return False
    return text.isprintable() if text.isascii() else not hidden(text)


def select_links(links: Iterable[Link]) -> tuple[Link, ...]:
    """Those that are safe to hand on, each once: and few of a kind."""
    most = dict(MOST_LINKS)
    kept: dict[str, Link] = {}
    for link in links:
        if most[link.kind] and link.url not in kept and _safe(link.url):
            most[link.kind] -= 1
            kept[link.url] = link
    return tuple(sorted(kept.values(), key=lambda link: [*most].index(link.kind)))


def _safe(url: str) -> bool:
    """Whether an address is https, names a host and no user, and is all to be seen."""
    if len(url) > 2000 or " " in url or hidden(url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and "." in (parts.hostname or "") and "@" not in parts.netloc


def _family_name(slug: str, names: Sequence[str]) -> str:
    """A parent's name: the words its children begin with, where these make its slug, or the slug in words."""
    for name in names:
        words = name.split()
        for count in range(1, len(words) + 1):
            if slugged(" ".join(words[:count])) == slug:
                return " ".join(words[:count])
    return slug.replace("-", " ").title()
