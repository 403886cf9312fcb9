"""Measure the search index at a number of synthetic pages: build time, disk, memory, latency of queries.

Pages are generated: words of a vocabulary of 200,000 by Zipf's law with the shift of English, lengths by a
lognormal distribution around 200 words, 50 pages per site. Real pages have more phrases in common. Queries
are words by the same law without the 100 most frequent ones. Hostile queries are measured separately.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from centgate.web.index.index_writer import PageIndexWriter
from centgate.web.index.page import IndexedPage
from centgate.web.index.page_index import PageIndex

VOCABULARY = 200_000
MEAN_LOG_LENGTH, LOG_DEVIATION, MAX_WORDS = 5.3, 0.8, 3000
FREQUENT_WORDS = 100
CONSOLE = Console(highlight=False, soft_wrap=True)
QUERIES = 500
COMMIT_PAGES = 20_000
WARM_QUERIES = 50
"""Warm-up queries before the measured ones: they read the index from the disk."""
BATCH_WORDS = 1_000_000


class Corpus:
    """Unlimited synthetic text, the same in each run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.words = [_build_word(number) for number in range(VOCABULARY)]
        self.weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(VOCABULARY)))

    def iter_words(self) -> Iterator[str]:
        """Yield random words according to their frequency, without an end."""
        while True:
            yield from self._random.choices(self.words, cum_weights=self.weights, k=BATCH_WORDS)

    def iter_pages(self, count: int) -> Iterator[IndexedPage]:
        """Yield pages of several paragraphs."""
        words = self.iter_words()
        for number in range(count):
            length = min(MAX_WORDS, 20 + int(self._random.lognormvariate(MEAN_LOG_LENGTH, LOG_DEVIATION)))
            page_words = list(itertools.islice(words, length))
            host = f"s{number // 50}.example"
            yield IndexedPage(
                url=f"https://{host}/{page_words[0]}/{number}",
                site=f"https://{host}/",
                title=" ".join(page_words[:6]),
                text="\n".join(" ".join(page_words[n : n + 60]) for n in range(0, length, 60)),
                headings=" ".join(page_words[6:16]),
                language="en",
                fetched="2026-11-01T00:00:00Z",
                published=f"20{number % 27:02}-{number % 12 + 1:02}-01",
            )

    def create_queries(self, count: int) -> list[str]:
        """Return queries of two to six words."""
        words = (word for word in self.iter_words() if word not in frozenset(self.words[:FREQUENT_WORDS]))
        return [" ".join(itertools.islice(words, self._random.randint(2, 6))) for _ in range(count)]

    def create_hostile_queries(self) -> list[str]:
        """Return queries of the maximum length, of frequent words and of query syntax."""
        frequent = [" ".join(self.words[n : n + 120])[:500] for n in (0, 20, 100, 300)]
        return [*frequent, "a* OR b* " * 55, "[\x00 TO \uffff] *:* ~10 /.*/ " * 18, '"' * 500, "a b " * 125]


def _build_word(number: int) -> str:
    """Return an artificial word of syllables, which stemming rarely changes."""
    syllables, number = "", number + 1
    while number:
        syllables += "bcdfghklmnprstvz"[number % 16] + "aeiou"[number // 16 % 5]
        number //= 80
    return syllables


def build_index(folder: Path, pages: int) -> None:
    """Write an index of synthetic pages."""
    writer = PageIndexWriter(folder)
    for page in Corpus(1).iter_pages(pages):
        writer.put(page)
        if writer.pending >= COMMIT_PAGES:
            writer.commit()
    writer.close()


def build_fts5(folder: Path, pages: int) -> None:
    """Write the same pages into SQLite's full-text index."""
    with sqlite3.connect(folder / "fts5.db") as database:
        database.execute(
            "create virtual table page using fts5(title, heads, body, url, tokenize='porter unicode61')"
        )
        rows = ((each.title, each.headings, each.text, each.url) for each in Corpus(1).iter_pages(pages))
        database.executemany("insert into page values (?, ?, ?, ?)", rows)


def create_fts5_search(folder: Path) -> Callable[[str], object]:
    """Return a function that searches SQLite's index."""
    database = sqlite3.connect(folder / "fts5.db")
    statement = (
        "select title, url, snippet(page, 2, '', '', '', 40) from page where page match ? "
        "order by bm25(page, 3, 1.5, 1, 1.5) limit 10"
    )

    def search(query: str) -> object:
        quoted = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query)) or '""'
        return database.execute(statement, (quoted,)).fetchall()

    return search


def measure_latency(label: str, search: Callable[[str], object], queries: Sequence[str]) -> None:
    """Run queries one after another, and print their latencies in milliseconds."""
    for query in queries[:WARM_QUERIES]:
        search(query)
    times, matched = list[float](), 0
    for query in queries:
        start = time.perf_counter()
        matched += bool(search(query))
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    p50, p99 = times[len(times) // 2], times[min(len(times) - 1, int(len(times) * 0.99))]
    CONSOLE.print(
        f"{label}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, slowest {times[-1]:.2f} ms; "
        f"{matched} of {len(times)} match"
    )


def read_resident_megabytes() -> tuple[int, int]:
    """Return the process's own memory and its mapped file pages, which the system may evict, in MB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    own, files = (int(status[name].split()[0]) // 1024 for name in ("RssAnon", "RssFile"))
    return own, files


def measure_disk_megabytes(folder: Path) -> int:
    """Return the size of all files in a folder in MB."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) >> 20


def main() -> None:
    """Build or open an index, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="keep the index here, and use it if it exists")
    parser.add_argument("--fts5", action="store_true", help="measure SQLite FTS5 instead")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="search-index-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if not any(folder.iterdir()):
            start, start_cpu = time.perf_counter(), time.process_time()
            (build_fts5 if options.fts5 else build_index)(folder, options.pages)
            cpu = time.process_time() - start_cpu
            CONSOLE.print(
                f"built {options.pages:,} pages in {time.perf_counter() - start:.0f} s, {cpu:.0f} s of CPU"
            )
            CONSOLE.print(f"memory of the build: {read_resident_megabytes()[0]} MB with the corpus")
        CONSOLE.print(f"disk: {measure_disk_megabytes(folder):,} MB")
        before = read_resident_megabytes()
        search = create_fts5_search(folder) if options.fts5 else create_search(folder)
        corpus = Corpus(7)
        measure_latency("queries", search, corpus.create_queries(QUERIES))
        measure_latency("hostile queries", search, corpus.create_hostile_queries())
        after = read_resident_megabytes()
        CONSOLE.print(
            f"memory of searching: {after[0] - before[0]} MB, mapped files {after[1] - before[1]} MB"
        )
    finally:
        if options.folder is None:
            shutil.rmtree(folder)


def create_search(folder: Path) -> Callable[[str], object]:
    """Return a function that searches the index."""
    index = PageIndex(folder)
    return lambda query: index.search(query, 10)


if __name__ == "__main__":
    main()
