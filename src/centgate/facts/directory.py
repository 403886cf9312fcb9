"""A directory of DeFi protocols: a list of megabytes, read a slice at a time and found again by any name."""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from centgate.readings import usd
from centgate.text import cleaned, hidden

SLICE_BYTES = 256 * 1024
SLICE_ROWS = 250
"""The most that is read of a list before others get their turn on the event loop."""
MOST_SLUG = 100
"""Characters of a slug; what is longer is none."""
MOST_CHAINS = 200
"""Chains of a protocol that are handed on."""
MOST_LINKS = {"website": 1, "social": 1, "code": 5, "audit": 10}
"""How many links of a kind are handed on, kinds in this order."""
_NOT_CHAINS = {
    *("borrowed", "dcandlsoverlap", "doublecounted", "liquidstaking", "masterchef", "offers", "owntokens"),
    *("pool2", "staking", "treasury", "vesting"),
}
"""What else `chainTvls` has for keys, in lower case; with a hyphen (`Base-borrowed`) it is of one chain."""

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
        row = _ROW.decode(listing.row)
        return _protocol(listing.slug, listing.name, row, listing.tvl_usd, _by_chain(row.chain_tvls))

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
            _few(link for child in children for link in child.links),
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


async def read_directory(body: bytes) -> Directory:
    """The directory in a list of protocols; ValueError for what is none.

    Finding where the rows begin and end takes about a millisecond for 2 MB, all at once. They are read in
    slices, with a turn for others in between. Rows that cannot be read are left out.
    """
    await asyncio.sleep(0)
    try:
        rows = _ROWS.decode(body)
    except RecursionError:
        raise ValueError("a list nested beyond reading") from None
    directory = Directory()
    for few in slices(rows):
        await asyncio.sleep(0)
        for row in few:
            if listing := _listing(row):
                directory.add(listing)
    if not directory.by_slug:
        raise ValueError("a list without a protocol")
    return directory


def slices(rows: Sequence[msgspec.Raw]) -> Iterator[Sequence[msgspec.Raw]]:
    """The rows in order, a few at a time: no slice is larger than said above, but for a single large row."""
    start = size = 0
    for place, row in enumerate(rows):
        size += len(row)
        if place > start and (size > SLICE_BYTES or place - start >= SLICE_ROWS):
            yield rows[start:place]
            start, size = place, len(row)
    if rows:
        yield rows[start:]


def read_protocol(slug: str, body: bytes) -> Protocol | None:
    """A protocol from an answer about it alone; None when it names none, ValueError for what is no object.

    Such an answer is mostly daily figures, tens of megabytes of them, which are passed over.
    """
    try:
        answer = _ANSWER.decode(body)
    except RecursionError:
        raise ValueError("an answer nested beyond reading") from None
    name = _text(answer.name)
    if name is None:
        return None
    tvls = _by_chain(answer.current_chain_tvls)
    return _protocol(slug, name, answer, _sum(tvls), tvls)


_NULL = msgspec.Raw(b"null")


class _Facts(
    msgspec.Struct,
    rename={
        "chain_tvls": "chainTvls",
        "current_chain_tvls": "currentChainTvls",
        "parent_protocol": "parentProtocol",
        "exclude_tvl_from_parent": "excludeTvlFromParent",
    },
):
    """What is read of a protocol, each member by itself, so that a broken one is only missing."""

    name: msgspec.Raw = _NULL
    url: msgspec.Raw = _NULL
    category: msgspec.Raw = _NULL
    chain: msgspec.Raw = _NULL
    chains: msgspec.Raw = _NULL
    audit_links: msgspec.Raw = _NULL
    twitter: msgspec.Raw = _NULL
    github: msgspec.Raw = _NULL


