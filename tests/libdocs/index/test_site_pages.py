"""Documentation sites of packages on loopback, read by their llms.txt within limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings
from package_registry import PackageRegistry, make_tar, run_package_registry
from small_site import SmallSite, serve_small_site

from centgate.libdocs.index import site_pages
from centgate.libdocs.index.site_pages import (
    MAX_LINKS,
    MAX_PARTS,
    SitePage,
    find_page_links,
    select_documentation,
    split_site,
)
from centgate.libdocs.libraries import DocSnippet
from centgate.libdocs.registry.parsing import find_sites
from centgate.providers import packagedocs_indexer
from centgate.providers.packagedocs import PackageDocs
from centgate.resources import open_resources
from centgate.settings import ProviderSettings

TEXT = "text/plain; charset=utf-8"
README = {"README.md": "# quill\n\nPens for people who write letters to one another, and to themselves.\n"}
GUIDE = """# Dip a pen

The ink well is opened first, then the pen is dipped.

```python
well = quill.open_well()
quill.dip(well)
```
"""
PAGE = """<html><head><title>Dip a pen</title></head><body><nav><a href="/">Quill</a></nav><main>
<h1>Dip a pen</h1><p>The ink well is opened first, then the pen is dipped into the ink until it is wet.</p>
<pre><code class="language-python">well = quill.open_well()
quill.dip(well)</code></pre></main></body></html>
"""
SOURCED = GUIDE.replace("# Dip a pen", "# Dip a pen\nSource: SITE/guide/dip")
FULL = f"""# Quill documentation

Everything about pens and their inks, on one page for those that read everything at once.

{SOURCED}
# Sharpen a pen
Source: https://elsewhere.example/sharpen

