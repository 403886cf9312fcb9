"""Compare our reader with trafilatura and readability on pages whose content is known.

    .venv/bin/python bench/extraction.py [--set FOLDER]

F1 is computed over runs of four words, for each kind of page; a code block or a table cell counts as kept if
the output contains it as one. Then all pages are read through the sandbox, also together with hostile ones,
while a task that sleeps 5 ms repeatedly measures the delay of the event loop. With the folder of a public
benchmark only that is measured; `load_public_set` describes the formats.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any, Final, cast

from extraction_kinds import KindSample, load_public_set, make_kind_samples
from extraction_pages import Sample, prose_paragraphs, samples
from lxml.etree import LxmlError
from markdown_it import MarkdownIt
from markdownify import markdownify
from readability import Document
from rich.console import Console
from rich.progress import track
from rich.table import Table
from trafilatura import extract

from centgate.sandbox import Sandbox, TaskFailed
from centgate.web.extract.extract import ExtractedPage, extract_page

URL: Final = "https://example.com/docs/page"
KINDS: Final = ("manual", "readme", "article")
RUN_LENGTH: Final = 4
TICK_SECONDS: Final = 0.005
PROCESSES: Final = 2
CONCURRENCY: Final = 16
READ_SECONDS: Final = 5.0
HOSTILE: Final = {
    "200,000 attributes": b"<div " + b" ".join(b"a%d=1" % n for n in range(200_000)) + b"><p>text</p></div>",
    "50,000 links": b"".join(b"<li><a href=/p/%d>Link %d</a></li>" % (n, n) for n in range(50_000)),
    "50,000 rows": b"<table>" + b"".join(b"<tr><td>%d<td>b<td>c" % n for n in range(50_000)) + b"</table>",
    "50,000 unclosed links": b"<a href=x>b " * 50_000,
    "500,000 entities": b"<p>" + b"&amp;" * 500_000,
    "100,000 nested divs": b"<div>" * 100_000 + b"deep text" + b"</div>" * 100_000,
}


def extract_with_centgate(html: bytes) -> str:
    return extract_page(html, "text/html", URL, only_main_content=True).markdown


def extract_with_trafilatura(html: bytes) -> str:
    return (
        extract(
            html, output_format="markdown", include_links=True, include_tables=True, include_comments=False
        )
        or ""
    )


def extract_with_readability(html: bytes) -> str:
    try:
        return markdownify(cast(Any, Document)(html.decode()).summary(), heading_style="ATX")
    except (LxmlError, ValueError):
        return ""


EXTRACTORS: Final[dict[str, Callable[[bytes], str]]] = {
    "ours": extract_with_centgate,
    "trafilatura": extract_with_trafilatura,
    "readability + markdownify": extract_with_readability,
}


@dataclass
class ExtractorResults:
    """Results of one extractor for one kind of page."""

    f1: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])
    kept: Counter[str] = field(default_factory=Counter[str])
    expected: Counter[str] = field(default_factory=Counter[str])

    def share(self, what: str) -> str:
        """Return the share that was kept, in percent."""
        return f"{100 * self.kept[what] / self.expected[what]:.0f}" if self.expected[what] else ""


def main() -> None:
    arguments = argparse.ArgumentParser(description="Compare readers of pages.")
    arguments.add_argument("--set", type=Path, help="folder of a public benchmark, downloaded before")
    folder = arguments.parse_args().set
    logging.disable(logging.CRITICAL)  # trafilatura reports each page that it cannot read
    console = Console(width=None if sys.stdout.isatty() else 120)
    if folder is not None:
        console.print(*render_kind_tables(load_public_set(folder)), sep="\n")
        return
    pages = samples()
    all_results = {(kind, extractor): ExtractorResults() for kind in KINDS for extractor in EXTRACTORS}
    for page in track(pages, "reading", console=console, transient=True):
        for extractor in EXTRACTORS:
            measure_page(all_results[page.kind, extractor], page, EXTRACTORS[extractor])
    console.print(render_quality_table(pages, all_results))
    console.print(*render_kind_tables(list(make_kind_samples(prose_paragraphs(pages)))), sep="\n")
    console.print(render_hostile_table())
    console.print(asyncio.run(measure_stalls(pages)))


def measure_page(results: ExtractorResults, page: Sample, extractor: Callable[[bytes], str]) -> None:
    start = time.perf_counter()
    output = extractor(page.html)
    results.seconds.append(time.perf_counter() - start)
    results.f1.append(f1(word_runs(output), word_runs(page.gold)))
    for what, parts in (("code", iter_code_blocks), ("cells", iter_cells)):
        gold, found = Counter(parts(page.gold)), Counter(parts(output))
        results.expected[what] += gold.total()
        results.kept[what] += (gold & found).total()


def render_quality_table(pages: list[Sample], all_results: dict[tuple[str, str], ExtractorResults]) -> Table:
    table = Table(title="content", title_justify="left")
    for column in ("pages", "way", "F1", "code blocks %", "table cells %", "median ms", "longest ms"):
        table.add_column(column, justify="left" if column in ("pages", "way") else "right")
    for kind in KINDS:
        count = sum(page.kind == kind for page in pages)
        for extractor in EXTRACTORS:
            results = all_results[kind, extractor]
            table.add_row(
                f"{count} {kind}s" if extractor == "ours" else "",
                extractor,
                f"{mean(results.f1):.3f}" if results.f1 else "",
                results.share("code"),
                results.share("cells"),
                f"{median(results.seconds) * 1e3:.0f}" if results.seconds else "",
                f"{max(results.seconds) * 1e3:.0f}" if results.seconds else "",
            )
        table.add_section()
    return table


@dataclass(frozen=True, slots=True)
class KindScore:
    """Scores of one page by one extractor."""

    precision: float
    recall: float
    f1: float
    seconds: float


def render_kind_tables(pages: list[KindSample]) -> list[Table]:
    """Read pages of several kinds with all extractors; return a table for each split."""
    scores = {
        (page.split, page.name, way): score_page(page, extractor)
        for page in track(pages, "reading", transient=True, console=Console(stderr=True))
        for way, extractor in EXTRACTORS.items()
    }
    return [render_kind_table(split, pages, scores) for split in dict.fromkeys(page.split for page in pages)]


def score_page(page: KindSample, extractor: Callable[[bytes], str]) -> KindScore:
    start = time.process_time()
    try:
        output = extractor(page.html)
    except Exception:  # noqa: BLE001 - an extractor that fails has read nothing
        output = ""
    seconds = time.process_time() - start
    found, gold = word_runs(output), word_runs(page.gold)
    both = (found & gold).total()
    return KindScore(both / max(1, found.total()), both / max(1, gold.total()), f1(found, gold), seconds)


def render_kind_table(
    split: str, pages: list[KindSample], scores: dict[tuple[str, str, str], KindScore]
) -> Table:
    """Return the scores by kind. `lost` are pages with F1 under 0.3 that trafilatura reads above 0.7."""
    pages = [page for page in pages if page.split == split]
    table = Table(title=f"by kind: {split}", title_justify="left")
    for column in ("pages", "way", "F1", "precision", "recall", "under .5", "under .3", "lost", "median ms"):
        table.add_column(column, justify="left" if column in ("pages", "way") else "right")
    for kind in (*dict.fromkeys(page.kind for page in pages), "all"):
        names = [page.name for page in pages if kind in (page.kind, "all")]
        good = {name for name in names if scores[split, name, "trafilatura"].f1 > 0.7}
        for way in EXTRACTORS:
            found = {name: scores[split, name, way] for name in names}
            table.add_row(f"{len(names)} {kind}" if way == "ours" else "", way, *score_cells(found, good))
        table.add_section()
    return table


def score_cells(found: dict[str, KindScore], good: set[str]) -> list[str]:
    scores = list(found.values())
    return [
        *(f"{mean(getattr(score, part) for score in scores):.3f}" for part in ("f1", "precision", "recall")),
        str(sum(score.f1 < 0.5 for score in scores)),
        str(sum(score.f1 < 0.3 for score in scores)),
        str(sum(score.f1 < 0.3 and name in good for name, score in found.items())),
        f"{median(score.seconds for score in scores) * 1e3:.0f}",
    ]


def word_runs(markdown: str) -> Counter[tuple[str, ...]]:
    """Count runs of words, without Markdown syntax and link URLs."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", markdown)
    text = re.sub(r"\]\([^)\s]*(?:\s\"[^\"]*\")?\)", "] ", text)
    text = re.sub(
        r"^\s{0,3}\[[^\]]+\]:\s*\S+.*$|<https?://[^>]*>|^[ >]*[`~]{3,}.*$", " ", text, flags=re.MULTILINE
    )
    found = re.findall(r"\w+", re.sub(r"^\s*\d+[.)] ", "", text, flags=re.MULTILINE).lower())
    return Counter(zip(*(found[at:] for at in range(RUN_LENGTH)), strict=False))


