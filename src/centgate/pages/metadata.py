"""What a page says of itself: title, author, dates, language, canonical address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, cast

import orjson

from centgate.pages.addresses import absolute
from centgate.pages.document import Element, text_of
from centgate.readings import at, items
from centgate.text import cleaned

LONGEST_TITLE, LONGEST_DESCRIPTION, LONGEST_NAME = 300, 1000, 200
MOST_METAS = 400
MOST_JSON = 512 * 1024
"""Characters of all JSON-LD of a page together."""
MOST_OBJECTS = 500
_LANGUAGE = re.compile(r"[a-zA-Z]{2,8}(?:[-_][a-zA-Z0-9]{1,8}){0,3}")
_ARTICLES = re.compile(
    r"Article|Posting|Report|WebPage|Page|Recipe|Review|Book|Course|HowTo|Video|Software|Dataset|Work"
)
_PUBLISHED = (
    "article:published_time",
    "og:article:published_time",
    "datepublished",
    "date",
    "dc.date",
    "dc.date.issued",
    "dcterms.created",
    "dcterms.issued",
    "citation_publication_date",
    "publishdate",
    "pubdate",
    "parsely-pub-date",
    "sailthru.date",
    "article.published",
)
_MODIFIED = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "dcterms.modified",
    "last-modified",
    "revised",
)
_AUTHOR = (
    "author",
    "article:author",
    "dc.creator",
    "dcterms.creator",
    "citation_author",
    "parsely-author",
    "byl",
    "sailthru.author",
)
_DAY = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?$")
_ZONE = re.compile(r"([+-]\d{2})(\d{2})$")


@dataclass(frozen=True, slots=True)
class Metadata:
    """None is what a page does not say."""

    title: str | None = None
    description: str | None = None
    language: str | None = None
    canonical: str | None = None
    author: str | None = None
    published: str | None = None
    modified: str | None = None


def metadata_of(root: Element, base: str) -> Metadata:
    """What a page's head, its JSON-LD and its first heading say."""
    metas = _metas(root)
    linked = list(islice(_objects(root), MOST_OBJECTS))
    return Metadata(
        title=_title(root, metas),
        description=_first(
            metas, ("og:description", "description", "twitter:description"), LONGEST_DESCRIPTION
        ),
        language=_language(root, metas),
        canonical=_canonical(root, metas, base),
        author=_author(metas, linked),
        published=_date(linked, "datePublished", metas, _PUBLISHED) or _time(root),
        modified=_date(linked, "dateModified", metas, _MODIFIED),
    )


def moment(text: Any) -> str | None:
    """A date or time in ISO 8601, as exact as it was written; None for what is none or cannot be."""
    written = text.strip()[:40] if isinstance(text, str) else ""
    if day := _DAY.match(written):
        return _checked(*day.groups())
    try:
        told = datetime.fromisoformat(_ZONE.sub(r"\1:\2", written).replace(" ", "T", 1).replace(" ", ""))
    except ValueError:
        return None
    if not _likely(told.year):
        return None
    if told.tzinfo is not None and told.utcoffset() == UTC.utcoffset(None):
        return told.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
    return told.replace(microsecond=0).isoformat()


def _checked(year: str, month: str | None, day: str | None) -> str | None:
    try:
        date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    parts = [year, *(part.zfill(2) for part in (month, day) if part)]
    return "-".join(parts) if _likely(int(year)) else None


def _likely(year: int) -> bool:
    return 1900 <= year <= datetime.now(UTC).year + 2


def _metas(root: Element) -> dict[str, str]:
    """The first non-empty content of each name."""
    found: dict[str, str] = {}
    for meta in islice(root.iter("meta"), MOST_METAS):
        content = (meta.get("content") or "").strip()
        for attribute in ("property", "name", "itemprop", "http-equiv"):
            name = (meta.get(attribute) or "").strip().lower()
            if name and content:
                found.setdefault(name, content)
    return found


