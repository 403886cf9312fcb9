"""Resolve and check the URLs in a page's links."""

from __future__ import annotations

import re

from centgate.web.extract.dom import Element
from centgate.web.fetch.url import MAX_URL_LENGTH, join_url

_LINK_SCHEMES = frozenset({"http", "https", "mailto", "tel"})
_ESCAPES = {character: f"%{ord(character):02X}" for character in ' ()<>"\\^`{|}'}
_CREDENTIALS = re.compile(r"https?://[^/?#]*@")
_UNSAFE_CHARACTER = re.compile(r"[ ()<>\"\\^`{|}]")


def find_base_url(root: Element, url: str) -> str:
    """Return the base URL of a page's links: its `base` element's, else the page's own URL."""
    for element in root.iter("base"):
        if href := element.get("href"):
            return resolve_link(url, href) or url
    return url


def resolve_link(base: str, href: str | None) -> str | None:
    """Resolve a link and escape it for Markdown; None for scripts, data, credentials and invalid URLs."""
    joined = join_url(base, href) if href else None
    if joined is None or _CREDENTIALS.match(joined):
        return None
    scheme, _, _ = joined.partition(":")
    joined = _UNSAFE_CHARACTER.sub(_escape_character, joined)
    return joined if scheme in _LINK_SCHEMES and len(joined) <= MAX_URL_LENGTH else None


def _escape_character(match: re.Match[str]) -> str:
    return _ESCAPES[match[0]]
