"""Firecrawl: maps of sites, web search, and pages as markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from ada_url import URL

from centgate.coercion import as_list, get_path
from centgate.errors import PageUnread, ProviderError, UnreadReason
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.providers.firecrawl_pages import (
    failure_code,
    failure_reason,
    page_status,
    parse_page,
    status_failure_reason,
)
from centgate.rate_limiter import RateLimit
from centgate.sanitize import clean_line, quote_line
from centgate.upstream import UpstreamResponse
from centgate.web.results import UNREAD_MESSAGES, Hit, SearchResults, WebPage
from centgate.web.search_results import (
    MAX_DESCRIPTION_LENGTH,
    MAX_ROWS,
    MAX_SITE_NAME_LENGTH,
    MAX_TITLE_LENGTH,
    distinct_hits,
    parse_date,
    parse_language,
    parse_line,
    parse_rows,
    parse_url,
)

EXPENSIVE_SITES = ("x.com", "twitter.com")
"""Sites, with their subdomains, that cost 30 credits a request: more than ten cents."""
RESULTS_PER_PRICE = 10
"""Results that one search returns for a single price."""
SECTIONS = frozenset({"web", "news", "images"})
"""Sections of a search result; one without results may be missing."""
ERROR_STATUSES = (400, 403, 404, 408, 500)
"""Statuses whose body may explain a page failure."""
_REASON_BY_STATUS: Mapping[int, UnreadReason] = {200: "failed", 403: "blocked", 408: "timeout"}
_UNSUPPORTED_SITE = re.compile(r"(?:not|n't|no longer)\s+(?:currently\s+|yet\s+)?support", re.IGNORECASE)
"""Message for an unsupported site, which comes with the status of a forbidden key."""


class Firecrawl(Provider):
    """Site maps, web search and page scraping, hosted or self-hosted.

    A credit costs up to $0.0038, on the smallest plan ($19 for 5,000). Every request costs at most one cent:
    a map is 1 credit, a search with up to ten results 2, a page 1, the first page of a PDF 1 more.
    """

    info = ProviderInfo(
        "firecrawl",
        "Firecrawl",
        docs_url="https://docs.firecrawl.dev",
        url="https://api.firecrawl.dev",
        terms="Billed in credits for each page, also when a site answers with an error or a bot wall. An "
        "instance of one's own needs only its URL.",
        key="required",
        rate_limit=RateLimit(100),  # the smallest paid plan; the free one is cut off at 10 with 429
        timeout=16,
    )

    @property
    def is_configured(self) -> bool:
        """True with a key, or with the URL of a self-hosted instance, which may need none."""
        base_url = (self.settings.url or "").rstrip("/").removesuffix("/v2")
        self_hosted = base_url not in ("", self.info.url)
        return self.settings.enabled and (self.settings.key is not None or self_hosted)

    def unsupported_options(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Reject pages of EXPENSIVE_SITES."""
        return ("url",) if _is_expensive(options.get("url")) else ()

    @instrumented
    async def search(self, query: str, limit: int) -> SearchResults:
        """Return at most `limit` pages, up to ten; empty if nothing matches.

        Costs 2 credits for up to ten results without scraping: 2 x $0.0038 = $0.0076.
        """
        params = {
            "query": query,
            "limit": min(limit, RESULTS_PER_PRICE),
            "sources": ["web"],
            "highlights": False,
            "timeout": self._timeout_ms,
        }
        results = _search_rows(self._parse_body(await self._post("/v2/search", params)))
        hits = distinct_hits(filter(None, map(_parse_hit, results)), limit)
        if results and not hits:
            raise self.invalid_response("returned results that cannot be parsed")
        return SearchResults(hits)

    @instrumented
    async def scrape(self, url: str, only_main_content: bool) -> WebPage:  # noqa: FBT001 - as every reader
        """Return a page as markdown; NoData if the site has no such page, PageUnread for other failures.

        Costs 1 credit, or 2 for a PDF, of which one page is read: 2 x $0.0038 = $0.0076. The proxy is
        `basic`: `auto` may choose another, which costs 4 credits more by older price lists.
        """
        params = {
            "url": url,
            "formats": ["markdown"],
            "onlyMainContent": only_main_content,
            "timeout": self._timeout_ms,
            "skipTlsVerification": False,
            "parsers": [{"type": "pdf", "maxPages": 1}],
            "removeBase64Images": True,
            "proxy": "basic",
        }
        reply = await self._post("/v2/scrape", params, accept=ERROR_STATUSES)
        data = _page_data(self._parse_body(self._raise_if_unread(reply)))
        status = page_status(data)
        reason = status_failure_reason(status)
        if reason == "not_found":
            raise self.no_data(f"no page at {clean_line(url, 200)}: the site returned status {status}")
        if reason:
            raise PageUnread(self.info.name, reason, f"{UNREAD_MESSAGES[reason]} (status {status})")
        page = parse_page(url, data)
        if page is None:
            raise PageUnread(self.info.name, "failed", "the page has no readable text")
        return page

    @instrumented
    async def site_links(self, url: str, search: str | None, limit: int) -> list[Hit]:
        """Return at most `limit` pages of a site, by relevance to `search` if given; NoData if it has none.

        Costs 1 credit for any number of pages: $0.0038.
        """
        params = {"url": url, "limit": limit, "timeout": self._timeout_ms, "includeSubdomains": False}
        if search:
            params["search"] = search
        reply = await self._post("/v2/map", params, accept=ERROR_STATUSES)
        results = _link_rows(self._parse_body(self._raise_if_unread(reply)))
        links = list(filter(None, map(_parse_link, results)))
        if results and not links:
            raise self.invalid_response("returned links that cannot be parsed")
        if not links:
            raise self.no_data(f"no pages of {clean_line(url, 200)}")
        return list(distinct_hits(_without_query_variants(links), limit))

    @instrumented
    async def probe(self) -> str:
        """Query the remaining credits, which is free; a self-hosted instance may not count them.

        https://docs.firecrawl.dev/api-reference/endpoint/credit-usage
        """
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        reply = await self.upstream.get(
            self.url("/v2/team/credit-usage"), headers=headers, accept=range(400, 500)
        )
        if reply.status in (401, 402, 403, 429):
            raise self.upstream.error_for_status(reply)
        body = _json_object(reply) if reply.status < 300 else None
        remaining = get_path(body, "data", "remainingCredits")
        return "answers" + (
            f", {remaining:,.0f} credits are left" if isinstance(remaining, int | float) else ""
        )

    @property
    def _timeout_ms(self) -> int:
        """Timeout sent to Firecrawl, shorter than ours so that it can report the cause."""
        return int(max(1.0, self.timeout - 1) * 1000)

    async def _post(
        self, path: str, params: Mapping[str, Any], *, accept: Collection[int] = ()
    ) -> UpstreamResponse:
        if self.unsupported_options(params):
            raise self.invalid_response("charges more than a cent for pages of this site, so it is not used")
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return await self.upstream.post(self.url(path), params, headers=headers, accept=accept)

    def _raise_if_unread(self, reply: UpstreamResponse) -> UpstreamResponse:
        """Return the reply; PageUnread if it reports a failure of the page, possible with status 200 too."""
        body = _json_object(reply)
        if reply.status < 300 and get_path(body, "success") is not False:
            return reply
        reason = failure_reason(body) or _REASON_BY_STATUS.get(reply.status)
        if reply.status == 403 and not _UNSUPPORTED_SITE.search(str(get_path(body, "error"))):
            reason = None
        if reason is None:
            return reply
        code = failure_code(body)
        suffix = f" (Firecrawl says {code})" if code else ""
        raise PageUnread(self.info.name, reason, UNREAD_MESSAGES[reason] + suffix)

    def _parse_body(self, reply: UpstreamResponse) -> dict[str, Any]:
        """Return the body of a successful reply, or raise its error."""
        body = _json_object(reply)
        if reply.status >= 300 and reply.status not in (400, 404):
            raise self.upstream.error_for_status(reply)
        if reply.status < 300 and body and body.get("success") is not False:
            return body
        message = get_path(body, "error")
        # before truncation, which may leave half of a key
        reason = quote_line(self._redact_key(message), 120) if isinstance(message, str) else None
        raise self.invalid_response(
            f"refuses: {reason}" if reason else "answered in a shape that is not known here"
        )