class _Row(_Facts):
    slug: msgspec.Raw = _NULL
    symbol: msgspec.Raw = _NULL
    gecko_id: msgspec.Raw = _NULL
    parent_protocol: msgspec.Raw = _NULL
    tvl: msgspec.Raw = _NULL
    chain_tvls: msgspec.Raw = _NULL
    exclude_tvl_from_parent: msgspec.Raw = _NULL


class _Answer(_Facts):
    current_chain_tvls: msgspec.Raw = _NULL


_ROWS = msgspec.json.Decoder(list[msgspec.Raw])
_ROW = msgspec.json.Decoder(_Row)
_ANSWER = msgspec.json.Decoder(_Answer)


def _listing(raw: msgspec.Raw) -> Listing | None:
    try:
        row = _ROW.decode(raw)
    except (ValueError, RecursionError):
        return None
    name, slug = _text(row.name), (_text(row.slug) or "").lower()
    if not is_slug(slug):
        slug = slugged(name or "")
    if not is_slug(slug):
        return None
    symbol, gecko_id, parent = _text(row.symbol), _text(row.gecko_id), _text(row.parent_protocol)
    family = slugged((parent or "").rpartition("#")[2])
    return Listing(
        slug,
        name or slug,
        symbol.upper() if symbol and letters(symbol) else None,
        gecko_id.lower() if gecko_id else None,
        family if is_slug(family) else None,
        _tvl(row),
        _value(row.exclude_tvl_from_parent) is not True,
        raw,
    )


def _protocol(slug: str, name: str, facts: _Facts, tvl_usd: float | None, tvls: dict[str, float]) -> Protocol:
    named = [*_texts(facts.chains)] or [*tvls] or [*_texts(facts.chain)]
    chains = (cleaned(chain) for chain in named[:MOST_CHAINS] if chain.lower() != "multi-chain")
    return Protocol(
        slug,
        cleaned(name) or slug,
        cleaned(_text(facts.category)),
        tuple(dict.fromkeys(chain for chain in chains if chain)),
        tvl_usd,
        _few(_links(facts)),
    )


def _tvl(row: _Row) -> float | None:
    own = usd(_value(row.tvl))
    return own if own is not None else _sum(_by_chain(row.chain_tvls))


def _by_chain(raw: msgspec.Raw) -> dict[str, float]:
    """US dollars by chain, the largest first, without the keys that are no chains."""
    value = _value(raw)
    given = cast(dict[str, Any], value) if isinstance(value, dict) else {}
    chains = [key for key in given if "-" not in key and key.lower() not in _NOT_CHAINS]
    known = {chain: locked for chain in chains if (locked := usd(given[chain])) is not None}
    return dict(sorted(known.items(), key=lambda item: -item[1]))


def _sum(tvls: dict[str, float]) -> float | None:
    return usd(math.fsum(tvls.values())) if tvls else None


def _links(facts: _Facts) -> Iterator[Link]:
    for url in _texts(facts.url):
        yield Link("website", url)
    for handle in _texts(facts.twitter):
        if re.fullmatch(r"@?[A-Za-z0-9_]{1,15}", handle):
            yield Link("social", f"https://x.com/{handle.removeprefix('@')}")
    for owner in _texts(facts.github):
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[\w-][\w.-]{0,99})?", owner, re.ASCII):
            yield Link("code", f"https://github.com/{owner}")
    for url in _texts(facts.audit_links):
        yield Link("audit", url)


def _few(links: Iterable[Link]) -> tuple[Link, ...]:
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


def _value(raw: msgspec.Raw) -> Any:
    """A member's value; None for one that cannot be read."""
    try:
        return msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        return None


def _text(raw: msgspec.Raw) -> str | None:
    return next(_texts(raw), None)


def _texts(raw: msgspec.Raw) -> Iterator[str]:
    """The texts in a member that is one or a list of them, those with something in them."""
    value = _value(raw)
    items = cast(list[Any], value) if isinstance(value, list) else [value]
    return (item.strip() for item in items if isinstance(item, str) and item.strip())
