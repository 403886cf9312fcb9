"""What our reader keeps of pages whose content is known, beside trafilatura and readability, in one run.

    .venv/bin/python bench/extraction.py

F1 is of runs of four words, over the pages of a kind; a code block or a table cell is kept when it stands in
the output as one. Then all pages are read through the sandbox, also beside hostile ones, while a task that
sleeps 5 ms again and again measures by how much the event loop is late.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any, Final, cast

from extraction_pages import Sample, samples
from lxml.etree import LxmlError
from markdown_it import MarkdownIt
from markdownify import markdownify
from readability import Document
from rich.console import Console
from rich.progress import track
from rich.table import Table
from trafilatura import extract

from centgate.pages.reading import Reading, read
from centgate.sandbox import Sandbox, WorkFailed

URL: Final = "https://example.com/docs/page"
KINDS: Final = ("manual", "readme", "article")
RUN: Final = 4
TICK: Final = 0.005
PROCESSES: Final = 2
AT_ONCE: Final = 16
SECONDS: Final = 5.0
HOSTILE: Final = {
    "200,000 attributes": b"<div " + b" ".join(b"a%d=1" % n for n in range(200_000)) + b"><p>text</p></div>",
    "50,000 links": b"".join(b"<li><a href=/p/%d>Link %d</a></li>" % (n, n) for n in range(50_000)),
    "50,000 rows": b"<table>" + b"".join(b"<tr><td>%d<td>b<td>c" % n for n in range(50_000)) + b"</table>",
    "50,000 unclosed links": b"<a href=x>b " * 50_000,
    "500,000 entities": b"<p>" + b"&amp;" * 500_000,
    "100,000 nested divs": b"<div>" * 100_000 + b"deep text" + b"</div>" * 100_000,
}


def ours(html: bytes) -> str:
    return read(html, "text/html", URL, only_main_content=True).markdown


def trafilatura_alone(html: bytes) -> str:
    return (
        extract(
            html, output_format="markdown", include_links=True, include_tables=True, include_comments=False
        )
        or ""
    )


def readability_and_markdownify(html: bytes) -> str:
    try:
        return markdownify(cast(Any, Document)(html.decode()).summary(), heading_style="ATX")
    except (LxmlError, ValueError):
        return ""


WAYS: Final[dict[str, Callable[[bytes], str]]] = {
    "ours": ours,
    "trafilatura": trafilatura_alone,
    "readability + markdownify": readability_and_markdownify,
}


@dataclass
class Tally:
    """What one way made of the pages of one kind."""

    f1: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])
    kept: Counter[str] = field(default_factory=Counter[str])
    given: Counter[str] = field(default_factory=Counter[str])

    def share(self, what: str) -> str:
        """The share that was kept, in percent."""
        return f"{100 * self.kept[what] / self.given[what]:.0f}" if self.given[what] else ""


def main() -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    pages = samples()
    tallies = {(kind, way): Tally() for kind in KINDS for way in WAYS}
    for page in track(pages, "reading", console=console, transient=True):
        for way in WAYS:
            enter(tallies[page.kind, way], page, WAYS[way])
    console.print(quality(pages, tallies))
    console.print(hostile_pages())
    console.print(asyncio.run(stalls(pages)))


def enter(tally: Tally, page: Sample, way: Callable[[bytes], str]) -> None:
    start = time.perf_counter()
    output = way(page.html)
    tally.seconds.append(time.perf_counter() - start)
    tally.f1.append(f1(words(output), words(page.gold)))
    for what, parts in (("code", code_blocks), ("cells", cells)):
        gold, found = Counter(parts(page.gold)), Counter(parts(output))
        tally.given[what] += gold.total()
        tally.kept[what] += (gold & found).total()


def quality(pages: list[Sample], tallies: dict[tuple[str, str], Tally]) -> Table:
    table = Table(title="content", title_justify="left")
    for column in ("pages", "way", "F1", "code blocks %", "table cells %", "median ms", "longest ms"):
        table.add_column(column, justify="left" if column in ("pages", "way") else "right")
    for kind in KINDS:
        count = sum(page.kind == kind for page in pages)
        for way in WAYS:
            tally = tallies[kind, way]
            table.add_row(
                f"{count} {kind}s" if way == "ours" else "",
                way,
                f"{mean(tally.f1):.3f}" if tally.f1 else "",
                tally.share("code"),
                tally.share("cells"),
                f"{median(tally.seconds) * 1e3:.0f}" if tally.seconds else "",
                f"{max(tally.seconds) * 1e3:.0f}" if tally.seconds else "",
            )
        table.add_section()
    return table


def words(markdown: str) -> Counter[tuple[str, ...]]:
    """Runs of words, with Markdown's marks and the addresses of links taken off."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", markdown)
    text = re.sub(r"\]\([^)\s]*(?:\s\"[^\"]*\")?\)", "] ", text)
    text = re.sub(
        r"^\s{0,3}\[[^\]]+\]:\s*\S+.*$|<https?://[^>]*>|^[ >]*[`~]{3,}.*$", " ", text, flags=re.MULTILINE
    )
    found = re.findall(r"\w+", re.sub(r"^\s*\d+[.)] ", "", text, flags=re.MULTILINE).lower())
    return Counter(zip(*(found[at:] for at in range(RUN)), strict=False))


