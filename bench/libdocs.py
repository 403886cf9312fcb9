"""Measure the built-in documentation with ten questions about each of eleven libraries, in one run.

    .venv/bin/python bench/libdocs.py

Queries the package registries, so it needs the network. Indexes are built in a temporary folder, one library
after another. "Expected" is a name that an answer should contain: a weak test, which does not show that the
passage is the best one.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from server_process import read_cpu_seconds

from centgate.errors import ProviderTimeout
from centgate.libdocs.libraries import DocSnippet
from centgate.log import configure_logging
from centgate.provider import RequestTrace
from centgate.providers.packagedocs import PackageDocs
from centgate.resources import open_resources
from centgate.settings import Settings

PAGE: Final = Path(__file__).parents[1] / "docs" / "library-documentation.md"
BUDGET: Final = 2_500
REPEATS: Final = 5
"""Number of times that each question is asked, to measure its duration."""
FOUND_LABELS: Final = {True: "yes", False: "**no**"}
Questions = Sequence[tuple[str, str]]
"""Questions, each with a name that should be in the answer."""

LIBRARIES: Final[Mapping[str, Questions]] = {
    "httpx": (
        ("set a timeout", "Timeout"),
        ("async client", "AsyncClient"),
        ("send json in a post request", "post"),
        ("basic authentication", "BasicAuth"),
        ("limit the connection pool", "Limits"),
        ("streaming a response", "stream"),
        ("retries on a transport", "HTTPTransport"),
        ("use a proxy", "Proxy"),
        ("raise an error for bad status codes", "raise_for_status"),
        ("mock responses in tests", "MockTransport"),
    ),
    "fastapi": (
        ("dependencies with yield", "Depends"),
        ("upload a file", "UploadFile"),
        ("path parameters validation", "Path"),
        ("background tasks", "BackgroundTasks"),
        ("websocket endpoint", "WebSocket"),
        ("oauth2 password login with jwt", "OAuth2PasswordBearer"),
        ("cors middleware", "CORSMiddleware"),
        ("custom exception handler", "exception_handler"),
        ("split an app over several files with routers", "APIRouter"),
        ("lifespan events on startup and shutdown", "lifespan"),
    ),
    "pydantic": (
        ("validate a field with a custom function", "field_validator"),
        ("validator over the whole model", "model_validator"),
        ("serialize a model to json", "model_dump_json"),
        ("field aliases", "alias"),
        ("forbid extra fields", "extra"),
        ("computed property in output", "computed_field"),
        ("discriminated union", "discriminator"),
        ("validate plain types without a model", "TypeAdapter"),
        ("json schema of a model", "model_json_schema"),
        ("immutable frozen model", "frozen"),
    ),
    "sqlalchemy": (
        ("select with a join", "join"),
        ("define a relationship one to many", "relationship"),
        ("async session", "AsyncSession"),
        ("declare mapped columns", "mapped_column"),
        ("eager loading", "selectinload"),
        ("bulk insert", "insert"),
        ("connection pool size", "pool_size"),
        ("transaction rollback", "rollback"),
        ("hybrid property", "hybrid_property"),
        ("upsert on conflict in postgresql", "on_conflict_do_update"),
    ),
    "react": (
        ("run an effect when the component mounts", "useEffect"),
        ("keep state in a function component", "useState"),
        ("share data through context", "useContext"),
        ("memoize an expensive value", "useMemo"),
        ("reference to a dom element", "useRef"),
        ("reducer for complex state", "useReducer"),
        ("lazy load a component", "lazy"),
        ("suspense fallback while loading", "Suspense"),
        ("mark an update as not urgent", "startTransition"),
        ("optimistic update of the ui", "useOptimistic"),
    ),
    "express": (
        ("serve static files", "static"),
        ("parse a json body", "json"),
        ("router for a group of routes", "Router"),
        ("error handling middleware", "next"),
        ("redirect a request", "redirect"),
        ("set a cookie", "cookie"),
        ("route parameters", "params"),
        ("send a file", "sendFile"),
        ("template engine and views", "render"),
        ("application settings such as trust proxy", "trust proxy"),
    ),
    "flask": (
        ("organise an application with blueprints", "Blueprint"),
        ("upload files", "request.files"),
        ("user sessions and the secret key", "session"),
        ("application factory", "create_app"),
        ("flash a message", "flash"),
        ("testing with a client", "test_client"),
        ("custom error pages", "errorhandler"),
        ("return json", "jsonify"),
        ("database connection on the application context", "teardown_appcontext"),
        ("class based views", "MethodView"),
    ),
    "django": (
        ("define a model with a foreign key", "ForeignKey"),
        ("filter a queryset with or", "Q("),
        ("form validation", "clean"),
        ("custom user model", "AUTH_USER_MODEL"),
        ("write a migration by hand", "RunPython"),
        ("cache a view", "cache_page"),
        ("class based list view", "ListView"),
        ("signals after a model is saved", "post_save"),
        ("write custom middleware", "get_response"),
        ("aggregate and group by", "annotate"),
    ),
    "pandas": (
        ("read a csv file", "read_csv"),
        ("group rows and aggregate", "groupby"),
        ("merge two data frames", "merge"),
        ("fill missing values", "fillna"),
        ("pivot table", "pivot_table"),
        ("resample a time series", "resample"),
        ("select rows by label", "loc"),
        ("apply a function to each column", "apply"),
        ("parse dates", "to_datetime"),
        ("write to parquet", "to_parquet"),
    ),
    "zod": (
        ("validate an object", "object"),
        ("infer the typescript type", "infer"),
        ("optional and nullable fields", "optional"),
        ("custom validation rule", "refine"),
        ("parse without throwing", "safeParse"),
        ("transform a value", "transform"),
        ("discriminated union", "discriminatedUnion"),
        ("coerce a string to a number", "coerce"),
        ("format the errors", "ZodError"),
        ("json schema of a schema", "toJSONSchema"),
    ),
    "vue": (
        ("reactive state", "ref"),
        ("computed property", "computed"),
        ("watch a value for changes", "watch"),
        ("run code when a component is mounted", "onMounted"),
        ("provide and inject data", "inject"),
        ("define props of a component", "defineProps"),
        ("emit events", "emits"),
        ("lazy load a component", "defineAsyncComponent"),
        ("create an application and mount it", "createApp"),
        ("wait until the dom is updated", "nextTick"),
    ),
}

INTRODUCTION: Final = """# Quality of the built-in library documentation

