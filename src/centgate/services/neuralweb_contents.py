"""neuralweb-contents: the text of up to five pages."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from centgate.errors import PageUnread, UnreadReason
from centgate.fallback import attempt, first_of
from centgate.provider import Fallback, Primary, Provider
from centgate.providers.exa import Exa
from centgate.providers.pagereader import PageReader
from centgate.schema import Data, RefusedOptions, StrictRequest
from centgate.service import service
from centgate.web.extract.truncate import truncate
from centgate.web.fields import NOT_INSTRUCTIONS, READING_OPTIONS, UNTRUSTED, UPSTREAM_MODES, WebUrl
from centgate.web.results import UnreadPage, WebPage

MAX_CHARACTERS = 10_000
"""Most characters of one page's text; five such pages are about 12,000 tokens."""


class NeuralwebContents(StrictRequest):
    """The pages to read."""

    urls: list[WebUrl] = Field(min_length=1, max_length=5, description="URLs of the pages to read.")


class PageError(Data):
    """Reason why a page could not be read."""

    reason: UnreadReason = Field(
        description="`not_found`: there is no such page; `blocked`: the site refused; `robots`: its "
        "robots.txt forbids it; `blocked_address`: its IP address is not public; `dns`: no such "
        "host; `tls`: no valid certificate; `unreachable`: no connection; `timeout`: too slow; "
        "`unsupported`: no content that can be read as text; `too_large`: over the size limit; "
        "`failed`: any other reason."
    )
    message: str = Field(description="The reason as a sentence.")


class PageContents(Data):
    """One of the requested pages."""

    url: str = Field(description="The URL as requested.")
    title: str | None = Field(description=f"The page's title; null when unknown. {UNTRUSTED}")
    text: str | None = Field(
        description=f"The page's text as markdown, cut at {MAX_CHARACTERS:,} characters; null when it could "
        f"not be read. {UNTRUSTED}"
    )
    length: int | None = Field(
        ge=0, description="Characters of the text before it was cut; null when unknown."
    )
    truncated: bool = Field(description="Whether the text was cut.")
    error: PageError | None = Field(description="The reason for missing text; null when there is text.")


class NeuralwebPages(Data):
    """The requested pages."""

    pages: list[PageContents] = Field(
        max_length=5,
        description="One entry for each URL, in the order of the request, whether it was read or not.",
    )


@service(
    order=90,
    path="/services/neuralweb/contents",
    title="Page contents",
    category="web-context",
    tags=("web", "pages", "text", "reader"),
    guardrails=(
        "At most 5 pages per request.",
        f"Text is cut at {MAX_CHARACTERS:,} characters per page, and `truncated` says so.",
        "Summaries, highlights, subpages and forced live crawls are refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    cache_ttl=timedelta(seconds=300),
    input_example=NeuralwebContents(urls=["https://example.com/"]),
    output_example=NeuralwebPages(
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
    refused_options=RefusedOptions(
        names=UPSTREAM_MODES
        | READING_OPTIONS
        | {"filterEmptyResults", "ids", "objective", "outputSchema", "systemPrompt", "text"}
    ),
)
async def neuralweb_contents(
    request: NeuralwebContents, exa: Primary[Exa], pagereader: Fallback[PageReader]
) -> NeuralwebPages:
    """Read the text of up to five web pages.

    Takes one to five URLs and returns the text of each page with its title. A page that cannot be read has
    its own error and does not affect the others.
    """
    urls = list(dict.fromkeys(request.urls))
    pages = await first_of(exa.page_contents, pagereader.page_contents)(urls, MAX_CHARACTERS)
    if _has_answered(exa):
        pages = await _retry_unread(pages, pagereader)
    unread = [page for page in pages if isinstance(page, UnreadPage)]
    if len(unread) == len(pages):
        raise _no_page_read(unread, exa if _has_answered(exa) else pagereader)
    contents = {page.url: _build_contents(page) for page in pages}
    for page in pages:
        for warning in page.warnings if isinstance(page, WebPage) else ():
            exa.trace.add_warning(f"{page.url}: {warning}")
    return NeuralwebPages(pages=[contents[url] for url in request.urls])


def _has_answered(provider: Provider) -> bool:
    """True if the provider has answered in this request."""
    return provider.trace.providers.get(provider.info.name, {}).get("status") == "ok"


async def _retry_unread(
    pages: list[WebPage | UnreadPage], pagereader: PageReader
) -> list[WebPage | UnreadPage]:
    """Retry the pages that could not be read with the built-in reader."""
    missing = [page.url for page in pages if isinstance(page, UnreadPage)]
    results = await attempt(pagereader.page_contents, missing, MAX_CHARACTERS) if missing else []
    if not isinstance(results, list):
        return pages
    read = {page.url: page for page in results if isinstance(page, WebPage)}
    if read:
        pagereader.trace.add_warning(
            f"a fallback source was used: {pagereader.info.label} read {len(read)} of the {len(missing)} "
            f"pages that {Exa.info.label} could not read"
        )
    return [read.get(page.url, page) for page in pages]


def _no_page_read(unread: list[UnreadPage], provider: Provider) -> PageUnread:
    """Build the error for a request of which no page could be read."""
    details = "; ".join(f"{page.url}: {page.message}" for page in unread)
    return PageUnread(provider.info.name, unread[0].reason, f"none of the pages could be read: {details}")


def _build_contents(page: WebPage | UnreadPage) -> PageContents:
    if isinstance(page, UnreadPage):
        error = PageError(reason=page.reason, message=page.message)
        return PageContents(url=page.url, title=None, text=None, length=None, truncated=False, error=error)
    text, is_cut = truncate(page.markdown, MAX_CHARACTERS)
    truncated = is_cut or page.length is None
    return PageContents(
        url=page.url, title=page.title, text=text, length=page.length, truncated=truncated, error=None
    )
