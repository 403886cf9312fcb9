"""Hit rate of the built-in documentation, with questions about libraries on which nothing was tuned.

    .venv/bin/python bench/libdocs_hit_rate.py [--tuned | --development] [--indexes FOLDER] [LIBRARY...]

With `--tuned` or `--development`, the questions are those on which the ranking was tuned or is developed.
`--indexes` names a folder that keeps the indexes for the next run; delete it after a change of what is
indexed. Queries the package registries. A question is a hit if one of the first snippets matches the
question's pattern; "usage" is a call in a code block that is more than a signature. Both are weak tests.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from libdocs_questions import DEVELOPMENT_QUESTIONS, HELD_OUT_QUESTIONS, TUNED_QUESTIONS

from centgate.errors import CentgateError, ProviderTimeout
from centgate.libdocs.libraries import DocSnippet
from centgate.log import configure_logging
from centgate.provider import RequestTrace
from centgate.providers.packagedocs import PackageDocs
from centgate.resources import open_resources
from centgate.settings import Settings

BUDGET: Final = 2_500
_SIGNATURE: Final = re.compile(
    r"^\s*(?:(?:export|declare|default|abstract|public|static|readonly|async|overload) )*"
    r"(?:def|class|interface|type|function|namespace|enum)\b"
)
_CALL: Final = re.compile(r"[\w$\])]\s*\(|^\s*(?:\$|>>>)|<[A-Z]\w*|\{%|@\w+", re.MULTILINE)


@dataclass(frozen=True)
class QuestionOutcome:
    """Result of one question."""

    question: str
    rank: int | None
    """Rank from 0 of the first snippet that matches, None without a match."""
    has_usage: bool
    milliseconds: float


@dataclass(frozen=True)
class BenchOptions:
    """Options of the command."""

    questions: Mapping[str, Sequence[tuple[str, str]]]
    names: Sequence[str]
    """Libraries to measure."""
    folder: Path | None
    """Folder that keeps the indexes; None for a temporary one."""


async def main() -> None:
    """Measure the libraries of the arguments, or all, and print a summary."""
    configure_logging("error")
    options = parse_options()
    outcomes: list[QuestionOutcome] = []
    first_seconds: list[float] = []
    with nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as folder:
        settings = Settings(packagedocs_folder=Path(folder))
        async with open_resources(settings) as resources:
            docs = PackageDocs(settings, resources)
            for name in options.names:
                seconds, library_outcomes = await measure_library(docs, name, options.questions[name])
                first_seconds.append(seconds)
                outcomes += library_outcomes
    print_summary(first_seconds, outcomes)


def parse_options() -> BenchOptions:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument("--tuned", dest="questions", action="store_const", const=TUNED_QUESTIONS)
    sets.add_argument("--development", dest="questions", action="store_const", const=DEVELOPMENT_QUESTIONS)
    parser.add_argument("--indexes", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="LIBRARY")
    arguments = parser.parse_args()
    questions = arguments.questions or HELD_OUT_QUESTIONS
    return BenchOptions(questions, arguments.names or list(questions), arguments.indexes)


async def measure_library(
    docs: PackageDocs, name: str, questions: Sequence[tuple[str, str]]
) -> tuple[float, list[QuestionOutcome]]:
    """Return the seconds until the first answer, and the outcome of each question."""
    start = time.perf_counter()
    library = (await docs.bind(RequestTrace()).find_libraries(name))[0]
    await build_index(docs, library.id)
    seconds = time.perf_counter() - start
    library_outcomes = [await ask_question(docs, library.id, *each) for each in questions]
    marks = " ".join(
        f"{'-' if each.rank is None else each.rank + 1}{'u' * each.has_usage}" for each in library_outcomes
    )
    sys.stdout.write(f"{name:12} {library.id} {library.version}: {marks}\n")
    sys.stdout.flush()
    return seconds, library_outcomes


async def build_index(docs: PackageDocs, library_id: str) -> None:
    """Build the index of a library; a timeout of the provider does not end it."""
    while True:
        with suppress(ProviderTimeout):
            await docs.bind(RequestTrace()).query_docs(library_id, None, BUDGET)
            return


async def ask_question(docs: PackageDocs, library_id: str, question: str, expected: str) -> QuestionOutcome:
    """Ask a question; `expected` is a regular expression for its snippets."""
    start = time.perf_counter()
    try:
        snippets = await docs.bind(RequestTrace()).query_docs(library_id, question, BUDGET)
    except CentgateError:
        snippets = list[DocSnippet]()
    milliseconds = (time.perf_counter() - start) * 1000
    rank = next((rank for rank, each in enumerate(snippets) if has_match(each, expected)), None)
    return QuestionOutcome(question, rank, any(map(has_usage, snippets[:3])), milliseconds)


def has_match(snippet: DocSnippet, expected: str) -> bool:
    """Return True if a snippet matches a regular expression."""
    return re.search(expected, f"{snippet.title}\n{snippet.text}\n{snippet.code}") is not None


def has_usage(snippet: DocSnippet) -> bool:
    """Return True if the code has a call outside the declarations at its beginning."""
    blocks = re.split(r"\n\s*\n", (snippet.code or "").strip())
    if _SIGNATURE.match(blocks[0]) and snippet.language in ("typescript", "tsx"):
        blocks = blocks[1:]
    lines = [line for block in blocks for line in block.splitlines()]
    if len(lines) < 3 and lines and _SIGNATURE.match(lines[0]):
        return False
    return any(_CALL.search(line) for line in lines if not _SIGNATURE.match(line))


def print_summary(first_seconds: Sequence[float], outcomes: Sequence[QuestionOutcome]) -> None:
    total = len(outcomes)
    rows = {
        "hit@1": format_share(each.rank == 0 for each in outcomes),
        "hit@3": format_share(each.rank is not None and each.rank < 3 for each in outcomes),
        "usage in first three": format_share(each.has_usage for each in outcomes),
        "first answer p95, s": f"{calculate_percentile_95(first_seconds):.1f}",
        "later p95, ms": f"{calculate_percentile_95([each.milliseconds for each in outcomes]):.0f}",
    }
    sys.stdout.write(f"{len(first_seconds)} libraries, {total} questions\n")
    sys.stdout.writelines(f"{name}: {value}\n" for name, value in rows.items())


def format_share(flags: Iterable[bool]) -> str:
    values = list(flags)
    return f"{sum(values)} of {len(values)}, {sum(values) / len(values):.1%}"


def calculate_percentile_95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]


if __name__ == "__main__":
    asyncio.run(main())