def _is_expensive(url: Any) -> bool:
    """True if a URL, parsed like a browser does, is on one of EXPENSIVE_SITES."""
    try:
        host = URL(url).hostname.rstrip(".").lower() if isinstance(url, str) else ""
    except ValueError:
        return False
    return any(f".{host}".endswith(f".{site}") for site in EXPENSIVE_SITES)


def _json_object(reply: UpstreamResponse) -> dict[str, Any] | None:
    """Return the body as an object; None if an error has no JSON object."""
    try:
        body = reply.parse_json()
    except ProviderError:
        if reply.status == 200:
            raise
        return None
    return cast(dict[str, Any], body) if isinstance(body, dict) else None


def _page_data(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page of a response."""
    data = body["data"]
    if isinstance(data, list) and data:
        data = cast(list[Any], data)[0]
    if not isinstance(data, dict):
        raise TypeError("data is not an object")
    return cast(dict[str, Any], data)


def _search_rows(body: Mapping[str, Any]) -> list[Any]:
    """Return the search results: `data.web`, which may be missing, or, as in version 1, `data` itself."""
    data = body["data"]
    if isinstance(data, dict):
        sections = cast(dict[str, Any], data)
        if sections and not sections.keys() & SECTIONS:
            raise TypeError("no known section of results")
        web = sections.get("web")
        return [] if web is None else parse_rows(web)
    return parse_rows(data)


def _link_rows(body: Mapping[str, Any]) -> list[Any]:
    """Return the links of a map, each a URL or an object."""
    links = body["links"] if "links" in body else get_path(body, "data", "links")
    if not isinstance(links, list):
        raise TypeError("links are not a list")
    return as_list(cast(Any, links))[:MAX_ROWS]


def _parse_hit(row: Any) -> Hit | None:
    """Parse a result; None without a usable URL."""
    url = parse_url(get_path(row, "url")) or parse_url(get_path(row, "metadata", "sourceURL"))
    if url is None:
        return None
    description = (
        get_path(row, "description") or get_path(row, "snippet") or get_path(row, "metadata", "description")
    )
    title = get_path(row, "title") or get_path(row, "metadata", "title")
    metadata = get_path(row, "metadata")
    return Hit(
        url=url,
        title=parse_line(title, MAX_TITLE_LENGTH),
        description=parse_line(description, MAX_DESCRIPTION_LENGTH),
        published=parse_date(get_path(metadata, "publishedTime")),
        site_name=parse_line(get_path(metadata, "ogSiteName"), MAX_SITE_NAME_LENGTH),
        image=parse_url(get_path(metadata, "ogImage")),
        language=parse_language(get_path(metadata, "language")),
    )


def _parse_link(row: Any) -> Hit | None:
    return _parse_hit({"url": row} if isinstance(row, str) else row)


def _without_query_variants(hits: list[Hit]) -> list[Hit]:
    """Drop hits that differ from an earlier one only in the query or fragment of their URL."""
    first: dict[tuple[str, str | None, str | None], Hit] = {}
    for hit in hits:
        bare = URL(hit.url)
        bare.search = bare.hash = ""
        key = bare.href if hit.title and hit.description else hit.url
        first.setdefault((key, hit.title, hit.description), hit)
    return list(first.values())
