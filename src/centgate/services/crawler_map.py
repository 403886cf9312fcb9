"""crawler-map: links to the pages of a site, without crawling it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from centgate.fallback import first_of
from centgate.provider import Fallback, Primary
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.sitemapper import SiteMapper
from centgate.schema import Data, Omittable, RefusedOptions, StrictRequest
from centgate.service import service
from centgate.web.fields import NOT_INSTRUCTIONS, SCRAPING_OPTIONS, UPSTREAM_MODES, Link, WebUrl
from centgate.web.results import Hit, PageSource

MAX_LINKS = 100

Words = Annotated[
    str, Field(max_length=200, description="Words to rank the links by; the closest match is first.")
]


class CrawlerMap(StrictRequest):
    """The site to map."""

    url: WebUrl = Field(description="A URL on the site, usually its home page.")
    search: Omittable[Words] = None


class SiteLink(Link):
    """A page of a site."""

    last_modified: str | None = Field(
        description="Time of the last change as the site states it, ISO 8601; null when it states none."
    )
    found_in: PageSource | None = Field(
        description="Where the site names the page: `link` of the requested page, `sitemap` or `feed`; null "
        "when unknown."
    )


class SiteLinks(Data):
    """Links to the pages of a site."""

    links: list[SiteLink] = Field(
        max_length=MAX_LINKS, description="Pages of the site, ordered by relevance if `search` was sent."
    )


@service(
    order=100,
    path="/services/crawler/map",
    title="Site map",
    category="web-context",
    tags=("web", "sitemap", "links", "site"),
    guardrails=(
        f"One site per request, at most {MAX_LINKS} links.",
        "Pages are listed, not crawled; the list may be incomplete.",
        "Crawling, scraping and larger maps are refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    cache_ttl=timedelta(seconds=300),
    input_example=CrawlerMap(url="https://docs.python.org/3/", search="asyncio"),
    output_example=SiteLinks(
        links=[
            SiteLink(
                title="asyncio — Asynchronous I/O",
                url="https://docs.python.org/3/library/asyncio.html",
                description=None,
                last_modified="2026-11-02",
                found_in="sitemap",
            ),
            SiteLink(
                title=None,
                url="https://docs.python.org/3/library/asyncio-task.html",
                description=None,
                last_modified=None,
                found_in="link",
            ),
        ]
    ),
    refused_options=RefusedOptions(
        names=UPSTREAM_MODES
        | SCRAPING_OPTIONS
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
        values={"limit": frozenset(range(MAX_LINKS + 1))},
    ),
)
async def crawler_map(
    request: CrawlerMap, firecrawl: Primary[Firecrawl], sitemapper: Fallback[SiteMapper]
) -> SiteLinks:
    """List up to a hundred pages of a site.

    Takes a URL and returns links to the site's pages, with title and description where known. With words in
    `search`, the closest links come first; without, they are spread over the site's sections. No page is
    crawled.
    """
    words = (request.search or "").strip() or None
    hits = await first_of(firecrawl.site_links, sitemapper.site_links)(request.url, words, MAX_LINKS)
    return SiteLinks(links=[_build_link(hit) for hit in hits[:MAX_LINKS]])


def _build_link(hit: Hit) -> SiteLink:
    return SiteLink(
        title=hit.title,
        url=hit.url,
        description=hit.description,
        last_modified=hit.modified,
        found_in=hit.found_in,
    )
