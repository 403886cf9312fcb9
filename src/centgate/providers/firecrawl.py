"""Firecrawl: maps of sites, web search, and pages as markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from ada_url import URL

from centgate.errors import PageUnread, ProviderError
from centgate.facts.hits import DESCRIPTION, MOST_ROWS, TITLE, address, distinct, line, rows
from centgate.facts.web import Found, Hit, Page, UnreadReason
from centgate.provider import About, Provider, reported
from centgate.providers.firecrawl_pages import (
    SENTENCES,
    failure_code,
    failure_reason,
    page_status,
    read_page,
    site_refusal,
)
from centgate.readings import at, items
from centgate.text import cleaned
from centgate.upstream import Rate, Reply

THIRTYFOLD = ("x.com", "twitter.com")
"""Sites, with all below them, that it bills at 30 credits a request: more than ten cents."""
AT_ONE_PRICE = 10
"""Results that a search gives for the price of one."""
SECTIONS = frozenset({"web", "news", "images"})
"""Parts of what a search finds; a part without results may be missing."""
ANSWERS = (400, 403, 404, 408, 500)
"""Statuses whose body may say what is wrong with the page."""
_REASON_BY_STATUS: Mapping[int, UnreadReason] = {200: "failed", 403: "blocked", 408: "timeout"}
_NOT_SERVED = re.compile(r"(?:not|n't|no longer)\s+(?:currently\s+|yet\s+)?support", re.IGNORECASE)
"""How it says that it does not read a site, with the status for a key that may not."""


class Firecrawl(Provider):
    """Site maps, web search and page scraping, hosted or on an instance of one's own.

    A credit costs up to $0.0038, on the smallest plan ($19 for 5,000). What is asked stays inside one cent:
    a map is 1 credit, a search with up to ten results 2, a page 1, the first page of a PDF 1 more.
    """

    about = About(
        "firecrawl",
        "Firecrawl",
        docs_url="https://docs.firecrawl.dev",
        url="https://api.firecrawl.dev",
        terms="Billed in credits for each page, also when a site answers with an error or a bot wall. An "
        "instance of one's own needs only its URL.",
        key="required",
        rate=Rate(100),  # the smallest paid plan; the free one is cut off at 10 with 429
        timeout=16,
    )

    @property
    def configured(self) -> bool:
        """With a key, or with the address of an instance of one's own, which may need none."""
        address = (self.settings.url or "").rstrip("/").removesuffix("/v2")
        own = address not in ("", self.about.url)
        return self.settings.enabled and (self.settings.key is not None or own)

    def cannot(self, asked: Mapping[str, Any]) -> tuple[str, ...]:
        """Pages of the sites that cost thirtyfold are not read through it."""
        return ("url",) if _thirtyfold(asked.get("url")) else ()

    @reported
    async def search(self, query: str, most: int) -> Found:
        """At most `most` pages, up to ten; none found is an empty answer.

        Costs 2 credits for up to ten results without scraping: 2 x $0.0038 = $0.0076.
        """
        question = {
            "query": query,
            "limit": min(most, AT_ONE_PRICE),
            "sources": ["web"],
            "highlights": False,
            "timeout": self._milliseconds,
        }
        listed = _listed(self._body(await self._post("/v2/search", question)))
        hits = distinct(filter(None, map(_hit, listed)), most)
        if listed and not hits:
            raise self.failed("answered with results that cannot be read")
        return Found(hits)

    @reported
    async def scrape(self, url: str, only_main_content: bool) -> Page:  # noqa: FBT001 - as every reader
        """A page as markdown; NoData where the site says that there is none, PageUnread otherwise.

        Costs 1 credit, or for a PDF, of which one page is read, 2: 2 x $0.0038 = $0.0076. The proxy is
        `basic`, since by older price lists another is 4 credits more, which `auto` may choose.
        """
        question = {
            "url": url,
            "formats": ["markdown"],
            "onlyMainContent": only_main_content,
            "timeout": self._milliseconds,
            "skipTlsVerification": False,
            "parsers": [{"type": "pdf", "maxPages": 1}],
            "removeBase64Images": True,
            "proxy": "basic",
        }
        reply = await self._post("/v2/scrape", question, accept=ANSWERS)
        data = _data(self._body(self._of_a_page(reply)))
        status = page_status(data)
        if status in (404, 410):
            raise self.nothing(f"no page at {cleaned(url, 200)}: the site answers with status {status}")
        if reason := site_refusal(status):
            raise PageUnread(self.about.name, reason, f"{SENTENCES[reason]} (status {status})")
        page = read_page(url, data)
        if page is None:
            raise PageUnread(self.about.name, "failed", "nothing could be read on the page")
        return page

    @reported
    async def links(self, url: str, search: str | None, most: int) -> list[Hit]:
        """At most `most` pages of a site, by relevance to `search` if that is sent; NoData for none.

        Costs 1 credit however many there are: $0.0038.
        """
        question = {"url": url, "limit": most, "timeout": self._milliseconds, "includeSubdomains": False}
        if search:
            question["search"] = search
        reply = await self._post("/v2/map", question, accept=ANSWERS)
        listed = _links(self._body(self._of_a_page(reply)))
        found = list(filter(None, map(_link, listed)))
        if listed and not found:
            raise self.failed("answered with links that cannot be read")
        if not found:
            raise self.nothing(f"no pages of {cleaned(url, 200)}")
        return list(distinct(_once(found), most))

    @reported
    async def probe(self) -> str:
        """Ask for the credits that are left, which costs none; an instance of one's own may not count them.

        https://docs.firecrawl.dev/api-reference/endpoint/credit-usage
        """
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        reply = await self.upstream.get(
            self.url("/v2/team/credit-usage"), headers=headers, accept=range(400, 500)
        )
        if reply.status in (401, 402, 403, 429):
            raise self.upstream.failure(reply)
        body = _object_in(reply) if reply.status < 300 else None
        left = at(body, "data", "remainingCredits")
        return "answers" + (f", {left:,.0f} credits are left" if isinstance(left, int | float) else "")

    @property
    def _milliseconds(self) -> int:
        """What it may take itself, so that it says what is wrong before it is cut off."""
        return int(max(1.0, self.timeout - 1) * 1000)

    async def _post(self, path: str, question: Mapping[str, Any], *, accept: Collection[int] = ()) -> Reply:
        if self.cannot(question):
            raise self.failed("charges more than a cent for pages of this site, and is not asked")
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return await self.upstream.post(self.url(path), question, headers=headers, accept=accept)

    def _of_a_page(self, reply: Reply) -> Reply:
        """The same reply; PageUnread where it says what is wrong with the page, as it may with 200 too."""
        body = _object_in(reply)
        if reply.status < 300 and at(body, "success") is not False:
            return reply
        reason = failure_reason(body) or _REASON_BY_STATUS.get(reply.status)
        if reply.status == 403 and not _NOT_SERVED.search(str(at(body, "error"))):
            reason = None
        if reason is None:
            return reply
        code = failure_code(body)
        more = f" (Firecrawl says {code})" if code else ""
        raise PageUnread(self.about.name, reason, SENTENCES[reason] + more)

    def _body(self, reply: Reply) -> dict[str, Any]:
        """An answer; raises what is wrong where there is none."""
        body = _object_in(reply)
        if reply.status >= 300 and reply.status not in (400, 404):
            raise self.upstream.failure(reply)
        if reply.status < 300 and body and body.get("success") is not False:
            return body
        said = at(body, "error")
        # before it is cut, which may leave half of a key
        about = cleaned(self._without_key(said), 120) if isinstance(said, str) else None
        raise self.failed(f"refuses: {about}" if about else "answered in a shape that is not known here")


