"""What the website consists of."""

from __future__ import annotations

from dataclasses import dataclass

HTML = "text/html; charset=utf-8"
MARKDOWN = "text/markdown; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class File:
    """One thing that can be fetched."""

    path: str
    """As it is asked for: `/services/token-risk`, `/llms.txt`."""
    media_type: str
    content: bytes
    lies: str
    """Its place in a folder of static files."""
    twin: str = ""
    """Of a page the path of its Markdown, of that Markdown the path of its page; else empty."""


def text_file(path: str, media_type: str, text: str) -> File:
    """A file of text that lies where it is asked for."""
    return File(path, media_type, text.encode(), path[1:])
