"""The addresses in a page's links."""

from __future__ import annotations

import re

import ada_url

from centgate.pages.document import Element

LONGEST = 2048
_FOLLOWED = frozenset({"http", "https", "mailto", "tel"})
_ESCAPED = {character: f"%{ord(character):02X}" for character in ' ()<>"\\^`{|}'}
_CREDENTIALS = re.compile(r"https?://[^/?#]*@")
_ODD = re.compile(r"[ ()<>\"\\^`{|}]")


def base_of(root: Element, url: str) -> str:
    """What a page's links start from: its `base` element, else its own address."""
    for element in root.iter("base"):
        if href := element.get("href"):
            return absolute(url, href) or url
    return url


def absolute(base: str, href: str | None) -> str | None:
    """Where a link leads, fit to stand in Markdown; None for scripts, data, credentials and no address."""
    if not href or len(href) > LONGEST:
        return None
    try:
        joined = ada_url.join_url(base, href)
    except ValueError:
        return None
    if _CREDENTIALS.match(joined):
        return None
    scheme, _, _ = joined.partition(":")
    joined = _ODD.sub(_escape, joined)
    return joined if scheme in _FOLLOWED and len(joined) <= LONGEST else None


def _escape(found: re.Match[str]) -> str:
    return _ESCAPED[found[0]]
