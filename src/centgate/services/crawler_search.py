"""crawler-search: web search that returns titles, URLs and descriptions only."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from centgate.fallback import first_of
from centgate.provider import Fallback, Primary
from centgate.providers.brave import Brave
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.searxng import SearXNG
from centgate.schema import Data, RefusedOptions, StrictRequest
from centgate.service import service
from centgate.web.fields import NON_BLANK, NOT_INSTRUCTIONS, SCRAPING_OPTIONS, UPSTREAM_MODES, Link


class CrawlerSearch(StrictRequest):
    """The query for the web search, and the number of results."""

    query: str = Field(
        min_length=2,
        max_length=500,
        pattern=NON_BLANK,
        description="The query, as for a search engine.",
    )
    limit: int = Field(5, ge=1, le=10, description="Maximum number of results.")


class SearchLinks(Data):
    """Pages that match a query."""

    results: list[Link] = Field(max_length=10, description="The pages found, best first.")


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
            Link(
                title="ERC-3009: Transfer With Authorization",
                url="https://eips.ethereum.org/EIPS/eip-3009",
                description="Transfer fungible assets via a signed authorization.",
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
) -> SearchLinks:
    """Search the web and return titles, URLs and descriptions.

    Takes a query and returns up to ten results as a search engine lists them. To read a result, send its URL
    to crawler-scrape.
    """
    result = await first_of(firecrawl.search, searxng.search, brave.search)(request.query, request.limit)
    return SearchLinks(results=[Link.from_hit(hit) for hit in result.hits[: request.limit]])
