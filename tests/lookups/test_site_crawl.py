"""Crawls of sites on loopback into an index: valid, changing and hostile sites."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from small_site import XML, OpenReader, SmallSite, render_sitemap, serve_small_site

from centgate.lookups import site_crawl
from centgate.lookups.site_crawl import CrawlReport, SiteCrawler
from centgate.providers.pagereader import PageReader
from centgate.providers.sitemapper import SiteMapper
from centgate.web.index import crawl_state
from centgate.web.index.crawl_state import MAX_FAILURES, CrawlState, IndexedSite
from centgate.web.index.duplicates import compute_fingerprint
from centgate.web.index.index_writer import PageIndexWriter
from centgate.web.index.page_index import PageIndex

BODY = (
    "It speaks at some length about one thing, so that the reader keeps the page, and it names the word {} "
    "more than once: {}. What follows says what else can be known of {}, when it was found, and by whom."
)
Change = Callable[[SmallSite], None]


@pytest.fixture
def site() -> Generator[SmallSite]:
    """Site with a front page that links to two others."""
    with serve_small_site() as standing:
        standing.respond(
            "/", build_article("kumquat", "/docs/lime", "/docs/pomelo", "https://elsewhere.example/x")
        )
        standing.respond("/docs/lime", build_article("lime"))
        standing.respond("/docs/pomelo", build_article("pomelo", "/docs/deep"))
        standing.respond("/docs/deep", build_article("yuzu"))
        yield standing


def build_article(word: str, *links: str, head: str = "") -> str:
    """Return a page about a word."""
    anchors = "".join(f'<p>See <a href="{link}">a page</a> for more of it.</p>' for link in links)
    text = BODY.format(word, word, word)
    return (
        f"<html lang=en><head><title>All about {word}</title>{head}</head><body><main><h1>The {word}</h1>"
        f"<p>{text}</p>{anchors}</main></body></html>"
    )


class Crawled:
    """An index of one site, and the crawler that fills it."""

    def __init__(self, folder: Path, site: IndexedSite, crawler: SiteCrawler, state: CrawlState) -> None:
        self.site, self.state, self._crawler = site, state, crawler
        self.index = PageIndex(folder)

    async def crawl(self, limit: int = 100) -> CrawlReport:
        """Crawl all pages that are due."""
        return await self._crawler.crawl_site(self.site, limit)

    async def crawl_all(self) -> CrawlReport:
        """Crawl all pages again."""
        self.state.make_due(self.site.url)
        return await self.crawl()

    def paths(self, query: str) -> list[str]:
        """Return the paths of the pages found."""
        return ["/" + each.page.url.split("/", 3)[3] for each in self.index.search(query, 50)]


@asynccontextmanager
async def open_crawl(
    page_reader: OpenReader, folder: Path, *sites: SmallSite, path: str = "/", pages: int = 100
) -> AsyncGenerator[Crawled]:
    """Open the crawl of a part of the first site; the others may be fetched as well."""
    async with page_reader(*sites) as (settings, resources):
        with closing(CrawlState(folder)) as state:
            writer = PageIndexWriter(folder)
            state.add_site(sites[0].url_of(path), pages)
            (listed,) = state.list_sites()
            crawler = SiteCrawler(
                PageReader(settings, resources),
                SiteMapper(settings, resources),
                resources.robots,
                state=state,
                writer=writer,
                pause=0.0,
            )
            yield Crawled(folder, listed, crawler, state)
            writer.close()


async def test_pages_are_found_by_links_and_sitemap(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    site.respond("/orphan", build_article("calamondin"))
    site.set_sitemap("/sitemap.xml", "/orphan", "https://elsewhere.example/y")

    async with open_crawl(page_reader, tmp_path, site) as crawled:
        report = await crawled.crawl()

        assert report.counts == {"indexed": 5}
        assert crawled.paths("yuzu") == ["/docs/deep"]
        assert crawled.paths("calamondin") == ["/orphan"]
        (found,) = crawled.index.search("lime", 1)
        assert (found.page.title, found.page.language) == ("All about lime", "en")
        assert (await crawled.crawl()).counts == {}


async def test_last_change_is_not_publication_date(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    changed = '<meta property="article:modified_time" content="2026-01-05T00:00:00Z">'
    published = '<meta property="article:published_time" content="2015-03-01T00:00:00Z">'
    site.respond("/docs/lime", build_article("lime", head=changed + published))
    site.respond("/docs/pomelo", build_article("pomelo", head=changed))

    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        (lime,), (pomelo,) = (crawled.index.search(word, 1) for word in ("lime", "pomelo"))

    assert (lime.page.published, pomelo.page.published) == ("2015-03-01T00:00:00Z", None)


async def test_crawl_is_limited_to_path_and_number_of_pages(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    site.respond("/docs/", build_article("citron", "/docs/lime", "/docs/pomelo", "/docs/deep", "/blog"))

    async with open_crawl(page_reader, tmp_path, site, path="/docs/", pages=3) as crawled:
        report = await crawled.crawl()

    assert report.counts.total() == 3
    assert not {"/", "/blog"} & set(site.requested_paths)


@pytest.mark.extended
@pytest.mark.parametrize("path", ["/docs/lime.html", "/docs/lime.htm"])
async def test_url_of_file_limits_crawl_to_its_folder(
    path: str, site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    site.respond(path, build_article("lime", "/docs/deep", "/blog"))
    site.respond("/blog", build_article("blog"))

    async with open_crawl(page_reader, tmp_path, site, path=path) as crawled:
        report = await crawled.crawl()

    assert report.counts == {"indexed": 2}
    assert "/blog" not in site.requested_paths


async def test_removed_pages_make_room_for_new_ones(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    old, new = ("/lemon", "/citron", "/yuzu"), ("/papeda", "/calamondin", "/sudachi")
    site.respond("/", build_article("kumquat"))
    for path in (*old, *new):
        site.respond(path, build_article(path[1:]))
    site.set_sitemap("/sitemap.xml", *old)
    async with open_crawl(page_reader, tmp_path, site, pages=4) as crawled:
        await crawled.crawl()
    for path in old:
        site.respond(path, "gone", status=410)
    site.set_sitemap("/sitemap.xml", *new)

    async with open_crawl(page_reader, tmp_path, site, pages=4) as crawled:
        assert (await crawled.crawl_all()).counts == {"indexed": 1, "gone": 3}
        assert (await crawled.crawl()).counts == {"indexed": 3}

        assert crawled.paths("papeda") == ["/papeda"]
        (status,) = crawled.state.list_statuses()
        assert status.counts == {"indexed": 4}


async def test_changed_robots_rules_remove_pages(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        site.set_robots("User-agent: *", "Disallow: /docs/deep")
        await crawled.crawl()
        assert (crawled.paths("yuzu"), crawled.paths("lime")) == ([], ["/docs/lime"])
        assert "/docs/deep" not in site.requested_paths

    site.set_robots("User-agent: *", "Disallow: /docs/lime")
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        report = await crawled.crawl()  # nothing is due, yet the page is removed

        assert report.counts == {"refused": 1}
        assert crawled.paths("lime") == []


async def test_removed_pages_are_not_counted_as_read(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        crawled.state.make_due(site.url_of("/"))

    site.set_robots("User-agent: *", "Disallow: /docs/lime")
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        report = await crawled.crawl(limit=2)

        assert report.counts.total() == 3
        assert report.counts["refused"] == 1


async def test_unreadable_robots_rules_keep_pages_for_while(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()

    site.respond("/robots.txt", "down", status=503)
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        for _ in range(MAX_FAILURES - 1):
            assert set((await crawled.crawl_all()).counts) == {"failed"}
            assert crawled.paths("lime") == ["/docs/lime"]
        await crawled.crawl_all()

        assert crawled.paths("lime") == []


async def test_unreadable_robots_rules_of_redirect_target_keep_page_for_while(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    with serve_small_site() as moved:
        async with open_crawl(page_reader, tmp_path, site, moved) as crawled:
            await crawled.crawl()
            site.respond("/docs/lime", "", status=302, Location=moved.url_of("/lime"))
            moved.respond("/robots.txt", "down", status=503)
            await crawled.crawl_all()

            assert crawled.paths("lime") == ["/docs/lime"]
            moved.respond("/robots.txt", "User-agent: *\nDisallow: /", "text/plain")
        async with open_crawl(page_reader, tmp_path, site, moved) as crawled:
            await crawled.crawl_all()

            assert crawled.paths("lime") == []


def remove_page(site: SmallSite) -> None:
    site.respond("/docs/lime", "gone", status=404)


def lead_to_other_part(site: SmallSite) -> None:
    site.respond("/docs/lime", "", status=301, Location="/docs/pomelo")


def refuse_index(site: SmallSite) -> None:
    site.respond("/docs/lime", build_article("lime", head='<meta name="robots" content="nofollow, NOINDEX">'))


def refuse_index_by_header(site: SmallSite) -> None:
    site.respond("/docs/lime", build_article("lime"))
    page = site.response_for("/docs/lime")
    page.headers["X-Robots-Tag"] = "noindex"


def empty_page(site: SmallSite) -> None:
    site.respond("/docs/lime", "<title>lime</title><p>lime</p>")


@pytest.mark.parametrize(
    "change", [remove_page, lead_to_other_part, refuse_index, refuse_index_by_header, empty_page]
)
async def test_unfindable_page_is_removed(
    change: Change, site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        assert crawled.paths("lime") == ["/docs/lime"]

        change(site)
        await crawled.crawl_all()

        assert crawled.paths("lime") == []
        assert crawled.paths("pomelo") == ["/docs/pomelo"]


async def test_redirect_off_site_is_not_indexed(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    with serve_small_site() as other:
        other.respond("/lime", build_article("tangelo"))
        site.respond("/docs/lime", "", status=302, Location=other.url_of("/lime"))
        async with open_crawl(page_reader, tmp_path, site, other) as crawled:
            await crawled.crawl()

            assert "/lime" in other.requested_paths
            assert crawled.paths("tangelo") == []


async def test_address_that_leads_to_another_site_is_told(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    with serve_small_site() as other:
        other.respond("/", build_article("pomelo", "/more"))
        site.respond("/", "", status=301, Location=other.url_of("/"))
        async with open_crawl(page_reader, tmp_path, site, other) as crawled:
            report = await crawled.crawl()

    assert not report.counts
    assert report.message == f"it names no page of its own, but {other.url_of('/')}: add that site instead"


@pytest.mark.extended
async def test_failing_page_is_removed_after_repeated_failures(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        site.respond("/docs/lime", "down", status=500)

        for _ in range(MAX_FAILURES - 1):
            await crawled.crawl_all()
            assert crawled.paths("lime") == ["/docs/lime"]
        await crawled.crawl_all()

        assert crawled.paths("lime") == []


async def test_unexpected_error_of_page_does_not_end_crawl(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fingerprint_hostile(text: str) -> int | None:
        if "lime" in text:
            raise ValueError("a text that nobody expected")
        return compute_fingerprint(text)

    monkeypatch.setattr(site_crawl, "compute_fingerprint", fingerprint_hostile)
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        report = await crawled.crawl()
        again = await crawled.crawl()

        assert report.counts == {"indexed": 3, "failed": 1}
        assert again.counts == {}
        assert crawled.paths("yuzu") == ["/docs/deep"]


TEXT_LIST = "{0}/docs/lime\n{0}/docs/pomelo\n"
FEED = "<rss><channel><title>The lime</title><item><link>{0}/docs/lime</link></item></channel></rss>"


@pytest.mark.extended
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (render_sitemap("{0}/docs/lime", "{0}/docs/pomelo"), XML),
        (render_sitemap("{0}/docs/lime", "{0}/docs/pomelo"), "text/html"),
        (TEXT_LIST, "text/plain"),
        (FEED, "application/rss+xml"),
    ],
    ids=["XML", "XML called HTML", "text", "feed"],
)
async def test_sitemap_is_read_but_not_indexed(
    body: str, kind: str, site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    site.respond("/maps/list.xml", body.replace("{0}", site.url), kind)

    async with open_crawl(page_reader, tmp_path, site, path="/maps/list.xml") as crawled:
        report = await crawled.crawl()

        assert report.counts["refused"] == 1
        assert crawled.paths("lime") == ["/docs/lime"]
        assert crawled.paths("docs lime") == ["/docs/lime"]


async def test_sitemaps_of_index_are_read(site: SmallSite, page_reader: OpenReader, tmp_path: Path) -> None:
    site.set_sitemap_index("/maps/all.xml", "/maps/a.xml", "/maps/b.xml")
    site.set_sitemap("/maps/a.xml", "/docs/lime")
    site.set_sitemap("/maps/b.xml", "/docs/deep")

    async with open_crawl(page_reader, tmp_path, site, path="/maps/all.xml") as crawled:
        report = await crawled.crawl()

    assert report.counts == {"indexed": 2, "refused": 1}


@pytest.mark.extended
async def test_crawl_reports_incomplete_site_map(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    site.set_robots("User-agent: *", "Allow: /", f"Sitemap: {site.url_of('/maps/all.xml')}")
    site.respond("/maps/all.xml", "down", "text/plain", status=500)

    async with open_crawl(page_reader, tmp_path, site) as crawled:
        report = await crawled.crawl()

    assert report.message is None
    assert any("/maps/all.xml was not read" in warning for warning in report.warnings), report.warnings


@pytest.mark.extended
async def test_spam_pages_are_limited_to_their_share(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    words = "lime pomelo yuzu kumquat " * 40_000
    links = [f"/trap/{n}" for n in range(250)]
    site.respond("/", build_article("kumquat", "/docs/lime", *links))
    site.respond("/trap/0", f"<title>{words}</title><h1>{words}</h1><p>{words}</p>")
    for number in range(1, 30):
        site.respond(f"/trap/{number}", build_article("grapefruit"))  # the same text repeatedly

    async with open_crawl(page_reader, tmp_path, site, pages=40) as crawled:
        await crawled.crawl(limit=60)

        assert crawled.paths("lime")[0] == "/docs/lime"
        assert len(crawled.paths("grapefruit")) == 1
        stored = [each.page for each in crawled.index.search("kumquat pomelo", 50)]
        assert all(len(page.title or "") <= 300 and len(page.text) <= 60_000 for page in stored)
    assert sum(path.startswith("/trap/") for path in site.requested_paths) < 40


async def test_near_duplicate_pages_count_once(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    text = " ".join(f"word{n} and sentence {n * n} of the manual" for n in range(120))
    for version in (1, 2):
        site.respond(
            f"/v{version}", f"<title>Manual</title><main><p>{text}</p><p>Version {version}</p></main>"
        )
    site.respond("/", build_article("kumquat", "/v1", "/v2"))

    async with open_crawl(page_reader, tmp_path, site) as crawled:
        report = await crawled.crawl()

    assert report.counts == {"indexed": 2, "duplicate": 1}


@pytest.mark.extended
async def test_copy_on_other_site_is_not_indexed(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    with serve_small_site() as copying:
        copying.respond("/", build_article("pomelo"))
        site.respond("/", build_article("pomelo"))
        async with open_crawl(page_reader, tmp_path, copying, site) as crawled:
            await crawled.crawl()
            crawled.state.add_site(site.url_of("/"), 1)
            crawled.site = IndexedSite(site.url_of("/"), 1)

            report = await crawled.crawl()

    assert report.counts == {"indexed": 1}


@pytest.mark.extended
async def test_crawl_killed_before_commit_is_repeated(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        crawled.state.make_due(crawled.site.url)
        (page, *_) = crawled.state.list_due(crawled.site.url, 10, time.time())
        crawled.state.record_reading(page, "indexed")
        assert page.key not in {
            each.key for each in crawled.state.list_due(crawled.site.url, 10, time.time())
        }

        crawled.state.forget_unsettled()

        assert page.key in {each.key for each in crawled.state.list_due(crawled.site.url, 10, time.time())}


@pytest.fixture
def always_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages that were read be due in the next crawl."""
    monkeypatch.setattr(crawl_state, "FIRST_INTERVAL", 0.0)


