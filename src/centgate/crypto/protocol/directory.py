"""Directory of DeFi protocols, searchable by slug, name, symbol and CoinGecko id."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from centgate.coercion import as_usd
from centgate.sanitize import clean_line, has_invisible

MAX_SLUG_LENGTH = 100
"""Characters; a longer text is not a slug."""
MAX_CHAINS = 200
"""Chains of a protocol that are returned."""
MAX_LINKS = {"website": 1, "social": 1, "code": 5, "audit": 10}
"""Links of each kind that are returned, kinds in this order."""

CHANGE_DIGITS = 4
"""Decimals of a change in percent that is computed here."""

AuditStatus = Literal["none", "partial", "audited", "audited_origin"]
"""`audited_origin`: forked from an audited protocol, not audited itself."""
LinkKind = Literal["website", "social", "code", "audit"]


class DirectoryLink(Struct, frozen=True):
    """Page about a protocol, https only."""

    kind: LinkKind
    url: str


class ProtocolToken(Struct, frozen=True):
    """Token of a protocol. None is unknown."""

    symbol: str
    address: str | None
    """As the directory writes it: an address on Ethereum, or `<chain>:<address>`."""
    gecko_id: str | None
    market_cap_usd: float | None


class ProtocolChild(Struct, frozen=True):
    """Protocol that belongs to a parent."""

    slug: str
    name: str
    tvl_usd: float | None
    counts_towards_parent: bool
    """True if its TVL counts towards that of its parent."""


class ProtocolDetails(Struct, frozen=True):
    """Facts of a protocol in the directory besides its figures. None is unknown."""

    ids: frozenset[str] = frozenset()
    """Identifiers in the directory, by which incidents name a protocol; a parent has its children's too."""
    description: str | None = None
    """The directory's own words: untrusted text."""
    tvl_by_chain: tuple[tuple[str, float], ...] = ()
    """US dollars by chain, the largest first."""
    tvl_change_day: float | None = None
    """Percent in the last 24 hours."""
    tvl_change_week: float | None = None
    """Percent in the last 7 days."""
    token: ProtocolToken | None = None
    listed_at: datetime | None = None
    forked_from: tuple[str, ...] = ()
    forked_from_ids: tuple[str, ...] = ()
    """The same by identifiers; the directory has either."""
    oracles: tuple[str, ...] = ()
    audit_status: AuditStatus | None = None
    governance_ids: tuple[str, ...] = ()
    parent_slug: str | None = None
    parent_id: str | None = None
    """The parent's identifier in the directory."""
    children: tuple[ProtocolChild, ...] = ()
    """The largest first; only for a parent."""


class Incident(Struct, frozen=True):
    """Theft or loss of a protocol's funds, as the directory lists it. None is unknown."""

    at: datetime | None
    amount_usd: float | None
    returned_usd: float | None
    classification: str | None
    technique: str | None
    url: str | None
    """A report, https only."""
    name: str | None = None
    """What was attacked, in the directory's words."""
    chains: tuple[str, ...] = ()


class DefiProtocol(Struct, frozen=True):
    """Full record of a protocol."""

    slug: str
    name: str
    category: str | None
    chains: tuple[str, ...]
    """Chain names as the directory spells them."""
    tvl_usd: float | None
    """US dollars locked, without borrowed, staked and treasury assets."""
    links: tuple[DirectoryLink, ...]
    details: ProtocolDetails = ProtocolDetails()


class ProtocolListing(Struct, frozen=True):
    """Row of the list: its names and TVL parsed, the rest raw."""

    slug: str
    name: str
    symbol: str | None
    gecko_id: str | None
    parent_slug: str | None
    """Slug of the parent protocol."""
    tvl_usd: float | None
    counts_towards_parent: bool
    """True if its TVL counts towards that of its parent."""
    row: msgspec.Raw
    identifier: str | None = None
    """In the directory."""


class ProtocolDirectory(Struct, frozen=True):
    """Index of listings by normalized names: `to_slug` for slugs, `alphanumeric_key` for names."""

    parse_row: Callable[[ProtocolListing], DefiProtocol]
    """Parses a listing's row, in the directory's own format."""
    by_slug: dict[str, ProtocolListing] = field(default_factory=dict[str, ProtocolListing])
    by_name: dict[str, list[ProtocolListing]] = field(default_factory=dict[str, list[ProtocolListing]])
    by_gecko_id: dict[str, list[ProtocolListing]] = field(default_factory=dict[str, list[ProtocolListing]])
    by_symbol: dict[str, list[ProtocolListing]] = field(default_factory=dict[str, list[ProtocolListing]])
    children: dict[str, list[ProtocolListing]] = field(default_factory=dict[str, list[ProtocolListing]])
    """Listings by the slug of their parent."""
    name_by_id: dict[str, str] = field(default_factory=dict[str, str])

    def add_listing(self, listing: ProtocolListing) -> None:
        """Add a listing; of two with one slug the first stays."""
        if self.by_slug.setdefault(to_slug(listing.slug), listing) is not listing:
            return
        if listing.identifier:
            self.name_by_id.setdefault(listing.identifier, listing.name)
        for index, key in (
            (self.by_name, alphanumeric_key(listing.name)),
            (self.by_gecko_id, listing.gecko_id),
            (self.by_symbol, listing.symbol),
            (self.children, listing.parent_slug),
        ):
            if key:
                index.setdefault(key, []).append(listing)

    def all_slugs(self) -> Iterator[str]:
        """Yield every slug, those of parents included."""
        yield from self.by_slug
        yield from self.children.keys() - self.by_slug.keys()

    def get_protocol(self, listing: ProtocolListing) -> DefiProtocol:
        """Return the full record of a listing, with the names of the protocols that it was forked from."""
        protocol = self.parse_row(listing)
        names = (self.name_by_id.get(each) for each in protocol.details.forked_from_ids)
        origins = (*protocol.details.forked_from, *(line for name in names if (line := clean_line(name))))
        details = replace(protocol.details, forked_from=tuple(dict.fromkeys(origins)))
        return replace(protocol, details=details)

    def build_parent(self, slug: str) -> DefiProtocol:
        """Build a parent, which has no row of its own, from its children."""
        listings = sorted(self.children[slug], key=tvl_sort_key)
        children = [self.get_protocol(listing) for listing in listings]
        tvls = [listing.tvl_usd for listing in listings if listing.counts_towards_parent]
        known_tvls = [tvl for tvl in tvls if tvl is not None]
        return DefiProtocol(
            slug,
            _parent_name(slug, [child.name for child in children]),
            next((child.category for child in children if child.category), None),
            tuple(dict.fromkeys(chain for child in children for chain in child.chains))[:MAX_CHAINS],
            as_usd(math.fsum(known_tvls)) if known_tvls else None,
            select_links(link for child in children for link in child.links),
            _combine_details(listings, children),
        )


