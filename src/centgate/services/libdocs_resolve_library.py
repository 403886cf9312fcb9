"""libdocs-resolve-library: resolve a library's name to documentation ids."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from centgate.fallback import first_of
from centgate.libdocs.libraries import DocumentedLibrary
from centgate.provider import Fallback, Primary
from centgate.providers.context7 import Context7
from centgate.providers.packagedocs import PackageDocs
from centgate.schema import NON_BLANK, Data, RefusedOptions, StrictRequest
from centgate.service import service
from centgate.web.fields import NOT_INSTRUCTIONS, UNTRUSTED, UPSTREAM_MODES

MAX_LIBRARIES = 5


class LibdocsResolveLibrary(StrictRequest):
    """The library to find."""

    library_name: Annotated[str, Field(min_length=1, max_length=200), NON_BLANK] = Field(
        description="The library's name, as users write it."
    )


class Library(Data):
    """A library with documentation."""

    id: str = Field(description="The id to send to libdocs-query-docs, of the form `/<org>/<project>`.")
    title: str | None = Field(description=f"The library's name; null when unknown. {UNTRUSTED}")
    description: str | None = Field(description=f"Purpose of the library; null when unknown. {UNTRUSTED}")
    snippet_count: int | None = Field(
        ge=0, description="Number of documentation snippets; null when unknown."
    )
    version: str | None = Field(description="Newest documented version; null when unknown.")
    score: float | None = Field(
        description="How well the library matches or how trusted it is, higher is better; comparable only "
        "within one answer. Null when the source gives none."
    )


class Libraries(Data):
    """Libraries that match a name."""

    libraries: list[Library] = Field(
        max_length=MAX_LIBRARIES, description="The candidates, best match first."
    )


@service(
    order=130,
    path="/services/libdocs/resolve-library",
    title="Library resolver",
    category="web-context",
    tags=("documentation", "libraries", "packages", "code"),
    guardrails=(
        f"One name per request, at most {MAX_LIBRARIES} candidates.",
        "A warning names the registries that were searched if no candidate looks like a well-known library; "
        "one of that name in another ecosystem would not be found.",
        NOT_INSTRUCTIONS,
    ),
    cache_ttl=timedelta(seconds=600),
    input_example=LibdocsResolveLibrary(library_name="fastapi"),
    output_example=Libraries(
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
    refused_options=RefusedOptions(names=UPSTREAM_MODES),
)
async def libdocs_resolve_library(
    request: LibdocsResolveLibrary, context7: Primary[Context7], packagedocs: Fallback[PackageDocs]
) -> Libraries:
    """Resolve a library's name to the ids of its documentation.

    Takes a name such as fastapi and returns up to five matching libraries, each with the id for
    libdocs-query-docs and the number of snippets in its documentation.
    """
    libraries = await first_of(context7.find_libraries, packagedocs.find_libraries)(request.library_name)
    return Libraries(libraries=[_build_library(each) for each in libraries[:MAX_LIBRARIES]])


def _build_library(library: DocumentedLibrary) -> Library:
    return Library(
        id=library.id,
        title=library.title,
        description=library.description,
        snippet_count=library.snippet_count,
        version=library.version,
        score=library.score,
    )
