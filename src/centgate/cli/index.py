"""`centgate index`: choose sites, crawl them into the search index, and show what it holds."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import asdict
from rich.console import Console
from rich.table import Column, Table

from centgate.cli.options import Json
from centgate.cli.server_settings import load_settings
from centgate.cli.terminal import exit_with_error, print_message
from centgate.log import configure_logging
from centgate.lookups.site_crawl import CrawlReport, SiteCrawler
from centgate.lookups.site_vectors import update_vectors
from centgate.providers.pagereader import PageReader
from centgate.providers.siteindex import SiteIndex
from centgate.providers.sitemapper import SiteMapper
from centgate.resources import Resources, open_resources
from centgate.sanitize import clean_line
from centgate.settings import Settings
from centgate.web.index.crawl_state import (
    DAY,
    DEFAULT_MAX_PAGES,
    CrawlState,
    IndexedSite,
    SiteStatus,
    normalize_site,
)
from centgate.web.index.index_writer import (
    IndexBusy,
    IndexUnwritable,
    PageIndexWriter,
    set_aside_damaged,
)
from centgate.web.index.page_index import IndexUnreadable, PageIndex
from centgate.web.index.seeds import UnknownSite, resolve_sites
from centgate.web.index.vectors import VectorsUnreadable

app = typer.Typer(
    name="index",
    help="Keep a search index of sites of your choosing, which answers searches beside other engines.",
    no_args_is_help=True,
)
Sites = Annotated[list[str] | None, typer.Argument(help="Addresses of sites; all if left out.")]


@app.command()
def add(
    sites: Annotated[
        list[str],
        typer.Argument(
            help="A site or a part of one, a sitemap, a file with an address a line, `seeds` for the list in "
            "the package, or `seeds:<group>` for a part of it."
        ),
    ],
    pages: Annotated[
        int, typer.Option(min=1, help="Maximum number of pages of each site.")
    ] = DEFAULT_MAX_PAGES,
) -> None:
    """Add sites to the index. Nothing is fetched before `centgate index crawl`."""
    settings = load_settings()
    try:
        urls = [url for text in sites for url in resolve_sites(text)]
    except (UnknownSite, OSError) as error:
        exit_with_error(str(error), 2)
    with _open_state(settings) as state:
        new = sum(state.add_site(url, pages) for url in urls)
    print(f"new sites: {new} of {len(urls)}; read them with: centgate index crawl")


@app.command()
def crawl(
    sites: Sites = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Maximum number of pages of each site in this run.")
    ] = 1000,
    pause: Annotated[float, typer.Option(min=0.0, help="Seconds between two requests to a site.")] = 1.0,
    *,
    again: Annotated[
        bool, typer.Option("--again", help="Read all pages, whether they are due or not.")
    ] = False,
) -> None:
    """Read the pages of the sites that are due: new ones, and those read long ago.

    robots.txt and its Crawl-delay are respected. It may be interrupted, and run daily.
    """
    settings = load_settings().model_copy(update={"pagereader_render": False})
    configure_logging("error")
    with _open_state(settings) as state, _open_writer(settings, state) as writer:
        chosen = _choose_sites(state, sites)
        state.forget_unsettled()
        for site in chosen if again else ():
            state.make_due(site.url)
        asyncio.run(_crawl(settings, state, writer, chosen, limit=limit, pause=pause))


@app.command()
def status(
    sites: Sites = None,
    *,
    as_json: Json = False,
) -> None:
    """Show the sites, their pages, and the age of what can be found."""
    settings = load_settings()
    with _open_state(settings) as state:
        wanted = {site.url for site in _choose_sites(state, sites)}
        statuses = [each for each in state.list_statuses() if each.url in wanted]
    if as_json:
        print(json.dumps([asdict(each) for each in statuses], default=str))
        return
    Console(soft_wrap=True, markup=False).print(_format_statuses(statuses))
    index = PageIndex(settings.siteindex_folder)
    if not index.has_pages:
        is_unsaved = any("indexed" in each.counts for each in statuses)
        reason = "; the pages that a crawl has read are not saved yet" if is_unsaved else ""
        print(f"no page can be found{reason}; read the sites with: centgate index crawl")
        return
    try:
        summary = index.summary
    except IndexUnreadable as error:
        exit_with_error(f"{settings.siteindex_folder}: {error}; `centgate index crawl` builds it anew")
    print(
        f"{summary.pages:,} pages can be found, {_folder_megabytes(settings.siteindex_folder):,} MB on disk"
    )


@app.command()
def remove(sites: Annotated[list[str], typer.Argument(help="Addresses of sites.")]) -> None:
    """Remove sites and their pages from the index."""
    settings = load_settings()
    with _open_state(settings) as state, _open_writer(settings, state) as writer:
        chosen = _choose_sites(state, sites)
        for site in chosen:
            writer.delete_site(site.url)
        writer.commit()
        for site in chosen:
            state.remove_site(site.url)
    print(f"sites removed: {len(chosen)}")


async def _crawl(
    settings: Settings,
    state: CrawlState,
    writer: PageIndexWriter,
    sites: list[IndexedSite],
    *,
    limit: int,
    pause: float,
) -> None:
    async with open_resources(settings) as resources:
        crawler = _create_crawler(settings, resources, state, writer, pause=pause)
        await crawler.crawl_sites(sites, limit, _print_report)
        await _update_vectors(SiteIndex(settings, resources), state)


async def _update_vectors(provider: SiteIndex, state: CrawlState) -> None:
    """Make vectors for the pages that have none, if the operator brings an endpoint for them."""
    if not provider.embeds:
        return
    try:
        report = await update_vectors(provider, provider.index, provider.vectors, state.list_vector_ids())
    except (IndexUnreadable, VectorsUnreadable, OSError) as error:
        exit_with_error(f"vectors: {error}")
    missing = f", {report.missing:,} missing ({clean_line(report.message, 200)})" if report.message else ""
    print(f"vectors: {report.added:,} added, {report.total:,} in all{missing}")


def _create_crawler(
    settings: Settings, resources: Resources, state: CrawlState, writer: PageIndexWriter, *, pause: float
) -> SiteCrawler:
    return SiteCrawler(
        PageReader(settings, resources),
        SiteMapper(settings, resources),
        resources.robots if settings.fetch_robots else None,
        state=state,
        writer=writer,
        pause=pause,
    )


def _print_report(report: CrawlReport) -> None:
    counts = ", ".join(f"{count} {status}" for status, count in report.counts.most_common())
    message = f" ({clean_line(report.message, 200)})" if report.message else ""
    warnings = [f"  {clean_line(warning, 400)}" for warning in report.warnings]
    print("\n".join([f"{report.site}: {counts or 'nothing is due'}{message}", *warnings]), flush=True)


def _choose_sites(state: CrawlState, sites: list[str] | None) -> list[IndexedSite]:
    """Return the named sites, or all. Exits if one is not in the index, or there is none."""
    known = {site.url: site for site in state.list_sites()}
    if not known:
        exit_with_error("there are no sites yet; add one with: centgate index add <site>")
    if not sites:
        return list(known.values())
    chosen: list[IndexedSite] = []
    for text in sites:
        site = known.get(text) or known.get(normalize_site(text) or "")
        if site is None:
            exit_with_error(
                f"{clean_line(text, 200)} is not in the index; `centgate index status` lists its sites"
            )
        chosen.append(site)
    return chosen


@contextmanager
def _open_state(settings: Settings) -> Generator[CrawlState]:
    folder = settings.siteindex_folder
    try:
        with closing(_create_state(folder)) as state:
            yield state
    except sqlite3.DatabaseError as error:
        exit_with_error(f"the state of the crawl in {folder} cannot be read or written: {error}")


def _create_state(folder: Path) -> CrawlState:
    try:
        return CrawlState(folder)
    except OSError as error:
        exit_with_error(f"{folder} cannot be written: {error.strerror}")


@contextmanager
def _open_writer(settings: Settings, state: CrawlState) -> Generator[PageIndexWriter]:
    """Open the index for writing. A damaged one is set aside; the pages of a lost one become due again."""
    folder = settings.siteindex_folder
    if not PageIndex(folder).exists:
        state.make_all_due()
    try:
        try:
            writer = PageIndexWriter(folder)
        except IndexUnreadable as error:
            print_message(
                f"{error}; it is moved to {set_aside_damaged(folder)}, and all pages are read again"
            )
            state.make_all_due()
            writer = PageIndexWriter(folder)
    except (IndexBusy, IndexUnreadable) as error:
        exit_with_error(str(error))
    except IndexUnwritable as error:
        exit_with_error(f"{folder}: {error}")
    except OSError as error:
        exit_with_error(f"{folder} cannot be written: {error.strerror}")
    try:
        with closing(writer):
            yield writer
    except IndexUnwritable as error:
        exit_with_error(f"{folder}: {error}; pages that were not saved are read again")


def _format_statuses(statuses: list[SiteStatus]) -> Table:
    # folded, since the address names the site to `crawl` and `remove`
    address = Column("site", overflow="fold")
    table = Table(address, "found", "others", "of at most", "oldest", "last crawl")
    for each in statuses:
        others = ", ".join(f"{n} {status}" for status, n in each.counts.items() if status != "indexed")
        found = f"{each.counts.get('indexed', 0):,}"
        last = _format_age(each.crawled) + (f": {clean_line(each.message, 80)}" if each.message else "")
        table.add_row(each.url, found, others, f"{each.max_pages:,}", _format_age(each.oldest), last)
    return table


def _format_age(moment: float | None) -> str:
    if moment is None:
        return "never"
    days = int((time.time() - moment) // DAY)
    return f"{days} days ago" if days > 1 else "a day ago" if days == 1 else "today"


def _folder_megabytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) >> 20
