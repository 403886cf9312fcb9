"""Code that parses by itself, and fragments that say that they are fragments."""

from __future__ import annotations

import textwrap

import pytest

from centgate.libdocs.parse.code_check import is_complete, mark_fragments, tidy_code
from centgate.libdocs.parse.documents import PackageDocument
from centgate.libdocs.parse.markdown import split_markdown


@pytest.mark.parametrize(
    ("language", "code", "expected"),
    [
        ("python", "await client.get(url)", True),
        ("python", "$ pip install quill", False),
        ("javascript", "const pen = await dip('ink')", True),
        ("javascript", "function dip(pen: string) {}", False),
        ("jsx", "<Pen ink={black} />", True),
        ("typescript", "export function dip(pen: string): boolean", True),
        ("typescript", "dip(pen: string): boolean", False),
        ("tsx", "const pen = <Pen<Ink> ink={black} />", True),
        ("bash", "dip (", None),
        (None, "dip(", None),
    ],
)
def test_code_is_checked_by_the_grammar_of_its_language(
    language: str | None, code: str, *, expected: bool | None
) -> None:
    assert is_complete(code, language) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (">>> dip(1)\n2\n", "dip(1)\n# 2\n"),
        (
            ">>> for pen in pens:\n...     dip(pen)\n...\nTrue\n\nthe pen is wet now",
            "for pen in pens:\n    dip(pen)\n\n# True\n\n# the pen is wet now",
        ),
        ("In [1]: dip(1)\nOut[1]: 2", "dip(1)\n# Out[1]: 2"),
        (">>> dip(1)\n\ndip(2)", "dip(1)\n\ndip(2)"),
        ("    dip(1)\n    dip(2)", "dip(1)\ndip(2)"),
        (">>> dip(\n", ">>> dip(\n"),
    ],
)
def test_sessions_become_code_that_parses(code: str, expected: str) -> None:
    assert tidy_code(code, "python") == expected


@pytest.mark.parametrize("indent", ["", "    "])
def test_doctest_in_docstring_stays_code(indent: str) -> None:
    code = 'def dip(pen):\n    """Dip a pen.\n\n    >>> dip(1)\n    True\n    """\n    return bool(pen)\n'

    assert tidy_code(textwrap.indent(code, indent), "python") == code


def test_fragments_inside_a_text_are_marked() -> None:
    text = "Either:\n\n```python\ndip(\n```\n\nor\n\n```python\ndip()\n```\n\nor\n\n```js\ndip(\n"

    marked = mark_fragments(text)

    assert marked == text.replace("```python\ndip(\n", "```python fragment\ndip(\n")


def test_code_that_was_cut_is_a_fragment() -> None:
    page = "# Pens\n\n```python\n" + "dip(pen)\n" * 1_000 + "```\n\n```python\ndip(ink)\n```\n"

    chunks = split_markdown(PackageDocument("docs/pens.md", page, "markdown", None))

    assert {each.complete for each in chunks[:-1]} == {False}
    assert chunks[-1].complete is True
