"""The text of up to five pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from centgate.errors import ProviderUnconfigured
from centgate.provider import Fallback, Primary
from centgate.providers.exa import Exa
from centgate.providers.pagereader import PageReader
from centgate.schema import Beyond, Data, StrictRequest
from centgate.service import service
from centgate.web import MODES, NOT_INSTRUCTIONS, READING, UNTRUSTED, WebUrl

Reason = Literal["not_found", "blocked", "timeout", "unreachable", "unsupported", "too_large", "failed"]


class NeuralwebContents(StrictRequest):
    """The pages to read."""

    urls: list[WebUrl] = Field(min_length=1, max_length=5, description="The addresses of the pages to read.")


class PageError(Data):
    """Why a page could not be read."""

    reason: Reason = Field(
        description="`not_found`: there is no such page; `blocked`: the site refused; `timeout`: too slow; "
        "`unreachable`: no connection; `unsupported`: nothing that can be read as text; `too_large`: "
        "beyond what is read; `failed`: anything else."
    )
    message: str = Field(description="The same as a sentence.")


class PageContents(Data):
    """One of the pages asked for."""

    url: str = Field(description="The address, as it was asked for.")
    title: str | None = Field(description=f"The page's title; null when unknown. {UNTRUSTED}")
    text: str | None = Field(
        description=f"The page's text, cut where it is too long; null when it could not be read. {UNTRUSTED}"
    )
    length: int | None = Field(
        ge=0, description="How many characters the text had before it was cut; null when unknown."
    )
    truncated: bool = Field(description="Whether the text was cut.")
    error: PageError | None = Field(description="Why there is no text; null when there is.")


class NeuralwebPages(Data):
    """The pages asked for."""

    pages: list[PageContents] = Field(
        max_length=5,
        description="One entry for each address, in the order asked, whether it was read or not.",
    )


@service(
    order=90,
    path="/services/neuralweb/contents",
    title="Page contents",
    category="web-context",
    tags=("web", "pages", "text", "reader"),
    guardrails=(
        "At most 5 pages a request.",
        "Long text is cut per page, and the page says so.",
        "Summaries, highlights, subpages and forced live crawls are refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    fresh_for=timedelta(seconds=300),
    example=NeuralwebContents(urls=["https://example.com/"]),
    sample=NeuralwebPages(
        pages=[
            PageContents(
                url="https://example.com/",
                title="Example Domain",
                text="Example Domain\n\nThis domain is for use in documentation examples.",
                length=65,
                truncated=False,
                error=None,
            )
        ]
    ),
    beyond=Beyond(
        names=MODES
        | READING
        | {"filterEmptyResults", "ids", "objective", "outputSchema", "systemPrompt", "text"}
    ),
)
async def neuralweb_contents(
    request: NeuralwebContents, exa: Primary[Exa], pagereader: Fallback[PageReader]
) -> NeuralwebPages:
    """Read the text of up to five web pages.

    Takes one to five addresses and returns each page's parsed text with its title. A page that cannot be read
    has its own error and does not spoil the others.
    """
    raise ProviderUnconfigured(exa.about.name, "this build has no adapter for exa")
