"""Sitemaps of every format, valid and hostile."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_site import render_sitemap

from centgate.web.sitemap.sitemaps import (
    MAX_BYTES,
    MAX_ENTRIES,
    ChildSitemap,
    Sitemap,
    inflate_gzip,
    parse_sitemap,
)
from centgate.web.sitemap.urls import PageEntry

URL = "https://example.com/sitemap.xml"
A, B = "https://example.com/a", "https://example.com/b"

RSS = f"""<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
<title>News</title><link>https://example.com/</link><atom:link href="https://example.com/feed"/>
<item><title><![CDATA[Fish &amp; <b>chips</b>]]></title><link>{A}</link>
<description>&lt;p&gt;All of it&lt;/p&gt;</description></item>
<item><title>By its guid</title><guid>{B}</guid></item>
<item><title>No link at all</title><guid isPermaLink="false">7</guid></item></channel></rss>"""
RDF = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="https://example.com/"><title>News</title></channel>
<item rdf:about="{A}"><title>One</title><link>{A}</link></item></rdf:RDF>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><link href="/"/>
<entry><title>One</title><link rel="edit" href="/edit"/><link href="/a"/><summary>All of it</summary></entry>
<entry><title>Two</title><link rel="alternate" href="/b"/></entry></feed>"""


def list_pages(body: str | bytes) -> list[str]:
    """Return the URLs in a sitemap."""
    found = parse_sitemap(body.encode() if isinstance(body, str) else body, URL)
    return [entry.url for entry in found.pages] if found else []


@pytest.mark.parametrize(
    "body",
    [
        render_sitemap(A, B),
        f"<urlset><url><loc>{A}</loc></url><url><loc> {B}\n</loc><priority>1</priority></url></urlset>",
        f"\ufeff\n {render_sitemap(A, B)}",
        render_sitemap(A, B).replace("UTF-8", "UTF-16").encode("utf-16"),
        f"<s:urlset xmlns:s='http://www.google.com/schemas/sitemap/0.84'><s:url><s:loc>{A}</s:loc></s:url>"
        f"<s:url><s:loc>{B}</s:loc></s:url></s:urlset>",
        f"<urlset><url><loc><![CDATA[{A}]]></loc></url><url><loc>/b</loc></url></urlset>",
        f"<urlset><!-- one --><url><!-- two --><loc>{A}</loc></url><?x y?><url><loc>{B}</loc></url></urlset>",
        f"{A}\n{B}\n",
        f"\ufeff{A}\r\n\r\n# a comment\r\n  {B}  ",
        gzip.compress(render_sitemap(A, B).encode()),
        gzip.compress(f"{A}\n".encode()) + gzip.compress(B.encode()),
        render_sitemap(A, B, "https://example.com/cut")[:-60],
        gzip.compress(render_sitemap(A, B, f"{A}/cut/off").encode(), 0)[:-40],
        gzip.compress(f"{A}\n{B}\nhttps://example.com/cut".encode(), 0)[:-12],
    ],
    ids=[
        "XML",
        "without a namespace",
        "after a byte order mark",
        "UTF-16",
        "with a prefix",
        "CDATA and relative",
        "comments",
        "text",
        "text with blanks",
        "gzip",
        "gzip of two members",
        "cut off",
        "gzip cut off",
        "gzip of text cut off",
    ],
)
def test_each_format_is_parsed(body: str | bytes) -> None:
    assert list_pages(body) == [A, B]


def test_index_names_sitemaps_and_no_pages() -> None:
    locs = (
        f"<sitemap><loc>{A}.xml</loc></sitemap>"
        "<sitemap><loc>/b.xml.gz</loc><lastmod>2026-05-01</lastmod></sitemap>"
    )

    assert parse_sitemap(f"<sitemapindex>{locs}</sitemapindex>".encode(), URL) == Sitemap(
        child_sitemaps=(ChildSitemap(f"{A}.xml"), ChildSitemap(f"{B}.xml.gz", "2026-05-01"))
    )


def test_images_and_news_are_no_pages() -> None:
    body = f"""<urlset xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
        xmlns:news="http://www.google.com/schemas/sitemap-news/0.9"><url>
        <image:image><image:loc>https://example.com/1.png</image:loc></image:image>
        <news:news><news:title>Title</news:title></news:news><loc>{A}</loc></url></urlset>"""

    assert parse_sitemap(body.encode(), URL) == Sitemap((PageEntry(A, source="sitemap"),))


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        (RSS, (PageEntry(A, "Fish & chips", "All of it"), PageEntry(B, "By its guid"))),
        (RDF, (PageEntry(A, "One"),)),
        (ATOM, (PageEntry(A, "One", "All of it"), PageEntry(B, "Two"))),
    ],
    ids=["RSS 2", "RSS 1", "Atom"],
)
def test_feeds_name_pages_with_titles(body: str, entries: tuple[PageEntry, ...]) -> None:
    found = parse_sitemap(body.encode(), URL)

    assert found
    assert [(each.url, " ".join((each.title or "").split()), each.description) for each in found.pages] == [
        (each.url, each.title, each.description) for each in entries
    ]


