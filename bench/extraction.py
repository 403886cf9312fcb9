"""Compare Centgate's page extraction with trafilatura and readability on pages with known content.

    .venv/bin/python bench/extraction.py [--set FOLDER]

F1 is computed over runs of four words, for each kind of page; a code block or a table cell counts as kept if
the output contains it as a unit. Then all pages are read through the sandbox, also together with hostile
pages, while a task that sleeps 5 ms repeatedly measures the delay of the event loop. With the folder of a
public benchmark, only the pages of that benchmark are measured; `load_public_set` describes the formats.
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
from extraction_pages import Sample, list_prose_paragraphs, load_samples
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
READ_TIMEOUT: Final = 5.0
HOSTILE_PAGES: Final = {
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
    "Centgate": extract_with_centgate,
    "trafilatura": extract_with_trafilatura,
    "readability + markdownify": extract_with_readability,
}


@dataclass
class ExtractorResults:
    """Results of one extractor for one kind of page."""

    f1: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])
    kept_counts: Counter[str] = field(default_factory=Counter[str])
    """Number of code blocks and of table cells in the output, by `code` and `cells`."""
    expected_counts: Counter[str] = field(default_factory=Counter[str])

    def format_share(self, part: str) -> str:
        """Return the share of a kind of parts that was kept in percent, empty if the pages have none."""
        return (
            f"{100 * self.kept_counts[part] / self.expected_counts[part]:.0f}"
            if self.expected_counts[part]
            else ""
        )


def main() -> None:
    """Measure the extractors and print tables."""
    parser = argparse.ArgumentParser(description="Compare page extractors.")
    parser.add_argument("--set", type=Path, help="folder of a public benchmark, downloaded before")
    folder = parser.parse_args().set
    logging.disable(logging.CRITICAL)  # trafilatura reports each page that it cannot read
    console = Console(width=None if sys.stdout.isatty() else 120)
    if folder is not None:
        console.print(*render_kind_tables(load_public_set(folder)), sep="\n")
        return
    pages = load_samples()
    all_results = {(kind, extractor): ExtractorResults() for kind in KINDS for extractor in EXTRACTORS}
    for page in track(pages, "reading", console=console, transient=True):
        for extractor in EXTRACTORS:
            measure_page(all_results[page.kind, extractor], page, EXTRACTORS[extractor])
    console.print(render_quality_table(pages, all_results))
    console.print(*render_kind_tables(list(make_kind_samples(list_prose_paragraphs(pages)))), sep="\n")
    console.print(render_hostile_table())
    console.print(asyncio.run(measure_stalls(pages)))


def measure_page(results: ExtractorResults, page: Sample, extractor: Callable[[bytes], str]) -> None:
    """Add the scores of an extractor for one page."""
    start = time.perf_counter()
    output = extractor(page.html)
    results.seconds.append(time.perf_counter() - start)
    results.f1.append(calculate_f1(count_word_runs(output), count_word_runs(page.gold)))
    for part, iter_parts in (("code", iter_code_blocks), ("cells", iter_cells)):
        gold_parts, output_parts = Counter(iter_parts(page.gold)), Counter(iter_parts(output))
        results.expected_counts[part] += gold_parts.total()
        results.kept_counts[part] += (gold_parts & output_parts).total()


def render_quality_table(pages: list[Sample], all_results: dict[tuple[str, str], ExtractorResults]) -> Table:
    """Return a table of the scores by kind of page and extractor."""
    table = Table(title="content", title_justify="left")
    for column in ("pages", "extractor", "F1", "code blocks %", "table cells %", "median ms", "longest ms"):
        table.add_column(column, justify="left" if column in ("pages", "extractor") else "right")
    for kind in KINDS:
        count = sum(page.kind == kind for page in pages)
        for extractor in EXTRACTORS:
            results = all_results[kind, extractor]
            table.add_row(
                f"{count} {kind}s" if extractor == "Centgate" else "",
                extractor,
                f"{mean(results.f1):.3f}" if results.f1 else "",
                results.format_share("code"),
                results.format_share("cells"),
                f"{median(results.seconds) * 1e3:.0f}" if results.seconds else "",
                f"{max(results.seconds) * 1e3:.0f}" if results.seconds else "",
            )
        table.add_section()
    return table


@dataclass(frozen=True, slots=True)
class KindScore:
    """Scores of one extractor for one page, and its processor time in seconds."""

    precision: float
    recall: float
    f1: float
    seconds: float


def render_kind_tables(pages: list[KindSample]) -> list[Table]:
    """Extract pages of several kinds with all extractors; return a table for each split."""
    scores = {
        (page.split, page.name, extractor_name): score_page(page, extractor)
        for page in track(pages, "reading", transient=True, console=Console(stderr=True))
        for extractor_name, extractor in EXTRACTORS.items()
    }
    return [render_kind_table(split, pages, scores) for split in dict.fromkeys(page.split for page in pages)]


def score_page(page: KindSample, extractor: Callable[[bytes], str]) -> KindScore:
    """Extract a page and compare the output with its content."""
    start = time.process_time()
    try:
        output = extractor(page.html)
    except Exception:  # noqa: BLE001 - a failure counts as an empty output
        output = ""
    seconds = time.process_time() - start
    output_runs, gold_runs = count_word_runs(output), count_word_runs(page.gold)
    common = (output_runs & gold_runs).total()
    precision, recall = common / max(1, output_runs.total()), common / max(1, gold_runs.total())
    return KindScore(precision, recall, calculate_f1(output_runs, gold_runs), seconds)


def render_kind_table(
    split: str, pages: list[KindSample], scores: dict[tuple[str, str, str], KindScore]
) -> Table:
    """Return a table of the scores of a split by kind.

    `lost` is the number of pages with F1 below 0.3 for which trafilatura has more than 0.7.
    """
    pages = [page for page in pages if page.split == split]
    table = Table(title=f"by kind: {split}", title_justify="left")
    figures = ("F1", "precision", "recall", "under .5", "under .3", "lost", "median ms")
    for column in ("pages", "extractor", *figures):
        table.add_column(column, justify="left" if column in ("pages", "extractor") else "right")
    for kind in (*dict.fromkeys(page.kind for page in pages), "all"):
        names = [page.name for page in pages if kind in (page.kind, "all")]
        well_extracted = {name for name in names if scores[split, name, "trafilatura"].f1 > 0.7}
        for extractor_name in EXTRACTORS:
            page_scores = {name: scores[split, name, extractor_name] for name in names}
            table.add_row(
                f"{len(names)} {kind}" if extractor_name == "Centgate" else "",
                extractor_name,
                *format_scores(page_scores, well_extracted),
            )
        table.add_section()
    return table


def format_scores(page_scores: dict[str, KindScore], well_extracted: set[str]) -> list[str]:
    """Return the cells of one row for scores by page name.

    `well_extracted` are the names of pages that trafilatura extracts with F1 above 0.7.
    """
    scores = list(page_scores.values())
    return [
        *(f"{mean(getattr(score, part) for score in scores):.3f}" for part in ("f1", "precision", "recall")),
        str(sum(score.f1 < 0.5 for score in scores)),
        str(sum(score.f1 < 0.3 for score in scores)),
        str(sum(score.f1 < 0.3 and name in well_extracted for name, score in page_scores.items())),
        f"{median(score.seconds for score in scores) * 1e3:.0f}",
    ]


def count_word_runs(markdown: str) -> Counter[tuple[str, ...]]:
    """Count runs of `RUN_LENGTH` words, without Markdown syntax and link URLs."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", markdown)
    text = re.sub(r"\]\([^)\s]*(?:\s\"[^\"]*\")?\)", "] ", text)
    text = re.sub(
        r"^\s{0,3}\[[^\]]+\]:\s*\S+.*$|<https?://[^>]*>|^[ >]*[`~]{3,}.*$", " ", text, flags=re.MULTILINE
    )
    words = re.findall(r"\w+", re.sub(r"^\s*\d+[.)] ", "", text, flags=re.MULTILINE).lower())
    return Counter(zip(*(words[offset:] for offset in range(RUN_LENGTH)), strict=False))


