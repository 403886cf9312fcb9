"""Remove script and data URLs from Markdown of other sources."""

from __future__ import annotations

import re

_SUSPECT_SUBSTRINGS = ("script:", "data:", "base64")
_TARGET = (
    r"\(\s*(?:<Base64-Image-Removed>|<?(?:javascript|vbscript|data):[^\s()]*(?:\([^\s()]{0,500}\)[^\s()]*){0,20})"
    r"(?:\s+\"[^\"]{0,300}\")?\s*\)"
)
_IMAGE = re.compile(r"!\[([^\[\]]{0,500})\]" + _TARGET, re.IGNORECASE)
_LINK = re.compile(
    r"\[([^\[\]]{0,500}(?:\[[^\[\]]{0,300}\]\([^()\s]{0,2000}\)[^\[\]]{0,500})?)\]" + _TARGET, re.IGNORECASE
)
"""Link; its text may contain one image."""
_OTHER_LINK = re.compile(r"(\]\(\s*<?)(?:javascript|vbscript|data):", re.IGNORECASE)
"""Link whose text or target is too complex for the patterns above."""
_AUTOLINK = re.compile(r"<(?:javascript|vbscript):[^<>\n]{0,2000}>", re.IGNORECASE)
_DATA_URL = re.compile(r"data:[\w.+-]{1,40}/[\w.+-]{1,80}(?:;[\w=-]{1,40}){0,3};base64,[A-Za-z0-9+/=%]*")


def sanitize_markdown(markdown: str) -> str:
    """Replace links and images with script or data URLs by their text."""
    lower = markdown.lower()
    if not any(sign in lower for sign in _SUSPECT_SUBSTRINGS):
        return markdown
    # images first, since they stand inside links
    for pattern, replacement in (
        (_IMAGE, r"\1"),
        (_LINK, r"\1"),
        (_OTHER_LINK, r"\1#"),
        (_AUTOLINK, ""),
        (_DATA_URL, ""),
    ):
        markdown = pattern.sub(replacement, markdown)
    return markdown
