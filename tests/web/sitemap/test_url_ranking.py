"""Selection and order of a site's pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.web.results import Hit
from centgate.web.sitemap import site_map
from centgate.web.sitemap.ranking import score_relevance, tokenize
from centgate.web.sitemap.site_map import RankedPages, build_sitemap_part, pack_entries, rank_pages
from centgate.web.sitemap.urls import PageEntry, parse_page_url

ROOT = "https://example.com"


def rank_all(
    parts: Sequence[bytes], requested: str, final: str, search: str | None, limit: int
) -> tuple[Hit, ...]:
    """Return the pages of a site in ranked order."""
    return rank_pages(parts, requested, final, search, limit).hits


def rank_paths(
    paths: Iterable[str], requested: str = "/", search: str | None = None, limit: int = 100
) -> list[str]:
    """Return the paths of a site in ranked order."""
    urls = [f"{ROOT}{path}" if path.startswith("/") else path for path in paths]
    ranked = rank_all(
        [pack_entries(map(PageEntry, urls))], f"{ROOT}{requested}", f"{ROOT}{requested}", search, limit
    )
    return [hit.url.removeprefix(ROOT) for hit in ranked]


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://EXAMPLE.com:443/a/../b", "https://example.com/b"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com/?utm_source=x&id=7&utm_medium=y&fbclid=z", "https://example.com/?id=7"),
        ("https://example.com/?UTM_Source=x", "https://example.com/"),
        ("https://example.com/a?gclid=1#x", "https://example.com/a"),
        ("https://example.com/?mc_cid=1&mc_eid=2&mcx=3", "https://example.com/?mcx=3"),
        ("https://example.com/?q=utm_source", "https://example.com/?q=utm_source"),
        ("https://example.com/?", "https://example.com/"),
        ("https://\u00fc.example/\u00fc", "https://xn--tda.example/%C3%BC"),
    ],
)
def test_tracking_parameters_are_removed(url: str, clean: str) -> None:
    found = parse_page_url(url)

    assert found
    assert found.url == clean


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/a",
        "ftp://example.com/",
        "javascript:alert(1)",
        "https://user:pw@example.com/",
        "https://user@example.com/",
        "http://[",
        f"https://example.com/{'x' * 2048}",
        "https://example.com/" + "\u00fc" * 700,
    ],
)
def test_url_not_to_be_followed_is_skipped(url: str) -> None:
    assert parse_page_url(url) is None


@pytest.mark.parametrize(
    "twin",
    [
        "http://example.com/a",
        "https://www.example.com/a",
        "https://example.com/a/",
        "http://www.example.com:80/a/#x",
        "https://example.com/a?utm_campaign=x",
    ],
)
def test_notations_of_one_page_count_once(twin: str) -> None:
    assert rank_paths(["/a", twin, "/b"]) == ["/a", "/b"]


@pytest.mark.parametrize(
    "url", ["http://example.com/b", "https://www.example.com/b", "http://www.example.com/b"]
)
def test_www_and_http_belong_to_the_site(url: str) -> None:
    assert rank_paths(["/a", url]) == ["/a", url.removeprefix(ROOT)]


@pytest.mark.parametrize("other", ["/A", "/a?page=2", "/a/b", "/a.html", "https://example.com:8443/a"])
def test_other_pages_of_site_are_included(other: str) -> None:
    expected = ["/a"] if other.startswith("https") else ["/a", other]

    assert rank_paths(["/a", other]) == expected


@pytest.mark.parametrize(
    "foreign",
    [
        "https://other.example/a",
        "https://sub.example.com/a",
        "https://example.com.other.example/a",
        "https://notexample.com/a",
        "https://example.com:8443/a",
        "https://user@example.com/a",
    ],
)
def test_pages_of_other_sites_are_excluded(foreign: str) -> None:
    assert rank_paths(["/a", foreign]) == ["/a"]


@pytest.mark.parametrize(
    "name", ["a.png", "a.JPG", "style.css", "app.js", "font.woff2", "v.mp4", "a.zip", "x.map"]
)
def test_non_page_urls_are_excluded(name: str) -> None:
    assert rank_paths(["/a", f"/{name}", f"/{name}?v=2", "/paper.pdf", "/node.js/", "/x.js.html"]) == [
        "/a",
        "/paper.pdf",
        "/node.js/",
        "/x.js.html",
    ]


def test_without_search_top_pages_come_first() -> None:
    assert rank_paths(["/a/b/c", "/?lang=de", "/a", "/b", "/a/b", "/"]) == [
        "/",
        "/?lang=de",
        "/a",
        "/b",
        "/a/b",
        "/a/b/c",
    ]


@pytest.mark.parametrize("requested", ["/docs", "/docs/", "/docs/index.html"])
def test_pages_below_requested_url_come_first(requested: str) -> None:
    given = ["/", "/blog", "/docs/b/c", "/docs/a", "/docsearch", "/docs/b"]

    assert rank_paths(given, requested) == ["/docs/a", "/docs/b", "/docs/b/c", "/", "/blog", "/docsearch"]


def test_requested_page_is_first() -> None:
    assert rank_paths(["/", "/docs", "/docs/a/b"], "/docs/a/b") == ["/docs/a/b", "/docs", "/"]


@pytest.mark.parametrize(
    ("search", "first"),
    [
        ("refund", "/help/refund-policy"),
        ("refund policy", "/help/refund-policy"),
        ("how do I get a REFUND?", "/help/refund-policy"),
        ("refunds", "/help/refund-policy"),
        ("getStarted", "/docs/get_started"),
        ("pricing", "/prices"),
        ("auth", "/docs/authentication"),
        ("stra\u00dfe", "/stra%C3%9Fe"),
        ("\u4ef7\u683c", "/%E4%BA%A7%E5%93%81%E4%BB%B7%E6%A0%BC"),
        ("v2 client", "/api/v2/HttpClient"),
        ("id 77", "/item?id=77"),
        ("eip1559", "/EIPS/eip-1559"),
        ("post 12", "/blog/post12"),
    ],
)
def test_search_matches_words_of_urls(search: str, first: str) -> None:
    others = [
        *("/", "/about", "/help", "/item?id=7", "/item?id=770", "/api/v2", "/help/returns", "/policy"),
        *("/EIPS/eip-20", "/EIPS/eip-721", "/blog/post1", "/blog/post2"),
    ]
    sought = [
        "/docs/authentication",
        "/help/refund-policy",
        "/docs/get_started",
        "/prices",
        "/stra%C3%9Fe",
        "/%E4%BA%A7%E5%93%81%E4%BB%B7%E6%A0%BC",
        "/api/v2/HttpClient",
        "/item?id=77",
        "/EIPS/eip-1559",
        "/blog/post12",
    ]

    assert rank_paths([*others, *sought], search=search)[0] == first


def test_search_matches_titles() -> None:
    entries = [
        PageEntry(f"{ROOT}/1"),
        PageEntry(f"{ROOT}/2", "Returns and refunds"),
        PageEntry(f"{ROOT}/3", "Imprint"),
    ]

    (first, *_) = rank_all([pack_entries(entries)], ROOT, ROOT, "refund", 100)

    assert (first.url, first.title) == (f"{ROOT}/2", "Returns and refunds")


@pytest.mark.parametrize(
    ("search", "word"),
    [
        ("cat", "scatter"),
        # Cyrillic, Greek, Latin with an accent
        ("\u043a\u043e\u0442", "\u0441\u043a\u043e\u0442\u0438\u043d\u0430"),
        ("\u043f\u043e\u0440\u0442", "\u044d\u043a\u0441\u043f\u043e\u0440\u0442"),
        ("\u03bc\u03ad\u03bd\u03b1", "\u03bb\u03b9\u03bc\u03ad\u03bd\u03b1\u03c2"),
        ("\xe9t\xe9", "tabl\xe9t\xe9"),
    ],
)
def test_search_matches_no_part_inside_word(search: str, word: str) -> None:
    assert score_relevance(search, [[word]]) == [0]


@pytest.mark.parametrize(
    ("search", "word"),
    [
        ("cat", "category"),
        # Cyrillic: the start of a word, and another form of it
        ("\u043a\u043e\u0442", "\u043a\u043e\u0442\u0438\u043a"),
        ("\u043a\u043d\u0438\u0433\u0438", "\u043a\u043d\u0438\u0433\u0430"),
        # Chinese, Japanese, Thai, Khmer, Korean: inside
        ("\u4ef7\u683c", "\u4ea7\u54c1\u4ef7\u683c\u8868"),
        ("\u30ab\u30bf\u30ed\u30b0", "\u88fd\u54c1\u30ab\u30bf\u30ed\u30b0\u4e00\u89a7"),
        ("\u0e07\u0e32\u0e19", "\u0e23\u0e32\u0e22\u0e07\u0e32\u0e19"),
        ("\u1797\u17b6\u179f", "\u17a2\u1780\u17d2\u179f\u179a\u1797\u17b6\u179f"),
        ("\uac80\uc0c9", "\uc6f9\uac80\uc0c9"),
        # Arabic and Hebrew: behind an article
        ("\u0643\u062a\u0627\u0628", "\u0627\u0644\u0643\u062a\u0627\u0628"),
        ("\u05e1\u05e4\u05e8", "\u05d4\u05e1\u05e4\u05e8"),
    ],
)
def test_search_matches_part_of_word(search: str, word: str) -> None:
    assert score_relevance(search, [[word]])[0] > 0


def test_unmatched_pages_follow_in_site_order() -> None:
    assert rank_paths(["/a/b/c", "/a", "/x/y/fish", "/"], search="fish") == ["/x/y/fish", "/", "/a", "/a/b/c"]


@pytest.mark.parametrize("search", ["zebra", "the of and", "!!!", "   ", "\0", "7" * 200, "a " * 100])
def test_search_without_match_gives_no_page(search: str) -> None:
    entries = [pack_entries(PageEntry(f"{ROOT}{path}") for path in ("/", "/docs", "/imprint"))]

    assert rank_pages(entries, ROOT, ROOT, search, 100) == RankedPages((), 3, 0)


def test_entries_over_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_map, "MAX_PAGES", 10)
    parts = [pack_entries(PageEntry(f"{ROOT}/{part}/{n}") for n in range(8)) for part in "ab"]

    ranked = rank_pages(parts, ROOT, ROOT, None, 100)

    assert (ranked.total, ranked.left_out) == (10, 6)


def test_no_folder_takes_all_places() -> None:
    shop = [f"/shop/{number}" for number in range(500)]
    manual = [f"/manual/part{number // 10}/{number}" for number in range(100)]
    news = [f"/news/2026/{number}" for number in range(30)]

    listed = rank_paths(["/", *shop, *manual, *news, "/imprint"])

    sections = ("shop", "manual", "news")
    counts = {name: sum(path.startswith(f"/{name}/") for path in listed) for name in sections}
    assert {"/", "/imprint"} <= set(listed)
    assert min(counts.values()) >= 20
    parts = {path.split("/")[2] for path in listed if path.startswith("/manual/")}
    assert len(parts) >= 5


@pytest.mark.parametrize("more", [(), ("/imprint", "/login")])
@pytest.mark.parametrize(("prefix", "requested"), [("/en", "/"), ("/docs/v2", "/docs/"), ("/docs/v2", "/")])
def test_sections_are_first_different_folders(prefix: str, requested: str, more: tuple[str, ...]) -> None:
    sizes = {"shop": 500, "blog": 100, "api": 100, "help": 50}
    paths = [f"{prefix}/{name}/{number}" for name, size in sizes.items() for number in range(size)]

    listed = rank_paths([*paths, *more], requested)

    counts = [sum(path.startswith(f"{prefix}/{name}/") for path in listed) for name in sizes]
    assert min(counts) >= 20


def test_endless_folders_are_ordered() -> None:
    deep = [f"/{'a/' * 900}{number}" for number in range(3)]

    assert rank_paths([*deep, "/b"]) == ["/b", *deep]


@pytest.mark.parametrize(
    "twin",
    [
        *("/a?sort=price", "/a?order_by=name&dir=asc", "/a?PHPSESSID=1", "/a;jsessionid=2", "/a?per_page=9"),
        *("/a?sid=lit3py55t21z5v55", "/a?session=0123456789abcdef0123", "/a?sessionid=1"),
        *("/a?session=123e4567-e89b-12d3-a456-426614174000", "/a?ASPSESSIONIDQQABC=1"),
        *("/(S(lit3py55t21z5v55vlm25s55))/a", "/(X(1)S(lit3py55t21z5v55vlm25s55))/a"),
        *("/a?order=price", "/a?order=name-desc", "/a?ordering=-p", "/a?sort-by=x", "/a?sort[]=x"),
        *("/a?sort%5Bprice%5D=asc", "/a?sort_field=x", "/a?product_list_order=price", "/a?direction=desc"),
    ],
)
def test_sort_and_session_parameters_are_ignored(twin: str) -> None:
    assert rank_paths(["/a", twin, "/a?id=7"]) == ["/a", "/a?id=7"]


def test_page_url_has_no_sort_order_of_other_link() -> None:
    assert rank_paths(["/a?sort=price&page=2", "/b?order=asc", "/a?page=2", "/b"]) == ["/b", "/a?page=2"]


@pytest.mark.parametrize(
    "other",
    [
        *("/a?view=login", "/a?order=1001", "/a?dir=docs", "/a?display=terms", "/a?layout=edit"),
        *("/a?currency=EUR", "/a?direction=north", "/a?sid=7", "/a?session=internationalization"),
        *("/a?session=intro-to-python-3-basics", "/a?sorted-lists=1"),
    ],
)
def test_pages_with_identifying_parameter_are_distinct(other: str) -> None:
    assert rank_paths(["/a", other]) == ["/a", other]


@pytest.mark.parametrize("twin", ["/%7Euser?q=a-b", "/%7euser?q=a-b", "/~us%65r?q=a%2Db", "/~user/?%71=a-b"])
def test_needless_escapes_are_ignored(twin: str) -> None:
    assert rank_paths(["/~user?q=a-b", twin]) == ["/~user?q=a-b"]
    assert rank_paths([twin, "/~user?q=a-b"]) == [twin]


def test_case_of_escapes_is_ignored() -> None:
    assert rank_paths(["/caf%C3%A9", "/caf%c3%a9", "/caf\u00e9"]) == ["/caf%C3%A9"]


@pytest.mark.parametrize("other", ["/a%2Fb", "/a%3Fb", "/a%2523b", "/a%25b"])
def test_pages_with_needed_escapes_are_distinct(other: str) -> None:
    assert len(rank_paths(["/a/b", "/a%23b", "/a?b", other])) == 4


def test_order_of_parameters_is_ignored() -> None:
    twins = ["/a?a=1&b=2", "/a?b=2&a=1"]

    assert rank_paths([*twins, "/a?a=2&b=1"]) == [twins[0], "/a?a=2&b=1"]
    assert rank_paths(["/a?a=1&a=2", "/a?a=2&a=1"]) == ["/a?a=1&a=2", "/a?a=2&a=1"]


def test_search_selects_matching_language() -> None:
    urls = [f"{ROOT}/en/prices", f"{ROOT}/de/preise"]
    entries = [PageEntry(url, source="sitemap", alternates=tuple(urls)) for url in urls]

    for search, path in (("prices", "/en/prices"), ("preise", "/de/preise")):
        ranked = rank_pages([pack_entries(entries)], f"{ROOT}/", f"{ROOT}/", search, 5)
        assert (ranked.matching, ranked.hits[0].url) == (1, f"{ROOT}{path}")


def test_common_language_links_are_ignored() -> None:
    """A template that prints one block of languages on every page is no data about these pages."""
    block = (f"{ROOT}/en/", f"{ROOT}/de/")
    urls = [f"{ROOT}/p/{number}" for number in range(9)]
    entries = [PageEntry(url, source="link", alternates=block) for url in (*block, *urls)]

    ranked = rank_pages([pack_entries(entries)], f"{ROOT}/", f"{ROOT}/", None, 20)

    assert {f"{ROOT}/en/", *urls} <= {hit.url for hit in ranked.hits}


def test_languages_of_page_count_once() -> None:
    urls = [f"{ROOT}/{language}/a" for language in ("en", "de", "fr")]
    entries = [PageEntry(url, source="sitemap", alternates=tuple(urls)) for url in urls]

    def list_urls(requested: str) -> list[str]:
        return [hit.url for hit in rank_all([pack_entries(entries)], requested, requested, None, 100)]

    assert list_urls(ROOT) == [urls[0]]
    assert list_urls(f"{ROOT}/de/") == [urls[1]]


def test_pages_have_last_change_and_origin() -> None:
    body = f"<urlset><url><loc>{ROOT}/a</loc><lastmod>2026-11-02</lastmod></url></urlset>".encode()
    part = build_sitemap_part(body, ROOT, "")
    assert part

    (hit,) = rank_all([part.entries], ROOT, ROOT, None, 100)

    assert (hit.modified, hit.found_in) == ("2026-11-02", "sitemap")


def test_rare_words_weigh_more() -> None:
    pages = [f"/docs/page/{word}" for word in ("one", "two", "three", "four")] + ["/misc/fish"]

    assert rank_paths(pages, search="docs fish")[0] == "/misc/fish"


def test_requested_number_of_pages_is_returned() -> None:
    assert len(rank_paths([f"/{n}" for n in range(500)], limit=100)) == 100


@pytest.mark.extended
def test_each_long_part_is_considered() -> None:
    parts = [pack_entries(PageEntry(f"{ROOT}/{name}/{n}") for n in range(50_000)) for name in ("a", "b", "c")]
    short = pack_entries([PageEntry(f"{ROOT}/fish"), PageEntry(f"{ROOT}/a/fish")])

    hits = rank_all([*parts, short], ROOT, ROOT, "fish", 100)
    last = rank_all([*parts, short], ROOT, ROOT, "c 16000", 1)

    assert [hit.url for hit in hits[:2]] == [f"{ROOT}/fish", f"{ROOT}/a/fish"]
    assert [hit.url for hit in last] == [f"{ROOT}/c/16000"]


def test_feed_title_precedes_link_text() -> None:
    page = pack_entries(
        [PageEntry(f"{ROOT}/", "Home"), PageEntry(f"{ROOT}/a", "short"), PageEntry(f"{ROOT}/b", "B")]
    )
    feed = pack_entries([PageEntry(f"{ROOT}/a/", "The whole title", "About it"), PageEntry(f"{ROOT}/b")])

    hits = rank_all([page, feed], ROOT, ROOT, None, 100)

    assert [(hit.title, hit.description) for hit in hits] == [
        ("Home", None),
        ("The whole title", "About it"),
        ("B", None),
    ]


def test_untrusted_text_is_cleaned_and_limited() -> None:
    (hit,) = rank_all(
        [pack_entries([PageEntry(f"{ROOT}/", "a\u202eb\n" + "c" * 900, "d" * 9000)])], ROOT, ROOT, None, 100
    )

    assert hit.title
    assert hit.title.startswith("ab ccc")
    assert len(hit.title) == 200
    assert len(hit.description or "") == 500


def test_redirect_target_belongs_to_site() -> None:
    entries = [
        PageEntry("https://new.example/a"),
        PageEntry(f"{ROOT}/b"),
        PageEntry("https://third.example/c"),
    ]

    hits = rank_all([pack_entries(entries)], ROOT, "https://new.example/", None, 100)

    assert [hit.url for hit in hits] == ["https://new.example/a", f"{ROOT}/b"]


def test_matching_sitemaps_come_first() -> None:
    locs = "".join(f"<sitemap><loc>{ROOT}/sitemap-{name}.xml</loc></sitemap>" for name in ("a", "b", "blog"))

    part = build_sitemap_part(f"<sitemapindex>{locs}</sitemapindex>".encode(), ROOT, "blog posts")

    assert part
    assert [url.removeprefix(ROOT) for url in part.child_sitemaps] == [
        "/sitemap-blog.xml",
        "/sitemap-a.xml",
        "/sitemap-b.xml",
    ]


def test_sitemaps_of_sections_take_turns_the_newest_first() -> None:
    times = {
        "post-1": "2024-05-01",
        "post-2": "2026-01-01T10:00:00Z",
        "post-3": "2025-05-01",
        "shop/7": None,
        "shop/8": "2020-01-01",
        "list?type=tag&page=1": None,
    }
    locs = "".join(
        f"<sitemap><loc>{ROOT}/{name.replace('&', '&amp;')}</loc>"
        + (f"<lastmod>{time}</lastmod></sitemap>" if time else "</sitemap>")
        for name, time in times.items()
    )

    part = build_sitemap_part(f"<sitemapindex>{locs}</sitemapindex>".encode(), ROOT, ROOT)

    assert part
    assert [url.removeprefix(f"{ROOT}/") for url in part.child_sitemaps] == [
        "post-2",
        "shop/8",
        "list?type=tag&page=1",
        "post-3",
        "shop/7",
        "post-1",
    ]


def test_words_are_separated() -> None:
    assert tokenize("getUserName/kebab-case_snake%20x.html v2Beta HTTP") == [
        "get",
        "user",
        "name",
        "kebab",
        "case",
        "snake",
        "20x",
        "html",
        "v2",
        "beta",
        "http",
    ]


@pytest.mark.extended
@given(st.text(max_size=200), st.lists(st.lists(st.text(max_size=20), max_size=20), max_size=20))
def test_relevance_is_number_for_every_document(search: str, documents: list[list[str]]) -> None:
    scores = score_relevance(search, documents)

    assert len(scores) == len(documents)
    assert all(score >= 0 for score in scores)


@given(st.lists(st.text(max_size=60)), st.text(max_size=60))
def test_any_urls_are_ranked(urls: list[str], search: str) -> None:
    entries = [PageEntry(url) for url in (*urls, *(f"{ROOT}/{url}" for url in urls))]

    hits = rank_all([pack_entries(entries)], ROOT, ROOT, search, 100)

    assert len({hit.url for hit in hits}) == len(hits)
    assert all(hit.url.startswith((f"{ROOT}/", "http://example.com/", "https://www.")) for hit in hits)
