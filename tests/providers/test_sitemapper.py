"""Site mapper: valid, broken and hostile sites on loopback."""

from __future__ import annotations

import gzip
from collections.abc import Awaitable, Callable, Generator
from typing import Any
from urllib.parse import urlsplit

import pytest
from small_site import XML, OpenReader, SmallSite, render_sitemap, serve_small_site

from centgate.errors import NoData, PageUnread, ProviderUnconfigured
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
def map_site(page_reader: OpenReader) -> Map:
    """Function that maps a site or raises: `map_site(site, path, search)`; `changes` are settings."""

    async def map_links(
        site: SmallSite, path: str = "/", search: str | None = None, *, seconds: float = 15, **changes: Any
    ) -> Mapped:
        record = RequestTrace.start()
        async with page_reader(site, **changes) as (settings, resources):
            mapper = SiteMapper(settings, resources).bind(record)
            mapper.timeout = seconds
            return Mapped(site, await mapper.site_links(site.url_of(path), search, 100), record)

    return map_links


@pytest.mark.extended
async def test_page_without_sitemap_gives_its_links(site: SmallSite, map_site: Map) -> None:
    found = await map_site(site)

    assert found.paths == LINKED
    assert found.hits[0] == Hit(site.url_of("/"), "A small site", "All there is.")
    assert [hit.title for hit in found.hits[1:]] == ["About us", "Documentation", "The paper"]
    assert found.warnings == []
    assert sorted(site.requested_paths) == ["/", "/robots.txt", "/sitemap.xml", "/sitemap_index.xml"]
    (agent,) = site.user_agents
    assert agent.startswith("Centgate/")


async def test_sitemap_at_usual_path_is_read(site: SmallSite, map_site: Map) -> None:
    site.set_sitemap("/sitemap.xml", "/about", "/blog/1", "/", "https://other.example/x")

    found = await map_site(site)

    assert found.paths == [*LINKED, "/blog/1"]
    assert "/sitemap_index.xml" not in site.requested_paths


async def test_index_at_usual_path_is_followed(site: SmallSite, map_site: Map) -> None:
    site.set_sitemap_index("/sitemap_index.xml", "/1.xml", "/2.xml")
    site.set_sitemap("/1.xml", "/one")
    site.set_sitemap("/2.xml", "/two")

    found = await map_site(site)

    assert {"/one", "/two"} < set(found.paths)


@pytest.mark.extended
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
async def test_sitemaps_of_robots_txt_are_read_in_any_format(
    body: str, kind: str, site: SmallSite, map_site: Map
) -> None:
    site.set_robots(f"Sitemap: {site.url}/map")
    site.respond("/map", body.replace("{0}", site.url), kind)

    found = await map_site(site)

    assert "/new" in found.paths
    assert "/sitemap.xml" not in site.requested_paths


@pytest.mark.parametrize("coding", [{}, {"Content-Encoding": "gzip"}], ids=["file", "coding"])
async def test_gzip_sitemap_is_decompressed(coding: dict[str, Any], site: SmallSite, map_site: Map) -> None:
    site.set_robots("Sitemap: /map.xml.gz")
    body = gzip.compress(render_sitemap(site.url_of("/new")).encode())
    site.respond("/map.xml.gz", body, "application/x-gzip", **coding)

    found = await map_site(site)

    assert "/new" in found.paths


async def test_sitemap_on_other_host_gives_only_pages_of_site(
    site: SmallSite, page_reader: OpenReader
) -> None:
    with serve_small_site() as store:
        site.set_robots(f"Sitemap: {store.url}/map.xml")
        store.set_sitemap("/map.xml", site.url_of("/new"), "/theirs")
        async with page_reader(site, store) as (settings, resources):
            hits = await SiteMapper(settings, resources).site_links(site.url, None, 100)

    assert [hit.url for hit in hits] == [site.url_of(path) for path in [*LINKED, "/new"]]


