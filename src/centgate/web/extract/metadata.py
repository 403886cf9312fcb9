"""Extract a page's own metadata: title, author, dates, language, canonical URL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, cast

import orjson
from msgspec import Struct

from centgate.coercion import as_list, get_path
from centgate.sanitize import clean_line
from centgate.timestamps import format_timestamp
from centgate.web.extract.dom import Element, extract_all_text, find_by_xpath
from centgate.web.extract.links import resolve_link
from centgate.web.fetch.url import MAX_URL_LENGTH

MAX_TITLE_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH = 300, 1000, 200
MAX_KEYWORDS, MAX_KEYWORD_LENGTH = 20, 60
MAX_METAS = 400
MAX_JSON_LD = 512 * 1024
"""Characters of all JSON-LD of a page."""
MAX_OBJECTS = 500
_LANGUAGE = re.compile(r"[a-zA-Z]{2,8}(?:[-_][a-zA-Z0-9]{1,8}){0,3}")
_ARTICLE_TYPE = re.compile(
    r"Article|Posting|Report|WebPage|Page|Recipe|Review|Book|Course|HowTo|Video|Software|Dataset|Work"
)
_PUBLISHED_NAMES = (
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
_MODIFIED_NAMES = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "dcterms.modified",
    "last-modified",
    "revised",
)
_AUTHOR_NAMES = (
    "author",
    "article:author",
    "dc.creator",
    "dcterms.creator",
    "citation_author",
    "parsely-author",
    "byl",
    "sailthru.author",
)
_DISCUSSIONS = "//*[contains(@itemtype, 'Discussion') or contains(@itemtype, 'QAPage')]"
_DAY = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?$")
_OTHER_DAY = re.compile(r"\d{8}|\d{4}-?W\d\d(?:-?\d)?")
"""Other dates of ISO 8601: without hyphens, and by the number of a week, whose first day it stands for."""
_ZONE = re.compile(r"([+-]\d{2})(\d{2})$")


class DocumentMetadata(Struct, frozen=True):
    """Metadata of a page; None if the page does not state it."""

    title: str | None = None
    description: str | None = None
    language: str | None = None
    canonical: str | None = None
    author: str | None = None
    published: str | None = None
    modified: str | None = None
    image: str | None = None
    """Absolute http or https URL."""
    site_name: str | None = None
    keywords: tuple[str, ...] = ()
    is_indexable: bool = True
    """False if the page asks search engines to leave it out."""
    is_article: bool = False
    """True if the page says that it is one text or video, and no list or discussion."""


def extract_metadata(root: Element, base: str) -> DocumentMetadata:
    """Return the metadata in a page's head, its JSON-LD and its first heading."""
    metas = _meta_contents(root)
    json_ld = list(islice(_iter_json_ld(root), MAX_OBJECTS))
    return DocumentMetadata(
        title=_find_title(root, metas),
        description=_first_meta(
            metas, ("og:description", "description", "twitter:description"), MAX_DESCRIPTION_LENGTH
        ),
        language=_find_language(root, metas, json_ld),
        canonical=_find_canonical(root, metas, base),
        author=_find_author(metas, json_ld),
        published=_find_date(json_ld, "datePublished", metas, _PUBLISHED_NAMES)
        or _find_publication_time(root),
        modified=_find_date(json_ld, "dateModified", metas, _MODIFIED_NAMES),
        image=_find_image(metas, json_ld, base),
        site_name=_first_meta(metas, ("og:site_name", "application-name"), MAX_NAME_LENGTH)
        or _first_json_ld(json_ld, "publisher", "name", MAX_NAME_LENGTH),
        keywords=split_keywords(
            metas.get("keywords") or metas.get("news_keywords") or _join_json_ld_keywords(json_ld)
        ),
        is_indexable=permits_index(metas.get("robots")),
        is_article=_is_article(metas, json_ld, find_by_xpath(root, _DISCUSSIONS)),
    )


def permits_index(rules: str | None) -> bool:
    """True unless the rules of a `robots` element or an `X-Robots-Tag` header refuse search engines.

    Rules for one named robot, as `googlebot: noindex`, do not count.
    """
    words = {word.strip().lower() for word in (rules or "")[:1000].split(",")}
    return not words & {"noindex", "none"}