def _thirtyfold(url: Any) -> bool:
    """Whether an address is of a site that costs more than a cent, as a browser would read it."""
    try:
        host = URL(url).hostname.rstrip(".").lower() if isinstance(url, str) else ""
    except ValueError:
        return False
    return any(f".{host}".endswith(f".{site}") for site in THIRTYFOLD)


def _object_in(reply: Reply) -> dict[str, Any] | None:
    """The body; None where an error has one that is no JSON object."""
    try:
        body = reply.json()
    except ProviderError:
        if reply.status == 200:
            raise
        return None
    return cast(dict[str, Any], body) if isinstance(body, dict) else None


def _data(body: Mapping[str, Any]) -> dict[str, Any]:
    """The page in an answer."""
    data = body["data"]
    if isinstance(data, list) and data:
        data = cast(list[Any], data)[0]
    if not isinstance(data, dict):
        raise TypeError("data is no object")
    return cast(dict[str, Any], data)


def _listed(body: Mapping[str, Any]) -> list[Any]:
    """What a search found: `data.web`, which may be missing, or, as in version 1, `data` itself."""
    data = body["data"]
    if isinstance(data, dict):
        sections = cast(dict[str, Any], data)
        if sections and not sections.keys() & SECTIONS:
            raise TypeError("no section of results is known")
        web = sections.get("web")
        return [] if web is None else rows(web)
    return rows(data)


def _links(body: Mapping[str, Any]) -> list[Any]:
    """What a map lists, as addresses or as objects."""
    links = body["links"] if "links" in body else at(body, "data", "links")
    if not isinstance(links, list):
        raise TypeError("links are no list")
    return items(cast(Any, links))[:MOST_ROWS]


def _hit(row: Any) -> Hit | None:
    """A result in our words; None where it has no address that can be opened."""
    url = address(at(row, "url")) or address(at(row, "metadata", "sourceURL"))
    if url is None:
        return None
    description = at(row, "description") or at(row, "snippet") or at(row, "metadata", "description")
    title = at(row, "title") or at(row, "metadata", "title")
    return Hit(url=url, title=line(title, TITLE), description=line(description, DESCRIPTION))


def _link(row: Any) -> Hit | None:
    return _hit({"url": row} if isinstance(row, str) else row)


def _once(hits: list[Hit]) -> list[Hit]:
    """Without those that differ from an earlier one in the query of their address only, title and all."""
    first: dict[tuple[str, str | None, str | None], Hit] = {}
    for hit in hits:
        bare = URL(hit.url)
        bare.search = bare.hash = ""
        alike = bare.href if hit.title and hit.description else hit.url
        first.setdefault((alike, hit.title, hit.description), hit)
    return list(first.values())
