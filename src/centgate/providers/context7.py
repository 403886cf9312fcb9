"""Context7: documentation of software libraries."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from centgate.coercion import as_amount, as_count, as_list, get_path
from centgate.coercion import as_clean_name as clean_name
from centgate.errors import NoData, ProviderError
from centgate.libdocs import token_count
from centgate.libdocs.libraries import LIBRARY_ID, DocSnippet, DocumentedLibrary
from centgate.provider import MEGABYTE, Provider, ProviderInfo, instrumented
from centgate.sanitize import clean_line, strip_invisible
from centgate.upstream import UpstreamResponse
from centgate.web.search_results import (
    MAX_DESCRIPTION_LENGTH,
    MAX_TITLE_LENGTH,
    parse_line,
    parse_rows,
    parse_url,
)

MAX_LIBRARIES = 5
MAX_SNIPPETS = 50
"""Snippets of each kind that are read."""
MAX_TEXT_LENGTH = 40_000
"""Characters; a longer text fits no token budget and is skipped."""
MAX_QUERY_LENGTH = 500

_LIBRARY_ID = re.compile(LIBRARY_ID)
_MAX_LANGUAGE_LENGTH = 40
_REDIRECTS = (301, 302, 307, 308)
_MEANINGFUL = (*_REDIRECTS, 400, 404, 422)
"""Statuses whose body explains the error."""
MAX_VERSIONS = 1_000
_RELEASE = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})")
_TAGS = re.compile(r"available (?:tags|versions): *(.+)", re.IGNORECASE | re.DOTALL)
_MAX_TAGS_LENGTH = 300


class Context7(Provider):
    """Library names resolved to ids, and snippets of their documentation.

    Calls within the quota of a plan are free; there is no price per call.
    """

    info = ProviderInfo(
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
    def is_configured(self) -> bool:
        """True with a key, or with a URL in the settings, which allows calls without one."""
        return self.settings.enabled and (self.settings.key is not None or self.settings.url is not None)

    @instrumented
    async def find_libraries(self, name: str) -> list[DocumentedLibrary]:
        """Return at most five libraries that match a name, best first; NoData if nothing matches."""
        query = name.strip()[:MAX_QUERY_LENGTH]
        reply = await self._get("/api/v2/libs/search", {"libraryName": query, "query": query}, accept=(404,))
        quoted = f"'{clean_line(query, 100)}'"
        if _error_code(reply) == "no_libraries_found":
            raise self.no_data(f"no library by the name {quoted}")
        results = parse_rows(self._parse_body(reply)["results"])
        readable = [row for row in results if _parse_id(get_path(row, "id"))]
        if results and not readable:
            raise self.invalid_response("returned libraries that cannot be parsed")
        ready = [row for row in readable if get_path(row, "state") in ("finalized", None)]
        if not ready:
            raise self.no_data(f"no library by the name {quoted} whose documentation is ready")
        by_id: dict[str, DocumentedLibrary] = {}
        for library in map(_parse_library, ready):
            by_id.setdefault(library.id, library)
        return [*by_id.values()][:MAX_LIBRARIES]

    @instrumented
    async def query_docs(self, library_id: str, topic: str | None, budget: int) -> list[DocSnippet]:
        """Return snippets of a library for a topic that fit a token budget together.

        The API has no budget, so whole snippets are left out here: code first, the best explanation right
        after the best code. NoData for an unknown library or version, or if nothing fits.
        """
        body = await self._fetch_documentation(library_id, topic or _project_name(library_id))
        snippets = parse_snippets(body)
        if not snippets:
            raise self.no_data(f"no documentation of {library_id} on that topic")
        fitting = token_count.select_fitting(snippets, budget)
        if not fitting:
            raise self.no_data(f"no documentation of {library_id} on that topic within {budget} tokens")
        version = _version_suffix(library_id)[1:] or None
        return [replace(each, library=library_id, version=version) for each in fitting]

    async def _fetch_documentation(self, library_id: str, query: str) -> dict[str, Any]:
        """Fetch the documentation of a library id; follow one redirect to a new id."""
        params = {"libraryId": library_id, "query": query[:MAX_QUERY_LENGTH], "type": "json"}
        reply = await self._get("/api/v2/context", params, accept=_MEANINGFUL)
        if target := self._new_library_id(reply, library_id):
            reply = await self._get("/api/v2/context", params | {"libraryId": target}, accept=_MEANINGFUL)
            if self._new_library_id(reply, target):
                raise self.invalid_response(f"redirects more than once for {library_id}")
            self.trace.add_warning(f"{self.info.label} has moved {library_id} to the id {target}")
            library_id = target
        if error := self._parse_error(reply, library_id):
            raise error
        return self._parse_body(reply)

    def _new_library_id(self, reply: UpstreamResponse, library_id: str) -> str | None:
        """Return the new id of a moved library, from the body; the requested version is kept."""
        if reply.status not in _REDIRECTS and _error_code(reply) != "library_redirected":
            return None
        redirect_url = get_path(_json_or_none(reply), "redirectUrl")
        target = _parse_id(
            redirect_url.removeprefix("https://context7.com") if isinstance(redirect_url, str) else None
        )
        if target is None:
            raise self.invalid_response(f"reports that {library_id} has moved, without its new id")
        version = _version_suffix(library_id)
        return target + version if version and not _version_suffix(target) else target

    def _parse_error(self, reply: UpstreamResponse, library_id: str) -> NoData | ProviderError | None:
        """Map the error code of a reply to an error; None for documentation."""
        match _error_code(reply):
            case "library_not_finalized":
                return self.invalid_response(f"is still indexing {library_id}; try again later")
            case "library_not_found" | "invalid_library_id":
                return self.no_data(f"no library {library_id}")
            case "tag_not_found":
                return self.no_data(f"no such version of {library_id}" + self._available_tags(reply))
            case "no_snippets_found" | "no_code_found":
                return self.no_data(f"no documentation of {library_id}")
            case "library_too_large":
                return self.no_data(f"no documentation of {library_id}, which is too large to index")
            case _:
                return None

    def _available_tags(self, reply: UpstreamResponse) -> str:
        """Return a clause with the available versions, if the message lists them."""
        message = get_path(_json_or_none(reply), "message")
        match = _TAGS.search(message[:5000]) if isinstance(message, str) else None
        tags = clean_line(self._redact_key(match[1]), _MAX_TAGS_LENGTH) if match else None
        return f"; it has {tags}" if tags else ""

    async def _get(
        self, path: str, params: Mapping[str, str], *, accept: Collection[int]
    ) -> UpstreamResponse:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else None
        return await self.upstream.get(self.url(path), params=params, headers=headers, accept=accept)

    def _parse_body(self, reply: UpstreamResponse) -> dict[str, Any]:
        """Return the body of a response; status 202 means that it is not ready."""
        if reply.status != 200:
            raise self.upstream.error_for_status(reply)
        return reply.parse_object()


def _json_or_none(reply: UpstreamResponse) -> Any:
    """Return the body, None if it is not JSON."""
    try:
        return reply.parse_json()
    except ProviderError:
        return None


def _error_code(reply: UpstreamResponse) -> str | None:
    """Return Context7's own error code."""
    code = get_path(_json_or_none(reply), "error")
    return code if isinstance(code, str) else None


