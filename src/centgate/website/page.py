"""A page of the website."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class SitePage(Struct, frozen=True):
    """One page: Markdown from `templates/<template>.md.j2`, and HTML from that Markdown and a layout."""

    path: str
    """`/` for the home page, else without a trailing slash: `/services/token-risk`."""
    title: str
    description: str
    """One sentence, for search results and llms.txt."""
    template: str
    layout: str = "page.html.j2"
    menu: str = ""
    """Label in the menu of every page; "" for pages that are linked only in the footer."""
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Template variables besides `page` and `deployment`."""
    is_index: bool = False
    """True if it only leads to other pages; llms.txt, which does the same for agents, leaves it out."""
    offline: bool = False
    """True if its scripts may not connect to anything; enforced by the page's Content-Security-Policy."""

    @property
    def markdown_path(self) -> str:
        """URL path of its Markdown."""
        return "/index.md" if self.path == "/" else f"{self.path}.md"

    @property
    def file(self) -> str:
        """Path of its HTML in a folder of static files."""
        return "index.html" if self.path == "/" else f"{self.path[1:]}/index.html"
