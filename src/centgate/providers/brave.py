"""Brave Search: web search over an index of its own."""

from __future__ import annotations

from centgate.provider import About, Announced


class Brave(Announced):
    """Web search with titles, addresses and descriptions."""

    about = About(
        "brave",
        "Brave Search",
        docs_url="https://api-dashboard.search.brave.com/documentation",
        url="https://api.search.brave.com",
        terms="Billed by the request beyond a monthly free amount.",
        key="required",
    )
