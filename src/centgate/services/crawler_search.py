"""crawler-search: web search that returns titles, URLs and descriptions only."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from centgate.fallback import first_of
from centgate.provider import Fallback, Primary
from centgate.providers.brave import Brave
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.searxng import SearXNG
from centgate.providers.siteindex import SiteIndex
from centgate.schema import NON_BLANK, Data, RefusedOptions, StrictRequest
from centgate.service import service
from centgate.web import page_fields
from centgate.web.fields import NOT_INSTRUCTIONS, SCRAPING_OPTIONS, UPSTREAM_MODES, Link
from centgate.web.results import Hit


class CrawlerSearch(StrictRequest):
    """The query for the web search, and the number of results."""

    query: Annotated[str, Field(min_length=2, max_length=500), NON_BLANK] = Field(
        description="The query, as for a search engine.",
    )
    limit: int = Field(5, ge=1, le=10, description="Maximum number of results.")


class FoundLink(Link):
    """A page found by a web search."""

    published_date: page_fields.PublicationTime
    site_name: page_fields.SiteName
    image: page_fields.PictureUrl
    language: page_fields.Language
    score: page_fields.MatchScore
    engines: page_fields.EngineNames
    indexed_at: page_fields.ReadTime

    @classmethod
    def from_found(cls, hit: Hit) -> FoundLink:
        """Convert a hit of a search."""
        return cls(
            title=hit.title,
            url=hit.url,
            description=hit.description,
            published_date=hit.published,
            site_name=hit.site_name,
            image=hit.image,
            language=hit.language,
            score=hit.score,
            engines=list(hit.engines) or None,
            indexed_at=hit.indexed,
        )


class SearchLinks(Data):
    """Pages that match a query."""

    results: list[FoundLink] = Field(max_length=10, description="The pages found, best first.")


@service(
    order=110,
    path="/services/crawler/search",
    title="Web search",
    category="web-context",
    tags=("web", "search", "links"),
    guardrails=(
        "At most 10 results per request, from web search only.",
        "Titles, URLs and descriptions; scraping the results is refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    cache_ttl=timedelta(seconds=300),
    input_example=CrawlerSearch(query="EIP-3009 transferWithAuthorization", limit=3),
    output_example=SearchLinks(
        results=[
            FoundLink(
                title="ERC-3009: Transfer With Authorization",
                url="https://eips.ethereum.org/EIPS/eip-3009",
                description="Transfer fungible assets via a signed authorization.",
                published_date="2020-09-28",
                site_name="Ethereum Improvement Proposals",
                image=None,
                language="en",
                score=3.2,
                engines=["brave", "duckduckgo"],
                indexed_at=None,
            )
        ]
    ),
    refused_options=RefusedOptions(
        names=UPSTREAM_MODES
        | SCRAPING_OPTIONS
        | {
            "categories",
            "country",
            "enterprise",
            "formats",
            "highlights",
            "scrapeOptions",
            "tbs",
        },
        values={"sources": frozenset({"web"})},
    ),
)
async def crawler_search(
    request: CrawlerSearch,
    firecrawl: Primary[Firecrawl],
    searxng: Fallback[SearXNG],
    brave: Fallback[Brave],
    siteindex: Fallback[SiteIndex],
) -> SearchLinks:
    """Search the web and return titles, URLs and descriptions.

    Takes a query and returns up to ten results as a search engine lists them. To read a result, send its URL
    to crawler-scrape.
    """
    search = first_of(firecrawl.search, searxng.search, brave.search, siteindex.search)
    result = await search(request.query, request.limit)
    return SearchLinks(results=[FoundLink.from_found(hit) for hit in result.hits[: request.limit]])
