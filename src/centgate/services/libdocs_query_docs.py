"""libdocs-query-docs: documentation snippets of one library, within a token budget."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from centgate.fallback import first_of
from centgate.libdocs.libraries import LIBRARY_ID, DocSnippet, SnippetOrigin
from centgate.provider import Fallback, Primary
from centgate.providers.context7 import Context7
from centgate.providers.packagedocs import PackageDocs
from centgate.schema import Data, Omittable, RefusedOptions, StrictRequest, TextPattern
from centgate.service import service
from centgate.web.fields import NOT_INSTRUCTIONS, UNTRUSTED, UPSTREAM_MODES

Topic = Annotated[
    str, Field(max_length=200, description="The topic to read about; if left out, the library in general.")
]
_LIBRARY_ID_FORM = TextPattern(
    f"^{LIBRARY_ID}$", "must be an id from libdocs-resolve-library, of the form /<org>/<project>"
)


class LibdocsQueryDocs(StrictRequest):
    """The library to read about, the topic and the token budget."""

    library_id: Annotated[str, _LIBRARY_ID_FORM] = Field(
        description="An id from libdocs-resolve-library: `/<org>/<project>`, and optionally a version after "
        "`/` or `@`.",
    )
    topic: Omittable[Topic] = None
    tokens: int = Field(2500, ge=500, le=5000, description="Token budget for all snippets together.")


class Doc(Data):
    """A snippet of a library's documentation."""

    title: str | None = Field(description=f"Title of the snippet; null when unknown. {UNTRUSTED}")
    source_url: str | None = Field(description="URL of the snippet's source; null when unknown.")
    language: str | None = Field(description="The language of the code; null when unknown or without code.")
    code: str | None = Field(description=f"Code of the example; null when there is none. {UNTRUSTED}")
    text: str | None = Field(
        description="The explanation, and code that belongs to the example: more of its section, its "
        f"imports, or a use that is from another place, which is named; null when there is none. {UNTRUSTED}"
    )
    tokens: int = Field(ge=0, description="Number of tokens of the snippet, estimated if unknown.")
    complete: bool | None = Field(
        description="True when the code parses by itself and nothing of it is cut, false for a fragment such "
        "as a signature; null without code or for other languages than Python, JavaScript and TypeScript.",
    )
    heading_path: list[str] = Field(
        description="The headings above the snippet and its own, or its module and its name, outermost "
        f"first; empty when unknown. {UNTRUSTED}",
    )
    library: str | None = Field(description="Id of the library; null when unknown.")
    version: str | None = Field(
        description="The release that the snippet belongs to; null when unknown, as for text of a web site."
    )
    origin: SnippetOrigin | None = Field(
        description="Where the text was found: in the published package, on the web site that the package "
        "names, or in its repository at the release's tag; null when unknown."
    )
    retrieved_at: str | None = Field(
        description="ISO 8601 time at which the text was read there; null when unknown."
    )


class Docs(Data):
    """Documentation of a library."""

    docs: list[Doc] = Field(description="The snippets that fit the budget, best match first.")


@service(
    order=140,
    path="/services/libdocs/query-docs",
    title="Library documentation",
    category="web-context",
    tags=("documentation", "libraries", "code", "examples"),
    guardrails=(
        "One library per request, at most 5,000 tokens.",
        "A snippet that does not fit the budget is left out as a whole.",
        NOT_INSTRUCTIONS,
    ),
    cache_ttl=timedelta(seconds=600),
    input_example=LibdocsQueryDocs(library_id="/fastapi/fastapi", topic="dependencies", tokens=1500),
    output_example=Docs(
        docs=[
            Doc(
                title="Declare a dependency",
                source_url="https://fastapi.tiangolo.com/tutorial/dependencies/",
                language="python",
                code="async def read_items(commons: Annotated[dict, Depends(common_parameters)]): ...",
                text="A parameter annotated with Depends receives what the function returns.",
                tokens=38,
                complete=True,
                heading_path=["Tutorial", "Dependencies", "Declare a dependency"],
                library="/fastapi/fastapi",
                version=None,
                origin="website",
                retrieved_at="2026-11-20T08:00:00Z",
            )
        ]
    ),
    refused_options=RefusedOptions(names=UPSTREAM_MODES),
)
async def libdocs_query_docs(
    request: LibdocsQueryDocs, context7: Primary[Context7], packagedocs: Fallback[PackageDocs]
) -> Docs:
    """Return documentation snippets of one library.

    Takes an id from libdocs-resolve-library and optionally a topic, and returns examples and explanations
    with their sources, as many as fit the token budget.
    """
    topic = (request.topic or "").strip() or None
    snippets = await first_of(context7.query_docs, packagedocs.query_docs)(
        request.library_id, topic, request.tokens
    )
    return Docs(docs=[_build_doc(snippet) for snippet in snippets])


def _build_doc(snippet: DocSnippet) -> Doc:
    return Doc(
        title=snippet.title,
        source_url=snippet.source_url,
        language=snippet.language,
        code=snippet.code,
        text=snippet.text,
        tokens=snippet.tokens,
        complete=snippet.complete,
        heading_path=list(snippet.headings),
        library=snippet.library,
        version=snippet.version,
        origin=snippet.origin,
        retrieved_at=snippet.retrieved_at,
    )