def _parse_id(value: Any) -> str | None:
    """Return a valid library id, or None."""
    return value if isinstance(value, str) and len(value) <= 200 and _LIBRARY_ID.fullmatch(value) else None


def _version_suffix(library_id: str) -> str:
    """Return the version at the end of an id with its separator; empty without a version."""
    _, project, *version = library_id[1:].split("/")
    if version:
        return f"/{version[0]}"
    _, separator, version_part = project[1:].partition("@")
    return separator + version_part


def _project_name(library_id: str) -> str:
    """Return the project name in a library id."""
    project = library_id.split("/")[2]
    return project[:1].lstrip("@.") + project[1:].split("@")[0] or project


def _parse_library(row: Any) -> DocumentedLibrary:
    return DocumentedLibrary(
        id=row["id"],
        title=parse_line(get_path(row, "title"), MAX_TITLE_LENGTH),
        description=parse_line(get_path(row, "description"), MAX_DESCRIPTION_LENGTH),
        snippet_count=as_count(get_path(row, "totalSnippets")),  # -1 if unknown
        version=_find_newest_release(as_list(get_path(row, "versions"))[:MAX_VERSIONS]),
        score=as_amount(get_path(row, "trustScore")),
    )


def _find_newest_release(versions: Iterable[Any]) -> str | None:
    """Return the newest release of an unordered list, which also has branches and pre-releases; else None."""
    releases = {
        tuple(map(int, match[1].split("."))): name
        for name in map(clean_name, versions)
        if name and (match := _RELEASE.fullmatch(name))
    }
    return releases[max(releases)] if releases else None


