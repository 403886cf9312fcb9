"""The main content of one page as markdown."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from centgate.facts.web import Page
from centgate.pages.cutting import cut
from centgate.provider import Leg
from centgate.providers.firecrawl import Firecrawl
from centgate.providers.pagereader import PageReader
from centgate.schema import Beyond, Data, StrictRequest
from centgate.service import service
from centgate.sources import first_of
from centgate.web import MODES, NOT_INSTRUCTIONS, SCRAPING, UNTRUSTED, WebUrl

MOST_CHARACTERS = 20_000


class CrawlerScrape(StrictRequest):
    """The page to read."""

    url: WebUrl = Field(description="The page's address.")
    only_main_content: bool = Field(
        default=True,
        description="Leave out menus, headers, footers and the like; false keeps the whole page.",
    )


class PageMetadata(Data):
    """What is known of a page beside its content."""

    title: str | None = Field(description=f"The page's title; null when it has none. {UNTRUSTED}")
    description: str | None = Field(
        description=f"The page's own description; null when it has none. {UNTRUSTED}"
    )
    language: str | None = Field(
        description="The language the page says it is in, such as `en`; null if unsaid."
    )
    canonical: str | None = Field(description="The address the page calls its own; null when it names none.")
    author: str | None = Field(description=f"Who the page says wrote it; null when unsaid. {UNTRUSTED}")
    published_date: str | None = Field(
        description="When the page was published, ISO 8601 as exactly as the source knows; null when unknown."
    )
    modified_date: str | None = Field(
        description="When the page last changed, ISO 8601 as exactly as the source knows; null when unknown."
    )
    status: int | None = Field(description="The HTTP status the site answered with; null when unknown.")
    content_type: str | None = Field(description="The content type the site gave; null when unknown.")
    final_url: str | None = Field(description="The address after redirects; null when unknown.")
    length: int | None = Field(
        ge=0, description="How many characters the markdown had before it was cut; null when unknown."
    )
    truncated: bool = Field(description=f"Whether the markdown was cut at {MOST_CHARACTERS:,} characters.")


class ScrapedPage(Data):
    """A page as markdown."""

    markdown: str = Field(
        max_length=MOST_CHARACTERS,
        description=f"The page's content, cut at {MOST_CHARACTERS:,} characters. {UNTRUSTED}",
    )
    metadata: PageMetadata = Field(description="What is known of the page beside its content.")


@service(
    order=120,
    path="/services/crawler/scrape",
    title="Page scrape",
    category="web-context",
    tags=("web", "scrape", "markdown", "reader"),
    guardrails=(
        "One page a request, as markdown only.",
        "Content is cut at 20,000 characters, and the metadata says so.",
        "Enhanced proxies, JSON extraction and browser interaction are refused, never downgraded.",
        NOT_INSTRUCTIONS,
    ),
    fresh_for=timedelta(seconds=300),
    example=CrawlerScrape(url="https://example.com/"),
    sample=ScrapedPage(
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
        ),
    ),
    beyond=Beyond(
        names=MODES | SCRAPING | {"highlights", "scrapeOptions"},
        values={"formats": frozenset({"markdown"})},
    ),
)
async def crawler_scrape(
    request: CrawlerScrape, firecrawl: Leg[Firecrawl], pagereader: Leg[PageReader]
) -> ScrapedPage:
    """Read one web page as markdown.

    Takes an address and returns the page's main content as markdown, or the whole page when
    `onlyMainContent` is false, with its title, language, dates and final address.
    """
    page = await first_of(firecrawl.scrape, pagereader.read)(request.url, request.only_main_content)
    for warning in page.warnings:
        pagereader.record.warn(warning)
    markdown, truncated = cut(page.markdown, MOST_CHARACTERS)
    return ScrapedPage(markdown=markdown, metadata=_metadata(page, truncated=truncated))


def _metadata(page: Page, *, truncated: bool) -> PageMetadata:
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
        length=page.length,
        truncated=truncated,
    )
