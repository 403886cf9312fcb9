"""Pages designed to make parsing slow."""

from __future__ import annotations

import time

import pytest

from centgate.sandbox import Sandbox
from centgate.web.extract.content_type import Unreadable
from centgate.web.extract.extract import extract_page

pytestmark = pytest.mark.extended

PAGES = {
    "200,000 attributes": b"<div " + b" ".join(b"a%d=1" % n for n in range(200_000)) + b">x</div><p>text</p>",
    "a long value": b"<img src='data:image/png;base64," + b"A" * 500_000 + b"'><p>text</p>",
    "50,000 links": b"".join(b"<li><a href=/p/%d>text %d</a></li>" % (n, n) for n in range(50_000)),
    "50,000 rows": b"<table>" + b"".join(b"<tr><td>%d<td>text<td>c" % n for n in range(50_000)) + b"</table>",
    "50,000 unclosed links": b"<a href=x>text " * 50_000,
    "500,000 entities": b"<p>text" + b"&amp;" * 500_000,
    "100,000 nested divs": b"<div>" * 100_000 + b"deep text" + b"</div>" * 100_000 + b"<p>after</p>",
    "2,000 nested spans": b"<p>" + b"<span>" * 2000 + b"text",
    "nested quotes": b"<blockquote>" * 1500 + b"text",
    "nested lists": b"<ul><li>text" * 900,
    "nested tables": b"<table><tr><td>text" * 500,
    "nested banners": b"<div>cookies <button>accept</button>" * 1500 + b"<p>text",
    "100,000 terms": b"<dl>" + b"<dt>text<dd>b" * 100_000,
    "wide cells": b"<table>" + b"<tr><td colspan=1000>text<td>b" * 50_000,
    "line feeds": b"<pre>" + b"\n" * 1_900_000 + b"text</pre>",
    "ticks": b"<p>text <code>" + b"`" * 1_000_000 + b"</code>",
    "brackets": b"<p>text " + b"[a](b" * 300_000,
    "open tags": b"text" + b"<a " * 500_000,
    "brackets in a link": b"<p>text <a href=x>" + b"[" * 900_000 + b"</a>",
    "images in a link": b"<p>text <a href=x>" + b"![" * 400_000 + b"</a>",
    "noscript": b"<p>text<script></script><noscript>" + b"habilit" * 200_000 + b"</noscript>",
    "an open comment": b"text<!--" + b"-" * 1_900_000,
    "formatting that each paragraph repeats": b"<p>"
    + b"".join(b"<b class=c%d>" % n for n in range(900))
    + b"text</p>"
    + b"<p>x" * 2_000,
    "ends without a start": b"<p>text" + b"<div>" * 990 + b"</p>" * 300_000,
    "streamed parts": b"<p>text<template id=B:0></template>"
    + b"".join(b"<div hidden id='S:%x'>x</div><template id='B:%x'></template>" % (n, n) for n in range(9000)),
    "open consent": b"<p>text" + b"<a>accept" * 20_000,
}


@pytest.mark.parametrize("name", PAGES)
def test_hostile_page_is_extracted(name: str) -> None:
    page = extract_page(PAGES[name], "text/html", "https://example.org/", only_main_content=True)

    assert "text" in page.markdown
    assert len(page.markdown) <= 1_000_000


PAGE_LENGTH = 2_000_000
"""Bytes of the longest page that is extracted."""


