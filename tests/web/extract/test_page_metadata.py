"""Metadata of a page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from centgate.web.extract.extract import extract_page
from centgate.web.extract.metadata import DocumentMetadata, normalize_time

URL = "https://example.org/news/story"


def extract_metadata(head: str, body: str = "<p>text</p>", html: str = "") -> DocumentMetadata:
    """Extract the metadata of a page with this head."""
    page = f"<!doctype html><html {html}><head><meta charset=utf-8>{head}</head><body>{body}</body></html>"
    return extract_page(page.encode(), "text/html", URL, only_main_content=True).metadata


def wrap_json_ld(value: Any) -> str:
    """Return a JSON-LD script element."""
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


def test_all_metadata_of_head_is_read() -> None:
    metadata = extract_metadata(
        '<title>The story | Paper</title><meta property="og:title" content="The story">'
        '<meta name="description" content="What happened."><link rel="canonical" href="/news/canonical">'
        '<meta name="author" content="Jane Roe"><meta property="article:published_time" '
        'content="2024-05-06T07:08:09+0200"><meta property="article:modified_time" content="2024-05-07">',
        html='lang="en-GB"',
    )

    assert metadata == DocumentMetadata(
        title="The story",
        description="What happened.",
        language="en-GB",
        canonical="https://example.org/news/canonical",
        author="Jane Roe",
        published="2024-05-06T05:08:09Z",
        modified="2024-05-07",
        is_article=True,
    )


@pytest.mark.parametrize(
    ("head", "is_article"),
    [
        ('<meta property="og:type" content="article">', True),
        ('<meta property="og:type" content="video.episode">', True),
        ('<meta property="og:type" content="website">', False),
        (wrap_json_ld({"@type": "NewsArticle"}), True),
        (wrap_json_ld([{"@type": "BlogPosting"}, {"@type": "BlogPosting"}]), False),
        (wrap_json_ld({"@type": "QAPage"}) + '<meta property="og:type" content="article">', False),
        (wrap_json_ld({"@type": "DiscussionForumPosting"}), False),
        (f'<script type="application/ld+json">{{"@type": {"[" * 1010 + "]" * 1010}}}</script>', False),
    ],
    ids=range(8),
)
def test_pages_say_that_they_are_articles(head: str, *, is_article: bool) -> None:
    assert extract_metadata(head).is_article is is_article


def test_json_ld_gives_author_and_dates() -> None:
    article = {
        "@context": "https://schema.org",
        "@graph": [
            {"@type": "WebSite", "name": "Paper"},
            {"@type": "WebPage", "datePublished": "2001-01-01"},
            {
                "@type": ["NewsArticle"],
                "author": [{"@type": "Person", "name": "Jane Roe"}, {"name": "John Doe"}],
                "datePublished": "2024-05-06T07:08:09.123Z",
                "dateModified": "2024-05-07T00:00:00Z",
            },
        ],
    }

    metadata = extract_metadata(wrap_json_ld(article))

    assert (metadata.author, metadata.published, metadata.modified) == (
        "Jane Roe, John Doe",
        "2024-05-06T07:08:09Z",
        "2024-05-07T00:00:00Z",
    )


@pytest.mark.parametrize(
    "article",
    [
        {"image": "/a.png", "publisher": {"name": "Paper"}, "keywords": "tea, coffee", "inLanguage": "de-AT"},
        {
            "image": [{"@type": "ImageObject", "url": "/a.png"}, "/b.png"],
            "publisher": [{"name": "Paper"}],
            "keywords": ["tea", {"name": "a term"}, "coffee"],
            "inLanguage": {"@type": "Language", "name": "German", "alternateName": "de_AT"},
        },
    ],
)
def test_json_ld_fills_what_meta_elements_lack(article: dict[str, Any]) -> None:
    head = wrap_json_ld(
        [{"@type": "Organization", "image": "/logo.png"}, {"@type": "NewsArticle", **article}]
    )
    own = '<meta property="og:image" content="/own.png"><meta property="og:site_name" content="Own">'

    found, preferred = extract_metadata(head), extract_metadata(own + head)

    assert found.image is not None
    assert (found.image[-6:], found.site_name, found.keywords, found.language) == (
        "/a.png",
        "Paper",
        ("tea", "coffee"),
        "de-AT",
    )
    assert preferred.image is not None
    assert (preferred.image[-8:], preferred.site_name) == ("/own.png", "Own")


@pytest.mark.parametrize(
    "article",
    [{"image": {"url": 7}}, {"image": "javascript:x"}, {"image": "/" + "a" * 9000}, {"keywords": 7}],
)
def test_strange_json_ld_gives_no_image_and_no_keywords(article: dict[str, Any]) -> None:
    metadata = extract_metadata(wrap_json_ld({"@type": "Article", **article}))

    assert (metadata.image, metadata.keywords) == (None, ())


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ("<title> A\n  title </title>", "", "A title"),
        ("", "<h1>Heading</h1>", "Heading"),
        ("<title></title>", "<svg><title>icon</title></svg><h1>Heading</h1>", "Heading"),
        ("", "", None),
        ("<title>a\u202eb</title>", "", "ab"),
    ],
)
def test_title_is_found_in_several_places(head: str, body: str, title: str | None) -> None:
    assert extract_metadata(head, body + "<p>x").title == title


@pytest.mark.parametrize(
    "head",
    [
        '<meta property="article:author" content="https://facebook.com/jane">',
        '<meta name="author" content="@jane">',
        wrap_json_ld({"@type": "Article", "author": {"url": "https://x.example"}}),
        wrap_json_ld({"@type": "Article", "author": 7}),
        '<script type="application/ld+json">{broken</script>',
        f'<script type="application/ld+json">{"[" * 50_000}</script>',
        wrap_json_ld({"@type": "Article", "headline": "x" * 600_000, "author": "beyond what is read"}),
    ],
)
def test_invalid_author_name_is_ignored(head: str) -> None:
    assert extract_metadata(head).author is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024", "2024"),
        ("2024-05", "2024-05"),
        ("2024/5/6", "2024-05-06"),
        ("2024-05-06", "2024-05-06"),
        ("2024-05-06 07:08", "2024-05-06T07:08:00"),
        ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z"),
        ("2024-05-06T07:08:09.999+05:30", "2024-05-06T01:38:09Z"),
        ("20240506", "2024-05-06"),
        ("20240506T0708", "2024-05-06T07:08:00"),
        ("2024-W05", "2024-01-29"),
        ("2024-13-45", None),
        ("0001-01-01", None),
        ("9999-12-31T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
        (20240506, None),
        (None, None),
    ],
)
def test_dates_are_iso_8601_or_none(written: Any, expected: str | None) -> None:
    assert normalize_time(written) == expected


@pytest.mark.parametrize(
    ("head", "html", "language"),
    [
        ("", 'lang="pt_BR"', "pt-BR"),
        ('<meta property="og:locale" content="de_DE">', "", "de-DE"),
        ("", 'lang="<script>"', None),
        ("", 'xml:lang="fr"', "fr"),
    ],
)
def test_language_is_declared_by_page(head: str, html: str, language: str | None) -> None:
    assert extract_metadata(head, html=html).language == language


def test_canonical_url_must_be_valid() -> None:
    assert extract_metadata('<link rel=canonical href="javascript:alert(1)">').canonical is None
    assert (
        extract_metadata('<base href="https://a.example/"><link rel=canonical href="x">').canonical
        == "https://a.example/x"
    )