```python
# Not a heading
quill.sharpen()
```
"""


@pytest.fixture
def registry() -> Generator[PackageRegistry]:
    with run_package_registry() as publishing:
        yield publishing


@pytest.fixture
def site() -> Generator[SmallSite]:
    with serve_small_site() as standing:
        yield standing


@asynccontextmanager
async def open_docs(
    registry: PackageRegistry, folder: Path, allowed: tuple[str, ...], **changes: Any
) -> AsyncGenerator[PackageDocs]:
    url = ProviderSettings(url=registry.url)
    settings = build_settings(
        folder,
        "http://127.0.0.1:9",
        providers={
            **{name: ProviderSettings(timeout=90) for name in ("packagedocs", "pagereader", "sitemapper")},
            "packagedocs_pypi": url,
            "packagedocs_npm": url,
        },
        fetch_allowed=allowed,
    )
    settings = settings.model_copy(update={"packagedocs_folder": folder / "docs", **changes})
    async with open_resources(settings) as resources:
        yield PackageDocs(settings, resources)


async def query_docs(
    registry: PackageRegistry, folder: Path, *allowed: str, library: str = "/pypi/quill", **changes: Any
) -> list[DocSnippet]:
    async with open_docs(registry, folder, allowed, **changes) as packagedocs:
        return await packagedocs.query_docs(library, "dip a pen into the ink well", 2_000)


def publish_package(registry: PackageRegistry, site: SmallSite) -> None:
    registry.publish_python("quill", "1.4.0", README, project_urls={"Documentation": f"{site.url}/docs/"})


async def test_pages_of_llms_txt_are_found(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path
) -> None:
    publish_package(registry, site)
    site.respond("/docs/llms.txt", "# Quill\n\n- [Dip](guide/dip.md): how\n- [More](/x.html)\n", TEXT)
    site.respond("/docs/guide/dip.md", GUIDE, TEXT)

    first, *_ = await query_docs(registry, tmp_path, site.address)

    assert (first.title, first.code) == ("Dip a pen", "well = quill.open_well()\nquill.dip(well)")
    assert (first.origin, first.source_url) == ("website", f"{site.url}/docs/guide/dip.md")
    assert (first.library, first.version, first.complete) == ("/pypi/quill", None, True)
    assert first.retrieved_at
    assert "/x.html" not in site.requested_paths


async def test_full_text_is_split_into_pages(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path
) -> None:
    registry.publish_javascript("quill", "2.0.0", README, homepage=f"{site.url}/")
    site.respond("/llms-full.txt", FULL.replace("SITE", site.url), TEXT)

    first, *_ = await query_docs(registry, tmp_path, site.address, library="/npm/quill")

    assert (first.title, first.source_url) == ("Dip a pen", f"{site.url}/guide/dip")


@pytest.mark.parametrize("name", ["llms-full.txt", "llms.txt"])
async def test_root_text_is_not_used_for_site_below_it(
    name: str, registry: PackageRegistry, site: SmallSite, tmp_path: Path
) -> None:
    publish_package(registry, site)
    site.respond(f"/{name}", f"{GUIDE}\n[Dip](/dip.md)\n", TEXT)
    site.respond("/dip.md", GUIDE, TEXT)

    snippets = await query_docs(registry, tmp_path, site.address)

    assert {(each.origin, each.version) for each in snippets} == {("package", "1.4.0")}


@pytest.mark.extended
async def test_site_named_by_start_page_is_found(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path
) -> None:
    registry.publish_python("quill", "1.4.0", README, home_page=f"{site.url}/docs/index.html")
    site.respond("/docs/llms-full.txt", GUIDE, TEXT)

    first, *_ = await query_docs(registry, tmp_path, site.address)

    assert (first.title, first.origin) == ("Dip a pen", "website")


@pytest.mark.extended
@pytest.mark.parametrize("case", ["robots", "policy", "switch", "html", "older"])
async def test_excluded_site_is_skipped(
    case: str, registry: PackageRegistry, site: SmallSite, tmp_path: Path
) -> None:
    publish_package(registry, site)
    site.respond("/docs/llms-full.txt", f"<html>{GUIDE}" if case == "html" else GUIDE, TEXT)
    if case == "robots":
        site.set_robots("User-agent: *", "Disallow: /")
    if case == "older":
        body = registry.publish_python("quill", "1.5.0", README, project_urls={"Docs": f"{site.url}/docs/"})
        body["releases"]["1.4.0"] = body["urls"]
        registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    snippets = await query_docs(
        registry,
        tmp_path,
        *(() if case == "policy" else (site.address,)),
        library="/pypi/quill/1.4.0",
        packagedocs_sites=case != "switch",
    )

    assert {each.origin for each in snippets} == {"package"}
    assert {"/docs/llms-full.txt"}.isdisjoint(site.requested_paths) or case == "html"


@pytest.mark.extended
async def test_redirect_to_page_that_robots_txt_forbids_is_not_followed(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path
) -> None:
    publish_package(registry, site)
    site.set_robots("User-agent: *", "Disallow: /private/")
    site.respond("/docs/llms-full.txt", "", TEXT, status=302, Location="/private/all.txt")
    site.respond("/private/all.txt", GUIDE, TEXT)

    snippets = await query_docs(registry, tmp_path, site.address)

    assert {each.origin for each in snippets} == {"package"}
    assert "/docs/llms-full.txt" in site.requested_paths
    assert "/private/all.txt" not in site.requested_paths


@pytest.mark.extended
async def test_invalid_home_page_is_ignored(registry: PackageRegistry, tmp_path: Path) -> None:
    registry.publish_python("quill", "1.4.0", README, home_page="https://quill.example:port/")

    snippets = await query_docs(registry, tmp_path)

    assert {each.origin for each in snippets} == {"package"}


def test_links_and_parts_are_limited() -> None:
    links = "[a](https://elsewhere.example/a.md)" * MAX_LINKS + "[b](b.md)"

    assert find_page_links(SitePage("https://quill.example/llms.txt", links)) == []
    text = "".join(f"# Nib {number}\n" for number in range(2 * MAX_PARTS))
    assert len(split_site([SitePage("https://quill.example/llms-full.txt", text)])) < MAX_PARTS


async def test_site_without_llms_txt_is_read_by_sitemap_and_links(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_pages, "SITE_SECONDS", 60.0)  # starts the parsers before the measured time
    publish_package(registry, site)
    site.set_sitemap("/sitemap.xml", "/docs/guide/dip", "/blog/news", "/docs/reference")
    site.respond("/docs/", "<title>Quill</title><p>Pens for all.</p><a href='/docs/links'>More</a>")
    site.respond("/docs/guide/dip", PAGE)
    site.respond("/docs/reference", PAGE.replace("Dip a pen", "Other things").replace("dip", "sharpen"))

    first, *_ = await query_docs(registry, tmp_path, site.address)

    assert (first.title, first.code) == ("Dip a pen", "well = quill.open_well()\nquill.dip(well)")
    assert (first.origin, first.source_url) == ("website", f"{site.url}/docs/guide/dip")
    assert {"/docs/links", "/docs/reference"} <= set(site.requested_paths)
    assert "/blog/news" not in site.requested_paths


async def test_site_that_did_not_answer_is_read_again(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(registry, site)
    monkeypatch.setattr(site_pages, "SITE_SECONDS", 0.5)
    site.silent_paths.add("/docs/llms-full.txt")
    async with open_docs(registry, tmp_path, (site.address,)) as packagedocs:
        first = await packagedocs.query_docs("/pypi/quill", "dip a pen", 2_000)
        site.silent_paths.clear()
        site.respond("/docs/llms-full.txt", GUIDE, TEXT)
        later = first
        async with asyncio.timeout(60):
            while later[0].origin != "website":
                later = await packagedocs.query_docs("/pypi/quill", "dip a pen", 2_000)
                await asyncio.sleep(0.05)
        warnings = packagedocs.trace.warnings

    assert {each.origin for each in first} == {"package"}
    assert "the documentation of quill is incomplete: its website could not be read" in warnings
    assert site.requested_paths.count("/docs/llms-full.txt") == 2


async def test_index_is_kept_while_site_does_not_answer(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(registry, site)
    site.respond("/docs/llms-full.txt", "busy", TEXT, status=503)
    async with open_docs(registry, tmp_path, (site.address,)) as packagedocs:
        first = await packagedocs.query_docs("/pypi/quill", None, 2_000)
        async with asyncio.timeout(60):
            while site.requested_paths.count("/docs/llms-full.txt") < 2:
                assert await packagedocs.query_docs("/pypi/quill", None, 2_000) == first
                await asyncio.sleep(0.05)
        for _ in range(20):
            assert await packagedocs.query_docs("/pypi/quill", None, 2_000) == first
            await asyncio.sleep(0.05)

    assert site.requested_paths.count("/docs/llms-full.txt") == 2


async def test_index_is_not_replaced_by_one_with_less(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(registry, site)
    for module, name in ((site_pages, "SITE_SECONDS"), (packagedocs_indexer, "LATER_SITE_SECONDS")):
        monkeypatch.setattr(module, name, 0.5)
    names = ("dip", "fill", "wipe")
    site.respond("/docs/llms.txt", "".join(f"- [Page]({site.url}/docs/{each}.md)\n" for each in names), TEXT)
    for each in names:
        site.respond(f"/docs/{each}.md", GUIDE.replace("dip", each).replace("Dip", each), TEXT)
    site.silent_paths.add("/docs/wipe.md")
    async with open_docs(registry, tmp_path, (site.address,)) as packagedocs:
        first = await packagedocs.query_docs("/pypi/quill", "fill a pen", 2_000)
        site.silent_paths.add("/docs/fill.md")
        assert await packagedocs.query_docs("/pypi/quill", "fill a pen", 2_000) == first
        for _ in range(40):
            assert await packagedocs.query_docs("/pypi/quill", "fill a pen", 2_000) == first
            await asyncio.sleep(0.05)

    assert site.requested_paths.count("/docs/fill.md") == 2
    assert "website" in {each.origin for each in first}


async def test_index_is_not_replaced_by_one_without_repository(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = {"Documentation": f"{site.url}/docs/", "Source": "https://github.com/ink/quill"}
    registry.publish_python("quill", "1.4.0", README, project_urls=links)
    archive = make_tar({"quill-1.4.0/docs/dip.md": GUIDE})
    tag = "/ink/quill/archive/refs/tags/v1.4.0.tar.gz"
    site.respond(tag, archive, "application/gzip")
    monkeypatch.setattr(site_pages, "SITE_SECONDS", 0.5)
    site.silent_paths.add("/docs/llms-full.txt")
    packages = ProviderSettings(url=registry.url)
    providers = {"packagedocs_pypi": packages, "packagedocs_github": ProviderSettings(url=site.url)}
    async with open_docs(registry, tmp_path, (site.address,), providers=providers) as packagedocs:
        first = await packagedocs.query_docs("/pypi/quill", "dip a pen", 2_000)
        site.silent_paths.clear()
        site.respond(tag, "busy", TEXT, status=503)
        site.respond("/docs/llms-full.txt", GUIDE.replace("Dip", "Fill"), TEXT)
        for _ in range(20):
            assert await packagedocs.query_docs("/pypi/quill", "dip a pen", 2_000) == first
            await asyncio.sleep(0.05)

    assert "repository" in {each.origin for each in first}
    assert site.requested_paths.count(tag) == 2


async def test_index_deleted_while_site_is_read_again_is_built(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(registry, site)
    monkeypatch.setattr(site_pages, "SITE_SECONDS", 0.5)
    monkeypatch.setattr(packagedocs_indexer, "LATER_SITE_SECONDS", 1.0)
    site.silent_paths |= {"/docs/llms-full.txt", "/docs/llms.txt"}
    async with open_docs(registry, tmp_path, (site.address,)) as packagedocs:
        await packagedocs.query_docs("/pypi/quill", None, 2_000)
        first = await packagedocs.query_docs("/pypi/quill", None, 2_000)
        (index,) = (tmp_path / "docs").rglob("*.db")
        index.unlink()
        later = await packagedocs.query_docs("/pypi/quill", None, 2_000)

    assert [each.text for each in later] == [each.text for each in first]
    assert site.requested_paths.count("/docs/llms-full.txt") == 2


async def test_site_is_not_read_again_for_older_release(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(registry, site)
    monkeypatch.setattr(site_pages, "SITE_SECONDS", 0.5)
    site.silent_paths.add("/docs/wipe.md")
    site.respond("/docs/llms.txt", f"[Dip]({site.url}/docs/dip.md) [Wipe]({site.url}/docs/wipe.md)", TEXT)
    site.respond("/docs/dip.md", GUIDE, TEXT)
    async with open_docs(registry, tmp_path, (site.address,)) as packagedocs:
        first = await packagedocs.query_docs("/pypi/quill", "dip a pen", 2_000)
    older = json.loads(registry.bodies["/pypi/quill/json"])
    body = registry.publish_python("quill", "2.0.0", README)
    body["releases"] |= {"1.4.0": older["urls"]}
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()
    async with open_docs(registry, tmp_path, (site.address,)) as packagedocs:
        for _ in range(20):
            assert await packagedocs.query_docs("/pypi/quill@1", "dip a pen", 2_000) == first
            await asyncio.sleep(0.05)

    assert "website" in {each.origin for each in first}


@pytest.mark.extended
async def test_crawl_delay_of_site_is_kept(
    registry: PackageRegistry, site: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(registry, site)
    monkeypatch.setattr(site_pages, "SITE_SECONDS", 3.0)
    site.set_robots("User-agent: *", "Crawl-delay: 30", f"Sitemap: {site.url}/sitemap.xml")
    site.set_sitemap("/sitemap.xml", "/docs/guide/dip", "/docs/reference")
    for path in ("/docs/", "/docs/guide/dip", "/docs/reference"):
        site.respond(path, PAGE)

    await query_docs(registry, tmp_path, site.address)

    assert len({"/docs/guide/dip", "/docs/reference"} & set(site.requested_paths)) <= 1


def test_documentation_is_selected_before_other_pages() -> None:
    site = "https://quill.example"
    found = select_documentation(
        f"{site}{path}" for path in ("/", "/pricing", "/en/1.2/old", "/guides/dip", "/blog/2026/x", "/start")
    )

    assert found == [f"{site}/guides/dip", f"{site}/", f"{site}/start"]
    assert select_documentation([f"{site}/en/1.2/dip"]) == [f"{site}/en/1.2/dip"]


def test_links_lead_to_pages_of_same_host() -> None:
    contents = SitePage(
        "https://quill.example/docs/llms.txt",
        "[0](http://[a.md) [a](a.md) [b](/b.md#part) [c](https://other.example/c.md) [d](d.html)\n"
        "[e](javascript:x.md)\n"
        "## Optional\n[f](f.md)",
    )

    assert find_page_links(contents) == ["https://quill.example/docs/a.md", "https://quill.example/b.md"]


def test_parts_of_full_text_have_their_own_urls() -> None:
    site = "https://quill.example"

    documents = split_site([SitePage(f"{site}/llms-full.txt", FULL.replace("SITE", site))])

    assert [(each.path, each.source_url) for each in documents] == [
        ("@site/quill-documentation.md", f"{site}/llms-full.txt"),
        ("@site/guide/dip.md", f"{site}/guide/dip"),
        ("@site/sharpen-a-pen.md", f"{site}/llms-full.txt"),
    ]
    assert "# Not a heading" in documents[2].text


def test_pages_of_one_title_are_all_kept() -> None:
    site = "https://quill.example"
    pages = [
        SitePage(f"{site}/pens.md", "# Overview\n\nPens of goose feathers.\n"),
        SitePage(f"{site}/ink.md", "# Overview\n\nInk of oak galls.\n"),
        SitePage(f"{site}/ink/index.md", "# Overview\n\nInk of oak galls.\n"),
    ]

    documents = split_site(pages)

    assert [(each.path, each.source_url) for each in documents] == [
        ("@site/overview.md", f"{site}/pens.md"),
        ("@site/overview-2.md", f"{site}/ink.md"),
    ]


def test_numbered_path_of_page_is_no_other_title() -> None:
    titles = ["Overview", "Overview", "Overview 2", "Overview 2", "Overview"]
    pages = [SitePage(f"https://quill.example/{n}", f"# {each}\n\n{n}\n") for n, each in enumerate(titles)]

    paths = [each.path for each in split_site(pages)]

    assert len(set(paths)) == len(titles)


def test_part_without_url_has_url_of_its_site() -> None:
    url = "https://quill.example/llms-full.txt"

    (document,) = split_site([SitePage(url, "# Dip\nSource: http://[dip\n")])

    assert document.source_url == url


def test_hosts_of_many_projects_are_excluded() -> None:
    links = ["https://github.com/a/b", "https://Quill.example/?a#b", None, "javascript:1", "http://[", 7]

    assert find_sites(links) == ("https://quill.example/",)
