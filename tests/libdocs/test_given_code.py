"""Code in answers about published packages: it parses, or is marked as a fragment.

Reads thirty packages from PyPI and npm; skipped where these cannot be reached.
"""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from facilitators import build_settings

from centgate.errors import NoData, ProviderFailure, ProviderTimeout
from centgate.libdocs.libraries import DocSnippet
from centgate.libdocs.parse.code_check import CHECKED_LANGUAGES, FRAGMENT_WORD, is_complete
from centgate.provider import RequestTrace
from centgate.providers.packagedocs import PackageDocs
from centgate.resources import open_resources

pytestmark = pytest.mark.extended

PACKAGES = (
    "/pypi/anyio",
    "/pypi/apscheduler",
    "/pypi/beautifulsoup4",
    "/pypi/boltons",
    "/pypi/cachetools",
    "/pypi/click",
    "/pypi/fastapi",
    "/pypi/itsdangerous",
    "/pypi/jsonschema",
    "/pypi/more-itertools",
    "/pypi/networkx",
    "/pypi/parsy",
    "/pypi/pluggy",
    "/pypi/starlette",
    "/pypi/werkzeug",
    "/npm/@tanstack~react-query",
    "/npm/ajv",
    "/npm/axios",
    "/npm/commander",
    "/npm/cheerio",
    "/npm/date-fns",
    "/npm/express",
    "/npm/fastify",
    "/npm/hono",
    "/npm/immer",
    "/npm/ky",
    "/npm/nanoid",
    "/npm/p-limit",
    "/npm/react",
    "/npm/zod",
)
TOPICS = (None, "how do I start", "handle an error", "options of a request", "asynchronous use")
MAX_FRAGMENT_SHARE = 0.2
"""Maximum share of fragments below headings, if more than one: a mark on everything would be no check."""
_FENCE = re.compile(r"^```(\w+)( fragment)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("library_id", PACKAGES)
async def test_given_code_parses_or_is_marked(library_id: str, tmp_path: Path) -> None:
    settings = build_settings(tmp_path, "http://127.0.0.1:9")
    settings = settings.model_copy(update={"packagedocs_folder": tmp_path / "docs"})
    async with open_resources(settings) as resources:
        packagedocs = PackageDocs(settings, resources)
        await wait_for_index(packagedocs, library_id)
        for topic in TOPICS:
            for budget in (500, 5_000):
                with suppress(NoData):
                    for snippet in await packagedocs.query_docs(library_id, topic, budget):
                        check_snippet(snippet, library_id)

    [file] = (tmp_path / "docs").glob("*/*/*/*.db")
    checked = list(iterate_checked_code(file))
    assert checked
    assert all(complete is not None for _, _, complete in checked)
    assert all(ast.parse(code) for code, language, complete in checked if language == "python" and complete)
    guides = list(iterate_checked_code(file, "where id not in (select piece from name)"))
    assert sum(not complete for *_, complete in guides) <= max(1, MAX_FRAGMENT_SHARE * len(guides))


async def wait_for_index(packagedocs: PackageDocs, library_id: str) -> None:
    while True:
        try:
            await packagedocs.bind(RequestTrace()).query_docs(library_id, None, 500)
        except ProviderTimeout as failure:
            if "still reading" not in failure.message:
                pytest.skip(f"the registry cannot be reached: {failure.message}")
        except ProviderFailure as failure:
            pytest.skip(f"the registry cannot be reached: {failure.message}")
        else:
            return


def check_snippet(snippet: DocSnippet, library_id: str) -> None:
    assert snippet.library == library_id
    assert snippet.version
    assert snippet.headings
    if snippet.code is not None and snippet.language in CHECKED_LANGUAGES:
        assert snippet.complete in (is_complete(snippet.code, snippet.language), False)
    else:
        assert snippet.complete is None
    for language, mark, code in _FENCE.findall(snippet.text or ""):
        assert mark.strip() == FRAGMENT_WORD or is_complete(code, language) is not False


def iterate_checked_code(file: Path, condition: str = "") -> Iterator[tuple[str, str, int | None]]:
    """Yield code; signatures are fragments, and are chunks that define a name."""
    with closing(sqlite3.connect(file)) as database:
        query = f"select code, language, complete from piece {condition}"
        for code, language, complete in database.execute(query):
            if language in CHECKED_LANGUAGES:
                yield code, language, complete
