"""Brave Search: web search over an index of its own."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from centgate.errors import ProviderRefused
from centgate.facts.hits import (
    DESCRIPTION,
    OPERATORS,
    TITLE,
    address,
    distinct,
    left_out,
    line,
    narrowed,
    of_kind,
    published,
    rows,
    unaddressed,
)
from centgate.facts.web import Found, Hit
from centgate.provider import About, Provider, reported
from centgate.readings import at
from centgate.upstream import Rate, Reply

MOST_CHARACTERS = 400
MOST_WORDS = 50
"""Of a query, as its documentation has it."""
_MARKS = re.compile(r"</?(?:strong|b|em|i|mark)>", re.IGNORECASE)


class Brave(Provider):
    """Web search with titles, addresses and descriptions."""

    about = About(
        "brave",
        "Brave Search",
        docs_url="https://api-dashboard.search.brave.com/documentation",
        url="https://api.search.brave.com",
        terms="Billed by the operator's own account: $5 per 1,000 requests, the first $5 of a month free. "
        "Plans differ in how often they may be asked.",
        key="required",
        rate=Rate(50, 1),
    )

    def cannot(self, asked: Mapping[str, Any]) -> tuple[str, ...]:
        """A kind of page that it has no operator for, and a query that is too long for it."""
        category, query = asked.get("category"), asked.get("query", "")
        if category is not None and category not in OPERATORS:
            return ("category",)
        sent = narrowed(query, category)
        return ("query",) if len(sent) > MOST_CHARACTERS or len(sent.split()) > MOST_WORDS else ()

    @reported
    async def search(self, query: str, most: int, category: str | None = None) -> Found:
        """At most `most` pages, up to twenty, of a kind if one is named; none found is an empty answer.

        Costs $0.005, however many results.
        """
        if unable := self.cannot({"query": query, "category": category}):
            raise self.failed(f"cannot search by such a {unable[0]}")
        question = {"q": narrowed(query, category), "count": str(most)}
        headers = {"X-Subscription-Token": self.key or ""}
        url = self.url("/res/v1/web/search")
        reply = await self.upstream.get(url, params=question, headers=headers, accept=(422,))
        if reply.status == 422:
            raise self._refusal(reply)
        listed = _results(reply.json())
        found = [hit for row in listed if (hit := _hit(row))]
        if unaddressed(listed):
            raise self.failed("answered with results that cannot be read")
        hits = [hit for hit in found if of_kind(hit.url, category)]
        if found and not hits:
            raise self.failed(f"passed over the category '{category}': none of its results is of it")
        if stray := left_out(self.about.label, found, hits, category):
            self.record.warn(stray)
        return Found(distinct(hits, most))

    def _refusal(self, reply: Reply) -> Exception:
        """What 422 means: of a bad key it is what others call 401."""
        code = line(at(reply.json(), "error", "code"), 64) or ""
        if "TOKEN" in code.upper():
            return ProviderRefused(self.about.name, f"{self.about.label} refuses this deployment ({code})")
        return self.failed("answered with status 422" + (f" ({code})" if code else ""))


def _results(body: Any) -> list[Any]:
    """The pages in an answer; one without a section for pages found none."""
    web = at(body, "web")
    if web is None and at(body, "type") != "search" and at(body, "query") is None:
        raise TypeError("no answer to a search")
    return [] if web is None else rows(at(web, "results"))


def _hit(row: Any) -> Hit | None:
    """A result in our words; None where it has no address that can be opened."""
    url = address(at(row, "url"))
    if url is None:
        return None
    return Hit(
        url=url,
        title=_plain(at(row, "title"), TITLE),
        description=_plain(at(row, "description"), DESCRIPTION),
        published=published(at(row, "page_age")),
    )


def _plain(value: Any, length: int) -> str | None:
    """A line without the marks around words that match, its entities as the characters they stand for."""
    return line(html.unescape(_MARKS.sub("", value)), length) if isinstance(value, str) else None