def f1(found: Counter[tuple[str, ...]], gold: Counter[tuple[str, ...]]) -> float:
    both = (found & gold).total()
    return 2 * both / max(1, found.total() + gold.total())


def iter_code_blocks(markdown: str) -> Iterator[str]:
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type in ("fence", "code_block") and token.content.strip():
            yield " ".join(token.content.split())


def iter_cells(markdown: str) -> Iterator[str]:
    """Yield the words of each non-empty table cell."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    for before, token in itertools.pairwise(tokens):
        if before.type in ("td_open", "th_open"):
            text = re.sub(r"\]\([^)]*\)|<[^>]*>|\\", " ", token.content)
            if said := " ".join(re.findall(r"\w+", text.lower())):
                yield said


def render_hostile_table() -> Table:
    table = Table(title="hostile pages", title_justify="left")
    for column in ("page", "seconds", "characters given"):
        table.add_column(column, justify="left" if column == "page" else "right")
    for name, html in HOSTILE.items():
        start = time.perf_counter()
        length = len(extract_with_centgate(html))
        table.add_row(name, f"{time.perf_counter() - start:.2f}", f"{length:,}")
    return table


async def measure_stalls(pages: list[Sample]) -> Table:
    """Read all pages and all hostile ones through the sandbox, `CONCURRENCY` at once."""
    sandbox = Sandbox(PROCESSES, megabytes=1024, modules=("centgate.web.extract.extract",))
    table = Table(title=f"event loop while pages are read, {CONCURRENCY} at once", title_justify="left")
    for column in ("load", "pages", "unread", "pages/s", "worst stall ms"):
        table.add_column(column, justify="left" if column == "load" else "right")
    try:
        floor = await measure_idle_stall(sandbox)
        table.add_row("two busy processes", "", "", "", f"{floor * 1e3:.1f}")
        ordinary = [page.html for page in pages]
        for name, load in (("pages", ordinary), ("pages and hostile ones", [*ordinary, *HOSTILE.values()])):
            duration, unread, worst = await measure_load(sandbox, load)
            table.add_row(
                name, str(len(load)), str(unread), f"{len(load) / duration:.0f}", f"{worst * 1e3:.1f}"
            )
    finally:
        await sandbox.close()
    return table


async def measure_idle_stall(sandbox: Sandbox) -> float:
    """Return the worst delay while all processors are busy and nothing is read: the machine's own share."""
    delays: list[float] = []
    await asyncio.gather(*(sandbox.run_task(READ_SECONDS * 2, spin, 0.0) for _ in range(PROCESSES)))
    meter = asyncio.create_task(record_delays(delays))
    await asyncio.gather(*(sandbox.run_task(READ_SECONDS * 2, spin, READ_SECONDS) for _ in range(PROCESSES)))
    meter.cancel()
    return max(delays)


def spin(seconds: float) -> None:
    """Keep a processor busy."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def measure_load(sandbox: Sandbox, load: list[bytes]) -> tuple[float, int, float]:
    """Return the seconds, the number of unread pages, and the worst delay of the event loop."""
    delays: list[float] = []
    meter = asyncio.create_task(record_delays(delays))
    places = asyncio.Semaphore(CONCURRENCY)

    async def one(html: bytes) -> bool:
        async with places:
            return await read_page(sandbox, html) is None

    start = time.perf_counter()
    unread = sum(await asyncio.gather(*(one(html) for html in load)))
    duration = time.perf_counter() - start
    meter.cancel()
    return duration, unread, max(delays)


async def read_page(sandbox: Sandbox, html: bytes) -> ExtractedPage | None:
    try:
        return await sandbox.run_task(
            READ_SECONDS, extract_page, html, "text/html", URL, only_main_content=True
        )
    except TaskFailed:
        return None


async def record_delays(delays: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        delays.append(time.perf_counter() - start - TICK_SECONDS)


if __name__ == "__main__":
    main()
