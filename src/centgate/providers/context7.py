"""Context7: documentation of software libraries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from centgate import tokens
from centgate.errors import NoData, ProviderError
from centgate.facts.hits import DESCRIPTION, TITLE, address, line, rows
from centgate.facts.libraries import Documented, Snippet
from centgate.provider import MEGABYTE, About, Provider, reported
from centgate.readings import amount, at, count, items
from centgate.readings import name as named
from centgate.text import cleaned, legible
from centgate.upstream import Reply

MOST_LIBRARIES = 5
MOST_SNIPPETS = 50
"""Snippets of a kind that are read."""
LONGEST = 40_000
"""Characters of a text beyond which it fits no budget, and is not read."""
LONGEST_QUERY = 500

_ID = re.compile(r"(/\.?[A-Za-z0-9_@-][A-Za-z0-9._@~+-]*){2,3}")
_LANGUAGE = 40
_MOVED = (301, 302, 307, 308)
_SAID = (*_MOVED, 400, 404, 422)
"""Statuses whose body says what is meant."""
_TAGS = re.compile(r"available (?:tags|versions): *(.+)", re.IGNORECASE | re.DOTALL)
_TAGS_LENGTH = 300


class Context7(Provider):
    """Library names resolved to ids, and snippets of their documentation.

    A call inside the quota of a plan is free; none has a price of its own.
    """

    about = About(
        "context7",
        "Context7",
        docs_url="https://context7.com/docs",
        url="https://context7.com",
        terms="Without a key its limits are low, so it is asked only when a key or a URL is set; calls "
        "beyond a plan's quota are billed by plan.",
        key="optional",
        timeout=10,
        max_bytes=MEGABYTE,
    )

    @property
    def configured(self) -> bool:
        """With a key, or where an operator has said by its address that it be asked without one."""
        return self.settings.enabled and (self.settings.key is not None or self.settings.url is not None)

    @reported
    async def libraries(self, name: str) -> list[Documented]:
        """At most five libraries that a name may mean, best first; NoData when there are none."""
        asked = name.strip()[:LONGEST_QUERY]
        reply = await self._get("/api/v2/libs/search", {"libraryName": asked, "query": asked}, accept=(404,))
        quoted = f"'{cleaned(asked, 100)}'"
        if _code(reply) == "no_libraries_found":
            raise self.nothing(f"no library by the name {quoted}")
        listed = rows(self._body(reply)["results"])
        readable = [row for row in listed if _id(at(row, "id"))]
        if listed and not readable:
            raise self.failed("answered with libraries that cannot be read")
        ready = [row for row in readable if at(row, "state") in ("finalized", None)]
        if not ready:
            raise self.nothing(f"no library by the name {quoted} whose documentation is ready")
        distinct: dict[str, Documented] = {}
        for library in map(_documented, ready):
            distinct.setdefault(library.id, library)
        return [*distinct.values()][:MOST_LIBRARIES]

    @reported
    async def docs(self, library_id: str, topic: str | None, budget: int) -> list[Snippet]:
        """Snippets of a library for a topic that fit a budget of tokens together.

        It has no budget of its own, so whole snippets are left out here: code first, the best explanation
        right after the best code. NoData when it knows no such library or version, or nothing that fits.
        """
        body = await self._context(library_id, topic or _project(library_id))
        ordered = read_snippets(body)
        if not ordered:
            raise self.nothing(f"no documentation of {library_id} on that topic")
        fitting = tokens.fitting(ordered, budget)
        if not fitting:
            raise self.nothing(f"no documentation of {library_id} on that topic within {budget} tokens")
        return fitting

    async def _context(self, library_id: str, query: str) -> dict[str, Any]:
        """The documentation under an id, or under that to which the library has moved, once."""
        question = {"libraryId": library_id, "query": query[:LONGEST_QUERY], "type": "json"}
        reply = await self._get("/api/v2/context", question, accept=_SAID)
        if target := self._moved(reply, library_id):
            reply = await self._get("/api/v2/context", question | {"libraryId": target}, accept=_SAID)
            if self._moved(reply, target):
                raise self.failed(f"sends from one id to another for {library_id}")
            self.record.warn(f"{self.about.label} has {library_id} under the id {target} now")
            library_id = target
        if objection := self._objection(reply, library_id):
            raise objection
        return self._body(reply)

    def _moved(self, reply: Reply, library_id: str) -> str | None:
        """The id that a library has now, which is said in the body; the version asked for stays."""
        if reply.status not in _MOVED and _code(reply) != "library_redirected":
            return None
        said = at(_read(reply), "redirectUrl")
        target = _id(said.removeprefix("https://context7.com") if isinstance(said, str) else None)
        if target is None:
            raise self.failed(f"says that {library_id} has moved, and not where to")
        version = _version(library_id)
        return target + version if version and not _version(target) else target

    def _objection(self, reply: Reply, library_id: str) -> NoData | ProviderError | None:
        """What an answer means that is no documentation, by its code."""
        match _code(reply):
            case "library_not_finalized":
                return self.failed(f"is still indexing {library_id}: ask again later")
            case "library_not_found" | "invalid_library_id":
                return self.nothing(f"no library {library_id}")
            case "tag_not_found":
                return self.nothing(f"no such version of {library_id}" + self._tags(reply))
            case "no_snippets_found" | "no_code_found":
                return self.nothing(f"no documentation of {library_id}")
            case "library_too_large":
                return self.nothing(f"no documentation of {library_id}, which is too large for it")
            case _:
                return None

    def _tags(self, reply: Reply) -> str:
        """The versions that there are, where they are said."""
        said = at(_read(reply), "message")
        found = _TAGS.search(said[:5000]) if isinstance(said, str) else None
        tags = cleaned(self._without_key(found[1]), _TAGS_LENGTH) if found else None
        return f"; it has {tags}" if tags else ""

    async def _get(self, path: str, question: Mapping[str, str], *, accept: Collection[int]) -> Reply:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else None
        return await self.upstream.get(self.url(path), params=question, headers=headers, accept=accept)

    def _body(self, reply: Reply) -> dict[str, Any]:
        """An answer that is one: under status 202 there is none yet."""
        if reply.status != 200:
            raise self.upstream.failure(reply)
        body = reply.json()
        if not isinstance(body, dict):
            raise TypeError("no object")
        return cast(dict[str, Any], body)


def _read(reply: Reply) -> Any:
    """The body, None where it is no JSON."""
    try:
        return reply.json()
    except ProviderError:
        return None


def _code(reply: Reply) -> str | None:
    """Its own word for what is wrong."""
    code = at(_read(reply), "error")
    return code if isinstance(code, str) else None


def _id(value: Any) -> str | None:
    """An id of the form that documentation is asked for by."""
    return value if isinstance(value, str) and len(value) <= 200 and _ID.fullmatch(value) else None


def _version(library_id: str) -> str:
    """The version at the end of an id with what parts it, empty without one."""
    _, project, *version = library_id[1:].split("/")
    if version:
        return f"/{version[0]}"
    _, sign, after = project[1:].partition("@")
    return sign + after


def _project(library_id: str) -> str:
    """The name of a library, as its id has it."""
    project = library_id.split("/")[2]
    return project[:1].lstrip("@.") + project[1:].split("@")[0] or project


def _documented(row: Any) -> Documented:
    return Documented(
        id=row["id"],
        title=line(at(row, "title"), TITLE),
        description=line(at(row, "description"), DESCRIPTION),
        snippet_count=count(at(row, "totalSnippets")),  # -1 where it does not know
        version=next(filter(None, map(named, items(at(row, "versions"))[:1])), None),
        score=amount(at(row, "trustScore")),
    )


def read_snippets(body: Mapping[str, Any]) -> list[Snippet]:
    """All snippets of an answer, best first: code, with the best explanation right after the best code.

    TypeError where there are none that can be read; one of the two lists may be missing.
    """
    code, texts = body.get("codeSnippets"), body.get("infoSnippets")
    if code is None and texts is None:
        raise TypeError("no snippets of any kind")
    examples = [each for row in _listed(code) for each in _examples(row)]
    explained = [each for row in _listed(texts) if (each := _explanation(row))]
    if (code or texts) and not examples and not explained:
        raise TypeError("no snippet can be read")
    return [*examples[:1], *explained[:1], *examples[1:], *explained[1:]]


def _listed(value: Any) -> list[Any]:
    return [] if value is None else rows(value)[:MOST_SNIPPETS]


def _examples(row: Any) -> Iterator[Snippet]:
    """A piece of code, one snippet for each language that it is shown in; the first has the explanation."""
    shown: dict[str | None, list[str]] = {}
    for each in items(at(row, "codeList"))[:MOST_SNIPPETS]:
        if code := _text(at(each, "code")):
            language = line(at(each, "language"), _LANGUAGE) or line(at(row, "codeLanguage"), _LANGUAGE)
            shown.setdefault(language.lower() if language else None, []).append(code)
    title = line(at(row, "codeTitle"), TITLE) or line(at(row, "pageTitle"), TITLE)
    text = _text(at(row, "codeDescription"))
    for language, codes in shown.items():
        yield _snippet(title, at(row, "codeId"), "\n\n".join(codes), text, language)
        text = None
    if text:
        yield _snippet(title, at(row, "codeId"), None, text)


def _explanation(row: Any) -> Snippet | None:
    """An explanation; None where it says nothing."""
    text = _text(at(row, "content"))
    return _snippet(line(at(row, "breadcrumb"), TITLE), at(row, "pageId"), None, text) if text else None


def _snippet(
    title: str | None, source: Any, code: str | None, text: str | None, language: str | None = None
) -> Snippet:
    counted = tokens.snippet_tokens(code, text, title)
    return Snippet(title, address(source), language if code else None, code, text, counted)


def _text(value: Any) -> str | None:
    """A text of many lines; None for one that says nothing or is far too long."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return None
    return legible(value).strip("\n").rstrip() or None
