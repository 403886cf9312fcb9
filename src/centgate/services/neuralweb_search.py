"""neuralweb-search: web search by meaning, at most ten results."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from centgate.fallback import first_of
from centgate.provider import Fallback, Primary
from centgate.providers.brave import Brave
from centgate.providers.exa import Exa
from centgate.providers.searxng import SearXNG
from centgate.providers.siteindex import SiteIndex
from centgate.schema import NON_BLANK, Data, Omittable, RefusedOptions, StrictRequest
from centgate.service import service
from centgate.web import page_fields
from centgate.web.fields import (
    NOT_INSTRUCTIONS,
    READING_OPTIONS,
    SEARCH_FILTERS,
    UNTRUSTED,
    UPSTREAM_MODES,
    Link,
)
from centgate.web.results import Hit, SearchType

KEYWORD_WARNING = "the pages were found by the words of the query, not by its meaning"

PageCategory = Annotated[
    Literal["company", "news", "research paper", "github", "pdf"],
    Field(description="The kind of page to search for; any kind if left out."),
]


class NeuralwebSearch(StrictRequest):
    """The query for the web search, the number of results and the kind of page."""

    query: Annotated[str, Field(min_length=2, max_length=500), NON_BLANK] = Field(
        description="The query, as a phrase or a question.",
    )
    num_results: int = Field(5, ge=1, le=10, description="Maximum number of results.")
    category: Omittable[PageCategory] = None


class NeuralResult(Link):
    """A page found by the search."""

    published_date: page_fields.PublicationTime
    author: str | None = Field(description=f"Author of the page; null when unknown. {UNTRUSTED}")
    score: page_fields.MatchScore
    site_name: page_fields.SiteName
    image: page_fields.PictureUrl
    language: page_fields.Language
    engines: page_fields.EngineNames
    indexed_at: page_fields.ReadTime


class NeuralwebResults(Data):
    """Pages that match a query, best first."""

    results: list[NeuralResult] = Field(max_length=10, description="The pages found, best first.")
    resolved_search_type: SearchType = Field(
        description="The kind of search used: `auto` leaves the method to the source, `fast` prefers speed."
    )


@service(
    order=80,
    path="/services/neuralweb/search",
    title="Neural web search",
    category="web-context",
    tags=("web", "search", "neural", "news", "research"),
    guardrails=(
        "At most 10 results per request.",
        "Plain search only; deep search, summaries and page contents are refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    cache_ttl=timedelta(seconds=300),
    input_example=NeuralwebSearch(query="how do rollups post data to Ethereum", num_results=3),
    output_example=NeuralwebResults(
        results=[
            NeuralResult(
                title="Data availability for rollups",
                url="https://example.com/rollups/data-availability",
                description=None,
                published_date="2026-03-04T00:00:00Z",
                author="A. Writer",
                score=0.41,
                site_name=None,
                image="https://example.com/rollups/cover.png",
                language=None,
                engines=None,
                indexed_at=None,
            )
        ],
        resolved_search_type="auto",
    ),
    refused_options=RefusedOptions(
        names=UPSTREAM_MODES
        | READING_OPTIONS
        | SEARCH_FILTERS
        | {
            "additionalQueries",
            "contents",
            "flags",
            "moderation",
            "objective",
            "outputSchema",
            "stream",
            "systemPrompt",
            "text",
            "useAutoprompt",
            "userIdentifier",
            "userLocation",
        },
        values={"type": frozenset({"auto", "fast"})},
    ),
)
async def neuralweb_search(
    request: NeuralwebSearch,
    exa: Primary[Exa],
    searxng: Fallback[SearXNG],
    brave: Fallback[Brave],
    siteindex: Fallback[SiteIndex],
) -> NeuralwebResults:
    """Search the web by meaning and return up to ten pages.

    Takes a phrase or a question and optionally a kind of page (company, news, research paper, github, pdf),
    and returns titles, URLs, dates and authors, best match first. For the text of the pages use
    neuralweb-contents.
    """
    search = first_of(exa.search, searxng.search, brave.search, siteindex.search)
    result = await search(request.query, request.num_results, request.category)
    if not result.by_meaning:
        exa.trace.add_warning(KEYWORD_WARNING)
    return NeuralwebResults(
        results=[_build_result(hit) for hit in result.hits[: request.num_results]],
        resolved_search_type=result.search_type,
    )


def _build_result(hit: Hit) -> NeuralResult:
    return NeuralResult(
        title=hit.title,
        url=hit.url,
        description=hit.description,
        published_date=hit.published,
        author=hit.author,
        score=hit.score,
        site_name=hit.site_name,
        image=hit.image,
        language=hit.language,
        engines=list(hit.engines) or None,
        indexed_at=hit.indexed,
    )
