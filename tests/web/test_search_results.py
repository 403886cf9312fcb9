"""URLs, dates and texts of search results."""

from __future__ import annotations

from typing import Any

import pytest
from ada_url import check_url
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.results import Hit
from centgate.web.search_results import (
    distinct_hits,
    is_of_category,
    parse_date,
    parse_line,
    parse_rows,
    parse_url,
)

ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)
)


@pytest.mark.parametrize(
    "written",
    [
        "https://example.com",
        "http://example.com/a?b=c#d",
        "HTTPS://Example.COM:8443/%7Euser",
        "https://[2001:db8::1]/x",
        "https://example.com/a_(b),c;d=e@f!*'+$&~:",
    ],
)
def test_url_is_returned_as_written(written: str) -> None:
    assert parse_url(f" {written}\n") == written


@pytest.mark.parametrize(
    ("written", "handed_on"),
    [
        ("https://b\u00fccher.example/\u00fc b", "https://xn--bcher-kva.example/%C3%BC%20b"),
        ("https://example.com\\@evil.example/", "https://example.com/@evil.example/"),
        ("https://example.com/\u202egpj.exe", "https://example.com/%E2%80%AEgpj.exe"),
        ('https://example.com/"><script>', "https://example.com/%22%3E%3Cscript%3E"),
        ("https://exa\tmple.com/\n", "https://example.com/"),
        ("https://example.com/\x00x", "https://example.com/%00x"),
    ],
)
def test_ambiguous_url_is_normalized(written: str, handed_on: str) -> None:
    assert parse_url(written) == handed_on


@pytest.mark.parametrize(
    "written",
    [
        *("", "https://", "https:///example.com", "https:/example.com", "//example.com", "example.com"),
        *("javascript:alert(1)", "data:text/html,x", "ftp://example.com/", "file:///etc/passwd"),
        *("https://user@example.com/", "https://user:secret@example.com/", "https://:secret@example.com/"),
        *("https://example.com:99999/", "https://exa mple.com/", "https://[::1/"),
        *("https://example.com/" + "x" * 2048, "https://example.com/" + "\u00fc" * 1000),
        *(None, 7, True, ["https://example.com/"], {"url": "https://example.com/"}),
    ],
)
def test_invalid_page_url_is_none(written: Any) -> None:
    assert parse_url(written) is None


@given(st.from_regex(r"https?://.{0,40}", fullmatch=True) | ANYTHING)
def test_returned_url_is_one_line_of_valid_ascii(written: Any) -> None:
    url = parse_url(written)

    if url is not None:
        assert url.isascii()
        assert url.isprintable()
        assert " " not in url
        assert check_url(url)
        assert parse_url(url) == url


@pytest.mark.parametrize(
    "date",
    [
        *("2026", "2026-04", "2026-04-01", "2026-04-01T12:00", "2026-04-01T12:00:00", "1850-01-01"),
        *("2026-04-01T12:00:00Z", "2026-04-01T12:00:00.000Z", "2024-02-29"),
    ],
)
def test_date_keeps_its_precision(date: str) -> None:
    assert parse_date(date) == date


@pytest.mark.parametrize(
    ("written", "date"),
    [
        ("2026-04-01T00:30:00.123456789+05:30", "2026-03-31T19:00:00Z"),
        ("2026-04-01T12:00:00+0000", "2026-04-01T12:00:00Z"),
        ("9999-12-31T23:00:00-05:00", None),
    ],
)
def test_time_with_offset_becomes_utc(written: str, date: str | None) -> None:
    assert parse_date(written) == date


def test_date_in_loose_format_becomes_iso_8601() -> None:
    assert parse_date(" 2026-04-01 12:00:00 ") == "2026-04-01T12:00:00"
    assert parse_date("2026-04-01t12:00:00z") == "2026-04-01T12:00:00Z"


@pytest.mark.parametrize(
    "odd",
    [
        *("", "2 days ago", "April 1, 2026", "2026-13", "2026-02-30", "2026-04-01T25:00:00", "20260401"),
        *(
            "0001-01-01T00:00:00",
            "1970-01-01T00:00:00.000Z",
            "99999",
            "2026-04-01\u202e",
            "\u0662\u0660\u0662\u0666",
        ),
        *("2026-04-01T12:00:00Z and more", None, 7, 1_775_000_000, True, [], {}),
    ],
)
def test_invalid_date_is_none(odd: Any) -> None:
    assert parse_date(odd) is None


@given(ANYTHING)
def test_any_value_gives_date_and_line_or_none(odd: Any) -> None:
    found = parse_line(odd, 5)

    assert parse_date(odd) is None or odd.strip()[:4] == (parse_date(odd) or "")[:4]
    assert found is None or (0 < len(found) <= 5 and found == found.strip())


@pytest.mark.parametrize(
    ("url", "category", "belongs"),
    [
        ("https://github.com/a/b", "github", True),
        ("https://GIST.GitHub.com/a", "github", True),
        ("https://notgithub.com/", "github", False),
        ("https://github.com.evil.example/", "github", False),
        ("https://example.com/github.com", "github", False),
        ("https://example.com/a.PDF?x=1#page=2", "pdf", True),
        ("https://arxiv.org/pdf/2307.06435", "pdf", True),
        ("https://arxiv.org/abs/2307.06435", "pdf", False),
        ("https://example.com/?file=a.pdf", "pdf", False),
        ("https://example.com/a.pdf.html", "pdf", False),
        ("https://example.com/", None, True),
        ("https://example.com/", "news", True),
    ],
)
def test_url_matches_operators(url: str, category: str | None, belongs: Any) -> None:
    assert is_of_category(url, category) is belongs


def test_needless_escapes_make_no_other_hit() -> None:
    hits = [Hit("https://a.example/~user?q=%c3%a9"), Hit("https://a.example/%7Euser?q=%C3%A9")]

    assert distinct_hits(hits, 5) == (hits[0],)


def test_notations_of_one_url_are_one_hit() -> None:
    hits = [
        Hit("https://A.example"),
        Hit("https://a.example/"),
        Hit("https://a.example:443/"),
        Hit("https://b.example"),
    ]

    assert [hit.url for hit in distinct_hits(hits, 5)] == ["https://A.example", "https://b.example"]
    assert [hit.url for hit in distinct_hits(hits, 1)] == ["https://A.example"]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        *(("http://docs.example/pen", True), ("https://www.docs.example/pen/", True)),
        *(("https://docs.example/pen#ink", True), ("https://docs.example/pen?utm_source=a", True)),
        *(("https://docs.example/pen#:~:text=ink", True), ("https://docs.example/pens", False)),
        *(("https://docs.example/pen?page=2", False), ("https://docs.example/pen#/ink", False)),
        *(("https://docs.example/pen#!ink", False), ("https://docs.example:8443/pen", False)),
    ],
)
def test_one_page_is_one_hit(other: str, is_same: Any) -> None:
    hits = [Hit("https://docs.example/pen"), Hit(other)]

    assert len(distinct_hits(hits, 5)) == (1 if is_same else 2)


@pytest.mark.parametrize("odd", [None, {}, "text", 7, [7], [None, "x"]])
def test_invalid_list_of_results_is_refused(odd: Any) -> None:
    with pytest.raises(TypeError):
        parse_rows(odd)


def test_list_with_results_or_empty_list_is_accepted() -> None:
    assert parse_rows([7, {}]) == [7, {}]
    assert parse_rows([]) == []
