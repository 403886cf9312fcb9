"""Page of promises about money: the tests that it names exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "money-promises.md"
REFERENCE = re.compile(r"`((?:\w+/)*test_\w+\.py)(?:::(\w+))?`")
ROW = re.compile(r"^\| (?!promise|---)(.+) \|$", re.MULTILINE)


def find_tests(path: Path) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_named_tests_exist() -> None:
    references = REFERENCE.findall(PAGE.read_text(encoding="utf-8"))

    missing = [
        f"{path}::{name}"
        for path, name in references
        if not (TESTS / path).exists() or (name and name not in find_tests(TESTS / path))
    ]

    assert missing == []
    assert len(references) > 30


def test_every_promise_has_test_and_way_to_break_it() -> None:
    rows = [row.split(" | ") for row in ROW.findall(PAGE.read_text(encoding="utf-8"))]

    assert [row for row in rows if len(row) != 3 or not REFERENCE.search(row[1])] == []
