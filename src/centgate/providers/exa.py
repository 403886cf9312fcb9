"""Exa: neural web search and the text of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import structlog

from centgate.errors import ProviderError
from centgate.facts.hits import AUTHOR, TITLE, address, distinct, line, of_kind, published, rows
from centgate.facts.web import Found, Hit, Page, SearchType, Unread
from centgate.provider import About, Provider, reported
from centgate.providers.exa_pages import read_pages, word
from centgate.readings import amount, at, number
from centgate.upstream import Rate, Reply

CENT = 0.01
"""US dollars: what no question may cost."""
AT_ONE_PRICE = 10
"""Results that a search gives for the price of one."""

WAYS: Mapping[str | None, Sequence[Mapping[str, Any]]] = {
    None: ({},),
    "company": ({"category": "company"},),
    "news": ({"category": "news"},),
    # of late `publication`; older releases know the other name only
    "research paper": ({"category": "publication"}, {"category": "research paper"}),
    # as a category it was withdrawn
    "github": ({"includeDomains": ["github.com"]},),
    # was withdrawn from the clients and still works; without it what is no PDF is left out here
    "pdf": ({"category": "pdf"}, {"numResults": AT_ONE_PRICE}),
}
"""What is sent to have pages of a kind, first to last: the next when the one before is refused with 400."""


class Exa(Provider):
    """Search by meaning over its own index, and the parsed text of pages."""

    about = About(
        "exa",
        "Exa",
        docs_url="https://exa.ai/docs",
        url="https://api.exa.ai",
        terms="Billed by the operator's own account: $0.007 a search, $0.001 a page read.",
        key="required",
        rate=Rate(10, 1),
        timeout=10,
    )

    @reported
    async def search(self, query: str, most: int, category: str | None = None) -> Found:
        """At most `most` pages, up to ten, of a kind if one is named; none found is an empty answer.

        Costs $0.007 for up to ten results of type `auto`; a refusal with 400 is not billed. A kind that it
        will not search for is a ProviderError, never a search for any kind.
        """
        question = {"query": query, "numResults": most, "type": "auto"}
        body, way = await self._first_taken(question, category)
        found = rows(body["results"])
        listed = [(hit, row) for row in found if (hit := _hit(row))]
        if found and not listed:
            # its description lets a result do without an address, so that this is no failure
            self.record.warn(f"{self.about.label} found {len(found)} pages and gives the address of none")
        if category == "pdf" and "category" not in way:
            listed = self._pdfs_of(listed)
        return Found(distinct((hit for hit, _ in listed), most), _search_type(body))

    @reported
    async def contents(self, urls: Sequence[str], most_characters: int) -> list[Page | Unread]:
        """The text of pages, or why there is none, in the order asked.

        Costs $0.001 for each page's text: $0.005 for five. One character more than wanted is asked for, so
        that a text which was cut shows: its `length` is None. All of them may be unread.
        """
        asked = list(dict.fromkeys(urls))
        question = {"urls": asked, "text": {"maxCharacters": most_characters + 1}}
        body = self._body(await self._post("/contents", question))
        pages = read_pages(asked, body, most_characters)
        return [pages[url] for url in urls]

    async def _first_taken(
        self, question: Mapping[str, Any], category: str | None
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """The answer to a question narrowed to a kind in the first way that is taken, and that way."""
        tag = None
        for way in WAYS[category]:
            reply = await self._post("/search", {**question, **way}, accept=(400,))
            if reply.status != 400:
                return self._body(reply), way
            tag = word(at(_read(reply), "tag"))
        sought = f"to search for the category '{category}'" if category else "the search"
        raise self.failed(f"refuses {sought} with status 400" + (f" ({tag})" if tag else ""))

    async def _post(self, path: str, question: Mapping[str, Any], *, accept: Sequence[int] = ()) -> Reply:
        headers = {"x-api-key": self.key or ""}
        return await self.upstream.post(self.url(path), question, headers=headers, accept=accept)

    def _body(self, reply: Reply) -> dict[str, Any]:
        """An answer; tells the operator when it cost more than it is sold for."""
        body = _read(reply)
        if not isinstance(body, dict):
            raise TypeError("no object")
        cost = amount(at(body, "costDollars", "total"))
        if cost is not None and cost > CENT:
            structlog.get_logger().warning(
                "an upstream charged more than a cent for one request", provider=self.about.name, usd=cost
            )
        return cast(dict[str, Any], body)

    def _pdfs_of(self, listed: Sequence[tuple[Hit, Any]]) -> list[tuple[Hit, Any]]:
        """Of pages of any kind those that are PDF by their address."""
        found = [(hit, row) for hit, row in listed if of_kind(hit.url, "pdf") or _names_pdf(at(row, "id"))]
        if listed and not found:
            raise self.failed("refuses to search for the category 'pdf', and what it finds without is none")
        self.record.warn(
            f"{self.about.label} refuses to search for the category 'pdf': the results are those of a search "
            "for any page whose address ends in .pdf"
        )
        return found


def _read(reply: Reply) -> Any:
    """The body as JSON."""
    try:
        return reply.json()
    except ProviderError:
        # a text cut inside an emoji ends in half of a surrogate pair, which only this reader takes
        if b"\\ud" not in reply.body.lower():
            raise
        return json.loads(reply.body)


def _search_type(body: Mapping[str, Any]) -> SearchType:
    """The kind of search that it says it made, where it says so in a word that is ours; else what was sent.

    `resolvedSearchType` is deprecated and may be empty, `neural`, or at odds with `searchType`.
    """
    for said in (body.get("resolvedSearchType"), body.get("searchType")):
        if said in ("auto", "fast"):
            return said
    return "auto"


def _hit(row: Any) -> Hit | None:
    """A result in our words; None where it has no address that can be opened."""
    url = address(at(row, "url"))
    if url is None:
        return None
    return Hit(
        url=url,
        title=line(at(row, "title"), TITLE),
        published=published(at(row, "publishedDate")),
        author=line(at(row, "author"), AUTHOR),
        score=number(at(row, "score")),
    )


def _names_pdf(document: Any) -> bool:
    return isinstance(document, str) and document.lower().endswith(".pdf")