def split_keywords(text: str) -> tuple[str, ...]:
    """Return a page's keywords, each once, at most `MAX_KEYWORDS`."""
    cleaned = (clean_line(each, MAX_KEYWORD_LENGTH) for each in re.split(r"[,;\n]", text[:5000]))
    return tuple(dict.fromkeys(each for each in cleaned if each))[:MAX_KEYWORDS]


def normalize_time(text: Any) -> str | None:
    """Return a date or time in ISO 8601, as precise as it was written, and in UTC if it has a zone; None if
    invalid or implausible.
    """
    value = text.strip()[:40] if isinstance(text, str) else ""
    if day := _DAY.match(value):
        return _format_date(*day.groups())
    try:
        parsed_time = datetime.fromisoformat(_ZONE.sub(r"\1:\2", value).replace(" ", "T", 1).replace(" ", ""))
    except ValueError:
        return None
    if not _is_plausible_year(parsed_time.year):
        return None
    if _OTHER_DAY.fullmatch(value):
        return parsed_time.date().isoformat()
    return format_timestamp(parsed_time) if parsed_time.tzinfo else parsed_time.isoformat(timespec="seconds")


def normalize_email_time(text: str | None) -> str | None:
    """Return a time as e-mails and RSS write it (RFC 5322) in ISO 8601; None if invalid or implausible."""
    try:
        return normalize_time(parsedate_to_datetime((text or "")[:60]).isoformat())
    except (ValueError, TypeError, OverflowError):
        return None


def _format_date(year: str, month: str | None, day: str | None) -> str | None:
    try:
        date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    parts = [year, *(part.zfill(2) for part in (month, day) if part)]
    return "-".join(parts) if _is_plausible_year(int(year)) else None


def _is_plausible_year(year: int) -> bool:
    return 1900 <= year <= datetime.now(UTC).year + 2


def _meta_contents(root: Element) -> dict[str, str]:
    """Return the first non-empty content of each `meta` name."""
    contents: dict[str, str] = {}
    for meta in islice(root.iter("meta"), MAX_METAS):
        content = (meta.get("content") or "").strip()
        for attribute in ("property", "name", "itemprop", "http-equiv"):
            name = (meta.get(attribute) or "").strip().lower()
            if name and content:
                contents.setdefault(name, content)
    return contents


def _iter_json_ld(root: Element) -> Iterator[dict[str, Any]]:
    """Yield the objects of a page's JSON-LD, including those of its graphs."""
    remaining = MAX_JSON_LD
    for script in root.iter("script"):
        if (script.get("type") or "").strip().lower() != "application/ld+json":
            continue
        text = script.text or ""
        remaining -= len(text)
        if remaining < 0:
            return
        try:
            yield from _flatten_json_ld(
                orjson.loads(text.strip().removeprefix("<!--").removesuffix("-->")), 0
            )
        except (orjson.JSONDecodeError, RecursionError):
            continue


