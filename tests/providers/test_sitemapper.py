"""Maps of a site on loopback, honest, broken and hostile."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import pytest
from small_site import XML, OpenReader, SmallSite, render_sitemap, serve_small_site

from centgate.errors import NoData, PageUnread, ProviderFailure
from centgate.provider import RequestTrace
from centgate.providers.sitemapper import SiteMapper
from centgate.web.results import Hit

HOME = """<title>A small site</title><meta name=description content="All there is.">
<a href="/about">About us</a><a href="docs/">Documentation</a><a href="/style.css">Style</a>
<a href="https://other.example/">Elsewhere</a><a href="/paper.pdf">The paper</a>"""
LINKED = ["/", "/about", "/docs/", "/paper.pdf"]


@pytest.fixture
def site() -> Generator[SmallSite]:
    """Site with only a front page."""
    with serve_small_site() as standing:
        standing.respond("/", HOME)
        yield standing


class Mapped:
    """Result of mapping a site."""

    def __init__(self, site: SmallSite, hits: list[Hit], record: RequestTrace) -> None:
        self.hits, self.warnings = hits, record.warnings
        self.paths = [hit.url.removeprefix(site.url) for hit in hits]


Map = Callable[..., Awaitable[Mapped]]


@pytest.fixture
def mapped(page_reader: OpenReader) -> Map:
    """Function that maps a site or raises its error: `mapped(site, path, search)`; `changes` are settings."""

    async def links(
        site: SmallSite, path: str = "/", search: str | None = None, *, seconds: float = 15, **changes: Any
    ) -> Mapped:
        record = RequestTrace.start()
        async with page_reader(site, **changes) as (settings, resources):
            mapper = SiteMapper(settings, resources).bind(record)
            mapper.timeout = seconds
            return Mapped(site, await mapper.site_links(site.url_of(path), search, 100), record)

    return links


@pytest.mark.extended
async def test_a_page_without_a_sitemap_gives_its_own_links(site: SmallSite, mapped: Map) -> None:
    found = await mapped(site)

    assert found.paths == LINKED
    assert found.hits[0] == Hit(site.url_of("/"), "A small site", "All there is.")
    assert [hit.title for hit in found.hits[1:]] == ["About us", "Documentation", "The paper"]
    assert found.warnings == []
    assert sorted(site.requested_paths) == ["/", "/robots.txt", "/sitemap.xml", "/sitemap_index.xml"]
    (agent,) = site.user_agents
    assert agent.startswith("Centgate/")


async def test_a_sitemap_in_the_usual_place_is_read(site: SmallSite, mapped: Map) -> None:
    site.set_sitemap("/sitemap.xml", "/about", "/blog/1", "/", "https://other.example/x")

    found = await mapped(site)

    assert found.paths == [*LINKED, "/blog/1"]
    assert "/sitemap_index.xml" not in site.requested_paths


async def test_an_index_in_the_usual_place_is_followed(site: SmallSite, mapped: Map) -> None:
    site.set_sitemap_index("/sitemap_index.xml", "/1.xml", "/2.xml")
    site.set_sitemap("/1.xml", "/one")
    site.set_sitemap("/2.xml", "/two")

    found = await mapped(site)

    assert {"/one", "/two"} < set(found.paths)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("{0}/new", "text/plain"),
        (render_sitemap("{0}/new"), "text/xml; charset=utf-8"),
        (render_sitemap("{0}/new"), "text/html"),
        (render_sitemap("{0}/new"), "application/octet-stream"),
        (
            "<rss><channel><item><title>New</title><link>{0}/new</link></item></channel></rss>",
            "application/rss+xml",
        ),
    ],
)
async def test_sitemaps_that_robots_txt_names_are_read_whatever_they_are(
    body: str, kind: str, site: SmallSite, mapped: Map
) -> None:
    site.set_robots(f"Sitemap: {site.url}/map")
    site.respond("/map", body.replace("{0}", site.url), kind)

    found = await mapped(site)

    assert "/new" in found.paths
    assert "/sitemap.xml" not in site.requested_paths


@pytest.mark.parametrize("coding", [{}, {"Content-Encoding": "gzip"}], ids=["file", "coding"])
async def test_a_gzip_sitemap_is_inflated(coding: dict[str, Any], site: SmallSite, mapped: Map) -> None:
    site.set_robots("Sitemap: /map.xml.gz")
    body = gzip.compress(render_sitemap(site.url_of("/new")).encode())
    site.respond("/map.xml.gz", body, "application/x-gzip", **coding)

    found = await mapped(site)

    assert "/new" in found.paths


async def test_a_sitemap_may_lie_on_another_host_but_its_pages_may_not(
    site: SmallSite, page_reader: OpenReader
) -> None:
    with serve_small_site() as store:
        site.set_robots(f"Sitemap: {store.url}/map.xml")
        store.set_sitemap("/map.xml", site.url_of("/new"), "/theirs")
        async with page_reader(site, store) as (settings, resources):
            hits = await SiteMapper(settings, resources).site_links(site.url, None, 100)

    assert [hit.url for hit in hits] == [site.url_of(path) for path in [*LINKED, "/new"]]


async def test_no_more_than_five_sitemaps_are_fetched(site: SmallSite, mapped: Map) -> None:
    names = [f"/{n}.xml" for n in range(9)]
    site.set_robots(*(f"Sitemap: {site.url_of(name)}" for name in names))
    for name in names:
        site.set_sitemap(name, f"/page{name}")

    found = await mapped(site)

    assert len([path for path in site.requested_paths if path in names]) == 5
    assert found.warnings == ["the site has more sitemaps than were read"]


async def test_those_of_an_index_that_match_the_search_are_read_first(site: SmallSite, mapped: Map) -> None:
    site.set_robots("Sitemap: /index.xml")
    names = [f"/products-{n}.xml" for n in range(9)]
    site.set_sitemap_index("/index.xml", *names, "/blog-posts.xml")
    site.set_sitemap("/blog-posts.xml", "/blog/fish")

    found = await mapped(site, search="blog about fish")

    assert found.paths[0] == "/blog/fish"
    assert len([path for path in site.requested_paths if path.endswith(".xml")]) == 5


async def test_an_index_is_followed_for_one_level(site: SmallSite, mapped: Map) -> None:
    site.set_robots("Sitemap: /1.xml")
    site.set_sitemap_index("/1.xml", "/2.xml", "/pages.xml")
    site.set_sitemap_index("/2.xml", "/3.xml")
    site.set_sitemap_index("/3.xml", "/4.xml")
    site.set_sitemap("/pages.xml", "/new")

    found = await mapped(site)

    assert "/new" in found.paths
    assert not {"/3.xml", "/4.xml"} & set(site.requested_paths)
    assert found.warnings == ["the site has more sitemaps than were read"]


async def test_sitemaps_that_name_one_another_are_read_once(site: SmallSite, mapped: Map) -> None:
    site.set_robots("Sitemap: /1.xml", "Sitemap: /2.xml")
    site.set_sitemap_index("/1.xml", "/1.xml", "/2.xml", "/2.xml")
    site.set_sitemap_index("/2.xml", "/1.xml", "/2.xml")

    found = await mapped(site)

    assert found.paths == LINKED
    assert sorted(path for path in site.requested_paths if path.endswith(".xml")) == ["/1.xml", "/2.xml"]


HOSTILE = {
    "billion laughs": '<!DOCTYPE u [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(12))
    + "]><urlset><url><loc>&m;</loc></url></urlset>",
    "external entities": '<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">'
    '<!ENTITY y SYSTEM "{0}/secret">]>'
    "<urlset><url><loc>{0}/&x;</loc></url><url><loc>{0}/&y;</loc></url></urlset>",
    "an external DTD": '<!DOCTYPE u SYSTEM "{0}/secret"><urlset></urlset>',
    "deep nesting": "<urlset>" * 500_000,
    "HTML": HOME,
    "nothing": "",
    "JSON": '{"urls": []}',
    "20 MB": "<urlset>" + " " * 20_000_000,
    "a gzip bomb": gzip.compress(b"<urlset>" + b"\n" * 100_000_000, 1),
    "broken gzip": b"\x1f\x8b\x08\x00broken",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_a_hostile_sitemap_costs_only_itself(body: str | bytes, site: SmallSite, mapped: Map) -> None:
    site.set_robots("Sitemap: /map.xml", "Sitemap: /good.xml")
    site.respond("/map.xml", body.replace("{0}", site.url) if isinstance(body, str) else body, XML)
    site.set_sitemap("/good.xml", "/new")

    found = await mapped(site)

    assert found.paths == [*LINKED, "/new"]
    assert "/secret" not in site.requested_paths


@pytest.mark.parametrize(("status", "cause"), [(500, "status 500"), (403, "status 403"), (404, "status 404")])
async def test_a_named_sitemap_that_cannot_be_read_is_said(
    status: int, cause: str, site: SmallSite, mapped: Map
) -> None:
    site.set_robots("Sitemap: /map.xml")
    site.respond("/map.xml", "", XML, status=status)

    found = await mapped(site)

    assert found.paths == LINKED
    (warning,) = found.warnings
    assert warning.startswith(f"the sitemap {site.url_of('/map.xml')} was not read: ")
    assert cause in warning


async def test_an_answer_in_html_where_a_sitemap_is_guessed_says_nothing(
    site: SmallSite, mapped: Map
) -> None:
    site.respond("/sitemap.xml", HOME)
    site.respond("/sitemap_index.xml", HOME)

    found = await mapped(site)

    assert found.paths == LINKED
    assert found.warnings == []


@pytest.mark.extended
async def test_sitemaps_that_never_answer_do_not_cost_the_page(site: SmallSite, mapped: Map) -> None:
    site.set_robots("Sitemap: /never.xml", "Sitemap: /good.xml")
    site.silent_paths.add("/never.xml")
    site.set_sitemap("/good.xml", "/new")

    found = await mapped(site, seconds=10)

    assert found.paths == [*LINKED, "/new"]
    assert found.warnings


@pytest.mark.extended
async def test_a_page_that_never_answers_does_not_cost_the_sitemaps(site: SmallSite, mapped: Map) -> None:
    site.set_sitemap("/sitemap.xml", "/a", "/b")
    site.silent_paths.add("/")

    found = await mapped(site, seconds=10)

    assert found.paths == ["/a", "/b"]
    (warning,) = found.warnings
    assert warning.startswith("the page itself was not read: ")


@pytest.mark.parametrize(("status", "reason"), [(500, "failed"), (403, "blocked"), (404, "not_found")])
async def test_without_the_page_the_sitemaps_are_the_map(
    status: int, reason: str, site: SmallSite, mapped: Map
) -> None:
    site.respond("/", HOME, status=status)
    site.set_sitemap("/sitemap.xml", "/a", "/b")

    found = await mapped(site)

    assert found.paths == ["/a", "/b"]
    assert f"status {status}" in found.warnings[0]


async def test_what_robots_txt_bans_is_named_and_not_fetched(site: SmallSite, mapped: Map) -> None:
    site.set_robots("User-agent: *", "Disallow: /", "Sitemap: /map.xml")
    site.set_sitemap("/map.xml", "/private", "/")

    found = await mapped(site)

    assert found.paths == ["/", "/private"]
    assert "/" not in site.requested_paths
    assert "does not allow it" in found.warnings[0]


async def test_a_ban_holds_for_sitemaps_that_are_only_guessed(site: SmallSite, mapped: Map) -> None:
    site.set_robots("User-agent: *", "Disallow: /")

    with pytest.raises(PageUnread) as caught:
        await mapped(site)

    assert caught.value.reason == "robots"
    assert site.requested_paths == ["/robots.txt"]


async def test_an_operator_can_do_without_robots_txt(site: SmallSite, mapped: Map) -> None:
    site.set_robots("User-agent: *", "Disallow: /")
    site.set_sitemap("/sitemap.xml", "/new")

    found = await mapped(site, fetch_robots=False)

    assert found.paths == [*LINKED, "/new"]


@pytest.mark.parametrize(
    ("status", "reason"), [(500, "failed"), (503, "failed"), (403, "blocked"), (451, "blocked")]
)
async def test_when_everything_fails_the_page_says_why(
    status: int, reason: str, site: SmallSite, mapped: Map
) -> None:
    site.respond("/", HOME, status=status)

    with pytest.raises(PageUnread) as caught:
        await mapped(site)

    assert caught.value.reason == reason
    assert f"status {status}" in caught.value.message


@pytest.mark.parametrize("status", [404, 410])
async def test_a_page_that_is_not_there_on_a_site_without_sitemaps_is_nothing(
    status: int, site: SmallSite, mapped: Map
) -> None:
    site.respond("/", HOME, status=status)

    with pytest.raises(NoData):
        await mapped(site)


async def test_a_page_that_is_not_there_beside_an_unread_sitemap_is_a_failure(
    site: SmallSite, mapped: Map
) -> None:
    site.set_robots("Sitemap: /map.xml")
    site.respond("/map.xml", "", XML, status=503)

    with pytest.raises(PageUnread) as caught:
        await mapped(site, "/gone")

    assert caught.value.reason == "not_found"


async def test_a_site_that_is_not_there_is_unreachable(mapped: Map) -> None:
    with serve_small_site() as gone:
        pass

    with pytest.raises(PageUnread) as caught:
        await mapped(gone)

    assert caught.value.reason == "unreachable"


async def test_an_address_inside_is_blocked(site: SmallSite, page_reader: OpenReader) -> None:
    record = RequestTrace.start()
    async with page_reader() as (settings, resources):
        with pytest.raises(PageUnread) as caught:
            await SiteMapper(settings, resources).bind(record).site_links(site.url, None, 100)

    assert caught.value.reason == "blocked_address"
    assert record.providers["sitemapper"]["status"] == "error"
    assert site.requested_paths == []


async def test_a_site_that_never_answers_is_a_timeout(
    site: SmallSite, mapped: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.robots.FETCH_SECONDS", 0.5)
    site.silent_paths |= {"/robots.txt", "/", "/sitemap.xml", "/sitemap_index.xml"}

    with pytest.raises(PageUnread) as caught:
        await mapped(site, seconds=4)

    assert caught.value.reason == "timeout"


async def test_a_page_that_its_scripts_make_is_still_a_link(site: SmallSite, mapped: Map) -> None:
    site.respond("/", "<title>App</title><div id=root></div><script src=/app.js></script>")

    found = await mapped(site)

    assert [(hit.url, hit.title) for hit in found.hits] == [(site.url_of("/"), "App")]
    assert found.warnings == ["the page has no links of its own; links created by scripts are missing"]


@pytest.mark.parametrize("body", ["", "\0", "<" * 1_000_000, "<div>" * 300_000, "<a href=/about>" * 100_000])
async def test_a_hostile_page_is_still_a_link(body: str, site: SmallSite, mapped: Map) -> None:
    site.respond("/", body)

    found = await mapped(site)

    assert found.paths[0] == "/"


async def test_a_page_of_another_kind_is_unsupported(site: SmallSite, mapped: Map) -> None:
    site.respond("/film", b"\0\1\2", "video/mp4")

    with pytest.raises(PageUnread) as caught:
        await mapped(site, "/film")

    assert caught.value.reason == "unsupported"


async def test_a_map_of_a_feed_is_what_it_names(site: SmallSite, mapped: Map) -> None:
    item = f"<item><title>First post</title><link>{site.url}/1</link></item>"
    site.respond("/feed", f"<rss><channel>{item}</channel></rss>", "application/rss+xml")

    found = await mapped(site, "/feed")

    assert [(hit.url, hit.title) for hit in found.hits] == [
        (site.url_of("/feed"), None),
        (site.url_of("/1"), "First post"),
    ]


@pytest.mark.parametrize("path", ["/maps/all.xml", "/maps/all"])
async def test_a_map_of_an_index_is_what_its_sitemaps_name(path: str, site: SmallSite, mapped: Map) -> None:
    site.set_sitemap_index(path, "/maps/a.xml", "/maps/b.xml")
    site.set_sitemap("/maps/a.xml", "/one")
    site.set_sitemap("/maps/b.xml", "/two")

    found = await mapped(site, path)

    assert set(found.paths) == {path, "/one", "/two"}
    assert found.warnings == []


async def test_the_sitemaps_of_an_index_that_is_asked_for_come_before_others(
    site: SmallSite, mapped: Map
) -> None:
    others = [f"/{n}.xml" for n in range(9)]
    site.set_robots(*(f"Sitemap: {name}" for name in others))
    site.set_sitemap_index("/all.xml", *(f"/{name}.xml" for name in ("a", "b", "fish")))
    for name in ("a", "b", "fish"):
        site.set_sitemap(f"/{name}.xml", f"/page-{name}")

    found = await mapped(site, "/all.xml")

    assert {"/page-a", "/page-b", "/page-fish"} <= set(found.paths)
    assert len([path for path in site.requested_paths if path in others]) == 1


async def test_an_index_in_the_usual_place_is_read_once(site: SmallSite, mapped: Map) -> None:
    site.set_sitemap_index("/sitemap.xml", "/a.xml")
    site.set_sitemap("/a.xml", "/one")

    assert (await mapped(site, "/sitemap.xml")).paths == ["/sitemap.xml", "/one"]
    assert site.requested_paths.count("/sitemap.xml") == site.requested_paths.count("/a.xml") == 1


async def test_links_start_from_where_the_page_was_found(site: SmallSite, mapped: Map) -> None:
    site.respond("/old", "", status=301, Location="/new/home.html")
    site.respond("/new/home.html", "<title>New</title><a href=next.html>Next one</a>")

    found = await mapped(site, "/old")

    assert found.paths == ["/new/home.html", "/new/next.html"]


async def test_where_the_page_leads_is_listed_and_said(site: SmallSite, page_reader: OpenReader) -> None:
    with serve_small_site() as moved:
        site.respond("/", "", status=301, Location=moved.url_of("/"))
        moved.respond("/", "<title>Moved</title><a href=/there>There</a>")
        record = RequestTrace.start()
        async with page_reader(site, moved) as (settings, resources):
            hits = await SiteMapper(settings, resources).bind(record).site_links(site.url_of("/"), None, 100)

    assert [hit.url for hit in hits] == [moved.url_of("/"), moved.url_of("/there")]
    assert record.warnings == [f"the address leads to {moved.url_of('/')}, whose site is listed as well"]


async def test_a_hundred_of_many_pages_are_named(site: SmallSite, mapped: Map) -> None:
    site.set_sitemap("/sitemap.xml", *(f"/{n}" for n in range(1000)))

    found = await mapped(site)

    assert len(found.paths) == len(set(found.paths)) == 100
    assert found.paths[:4] == LINKED
    assert found.warnings == ["the site names 1004 pages; the first 100 are given"]


async def test_a_search_orders_the_whole_of_a_large_site(site: SmallSite, mapped: Map) -> None:
    site.set_sitemap("/sitemap.xml", *(f"/products/item-{n}" for n in range(9_999)), "/products/blue-fish")

    found = await mapped(site, search="blue fish")

    assert found.paths[0] == "/products/blue-fish"
    assert len(found.paths) == 100


async def test_a_search_without_a_match_is_no_data(site: SmallSite, mapped: Map) -> None:
    with pytest.raises(NoData, match="none of the 4 pages that the site names matches the search"):
        await mapped(site, search="zebra")


async def test_pages_that_do_not_match_are_told_apart(site: SmallSite, mapped: Map) -> None:
    found = await mapped(site, search="documentation")

    assert found.warnings == [
        "1 of the 4 pages that the site names match the search; the others follow in the order of the site"
    ]


async def test_pages_that_neither_match_nor_are_given_are_told(site: SmallSite, mapped: Map) -> None:
    site.set_sitemap("/sitemap.xml", *(f"/{n}" for n in range(1000)))

    found = await mapped(site, search="documentation")

    assert found.warnings == [
        "the site names 1004 pages, of which 1 match the search; the first 100 are given: those that match, "
        "then others in the order of the site"
    ]


LANGUAGES = "".join(
    f'<link rel="alternate" hreflang="{name}" href="{path}">'
    for name, path in {"x-default": "/", "de": "/de/", "fr": "/fr/"}.items()
)
LANGUAGE_LINKS = "<a href=/de/>Deutsch</a><a href=/fr/>Français</a><a href=/about>About</a>"


async def test_other_languages_of_the_page_are_not_listed_beside_it(site: SmallSite, mapped: Map) -> None:
    site.respond("/", f"<head>{LANGUAGES}</head>{LANGUAGE_LINKS}")
    site.set_sitemap("/sitemap.xml", "/fr/", "/new")

    assert (await mapped(site)).paths == ["/", "/about", "/new"]


async def test_languages_that_a_page_is_not_among_are_not_its_own(site: SmallSite, mapped: Map) -> None:
    site.respond("/page", f"<head>{LANGUAGES}</head>{LANGUAGE_LINKS}")

    assert {"/de/", "/fr/"} <= set((await mapped(site, "/page")).paths)


async def test_a_search_finds_anchor_texts(site: SmallSite, mapped: Map) -> None:
    site.respond("/", "<a href=/1>Imprint</a><a href=/2>Terms of delivery</a>")

    assert (await mapped(site, search="delivery terms")).paths[0] == "/2"


async def test_without_resources_it_fails_as_not_set_up(page_reader: OpenReader, site: SmallSite) -> None:
    async with page_reader(site) as (settings, _):
        mapper = SiteMapper(settings)

    with pytest.raises(ProviderFailure):
        await mapper.site_links(site.url, None, 100)
