"""Match a slug, name, symbol or similar spelling to a protocol of a directory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from centgate.crypto.protocol.directory import (
    DefiProtocol,
    ProtocolDirectory,
    ProtocolListing,
    alphanumeric_key,
    is_slug,
    to_slug,
    tvl_sort_key,
)
from centgate.sanitize import clean_line, quote_line

MIN_SIMILARITY = 90
"""Similarity, of 100, from which two slugs match: one letter more, or two swapped, in ten."""
MIN_SIMILAR_LENGTH = 6
"""Fewest characters of a name for a similarity match; shorter ones are similar by chance."""
MIN_SUGGESTION_SIMILARITY = 60
"""Similarity, of 100, from which a slug is suggested for an unknown name."""
MAX_SUGGESTIONS = 3
ENDINGS = ("finance", "dex", "protocol", "labs", "dao", "network")
DOMAINS = ("com", "fi", "finance", "io", "org", "xyz")
_URL_AFFIXES = re.compile(r"^(https?://)?(www\.|app\.)?|/$")
_DOMAIN = re.compile(rf"\.({'|'.join(DOMAINS)})$")
_ENDING_WORDS = re.compile(rf"(-({'|'.join(ENDINGS)}))+$")
MIN_STEM_LENGTH = 3
"""Fewest characters of a name without its ending."""
_NO_PATH = re.compile(r"[/\\%?#]")


class ProtocolMatch(Struct, frozen=True):
    """A matched protocol, with a warning if another one may have been meant."""

    protocol: DefiProtocol
    warning: str | None = None


def match_exact(directory: ProtocolDirectory, query: str) -> ProtocolMatch | None:
    """Return the protocol with exactly this slug, name or symbol, or None.

    The order is slug, name, parent, CoinGecko id, symbol; of several the most valuable.
    """
    name = _clean_query(query)
    if match := _match_name(directory, name):
        return match
    if listings := directory.by_gecko_id.get(name.lower()):
        return _choose_listing(directory, listings, f"the CoinGecko id {quote_line(name)}", is_certain=False)
    symbol = name.removeprefix("$").upper()
    if listings := directory.by_symbol.get(symbol):
        return _choose_listing(directory, listings, f"the symbol {quote_line(symbol)}", is_certain=False)
    return None


def match_without_ending(directory: ProtocolDirectory, query: str) -> ProtocolMatch | None:
    """Return the protocol whose name matches apart from an ending, such as Finance or .fi, on either side.

    A parent comes before its children; of several the most valuable.
    """
    stem = _strip_endings(query)
    if len(alphanumeric_key(stem)) < MIN_STEM_LENGTH:
        return None
    spellings = [*(f"{stem}-{word}" for word in ENDINGS), *(f"{stem}.{domain}" for domain in DOMAINS)]
    if match := _match_name(directory, stem):
        protocol = match.protocol
    elif parent := next((each for each in spellings if each in directory.children), None):
        protocol = directory.build_parent(parent)
    elif listings := [listing for each in spellings for listing in _find_listings(directory, each)]:
        protocol = directory.get_protocol(min(listings, key=tvl_sort_key))
    else:
        return None
    return ProtocolMatch(
        protocol,
        f"matched {quote_line(protocol.name)} ({protocol.slug}) by its name apart from an ending such as "
        "Finance",
    )


def _clean_query(query: str) -> str:
    """Remove invisible characters and the `parent#` prefix of a parent's id."""
    return re.sub(r"^parent#", "", clean_line(query, len(query)) or "", flags=re.IGNORECASE)


def _strip_endings(query: str) -> str:
    """Return the slug of a name or website address without its optional endings."""
    host = _URL_AFFIXES.sub("", to_slug(_clean_query(query)))
    return _ENDING_WORDS.sub("", _DOMAIN.sub("", host))


def _find_listings(directory: ProtocolDirectory, slug: str) -> Iterator[ProtocolListing]:
    if listing := directory.by_slug.get(slug):
        yield listing
    yield from directory.by_name.get(alphanumeric_key(slug), [])