def build_versioned_site(site: SmallSite) -> None:
    """Have pages state a version: by a tag, by a date, and by both."""
    site.respond("/", build_article("kumquat", "/docs/lime", "/docs/pomelo"), ETag='"k1"')
    site.respond("/docs/lime", build_article("lime"))
    site.respond("/docs/pomelo", build_article("pomelo"), ETag='W/"p1"')
    for path in ("/docs/lime", "/docs/pomelo"):
        site.response_for(path).headers["Last-Modified"] = LAST_MODIFIED


LAST_MODIFIED = "Tue, 03 Nov 2026 10:00:00 GMT"


@pytest.mark.extended
@pytest.mark.usefixtures("always_due")
async def test_unchanged_pages_are_not_transferred_again(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    build_versioned_site(site)
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        assert (await crawled.crawl()).counts == {"indexed": 3}
        assert not site.conditions

        report = await crawled.crawl()

        assert report.counts == {"unchanged": 3}
        assert site.conditions == {
            "/": {"If-None-Match": '"k1"'},
            "/docs/lime": {"If-Modified-Since": LAST_MODIFIED},
            "/docs/pomelo": {"If-None-Match": 'W/"p1"', "If-Modified-Since": LAST_MODIFIED},
        }
        assert crawled.paths("lime") == ["/docs/lime"]
        (status,) = crawled.state.list_statuses()
        assert status.counts == {"indexed": 3}


@pytest.mark.usefixtures("always_due")
async def test_changed_page_is_read_again(site: SmallSite, page_reader: OpenReader, tmp_path: Path) -> None:
    build_versioned_site(site)
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        site.respond("/docs/pomelo", build_article("tangelo"), ETag='"p2"')

        assert (await crawled.crawl()).counts == {"unchanged": 2, "indexed": 1}
        assert crawled.paths("tangelo") == ["/docs/pomelo"]
        await crawled.crawl()

    assert site.conditions["/docs/pomelo"] == {"If-None-Match": '"p2"'}


@pytest.mark.usefixtures("always_due")
async def test_unchanged_page_that_refuses_index_is_removed(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    build_versioned_site(site)
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        site.response_for("/docs/pomelo").headers["X-Robots-Tag"] = "noindex"

        assert (await crawled.crawl()).counts == {"unchanged": 2, "refused": 1}
        assert crawled.paths("pomelo") == []


@pytest.mark.extended
@pytest.mark.usefixtures("always_due")
async def test_robots_and_pace_hold_for_unchanged_pages(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    build_versioned_site(site)
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
    site.set_robots("User-agent: *", "Crawl-delay: 0.3", "Disallow: /docs/lime")
    site.requested_paths.clear()

    async with open_crawl(page_reader, tmp_path, site) as crawled:
        started = time.monotonic()
        report = await crawled.crawl()

        assert report.counts == {"refused": 1, "unchanged": 2}
        assert time.monotonic() - started >= 0.6  # one pause before each page that is requested
        assert "/docs/lime" not in site.requested_paths
        assert crawled.paths("lime") == []


@pytest.mark.extended
@pytest.mark.usefixtures("always_due")
async def test_page_that_returns_is_found_though_its_linker_is_unchanged(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    build_versioned_site(site)
    site.respond("/", build_article("kumquat", "/docs/pomelo"), ETag='"k1"')
    site.respond("/docs/pomelo", build_article("pomelo", "/docs/deep"), ETag='"p1"')
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        site.respond("/docs/deep", "gone", status=404)
        assert (await crawled.crawl()).counts == {"unchanged": 2, "gone": 1}

        site.respond("/docs/deep", build_article("yuzu"))
        await crawled.crawl()

        assert crawled.paths("yuzu") == ["/docs/deep"]


@pytest.mark.usefixtures("always_due")
@pytest.mark.parametrize("loss", ["index lost", "killed before commit", "again", "more pages"])
async def test_pages_are_read_in_full_when_index_lacks_them(
    loss: str, site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    build_versioned_site(site)
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        if loss == "index lost":
            crawled.state.make_all_due()
        elif loss == "killed before commit":
            for page in crawled.state.list_due(crawled.site.url, 10, time.time()):
                crawled.state.record_reading(page, "indexed", validators=page.validators)
            crawled.state.forget_unsettled()
        elif loss == "again":
            crawled.state.make_due(crawled.site.url)
        else:
            crawled.state.add_site(crawled.site.url, 200)

        assert (await crawled.crawl()).counts == {"indexed": 3}
        assert not site.conditions


@pytest.mark.extended
@pytest.mark.usefixtures("always_due")
async def test_version_of_refreshing_page_is_not_that_of_its_target(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    site.respond("/", "<meta http-equiv=refresh content='0;url=/index/'>", ETag='"same"')
    site.respond("/index/", build_article("kumquat", "/docs/lime"))
    async with open_crawl(page_reader, tmp_path, site) as crawled:
        await crawled.crawl()
        await crawled.crawl()

    assert not site.conditions


async def test_crawl_of_unreachable_site_ends_early(
    site: SmallSite, page_reader: OpenReader, tmp_path: Path
) -> None:
    site.set_sitemap("/sitemap.xml", *(f"/missing/{n}" for n in range(50)))
    for number in range(50):
        site.respond(f"/missing/{number}", "down", status=500)

    async with open_crawl(page_reader, tmp_path, site) as crawled:
        report = await crawled.crawl()

    assert report.message == "10 pages in a row could not be read"


@pytest.mark.extended
async def test_crawl_delay_of_site_is_kept(site: SmallSite, page_reader: OpenReader, tmp_path: Path) -> None:
    site.set_robots("User-agent: *", "Crawl-delay: 0.4", "Disallow: /docs/pomelo")

    async with open_crawl(page_reader, tmp_path, site) as crawled:
        start = time.monotonic()
        report = await crawled.crawl()

    assert report.counts == {"indexed": 2, "refused": 1}
    assert time.monotonic() - start >= 0.8
