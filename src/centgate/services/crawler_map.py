"""The URL structure of a site, without crawling it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from centgate.provider import Leg
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.sitemapper import SiteMapper
from centgate.schema import Beyond, Data, Omittable, StrictRequest
from centgate.service import service
from centgate.sources import first_of
from centgate.web import MODES, NOT_INSTRUCTIONS, SCRAPING, Link, WebUrl

MOST_LINKS = 100

Words = Annotated[
    str, Field(max_length=200, description="Words to order the links by: the closest come first.")
]


class CrawlerMap(StrictRequest):
    """The site to map."""

    url: WebUrl = Field(description="An address on the site, usually its front page.")
    search: Omittable[Words] = None


class SiteLinks(Data):
    """Addresses on a site."""

    links: list[Link] = Field(
        max_length=MOST_LINKS, description="Pages of the site; ordered by relevance when `search` was sent."
    )


@service(
    order=100,
    path="/services/crawler/map",
    title="Site map",
    category="web-context",
    tags=("web", "sitemap", "links", "site"),
    guardrails=(
        "One site a request, at most 100 links.",
        "Pages are listed, not crawled; the list need not be complete.",
        "Crawling, scraping and larger maps are refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    fresh_for=timedelta(seconds=300),
    example=CrawlerMap(url="https://docs.python.org/3/", search="asyncio"),
    sample=SiteLinks(
        links=[
            Link(
                title="asyncio — Asynchronous I/O",
                url="https://docs.python.org/3/library/asyncio.html",
                description=None,
            ),
            Link(title=None, url="https://docs.python.org/3/library/asyncio-task.html", description=None),
        ]
    ),
    beyond=Beyond(
        names=MODES
        | SCRAPING
        | {
            "allowExternalLinks",
            "allowSubdomains",
            "crawlEntireDomain",
            "crawlerOptions",
            "formats",
            "ignoreCache",
            "ignoreSitemap",
            "includeSubdomains",
            "maxDepth",
            "maxDiscoveryDepth",
            "scrapeOptions",
            "sitemap",
            "sitemapOnly",
            "webhook",
        },
        values={"limit": frozenset(range(MOST_LINKS + 1))},
    ),
)
async def crawler_map(
    request: CrawlerMap, firecrawl: Leg[Firecrawl], sitemapper: Leg[SiteMapper]
) -> SiteLinks:
    """List up to a hundred pages of a site.

    Takes an address and returns links to the site's pages, with a title and a description where they are
    known. Send words in `search` to have the closest links first. No page is crawled for it.
    """
    words = (request.search or "").strip() or None
    hits = await first_of(firecrawl.links, sitemapper.links)(request.url, words, MOST_LINKS)
    return SiteLinks(links=[Link.of(hit) for hit in hits[:MOST_LINKS]])