def parse_snippets(body: Mapping[str, Any]) -> list[DocSnippet]:
    """Parse all snippets, best first: code, with the best explanation right after the best code.

    One of the two lists may be missing. TypeError if both are, or if no snippet can be parsed.
    """
    code, texts = body.get("codeSnippets"), body.get("infoSnippets")
    if code is None and texts is None:
        raise TypeError("no list of snippets")
    examples = [each for row in _snippet_rows(code) for each in _parse_examples(row)]
    explanations = [each for row in _snippet_rows(texts) if (each := _parse_explanation(row))]
    if (code or texts) and not examples and not explanations:
        raise TypeError("no snippet can be parsed")
    return [*examples[:1], *explanations[:1], *examples[1:], *explanations[1:]]


def _snippet_rows(value: Any) -> list[Any]:
    return [] if value is None else parse_rows(value)[:MAX_SNIPPETS]


def _parse_examples(row: Any) -> Iterator[DocSnippet]:
    """Yield one snippet for each language of an example; the first has the explanation."""
    codes_by_language: dict[str | None, list[str]] = {}
    for each in as_list(get_path(row, "codeList"))[:MAX_SNIPPETS]:
        if code := _parse_text(get_path(each, "code")):
            language = parse_line(get_path(each, "language"), _MAX_LANGUAGE_LENGTH) or parse_line(
                get_path(row, "codeLanguage"), _MAX_LANGUAGE_LENGTH
            )
            codes_by_language.setdefault(language.lower() if language else None, []).append(code)
    title = parse_line(get_path(row, "codeTitle"), MAX_TITLE_LENGTH) or parse_line(
        get_path(row, "pageTitle"), MAX_TITLE_LENGTH
    )
    page = parse_line(get_path(row, "pageTitle"), MAX_TITLE_LENGTH)
    headings = tuple(dict.fromkeys(filter(None, (page, title))))
    text = _parse_text(get_path(row, "codeDescription"))
    for language, codes in codes_by_language.items():
        yield _build_snippet(title, get_path(row, "codeId"), "\n\n".join(codes), text, language, headings)
        text = None
    if text:
        yield _build_snippet(title, get_path(row, "codeId"), None, text, None, headings)


def _parse_explanation(row: Any) -> DocSnippet | None:
    """Parse an explanation; None if it is empty."""
    text = _parse_text(get_path(row, "content"))
    if text is None:
        return None
    breadcrumb = parse_line(get_path(row, "breadcrumb"), MAX_TITLE_LENGTH)
    headings = tuple(filter(None, (breadcrumb or "").split(" > ")))
    return _build_snippet(breadcrumb, get_path(row, "pageId"), None, text, None, headings)


def _build_snippet(
    title: str | None,
    source: Any,
    code: str | None,
    text: str | None,
    language: str | None,
    headings: tuple[str, ...],
) -> DocSnippet:
    tokens = token_count.snippet_tokens(code, text, title)
    return DocSnippet(
        title, parse_url(source), language if code else None, code, text, tokens, headings=headings
    )


def _parse_text(value: Any) -> str | None:
    """Return a text of many lines; None if it is empty or far too long."""
    if not isinstance(value, str) or len(value) > MAX_TEXT_LENGTH:
        return None
    return strip_invisible(value).strip("\n").rstrip() or None
