"""Division of a page's Markdown into parts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.extract.parts import MAX_LINKS, PageLink, describe_missing_part, take_part
from centgate.web.results import WebPage

LIMIT = 200
LINKED = "[one](https://a.example/1) ![two](https://a.example/2.png) [one](https://a.example/1)"


def build_page(markdown: str, length: int | None = -1) -> WebPage:
    """Return a page that was read completely, or of this length."""
    return WebPage("https://a.example/", markdown, len(markdown) if length == -1 else length)


def read_all(markdown: str, limit: int = LIMIT) -> list[str]:
    """Return the texts of all parts, after a check of each part's offset."""
    texts, offset = list[str](), 0
    while True:
        part = take_part(build_page(markdown), offset, limit)
        assert len(part.text) <= limit
        assert part.truncated is (part.next_offset is not None)
        texts.append(part.text)
        if part.next_offset is None:
            return texts
        assert part.next_offset > offset
        offset = part.next_offset


BLOCKS = st.sampled_from(
    [
        "# Heading",
        "word " * 30,
        "- item\n- item",
        "```py\n" + "x = 1\n" * 20 + "```",
        "| a |\n| - |\n| 1 |",
        "é" * 90,
    ]
)


@given(st.lists(BLOCKS, min_size=1, max_size=12))
def test_parts_together_are_page(blocks: list[str]):
    markdown = "\n\n".join(blocks)

    texts = read_all(markdown)

    whole, joined = (re.sub(r"`{3}(py)?|\s", "", text) for text in (markdown, "".join(texts)))
    assert joined == whole


@pytest.mark.parametrize(
    ("before", "opening"), [("```py\n", "```py\n"), ("- ```py\n", "  ```py\n"), ("```\n", "```\n")]
)
def test_code_block_is_reopened_with_its_language(before: str, opening: str):
    indent = " " * (len(opening) - len(opening.lstrip()))
    first, second, *_ = read_all(before + f"{indent}print(1)\n" * 40 + f"{indent}```")

    assert first.endswith(f"\n{indent}```")
    assert second.startswith(f"{opening}{indent}print(1)")


CODE_LINES = st.sampled_from(
    ["", "    indented", "x = 1", "``` inside", "`one` and ``two``", "  ~~~", "word " * 30]
)


@given(st.lists(CODE_LINES, min_size=1, max_size=40), st.sampled_from(["", "  ", "> "]))
def test_code_is_complete_across_parts(lines: list[str], indent: str):
    fence = indent + "````"
    markdown = "\n".join([fence, *(indent + line for line in lines), fence])

    texts = read_all(markdown)

    codes = [text.removeprefix(fence + "\n").removesuffix("\n" + fence) for text in texts]
    assert all(text.startswith(fence) for text in texts)
    joined, whole = (
        re.sub(r"[ \n]", "", text) for text in ("".join(codes), "\n".join(indent + line for line in lines))
    )
    assert joined == whole
    cut_lines = {line for code in codes for line in code.split("\n")}
    assert {indent + line for line in lines if len(line) < 30} <= cut_lines | {"", indent, indent.strip()}


def test_fitting_page_keeps_its_urls():
    part = take_part(build_page(LINKED), 0, LIMIT)

    assert part.text == LINKED
    assert part.links == (
        PageLink("one", "https://a.example/1", is_image=False, label=None),
        PageLink("two", "https://a.example/2.png", is_image=True, label=None),
    )


def test_urls_of_longer_page_are_not_counted():
    code = "`[no](https://a.example/code)`"
    markdown = "\n\n".join([f"{LINKED} {code}", *[f"[far](https://a.example/{'x' * 150})"] * 3])

    part = take_part(build_page(markdown), 0, LIMIT)

    assert part.text.startswith(f"[one][1] ![two][2] [one][1] {code}")
    assert part.text.endswith("[far][3]")
    assert part.next_offset is None
    assert [(link.label, link.url[-5:]) for link in part.links] == [
        ("1", "ple/1"),
        ("2", "2.png"),
        ("3", "xxxxx"),
    ]