def _objects(root: Element) -> Iterator[dict[str, Any]]:
    """The objects of a page's JSON-LD, with those of its graphs."""
    left = MOST_JSON
    for script in root.iter("script"):
        if (script.get("type") or "").strip().lower() != "application/ld+json":
            continue
        text = script.text or ""
        left -= len(text)
        if left < 0:
            return
        try:
            yield from _flat(orjson.loads(text.strip().removeprefix("<!--").removesuffix("-->")), 0)
        except (orjson.JSONDecodeError, RecursionError):
            continue


def _flat(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > 4:
        return
    for each in items(value) or [value]:
        if isinstance(each, dict):
            yield cast(dict[str, Any], each)
            yield from _flat(at(each, "@graph"), depth + 1)
            yield from _flat(at(each, "mainEntity"), depth + 1)


def _title(root: Element, metas: dict[str, str]) -> str | None:
    if title := _first(metas, ("og:title",), LONGEST_TITLE):
        return title
    for tag in ("title", "h1"):
        for element in islice(root.iter(tag), 3):
            parent = element.getparent()
            if parent is not None and parent.tag == "svg":
                continue
            if title := cleaned(text_of(element), LONGEST_TITLE):
                return title
    return _first(metas, ("twitter:title", "dc.title"), LONGEST_TITLE)


def _first(metas: dict[str, str], names: tuple[str, ...], length: int) -> str | None:
    return next((text for name in names if (text := cleaned(metas.get(name), length))), None)


def _language(root: Element, metas: dict[str, str]) -> str | None:
    """Of the document; a region is written with a hyphen."""
    html = root.get("lang") or root.get("xml:lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    for said in (html, metas.get("og:locale"), metas.get("content-language"), metas.get("dc.language")):
        if said and _LANGUAGE.fullmatch(said.strip()):
            return said.strip().replace("_", "-")
    return None


def _canonical(root: Element, metas: dict[str, str], base: str) -> str | None:
    for link in islice(root.iter("link"), MOST_METAS):
        if "canonical" in (link.get("rel") or "").lower().split():
            found = absolute(base, link.get("href"))
            return found if found and found.startswith("http") else None
    found = absolute(base, metas.get("og:url"))
    return found if found and found.startswith("http") else None


def _author(metas: dict[str, str], linked: list[dict[str, Any]]) -> str | None:
    for each in _works(linked):
        if name := _names(each.get("author")):
            return name
    for key in _AUTHOR:
        if (name := cleaned(metas.get(key), LONGEST_NAME)) and not name.startswith(
            ("http:", "https:", "@", "//")
        ):
            return name
    return None


def _names(author: Any) -> str | None:
    """The names of one author or several, which are texts or objects."""
    names = [each if isinstance(each, str) else at(each, "name") for each in (items(author) or [author])[:10]]
    shown = [name for each in names if isinstance(each, str) and (name := cleaned(each, LONGEST_NAME))]
    return cleaned(", ".join(name for name in shown if not name.startswith("http")), LONGEST_NAME)


def _works(linked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is an article or a page, those first that are articles."""
    works = [each for each in linked if _ARTICLES.search(str(each.get("@type")))]
    return sorted(works, key=lambda each: "Page" in str(each.get("@type")))


def _date(
    linked: list[dict[str, Any]], key: str, metas: dict[str, str], names: tuple[str, ...]
) -> str | None:
    told = [each.get(key) for each in _works(linked)] + [metas.get(name) for name in names]
    return next((found for each in told if (found := moment(each))), None)


def _time(root: Element) -> str | None:
    """The one `time` that says it is the date of publication."""
    for element in islice(root.iter("time"), 20):
        marked = element.get("pubdate") is not None or element.get("itemprop") == "datePublished"
        if marked or "published" in (element.get("class") or ""):
            return moment(element.get("datetime"))
    return None