This page is written by `make bench-libdocs`, which reads from the package registries. The name of each
library is resolved as a buyer would do it; then the first id gets ten questions, with a budget of {budget:,}
tokens. "Expected" is a name that the answer should contain; **no** marks an answer without it. This is a weak
test: it does not show that the passage is the best one available. The titles of the first snippets are listed
so that readers can judge them.

Besides the published packages, the sites that they name are read as far as this machine reaches them. Many
projects publish their guides there alone; without these, the answers consist of reference documentation
(signatures, docstrings, declarations) with few explanations.

Measured on {cores} processor cores; {load:.1f} processes were running or waiting on average, this one
included.

"""


@dataclass(frozen=True)
class QuestionResult:
    """Result of one question."""

    question: str
    expected: str
    title: str
    found: bool
    milliseconds: float


@dataclass(frozen=True)
class LibraryReport:
    """Results of all questions about a library, and the cost of its index."""

    name: str
    id: str
    version: str
    sources: str
    chunks: int
    first_seconds: float
    """Seconds until the first answer, with the build of the index."""
    cpu_seconds: float
    megabytes: float
    """Size of the index file in MiB."""
    answers: Sequence[QuestionResult]


async def main() -> None:
    """Measure all libraries and write the page of docs/."""
    configure_logging("error")
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(packagedocs_folder=Path(folder))
        async with open_resources(settings) as resources:
            packagedocs = PackageDocs(settings, resources)
            reports = [await measure_library(packagedocs, name, Path(folder)) for name in LIBRARIES]
    PAGE.write_text(render_page(reports), encoding="utf-8")
    sys.stdout.write(f"{PAGE} is written\n")


async def measure_library(packagedocs: PackageDocs, name: str, folder: Path) -> LibraryReport:
    """Resolve the name of a library, build its index, and ask its questions."""
    library = (await packagedocs.bind(RequestTrace()).find_libraries(name))[0]
    start, cpu_start = time.perf_counter(), read_cpu_seconds(os.getpid())
    await build_index(packagedocs, library.id)
    seconds, cpu_seconds = time.perf_counter() - start, read_cpu_seconds(os.getpid()) - cpu_start
    answers = [await ask_question(packagedocs, library.id, *each) for each in LIBRARIES[name]]
    file = find_newest_index(folder)
    sys.stdout.write(f"{name}: {sum(each.found for each in answers)} of {len(answers)}\n")
    return LibraryReport(
        name,
        library.id,
        library.version or "",
        *read_contents(file),
        seconds,
        cpu_seconds,
        file.stat().st_size / (1 << 20),
        answers,
    )


async def build_index(packagedocs: PackageDocs, library_id: str) -> None:
    """Build the index of a library; a timeout of the provider does not end it."""
    while True:
        with suppress(ProviderTimeout):
            await packagedocs.bind(RequestTrace()).query_docs(library_id, None, BUDGET)
            return


async def ask_question(
    packagedocs: PackageDocs, library_id: str, question: str, expected: str
) -> QuestionResult:
    """Ask a question `REPEATS` times; return its result with the median duration."""
    times: list[float] = []
    snippets: list[DocSnippet] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        snippets = await packagedocs.bind(RequestTrace()).query_docs(library_id, question, BUDGET)
        times.append((time.perf_counter() - start) * 1000)
    text = "\n".join(f"{each.title}\n{each.text}\n{each.code}" for each in snippets)
    return QuestionResult(
        question, expected, snippets[0].title or "", has_name(text, expected), statistics.median(times)
    )


def has_name(text: str, name: str) -> bool:
    """Return True if a text contains a name as a whole word."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def find_newest_index(folder: Path) -> Path:
    """Return the index file of the library that was built last."""
    return max(folder.rglob("*.db"), key=lambda file: file.stat().st_mtime)


