"""`centgate index`: add, crawl, list and remove sites; errors in one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest
from embeddings import serve_embeddings
from small_site import SmallSite, serve_small_site
from typer.testing import CliRunner, Result

from centgate.cli.index import app
from centgate.settings import Settings
from centgate.web.index.crawl_state import CrawlState
from centgate.web.index.index_writer import PageIndexWriter
from centgate.web.index.page import IndexedPage
from centgate.web.index.page_index import PageIndex
from centgate.web.index.seeds import load_seeds
from centgate.web.index.vectors import PageVectors

Command = Callable[..., Result]
PAGE = (
    "<html lang=en><head><title>About {0}</title></head><body><main><h1>{0}</h1><p>This page is about {0}, "
    "and says at some length what a reader may want to know of {0} before the season of it ends.</p>"
    '<p>The <a href="{1}">next page</a> is about another fruit.</p></main></body></html>'
)


PUT = PageIndexWriter.put


@pytest.fixture
def site() -> Generator[SmallSite]:
    """Site of two pages."""
    with serve_small_site() as standing:
        standing.respond("/", PAGE.format("kumquat", "/pomelo"))
        standing.respond("/pomelo", PAGE.format("pomelo", "/"))
        yield standing


@pytest.fixture
def run(tmp_path: Path, site: SmallSite) -> Command:
    """Function that runs a command on an index of this test, which may fetch the site."""
    env = {
        "CENTGATE_SITEINDEX_FOLDER": str(tmp_path / "index"),
        "CENTGATE_FETCH_ALLOWED": site.address,
        "CENTGATE_FETCH_PORTS": site.address.rpartition(":")[2],
    }
    return lambda *arguments: CliRunner().invoke(app, list(arguments), env=env)


@pytest.mark.extended
def test_site_is_added_crawled_listed_and_removed(run: Command, site: SmallSite, tmp_path: Path) -> None:
    assert "new sites: 1 of 1" in run("add", site.url).output
    output = run("status").output
    assert "never" in output
    assert "no page can be found; read the sites with: centgate index crawl" in output
    crawled = run("crawl", "--pause", "0")
    assert "2 indexed" in crawled.output, crawled.output
    output = run("status").output
    assert "2 pages can be found" in output
    assert "today" in output
    index = PageIndex(tmp_path / "index")
    assert [match.page.title for match in index.search("pomelo", 1)] == ["About pomelo"]
    assert "sites removed: 1" in run("remove", site.url).output
    assert index.search("pomelo", 1) == []
    assert run("crawl").exit_code == 1


@pytest.mark.extended
def test_status_during_first_crawl_says_that_pages_are_not_saved(
    run: Command, site: SmallSite, tmp_path: Path
) -> None:
    run("add", site.url)
    with closing(CrawlState(tmp_path / "index")) as state:
        (added,) = state.list_sites()
        state.add_pages(added, [(added.url, None)])
        (page,) = state.list_due(added.url, 1, time.time())
        state.record_reading(page, "indexed", content_hash="0" * 64)

    assert "the pages that a crawl has read are not saved yet" in run("status").output


@pytest.mark.extended
def test_pages_get_vectors_from_operators_endpoint(
    run: Command, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_embeddings() as (url, asked):
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_URL", url)
        monkeypatch.setenv("CENTGATE_SITEINDEX_EMBEDDINGS_MODEL", "fruit-1")
        run("add", site.url)
        assert "vectors: 2 added, 2 in all" in run("crawl", "--pause", "0").output
        assert "vectors: 0 added, 2 in all" in run("crawl", "--pause", "0", "--again").output
        assert len(asked) == 1
        site.respond("/pomelo", PAGE.format("pomelo or shaddock", "/"))
        assert "vectors: 1 added, 2 in all" in run("crawl", "--pause", "0", "--again").output
    without_endpoint = run("crawl", "--pause", "0")
    assert "vectors: 0 added, 2 in all" in without_endpoint.output
    vectors = PageVectors(tmp_path / "index", "fruit-1")
    assert vectors.search([0.0, 1.0], 1)[0][1] > 0.9


def test_text_of_site_is_not_markup(run: Command, site: SmallSite) -> None:
    site.respond("/", "ripe", "text/[/b]")
    run("add", site.url)
    assert "text/[/b]" in run("crawl", "--pause", "0").output
    assert run("status").exit_code == 0


@pytest.mark.extended
def test_crawl_reports_incomplete_site_map(run: Command, site: SmallSite) -> None:
    site.set_robots("User-agent: *", "Allow: /", f"Sitemap: {site.url_of('/maps/all.xml')}")
    site.respond("/maps/all.xml", "down", "text/plain", status=500)
    run("add", site.url)
    assert "/maps/all.xml was not read" in run("crawl", "--pause", "0").output


def test_status_shows_whole_addresses(run: Command) -> None:
    url = "https://documentation.of-a-project.example/reference/manual/"
    run("add", url)

    output = run("status").output

    assert url in "".join(line.split("│")[1].strip() for line in output.splitlines() if "│" in line)


def test_nothing_is_fetched_before_crawl(run: Command, site: SmallSite) -> None:
    assert run("add", site.url).exit_code == 0
    assert site.requested_paths == []


def test_packaged_list_is_added_whole_or_by_group(run: Command) -> None:
    seeds = load_seeds()
    group = seeds.groups[0]
    members = [seed for seed in seeds.seeds if seed.group == group]
    assert f"new sites: {len(members)} of {len(members)};" in run("add", f"seeds:{group}").output
    assert (
        f"new sites: {len(seeds.seeds) - len(members)} of {len(seeds.seeds)};" in run("add", "seeds").output
    )


def test_url_file_is_added(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "sites.txt"
    file.write_text(
        "# documentation\nhttps://docs.example/\n\nhttps://docs.example/\nhttps://other.example/a/\n"
    )
    assert "new sites: 2 of 2" in run("add", str(file)).output


def test_url_file_may_have_comments_and_bom(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "sites.txt"
    file.write_bytes(
        b"\xef\xbb\xbfhttps://docs.example/  # manual\r\nhttps://other.example/a/#part\t#\r\n # end\r\n"
    )
    assert "new sites: 2 of 2" in run("add", str(file)).output
    output = run("status").output
    assert "https://docs.example/ " in output
    assert "https://other.example/a/ " in output
    assert "%" not in output


def test_note_beside_url_is_ignored(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "sites.txt"
    file.write_text("https://docs.example/ the documentation\n")
    result = run("add", str(file))
    assert result.exit_code == 2
    assert "is not an http or https address" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("add", "ftp://docs.example/"), 2, "is neither an address nor a file"),
        (("add", "/lists/missing.txt"), 2, "is neither an address nor a file"),
        (("add", "../missing.txt"), 2, "is neither an address nor a file"),
        (("add", "missing.txt"), 2, "is neither an address nor a file"),
        (("add", "seeds:unknown"), 2, "is no group of the list"),
        (("crawl",), 1, "there are no sites yet"),
        (("remove", "https://docs.example/"), 1, "there are no sites yet"),
    ],
)
def test_error_is_reported_in_one_line(
    run: Command, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_unknown_site_is_named(run: Command, site: SmallSite) -> None:
    run("add", site.url)
    assert "nowhere.example" in run("remove", "https://nowhere.example/").output


@pytest.mark.extended
def test_unwritable_index_is_reported_and_pages_read_again(
    run: Command, site: SmallSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", site.url)
    with monkeypatch.context() as full:
        full.setattr(PageIndexWriter, "put", remove_index)
        result = run("crawl", "--pause", "0")

    again = run("crawl", "--pause", "0")

    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "the index cannot be written: " in " ".join(result.output.split())
    assert "2 indexed" in again.output


def test_folder_that_cannot_be_written_is_named(run: Command, site: SmallSite, tmp_path: Path) -> None:
    run("add", site.url)
    PageIndex(tmp_path / "index").folder.write_text("")

    result = run("crawl", "--pause", "0")

    assert result.exit_code == 1
    assert f"{tmp_path / 'index'} cannot be written: " in result.output.replace("\n", "")


def test_other_error_of_crawl_is_no_error_of_folder(
    run: Command, site: SmallSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", site.url)
    monkeypatch.setattr(PageIndexWriter, "put", lose_connection)

    result = run("crawl", "--pause", "0")

    assert isinstance(result.exception, ConnectionResetError)
    assert "cannot be written" not in result.output


def lose_connection(_writer: PageIndexWriter, _page: IndexedPage) -> None:
    """Fail as a connection does."""
    raise ConnectionResetError


def remove_index(writer: PageIndexWriter, page: IndexedPage) -> None:
    """Add a page and move the folder away, so that the commit fails as on a full disk."""
    PUT(writer, page)
    folder = PageIndex(Settings().siteindex_folder).folder
    if folder.exists():
        folder.rename(folder.with_name("moved"))  # in one step, as the writer adds files meanwhile
