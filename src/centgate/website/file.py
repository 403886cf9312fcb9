"""A file of the website."""

from __future__ import annotations

from msgspec import Struct

HTML = "text/html; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"
PLAIN_TEXT = "text/plain; charset=utf-8"


class SiteFile(Struct, frozen=True):
    """One resource of the website."""

    path: str
    """URL path: `/services/token-risk`, `/llms.txt`."""
    media_type: str
    content: bytes
    static_path: str
    """Path in a folder of static files."""
    alternate: str = ""
    """For a page, the path of its Markdown; for Markdown, the path of its page; otherwise ""."""


def make_text_file(path: str, media_type: str, text: str) -> SiteFile:
    """Build a text file whose path in the folder equals its URL path."""
    return SiteFile(path, media_type, text.encode(), path[1:])