def _match_name(directory: ProtocolDirectory, name: str) -> ProtocolMatch | None:
    """Return the protocol of this slug, which a parent has too, else of this name, else the parent.

    Anyone can have a protocol listed under a name, so a name does not come before a slug.
    """
    slug, plain = to_slug(name), alphanumeric_key(name)
    if listing := directory.by_slug.get(slug):
        return ProtocolMatch(directory.get_protocol(listing))
    candidates = directory.by_name.get(plain, [])
    exact = [listing for listing in candidates if to_slug(listing.name) == slug]
    if slug in directory.children:
        return ProtocolMatch(directory.build_parent(slug), _describe_namesakes(slug, exact))
    if exact:
        return _choose_listing(directory, exact, f"the name {quote_line(name)}")
    if parent := next((each for each in directory.children if alphanumeric_key(each) == plain), None):
        return ProtocolMatch(directory.build_parent(parent))
    return _choose_listing(directory, candidates, f"the name {quote_line(name)}") if candidates else None


def _describe_namesakes(slug: str, listings: Sequence[ProtocolListing]) -> str | None:
    """Return a warning that other protocols have a parent's slug as their name; None without any."""
    if not listings:
        return None
    best = min(listings, key=tvl_sort_key)
    return f"matched the parent {slug}; {quote_line(best.name)} ({best.slug}) has the same name"


def match_similar(directory: ProtocolDirectory, query: str) -> ProtocolMatch | None:
    """Return the protocol whose slug is similar and contains the same numbers, or None."""
    target = to_slug(clean_line(query, len(query)) or "")
    if len(target) < MIN_SIMILAR_LENGTH:
        return None
    for slug in _find_similar_slugs(directory, target, MIN_SIMILARITY):
        if re.findall(r"\d+", slug) != re.findall(r"\d+", target):
            continue
        listing = directory.by_slug.get(slug)
        protocol = directory.get_protocol(listing) if listing else directory.build_parent(slug)
        return ProtocolMatch(
            protocol, f"matched {quote_line(protocol.name)} ({protocol.slug}) by a similar name"
        )
    return None


def suggest_slugs(directory: ProtocolDirectory, query: str) -> list[str]:
    """Return up to MAX_SUGGESTIONS similar slugs as suggestions."""
    slugs = _find_similar_slugs(
        directory, to_slug(clean_line(query, len(query)) or ""), MIN_SUGGESTION_SIMILARITY
    )
    return [name for slug in slugs[:MAX_SUGGESTIONS] if (name := clean_line(slug))]


def parse_slug(query: str) -> str | None:
    """Convert a name to a slug; None if it cannot be one, such as a path."""
    slug = to_slug(_clean_query(query))
    return slug if is_slug(slug) and not _NO_PATH.search(slug) else None


def _choose_listing(
    directory: ProtocolDirectory, listings: Sequence[ProtocolListing], by: str, *, is_certain: bool = True
) -> ProtocolMatch:
    best, *others = sorted(listings, key=tvl_sort_key)
    protocol = directory.get_protocol(best)
    if is_certain and not others:
        return ProtocolMatch(protocol)
    rest = f", the most valuable of {len(listings)} that have it" if others else ""
    return ProtocolMatch(protocol, f"matched {quote_line(protocol.name)} ({protocol.slug}) by {by}{rest}")


def _find_similar_slugs(directory: ProtocolDirectory, slug: str, score: int) -> list[str]:
    """Return similar slugs, the most similar first, then the most valuable."""
    from rapidfuzz import fuzz, process  # late, see `runtime.LATE_MODULES`

    matches = process.extract(slug, [*directory.all_slugs()], scorer=fuzz.ratio, score_cutoff=score, limit=20)
    return [
        other for other, _, _ in sorted(matches, key=lambda each: (-each[1], *_size_key(directory, each[0])))
    ]


def _size_key(directory: ProtocolDirectory, slug: str) -> tuple[float, str]:
    listing = directory.by_slug.get(slug)
    return tvl_sort_key(listing) if listing else (0.0, slug)
