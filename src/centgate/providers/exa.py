"""Exa: neural web search and the text of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import structlog

from centgate.coercion import as_amount, as_number, get_path
from centgate.errors import ProviderError
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.providers.exa_pages import parse_pages, parse_tag
from centgate.rate_limiter import RateLimit
from centgate.upstream import UpstreamResponse
from centgate.web.results import Hit, SearchResults, SearchType, UnreadPage, WebPage
from centgate.web.search_results import (
    MAX_AUTHOR_LENGTH,
    MAX_TITLE_LENGTH,
    distinct_hits,
    is_of_category,
    parse_date,
    parse_line,
    parse_rows,
    parse_url,
)

MAX_COST = 0.01
"""US dollars: its listed prices come to less for every request, whatever the services cost here."""
RESULTS_PER_PRICE = 10
"""Results that one search returns for a single price."""

CATEGORY_PARAMS: Mapping[str | None, Sequence[Mapping[str, Any]]] = {
    None: ({},),
    "company": ({"category": "company"},),
    "news": ({"category": "news"},),
    # `publication` is the newer name; older releases know the other only
    "research paper": ({"category": "publication"}, {"category": "research paper"}),
    # the category was withdrawn
    "github": ({"includeDomains": ["github.com"]},),
    # withdrawn from the clients but still works; without it other pages are filtered out here
    "pdf": ({"category": "pdf"}, {"numResults": RESULTS_PER_PRICE}),
}
"""Parameters for each category, in order: the next variant is tried if one is rejected with 400."""


class Exa(Provider):
    """Semantic search over Exa's own index, and the text of pages."""

    info = ProviderInfo(
        "exa",
        "Exa",
        docs_url="https://exa.ai/docs",
        url="https://api.exa.ai",
        terms="Billed by the operator's own account: $0.007 a search, $0.001 a page read.",
        key="required",
        rate_limit=RateLimit(10, 1),
        timeout=10,
    )

    @instrumented
    async def search(self, query: str, limit: int, category: str | None = None) -> SearchResults:
        """Return at most `limit` pages, up to ten, of a category if given; empty if nothing matches.

        Costs $0.007 for up to ten results of type `auto`; a request rejected with 400 is not billed. An
        unsupported category is a ProviderError, never a search without the category.
        """
        params = {"query": query, "numResults": limit, "type": "auto"}
        body, variant = await self._search_with_fallback(params, category)
        results = parse_rows(body["results"])
        hits = [(hit, row) for row in results if (hit := _parse_hit(row))]
        if results and not hits:
            # the API allows results without a URL, so this is not a failure
            self.trace.add_warning(
                f"{self.info.label} found {len(results)} pages and returned no URL for any of them"
            )
        if category == "pdf" and "category" not in variant:
            hits = self._filter_pdfs(hits)
        return SearchResults(
            distinct_hits((hit for hit, _ in hits), limit), _parse_search_type(body), by_meaning=True
        )

    @instrumented
    async def page_contents(self, urls: Sequence[str], max_characters: int) -> list[WebPage | UnreadPage]:
        """Return the text of pages, or the reason for its absence, in the order of `urls`.

        Costs $0.001 for each page's text: $0.005 for five. One character more than the limit is requested to
        detect a truncated text: its `length` is None. All of the pages may be unread.
        """
        unique_urls = list(dict.fromkeys(urls))
        params = {"urls": unique_urls, "text": {"maxCharacters": max_characters + 1}}
        body = self._parse_body(await self._post("/contents", params))
        pages = parse_pages(unique_urls, body, max_characters)
        return [pages[url] for url in urls]

    async def _search_with_fallback(
        self, params: Mapping[str, Any], category: str | None
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Return the response to the first accepted variant of a category, and that variant."""
        tag = None
        for variant in CATEGORY_PARAMS[category]:
            reply = await self._post("/search", {**params, **variant}, accept=(400,))
            if reply.status != 400:
                return self._parse_body(reply), variant
            tag = parse_tag(get_path(_parse_json(reply), "tag"))
        action = f"to search for the category '{category}'" if category else "the search"
        raise self.invalid_response(f"rejects {action} with status 400" + (f" ({tag})" if tag else ""))

    async def _post(
        self, path: str, params: Mapping[str, Any], *, accept: Sequence[int] = ()
    ) -> UpstreamResponse:
        headers = {"x-api-key": self.key or ""}
        return await self.upstream.post(self.url(path), params, headers=headers, accept=accept)

    def _parse_body(self, reply: UpstreamResponse) -> dict[str, Any]:
        """Return the body of a response; log a warning if it cost more than MAX_COST."""
        body = _parse_json(reply)
        if not isinstance(body, dict):
            raise TypeError("the response is not a JSON object")
        cost = as_amount(get_path(body, "costDollars", "total"))
        if cost is not None and cost > MAX_COST:
            structlog.get_logger().warning(
                "an upstream charged more for one request than its listed prices",
                provider=self.info.name,
                usd=cost,
                max_usd=MAX_COST,
            )
        return cast(dict[str, Any], body)

    def _filter_pdfs(self, hits: Sequence[tuple[Hit, Any]]) -> list[tuple[Hit, Any]]:
        """Return the results whose URL or id is a PDF's."""
        pdfs = [
            (hit, row)
            for hit, row in hits
            if is_of_category(hit.url, "pdf") or _is_pdf_name(get_path(row, "id"))
        ]
        if hits and not pdfs:
            raise self.invalid_response("rejects the category 'pdf', and a search without it found no PDF")
        self.trace.add_warning(
            f"{self.info.label} rejects the category 'pdf': the results are those of a search "
            "for any page whose address ends in .pdf"
        )
        return pdfs


def _parse_json(reply: UpstreamResponse) -> Any:
    """Parse the body as JSON."""
    try:
        return reply.parse_json()
    except ProviderError:
        # a text cut inside an emoji ends in half a surrogate pair, which only this parser accepts
        if b"\\ud" not in reply.body.lower():
            raise
        return json.loads(reply.body)


def _parse_search_type(body: Mapping[str, Any]) -> SearchType:
    """Return the reported search type if it is one of SearchType, else the type that was sent.

    `resolvedSearchType` is deprecated and may be empty, `neural`, or at odds with `searchType`.
    """
    for value in (body.get("resolvedSearchType"), body.get("searchType")):
        if value in ("auto", "fast"):
            return value
    return "auto"


def _parse_hit(row: Any) -> Hit | None:
    """Parse a result; None without a usable URL."""
    url = parse_url(get_path(row, "url"))
    if url is None:
        return None
    return Hit(
        url=url,
        title=parse_line(get_path(row, "title"), MAX_TITLE_LENGTH),
        published=parse_date(get_path(row, "publishedDate")),
        author=parse_line(get_path(row, "author"), MAX_AUTHOR_LENGTH),
        score=as_number(get_path(row, "score")),
        image=parse_url(get_path(row, "image")),
    )


def _is_pdf_name(document: Any) -> bool:
    return isinstance(document, str) and document.lower().endswith(".pdf")
