"""SearXNG: a metasearch engine that an operator runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from centgate.coercion import as_clean_name, as_list, as_number, get_path
from centgate.errors import ProviderRefused
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.web.results import Hit, SearchResults
from centgate.web.search_results import (
    MAX_AUTHOR_LENGTH,
    MAX_DESCRIPTION_LENGTH,
    MAX_TITLE_LENGTH,
    OPERATORS,
    add_operator,
    distinct_hits,
    has_no_urls,
    is_of_category,
    omission_warning,
    parse_date,
    parse_engines,
    parse_line,
    parse_rows,
    parse_url,
)

CATEGORIES = {"news": "news", "research paper": "science"}
"""SearXNG's names of categories; others are searched by an operator in the query."""
MAX_NAMED_ENGINES = 5
"""Engines that are named in the message if nothing was found."""


class SearXNG(Provider):
    """Web search through a self-hosted instance; its URL must be set."""

    info = ProviderInfo(
        "searxng",
        "SearXNG",
        docs_url="https://docs.searxng.org",
        terms="A separate program under the AGPL-3.0, spoken to over HTTP and not part of this server. Its "
        "settings must list json under search.formats; a key is sent as a bearer token, for a gate in front.",
        key="optional",
    )

    @property
    def is_configured(self) -> bool:
        """True if a URL is set."""
        return super().is_configured and self.settings.url is not None

    def unsupported_options(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Reject a category without a SearXNG category or a search operator."""
        category = options.get("category")
        return () if category is None or category in (*CATEGORIES, *OPERATORS) else ("category",)

    @instrumented
    async def search(self, query: str, limit: int, category: str | None = None) -> SearchResults:
        """Return at most `limit` pages, of a category if given; empty if nothing matches.

        No results while engines did not respond is a failure, since they might have found some. Costs nothing
        but the instance.
        """
        if self.unsupported_options({"category": category}):
            raise self.invalid_response(f"does not support the category '{category}'")
        body = await self._query(_search_params(query, category))
        unresponsive = as_list(body.get("unresponsive_engines"))
        results = parse_rows(body["results"])
        parsed = [hit for row in results if (hit := _parse_hit(row))]
        hits = [hit for hit in parsed if is_of_category(hit.url, category)]
        if unresponsive and not hits:
            raise self.invalid_response(
                f"found nothing, and {_engine_count(unresponsive)} did not answer: "
                f"{_engine_names(unresponsive)}"
            )
        if has_no_urls(results):
            raise self.invalid_response("returned results that cannot be parsed")
        if parsed and not hits:
            raise self.invalid_response(f"ignored the category '{category}': no result belongs to it")
        if unresponsive:
            self.trace.add_warning(f"{self.info.label}: {_engine_count(unresponsive)} did not answer")
        if warning := omission_warning(self.info.label, parsed, hits, category):
            self.trace.add_warning(warning)
        return SearchResults(distinct_hits(hits, limit))

    @instrumented
    async def probe(self) -> str:
        """Send an empty query for JSON: an instance with JSON enabled rejects it as empty."""
        params, url = {"format": "json"}, self.url("/search")
        reply = await self.upstream.get(url, params=params, headers=self._headers, accept=range(300, 500))
        if reply.status == 403 and reply.body.lstrip()[:1] == b"<":
            raise self._json_disabled()
        if reply.status != 400:
            if reply.status >= 300:
                raise self.upstream.error_for_status(reply)
            reply.parse_json()
        return "answers in JSON"

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    async def _query(self, params: Mapping[str, str]) -> dict[str, Any]:
        url = self.url("/search")
        reply = await self.upstream.get(url, params=params, headers=self._headers, accept=(403,))
        if reply.status == 403:
            raise (
                self.upstream.error_for_status(reply)
                if reply.body.lstrip()[:1] != b"<"
                else self._json_disabled()
            )
        return reply.parse_object()

    def _json_disabled(self) -> ProviderRefused:
        """Build the error for a web page with status 403: JSON is disabled on most instances."""
        return ProviderRefused(
            self.info.name,
            f"{self.info.label} refuses this deployment with a web page (status 403): "
            "list json under search.formats in the settings of the instance",
        )


def _search_params(query: str, category: str | None) -> dict[str, str]:
    """Return the parameters of a search; the instance's defaults apply for the rest."""
    params = {"q": add_operator(query, category), "format": "json"}
    return params | {"categories": CATEGORIES[category]} if category in CATEGORIES else params


def _parse_hit(row: Any) -> Hit | None:
    """Parse a result; None without a usable URL."""
    url = parse_url(get_path(row, "url"))
    if url is None:
        return None
    authors = ", ".join(each for each in as_list(get_path(row, "authors")) if isinstance(each, str))
    return Hit(
        url=url,
        title=parse_line(get_path(row, "title"), MAX_TITLE_LENGTH),
        description=parse_line(get_path(row, "content"), MAX_DESCRIPTION_LENGTH),
        published=parse_date(get_path(row, "publishedDate")),
        author=parse_line(get_path(row, "author") or authors, MAX_AUTHOR_LENGTH),
        score=as_number(get_path(row, "score")),
        image=parse_url(get_path(row, "img_src")) or parse_url(get_path(row, "thumbnail")),
        engines=parse_engines(get_path(row, "engines") or [get_path(row, "engine")]),
    )


def _engine_count(engines: Sequence[Any]) -> str:
    return f"{len(engines)} of its engines" if len(engines) > 1 else "one of its engines"


def _engine_names(engines: Sequence[Any]) -> str:
    """Format engines with their reasons, given as pairs of name and reason."""
    pairs = [
        cast(list[Any], each) if isinstance(each, list) else [each] for each in engines[:MAX_NAMED_ENGINES]
    ]
    labels = [[label for part in pair[:2] if (label := as_clean_name(part))] for pair in pairs]
    return ", ".join(f"{each[0]} ({each[1]})" if each[1:] else "".join(each) for each in labels if each)