def _flatten_json_ld(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if depth > 4:
        return
    for each in as_list(value) or [value]:
        if isinstance(each, dict):
            yield cast(dict[str, Any], each)
            yield from _flatten_json_ld(get_path(each, "@graph"), depth + 1)
            yield from _flatten_json_ld(get_path(each, "mainEntity"), depth + 1)


def _find_title(root: Element, metas: dict[str, str]) -> str | None:
    if title := _first_meta(metas, ("og:title",), MAX_TITLE_LENGTH):
        return title
    for tag in ("title", "h1"):
        for element in islice(root.iter(tag), 3):
            parent = element.getparent()
            if parent is not None and parent.tag == "svg":
                continue
            if title := clean_line(extract_all_text(element), MAX_TITLE_LENGTH):
                return title
    return _first_meta(metas, ("twitter:title", "dc.title"), MAX_TITLE_LENGTH)


def _first_meta(metas: dict[str, str], names: tuple[str, ...], length: int) -> str | None:
    return next((text for name in names if (text := clean_line(metas.get(name), length))), None)


def _find_language(root: Element, metas: dict[str, str], json_ld: list[dict[str, Any]]) -> str | None:
    """Return the language of the document; a region follows a hyphen."""
    html = root.get("lang") or root.get("xml:lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang")
    metadata = [metas.get(name) for name in ("og:locale", "content-language", "dc.language")]
    for value in (html, *metadata, _first_json_ld(json_ld, "inLanguage", "alternateName", MAX_NAME_LENGTH)):
        if value and _LANGUAGE.fullmatch(value.strip()):
            return value.strip().replace("_", "-")
    return None


def _find_canonical(root: Element, metas: dict[str, str], base: str) -> str | None:
    for link in islice(root.iter("link"), MAX_METAS):
        if "canonical" in (link.get("rel") or "").lower().split():
            url = resolve_link(base, link.get("href"))
            return url if url and url.startswith("http") else None
    url = resolve_link(base, metas.get("og:url"))
    return url if url and url.startswith("http") else None


def _find_image(metas: dict[str, str], json_ld: list[dict[str, Any]], base: str) -> str | None:
    names = ("og:image:secure_url", "og:image", "og:image:url", "twitter:image", "twitter:image:src")
    addresses = [*map(metas.get, names), _first_json_ld(json_ld, "image", "url", 2 * MAX_URL_LENGTH)]
    for address in addresses:
        url = resolve_link(base, address)
        if url and url.startswith("http"):
            return url
    return None


def _find_author(metas: dict[str, str], json_ld: list[dict[str, Any]]) -> str | None:
    for each in _article_objects(json_ld):
        if name := _author_names(each.get("author")):
            return name
    for key in _AUTHOR_NAMES:
        if (name := clean_line(metas.get(key), MAX_NAME_LENGTH)) and not name.startswith(
            ("http:", "https:", "@", "//")
        ):
            return name
    return None


def _author_names(author: Any) -> str | None:
    """Return the names of one or several authors, given as texts or objects."""
    names = [
        each if isinstance(each, str) else get_path(each, "name")
        for each in (as_list(author) or [author])[:10]
    ]
    cleaned_names = [
        name for each in names if isinstance(each, str) and (name := clean_line(each, MAX_NAME_LENGTH))
    ]
    return clean_line(
        ", ".join(name for name in cleaned_names if not name.startswith("http")), MAX_NAME_LENGTH
    )


def _type_names(described: dict[str, Any]) -> str:
    """Return the types of an object in JSON-LD, separated by spaces."""
    types = described.get("@type")
    return " ".join(each for each in as_list(types) or [types] if isinstance(each, str))


def _is_article(metas: dict[str, str], json_ld: list[dict[str, Any]], discussions: Iterable[Element]) -> bool:
    types = [_type_names(each) for each in json_ld] + [each.get("itemtype", "") for each in discussions]
    if any(re.search("Discussion|QAPage", each) for each in types):
        return False
    is_described = sum(bool(re.search(r"Article\b|BlogPosting", each)) for each in types) == 1
    return (
        is_described
        or "article:published_time" in metas
        or bool(re.fullmatch(r"article|video\..*", metas.get("og:type", "")))
    )


def _article_objects(json_ld: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the objects that are articles or pages, articles first."""
    works = [each for each in json_ld if _ARTICLE_TYPE.search(_type_names(each))]
    return sorted(works, key=lambda each: "Page" in _type_names(each))


def _first_json_ld(json_ld: list[dict[str, Any]], key: str, member: str, length: int) -> str | None:
    """Return the first text of a property of the articles and pages: itself, or this member of its object."""
    for each in _article_objects(json_ld):
        values = as_list(each.get(key)) or [each.get(key)]
        for value in values[:10]:
            text = value if isinstance(value, str) else get_path(value, member)
            if isinstance(text, str) and (line := clean_line(text, length)):
                return line
    return None


def _join_json_ld_keywords(json_ld: list[dict[str, Any]]) -> str:
    """Return the keywords of the first article or page that has some, which are a text or a list."""
    for each in _article_objects(json_ld):
        keywords = each.get("keywords")
        words = [word for word in as_list(keywords) or [keywords] if isinstance(word, str)]
        if words:
            return ",".join(words)
    return ""


def _find_date(
    json_ld: list[dict[str, Any]], key: str, metas: dict[str, str], names: tuple[str, ...]
) -> str | None:
    values = [each.get(key) for each in _article_objects(json_ld)] + [metas.get(name) for name in names]
    return next((time for each in values if (time := normalize_time(each))), None)


def _find_publication_time(root: Element) -> str | None:
    """Return the date of the `time` element that is marked as publication date."""
    for element in islice(root.iter("time"), 20):
        is_marked = element.get("pubdate") is not None or element.get("itemprop") == "datePublished"
        if is_marked or "published" in (element.get("class") or ""):
            return normalize_time(element.get("datetime"))
    return None
