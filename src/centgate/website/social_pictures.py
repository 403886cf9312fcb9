"""Pictures of pages for previews in chats and social networks, taken by `make social` and shipped as files.

A picture shows a page's title and description, so it belongs only to pages that have these: a deployment
with other services or another price has other titles. A new page has no picture until one is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import orjson

from centgate.website.file import SiteFile
from centgate.website.page import SitePage

WIDTH, HEIGHT = 1200, 630
"""Pixels: the size that Open Graph readers ask for."""
LIST_FILE = "pictures.json"
"""Name of the list: title and description of each picture by the path of its page."""
_FOLDER = files("centgate.website") / "social"


def picture_name(path: str) -> str:
    """Return the file name of the picture of a page: `services-token-risk.png`."""
    return f"{path.strip('/').replace('/', '-') or 'home'}.png"


def find_picture(page: SitePage) -> str | None:
    """Return the URL path of a page's picture, None if there is none with its title and description."""
    texts = _read_list().get(page.path)
    return f"/social/{picture_name(page.path)}" if texts == [page.title, page.description] else None


def make_picture_files(pages: tuple[SitePage, ...]) -> Iterator[SiteFile]:
    """Yield the pictures of these pages."""
    for page in pages:
        if path := find_picture(page):
            content = (_FOLDER / picture_name(page.path)).read_bytes()
            yield SiteFile(path, "image/png", content, path[1:])


@cache
def _read_list() -> dict[str, list[str]]:
    return orjson.loads((_FOLDER / LIST_FILE).read_bytes())