def read_contents(file: Path) -> tuple[str, int]:
    """Return the number of chunks by file type as text, and the number of all chunks."""
    with closing(sqlite3.connect(file)) as database:
        pages = [page for (page,) in database.execute("select page from piece")]
    counts = Counter(classify_file(page) for page in pages)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common(4)), len(pages)


def classify_file(path: str) -> str:
    """Return the type of a file: README, .d.ts, or its extension."""
    name = path.rpartition("/")[2]
    if name.lower().startswith("readme"):
        return "README"
    return ".d.ts" if re.search(r"\.d\.[cm]?ts$", name) else "." + name.rpartition(".")[2]


def render_page(reports: Sequence[LibraryReport]) -> str:
    """Return the whole report as Markdown."""
    rows = "".join(
        f"| {each.name} | `{each.id}` {each.version} | {each.sources} | {each.chunks:,} | "
        f"{each.first_seconds:.1f} | {each.cpu_seconds:.1f} | {each.megabytes:.1f} | "
        f"{calculate_median_milliseconds(each):.1f} | {count_found_answers(each)} of {len(each.answers)} |\n"
        for each in reports
    )
    found = sum(map(count_found_answers, reports))
    total = sum(len(each.answers) for each in reports)
    head = (
        "| library | resolved to | chunks by file type | chunks | first answer, s | its processor time, s "
        "| index, MB | median, ms | expected found |\n"
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
    )
    introduction = INTRODUCTION.format(budget=BUDGET, cores=os.cpu_count(), load=os.getloadavg()[0])
    tables = "".join(render_table(each) for each in reports)
    return introduction + head + rows + f"\nIn total {found} of {total}.\n" + tables


def count_found_answers(report: LibraryReport) -> int:
    return sum(each.found for each in report.answers)


def calculate_median_milliseconds(report: LibraryReport) -> float:
    return statistics.median(each.milliseconds for each in report.answers)


def render_table(report: LibraryReport) -> str:
    rows = "".join(
        f"| {each.question} | `{each.expected}` | {escape_cell(each.title)} | {FOUND_LABELS[each.found]} |\n"
        for each in report.answers
    )
    head = "| question | expected | first snippet | in the answer |\n| --- | --- | --- | --- |\n"
    return f"\n## {report.name} {report.version}\n\n{head}{rows}"


def escape_cell(text: str) -> str:
    """Escape text for a Markdown table."""
    return text.replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


if __name__ == "__main__":
    asyncio.run(main())
