"""Detect the kind of a body by its content type, unless its first bytes contradict it."""

from __future__ import annotations

import re
from typing import Literal

import orjson

from centgate.web.extract.charset import decode_text, decode_wide, is_wide

DocumentKind = Literal["html", "markdown", "text", "json", "feed", "xml", "pdf", "code"]

MEDIA_TYPES = (
    "text/*",
    "application/xhtml+xml",
    "application/xml",
    "application/json",
    "application/ld+json",
    "application/feed+json",
    "application/activity+json",
    "application/problem+json",
    "application/vnd.api+json",
    "application/x-ndjson",
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/pdf",
    "application/x-pdf",
    "application/javascript",
    "application/x-javascript",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/octet-stream",
)
"""Media types to fetch; octet streams are included, since servers send many documents as that type."""
XML_TYPES = frozenset({"application/xhtml+xml", "application/xml", "text/xml"})
"""Media types as which browsers read a page by the rules of XML."""
_SNIFF_BYTES = 2048
_KINDS: dict[str, DocumentKind] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/json": "json",
    "application/json": "json",
    "application/x-ndjson": "json",
    "text/xml": "xml",
    "application/xml": "xml",
    "application/rss+xml": "feed",
    "application/atom+xml": "feed",
    "application/rdf+xml": "feed",
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "text/css": "code",
    "text/javascript": "code",
    "application/javascript": "code",
    "application/x-javascript": "code",
    "application/yaml": "code",
    "application/x-yaml": "code",
    "text/yaml": "code",
    "application/toml": "code",
}
CODE_LANGUAGES = {
    "css": "css",
    "javascript": "javascript",
    "x-javascript": "javascript",
    "yaml": "yaml",
    "x-yaml": "yaml",
    "toml": "toml",
}
"""Languages of code blocks, by media subtype."""
_SPACE_AND_COMMENTS = re.compile(rb"(?:\s+|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|div|h1|p|article)[\s>]", re.IGNORECASE
)
_FEED = re.compile(
    rb"<(?:!doctype\s+rss[^>]*>\s*<)?(?:rss|feed|rdf:rdf|\w+:feed|channel)[\s>]", re.IGNORECASE
)
_SITEMAP = re.compile(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex)[\s>]")
_ADDRESS_LINE = re.compile(rb"https?://\S+")
_OBJECT = re.compile(rb'\{\s*"')
_MARKDOWN_PATH = re.compile(r"\.(?:md|markdown|mdx)$", re.IGNORECASE)
_BINARY = (
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"RIFF",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x7fELF",
    b"OggS",
    b"ID3",
)
PARSER_ERRORS = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    AssertionError,
)
"""Errors that an unusual document may cause in a parser."""


class Unsupported(Exception):
    """A body of a kind that is not supported; the message is a clause."""


class Unreadable(Exception):
    """A document of a known kind whose text cannot be extracted; the message is a clause."""


def parse_media_type(content_type: str | None) -> str:
    """Return the media type of a Content-Type header, without parameters; empty without a header."""
    return (content_type or "").split(";")[0].strip().lower()


def detect_kind(body: bytes, content_type: str | None, path: str) -> DocumentKind:
    """Return the kind to read a body as; `path` is the URL's, for its file extension."""
    declared = parse_media_type(content_type)
    start = body[:_SNIFF_BYTES]
    if b"%PDF-" in start[:1024]:
        return "pdf"
    if start.startswith(_BINARY) or (declared.startswith(("image/", "audio/", "video/", "font/"))):
        raise Unsupported(f"it is {declared or 'not text'}")
    narrowed = _narrow_ascii(start)
    if _is_binary(narrowed):
        raise Unsupported(f"it is {declared or 'of an unknown type'} and not text")
    start = _skip_space_and_comments(narrowed)
    kind = _KINDS.get(declared)
    may_be_json = kind in (None, "html") and declared != "text/csv" and start.startswith((b"[", b"{"))
    is_object = kind == "html" and _OBJECT.match(start)  # no page begins so, and not all writers are strict
    if may_be_json and (is_object or _is_json(decode_text(body, content_type))):
        return "json"
    return _kind_by_type(declared, start, path)


def is_page_list(body: bytes, kind: DocumentKind) -> bool:
    """True for a sitemap in XML, a feed, and a text of nothing but addresses, which name pages."""
    if kind in ("feed", "text"):
        lines = [line for each in body.splitlines() if (line := each.strip(b"\xef\xbb\xbf \t"))]
        return kind == "feed" or (bool(lines) and all(map(_ADDRESS_LINE.fullmatch, lines)))
    start = _skip_space_and_comments(_narrow_ascii(body[:_SNIFF_BYTES]))
    return _SITEMAP.match(start) is not None


def _is_json(text: str) -> bool:
    """True for a JSON document, and for JSON Lines."""
    return _can_parse(text) or all(_can_parse(line) for line in text.split("\n") if line.strip())


def _can_parse(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _skip_space_and_comments(start: bytes) -> bytes:
    opening = _SPACE_AND_COMMENTS.match(start)
    return start[opening.end() :] if opening else start


def _kind_by_type(declared: str, start: bytes, path: str) -> DocumentKind:
    kind = _KINDS.get(declared)
    if kind in (None, "xml", "html", "feed") and _FEED.match(start):
        return "feed"
    if kind in (None, "xml", "json", "feed", "pdf") and _HTML.match(start):
        return "html"
    if kind == "feed":
        return "xml"
    if kind == "pdf":
        raise Unsupported("its content type says PDF, but it is not a PDF")
    if kind:
        return kind
    return _kind_by_name(declared, start, path)


def _kind_by_name(declared: str, start: bytes, path: str) -> DocumentKind:
    if declared.endswith("+json"):
        return "json"
    if declared.endswith("+xml") or start.startswith(b"<?xml"):
        return "xml"
    if not declared.startswith("text/") and declared not in ("", "application/octet-stream"):
        raise Unsupported(f"it is {declared}")
    if _MARKDOWN_PATH.search(path):
        return "markdown"
    return "html" if not declared and start.startswith(b"<") else "text"


def _narrow_ascii(start: bytes) -> bytes:
    """Return UTF-8 of a beginning in UTF-16 or UTF-32, others as they are, without a byte order mark."""
    if is_wide(start):
        text = decode_wide(start)
        # not text, and its bytes tell so
        return start if text.count("\ufffd") > _few_of(len(text)) else text.encode("utf-8", "replace")
    return start.removeprefix(b"\xef\xbb\xbf")


def _is_binary(start: bytes) -> bool:
    control_bytes = sum(
        start.count(byte) for byte in (b"\0", b"\1", b"\2", b"\3", b"\4", b"\5", b"\6", b"\x0e", b"\x10")
    )
    return control_bytes > _few_of(len(start))


def _few_of(length: int) -> int:
    """Return how many characters may be invalid in a text."""
    return 2 + length // 100
