"""crawler-scrape: the main content of one page as markdown."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from centgate.fallback import first_of
from centgate.provider import Fallback, Primary
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.pagereader import PageReader
from centgate.schema import Data, RefusedOptions
from centgate.service import service
from centgate.web import page_fields
from centgate.web.extract.parts import PagePart, describe_missing_part
from centgate.web.fields import (
    NOT_INSTRUCTIONS,
    SCRAPING_OPTIONS,
    UNTRUSTED,
    UPSTREAM_MODES,
    ListedLink,
    PagedRequest,
    PageOffset,
    WebUrl,
)
from centgate.web.results import WebPage

MAX_CHARACTERS = 20_000


class CrawlerScrape(PagedRequest):
    """The page to read."""

    url: WebUrl = Field(description="The page's URL.")
    only_main_content: bool = Field(
        default=True,
        description="Leave out menus, headers, footers and similar parts; false keeps the whole page.",
    )
    offset: PageOffset = 0


class PageMetadata(Data):
    """Metadata of a page."""

    title: str | None = Field(description=f"The page's title; null when it has none. {UNTRUSTED}")
    description: str | None = Field(
        description=f"The page's own description; null when it has none. {UNTRUSTED}"
    )
    language: page_fields.DeclaredLanguage
    canonical: str | None = Field(
        description="The canonical URL that the page declares; null when it declares none."
    )
    author: page_fields.DeclaredAuthor
    published_date: page_fields.PublicationTime
    modified_date: str | None = Field(
        description="Time of the last change, ISO 8601, as precise as the source gives it, and in UTC if it "
        "gives a zone; null when unknown."
    )
    status: page_fields.ResponseStatus
    content_type: str | None = Field(description="Content type of the site's response; null when unknown.")
    final_url: page_fields.FinalUrl
    length: int | None = Field(
        ge=0, description="Characters of the markdown before it was cut; null when unknown."
    )
    truncated: bool = Field(description="Whether the page goes on after this part.")
    next_offset: page_fields.NextOffset
    content_hash: str | None = Field(
        description="SHA-256 of the whole page's markdown, hexadecimal: another one means that the page has "
        "changed. Null when only a part was read."
    )
    site_name: page_fields.DeclaredSiteName
    image: page_fields.DeclaredPicture
    keywords: page_fields.Keywords
    links: page_fields.ListedLinks


class ScrapedPage(Data):
    """A page as markdown."""

    markdown: str = Field(
        max_length=MAX_CHARACTERS,
        description=f"The page's content from `offset` on, at most {MAX_CHARACTERS:,} characters. In a page "
        f"that is longer, numbers stand for addresses: see `links`. {UNTRUSTED}",
    )
    metadata: PageMetadata = Field(description="Metadata of the page.")


@service(
    order=120,
    path="/services/crawler/scrape",
    title="Page scrape",
    category="web-context",
    tags=("web", "scrape", "markdown", "reader"),
    guardrails=(
        "One page per request, as markdown only.",
        f"Content is cut at {MAX_CHARACTERS:,} characters, and the metadata says so; `offset` continues it.",
        "Enhanced proxies, JSON extraction and browser interaction are refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    cache_ttl=timedelta(seconds=300),
    input_example=CrawlerScrape(url="https://example.com/"),
    output_example=ScrapedPage(
        markdown="# Example Domain\n\nThis domain is for use in documentation examples.",
        metadata=PageMetadata(
            title="Example Domain",
            description=None,
            language="en",
            canonical=None,
            author=None,
            published_date=None,
            modified_date=None,
            status=200,
            content_type="text/html",
            final_url="https://example.com/",
            length=68,
            truncated=False,
            next_offset=None,
            content_hash="a74d714d48f5b1e00b3bd57bce4d718c58ddfdbe36e4d21071318ee9346c0ad9",
            site_name=None,
            image=None,
            keywords=[],
            links=[],
        ),
    ),
    refused_options=RefusedOptions(
        names=UPSTREAM_MODES | SCRAPING_OPTIONS | {"highlights", "scrapeOptions"},
        values={"formats": frozenset({"markdown"})},
    ),
)
async def crawler_scrape(
    request: CrawlerScrape, firecrawl: Primary[Firecrawl], pagereader: Fallback[PageReader]
) -> ScrapedPage:
    """Read one web page as markdown.

    Takes a URL and returns the page's main content as markdown, or the whole page when `onlyMainContent` is
    false, with its title, language, dates and final URL.
    """
    page = await first_of(firecrawl.scrape, pagereader.read_page)(request.url, request.only_main_content)
    part = await pagereader.take_part(page, request.offset, MAX_CHARACTERS)
    for warning in filter(None, (*page.warnings, describe_missing_part(page, part, request.offset))):
        pagereader.trace.add_warning(warning)
    return ScrapedPage(markdown=part.text, metadata=_build_metadata(page, part))


def _build_metadata(page: WebPage, part: PagePart) -> PageMetadata:
    return PageMetadata(
        title=page.title,
        description=page.description,
        language=page.language,
        canonical=page.canonical,
        author=page.author,
        published_date=page.published,
        modified_date=page.modified,
        status=page.status,
        content_type=page.content_type,
        final_url=page.final_url,
        length=part.length,
        truncated=part.truncated,
        next_offset=part.next_offset,
        content_hash=part.content_hash,
        site_name=page.site_name,
        image=page.image,
        keywords=list(page.keywords),
        links=[ListedLink.from_link(link) for link in part.links],
    )
