"""Which protocol of a directory somebody means who wrote a slug, a name, a symbol, or nearly so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from centgate.facts.directory import Directory, Listing, Protocol, is_slug, largest, letters, slugged
from centgate.text import cleaned

SIMILAR = 90
"""How alike two slugs are, of 100, to be taken for one: a letter more, or two swapped, in ten."""
SIMILAR_LENGTH = 6
"""Characters under which names are alike by chance."""
NEAR = 60
"""How alike a slug is to be named to somebody whose name was not found."""
NEAR_NAMES = 3
ENDINGS = ("finance", "dex", "protocol", "labs", "dao", "network")
DOMAINS = ("com", "fi", "finance", "io", "org", "xyz")
_AROUND_HOST = re.compile(r"^(https?://)?(www\.|app\.)?|/$")
_DOMAIN = re.compile(rf"\.({'|'.join(DOMAINS)})$")
_WORDS = re.compile(rf"(-({'|'.join(ENDINGS)}))+$")
STEM_LENGTH = 3
"""Characters under which a name without its ending says nothing."""
_NO_PATH = re.compile(r"[/\\%?#]")


@dataclass(frozen=True, slots=True)
class Match:
    """A protocol, and a sentence where it may be another than was meant."""

    protocol: Protocol
    doubt: str | None = None


def matched(directory: Directory, asked: str) -> Match | None:
    """The protocol that goes by this name.

    A slug comes first, then a name, a parent, an id at CoinGecko and a symbol; of several the most valuable.
    """
    name = _plain(asked)
    if match := _named(directory, name):
        return match
    if listings := directory.by_gecko_id.get(name.lower()):
        return _first(directory, listings, f"the CoinGecko id {name}", sure=False)
    symbol = name.removeprefix("$").upper()
    if listings := directory.by_symbol.get(symbol):
        return _first(directory, listings, f"the symbol {symbol}", sure=False)
    return None


def kindred(directory: Directory, asked: str) -> Match | None:
    """The protocol that is called so but for an ending, such as Finance or .fi, on either side.

    A parent comes before its children, and of several the most valuable first.
    """
    stem = _stem(asked)
    if len(letters(stem)) < STEM_LENGTH:
        return None
    spellings = [*(f"{stem}-{word}" for word in ENDINGS), *(f"{stem}.{domain}" for domain in DOMAINS)]
    if match := _named(directory, stem):
        protocol = match.protocol
    elif parent := next((each for each in spellings if each in directory.children), None):
        protocol = directory.parent(parent)
    elif listings := [listing for each in spellings for listing in _called(directory, each)]:
        protocol = directory.protocol(min(listings, key=largest))
    else:
        return None
    return Match(
        protocol, f"matched {protocol.name} ({protocol.slug}) by its name but for an ending such as Finance"
    )


def _plain(asked: str) -> str:
    """What was asked for, without what cannot be seen and without the mark of a parent's id."""
    return re.sub(r"^parent#", "", cleaned(asked, len(asked)) or "", flags=re.IGNORECASE)


def _stem(asked: str) -> str:
    """A name's slug without the endings that writers put or leave; also of the address of its website."""
    host = _AROUND_HOST.sub("", slugged(_plain(asked)))
    return _WORDS.sub("", _DOMAIN.sub("", host))


def _called(directory: Directory, slug: str) -> Iterator[Listing]:
    if listing := directory.by_slug.get(slug):
        yield listing
    yield from directory.by_name.get(letters(slug), [])


def _named(directory: Directory, name: str) -> Match | None:
    """The protocol of this slug, else of this name, else the parent."""
    slug, plain = slugged(name), letters(name)
    if listing := directory.by_slug.get(slug):
        return Match(directory.protocol(listing))
    named = directory.by_name.get(plain, [])
    if exact := [listing for listing in named if slugged(listing.name) == slug]:
        return _first(directory, exact, f"the name {name}")
    if parent := next((each for each in directory.children if letters(each) == plain), None):
        return Match(directory.parent(parent))
    return _first(directory, named, f"the name {name}") if named else None


def similar(directory: Directory, asked: str) -> Match | None:
    """The protocol whose slug is nearly what was asked for, with the same numbers in it."""
    wanted = slugged(cleaned(asked, len(asked)) or "")
    if len(wanted) < SIMILAR_LENGTH:
        return None
    for slug in _alike(directory, wanted, SIMILAR):
        if re.findall(r"\d+", slug) != re.findall(r"\d+", wanted):
            continue
        listing = directory.by_slug.get(slug)
        protocol = directory.protocol(listing) if listing else directory.parent(slug)
        return Match(protocol, f"matched {protocol.name} ({protocol.slug}) by a similar name")
    return None


def near(directory: Directory, asked: str) -> list[str]:
    """A few slugs that somebody may have meant."""
    slugs = _alike(directory, slugged(cleaned(asked, len(asked)) or ""), NEAR)
    return [shown for slug in slugs[:NEAR_NAMES] if (shown := cleaned(slug))]


def slug_in(asked: str) -> str | None:
    """What was asked for as a slug; None for what cannot be one, such as a path."""
    slug = slugged(_plain(asked))
    return slug if is_slug(slug) and not _NO_PATH.search(slug) else None


def _first(directory: Directory, listings: Sequence[Listing], by: str, *, sure: bool = True) -> Match:
    best, *others = sorted(listings, key=largest)
    protocol = directory.protocol(best)
    if sure and not others:
        return Match(protocol)
    rest = f", the most valuable of {len(listings)} that have it" if others else ""
    return Match(protocol, f"matched {protocol.name} ({protocol.slug}) by {by}{rest}")


def _alike(directory: Directory, slug: str, score: int) -> list[str]:
    """Slugs like this one, the most alike first, then the most valuable."""
    found = process.extract(slug, [*directory.slugs()], scorer=fuzz.ratio, score_cutoff=score, limit=20)
    return [other for other, _, _ in sorted(found, key=lambda each: (-each[1], *_size(directory, each[0])))]


def _size(directory: Directory, slug: str) -> tuple[float, str]:
    listing = directory.by_slug.get(slug)
    return largest(listing) if listing else (0.0, slug)
