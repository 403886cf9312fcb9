"""Markdown that a source made of a page, without addresses that run a script or are their own content."""

from __future__ import annotations

import re

_SIGNS = ("script:", "data:", "base64")
_TARGET = (
    r"\(\s*(?:<Base64-Image-Removed>|<?(?:javascript|vbscript|data):[^\s()]*(?:\([^\s()]{0,500}\)[^\s()]*){0,20})"
    r"(?:\s+\"[^\"]{0,300}\")?\s*\)"
)
_IMAGE = re.compile(r"!\[([^\[\]]{0,500})\]" + _TARGET, re.IGNORECASE)
_LINK = re.compile(
    r"\[([^\[\]]{0,500}(?:\[[^\[\]]{0,300}\]\([^()\s]{0,2000}\)[^\[\]]{0,500})?)\]" + _TARGET, re.IGNORECASE
)
"""Its text may hold one image."""
_LEFT = re.compile(r"(\]\(\s*<?)(?:javascript|vbscript|data):", re.IGNORECASE)
"""A link with a text or a target that is too involved to be taken apart."""
_BARE = re.compile(r"<(?:javascript|vbscript):[^<>\n]{0,2000}>", re.IGNORECASE)
_DATA = re.compile(r"data:[\w.+-]{1,40}/[\w.+-]{1,80}(?:;[\w=-]{1,40}){0,3};base64,[A-Za-z0-9+/=%]*")


def harmless(markdown: str) -> str:
    """The same markdown, where links and images that lead to no address are the words they have."""
    lower = markdown.lower()
    if not any(sign in lower for sign in _SIGNS):
        return markdown
    # images first, since they stand inside links
    for pattern, instead in ((_IMAGE, r"\1"), (_LINK, r"\1"), (_LEFT, r"\1#"), (_BARE, ""), (_DATA, "")):
        markdown = pattern.sub(instead, markdown)
    return markdown
