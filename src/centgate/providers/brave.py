"""Brave Search: web search over an index of its own."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from centgate.coercion import get_path
from centgate.errors import ProviderRefused
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.rate_limiter import RateLimit
from centgate.upstream import UpstreamResponse
from centgate.web.results import Hit, SearchResults
from centgate.web.search_results import (
    MAX_DESCRIPTION_LENGTH,
    MAX_SITE_NAME_LENGTH,
    MAX_TITLE_LENGTH,
    OPERATORS,
    add_operator,
    distinct_hits,
    has_no_urls,
    is_of_category,
    omission_warning,
    parse_date,
    parse_language,
    parse_line,
    parse_rows,
    parse_url,
)

MAX_QUERY_CHARACTERS = 400
MAX_QUERY_WORDS = 50
"""Limits of a query, from the documentation."""
_HIGHLIGHT_TAGS = re.compile(r"</?(?:strong|b|em|i|mark)>", re.IGNORECASE)


class Brave(Provider):
    """Web search with titles, addresses and descriptions."""

    info = ProviderInfo(
        "brave",
        "Brave Search",
        docs_url="https://api-dashboard.search.brave.com/documentation",
        url="https://api.search.brave.com",
        terms="Billed by the operator's own account: $5 per 1,000 requests, the first $5 of a month free. "
        "Plans differ in how often they may be asked.",
        key="required",
        rate_limit=RateLimit(50, 1),
    )

    def unsupported_options(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Reject a category without a search operator, and a query that is too long."""
        category, query = options.get("category"), options.get("query", "")
        if category is not None and category not in OPERATORS:
            return ("category",)
        full_query = add_operator(query, category)
        return (
            ("query",)
            if len(full_query) > MAX_QUERY_CHARACTERS or len(full_query.split()) > MAX_QUERY_WORDS
            else ()
        )

    @instrumented
    async def search(self, query: str, limit: int, category: str | None = None) -> SearchResults:
        """Return at most `limit` pages, up to twenty, of a category if given; empty if nothing matches.

        Costs $0.005, however many results.
        """
        if unsupported := self.unsupported_options({"query": query, "category": category}):
            raise self.invalid_response(f"does not support this {unsupported[0]}")
        params = {"q": add_operator(query, category), "count": str(limit)}
        headers = {"X-Subscription-Token": self.key or ""}
        url = self.url("/res/v1/web/search")
        reply = await self.upstream.get(url, params=params, headers=headers, accept=(422,))
        if reply.status == 422:
            raise self._parse_422(reply)
        results = _result_rows(reply.parse_json())
        parsed = [hit for row in results if (hit := _parse_hit(row))]
        if has_no_urls(results):
            raise self.invalid_response("returned results that cannot be parsed")
        hits = [hit for hit in parsed if is_of_category(hit.url, category)]
        if parsed and not hits:
            raise self.invalid_response(f"ignored the category '{category}': no result belongs to it")
        if warning := omission_warning(self.info.label, parsed, hits, category):
            self.trace.add_warning(warning)
        return SearchResults(distinct_hits(hits, limit))

    def _parse_422(self, reply: UpstreamResponse) -> Exception:
        """Map status 422 to an error; for a bad key it replaces the usual 401."""
        code = parse_line(get_path(reply.parse_json(), "error", "code"), 64) or ""
        if "TOKEN" in code.upper():
            return ProviderRefused(self.info.name, f"{self.info.label} refuses this deployment ({code})")
        return self.invalid_response("answered with status 422" + (f" ({code})" if code else ""))


def _result_rows(body: Any) -> list[Any]:
    """Return the results of a response; empty if it has no section of web pages."""
    web = get_path(body, "web")
    if web is None and get_path(body, "type") != "search" and get_path(body, "query") is None:
        raise TypeError("not a response to a search")
    return [] if web is None else parse_rows(get_path(web, "results"))


def _parse_hit(row: Any) -> Hit | None:
    """Parse a result; None without a usable URL."""
    url = parse_url(get_path(row, "url"))
    if url is None:
        return None
    return Hit(
        url=url,
        title=_plain_line(get_path(row, "title"), MAX_TITLE_LENGTH),
        description=_plain_line(get_path(row, "description"), MAX_DESCRIPTION_LENGTH),
        published=_parse_page_age(get_path(row, "page_age")),
        site_name=parse_line(get_path(row, "profile", "name"), MAX_SITE_NAME_LENGTH),
        image=parse_url(get_path(row, "thumbnail", "src")),
        language=parse_language(get_path(row, "language")),
    )


def _parse_page_age(value: Any) -> str | None:
    """Parse the time of a page; Brave writes no zone, and its times are read as UTC. None if invalid."""
    date = parse_date(value)
    return f"{date}Z" if date and "T" in date and not date.endswith("Z") else date


def _plain_line(value: Any, length: int) -> str | None:
    """Return a line without highlight tags and with entities decoded."""
    return (
        parse_line(html.unescape(_HIGHLIGHT_TAGS.sub("", value)), length) if isinstance(value, str) else None
    )
