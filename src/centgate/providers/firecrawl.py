"""Firecrawl: maps of sites, web search, and pages as markdown."""

from __future__ import annotations

from centgate.provider import About, Announced


class Firecrawl(Announced):
    """Site maps, web search and page scraping, hosted or on an instance of one's own."""

    about = About(
        "firecrawl",
        "Firecrawl",
        docs_url="https://docs.firecrawl.dev",
        url="https://api.firecrawl.dev",
        terms="Billed in credits for each page, also when a site answers with an error or a bot wall.",
        key="required",
    )
