"""Rules of robots.txt, and behaviour if it cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import pytest
from small_site import OpenReader, SmallSite, serve_small_site

from centgate.resources import user_agent
from centgate.web.sitemap.robots import MAX_BYTES, MAX_SITEMAPS, Robots, is_allowed, parse_sitemap_lines

ORIGIN = "https://example.com"
ALL = b"User-agent: *\nDisallow: /\n"


@pytest.fixture
def site() -> Generator[SmallSite]:
    """Site without a robots.txt."""
    with serve_small_site() as standing:
        yield standing


class OpenRobots(Protocol):
    """Function that opens the robots cache for sites."""

    def __call__(self, *sites: SmallSite) -> AbstractAsyncContextManager[Robots]: ...


@pytest.fixture
def open_robots_cache(page_reader: OpenReader) -> OpenRobots:
    """Return a function that opens the robots cache for sites."""

    @asynccontextmanager
    async def open_robots(*sites: SmallSite) -> AsyncGenerator[Robots]:
        async with page_reader(*sites) as (settings, resources):
            yield Robots(resources.fetcher, resources.page_parsers, user_agent(settings))

    return open_robots


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("User-agent: *\nDisallow: /private", "/private/a", False),
        ("User-agent: *\nDisallow: /private", "/public", True),
        ("User-agent: *\nDisallow: /\nAllow: /open", "/open/a", True),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/a.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/a.pdfs", True),
        ("User-agent: centgate\nDisallow: /\n\nUser-agent: *\nAllow: /", "/a", False),
        ("User-agent: Centgate\nAllow: /\n\nUser-agent: *\nDisallow: /", "/a", True),
        ("User-agent: gate\nDisallow: /", "/a", True),
        ("User-agent: otherbot\nDisallow: /", "/a", True),
        ("\ufeffUser-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow: /caf\u00e9", "/caf%C3%A9", False),
        ("Disallow: /", "/a", True),
        ("<html>Disallow: /</html>", "/a", True),
        ("\0\ud800".encode("utf-8", "replace").decode(), "/a", True),
    ],
)
def test_rules_match_the_standard(rules: str, path: str, allowed: bool) -> None:  # noqa: FBT001
    assert is_allowed(rules.encode(), "Centgate", f"{ORIGIN}{path}") is allowed


def test_sitemap_lines_are_found_anywhere() -> None:
    lines = [
        "Sitemap: https://example.com/1.xml",
        "User-agent: *",
        "sitemap:https://other.example/2.xml",
        "Disallow: /",
        "SITEMAP: /3.xml",
        "Sitemap: https://example.com/1.xml",
        "Sitemap: ftp://example.com/4.xml",
        "Sitemap: file:///etc/passwd",
        "Sitemap: https://user:pw@example.com/5.xml",
        "Sitemap: http://[",
        "Sitemap:",
        f"Sitemap: https://example.com/{'x' * 3000}",
    ]

    assert parse_sitemap_lines("\n".join(lines).encode(), ORIGIN) == [
        "https://example.com/1.xml",
        "https://other.example/2.xml",
        "https://example.com/3.xml",
    ]


def test_sitemap_lines_are_limited() -> None:
    lines = "\n".join(f"Sitemap: https://example.com/{n}.xml" for n in range(5000))

    assert len(parse_sitemap_lines(lines.encode(), ORIGIN)) == MAX_SITEMAPS


@pytest.mark.extended
async def test_rules_apply_to_pages_of_the_site(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    site.set_robots("User-agent: Centgate", "Disallow: /private", f"Sitemap: {site.url}/map.xml")

    async with open_robots_cache(site) as robots:
        private, public = (
            await robots.can_fetch(site.url_of("/private/1")),
            await robots.can_fetch(site.url_of("/")),
        )
        sitemaps = await robots.list_sitemaps(site.url_of("/private/1"))

    assert (private, public) == (False, True)
    assert sitemaps == [site.url_of("/map.xml")]


@pytest.mark.extended
async def test_refusal_names_the_host(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    site.respond("/robots.txt", ALL)

    async with open_robots_cache(site) as robots:
        ban = await robots.disallow_reason(site.url_of("/a"))

    assert ban
    assert (ban.reason, ban.message) == ("robots", f"robots.txt of {site.address} does not allow it")


async def test_concurrent_requests_fetch_robots_txt_once(
    site: SmallSite, open_robots_cache: OpenRobots
) -> None:
    site.respond("/robots.txt", ALL)

    async with open_robots_cache(site) as robots:
        answers = await asyncio.gather(*(robots.can_fetch(site.url_of(f"/{n}")) for n in range(20)))
        await robots.list_sitemaps(site.url)

    assert answers == [False] * 20
    assert site.requested_paths == ["/robots.txt"]


async def test_cancelled_request_does_not_affect_others(
    site: SmallSite, open_robots_cache: OpenRobots
) -> None:
    site.respond("/robots.txt", ALL)
    site.silent_paths.add("/robots.txt")

    async with open_robots_cache(site) as robots:
        first = asyncio.create_task(robots.can_fetch(site.url_of("/a")))
        await asyncio.to_thread(site.silent_path_requested.wait, 10)
        second = asyncio.create_task(robots.can_fetch(site.url_of("/b")))
        site.silent_paths.clear()
        first.cancel()

        assert await second is False


async def test_sites_have_separate_rules(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    site.respond("/robots.txt", ALL)
    with serve_small_site() as other:
        async with open_robots_cache(site, other) as robots:
            here, there = (
                await robots.can_fetch(site.url_of("/a")),
                await robots.can_fetch(other.url_of("/a")),
            )

    assert (here, there) == (False, True)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429])
async def test_missing_file_allows_everything(
    status: int, site: SmallSite, open_robots_cache: OpenRobots
) -> None:
    site.respond("/robots.txt", ALL, status=status)

    async with open_robots_cache(site) as robots:
        assert await robots.can_fetch(site.url_of("/a"))


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_server_error_forbids_everything(
    status: int, site: SmallSite, open_robots_cache: OpenRobots
) -> None:
    site.respond("/robots.txt", b"", status=status)

    async with open_robots_cache(site) as robots:
        ban = await robots.disallow_reason(site.url_of("/a"))

    assert ban
    assert ban.reason == "robots"
    assert f"status {status}" in ban.message


async def test_timeout_forbids_everything_with_reason(
    site: SmallSite, open_robots_cache: OpenRobots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.robots.FETCH_SECONDS", 0.5)
    site.silent_paths.add("/robots.txt")

    async with open_robots_cache(site) as robots:
        ban = await robots.disallow_reason(site.url_of("/a"))
        sitemaps = await robots.list_sitemaps(site.url_of("/a"))

    assert ban
    assert ban.reason == "timeout"
    assert sitemaps == []


async def test_unreachable_site_is_not_reported_as_forbidden(open_robots_cache: OpenRobots) -> None:
    with serve_small_site() as gone:
        pass

    async with open_robots_cache(gone) as robots:
        assert await robots.can_fetch(gone.url_of("/a"))
        assert await robots.list_sitemaps(gone.url_of("/a")) == []


async def test_forbidden_address_is_left_to_the_fetch(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    async with open_robots_cache() as robots:
        assert await robots.can_fetch(site.url_of("/a"))

    assert site.requested_paths == []


async def test_redirect_is_followed(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    site.respond("/robots.txt", b"", status=301, Location="/rules.txt")
    site.respond("/rules.txt", ALL)

    async with open_robots_cache(site) as robots:
        assert not await robots.can_fetch(site.url_of("/a"))


async def test_only_beginning_of_long_file_is_used(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    filling = b"# filling\n" * (MAX_BYTES // 10)
    site.respond("/robots.txt", b"User-agent: *\nDisallow: /early\n" + filling + b"Disallow: /late\n")

    async with open_robots_cache(site) as robots:
        early, late = (
            await robots.can_fetch(site.url_of("/early")),
            await robots.can_fetch(site.url_of("/late")),
        )

    assert (early, late) == (False, True)


async def test_line_beyond_limit_is_no_rule(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    site.respond("/robots.txt", ALL + b"#" * 6_000_000)

    async with open_robots_cache(site) as robots:
        assert await robots.can_fetch(site.url_of("/a"))


async def test_too_slow_rules_forbid_everything(
    site: SmallSite, open_robots_cache: OpenRobots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.web.sitemap.robots.MATCH_SECONDS", 0.01)
    site.respond("/robots.txt", "".join(f"User-agent: *\nDisallow: /{n}*a*b*c*d*e$\n" for n in range(16_000)))

    async with open_robots_cache(site) as robots:
        first = await robots.disallow_reason(site.url_of("/a"))
        monkeypatch.setattr("centgate.web.sitemap.robots.MATCH_SECONDS", 30)
        again = await robots.disallow_reason(site.url_of("/b"))

    assert first
    assert first.reason == "robots"
    assert "could not be evaluated" in first.message
    assert first == again


@pytest.mark.extended
async def test_hostile_patterns_are_matched(site: SmallSite, open_robots_cache: OpenRobots) -> None:
    site.respond("/robots.txt", f"User-agent: *\nDisallow: /{'*a' * 200_000}$\n")

    async with open_robots_cache(site) as robots:
        assert await robots.can_fetch(site.url_of("/" + "a" * 1900 + "b"))