def fill_page(part: bytes) -> bytes:
    """Return a page of the longest length that repeats a part."""
    return b"<p>text</p>" + part * (PAGE_LENGTH // len(part))


WORDS = b"<section><p>" + b"other words. " * 60_000 + b"</p></section>"
SLOW_PAGES = {
    "sizes of many digits": fill_page(b'<p style="font-size:' + b"1" * 4000 + b'">b</p>'),
    "fonts of many spaces": fill_page(b'<p style="font:' + b" " * 4000 + b'">b</p>'),
    "open comments in a style": fill_page(b'<p style="' + b"/* " * 1300 + b'">b</p>'),
    "many rules": b"<style>"
    + b".a{display:none}" * 4_000
    + b"".join(b".b%d{display:none}" % n for n in range(900))
    + b"</style>"
    + fill_page(b"<p class='a " + b" ".join(b"b%d" % n for n in range(60)) + b"'>b</p>"),
    "open blocks in a sheet": b"<style>" + b"a{" * 240_000 + b"</style>" + WORDS,
    "open strings in a sheet": b"<style>" + b"'\"\n" * 160_000 + b".a{display:none}</style>" + WORDS,
    "unspoken text in unspoken text": fill_page(b"<span aria-hidden=true>" * 900 + b"b" + b"</span>" * 900),
    "unspoken text beside much text": fill_page(
        b"<div><span aria-hidden=true>a</span>" * 800 + b"word " * 100_000 + b"</div>" * 800
    ),
    "banners with many buttons": fill_page(
        b'<div class="cookie" id="a-long-name-of-it"><button>Buy</button>' * 100 + b"b" + b"</div>" * 100
    ),
    "words of a notice": fill_page(b'<div class="cookie">' + b"usa" * 160 + b"</div>"),
    "many notes": WORDS + b"<div>" + b"<div class='notification'>S.</div>" * 28_000 + b"</div>",
    "many tabs": fill_page(
        b"<div role=tablist>" * 200
        + b"<h2 aria-controls=a>b</h2><p id=a role=tabpanel hidden>b</p>" * 90
        + b"</div>" * 200
    ),
    "many sheets": fill_page(b"<style>.a{display:none}</style>"),
    "many options": WORDS + b"<select>" + b"<option>b</option>" * 50_000 + b"</select>",
    "many asides": WORDS + b"<aside class='note'>S.</aside>" * 40_000,
    "many tags": WORDS
    + b"<div>"
    + b"".join(b"<x%d class='promo'><h2>a</h2></x%d>" % (n, n) for n in range(25_000))
    + b"</div>",
}
MAX_RATIO = 5
"""Maximum time of a hostile page, as a multiple of an ordinary page of the same length."""


def measure_extraction(body: bytes) -> float:
    """Return the processor time in seconds that this thread takes for a page."""
    start = time.thread_time()
    extract_page(body, "text/html", "https://example.org/", only_main_content=True)
    return time.thread_time() - start


@pytest.fixture(scope="module")
def ordinary_seconds() -> float:
    """Processor time for an ordinary page."""
    return measure_extraction(fill_page(b"<p>A paragraph with <a href='/page'>a link</a> in its words.</p>"))


@pytest.mark.parametrize("name", SLOW_PAGES)
def test_hostile_page_takes_no_longer_than_others(name: str, ordinary_seconds: float) -> None:
    assert measure_extraction(SLOW_PAGES[name]) < MAX_RATIO * ordinary_seconds


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"[" * 1_000_000, "application/json"),
        (b'{"a":' * 300_000, "application/json"),
        (b"<rss version='2.0'><channel>" + b"<item>" * 100_000, "text/xml"),
        (b"<rss version='2.0'><channel>" + b"<item><title>a</title></item>" * 50_000, "text/xml"),
        (b"[a](b " * 200_000, "text/markdown"),
        (b"`" * 1_000_000, "text/markdown"),
        (b"<!--" * 300_000, "text/markdown"),
        (b"# " + b"#" * 1_000_000 + b"x", "text/markdown"),
        (b"\xe9" + b"<" * 1_000_000, "text/plain"),
        (b"```\n" * 300_000, "text/markdown"),
        (b"\xff" * 1_000_000, "text/plain"),
        (b"%PDF-1.4\n" + b"1 0 obj\n" * 100_000, "application/pdf"),
    ],
)
async def test_extraction_of_hostile_document_ends(body: bytes, content_type: str, readers: Sandbox) -> None:
    try:
        page = await readers.run_task(
            60, extract_page, body, content_type, "https://e.org/", only_main_content=True
        )
        length = len(page.markdown)
    except Unreadable:
        length = 0

    assert length <= 1_000_000
