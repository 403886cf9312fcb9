"""Truncation of Markdown at useful boundaries."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.extract.truncate import truncate

BLOCKS = (
    "# Head",
    "## Second",
    "A paragraph with words and a [link text](https://e.com/a/b/c) in it.",
    "- one\n- two\n- three [x](http://a.b/)",
    "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |",
    "```python\nx = 1\ny = 2\n\nz = 3\n```",
    "> quoted\n> text",
    "- item\n\n  ```\n  code in item\n  ```",
    "word " * 60,
    "x" * 300,
    "\U0001f600" * 20,
    "````\n```\n````",
)
documents = st.lists(st.sampled_from(BLOCKS), max_size=12).map("\n\n".join)


def open_fences(text: str) -> int:
    """Count code blocks that are not closed."""
    fence = ""
    for line in text.split("\n"):
        mark = re.match(r"[ >]*(`{3,}|~{3,})(.*)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return bool(fence)


def trailing_headings(text: str) -> int:
    """Count headings with only headings after them."""
    lines = [line for line in text.split("\n") if line]
    return next((n for n, line in enumerate(reversed(lines)) if not line.startswith("#")), len(lines))


@given(documents, st.integers(0, 500))
def test_truncated_text_keeps_length_and_ends_cleanly(markdown: str, most: int) -> None:
    text, truncated = truncate(markdown, most)

    assert len(text) <= most
    assert truncated == (len(markdown) > most)
    if truncated:
        assert not open_fences(text)
        assert trailing_headings(text) == 0 or trailing_headings(text) > 6
        assert text.count("](") == text.count("[") == text.count(")")


@given(st.text(alphabet="ab [](`~#|->\n!\\", max_size=80), st.integers(0, 60))
def test_any_text_is_truncated_to_length(markdown: str, most: int) -> None:
    text, truncated = truncate(markdown, most)

    assert len(text) <= most
    assert truncated == (len(markdown) > most)
    assert not truncated or not open_fences(text)


@given(documents)
def test_fitting_text_is_unchanged(markdown: str) -> None:
    assert truncate(markdown, len(markdown)) == (markdown, False)


@pytest.mark.parametrize(
    ("markdown", "most", "expected"),
    [
        ("first paragraph\n\nsecond paragraph", 30, "first paragraph"),
        ("text of some length\n\n## Heading\n\nmore text here", 35, "text of some length"),
        ("- item one\n- item two\n- item three", 25, "- item one\n- item two"),
        ("| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |", 34, "| a | b |\n| - | - |\n| 1 | 2 |"),
        ("```py\na = 1\nb = 2\nc = 3\n```", 22, "```py\na = 1\nb = 2\n```"),
        ("one two three four", 9, "one two"),
        ("aa aa [a long link](https://e.com/x) b", 30, "aa aa"),
        ("x" * 50, 10, "x" * 10),
        ("x" * 8 + "\N{WOMAN}\u200d\N{BOY}", 10, "x" * 8),
    ],
)
def test_text_is_cut_at_a_boundary(markdown: str, most: int, expected: str) -> None:
    assert truncate(markdown, most) == (expected, True)


@pytest.mark.parametrize(
    "hostile",
    ["[" * 10**6, "[a" * 10**6, "`" * 10**6, "[![a](b)" * 10**5, "| a " * 10**5, "[" + "w " * 10**6 + "](u)"],
)
def test_hostile_markdown_is_truncated_in_time(hostile: str) -> None:
    text, truncated = truncate(hostile, 20_000)

    assert truncated
    assert len(text) <= 20_000


def test_list_of_headlines_is_kept() -> None:
    text, truncated = truncate("\n\n".join(f"### Headline {n}" for n in range(1000)), 1000)

    assert truncated
    assert 900 < len(text) <= 1000
    assert text.startswith("### Headline 0\n\n### Headline 1\n\n")


def test_nested_headings_without_text_are_removed_together() -> None:
    first = ("It has words. " * 5).strip()

    text, _ = truncate(first + "\n\n# One\n\n## Two\n\n### Three\n\n" + "x" * 50, 110)

    assert text == first


@pytest.mark.extended
@pytest.mark.parametrize("piece", ["[\\", "[a b](c)", "[![a](", "`a", "- "])
def test_link_like_text_is_cut_in_linear_time(piece: str) -> None:
    text, _ = truncate(piece * 200_000, 200_000)

    assert 100_000 <= len(text) <= 200_000


def test_row_of_spaces_is_scanned_once() -> None:
    text, _ = truncate("| a\n|" + " " * 150_000 + "x\n" * 50_000, 200_000)

    assert 100_000 <= len(text) <= 200_000
