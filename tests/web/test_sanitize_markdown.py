"""Sanitisation of a source's Markdown: unsafe links become text, everything else is unchanged."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.sanitize_markdown import sanitize_markdown

RUNS = re.compile(r"\]\(\s*<?(?:javascript|vbscript|data):", re.IGNORECASE)


@pytest.mark.parametrize(
    ("markdown", "left"),
    [
        ("[Menu](javascript:void(0)) and more", "Menu and more"),
        (r"[Menu](javascript:void\(0\)) and more", "Menu and more"),
        ('[Menu](JavaScript:; "Open the menu")', "Menu"),
        ("[Menu](<javascript:alert(1)>)", "Menu"),
        ("[a](data:text/html,alert(1)) [b](vbscript:x)", "a b"),
        ("[![Logo](https://example.com/a.png)](javascript:;)", "![Logo](https://example.com/a.png)"),
        ("[![Logo](data:image/png;base64,iVBORw0KGgo=)](javascript:;)", "Logo"),
        ("see <javascript:alert(1)>", "see "),
        ("[deep](javascript:a(b(1)))", "[deep](#a(b(1)))"),
        ("[ok](https://example.com/?q=javascript:x)", "[ok](https://example.com/?q=javascript:x)"),
        ("a javascript: link, and data: too", "a javascript: link, and data: too"),
        ("plain [words](https://example.com)", "plain [words](https://example.com)"),
    ],
)
def test_unsafe_links_become_text(markdown: str, left: str) -> None:
    assert sanitize_markdown(markdown) == left


PARTS = [
    "[",
    "]",
    "(",
    ")",
    "](",
    "!",
    "<",
    ">",
    "javascript:",
    "DATA:",
    "vbscript:",
    " ",
    "x",
    '"',
    "\\",
    "\n",
]


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
def test_no_script_remains_in_brackets(markdown: str) -> None:
    assert not RUNS.search(sanitize_markdown(markdown))


@pytest.mark.extended
@pytest.mark.parametrize(
    "hostile",
    [
        "[x](javascript:" * 60_000,
        "[x](javascript:" + "(a)" * 300_000,
        "[" * 900_000 + "data:",
        ("[" + "a" * 499) * 2000 + "data:",
        "<javascript:" * 80_000,
        "[x](data:" + " " * 900_000,
    ],
)
def test_hostile_markdown_is_sanitized_in_time(hostile: str) -> None:
    assert sanitize_markdown(hostile)
