"""What a page of the website is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its Markdown is `templates/<template>.md.j2`, its HTML that Markdown inside a layout."""

    path: str
    """`/` for the first page, else without a slash at its end: `/services/token-risk`."""
    title: str
    description: str
    """One sentence, for search results and llms.txt."""
    template: str
    layout: str = "page.html.j2"
    menu: str = ""
    """The word that leads to it in every page's head; empty for what stands in the foot alone."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What its templates are given besides `page` and `deployment`."""
    offline: bool = False
    """Whether its scripts may ask nobody anything, which browsers then see to."""

    @property
    def twin(self) -> str:
        """The path of its Markdown."""
        return "/index.md" if self.path == "/" else f"{self.path}.md"

    @property
    def file(self) -> str:
        """Where its HTML lies in a folder of static files."""
        return "index.html" if self.path == "/" else f"{self.path[1:]}/index.html"
