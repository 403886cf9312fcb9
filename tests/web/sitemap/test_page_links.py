"""The links of one page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.sitemap.links import MAX_LINKS, extract_links
from centgate.web.sitemap.urls import PageEntry

URL = "https://example.com/docs/index.html"


def list_links(html: str, url: str = URL) -> list[tuple[str, str | None]]:
    """Return the URLs and names of a page's links."""
    return [(each.url, each.title) for each in extract_links(html.encode(), "text/html", url).links]


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("guide", "https://example.com/docs/guide"),
        ("../about", "https://example.com/about"),
        ("/about?x=1#part", "https://example.com/about?x=1#part"),
        ("//other.example/a", "https://other.example/a"),
        (" https://example.com/a b ", "https://example.com/a%20b"),
        ("?page=2", "https://example.com/docs/index.html?page=2"),
        ("HTTP://EXAMPLE.com:80/A", "http://example.com/A"),
        ("/caf\u00e9", "https://example.com/caf%C3%A9"),
    ],
)
def test_links_are_absolute(href: str, url: str) -> None:
    assert list_links(f'<a href="{href}">Name</a>') == [(url, "Name")]


@pytest.mark.parametrize(
    "href",
    [
        "",
        "#",
        "#top",
        "mailto:a@b.c",
        "javascript:void(0)",
        "data:text/html,x",
        "ftp://a/b",
        "http://[",
        "tel:1",
    ],
)
def test_links_to_no_page_are_skipped(href: str) -> None:
    assert list_links(f'<a href="{href}">Name</a><a name=x>y</a>') == []


def test_base_element_is_used() -> None:
    assert list_links('<base target=x><base href="/v2/"><a href="guide">Guide</a>') == [
        ("https://example.com/v2/guide", "Guide")
    ]


@pytest.mark.parametrize("base", ["http://[", "javascript:x", "#"])
def test_invalid_base_is_ignored(base: str) -> None:
    assert list_links(f'<base href="{base}"><a href="https://example.com/a">A</a>') == [
        ("https://example.com/a", "A")
    ]


@pytest.mark.parametrize(
    ("anchor", "name"),
    [
        ("<a href=/a> Two \n <b>words</b></a>", "Two words"),
        ("<a href=/a aria-label='Account'><svg></svg></a>", "Account"),
        ("<a href=/a title='Account'>&nbsp;\u203a</a>", "Account"),
        ("<a href=/a><img alt='Our logo' src=x></a>", "Our logo"),
        ("<a href=/a>Read more</a>", None),
        ("<a href=/a title='The plan'>Learn more \u2192</a>", "The plan"),
        ("<a href=/a>2</a>", None),
        ("<a href=/a>https://example.com/a</a>", None),
        ("<a href=/a>More about fish</a>", "More about fish"),
        ("<area href=/a alt='On the map'>", "On the map"),
        ("<a href=/a></a>", None),
    ],
)
def test_link_has_a_meaningful_name(anchor: str, name: str | None) -> None:
    assert list_links(anchor) == [("https://example.com/a", name)]


def test_page_has_its_title_and_description() -> None:
    head = "<title> A\n title </title><meta name=Description content=' All of it '>"
    page = f"{head}<a href=/a>A</a><svg><title>x</title></svg>"

    assert extract_links(page.encode(), None, URL).page == PageEntry(URL, "A title", "All of it")


def test_open_graph_replaces_missing_title_and_description() -> None:
    page = "<meta property=og:title content=T><meta property=og:description content=D>"

    assert extract_links(page.encode(), None, URL).page == PageEntry(URL, "T", "D")


def test_page_has_its_languages() -> None:
    head = (
        "<link rel=alternate hreflang=en href=index.html><link rel='Alternate x' hreflang=de href=/de/>"
        "<link rel=alternate type=application/rss+xml href=/feed><link rel=canonical hreflang=fr href=/fr/>"
    )

    assert extract_links(head.encode(), None, URL).page.alternates == (URL, "https://example.com/de/")


def test_charset_of_header_is_used() -> None:
    page = "<title>Stra\u00dfe</title>".encode("latin-1")

    assert extract_links(page, "text/html; charset=iso-8859-1", URL).page.title == "Stra\u00dfe"


@pytest.mark.parametrize("body", [b"", b"   ", b"\0", b"<!-- -->", b"\xff\xfe", b"plain text"])
def test_empty_page_is_parsed(body: bytes) -> None:
    found = extract_links(body, "text/html", URL)

    assert (found.page.url, found.links) == (URL, ())


def test_number_of_links_is_limited() -> None:
    assert len(list_links("".join(f"<a href=/{n}>x{n}</a>" for n in range(MAX_LINKS + 9)))) == MAX_LINKS


def test_deep_nesting_ends() -> None:
    found = list_links("<a href=/a>A</a>" + "<div>" * 100_000 + "<a href=/b>B</a>")

    assert found[0] == ("https://example.com/a", "A")


def test_length_of_name_is_limited() -> None:
    ((_, name),) = list_links(f"<a href=/a>{'long ' * 100_000}</a>")

    assert name
    assert len(name) <= 1000


@given(st.binary(max_size=400))
def test_any_bytes_are_parsed(noise: bytes) -> None:
    extract_links(noise, None, URL)
    extract_links(b"<html><base href='" + noise + b"'><a href='" + noise + b"'>" + noise, "text/html", URL)