def calculate_f1(output_runs: Counter[tuple[str, ...]], gold_runs: Counter[tuple[str, ...]]) -> float:
    """Return the F1 score of the word runs of an output."""
    common = (output_runs & gold_runs).total()
    return 2 * common / max(1, output_runs.total() + gold_runs.total())


def iter_code_blocks(markdown: str) -> Iterator[str]:
    """Yield the text of each non-empty code block."""
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type in ("fence", "code_block") and token.content.strip():
            yield " ".join(token.content.split())


def iter_cells(markdown: str) -> Iterator[str]:
    """Yield the words of each non-empty table cell."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    for before, token in itertools.pairwise(tokens):
        if before.type in ("td_open", "th_open"):
            text = re.sub(r"\]\([^)]*\)|<[^>]*>|\\", " ", token.content)
            if words := " ".join(re.findall(r"\w+", text.lower())):
                yield words


def render_hostile_table() -> Table:
    """Extract the hostile pages; return a table of the seconds and the length of the output."""
    table = Table(title="hostile pages", title_justify="left")
    for column in ("page", "seconds", "characters of output"):
        table.add_column(column, justify="left" if column == "page" else "right")
    for name, html in HOSTILE_PAGES.items():
        start = time.perf_counter()
        length = len(extract_with_centgate(html))
        table.add_row(name, f"{time.perf_counter() - start:.2f}", f"{length:,}")
    return table


async def measure_stalls(pages: list[Sample]) -> Table:
    """Return a table of event loop stalls while the sandbox reads all pages, `CONCURRENCY` concurrently."""
    sandbox = Sandbox(PROCESSES, megabytes=1024, modules=("centgate.web.extract.extract",))
    table = Table(title=f"event loop while pages are read, {CONCURRENCY} concurrently", title_justify="left")
    for column in ("load", "pages", "failed", "pages/s", "worst stall ms"):
        table.add_column(column, justify="left" if column == "load" else "right")
    try:
        baseline = await measure_baseline_stall(sandbox)
        table.add_row("two busy processes", "", "", "", f"{baseline * 1e3:.1f}")
        bodies = [page.html for page in pages]
        for name, load in (("pages", bodies), ("pages and hostile ones", [*bodies, *HOSTILE_PAGES.values()])):
            duration, failed, worst = await measure_load(sandbox, load)
            table.add_row(
                name, str(len(load)), str(failed), f"{len(load) / duration:.0f}", f"{worst * 1e3:.1f}"
            )
    finally:
        await sandbox.close()
    return table


async def measure_baseline_stall(sandbox: Sandbox) -> float:
    """Return the worst delay in seconds that busy processors cause while no page is read."""
    delays: list[float] = []
    await asyncio.gather(
        *(sandbox.run_task(READ_TIMEOUT * 2, occupy_processor, 0.0) for _ in range(PROCESSES))
    )
    recorder = asyncio.create_task(record_delays(delays))
    await asyncio.gather(
        *(sandbox.run_task(READ_TIMEOUT * 2, occupy_processor, READ_TIMEOUT) for _ in range(PROCESSES))
    )
    recorder.cancel()
    return max(delays)


def occupy_processor(duration: float) -> None:
    """Keep a processor busy for a duration in seconds."""
    deadline = time.perf_counter() + duration
    while time.perf_counter() < deadline:
        pass


async def measure_load(sandbox: Sandbox, load: list[bytes]) -> tuple[float, int, float]:
    """Return the seconds, the number of failed pages, and the worst delay of the event loop in seconds."""
    delays: list[float] = []
    recorder = asyncio.create_task(record_delays(delays))
    semaphore = asyncio.Semaphore(CONCURRENCY)

    async def is_failure(html: bytes) -> bool:
        async with semaphore:
            return await read_page(sandbox, html) is None

    start = time.perf_counter()
    failed = sum(await asyncio.gather(*(is_failure(html) for html in load)))
    duration = time.perf_counter() - start
    recorder.cancel()
    return duration, failed, max(delays)


async def read_page(sandbox: Sandbox, html: bytes) -> ExtractedPage | None:
    """Extract a page in the sandbox; return None if that fails."""
    try:
        return await sandbox.run_task(
            READ_TIMEOUT, extract_page, html, "text/html", URL, only_main_content=True
        )
    except TaskFailed:
        return None


async def record_delays(delays: list[float]) -> None:
    """Append the delay in seconds of each tick, until cancelled."""
    while True:
        start = time.perf_counter()
        await asyncio.sleep(TICK_SECONDS)
        delays.append(time.perf_counter() - start - TICK_SECONDS)


if __name__ == "__main__":
    main()