def f1(found: Counter[tuple[str, ...]], gold: Counter[tuple[str, ...]]) -> float:
    both = (found & gold).total()
    return 2 * both / max(1, found.total() + gold.total())


def code_blocks(markdown: str) -> Iterator[str]:
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type in ("fence", "code_block") and token.content.strip():
            yield " ".join(token.content.split())


def cells(markdown: str) -> Iterator[str]:
    """The words of each table cell that has any."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    for before, token in itertools.pairwise(tokens):
        if before.type in ("td_open", "th_open"):
            text = re.sub(r"\]\([^)]*\)|<[^>]*>|\\", " ", token.content)
            if said := " ".join(re.findall(r"\w+", text.lower())):
                yield said


def hostile_pages() -> Table:
    table = Table(title="hostile pages", title_justify="left")
    for column in ("page", "seconds", "characters given"):
        table.add_column(column, justify="left" if column == "page" else "right")
    for name, html in HOSTILE.items():
        start = time.perf_counter()
        given = len(ours(html))
        table.add_row(name, f"{time.perf_counter() - start:.2f}", f"{given:,}")
    return table


async def stalls(pages: list[Sample]) -> Table:
    """Every page and every hostile one, read through the sandbox, as many at once as there are places."""
    sandbox = Sandbox(PROCESSES, megabytes=1024, modules=("centgate.pages.reading",))
    table = Table(title=f"event loop while pages are read, {AT_ONCE} at once", title_justify="left")
    for column in ("load", "pages", "unread", "pages/s", "worst stall ms"):
        table.add_column(column, justify="left" if column == "load" else "right")
    try:
        floor = await beside_busy_processes(sandbox)
        table.add_row("two busy processes", "", "", "", f"{floor * 1e3:.1f}")
        ordinary = [page.html for page in pages]
        for name, load in (("pages", ordinary), ("pages and hostile ones", [*ordinary, *HOSTILE.values()])):
            took, unread, worst = await measured(sandbox, load)
            table.add_row(name, str(len(load)), str(unread), f"{len(load) / took:.0f}", f"{worst * 1e3:.1f}")
    finally:
        await sandbox.close()
    return table


async def beside_busy_processes(sandbox: Sandbox) -> float:
    """The worst delay while all processors are busy and nothing is read: what the machine itself adds."""
    late: list[float] = []
    await asyncio.gather(*(sandbox.run(SECONDS * 2, spin, 0.0) for _ in range(PROCESSES)))
    meter = asyncio.create_task(tick(late))
    await asyncio.gather(*(sandbox.run(SECONDS * 2, spin, SECONDS) for _ in range(PROCESSES)))
    meter.cancel()
    return max(late)


def spin(seconds: float) -> None:
    """Keep a processor busy."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def measured(sandbox: Sandbox, load: list[bytes]) -> tuple[float, int, float]:
    """Seconds, pages that were not read, and the worst delay of the meter."""
    late: list[float] = []
    meter = asyncio.create_task(tick(late))
    places = asyncio.Semaphore(AT_ONCE)

    async def one(html: bytes) -> bool:
        async with places:
            return await attempt(sandbox, html) is None

    start = time.perf_counter()
    unread = sum(await asyncio.gather(*(one(html) for html in load)))
    took = time.perf_counter() - start
    meter.cancel()
    return took, unread, max(late)


async def attempt(sandbox: Sandbox, html: bytes) -> Reading | None:
    try:
        return await sandbox.run(SECONDS, read, html, "text/html", URL, only_main_content=True)
    except WorkFailed:
        return None


async def tick(late: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(TICK)
        late.append(time.perf_counter() - start - TICK)


if __name__ == "__main__":
    main()