async def test_sitemaps_are_read_up_to_limit(
    site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.MAX_SITEMAPS", 5)
    names = [f"/{n}.xml" for n in range(9)]
    site.set_robots(*(f"Sitemap: {site.url_of(name)}" for name in names))
    for name in names:
        site.set_sitemap(name, f"/page{name}")

    found = await map_site(site)

    assert len([path for path in site.requested_paths if path in names]) == 5
    assert found.warnings == ["the site has more sitemaps than were read: 5 of 9"]


async def test_sitemaps_of_robots_beyond_limit_are_counted(site: SmallSite, map_site: Map) -> None:
    names = [f"/{n}.xml" for n in range(150)]
    site.set_robots(*(f"Sitemap: {name}" for name in names))
    for name in names:
        site.set_sitemap(name, f"/page{name}")

    found = await map_site(site)

    assert "the site has more sitemaps than were read: 100 of 150" in found.warnings


async def test_large_index_is_read_in_whole(site: SmallSite, map_site: Map) -> None:
    names = [f"/{n}.xml" for n in range(40)]
    site.set_robots("Sitemap: /index.xml")
    site.set_sitemap_index("/index.xml", *names)
    for name in names:
        site.set_sitemap(name, f"/page{name}")

    found = await map_site(site)

    assert {f"/page{name}" for name in names} <= set(found.paths)
    assert found.warnings == []


async def test_sitemaps_are_read_up_to_total_size(
    site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.MAX_TOTAL_BYTES", 3000)
    site.set_sitemap_index("/sitemap.xml", *(f"/{n}.xml" for n in range(9)))
    for n in range(9):
        body = render_sitemap(site.url_of(f"/page{n}")) + " " * 1000
        site.respond(f"/{n}.xml", gzip.compress(body.encode()), XML)

    found = await map_site(site)

    (warning,) = found.warnings
    assert warning in {f"the site has more sitemaps than were read: {n} of 10" for n in (3, 4, 5)}


async def test_no_sitemap_is_begun_late(
    site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.BEGIN_SHARE", 0.0)
    site.set_sitemap_index("/sitemap.xml", "/a.xml", "/b.xml")

    found = await map_site(site)

    assert found.paths == LINKED
    assert found.warnings == ["the site has more sitemaps than were read: 1 of 3"]


async def test_broken_sitemaps_end_the_reading(site: SmallSite, map_site: Map) -> None:
    names = [f"/{n}.xml" for n in range(60)]
    site.set_sitemap_index("/sitemap.xml", *names)

    found = await map_site(site)

    assert len([path for path in site.requested_paths if path in names]) <= 12
    assert "the site has more sitemaps than were read: 1 of 61" in found.warnings


async def test_crawl_delay_applies_to_further_sitemaps(site: SmallSite, map_site: Map) -> None:
    names = [f"/{n}.xml" for n in range(9)]
    site.set_robots("User-agent: *", "Crawl-delay: 30", "Sitemap: /index.xml")
    site.set_sitemap_index("/index.xml", *names)
    for name in names:
        site.set_sitemap(name, f"/page{name}")

    found = await map_site(site)

    assert found.warnings == ["the site has more sitemaps than were read: 5 of 10"]


async def test_other_site_is_asked_for_few_sitemaps(
    site: SmallSite, page_reader: OpenReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_site(url: str) -> str:
        return urlsplit(url).netloc  # both are on one host here

    monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.find_site", find_site)
    with serve_small_site() as store:
        site.set_robots("Sitemap: /index.xml")
        site.set_sitemap_index("/index.xml", *(store.url_of(f"/{n}.xml") for n in range(9)))
        for n in range(9):
            store.set_sitemap(f"/{n}.xml", site.url_of(f"/page{n}"))
        record = RequestTrace.start()
        async with page_reader(site, store) as (settings, resources):
            hits = await SiteMapper(settings, resources).bind(record).site_links(site.url, None, 100)

    assert len(store.requested_paths) == 5
    assert len([hit for hit in hits if "/page" in hit.url]) == 5
    assert record.warnings == ["the site has more sitemaps than were read: 6 of 10"]


async def test_matching_sitemaps_of_index_are_read_first(
    site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.MAX_SITEMAPS", 5)
    site.set_robots("Sitemap: /index.xml")
    names = [f"/products-{n}.xml" for n in range(9)]
    site.set_sitemap_index("/index.xml", *names, "/blog-posts.xml")
    site.set_sitemap("/blog-posts.xml", "/blog/fish")

    found = await map_site(site, search="blog about fish")

    assert found.paths[0] == "/blog/fish"
    assert len([path for path in site.requested_paths if path.endswith(".xml")]) == 5


async def test_index_of_indexes_is_followed(site: SmallSite, map_site: Map) -> None:
    site.set_robots("Sitemap: /1.xml")
    site.set_sitemap_index("/1.xml", "/2.xml", "/pages.xml")
    site.set_sitemap_index("/2.xml", "/3.xml", "/1.xml")
    site.set_sitemap("/3.xml", "/deep")
    site.set_sitemap("/pages.xml", "/new")

    found = await map_site(site)

    assert {"/new", "/deep"} <= set(found.paths)
    assert found.warnings == []


async def test_depth_of_indexes_is_limited(site: SmallSite, map_site: Map) -> None:
    for n in range(1, 9):
        site.set_sitemap_index("/sitemap.xml" if n == 1 else f"/{n}.xml", f"/{n + 1}.xml")

    found = await map_site(site)

    assert [path for path in site.requested_paths if path.endswith(".xml")] == [
        "/sitemap.xml",
        "/2.xml",
        "/3.xml",
        "/4.xml",
    ]
    assert found.warnings == ["the site has more sitemaps than were read: 4 of 5"]


async def test_each_index_gets_its_turn(
    site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.MAX_SITEMAPS", 20)
    site.set_sitemap_index("/sitemap.xml", *(f"/index{n}.xml" for n in range(30)))
    for n in range(30):
        site.set_sitemap_index(f"/index{n}.xml", *(f"/map{n}-{m}.xml" for m in range(30)))
        for m in range(30):
            site.set_sitemap(f"/map{n}-{m}.xml", f"/page{n}-{m}")

    found = await map_site(site)

    folders = {path.partition("-")[0] for path in found.paths if "/page" in path}
    assert len(folders) >= 4


async def test_circular_sitemaps_are_read_once(site: SmallSite, map_site: Map) -> None:
    site.set_robots("Sitemap: /1.xml", "Sitemap: /2.xml")
    site.set_sitemap_index("/1.xml", "/1.xml", "/2.xml", "/2.xml")
    site.set_sitemap_index("/2.xml", "/1.xml", "/2.xml")

    found = await map_site(site)

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


@pytest.mark.extended
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_sitemap_affects_only_itself(body: str | bytes, site: SmallSite, map_site: Map) -> None:
    site.set_robots("Sitemap: /map.xml", "Sitemap: /good.xml")
    site.respond("/map.xml", body.replace("{0}", site.url) if isinstance(body, str) else body, XML)
    site.set_sitemap("/good.xml", "/new")

    found = await map_site(site)

    assert found.paths == [*LINKED, "/new"]
    assert "/secret" not in site.requested_paths


@pytest.mark.parametrize(("status", "cause"), [(500, "status 500"), (403, "status 403"), (404, "status 404")])
async def test_unreadable_named_sitemap_is_reported(
    status: int, cause: str, site: SmallSite, map_site: Map
) -> None:
    site.set_robots("Sitemap: /map.xml")
    site.respond("/map.xml", "", XML, status=status)

    found = await map_site(site)

    assert found.paths == LINKED
    (warning,) = found.warnings
    assert warning.startswith(f"the sitemap {site.url_of('/map.xml')} was not read: ")
    assert cause in warning


async def test_html_at_guessed_path_is_ignored(site: SmallSite, map_site: Map) -> None:
    site.respond("/sitemap.xml", HOME)
    site.respond("/sitemap_index.xml", HOME)

    found = await map_site(site)

    assert found.paths == LINKED
    assert found.warnings == []


@pytest.mark.parametrize("coding", ["plain", "gzip"])
async def test_beginning_of_damaged_sitemap_is_reported(coding: str, site: SmallSite, map_site: Map) -> None:
    sitemap = render_sitemap(f"{site.url}/a", f"{site.url}/b").encode()
    site.respond("/sitemap.xml", gzip.compress(sitemap)[:-12] if coding == "gzip" else sitemap[:-9], XML)

    found = await map_site(site)

    assert found.warnings == [
        f"only the beginning of the sitemap {site.url}/sitemap.xml was read: "
        "it is damaged or longer than 5 MB"
    ]


async def test_complete_sitemap_with_lone_ampersand_is_no_part(site: SmallSite, map_site: Map) -> None:
    site.respond("/sitemap.xml", render_sitemap(f"{site.url}/shop?a=1&b=2"), XML)

    found = await map_site(site)

    assert "/shop?a=1&b=2" in found.paths
    assert found.warnings == []


@pytest.mark.parametrize(
    ("path", "name"), [("/sitemap.xml", "/sitemap.xml"), ("/", "/sitemap.xml"), ("/", "/list.txt")]
)
async def test_beginning_of_large_sitemap_is_read(
    path: str, name: str, site: SmallSite, map_site: Map
) -> None:
    urls = [site.url_of(f"/{n}/{'x' * 400}") for n in range(14_000)]
    body = "\n".join(urls) if name.endswith("txt") else render_sitemap(*urls)
    site.respond(name, body, "text/plain" if name.endswith("txt") else XML)
    site.set_robots(f"Sitemap: {name}")

    found = await map_site(site, path)

    assert found.paths[0] == path
    assert set(found.paths) <= {path, *LINKED, *(url.removeprefix(site.url) for url in urls)}
    assert len(found.paths) == 100
    assert (
        f"only the beginning of the sitemap {site.url}{name} was read: it is damaged or longer than 5 MB"
        in found.warnings
    )


async def test_beginning_of_requested_sitemap_is_reported(site: SmallSite, map_site: Map) -> None:
    site.respond("/products.xml", render_sitemap(f"{site.url}/a", f"{site.url}/b")[:-9], XML)

    found = await map_site(site, "/products.xml")

    assert any(
        f"beginning of the sitemap {site.url}/products.xml was read" in each for each in found.warnings
    )


@pytest.mark.extended
async def test_silent_sitemaps_do_not_cost_the_page(site: SmallSite, map_site: Map) -> None:
    site.set_robots("Sitemap: /never.xml", "Sitemap: /good.xml")
    site.silent_paths.add("/never.xml")
    site.set_sitemap("/good.xml", "/new")

    found = await map_site(site, seconds=10)

    assert found.paths == [*LINKED, "/new"]
    assert found.warnings


@pytest.mark.extended
async def test_silent_page_does_not_cost_the_sitemaps(site: SmallSite, map_site: Map) -> None:
    site.set_sitemap("/sitemap.xml", "/a", "/b")
    site.silent_paths.add("/")

    found = await map_site(site, seconds=10)

    assert found.paths == ["/a", "/b"]
    (warning,) = found.warnings
    assert warning.startswith("the page itself was not read: ")


@pytest.mark.parametrize(("status", "reason"), [(500, "failed"), (403, "blocked"), (404, "not_found")])
async def test_sitemaps_alone_give_the_map(status: int, reason: str, site: SmallSite, map_site: Map) -> None:
    site.respond("/", HOME, status=status)
    site.set_sitemap("/sitemap.xml", "/a", "/b")

    found = await map_site(site)

    assert found.paths == ["/a", "/b"]
    assert f"status {status}" in found.warnings[0]


@pytest.mark.extended
async def test_forbidden_page_is_listed_but_not_fetched(site: SmallSite, map_site: Map) -> None:
    site.set_robots("User-agent: *", "Disallow: /", "Sitemap: /map.xml")
    site.set_sitemap("/map.xml", "/private", "/")

    found = await map_site(site)

    assert found.paths == ["/", "/private"]
    assert "/" not in site.requested_paths
    assert "does not allow it" in found.warnings[0]


async def test_robots_txt_applies_to_guessed_sitemaps(site: SmallSite, map_site: Map) -> None:
    site.set_robots("User-agent: *", "Disallow: /")

    with pytest.raises(PageUnread) as caught:
        await map_site(site)

    assert caught.value.reason == "robots"
    assert site.requested_paths == ["/robots.txt"]


async def test_robots_txt_can_be_disabled(site: SmallSite, map_site: Map) -> None:
    site.set_robots("User-agent: *", "Disallow: /")
    site.set_sitemap("/sitemap.xml", "/new")

    found = await map_site(site, fetch_robots=False)

    assert found.paths == [*LINKED, "/new"]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("status", "reason"), [(500, "failed"), (503, "failed"), (403, "blocked"), (451, "blocked")]
)
async def test_failure_of_page_is_reported_if_all_fails(
    status: int, reason: str, site: SmallSite, map_site: Map
) -> None:
    site.respond("/", HOME, status=status)

    with pytest.raises(PageUnread) as caught:
        await map_site(site)

    assert caught.value.reason == reason
    assert f"status {status}" in caught.value.message


@pytest.mark.parametrize("status", [404, 410])
async def test_missing_page_without_sitemaps_is_no_data(status: int, site: SmallSite, map_site: Map) -> None:
    site.respond("/", HOME, status=status)

    with pytest.raises(NoData):
        await map_site(site)


async def test_missing_page_beside_unread_sitemap_is_a_failure(site: SmallSite, map_site: Map) -> None:
    site.set_robots("Sitemap: /map.xml")
    site.respond("/map.xml", "", XML, status=503)

    with pytest.raises(PageUnread) as caught:
        await map_site(site, "/gone")

    assert caught.value.reason == "not_found"


async def test_unreachable_site_is_a_failure(map_site: Map) -> None:
    with serve_small_site() as gone:
        pass

    with pytest.raises(PageUnread) as caught:
        await map_site(gone)

    assert caught.value.reason == "unreachable"


async def test_private_address_is_blocked(site: SmallSite, page_reader: OpenReader) -> None:
    record = RequestTrace.start()
    async with page_reader() as (settings, resources):
        with pytest.raises(PageUnread) as caught:
            await SiteMapper(settings, resources).bind(record).site_links(site.url, None, 100)

    assert caught.value.reason == "blocked_address"
    assert record.providers["sitemapper"]["status"] == "error"
    assert site.requested_paths == []


@pytest.mark.extended
async def test_silent_site_is_a_timeout(
    site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.robots.FETCH_SECONDS", 0.5)
    site.silent_paths |= {"/robots.txt", "/", "/sitemap.xml", "/sitemap_index.xml"}

    with pytest.raises(PageUnread) as caught:
        await map_site(site, seconds=4)

    assert caught.value.reason == "timeout"


async def test_page_built_by_scripts_is_still_a_link(site: SmallSite, map_site: Map) -> None:
    site.respond("/", "<title>App</title><div id=root></div><script src=/app.js></script>")

    found = await map_site(site)

    assert [(hit.url, hit.title) for hit in found.hits] == [(site.url_of("/"), "App")]
    assert found.warnings == ["the page has no links of its own; links created by scripts are missing"]


@pytest.mark.extended
@pytest.mark.parametrize("body", ["", "\0", "<" * 1_000_000, "<div>" * 300_000, "<a href=/about>" * 100_000])
async def test_hostile_page_is_still_a_link(body: str, site: SmallSite, map_site: Map) -> None:
    site.respond("/", body)

    found = await map_site(site)

    assert found.paths[0] == "/"


async def test_page_of_other_type_is_unsupported(site: SmallSite, map_site: Map) -> None:
    site.respond("/film", b"\0\1\2", "video/mp4")

    with pytest.raises(PageUnread) as caught:
        await map_site(site, "/film")

    assert caught.value.reason == "unsupported"


async def test_map_of_feed_has_its_entries(site: SmallSite, map_site: Map) -> None:
    item = f"<item><title>First post</title><link>{site.url}/1</link></item>"
    site.respond("/feed", f"<rss><channel>{item}</channel></rss>", "application/rss+xml")

    found = await map_site(site, "/feed")

    assert [(hit.url, hit.title) for hit in found.hits] == [
        (site.url_of("/feed"), None),
        (site.url_of("/1"), "First post"),
    ]


@pytest.mark.parametrize("path", ["/maps/all.xml", "/maps/all"])
async def test_map_of_index_has_pages_of_its_sitemaps(path: str, site: SmallSite, map_site: Map) -> None:
    site.set_sitemap_index(path, "/maps/a.xml", "/maps/b.xml")
    site.set_sitemap("/maps/a.xml", "/one")
    site.set_sitemap("/maps/b.xml", "/two")

    found = await map_site(site, path)

    assert set(found.paths) == {path, "/one", "/two"}
    assert found.warnings == []


async def test_sitemaps_of_requested_index_come_first(
    site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.MAX_SITEMAPS", 5)
    others = [f"/{n}.xml" for n in range(9)]
    site.set_robots(*(f"Sitemap: {name}" for name in others))
    site.set_sitemap_index("/all.xml", *(f"/{name}.xml" for name in ("a", "b", "fish")))
    for name in ("a", "b", "fish"):
        site.set_sitemap(f"/{name}.xml", f"/page-{name}")

    found = await map_site(site, "/all.xml")

    assert {"/page-a", "/page-b", "/page-fish"} <= set(found.paths)
    assert len([path for path in site.requested_paths if path in others]) == 1


async def test_index_at_usual_path_is_read_once(site: SmallSite, map_site: Map) -> None:
    site.set_sitemap_index("/sitemap.xml", "/a.xml")
    site.set_sitemap("/a.xml", "/one")

    assert (await map_site(site, "/sitemap.xml")).paths == ["/sitemap.xml", "/one"]
    assert site.requested_paths.count("/sitemap.xml") == site.requested_paths.count("/a.xml") == 1


async def test_links_start_from_final_url(site: SmallSite, map_site: Map) -> None:
    site.respond("/old", "", status=301, Location="/new/home.html")
    site.respond("/new/home.html", "<title>New</title><a href=next.html>Next one</a>")

    found = await map_site(site, "/old")

    assert found.paths == ["/new/home.html", "/new/next.html"]


async def test_redirect_target_is_listed_and_reported(site: SmallSite, page_reader: OpenReader) -> None:
    with serve_small_site() as moved:
        site.respond("/", "", status=301, Location=moved.url_of("/"))
        moved.respond("/", "<title>Moved</title><a href=/there>There</a>")
        record = RequestTrace.start()
        async with page_reader(site, moved) as (settings, resources):
            hits = await SiteMapper(settings, resources).bind(record).site_links(site.url_of("/"), None, 100)

    assert [hit.url for hit in hits] == [moved.url_of("/"), moved.url_of("/there")]
    assert record.warnings == [f"the address leads to {moved.url_of('/')}, whose site is listed as well"]


async def test_page_that_refresh_leads_to_is_listed(site: SmallSite, map_site: Map) -> None:
    site.respond("/", "<meta http-equiv=refresh content='0; url=en/stable/'><a href=en/stable/>Go on</a>")
    site.respond("/en/stable/", "<title>Manual</title><a href=start.html>First steps</a>")

    found = await map_site(site)

    assert found.paths == ["/en/stable/", "/en/stable/start.html"]
    assert [hit.title for hit in found.hits] == ["Manual", "First steps"]


async def test_refreshes_in_a_circle_end(site: SmallSite, map_site: Map) -> None:
    site.respond("/", "<meta http-equiv=refresh content='0; url=/next'>")
    site.respond("/next", "<meta http-equiv=refresh content='0; url=/'>")

    found = await map_site(site)

    assert found.paths == ["/next"]
    assert [site.requested_paths.count(path) for path in ("/", "/next")] == [1, 1]


async def test_page_of_links_with_refresh_is_the_page(site: SmallSite, map_site: Map) -> None:
    site.respond("/", "<meta http-equiv=refresh content='0; url=/next'>" + HOME)

    assert (await map_site(site)).paths == LINKED


async def test_robots_txt_holds_for_target_of_refresh(site: SmallSite, map_site: Map) -> None:
    site.respond("/", "<meta http-equiv=refresh content='0; url=/private'>")
    site.respond("/robots.txt", "User-agent: *\nDisallow: /private", "text/plain")

    with pytest.raises(PageUnread, match="does not allow it"):
        await map_site(site)

    assert "/private" not in site.requested_paths


async def test_sitemaps_of_redirect_target_are_read(site: SmallSite, page_reader: OpenReader) -> None:
    with serve_small_site() as moved:
        site.respond("/", "", status=301, Location=moved.url_of("/"))
        moved.respond("/", "<title>Moved</title>")
        moved.set_sitemap("/sitemap.xml", "/there")
        record = RequestTrace.start()
        async with page_reader(site, moved) as (settings, resources):
            hits = await SiteMapper(settings, resources).bind(record).site_links(site.url_of("/"), None, 100)

    assert [hit.url for hit in hits] == [moved.url_of("/"), moved.url_of("/there")]


async def test_robots_txt_of_redirect_target_is_respected(site: SmallSite, page_reader: OpenReader) -> None:
    with serve_small_site() as moved:
        site.respond("/", "", status=301, Location=moved.url_of("/"))
        site.set_sitemap("/sitemap.xml", "/here")
        moved.respond("/", "<title>Moved</title><a href=/there>There</a>")
        moved.respond("/robots.txt", "User-agent: *\nDisallow: /", "text/plain")
        record = RequestTrace.start()
        async with page_reader(site, moved) as (settings, resources):
            hits = await SiteMapper(settings, resources).bind(record).site_links(site.url_of("/"), None, 100)

    assert [hit.url for hit in hits] == [site.url_of("/here")]
    assert "does not allow it; the links are from sitemaps" in record.warnings[0]
    assert moved.requested_paths == ["/robots.txt"]


async def test_at_most_100_pages_are_returned(site: SmallSite, map_site: Map) -> None:
    site.set_sitemap("/sitemap.xml", *(f"/{n}" for n in range(1000)))

    found = await map_site(site)

    assert len(found.paths) == len(set(found.paths)) == 100
    assert found.paths[:4] == LINKED
    assert found.warnings == ["the site names 1,004 pages; the first 100 are given"]


@pytest.mark.extended
async def test_search_ranks_a_large_site(site: SmallSite, map_site: Map) -> None:
    site.set_sitemap("/sitemap.xml", *(f"/products/item-{n}" for n in range(2_999)), "/products/blue-fish")

    found = await map_site(site, search="blue fish")

    assert found.paths[0] == "/products/blue-fish"
    assert len(found.paths) == 100


async def test_search_without_match_is_no_data(site: SmallSite, map_site: Map) -> None:
    with pytest.raises(NoData, match="knows no match for the search among the 4 pages that the site names"):
        await map_site(site, search="zebra")


@pytest.mark.parametrize(
    ("broken", "reason", "cause"),
    [
        ("sitemap", "failed", "the sitemap .*/map.xml was not read: the site answered with status 503"),
        ("page", "failed", "the page itself was not read: the site answered with status 500"),
        ("silent sitemap", "timeout", "there was no time to read all of the site's sitemaps"),
    ],
)
async def test_search_of_site_that_failed_in_part_can_be_sent_again(
    broken: str, reason: str, cause: str, site: SmallSite, map_site: Map
) -> None:
    site.set_sitemap("/good.xml", "/new")
    site.set_robots("Sitemap: /good.xml", "Sitemap: /map.xml")
    site.set_sitemap("/map.xml", "/newer")
    if broken == "sitemap":
        site.respond("/map.xml", "", XML, status=503)
    elif broken == "page":
        site.respond("/", HOME, status=500)
    else:
        site.silent_paths.add("/map.xml")

    with pytest.raises(
        PageUnread, match=f"nothing that was read of the site matches .*, and {cause}"
    ) as raised:
        await map_site(site, search="zebra", seconds=1.5 if "silent" in broken else 15)

    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("unread", "cause"),
    [
        ("missing sitemap", "the sitemap .*/map.xml was not read: the site answered with status 404"),
        ("forbidden page", "the page itself was not read: the site answered with status 403"),
        ("many sitemaps", "the site has more sitemaps than were read: 5 of 10"),
    ],
)
async def test_search_without_match_names_what_is_never_read(
    unread: str, cause: str, site: SmallSite, map_site: Map, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.set_sitemap("/good.xml", "/new")
    site.set_robots("Sitemap: /good.xml")
    if unread == "missing sitemap":
        site.set_robots("Sitemap: /good.xml", "Sitemap: /map.xml")
    elif unread == "forbidden page":
        site.respond("/", HOME, status=403)
    else:
        monkeypatch.setattr("centgate.web.sitemap.fetch_sitemaps.MAX_SITEMAPS", 5)
        site.set_sitemap_index("/good.xml", *(f"/{n}.xml" for n in range(9)))
        for n in range(9):
            site.set_sitemap(f"/{n}.xml", f"/{n}")

    with pytest.raises(NoData, match=f"no match for the search among the .*; {cause}"):
        await map_site(site, search="zebra")


async def test_missing_page_of_read_sitemaps_is_no_data(site: SmallSite, map_site: Map) -> None:
    site.respond("/", HOME, status=404)
    site.set_sitemap("/sitemap.xml", "/a", "/b")

    with pytest.raises(NoData, match="no match for the search among the 2 pages"):
        await map_site(site, search="zebra")


async def test_unmatched_pages_are_distinguished(site: SmallSite, map_site: Map) -> None:
    found = await map_site(site, search="documentation")

    assert found.warnings == [
        "1 of the 4 pages that the site names match the search; the others follow in the order of the site"
    ]


async def test_unmatched_and_unlisted_pages_are_reported(site: SmallSite, map_site: Map) -> None:
    site.set_sitemap("/sitemap.xml", *(f"/{n}" for n in range(1000)))

    found = await map_site(site, search="documentation")

    assert found.warnings == [
        "the site names 1,004 pages, of which 1 match the search; the first 100 are given: those that match, "
        "then others in the order of the site"
    ]


LANGUAGES = "".join(
    f'<link rel="alternate" hreflang="{name}" href="{path}">'
    for name, path in {"x-default": "/", "de": "/de/", "fr": "/fr/"}.items()
)
LANGUAGE_LINKS = "<a href=/de/>Deutsch</a><a href=/fr/>Français</a><a href=/about>About</a>"


async def test_other_languages_of_page_are_not_listed(site: SmallSite, map_site: Map) -> None:
    site.respond("/", f"<head>{LANGUAGES}</head>{LANGUAGE_LINKS}")
    site.set_sitemap("/sitemap.xml", "/fr/", "/new")

    assert (await map_site(site)).paths == ["/", "/about", "/new"]


async def test_foreign_language_links_are_ignored(site: SmallSite, map_site: Map) -> None:
    site.respond("/page", f"<head>{LANGUAGES}</head>{LANGUAGE_LINKS}")

    assert {"/de/", "/fr/"} <= set((await map_site(site, "/page")).paths)


async def test_search_finds_anchor_texts(site: SmallSite, map_site: Map) -> None:
    site.respond("/", "<a href=/1>Imprint</a><a href=/2>Terms of delivery</a>")

    assert (await map_site(site, search="delivery terms")).paths[0] == "/2"


async def test_mapper_without_resources_is_unconfigured(page_reader: OpenReader, site: SmallSite) -> None:
    async with page_reader(site) as (settings, _):
        mapper = SiteMapper(settings)

    with pytest.raises(ProviderUnconfigured):
        await mapper.site_links(site.url, None, 100)
