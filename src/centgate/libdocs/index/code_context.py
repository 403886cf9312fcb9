"""Find what an example needs in the code before it on its page: imports, and objects that it uses."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from centgate.libdocs.index.code_names import (
    MIN_NAME,
    find_creations,
    find_defined,
    find_free_names,
    find_imports,
    imported_names,
)
from centgate.libdocs.index.rows import ChunkRow, CodeBefore, find_code_before, section_trail
from centgate.libdocs.index.usage import SOURCE_FILE
from centgate.libdocs.parse.code_check import CHECKED_LANGUAGES, SCRIPT_LANGUAGES

MAX_DISTANCE = 150
"""Number of chunks before an example in which is searched."""
MAX_STATEMENTS = 4
_SOURCES = {"jsx": ("jsx", "javascript"), "typescript": ("typescript", "javascript"), "tsx": SCRIPT_LANGUAGES}
"""Languages whose statements are valid in another one, too."""
_UNFIT_IMPORT = re.compile(r"```|['\"](?:npm:|jsr:|https?:)")
"""Imports that would end the fence that they are given in, and those that only other runtimes than Node.js
and bundlers know.
"""


def find_context(database: sqlite3.Connection, row: ChunkRow) -> list[str]:
    """Return the statements that an example needs and does not have, imports first; the text of the chunk
    may have some of them.
    """
    if row.language not in CHECKED_LANGUAGES or not row.shows_call:
        return []
    known = find_defined(f"{row.code}\n{row.text}", 1)
    missing, added = find_free_names(row.code or "") - known, frozenset[str]()
    statements = _list_statements(row, find_code_before(database, row, MAX_DISTANCE))
    found: list[str] = []
    while len(found) < MAX_STATEMENTS:
        # two imports of one name would be no valid code
        useful = {each: names & missing for each, names in statements.items() if not names & added}
        best = max(useful, key=lambda each: len(useful[each]), default="")
        if not useful.get(best):
            break
        added |= statements[best]
        known |= statements[best]
        missing = (missing | find_free_names(best)) - known
        # what a line needs is found after it, and precedes it
        found.insert(0, best)
    return sorted(found, key=lambda each: not find_imports(each))


def _list_statements(row: ChunkRow, earlier: Iterable[CodeBefore]) -> dict[str, frozenset[str]]:
    """Return the imports and creations in earlier code, the nearest first, each with its names.

    Each example in a file of source creates its own objects; those on a page continue each other.
    """
    statements: dict[str, frozenset[str]] = {}
    for each in earlier:
        if each.language not in _SOURCES.get(row.language or "", (row.language,)):
            continue
        imports = [line for line in find_imports(each.code) if not _UNFIT_IMPORT.search(line)]
        statements |= {line: imported_names(line) for line in imports if line not in statements}
        if SOURCE_FILE.search(row.page) and section_trail(each.trail) != section_trail(row.trail):
            continue
        for name, line in find_creations(each.code).items():
            if line not in imports and len(name) >= MIN_NAME:
                statements.setdefault(line, frozenset((name,)))
    return statements