def test_urls_with_bare_ampersands_are_complete() -> None:
    assert list_pages(f"<urlset><url><loc>{A}?x=1&y=2&amp;z=3</loc></url></urlset>") == [f"{A}?x=1&y=2&z=3"]


def test_split_url_is_skipped() -> None:
    assert list_pages(f"<urlset><url><loc>{A}</loc></url><url><loc>https://example.com/longer-th") == [A]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "   ",
        "not found",
        "<",
        "<!doctype html><html><body><a href='/a'>A</a></body></html>",
        '{"error": "https://example.com/a"}',
        "<kml><url><loc>https://example.com/a</loc></url></kml>",
        b"\x1f\x8b broken",
        b"\x1f\x8b",
        b"\xff\xfe",
        b"\x89PNG\r\n\x1a\n\0\0",
    ],
)
def test_invalid_sitemap_is_none(body: str | bytes) -> None:
    assert parse_sitemap(body.encode() if isinstance(body, str) else body, URL) is None


BILLION = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
DOCTYPES = {
    "billion laughs in text": (f'<!DOCTYPE u [<!ENTITY e0 "lol">{BILLION}]>', "&e12;"),
    "quadratic blowup": (f'<!DOCTYPE u [<!ENTITY x "{"A" * 200_000}">]>', "&x;" * 20_000),
    "a file": ('<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "https://example.com/&x;"),
    "another host": ('<!DOCTYPE u [<!ENTITY x SYSTEM "http://127.0.0.1:9/x">]>', "https://example.com/&x;"),
    "a parameter entity": (
        '<!DOCTYPE u [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x"> %p;]>',
        "https://example.com/&x;",
    ),
    "an external DTD": ('<!DOCTYPE u SYSTEM "http://127.0.0.1:9/x.dtd">', "https://example.com/&x;"),
    "itself": ('<!DOCTYPE u [<!ENTITY x "&y;"><!ENTITY y "&x;">]>', "&x;"),
}


@pytest.mark.parametrize(("doctype", "loc"), DOCTYPES.values(), ids=DOCTYPES)
def test_entities_are_not_expanded(doctype: str, loc: str) -> None:
    assert list_pages(f"{doctype}<urlset><url><loc>{loc}</loc></url></urlset>") == []


def test_entities_in_attributes_are_ignored() -> None:
    doctype, laugh = DOCTYPES["billion laughs in text"]

    assert list_pages(f'{doctype}<urlset><url a="{laugh}"><loc>{A}</loc></url></urlset>') in ([], [A])


def test_deep_nesting_keeps_earlier_pages() -> None:
    assert list_pages(f"<urlset><url><loc>{A}</loc></url>" + "<url>" * 900_000) == [A]


def test_nested_sitemap_index_is_no_page() -> None:
    body = f"<urlset><sitemapindex><sitemap><loc>{A}</loc></sitemap></sitemapindex></urlset>"

    assert parse_sitemap(body.encode(), URL) == Sitemap()


@pytest.mark.extended
def test_pages_beyond_protocol_limit_are_skipped() -> None:
    assert (
        len(list_pages(render_sitemap(*(f"https://a.b/{n}" for n in range(MAX_ENTRIES + 5))))) == MAX_ENTRIES
    )


def test_long_list_is_cut_between_lines() -> None:
    found = list_pages("".join(f"{A}/{'x' * 1000}/{n:06}\n" for n in range(9000)))

    assert 4000 < len(found) < MAX_BYTES // 1000
    assert {len(url) for url in found} == {len(A) + 1008}


@pytest.mark.extended
def test_long_sitemap_is_read_to_limit() -> None:
    found = list_pages(render_sitemap(*(f"{A}/{'x' * 1000}/{n}" for n in range(20_000))))

    assert 4000 < len(found) < MAX_BYTES // 1000
    assert all(url.startswith(f"{A}/xxx") and len(url) > 1000 for url in found)


@pytest.mark.extended
def test_gzip_bomb_is_cut_off() -> None:
    bomb = gzip.compress(b"<urlset>" + b"\n" * 100_000_000)

    body, is_cut = inflate_gzip(bomb)

    assert len(body) == MAX_BYTES
    assert is_cut
    assert list_pages(bomb) == []


@pytest.mark.parametrize("ending", [b"\r\n", b"<!-- cached -->"])
def test_whole_file_before_odd_ending_is_not_cut(ending: bytes) -> None:
    found = parse_sitemap(gzip.compress(render_sitemap(A, B).encode()) + ending, URL)

    assert found
    assert (len(found.pages), found.is_cut) == (2, False)


def test_too_long_urls_are_skipped() -> None:
    assert list_pages(render_sitemap(A, f"{A}/{'x' * 2048}", B)) == [A, B]
    assert list_pages(f"{A}\n{A}/{'x' * 2048}\n{B}") == [A, B]


@given(st.binary(max_size=300), st.integers(0, 300), st.sampled_from([render_sitemap(A, B), RSS, RDF, ATOM]))
def test_any_bytes_are_parsed(noise: bytes, at: int, body: str) -> None:
    raw = body.encode()

    parse_sitemap(noise, URL)
    parse_sitemap(raw[:at] + noise + raw[at:], URL)
    parse_sitemap(b"<urlset>" + noise, URL)
    parse_sitemap(gzip.compress(raw)[:at] + noise, URL)
