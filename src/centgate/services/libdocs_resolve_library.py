"""A library's name resolved to documentation ids."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from centgate.facts.libraries import Documented
from centgate.provider import Leg
from centgate.providers.context7 import Context7
from centgate.providers.packagedocs import PackageDocs
from centgate.schema import Beyond, Data, StrictRequest
from centgate.service import service
from centgate.sources import first_of
from centgate.web import MODES, NOT_INSTRUCTIONS, SOMETHING, UNTRUSTED

MOST_LIBRARIES = 5


class LibdocsResolveLibrary(StrictRequest):
    """The library to find."""

    library_name: str = Field(
        min_length=1,
        max_length=200,
        pattern=SOMETHING,
        description="The library's name, as its users write it.",
    )


class Library(Data):
    """A library with documentation."""

    id: str = Field(description="The id to send to libdocs-query-docs, of the form `/<org>/<project>`.")
    title: str | None = Field(description=f"The library's name; null when unknown. {UNTRUSTED}")
    description: str | None = Field(description=f"What the library is for; null when unknown. {UNTRUSTED}")
    snippet_count: int | None = Field(
        ge=0, description="How many documentation snippets there are; null when unknown."
    )
    version: str | None = Field(description="The newest version that is documented; null when unknown.")
    score: float | None = Field(
        description="How well the library matches or how far it is trusted, higher is better; comparable "
        "within one answer only. Null when the source gives none."
    )


class Libraries(Data):
    """Libraries that a name may mean."""

    libraries: list[Library] = Field(
        max_length=MOST_LIBRARIES, description="The candidates, best match first."
    )


@service(
    order=130,
    path="/services/libdocs/resolve-library",
    title="Library resolver",
    category="web-context",
    tags=("documentation", "libraries", "packages", "code"),
    guardrails=(
        f"One name a request, at most {MOST_LIBRARIES} candidates.",
        NOT_INSTRUCTIONS,
    ),
    fresh_for=timedelta(seconds=600),
    example=LibdocsResolveLibrary(library_name="fastapi"),
    sample=Libraries(
        libraries=[
            Library(
                id="/fastapi/fastapi",
                title="FastAPI",
                description="A web framework for building APIs with Python.",
                snippet_count=631,
                version="0.165.0",
                score=9.6,
            )
        ]
    ),
    beyond=Beyond(names=MODES),
)
async def libdocs_resolve_library(
    request: LibdocsResolveLibrary, context7: Leg[Context7], packagedocs: Leg[PackageDocs]
) -> Libraries:
    """Resolve a library's name to the ids of its documentation.

    Takes a name such as fastapi and returns up to five libraries it may mean, each with the id that
    libdocs-query-docs asks for and the number of snippets its documentation has.
    """
    found = await first_of(context7.libraries, packagedocs.libraries)(request.library_name)
    return Libraries(libraries=[_library(each) for each in found[:MOST_LIBRARIES]])


def _library(found: Documented) -> Library:
    return Library(
        id=found.id,
        title=found.title,
        description=found.description,
        snippet_count=found.snippet_count,
        version=found.version,
        score=found.score,
    )
