"""neuralweb-contents: the text of up to five pages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial

from msgspec.structs import replace
from pydantic import Field

from centgate.errors import PageUnread, UnreadReason
from centgate.fallback import attempt, first_of
from centgate.provider import Fallback, Primary, Provider
from centgate.providers.exa import Exa
from centgate.providers.pagereader import PageReader
from centgate.schema import Data, RefusedOptions
from centgate.service import service
from centgate.web import page_fields
from centgate.web.extract.parts import EMPTY_PART, PagePart, describe_missing_part
from centgate.web.fields import (
    NOT_INSTRUCTIONS,
    READING_OPTIONS,
    UNTRUSTED,
    UPSTREAM_MODES,
    ListedLink,
    PagedRequest,
    PageOffset,
    WebUrl,
)
from centgate.web.results import UnreadPage, WebPage

MAX_CHARACTERS = 10_000
"""Most characters of one page's text; five such pages are about 12,000 tokens."""
READ_CHARACTERS = 10 * MAX_CHARACTERS
"""Characters that a search engine is asked for: offsets need the text before them."""


class NeuralwebContents(PagedRequest):
    """The pages to read."""

    urls: list[WebUrl] = Field(min_length=1, max_length=5, description="URLs of the pages to read.")
    offset: PageOffset = 0


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
        description=f"The page's text as markdown from `offset` on, at most {MAX_CHARACTERS:,} characters; "
        "null when it could not be read. In a page that is longer, numbers stand for addresses: see "
        f"`links`. {UNTRUSTED}"
    )
    length: int | None = Field(
        ge=0, description="Characters of the text before it was cut; null when unknown."
    )
    truncated: bool = Field(description="Whether the page goes on after this part.")
    error: PageError | None = Field(description="The reason for missing text; null when there is text.")
    next_offset: page_fields.NextOffset
    content_hash: str | None = Field(
        description="SHA-256 of the whole page's text, hexadecimal: another one means that the page has "
        "changed. Null when only a part was read."
    )
    status: page_fields.ResponseStatus
    final_url: page_fields.FinalUrl
    language: page_fields.DeclaredLanguage
    author: page_fields.DeclaredAuthor
    published_date: page_fields.PublicationTime
    site_name: page_fields.DeclaredSiteName
    image: page_fields.DeclaredPicture
    keywords: page_fields.Keywords
    links: page_fields.ListedLinks


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
        f"Text is cut at {MAX_CHARACTERS:,} characters per page, and `truncated` says so; `offset` continues "
        "it.",
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
                next_offset=None,
                content_hash="7971cfa5117fe4daad07619c805c9a09815e4239ee784e66ebcf576d84bf579a",
                status=200,
                final_url="https://example.com/",
                language="en",
                author=None,
                published_date=None,
                site_name=None,
                image=None,
                keywords=[],
                links=[],
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
    pages = await first_of(exa.page_contents, partial(_read_any, pagereader))(urls, READ_CHARACTERS)
    if _has_answered(exa):
        pages = await _retry_unread(pages, pagereader)
    parts = await asyncio.gather(*(_take_part(page, pagereader, request.offset) for page in pages))
    unread = [each for each in parts if isinstance(each, UnreadPage)]
    if len(unread) == len(pages):
        raise _no_page_read(unread, exa if _has_answered(exa) else pagereader)
    exa.trace.is_provisional |= any(each.may_be_read_soon for each in unread)
    contents = {page.url: _build_contents(page, part) for page, part in zip(pages, parts, strict=True)}
    for page, part in zip(pages, parts, strict=True):
        for warning in _list_warnings(page, part, request.offset):
            exa.trace.add_warning(f"{page.url}: {warning}")
    return NeuralwebPages(pages=[contents[url] for url in request.urls])


