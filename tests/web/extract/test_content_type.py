"""Bodies that are not HTML, and bodies with a wrong content type."""

from __future__ import annotations

import pickle
import random

import pytest

from centgate.web.extract.content_type import Unsupported, detect_kind
from centgate.web.extract.extract import ExtractedPage, extract_page

pytestmark = pytest.mark.extended

URL = "https://example.org/files/a"
RUSSIAN = "\u041c\u043e\u0441\u043a\u0432\u0430"
RSS = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>News &amp; more</title>
<link>https://example.org/</link><description>All of it</description><language>en</language>
<item><title>First &lt;b&gt;one&lt;/b&gt;</title><link>/one</link>
<pubDate>Mon, 06 May 2024 07:08:09 GMT</pubDate>
<author>jane@example.org (Jane)</author><description><![CDATA[<p>It <b>began</b> <a href="x">here</a>.</p>
<p style="display:none">hidden</p><script>bad()</script>]]></description></item>
<item><title>Second</title><link>javascript:alert(1)</link></item></channel></rss>"""
ATOM = b"""<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>A log</title>
<updated>2024-05-06T07:08:09Z</updated><entry><title>Entry</title><link href="https://example.org/e"/>
<updated>2024-05-06T07:08:09Z</updated><content type="html">
&lt;h1&gt;Head&lt;/h1&gt;&lt;ul&gt;&lt;li&gt;a&lt;/li&gt;&lt;/ul&gt;</content>
</entry></feed>"""


def extract_body(body: bytes, content_type: str | None = None, url: str = URL) -> ExtractedPage:
    return extract_page(body, content_type, url, only_main_content=True)


@pytest.mark.parametrize(
    ("body", "content_type", "path", "kind"),
    [
        (b"<!doctype html><p>x", "text/html", "", "html"),
        (b"<p>x", "application/xhtml+xml; charset=utf-8", "", "html"),
        (b"<p>x", None, "", "html"),
        (b"\n<!-- note -->\n<html>", "text/plain", "", "html"),
        (b"<!DOCTYPE html>", "application/json", "", "html"),
        (b'<?xml version="1.0"?><!DOCTYPE html><html>', "application/xml", "", "html"),
        (b"hello", "text/plain", "", "text"),
        (b"hello", None, "", "text"),
        (b"hello", "application/octet-stream", "", "text"),
        (b"# Title", "text/plain", "/README.md", "markdown"),
        (b"# Title", "text/markdown", "", "markdown"),
        (b'{"a": 1}', "application/json", "", "json"),
        (b'{"a": 1}', "text/html", "", "json"),
        (b"[1, 2]", None, "", "json"),
        (b'{"a": 1}', "application/vnd.api+json", "", "json"),
        (b'{"a": 1}\n[2]\n', "text/plain", "", "json"),
        ('{"a": "\u00e4"}'.encode("cp1252"), "text/html", "", "json"),
        (b"[x] not json", "text/plain", "", "text"),
        (b"[1] Introduction", "text/plain", "", "text"),
        (b'{"balance": NaN, "note": "a <b>b</b>"}', "text/html", "", "json"),
        (b"[1]\nIntroduction", "text/plain", "", "text"),
        (b"[2024-01-02 10:00:00] INFO started", "text/plain", "", "text"),
        (b"[[source]]\nurl = 'https://e.org'", "text/plain", "", "text"),
        (b"{1,2,3} is a set", "text/plain", "", "text"),
        (RSS, "application/rss+xml", "", "feed"),
        (RSS, "text/html", "", "feed"),
        (ATOM, "text/xml", "", "feed"),
        (b"<?xml version='1.0'?><urlset/>", "application/xml", "", "xml"),
        (b"<note/>", "application/soap+xml", "", "xml"),
        (b"%PDF-1.4", "application/octet-stream", "", "pdf"),
        (b"%PDF-1.4", "text/html", "", "pdf"),
        (b"a { color: red }", "text/css", "", "code"),
        ("<html>".encode("utf-16"), "text/html", "", "html"),
        ("hello there".encode("utf-16-le"), "text/plain", "", "text"),
        *((f"<html><p>{RUSSIAN}".encode(f"utf-{bits}"), "text/html", "", "html") for bits in (16, 32)),
        (f"<html><body class=page><p>{RUSSIAN}".encode("utf-16-be"), "text/html", "", "html"),
        (f"<html><body><p>{RUSSIAN * 30}".encode("utf-16-le"), "text/html", "", "html"),
        (f"<html><body><p>{RUSSIAN * 30}".encode("utf-16-be"), "text/html; charset=utf-8", "", "html"),
        ('\ufeff{"a": "\u0e01\u0e02"}'.encode("utf-16-be"), None, "", "json"),
    ],
)
def test_content_decides_about_type(body: bytes, content_type: str | None, path: str, kind: str) -> None:
    assert detect_kind(body, content_type, path) == kind


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "text/html"),
        (b"GIF89a", None),
        (b"PK\x03\x04", "application/octet-stream"),
        (b"anything", "image/svg+xml"),
        (b"\xff\xfe" + random.Random(7).randbytes(2000), "text/html"),
        (b"\0\0\0" + bytes(range(256)) * 8, "text/plain"),
        (b"anything", "video/mp4"),
        (bytes(range(256)) * 4, None),
        (b"\0\1\2\3" * 100, "text/plain"),
        (b"no pdf", "application/pdf"),
        (b"x", "application/zip"),
        (b"x", "application/vnd.ms-excel"),
    ],
)
def test_binary_content_is_refused(body: bytes, content_type: str | None) -> None:
    with pytest.raises(Unsupported) as refusal:
        extract_body(body, content_type)

    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_rss_becomes_list_of_entries() -> None:
    page = extract_body(RSS, "application/rss+xml")

    assert page.markdown == (
        "# News & more\n\nAll of it\n\n## [First one](https://example.org/one)\n\n2024-05-06T07:08:09Z, "
        "jane@example.org (Jane)\n\nIt **began** [here](https://example.org/x).\n\n## Second"
    )
    assert (page.metadata.title, page.metadata.language, page.metadata.canonical) == (
        "News & more",
        "en",
        "https://example.org/",
    )


def test_atom_headings_are_below_their_entries() -> None:
    assert extract_body(ATOM, "application/atom+xml").markdown == (
        "# A log\n\n## [Entry](https://example.org/e)\n\n2024-05-06T07:08:09Z\n\n### Head\n\n- a"
    )


def test_plain_text_of_atom_is_no_html() -> None:
    entry = "<title>Use Vec&lt;T&gt; and Option&lt;U&gt;</title><summary>Call Vec&lt;S&gt;::new()</summary>"
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>The type A&lt;B&gt;</title><entry>{entry}'

    page = extract_body(f"{feed}</entry></feed>".encode(), "application/atom+xml")

    assert page.metadata.title == "The type A<B>"
    assert page.markdown == (
        r"# The type A\<B>" "\n\n" r"## Use Vec\<T> and Option\<U>" "\n\n" r"Call Vec\<S>::new()"
    )


def test_titles_of_feed_are_no_links() -> None:
    title = r"a\](http://evil.example) [b"
    entry = f'<entry><title>{title}</title><link href="/1"/><summary type="text">{title}</summary></entry>'
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{title}</title>{entry}</feed>'

    text = extract_body(feed.encode(), "application/atom+xml").markdown

    escaped = r"a\\\](http://evil.example) \[b"
    assert text == f"# {escaped}\n\n## [{escaped}](https://example.org/1)\n\n{escaped}"


def test_comments_in_code_of_feed_are_no_headings() -> None:
    code = ATOM.replace(b"&lt;ul", b"&lt;pre&gt;# install\npip install it&lt;/pre&gt;&lt;ul")

    markdown = extract_body(code, "application/atom+xml").markdown

    assert markdown.endswith("### Head\n\n```\n# install\npip install it\n```\n\n- a")


@pytest.mark.parametrize("teaser", ["", "<description>A short teaser.</description>"])
def test_entry_has_its_longest_text(teaser: str) -> None:
    text = "".join(f"<p>Paragraph {number} of a long entry.</p>" for number in range(900))
    item = f"<item><title>One</title>{teaser}<content:encoded><![CDATA[{text}]]></content:encoded></item>"
    space = "xmlns:content='http://purl.org/rss/1.0/modules/content/'"
    feed = f"<rss version='2.0' {space}><channel><title>t</title>{item}</channel></rss>"

    page = extract_body(feed.encode(), "application/rss+xml")

    assert page.markdown.endswith("Paragraph 899 of a long entry.")
    assert "teaser" not in page.markdown
    assert page.warnings == ()


def test_feed_title_is_no_file_name() -> None:
    assert extract_body(b"/etc/passwd", "application/rss+xml").markdown == "```xml\n/etc/passwd\n```"


def test_long_feed_reports_omitted_entries() -> None:
    items = b"".join(b"<item><title>%d</title></item>" % n for n in range(250))

    page = extract_body(
        b"<rss version='2.0'><channel><title>t</title>" + items + b"</channel></rss>", "text/xml"
    )

    assert page.markdown.endswith("## 199")
    assert page.warnings == ("the feed has 50 further entries that were not read",)


def test_xml_entities_are_not_expanded() -> None:
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "lol">{levels}<!ENTITY f SYSTEM "file:///etc/hostname">]>'

    page = extract_body(
        f"{bomb}<rss version='2.0'><channel><title>&l11;&f;</title></channel></rss>".encode(), "text/xml"
    )

    assert len(page.markdown) < 10_000


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{\n  "a": 1.10\n}', '```json\n{\n  "a": 1.10\n}\n```'),
        (
            b'{"id":12345678901234567890,"f":1.10,"s":"a,{\\"}","l":[1,[],{}],"e":"' + b"x" * 200 + b'"}',
            '```json\n{\n  "id": 12345678901234567890,\n  "f": 1.10,\n  "s": "a,{\\"}",\n  "l": '
            "[\n    1,\n    [],\n"
            '    {}\n  ],\n  "e": "' + "x" * 200 + '"\n}\n```',
        ),
        (b'{"a":1}\n{"a":2}\n', '```json\n{"a":1}\n{"a":2}\n```'),
        ('{"a":"\u202e```"}'.encode(), '````json\n{"a":"```"}\n````'),
    ],
)
def test_json_keeps_every_token(body: bytes, expected: str) -> None:
    assert extract_body(body, "application/json").markdown == expected


def test_plain_text_is_unchanged() -> None:
    text = "Title\n=====\n\n    indented <b>\n\n\n\nlast \u202eline\r\nend"

    assert (
        extract_body(text.encode(), "text/plain").markdown
        == "Title\n=====\n\n    indented <b>\n\nlast line\nend"
    )


def test_markdown_has_absolute_links_and_no_comments() -> None:
    text = (
        "# A [doc](x.md)\n\n![i](<img/a.png>) [js](javascript:x) <!-- hidden\ninstruction -->`[c](d)`\n\n"
        "```\n[code](stays) <!-- stays -->\n```\n\n[ref]: other.md\n"
    )

    page = extract_body(text.encode(), "text/markdown; charset=utf-8")

    assert page.markdown == (
        "# A [doc](https://example.org/files/x.md)\n\n![i](https://example.org/files/img/a.png) "
        "[js](#) `[c](d)`\n\n"
        "```\n[code](stays) <!-- stays -->\n```\n\n[ref]: https://example.org/files/other.md"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[^1]: See the docs", "[^1]: See the docs"),
        ("[^1]: docs", "[^1]: docs"),
        ("[note]: See the docs", "[note]: See the docs"),
        ('[ref]: <a.md> "A title"', '[ref]: https://example.org/files/a.md "A title"'),
    ],
)
def test_only_link_definitions_are_resolved(line: str, expected: str) -> None:
    assert extract_body(f"# A\n\n{line}\n\nEnd".encode(), "text/markdown").markdown == (
        f"# A\n\n{expected}\n\nEnd"
    )


def test_source_code_and_xml_become_code_blocks() -> None:
    assert extract_body(b"a { b: c }", "text/css").markdown == "```css\na { b: c }\n```"
    assert (
        extract_body(b"<?xml version='1.0'?>\n<a/>", "application/xml").markdown
        == "```xml\n<?xml version='1.0'?>\n<a/>\n```"
    )


@pytest.mark.parametrize("empty", ['<script src="a.js"/>', "<style />", "<a id='top'/>", "<br-x/>"])
def test_empty_elements_of_xhtml_have_no_content(empty: str) -> None:
    page = f"<html xmlns='http://www.w3.org/1999/xhtml'><body>{empty}<br/><p>Shown text.</p></body></html>"

    assert extract_body(page.encode(), "application/xhtml+xml").markdown == "Shown text."


def test_only_beginning_of_long_body_is_read() -> None:
    page = extract_body(b"<p>text</p>" * 300_000, "text/html")

    assert "only its beginning was read" in page.warnings[0]
    assert len(page.markdown) <= 1_000_000 < page.length


def test_extracted_page_is_picklable() -> None:
    page = extract_body(RSS, "text/xml")

    assert pickle.loads(pickle.dumps(page)) == page