def test_offset_beyond_end_gives_nothing():
    part = take_part(build_page("short"), 10, LIMIT)

    assert (part.text, part.next_offset, part.truncated, part.length) == ("", None, False, 5)


@pytest.mark.parametrize(
    ("length", "offset", "message"),
    [
        (5, 4, None),
        (5, 5, "the whole page has 5 characters"),
        (5, 10_000, "from the offset 10,000 on: the whole page has 5 characters"),
        (9, 7, "only 5 characters of the page were read"),
        (None, 7, "only 5 characters of the page were read"),
    ],
)
def test_offset_beyond_end_is_reported(length: int | None, offset: int, message: str | None):
    read = build_page("short", length)

    warning = describe_missing_part(read, take_part(read, offset, LIMIT), offset)

    assert warning is None if message is None else message in (warning or "")


def test_empty_page_has_no_missing_part():
    assert describe_missing_part(build_page(""), take_part(build_page(""), 0, LIMIT), 0) is None


def test_first_part_has_no_hash_and_continues():
    part = take_part(build_page("short", None), 0, LIMIT)

    assert (part.next_offset, part.truncated, part.content_hash, part.length) == (None, True, None, None)


def test_links_are_limited():
    markdown = " ".join(f"[a](https://a.example/{number})" for number in range(MAX_LINKS + 5))

    assert len(take_part(build_page(markdown), 0, len(markdown)).links) == MAX_LINKS


@pytest.mark.parametrize("before", ["", "x "])
def test_nested_link_does_not_exceed_limit(before: str):
    inner = " ".join(f"[a](https://a.example/{number})" for number in range(MAX_LINKS))
    markdown = f"{before}[{inner}](https://a.example/outer)"

    part = take_part(build_page(markdown), 0, len(markdown))

    assert part.text == f"{before}[{inner}"
    assert len(part.links) == MAX_LINKS
    assert part.next_offset == len(part.text)


@pytest.mark.parametrize("limit", [LIMIT, 10_000])
def test_label_of_many_digits_is_no_label(limit: int):
    part = take_part(build_page(f"[one](https://a.example/1) [x][{'1' * 5_000}]"), 0, limit)

    assert [link.url for link in part.links] == ["https://a.example/1"]


def test_link_text_is_shortened_to_its_beginning():
    part = take_part(build_page("[" + "a" * 500 + " " * 5_000 + "b](https://a.example/)"), 0, 20_000)

    assert part.links == (PageLink("a" * 200, "https://a.example/", is_image=False, label=None),)


def test_index_loses_no_url():
    lines = [f"- [page {number}](https://a.example/{number})" for number in range(2500)]

    links, offset = set[str](), 0
    while True:
        part = take_part(build_page("\n".join(lines)), offset, 20_000)
        assert len(part.links) <= MAX_LINKS
        links |= {link.url for link in part.links}
        if part.next_offset is None:
            break
        offset = part.next_offset

    assert links == {f"https://a.example/{number}" for number in range(2500)}


def test_labels_of_page_keep_their_targets():
    own = ["[the licence][1] and [7]", "", "[1]: https://good.example/"]
    markdown = "\n".join(["[first](https://evil.example/first)", *own, "word " * 90])

    part = take_part(build_page(markdown), 0, LIMIT)

    assert part.links == (PageLink("first", "https://evil.example/first", is_image=False, label="8"),)
    assert "[the licence][1]" in part.text


def test_link_across_lines_keeps_its_url():
    markdown = (
        "see [the text\nof a link](https://a.example/wrapped) and [one](https://a.example/1)\n" + "word " * 90
    )

    part = take_part(build_page(markdown), 0, LIMIT)

    assert "of a link](https://a.example/wrapped)" in part.text
    assert [link.url for link in part.links] == ["https://a.example/1"]