async def _read_any(
    pagereader: PageReader, urls: Sequence[str], max_characters: int
) -> list[WebPage | UnreadPage]:
    """Read pages with the built-in reader. Raises PageUnread if none could be read: a failure of the primary
    source, which may read them later, then comes first.
    """
    pages = await pagereader.page_contents(urls, max_characters)
    unread = [each for each in pages if isinstance(each, UnreadPage)]
    if len(unread) == len(pages):
        raise _no_page_read(unread, pagereader)
    return pages


def _has_answered(provider: Provider) -> bool:
    """True if the provider has answered in this request."""
    return provider.trace.status_of(provider.info.name) == "ok"


async def _retry_unread(
    pages: list[WebPage | UnreadPage], pagereader: PageReader
) -> list[WebPage | UnreadPage]:
    """Retry the pages that could not be read with the built-in reader.

    If that cannot read one either, the first failure stays, with the response that the built-in reader got.
    """
    missing = [page.url for page in pages if isinstance(page, UnreadPage)]
    results = await attempt(pagereader.page_contents, missing, READ_CHARACTERS) if missing else []
    if not isinstance(results, list):
        return pages
    read = {page.url: page for page in results if isinstance(page, WebPage)}
    if read:
        pagereader.trace.add_warning(
            f"a fallback source was used: {pagereader.info.label} read {len(read)} of the {len(missing)} "
            f"pages that {Exa.info.label} could not read"
        )
    unread = {page.url: page for page in results if isinstance(page, UnreadPage)}
    return [read.get(page.url) or _with_response(page, unread.get(page.url)) for page in pages]


def _with_response(page: WebPage | UnreadPage, retried: UnreadPage | None) -> WebPage | UnreadPage:
    """Return a page that was not read with the response that another reader got instead of it."""
    if retried is None or not isinstance(page, UnreadPage):
        return page
    return replace(page, status=retried.status, final_url=retried.final_url)


def _no_page_read(unread: list[UnreadPage], provider: Provider) -> PageUnread:
    """Build the error for a request of which no page could be read."""
    details = "; ".join(f"{page.url}: {page.message}" for page in unread)
    return PageUnread(provider.info.name, unread[0].reason, f"none of the pages could be read: {details}")


async def _take_part(
    page: WebPage | UnreadPage, pagereader: PageReader, offset: int
) -> PagePart | UnreadPage:
    """Return the part of a page that the response has, or the reason why there is none."""
    if isinstance(page, UnreadPage):
        return page
    try:
        return await pagereader.take_part(page, offset, MAX_CHARACTERS)
    except PageUnread as failure:
        return UnreadPage(page.url, failure.reason, failure.message)


def _list_warnings(page: WebPage | UnreadPage, part: PagePart | UnreadPage, offset: int) -> Iterator[str]:
    if isinstance(page, WebPage):
        yield from page.warnings
    if isinstance(part, UnreadPage):
        yield f"not read: {part.message}"
    elif isinstance(page, WebPage) and (missing := describe_missing_part(page, part, offset)):
        yield missing


def _build_empty_page(unread: UnreadPage) -> WebPage:
    """Return a page without text, of which only the site's response is known."""
    return WebPage(unread.url, markdown="", length=0, status=unread.status, final_url=unread.final_url)


def _build_contents(page: WebPage | UnreadPage, part: PagePart | UnreadPage) -> PageContents:
    read = page if isinstance(page, WebPage) else _build_empty_page(page)
    error = None
    if isinstance(part, UnreadPage):
        error = PageError(reason=part.reason, message=part.message)
        part = EMPTY_PART
    return PageContents(
        url=read.url,
        title=read.title,
        text=None if error else part.text,
        length=part.length,
        truncated=part.truncated,
        error=error,
        next_offset=part.next_offset,
        content_hash=part.content_hash,
        status=read.status,
        final_url=read.final_url,
        language=read.language,
        author=read.author,
        published_date=read.published,
        site_name=read.site_name,
        image=read.image,
        keywords=list(read.keywords),
        links=[ListedLink.from_link(link) for link in part.links],
    )
