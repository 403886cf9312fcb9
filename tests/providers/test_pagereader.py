"""Built-in page reader, with a site on loopback."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings
from render_marks import needs_renderer
from small_site import open_page_resources

from centgate.errors import NoData, PageUnread, ProviderUnconfigured
from centgate.provider import RequestTrace
from centgate.providers import pagereader as pagereader_module
from centgate.providers.pagereader import PageReader
from centgate.sandbox import Sandbox
from centgate.settings import ProviderSettings
from centgate.web.extract import parts as extract_parts
from centgate.web.extract.parts import take_part
from centgate.web.results import UnreadPage, WebPage

STORY = (
    "<!doctype html><html lang=en><head><title>Story</title><link rel=canonical href=/canonical></head><body>"
    "<nav><a href=/>Home</a></nav><main><h1>Story</h1><p>Once there was a page that was read by a "
    "program, and it had "
    "enough text to be told from the menu above it.</p></main><footer>Imprint</footer></body></html>"
)


@dataclass
class Site:
    """Site with a set response for each path; `asked` has the requested paths with their user agents."""

    url: str = ""
    pages: dict[str, tuple[int, str, bytes]] = field(default_factory=dict[str, tuple[int, str, bytes]])
    requests: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    refresh: dict[str, str] = field(default_factory=dict[str, str])
    """`Refresh` header by path."""
    later_pages: dict[str, tuple[int, str, bytes]] = field(default_factory=dict[str, tuple[int, str, bytes]])
    """Responses of a path from its second request on."""

    def set_page(
        self, path: str, body: str | bytes, kind: str = "text/html; charset=utf-8", status: int = 200
    ) -> str:
        """Set the response of a path and return its URL."""
        self.pages[path] = (status, kind, body if isinstance(body, bytes) else body.encode())
        return self.url + path


@pytest.fixture
def site() -> Generator[Site]:
    """A site on a loopback port."""
    told = Site()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the server's own names
            pass

        def do_GET(self) -> None:
            told.requests.append((self.path, self.headers.get("User-Agent", "")))
            status, kind, body = told.pages.get(self.path, (404, "text/plain", b"no such page"))
            if self.path in told.later_pages:
                told.pages[self.path] = told.later_pages[self.path]
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body.decode())
                body = b""
            if refresh := told.refresh.get(self.path):
                self.send_header("Refresh", refresh)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield told
    server.shutdown()
    server.server_close()


Reader = Callable[..., AbstractAsyncContextManager[PageReader]]


@pytest.fixture
def open_reader(site: Site, readers: Sandbox, tmp_path: Path) -> Reader:
    """Function that opens a reader for the site: `open_reader(**settings)`."""
    port = int(site.url.rsplit(":", 1)[1])
    changes = {
        "fetch_ports": (port,),
        "fetch_allowed": (f"127.0.0.1:{port}",),
        "operator": "mailto:op@example.org",
        "providers": {"pagereader": ProviderSettings(timeout=30)},
    }

    @asynccontextmanager
    async def open_with_settings(**options: Any) -> AsyncGenerator[PageReader]:
        settings = build_settings(tmp_path, "http://127.0.0.1:9").model_copy(update={**changes, **options})
        async with open_page_resources(readers, settings) as resources:
            yield PageReader(settings, resources).bind(RequestTrace())

    return open_with_settings


def set_address(path: str) -> str:
    """Return the end of a script that shows another address of the page that it is on."""
    return f"history.replaceState(null, '', '{path}')</script>"


@pytest.mark.extended
async def test_page_is_read_with_metadata(site: Site, open_reader: Reader) -> None:
    url = site.set_page("/story", STORY)

    async with open_reader() as pagereader:
        page = await pagereader.read_page(url, only_main_content=True)

    assert page.markdown.startswith("# Story\n\nOnce there was")
    assert "Home" not in page.markdown
    assert page == WebPage(
        url=url,
        markdown=page.markdown,
        length=len(page.markdown),
        title="Story",
        language="en",
        canonical=f"{site.url}/canonical",
        status=200,
        content_type="text/html; charset=utf-8",
        final_url=url,
    )
    assert site.requests == [("/robots.txt", site.requests[1][1]), ("/story", site.requests[1][1])]
    assert site.requests[1][1].endswith("(+mailto:op@example.org)")


async def test_whole_page_is_read_on_request(site: Site, open_reader: Reader) -> None:
    url = site.set_page("/story", STORY)

    async with open_reader() as pagereader:
        page = await pagereader.read_page(url, only_main_content=False)

    assert f"[Home]({site.url}/)" in page.markdown
    assert page.markdown.endswith("Imprint")


async def test_redirecting_page_is_followed_once(site: Site, open_reader: Reader) -> None:
    refresh = "<meta http-equiv=refresh content='0; url={}'>"
    url = site.set_page("/old", refresh.format("/story"))
    site.set_page("/story", STORY)
    circle = site.set_page("/circle", refresh.format("/circle") + "<p>Wait.")

    async with open_reader() as pagereader:
        page = await pagereader.read_page(url, only_main_content=True)
        again = await pagereader.read_page(circle, only_main_content=True)

    assert page.markdown.startswith("# Story")
    assert page.final_url == f"{site.url}/story"
    assert again.markdown == "Wait."


@pytest.mark.extended
@pytest.mark.parametrize(
    ("refresh", "followed"),
    [
        ("0; url=/story", True),
        ("2;URL='/story'", True),
        ("30; url=/story", False),
        ("0; url=/old", False),
        ("5", False),
    ],
)
async def test_refresh_header_is_followed_like_element(
    refresh: str, *, followed: bool, site: Site, open_reader: Reader
) -> None:
    url = site.set_page("/old", "<p>You are being sent on.")
    site.refresh["/old"] = refresh
    site.set_page("/story", STORY)

    async with open_reader() as pagereader:
        page = await pagereader.read_page(url, only_main_content=True)

    assert page.markdown.startswith("# Story") == followed


def set_refreshes(site: Site, *paths: str) -> str:
    """Have each path refresh to the next one, by the element and the header in turn; return the first URL."""
    for number, (path, target) in enumerate(pairwise(paths)):
        site.set_page(path, f"<meta http-equiv=refresh content='0; url={target}'><p>Wait.")
        if number % 2:
            site.set_page(path, "<p>Wait.")
            site.refresh[path] = f"0; url={target}"
    return site.url + paths[0]


async def test_chain_of_refreshes_is_followed(site: Site, open_reader: Reader) -> None:
    url = set_refreshes(site, "/1", "/2", "/3", "/moved")
    site.set_page("/moved", "/story", status=302)
    site.set_page("/story", STORY)

    async with open_reader() as pagereader:
        page = await pagereader.read_page(url, only_main_content=True)

    assert page.markdown.startswith("# Story")
    assert page.final_url == f"{site.url}/story"


async def test_refreshes_and_redirects_share_one_limit(site: Site, open_reader: Reader) -> None:
    url = set_refreshes(site, "/1", "/2", "/3", "/4", "/5", "/moved")
    site.set_page("/moved", "/story", status=302)
    site.set_page("/story", STORY)

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match="redirects more than 5 times"):
            await pagereader.read_page(url, only_main_content=True)

    assert "/story" not in [path for path, _ in site.requests]


async def test_circle_of_refreshes_is_no_page(site: Site, open_reader: Reader) -> None:
    url = set_refreshes(site, "/1", "/2", "/3", "/2")

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match="leads back"):
            await pagereader.read_page(url, only_main_content=True)

    assert [path for path, _ in site.requests] == ["/robots.txt", "/1", "/2", "/3"]


@pytest.mark.extended
@pytest.mark.parametrize("target", ["http://169.254.169.254/latest", "http://[::ffff:7f00:1]/", "/secret"])
async def test_every_refresh_of_chain_is_checked(target: str, site: Site, open_reader: Reader) -> None:
    site.set_page("/robots.txt", "User-agent: *\nDisallow: /secret", "text/plain")
    url = set_refreshes(site, "/1", "/2", "/3", target)

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread) as unread:
            await pagereader.read_page(url, only_main_content=True)

    assert unread.value.reason == ("robots" if target == "/secret" else "blocked_address")


async def test_redirect_to_forbidden_page_of_same_site_is_not_read(site: Site, open_reader: Reader) -> None:
    site.set_page("/robots.txt", "User-agent: *\nDisallow: /secret", "text/plain")
    url = site.set_page("/old", "/secret", status=302)
    site.set_page("/secret", STORY)

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread) as unread:
            await pagereader.read_page(url, only_main_content=True)

    assert unread.value.reason == "robots"
    assert "/secret" not in [path for path, _ in site.requests]


async def test_part_of_page_is_not_read_as_page(site: Site, open_reader: Reader) -> None:
    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match="returned status 206 instead of the page"):
            await pagereader.read_page(site.set_page("/part", STORY, status=206), only_main_content=True)


async def test_menus_around_empty_application_are_unread(site: Site, open_reader: Reader) -> None:
    menu = "".join(f"<a href=/{n}>Entry number {n} of the menu</a>" for n in range(30))
    url = site.set_page("/app", f"<nav>{menu}</nav><div id=root></div><script src=/a.js></script>")

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match="has no text without its scripts"):
            await pagereader.read_page(url, only_main_content=True)


async def test_failure_of_browser_is_named(site: Site, open_reader: Reader) -> None:
    url = site.set_page("/app", "<div id=root></div><script src=/a.js></script>")

    async with open_reader(pagereader_render=True, pagereader_chromium=Path("/bin/false")) as pagereader:
        with pytest.raises(PageUnread) as unread:
            await pagereader.read_page(url, only_main_content=True)

    assert "has no text without its scripts, and a browser could not read it either: " in str(unread.value)


@needs_renderer
@pytest.mark.parametrize("target", ["/secret", "/missing"])
async def test_page_to_which_scripts_lead_is_checked(target: str, site: Site, open_reader: Reader) -> None:
    site.set_page("/robots.txt", "User-agent: *\nDisallow: /secret", "text/plain")
    site.set_page("/secret", "<p>" + "The text of a page that no robot may read. " * 20)
    site.set_page("/missing", "<p>There is no such page.", status=404)
    url = site.set_page("/old", f"<script>location.href = '{target}'</script>")

    async with open_reader(pagereader_render=True) as pagereader:
        with pytest.raises(PageUnread if target == "/secret" else NoData) as error:
            await pagereader.read_page(url, only_main_content=True)

    assert ("robots.txt" if target == "/secret" else "status 404") in str(error.value)


@needs_renderer
async def test_page_whose_script_names_disallowed_address_is_read(site: Site, open_reader: Reader) -> None:
    site.set_page("/robots.txt", "User-agent: *\nDisallow: /app/", "text/plain")
    url = site.set_page(
        "/", "<body><script>document.body.append('Text. '.repeat(90));" + set_address("/app/home")
    )

    async with open_reader(pagereader_render=True) as pagereader:
        page = await pagereader.read_page(url, only_main_content=True)

    assert page.markdown.startswith("Text. Text.")


@needs_renderer
async def test_disallowed_page_is_not_read_under_another_address(site: Site, open_reader: Reader) -> None:
    site.set_page("/robots.txt", "User-agent: *\nDisallow: /secret", "text/plain")
    site.set_page(
        "/secret", "<p>" + "A text that no robot may read. " * 20 + "<script>" + set_address("/public")
    )
    url = site.set_page("/old", "<script>location.href = '/secret'</script>")

    async with open_reader(pagereader_render=True) as pagereader:
        with pytest.raises(PageUnread) as unread:
            await pagereader.read_page(url, only_main_content=True)

    assert unread.value.reason == "robots"
    assert "the page's scripts lead to another, which was not read: robots.txt of" in str(unread.value)


@needs_renderer
async def test_error_that_only_the_browser_gets_is_no_page(site: Site, open_reader: Reader) -> None:
    url = site.set_page("/busy", "<script>count()</script>")
    site.later_pages["/busy"] = (503, "text/html", b"<p>The server is busy. Please come back later.")

    async with open_reader(pagereader_render=True) as pagereader:
        with pytest.raises(PageUnread) as unread:
            await pagereader.read_page(url, only_main_content=True)

    assert "returned status 503 instead of the page" in str(unread.value)


@pytest.mark.parametrize("onward", ["http://169.254.169.254/latest", "http://[::1]/", "/secret"])
async def test_forbidden_meta_refresh_is_not_followed(onward: str, site: Site, open_reader: Reader) -> None:
    site.set_page("/robots.txt", "User-agent: *\nDisallow: /secret", "text/plain")
    url = site.set_page("/old", f"<meta http-equiv=refresh content='0; url={onward}'>")

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread) as unread:
            await pagereader.read_page(url, only_main_content=True)

    assert unread.value.reason == ("robots" if onward == "/secret" else "blocked_address")


async def test_links_start_from_redirect_target(site: Site, open_reader: Reader) -> None:
    site.set_page("/old", "/new/place", status=302)
    site.set_page("/new/place", "<p>text and a <a href=here>link</a>")

    async with open_reader() as pagereader:
        page = await pagereader.read_page(f"{site.url}/old", only_main_content=True)

    assert (page.url, page.final_url) == (f"{site.url}/old", f"{site.url}/new/place")
    assert f"[link]({site.url}/new/here)" in page.markdown


@pytest.mark.parametrize("status", [404, 410])
async def test_missing_page_is_no_data(site: Site, open_reader: Reader, status: int) -> None:
    url = site.set_page("/gone", "<h1>Not found</h1>", status=status)

    async with open_reader() as pagereader:
        with pytest.raises(NoData, match=f"no page at this address: 127.0.0.1:.* {status}"):
            await pagereader.read_page(url, only_main_content=True)

        assert pagereader.trace.providers["pagereader"]["status"] == "no_data"


@pytest.mark.parametrize(
    ("status", "kind", "body", "reason", "said"),
    [
        (401, "text/html", "<p>login", "blocked", "refuses the page with status 401"),
        (403, "text/html", "<p>no", "blocked", "refuses the page with status 403"),
        (429, "text/html", "<p>slow", "blocked", "refuses the page with status 429"),
        (451, "text/html", "<p>law", "blocked", "refuses the page with status 451"),
        (503, "text/html", "<script>window._cf_chl_opt={}</script>", "blocked", "status 503"),
        (500, "text/html", "<p>oops", "failed", "returned status 500"),
        (503, "text/html", "<p>oops", "failed", "returned status 503"),
        (418, "text/html", "<p>tea", "failed", "returned status 418"),
        (
            200,
            "text/html",
            "<title>Just a moment...</title><script>_cf_chl_opt</script>",
            "blocked",
            "a bot check",
        ),
        (
            200,
            "text/html",
            "<div id=root></div><script src=a></script>",
            "failed",
            "no text without its scripts",
        ),
        (200, "text/html", "", "failed", "has no text"),
        (200, "text/html", "<img src=/1.png alt=''><img src=/2.png>", "failed", "has no text"),
        (
            200,
            "text/html",
            "<body><div id=app>Loading the shop</div><script src=a.js></script>",
            "failed",
            "no text without its scripts",
        ),
        (200, "image/png", "x", "unsupported", "image/png"),
        (200, "text/plain", "\0\1\2\3" * 100, "unsupported", "not text"),
        (200, "application/pdf", "%PDF-1.4\nbroken", "unsupported", "the PDF is broken"),
        (200, "text/plain", "x" * 6_000_000, "too_large", "127.0.0.1"),
    ],
)
async def test_unreadable_page_has_reason(
    site: Site, open_reader: Reader, status: int, kind: str, body: str, reason: str, said: str
) -> None:
    url = site.set_page("/page", body, kind, status)

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match=said) as failure:
            await pagereader.read_page(url, only_main_content=True)

    assert failure.value.reason == reason


async def test_robots_txt_is_obeyed_unless_disabled(site: Site, open_reader: Reader) -> None:
    url = site.set_page("/story", STORY)
    site.set_page("/robots.txt", "User-agent: *\nDisallow: /story", "text/plain")

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match=r"robots\.txt") as failure:
            await pagereader.read_page(url, only_main_content=True)
        assert [path for path, _ in site.requests] == ["/robots.txt"]
    async with open_reader(fetch_robots=False) as pagereader:
        page = await pagereader.read_page(url, only_main_content=True)

    assert failure.value.reason == "robots"
    assert page.title == "Story"


async def test_shell_with_some_text_gives_a_warning(site: Site, open_reader: Reader) -> None:
    url = site.set_page("/app", "<body><div id=app>Tea of all kinds</div><script src=a.js></script>")

    async with open_reader() as pagereader:
        page = await pagereader.read_page(url, only_main_content=True)

    assert page.markdown == "Tea of all kinds"
    assert page.warnings == (
        "the page is built by its scripts, and its HTML contains only 16 characters of text",
    )


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "http://169.254.169.254/latest/meta-data", "http://[::1]/"]
)
async def test_forbidden_urls_are_not_fetched(site: Site, open_reader: Reader, url: str) -> None:
    async with open_reader() as pagereader:
        with pytest.raises(PageUnread) as failure:
            await pagereader.read_page(url, only_main_content=True)

    assert failure.value.reason == "blocked_address"


async def test_pages_are_read_concurrently_and_fail_separately(site: Site, open_reader: Reader) -> None:
    urls = [
        site.set_page("/story", STORY),
        f"{site.url}/missing",
        site.set_page("/no", "", status=403),
        site.set_page("/data", '{"a": 1}', "application/json"),
        site.set_page(
            "/feed", "<rss version='2.0'><channel><title>Feed</title></channel></rss>", "application/rss+xml"
        ),
    ]

    async with open_reader() as pagereader:
        pages = await pagereader.page_contents(urls, 10_000)
        status = pagereader.trace.providers["pagereader"]["status"]

    assert [page.url for page in pages] == urls
    assert [page.reason if isinstance(page, UnreadPage) else page.markdown[:20] for page in pages] == [
        "# Story\n\nOnce there ",
        "not_found",
        "blocked",
        '```json\n{"a": 1}\n```',
        "# Feed",
    ]
    assert status == "ok"


async def test_unread_pages_tell_response_of_site(site: Site, open_reader: Reader) -> None:
    redirected = site.set_page("/old", "/gone", status=301)
    onward = site.set_page("/onward", "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>")
    urls = [redirected, site.set_page("/no", "", status=403), site.set_page("/empty", ""), onward]

    async with open_reader() as pagereader:
        pages = await pagereader.page_contents([*urls, "http://127.0.0.1:9/"], 10_000)

    assert [(page.status, page.final_url) for page in pages] == [
        (404, f"{site.url}/gone"),
        (403, f"{site.url}/no"),
        (200, f"{site.url}/empty"),
        (None, None),
        (None, None),
    ]


async def test_disabled_reader_is_not_called(site: Site, open_reader: Reader) -> None:
    off = {"pagereader": ProviderSettings(enabled=False)}

    async with open_reader(providers=off) as pagereader:
        with pytest.raises(ProviderUnconfigured):
            await pagereader.read_page(site.url, only_main_content=True)

    assert not site.requests


@pytest.mark.extended
async def test_long_page_is_divided_in_another_process(
    open_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    markdown = "\n".join(f"[page {number}](https://a.example/{number})" for number in range(2_000))
    page = WebPage("https://a.example/", markdown, len(markdown))

    async with open_reader() as pagereader:
        expected = take_part(page, 100, 5_000)
        monkeypatch.setattr(extract_parts, "_number_line", None)  # in this process alone
        part = await pagereader.take_part(page, 100, 5_000)

    assert part == expected
    assert part.next_offset


@pytest.mark.extended
async def test_page_with_slow_division_is_unread(
    open_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagereader_module, "CUT_SECONDS", 0.001)
    page = WebPage("https://a.example/", "[a](b " * 150_000, 900_000)

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match="could not be divided: it took more than"):
            await pagereader.take_part(page, 0, 5_000)


async def test_page_that_cannot_be_divided_is_unread(
    open_reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("a text that nobody expected")

    monkeypatch.setattr(pagereader_module, "take_part", refuse)

    async with open_reader() as pagereader:
        with pytest.raises(PageUnread, match=r"the page at a\.example could not be divided"):
            await pagereader.take_part(WebPage("https://a.example/", "text", 4), 0, 5_000)
