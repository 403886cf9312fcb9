"""Documentation snippets of one library, within a token budget."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from centgate.facts.libraries import Snippet
from centgate.provider import Leg
from centgate.providers.context7 import Context7
from centgate.providers.packagedocs import PackageDocs
from centgate.schema import Beyond, Data, Omittable, StrictRequest
from centgate.service import service
from centgate.sources import first_of
from centgate.web import MODES, NOT_INSTRUCTIONS, UNTRUSTED

Topic = Annotated[
    str, Field(max_length=200, description="What to read about; the library in general when left out.")
]


class LibdocsQueryDocs(StrictRequest):
    """The library to read about, and how much of it."""

    library_id: str = Field(
        # no segment of dots alone, so that an id is never a way up in somebody's path
        pattern=r"^(/\.?[A-Za-z0-9_@-][A-Za-z0-9._@~+-]*){2,3}$",
        description="An id from libdocs-resolve-library: `/<org>/<project>`, and optionally a version after "
        "`/` or `@`.",
    )
    topic: Omittable[Topic] = None
    tokens: int = Field(2500, ge=500, le=5000, description="How many tokens the snippets may have together.")


class Doc(Data):
    """A piece of a library's documentation."""

    title: str | None = Field(description=f"What the snippet is about; null when unknown. {UNTRUSTED}")
    source_url: str | None = Field(description="Where the snippet comes from; null when unknown.")
    language: str | None = Field(description="The language of the code; null when unknown or without code.")
    code: str | None = Field(description=f"The example's code; null when there is none. {UNTRUSTED}")
    text: str | None = Field(description=f"The explanation; null when there is none. {UNTRUSTED}")
    tokens: int = Field(ge=0, description="How many tokens the snippet has, estimated where unknown.")


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
        "One library a request, at most 5,000 tokens.",
        "Snippets are left out whole when they do not fit the budget.",
        NOT_INSTRUCTIONS,
    ),
    fresh_for=timedelta(seconds=600),
    example=LibdocsQueryDocs(library_id="/fastapi/fastapi", topic="dependencies", tokens=1500),
    sample=Docs(
        docs=[
            Doc(
                title="Declare a dependency",
                source_url="https://fastapi.tiangolo.com/tutorial/dependencies/",
                language="python",
                code="async def read_items(commons: Annotated[dict, Depends(common_parameters)]): ...",
                text="A parameter annotated with Depends receives what the function returns.",
                tokens=38,
            )
        ]
    ),
    beyond=Beyond(names=MODES),
)
async def libdocs_query_docs(
    request: LibdocsQueryDocs, context7: Leg[Context7], packagedocs: Leg[PackageDocs]
) -> Docs:
    """Get documentation snippets of one library.

    Takes an id from libdocs-resolve-library, optionally a topic, and returns examples and explanations with
    their sources, as many as fit the token budget.
    """
    topic = (request.topic or "").strip() or None
    snippets = await first_of(context7.docs, packagedocs.docs)(request.library_id, topic, request.tokens)
    return Docs(docs=[_doc(snippet) for snippet in snippets])


def _doc(snippet: Snippet) -> Doc:
    return Doc(
        title=snippet.title,
        source_url=snippet.source_url,
        language=snippet.language,
        code=snippet.code,
        text=snippet.text,
        tokens=snippet.tokens,
    )
