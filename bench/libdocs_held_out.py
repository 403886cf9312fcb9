"""Measure the built-in documentation with questions about libraries that nothing was tuned on.

    .venv/bin/python bench/libdocs_held_out.py [--tuned] [LIBRARY...]

With `--tuned`, the questions are those that ranking was tuned on. Queries the package registries. A question
is hit if one of the first snippets shows the pattern that was written down for it; "usage" is a call in a
code block that is more than a signature. Both are weak tests.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from libdocs_questions import HELD_OUT, TUNED

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
class Outcome:
    """Answer to one question."""

    question: str
    rank: int | None
    """Rank of the first right snippet from 0; None if there is none."""
    shows_usage: bool
    milliseconds: float


async def main() -> None:
    configure_logging("error")
    arguments = sys.argv[1:]
    questions = TUNED if "--tuned" in arguments else HELD_OUT
    names = [each for each in arguments if each != "--tuned"] or list(questions)
    outcomes: list[Outcome] = []
    first_seconds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(packagedocs_folder=Path(folder))
        async with open_resources(settings) as resources:
            docs = PackageDocs(settings, resources)
            for name in names:
                seconds, answered = await measure_library(docs, name, questions[name])
                first_seconds.append(seconds)
                outcomes += answered
    print_summary(first_seconds, outcomes)


async def measure_library(
    docs: PackageDocs, name: str, questions: Sequence[tuple[str, str]]
) -> tuple[float, list[Outcome]]:
    """Return the seconds until the first answer, and what each question was answered with."""
    start = time.perf_counter()
    library = (await docs.bind(RequestTrace()).find_libraries(name))[0]
    await read_library(docs, library.id)
    seconds = time.perf_counter() - start
    answered = [await ask(docs, library.id, *each) for each in questions]
    shown = " ".join(
        f"{'-' if each.rank is None else each.rank + 1}{'u' * each.shows_usage}" for each in answered
    )
    sys.stdout.write(f"{name:12} {library.id} {library.version}: {shown}\n")
    sys.stdout.flush()
    return seconds, answered


async def read_library(docs: PackageDocs, library_id: str) -> None:
    """Wait for the first answer, however long that takes."""
    while True:
        with suppress(ProviderTimeout):
            await docs.bind(RequestTrace()).query_docs(library_id, None, BUDGET)
            return


async def ask(docs: PackageDocs, library_id: str, question: str, expected: str) -> Outcome:
    start = time.perf_counter()
    try:
        snippets = await docs.bind(RequestTrace()).query_docs(library_id, question, BUDGET)
    except CentgateError:
        snippets = list[DocSnippet]()
    milliseconds = (time.perf_counter() - start) * 1000
    rank = next((rank for rank, each in enumerate(snippets) if is_right(each, expected)), None)
    return Outcome(question, rank, any(map(shows_usage, snippets[:3])), milliseconds)


def is_right(snippet: DocSnippet, expected: str) -> bool:
    return re.search(expected, f"{snippet.title}\n{snippet.text}\n{snippet.code}") is not None


def shows_usage(snippet: DocSnippet) -> bool:
    """True for code with a call outside the declarations that it begins with."""
    blocks = re.split(r"\n\s*\n", (snippet.code or "").strip())
    if _SIGNATURE.match(blocks[0]) and snippet.language in ("typescript", "tsx"):
        blocks = blocks[1:]
    lines = [line for block in blocks for line in block.splitlines()]
    if len(lines) < 3 and lines and _SIGNATURE.match(lines[0]):
        return False
    return any(_CALL.search(line) for line in lines if not _SIGNATURE.match(line))


def print_summary(first_seconds: Sequence[float], outcomes: Sequence[Outcome]) -> None:
    total = len(outcomes)
    rows = {
        "hit@1": share(each.rank == 0 for each in outcomes),
        "hit@3": share(each.rank is not None and each.rank < 3 for each in outcomes),
        "usage in first three": share(each.shows_usage for each in outcomes),
        "first answer p95, s": f"{percentile_95(first_seconds):.1f}",
        "later p95, ms": f"{percentile_95([each.milliseconds for each in outcomes]):.0f}",
    }
    sys.stdout.write(f"{len(first_seconds)} libraries, {total} questions\n")
    sys.stdout.writelines(f"{name}: {value}\n" for name, value in rows.items())


def share(facts: Iterable[bool]) -> str:
    found = list(facts)
    return f"{sum(found)} of {len(found)}, {sum(found) / len(found):.1%}"


def percentile_95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, -(-len(values) * 95 // 100) - 1)]


if __name__ == "__main__":
    asyncio.run(main())