def _combine_details(
    listings: Sequence[ProtocolListing], children: Sequence[DefiProtocol]
) -> ProtocolDetails:
    """Return the details of a parent: TVL by chain and identifiers of its children, and the children."""
    parent_ids = {child.details.parent_id for child in children if child.details.parent_id}
    counted = [
        (listing.tvl_usd, child)
        for listing, child in zip(listings, children, strict=True)
        if listing.counts_towards_parent
    ]
    tvls: dict[str, float] = {}
    for _, child in counted:
        for chain, tvl in child.details.tvl_by_chain:
            tvls[chain] = tvls.get(chain, 0) + tvl
    return ProtocolDetails(
        ids=frozenset(parent_ids).union(*(child.details.ids for child in children)),
        tvl_by_chain=tuple(sorted(tvls.items(), key=lambda item: -item[1]))[:MAX_CHAINS],
        tvl_change_day=_combine_changes((tvl, child.details.tvl_change_day) for tvl, child in counted),
        tvl_change_week=_combine_changes((tvl, child.details.tvl_change_week) for tvl, child in counted),
        governance_ids=tuple(
            dict.fromkeys(each for child in children for each in child.details.governance_ids)
        ),
        children=tuple(
            ProtocolChild(each.slug, each.name, each.tvl_usd, each.counts_towards_parent) for each in listings
        ),
    )


def _combine_changes(changes: Iterable[tuple[float | None, float | None]]) -> float | None:
    """Return the change in percent of a sum of values with their own changes; None if one is unknown.

    Values of 0 and unknown values, which are no part of the sum, are left out.
    """
    after = before = 0.0
    for tvl, change in changes:
        if not tvl:
            continue
        if change is None or change <= -100:
            return None
        after += tvl
        before += tvl / (1 + change / 100)
    return round((after / before - 1) * 100, CHANGE_DIGITS) if before else None


def tvl_sort_key(listing: ProtocolListing) -> tuple[float, str]:
    """Return a sort key that puts the highest TVL first."""
    return -(listing.tvl_usd or 0), listing.slug


def to_slug(name: str) -> str:
    """Convert a name to a slug as the directory does: lower case, hyphens, no apostrophes; dots stay."""
    normalized = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return re.sub(r"[\s_-]+", "-", re.sub(r"['\u2019`]", "", normalized.lower())).strip("-")


def alphanumeric_key(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    normalized = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return "".join(filter(str.isalnum, normalized.lower()))


def is_slug(text: str) -> bool:
    """True if a text can be a slug: short, without spaces or invisible characters."""
    if len(text) > MAX_SLUG_LENGTH or " " in text or not alphanumeric_key(text):
        return False
    return text.isprintable() if text.isascii() else not has_invisible(text)


def select_links(links: Iterable[DirectoryLink]) -> tuple[DirectoryLink, ...]:
    """Return the safe links, each once, at most MAX_LINKS of a kind."""
    remaining = dict(MAX_LINKS)
    selected: dict[str, DirectoryLink] = {}
    for link in links:
        if remaining[link.kind] and link.url not in selected and is_safe_url(link.url):
            remaining[link.kind] -= 1
            selected[link.url] = link
    return tuple(sorted(selected.values(), key=lambda link: [*remaining].index(link.kind)))


def is_safe_url(url: str) -> bool:
    """True if a URL is https, has a host and no user, and no invisible characters."""
    if len(url) > 2000 or " " in url or has_invisible(url):
        return False
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" and "." in (parts.hostname or "") and "@" not in parts.netloc


def _parent_name(slug: str, names: Sequence[str]) -> str:
    """Return the first words of a child's name that form the parent's slug, else the slug in words."""
    for name in names:
        words = name.split()
        for count in range(1, len(words) + 1):
            if to_slug(" ".join(words[:count])) == slug:
                return " ".join(words[:count])
    return slug.replace("-", " ").title()
