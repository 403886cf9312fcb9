"""SearXNG: a metasearch engine that an operator runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from centgate.errors import ProviderRefused
from centgate.facts.hits import (
    AUTHOR,
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
from centgate.readings import at, items, name, number

CATEGORIES = {"news": "news", "research paper": "science"}
"""Its own names for kinds of pages; other kinds are narrowed by an operator in the query."""
NAMED = 5
"""Engines that are named when nothing was found."""


class SearXNG(Provider):
    """Web search through an instance of one's own; it has no address until the settings name one."""

    about = About(
        "searxng",
        "SearXNG",
        docs_url="https://docs.searxng.org",
        terms="A separate program under the AGPL-3.0, spoken to over HTTP and not part of this server. Its "
        "settings must list json under search.formats; a key is sent as a bearer token, for a gate in front.",
        key="optional",
    )

    @property
    def configured(self) -> bool:
        """Only with an address of its own."""
        return super().configured and self.settings.url is not None

    def cannot(self, asked: Mapping[str, Any]) -> tuple[str, ...]:
        """A kind of page that it has neither a category nor an operator for."""
        category = asked.get("category")
        return () if category is None or category in (*CATEGORIES, *OPERATORS) else ("category",)

    @reported
    async def search(self, query: str, most: int, category: str | None = None) -> Found:
        """At most `most` pages, of a kind if one is named; none found is an empty answer.

        Nothing found while engines did not answer is a failure: who knows what they would have found.
        Costs nothing but the instance.
        """
        if self.cannot({"category": category}):
            raise self.failed(f"has nothing for the category '{category}'")
        body = await self._ask(_question(query, category))
        silent = items(body.get("unresponsive_engines"))
        listed = rows(body["results"])
        found = [hit for row in listed if (hit := _hit(row))]
        hits = [hit for hit in found if of_kind(hit.url, category)]
        if silent and not hits:
            raise self.failed(f"found nothing, and {_count(silent)} did not answer: {_names(silent)}")
        if unaddressed(listed):
            raise self.failed("answered with results that cannot be read")
        if found and not hits:
            raise self.failed(f"passed over the category '{category}': none of its results is of it")
        if silent:
            self.record.warn(f"{self.about.label}: {_count(silent)} did not answer")
        if stray := left_out(self.about.label, found, hits, category):
            self.record.warn(stray)
        return Found(distinct(hits, most))

    @reported
    async def probe(self) -> str:
        """Ask for nothing, in JSON: an instance that speaks JSON says that there is no query."""
        question = {"format": "json"}
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        url = self.url("/search")
        reply = await self.upstream.get(url, params=question, headers=headers, accept=range(300, 500))
        if reply.status == 403 and reply.body.lstrip()[:1] == b"<":
            raise self._without_json()
        if reply.status != 400 and reply.status >= 300:
            raise self.upstream.failure(reply)
        return "answers in JSON"

    async def _ask(self, question: Mapping[str, str]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        reply = await self.upstream.get(self.url("/search"), params=question, headers=headers, accept=(403,))
        if reply.status == 403:
            raise self.upstream.failure(reply) if reply.body.lstrip()[:1] != b"<" else self._without_json()
        body = reply.json()
        if not isinstance(body, dict):
            raise TypeError("no object")
        return cast(dict[str, Any], body)

    def _without_json(self) -> ProviderRefused:
        """What a page in place of a refusal in words means: most instances speak JSON to nobody."""
        return ProviderRefused(
            self.about.name,
            f"{self.about.label} refuses this deployment with a web page (status 403), as an instance does "
            "whose settings do not list json under search.formats",
        )


def _question(query: str, category: str | None) -> dict[str, str]:
    """The parameters of a search; what is left out is as the instance has it."""
    asked = {"q": narrowed(query, category), "format": "json"}
    return asked | {"categories": CATEGORIES[category]} if category in CATEGORIES else asked


def _hit(row: Any) -> Hit | None:
    """A result in our words; None where it has no address that can be opened."""
    url = address(at(row, "url"))
    if url is None:
        return None
    authors = ", ".join(each for each in items(at(row, "authors")) if isinstance(each, str))
    return Hit(
        url=url,
        title=line(at(row, "title"), TITLE),
        description=line(at(row, "content"), DESCRIPTION),
        published=published(at(row, "publishedDate")),
        author=line(at(row, "author") or authors, AUTHOR),
        score=number(at(row, "score")),
    )


def _count(silent: Sequence[Any]) -> str:
    return f"{len(silent)} of its engines" if len(silent) > 1 else "one of its engines"


def _names(silent: Sequence[Any]) -> str:
    """Engines with their reasons: each a pair, the name first."""
    pairs = [cast(list[Any], each) if isinstance(each, list) else [each] for each in silent[:NAMED]]
    words = [[said for part in pair[:2] if (said := name(part))] for pair in pairs]
    return ", ".join(f"{each[0]} ({each[1]})" if each[1:] else "".join(each) for each in words if each)
