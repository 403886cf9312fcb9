"""Libraries and their documentation, read from package registries."""

from __future__ import annotations

import asyncio
import json
import random
import re
import tracemalloc
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings
from msgspec.structs import replace
from package_registry import PackageRegistry, make_zip, run_package_registry

from centgate.cli.settings_docs import render_env_example, render_markdown
from centgate.errors import NoData, ProviderError, ProviderRateLimited, ProviderTimeout
from centgate.libdocs.index import downloads
from centgate.libdocs.index.store import MAX_BUILDS
from centgate.libdocs.libraries import DocSnippet
from centgate.libdocs.registry import client
from centgate.provider import RequestTrace
from centgate.providers.packagedocs import PackageDocs
from centgate.providers.packagedocs_indexer import BUILD_RETRY_AFTER
from centgate.resources import open_resources
from centgate.settings import ProviderSettings, Settings, find_unknown_variables

PEN = '''"""Pens."""

def dip(pen: str, ink: str = "black") -> bool:
    """Dip a pen into ink.

    Returns whether the pen is wet.
    """
    return True
'''
README = """# Quill

Pens for people who write letters.

```python
import quill
quill.dip('goose')
```
"""
INKWELLS = """Inkwells
========

An inkwell is opened before a pen is dipped.

.. code-block:: python

    inkwell = quill.Inkwell()
"""
RUST = """//! Pens.

/// A pen that writes.
pub struct Pen {}

impl Pen {
    /// Dips the pen into ink.
    ///
    /// ```no_run
    /// # use quill::Pen;
    /// Pen::new().dip(&ink);
    /// ```
    #[inline]
    pub fn dip(&self, ink: &Ink) -> bool {
        true
    }
}
"""
GO = """// Package quill has pens.
package quill

// Dip dips the pen into ink.
func (p *Pen) Dip(ink Ink) (bool, error) {
	return true, nil
}
"""
GO_TEST = """package quill_test

func ExamplePen_Dip() {
	pen := quill.New()
	fmt.Println(pen.Dip("red"))
	// Output: true
}
"""
QUILL = {"README.md": README, "docs/inkwells.rst": INKWELLS, "quill/__init__.py": PEN}


TYPED = {
    "README.md": "# quill\n\nPens for browsers.\n\n```js\ndip()\n```\n",
    "index.d.ts": "/** Dips a pen into ink. */\nexport function dip(pen: string): boolean;\n",
}
Open = Callable[..., AbstractAsyncContextManager[PackageDocs]]


MAY_BE_JAVASCRIPT = (
    "a better known library of that name for JavaScript would not be found, so all scores are halved"
)


def build_readme(sentence: str) -> dict[str, str]:
    """Return a package whose documentation is one sentence."""
    return {"README.md": f"# Quill\n\n{sentence} That is all there is to be said of it here, and no more.\n"}


@pytest.fixture
def registry() -> Generator[PackageRegistry]:
    """One registry for all languages."""
    with run_package_registry() as publishing:
        yield publishing


@pytest.fixture
def open_docs(registry: PackageRegistry, tmp_path: Path) -> Open:
    """Function that opens the provider with settings: `open_docs(**settings)`."""

    @asynccontextmanager
    async def open_provider_with(
        providers: dict[str, ProviderSettings] | None = None, **options: Any
    ) -> AsyncGenerator[PackageDocs]:
        url = ProviderSettings(url=registry.url)
        all_providers = {
            "packagedocs_pypi": url,
            "packagedocs_npm": url,
            "packagedocs_crates": url,
            "packagedocs_go": url,
            "packagedocs_gosums": url,
            "packagedocs": ProviderSettings(**options),
            **(providers or {}),
        }
        settings = build_settings(tmp_path, "http://127.0.0.1:9", providers=all_providers)
        settings = settings.model_copy(update={"packagedocs_folder": tmp_path / "docs"})
        async with open_resources(settings) as resources:
            yield PackageDocs(settings, resources)

    return open_provider_with


async def test_name_is_resolved_in_all_registries(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("Quill", "1.4.0", QUILL, releases=200)
    registry.publish_javascript("quill", "0.0.2", TYPED, releases=2)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries("quill")

    assert [(each.id, each.title, each.version) for each in found] == [
        ("/pypi/quill", "Quill", "1.4.0"),
        ("/npm/quill", "quill", "0.0.2"),
    ]
    assert found[0].description == "What Quill is for."
    assert [each.snippet_count for each in found] == [None, None]
    assert found[0].score
    assert found[1].score
    assert 1 >= found[0].score > found[1].score > 0
    assert packagedocs.trace.warnings == [
        "the number of snippets of /pypi/quill is not known yet: its documentation is being read",
        "the number of snippets of /npm/quill is known once the documentation was queried",
    ]


async def test_resolved_name_is_cached(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs, asyncio.timeout(120):
        (found,) = await packagedocs.find_libraries("quill")
        while found.snippet_count is None:
            await asyncio.sleep(0.05)
            (found,) = await packagedocs.find_libraries("quill")

    assert found.snippet_count >= 3
    assert registry.count_requests(".tar.gz") == 1


@pytest.mark.parametrize("name", ["sidekiq", "https://rubygems.org/gems/quill"])
async def test_library_of_other_ecosystem_is_not_its_namesake(
    name: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("sidekiq", "1.0.0", TYPED)

    async with open_docs() as packagedocs:
        with pytest.raises(
            NoData, match=r"is a library of Ruby: only PyPI, npm, crates\.io and Go modules are"
        ):
            await packagedocs.find_libraries(name)
        (found,) = await packagedocs.find_libraries("/npm/sidekiq")

    assert found.id == "/npm/sidekiq"


@pytest.mark.parametrize(
    ("name", "ecosystem"),
    [
        *(("nokogiri", "Ruby"), ("rails 7", "Ruby"), ("quill gem", "Ruby"), ("Ruby quill", "Ruby")),
        *(("guzzle", "PHP"), ("laravel 11", "PHP"), ("quill php", "PHP")),
        *(("spring", "Java"), ("Spring-Boot 3.2", "Java"), ("okhttp", "Java"), ("quill maven", "Java")),
        *(("serilog", ".NET"), ("quill nuget", ".NET"), ("alamofire", "Swift"), ("quill swift", "Swift")),
    ],
)
async def test_word_or_known_name_selects_ecosystem(name: str, ecosystem: str, open_docs: Open) -> None:
    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match=f"is a library of {re.escape(ecosystem)}: only PyPI"):
            await packagedocs.find_libraries(name)


@pytest.mark.parametrize(
    ("name", "version", "in_id"),
    [
        *(("quill@1", "1", "1"), ("quill@^1.2", "^1.2", "1"), ("quill==1.4.0", "==1.4.0", "1.4.0")),
        *(("quill@^0.2.3", "^0.2.3", "0.2"), ("quill@^0.0.3", "^0.0.3", "0.0.3"), ("quill@^0", "^0", "0")),
        *(("quill@~1.4.2", "~1.4.2", "1.4"), ("quill@~1", "~1", "1"), ("quill~=1.4.2", "~=1.4.2", "1.4")),
        *(("quill@^1.x", "^1.x", "1"), ("quill@^2.5.0", "^2.5.0", "2"), ("quill@~>1.4", "~>1.4", "1.4")),
        *(
            ("quill ~= 1.4", "~= 1.4", "1"),
            ("quill[ink]==1.4", "==1.4", "1.4"),
            ("quill 1.4", "1.4", "1.4"),
        ),
        *(("Quill v1", "v1", "1"), ("/npm/quill@1.4.0", "1.4.0", "1.4.0"), ("quill>=1,<2", ">=1,<2", None)),
        *(("quill<2; python_version < '3.9'", "<2", None), ("quill >=1 <2", ">=1 <2", None)),
        *(("quill@>=1 <2", ">=1 <2", None), ("quill@beta", "beta", None)),
        *(("quill@1.x", "1.x", "1"), ("quill@1.4.x", "1.4.x", "1.4")),
    ],
)
async def test_version_beside_name_is_no_part_of_it(
    name: str, version: str, in_id: str | None, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("quill", "2.1.0", TYPED)

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries(name)
        warnings = packagedocs.trace.warnings

    assert found.id == "/npm/quill"
    assert (
        f"the version {version!r} was not looked up, only the newest one is listed: "
        f"libdocs-query-docs reads another one by its id, such as /npm/quill@{in_id or '<version>'}"
    ) in warnings


@pytest.mark.parametrize(
    "name",
    [
        "quill@2",
        "quill@latest",
        "quill==2.1.0",
        "quill>=1.4",
        "quill[ink]",
        "quill 2",
        "quill 2.x",
        "quill@^2.0.3",
        "quill@~2.1",
        "quill~=2.0",
        "quill@*",
        "quill!=2.0",
    ],
)
async def test_version_of_newest_release_causes_no_warning(
    name: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("quill", "2.1.0", TYPED)

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries(name)
        warnings = packagedocs.trace.warnings

    assert found.id == "/npm/quill"
    assert not [each for each in warnings if "was not looked up" in each or "similar names" in each]


async def test_number_in_name_is_no_version(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("quill-2", "1.0.0", TYPED)

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("quill 2")
        warnings = packagedocs.trace.warnings

    assert found.id == "/npm/quill-2"
    assert not [each for each in warnings if "was not looked up" in each]


@pytest.mark.parametrize(
    "name", ["quill rust", "rust quill", "quill crate", "cargo quill", "quill for rust 1.2"]
)
async def test_word_selects_crates(name: str, registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("quill", "1.0.0", TYPED)
    registry.publish_rust("quill", "1.2.0", {"src/lib.rs": RUST})

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries(name)

    assert found.id == "/crates/quill"


async def test_unknown_crate_is_no_data_with_hint(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("quill", "1.0.0", TYPED)

    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match=r"no crate known as 'quill rust'; send its name on crates\.io"):
            await packagedocs.find_libraries("quill rust")


@pytest.mark.parametrize(
    ("releases", "downloads", "expected"),
    [
        (2, 5_000_000, ["/crates/quill", "/npm/quill"]),
        (200, 5_000_000, ["/npm/quill", "/crates/quill"]),
        (200, 900, ["/npm/quill"]),
    ],
    ids=["above a namesake", "beside a library", "little used"],
)
async def test_crate_of_name_is_among_libraries(
    releases: int, downloads: int, expected: list[str], registry: PackageRegistry, open_docs: Open
) -> None:
    repository = "https://github.com/quill/quill"
    registry.publish_javascript("quill", "1.0.0", TYPED, releases=releases, repository=repository)
    for number in range(120):
        registry.publish_rust(
            "quill",
            f"1.{number}.0",
            {"src/lib.rs": RUST},
            downloads=downloads,
            repository=repository,
        )

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries("quill")

    assert [each.id for each in found] == expected
    assert not any("was searched in" in each for each in packagedocs.trace.warnings)


@pytest.mark.parametrize(
    ("hanging", "searched"),
    [(None, "PyPI, npm and crates.io"), ("/api/v1/crates/quill", "PyPI and npm")],
)
async def test_namesake_is_returned_with_searched_ecosystems(
    hanging: str | None,
    searched: str,
    registry: PackageRegistry,
    open_docs: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "NAMESAKE_SECONDS", 0.2)
    registry.publish_javascript("quill", "1.0.0", TYPED, releases=2, repository=None, description=None)
    registry.hanging = hanging

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("quill")

    assert found.id == "/npm/quill"
    assert packagedocs.trace.warnings[0] == (
        f"'quill' was searched in {searched} alone: a better known library of that name in "
        "another ecosystem, such as Go, Ruby, PHP, Java, .NET or Swift, would not be found"
    )


@pytest.mark.parametrize(
    "name", ["tokio", "/crates/tokio", "https://docs.rs/tokio/latest/tokio/", "tokio 1.2"]
)
async def test_crate_is_read_instead_of_namesake(
    name: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("tokio", "1.0.0", TYPED)
    registry.publish_rust("tokio", "1.2.0", {"README.md": README, "src/lib.rs": RUST})

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries(name)
        first, *_ = await packagedocs.query_docs(found.id, "dip a pen", 2_000)

    assert (found.id, found.version) == ("/crates/tokio", "1.2.0")
    assert (first.title, first.language) == ("Pen::dip", "rust")
    assert first.code == "pub fn dip(&self, ink: &Ink) -> bool\n\nPen::new().dip(&ink);"
    assert (first.library, first.complete) == ("/crates/tokio", None)


@pytest.mark.parametrize(
    "name",
    [
        *("gorm", "gorm golang", "gorm 1.25", "/go/gorm.io~gorm", "/go/gorm.io~gorm@v1.2.0"),
        *("https://pkg.go.dev/gorm.io/gorm", "pkg.go.dev/gorm.io/gorm/schema@v1.2.0#Field", "gorm.io/gorm"),
    ],
)
@pytest.mark.extended
async def test_go_module_is_read_instead_of_namesake(
    name: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("gorm", "1.0.0", TYPED)
    registry.publish_go("gorm.io/gorm", "v1.2.0", {"README.md": README, "pen.go": GO, "pen_test.go": GO_TEST})

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries(name)
        snippets = await packagedocs.query_docs(found.id, "dip a pen", 2_000)

    assert (found.id, found.version) == ("/go/gorm.io~gorm", "v1.2.0")
    by_title = {each.title: each for each in snippets}
    assert by_title["quill.Pen.Dip"].code == "func (p *Pen) Dip(ink Ink) (bool, error)"
    assert (
        by_title["quill.Pen.Dip (example)"].code
        == 'pen := quill.New()\nfmt.Println(pen.Dip("red"))\n// Output: true'
    )
    assert {each.library for each in snippets} == {"/go/gorm.io~gorm"}


@pytest.mark.parametrize("name", ["quill golang", "https://pkg.go.dev/net/http"])
async def test_unknown_go_module_is_no_data_with_hint(
    name: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("quill", "1.0.0", TYPED)

    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match=r"no module of Go known as .*; send its path"):
            await packagedocs.find_libraries(name)


@pytest.mark.extended
async def test_go_module_with_wrong_checksum_is_failure(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_go("gorm.io/gorm", "v1.2.0", {"pen.go": GO})
    registry.bodies["/gorm.io/gorm/@v/v1.2.0.zip"] = make_zip({"gorm.io/gorm@v1.2.0/pen.go": GO + "//"})

    async with open_docs() as packagedocs:
        with pytest.raises(ProviderError, match="its digest differs from the published one"):
            await packagedocs.query_docs("/go/gorm.io~gorm", "dip a pen", 2_000)


@pytest.mark.extended
async def test_hanging_registry_is_skipped(
    registry: PackageRegistry, open_docs: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.publish_python("quill", "1.0", QUILL)
    monkeypatch.setattr(client, "RESOLVE_SECONDS", 0.3)
    registry.hanging = "/quill/latest"

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("quill")

    assert found.id == "/pypi/quill"
    assert packagedocs.trace.warnings[0] == f"npm did not answer within 0.3 s: {MAY_BE_JAVASCRIPT}"


async def test_placeholder_follows_library_of_other_registry(
    registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python("react", "0.0.1", None, releases=1, summary="Reserved package name.")
    registry.publish_javascript("react", "19.3.1", TYPED, releases=90)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries("react")

    assert found[0].id == "/npm/react"


@pytest.mark.parametrize("name", ["next.js", "NextJS", "Next JS", "vercel/next.js"])
async def test_nickname_precedes_namesake(name: str, registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("next", "16.0.0", TYPED, releases=90)
    registry.publish_javascript("nextjs", "0.0.3", TYPED, releases=3)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries(name)

    assert found[0].id == "/npm/next"


@pytest.mark.parametrize(
    ("link", "package"),
    [
        ("https://www.npmjs.com/package/quill", "/npm/quill"),
        ("npmjs.com/package/quill/v/1.0.0?activeTab=code", "/npm/quill"),
        ("https://pypi.org/project/Quill/", "/pypi/quill"),
        ("https://github.com/quill/quill", "/pypi/quill"),
        ("github.com/quill/quill/tree/main/docs#dip", "/pypi/quill"),
        ("git+https://github.com/quill/quill.git", "/pypi/quill"),
    ],
)
async def test_link_names_package(
    link: str, package: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python("quill", "1.4.0", QUILL, releases=200)
    registry.publish_javascript("quill", "1.0.0", TYPED, releases=3, repository=None)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries(link)

    assert found[0].id == package


@pytest.mark.parametrize(
    "link",
    [
        "https://github.com/Ink/quill",
        "github.com/Ink/quill/tree/main/pens#dip",
        "git+https://www.github.com/Ink/quill.git",
        "https://GitHub.com/Ink/quill?tab=readme",
    ],
)
async def test_link_to_unknown_repository_is_tried_as_module(
    link: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("quill", "9.0.0", TYPED, releases=300)
    module = "module github.com/Ink/quill\n\ngo 1.21\n"
    registry.publish_go("github.com/Ink/quill", "v1.2.0", {"pen.go": GO, "go.mod": module})

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries(link)

    assert found[0].id == "/go/github.com~Ink~quill"
    assert not any("repository" in each for each in packagedocs.trace.warnings)


async def test_link_to_repository_of_package_is_no_module(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("quill", "9.0.0", TYPED, repository="ink/quill")

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("https://github.com/ink/quill")

    assert found.id == "/npm/quill"
    assert registry.count_requests("/@v/list") == 0


async def test_repository_without_module_file_is_no_module(
    registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("quill", "9.0.0", TYPED)
    registry.publish_go("github.com/ink/quill", "v1.2.0", {"README.md": README})

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("https://github.com/ink/quill")

    assert found.id == "/npm/quill"
    assert packagedocs.trace.warnings[0].startswith("no package names ink/quill as its repository")


@pytest.mark.parametrize("published", [True, False])
async def test_failed_proxy_is_no_missing_module(
    published: bool,  # noqa: FBT001 - a case
    registry: PackageRegistry,
    open_docs: Open,
) -> None:
    settings = {"packagedocs_go": ProviderSettings(url="http://127.0.0.1:9")}
    failure = "the Go module proxy could not be reached"
    if published:
        registry.publish_javascript("quill", "9.0.0", TYPED)

    async with open_docs(providers=settings) as packagedocs:
        if not published:
            with pytest.raises(ProviderError, match=failure):
                await packagedocs.find_libraries("https://github.com/ink/quill")
            return
        (found,) = await packagedocs.find_libraries("https://github.com/ink/quill")

    assert found.id == "/npm/quill"
    assert f"{failure}: what is published there is not considered" in packagedocs.trace.warnings
    assert packagedocs.trace.is_provisional


async def test_part_of_package_is_not_its_namesake(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("lodash", "4.17.21", TYPED, releases=110)
    registry.publish_javascript("fp", "0.0.2", TYPED, releases=2)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries("lodash/fp")

    assert [each.id for each in found] == ["/npm/lodash", "/npm/fp"]
    assert packagedocs.trace.warnings[0] == (
        "no package names lodash/fp as its repository: these have names like one of its two parts"
    )


async def test_package_that_names_repository_is_first(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python(
        "quill", "1.0.0", QUILL, releases=2, project_urls={"Source": "https://github.com/ink/quill"}
    )
    registry.publish_javascript("quill", "9.0.0", TYPED, releases=300)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries("Ink/Quill")

    assert found[0].id == "/pypi/quill"
    assert not any("repository" in each for each in packagedocs.trace.warnings)


@pytest.mark.parametrize("query", ["Redis/ioredis", "https://github.com/redis/ioredis"])
async def test_package_of_moved_repository_precedes_its_owner(
    query: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("ioredis", "5.0.0", TYPED, repository="luin/ioredis")
    registry.publish_javascript("redis", "4.0.0", TYPED, repository="redis/node-redis")

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries(query)

    assert [each.id for each in found] == ["/npm/ioredis", "/npm/redis"]


async def test_namesake_that_names_repository_does_not_displace_known_package(
    registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python("tensorflow", "2.0.0", QUILL, releases=200, project_urls={})
    registry.publish_javascript("tensorflow", "0.0.1", TYPED, releases=2, repository="tensorflow/tensorflow")

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries("tensorflow/tensorflow")

    assert [each.id for each in found] == ["/pypi/tensorflow", "/npm/tensorflow"]


async def test_id_of_crate_is_no_repository(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_rust("quill", "0.3.0", {"README.md": "# quill"})

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("/crates/quill")

    assert found.id == "/crates/quill"
    assert not any("repository" in each for each in packagedocs.trace.warnings)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("node", "a language or a runtime"),
        ("os", "a module of Python and of Node.js"),
        ("Asyncio", "a module of Python"),
    ],
)
async def test_namesake_of_standard_library_is_returned_with_warning(
    name: str, meaning: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python(name, "0.1.0", QUILL, releases=3)

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries(name)

    assert found.id == f"/pypi/{name.lower()}"
    assert any(
        each.startswith(f"{name!r} is also {meaning}, whose documentation is not read")
        for each in packagedocs.trace.warnings
    )


@pytest.mark.parametrize(
    ("name", "owner"),
    [("sqlite3", "Python"), ("node:fs", "Node.js"), ("dns/promises", "Node.js"), ("node:test", "Node.js")],
)
async def test_standard_library_is_not_searched_for_similar_names(
    name: str, owner: str, open_docs: Open
) -> None:
    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match=f"knows no package '{name}', which is a module of {owner}: only"):
            await packagedocs.find_libraries(name)


async def test_tag_of_image_is_no_module_of_node(open_docs: Open) -> None:
    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match="no library called 'node:22-alpine'"):
            await packagedocs.find_libraries("node:22-alpine")


async def test_port_of_module_is_not_called_another_thing(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("events", "3.3.0", TYPED)

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("events")

    assert found.id == "/npm/events"
    assert packagedocs.trace.warnings[0] == (
        "'events' is also a module of Node.js, whose documentation is not read: "
        "these are packages of that name"
    )


async def test_module_in_folder_is_no_repository(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("promises", "0.2.5", TYPED)

    async with open_docs() as packagedocs:
        await packagedocs.find_libraries("fs/promises")

    assert [each for each in packagedocs.trace.warnings if "number of snippets" not in each] == [
        "'fs/promises' is also a module of Node.js, whose documentation is not read: "
        "these are packages of that name"
    ]


@pytest.mark.parametrize("name", ["the quill library", "the Quill package", "the quill docs"])
async def test_article_before_name_says_nothing_of_rust(
    name: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python("quill", "1.4.0", QUILL, releases=200)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries(name)

    assert [each.id for each in found] == ["/pypi/quill"]


@pytest.mark.parametrize("name", ["the quill crate", "the rust crate quill", "the crate quill"])
async def test_article_before_name_of_crate_is_ignored(
    name: str, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_rust("quill", "0.3.0", {"README.md": "# quill"})

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries(name)

    assert [each.id for each in found] == ["/crates/quill"]


async def test_link_to_repository_of_other_ecosystem_is_not_its_namesake(open_docs: Open) -> None:
    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match="a library of Ruby"):
            await packagedocs.find_libraries("https://github.com/rails/rails/blob/main/README.md")


async def test_abandoned_library_is_marked(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("quill", "1.0.0", TYPED, deprecated="use ink")

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("quill")

    assert found.description == "Deprecated (use ink). What quill is for."


async def test_at_most_five_libraries_are_returned(registry: PackageRegistry, open_docs: Open) -> None:
    for name in ("my-quill", "myquill"):
        registry.publish_python(name, "1.0", QUILL)
        registry.publish_javascript(name, "1.0.0", TYPED)
    registry.publish_python("quill", "1.0", QUILL)
    registry.publish_javascript("quill", "1.0.0", TYPED)

    async with open_docs() as packagedocs:
        found = await packagedocs.find_libraries("my quill")

    assert 4 <= len(found) <= 5


@pytest.mark.parametrize("name", ["no such library", "ünïcode", "../..", "@", "/pypi/", "\u200b", "x" * 200])
async def test_unpublished_name_is_no_data(name: str, open_docs: Open) -> None:
    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match="no library called '"):
            await packagedocs.find_libraries(name)


@pytest.mark.extended
async def test_similar_name_finds_indexed_library(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("calligraphy", "1.0", QUILL)

    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/pypi/calligraphy", None, 1000)
        (found,) = await packagedocs.find_libraries("caligraphy")

    assert found.id == "/pypi/calligraphy"
    assert "similar names" in packagedocs.trace.warnings[0]


async def test_one_failed_registry_gives_warning(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.0", QUILL)
    registry.bodies["/quill/latest"] = b"<html>down</html>"

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("quill")

    assert found.id == "/pypi/quill"
    assert packagedocs.trace.warnings[0] == (
        f"npm answered with a web page instead of data: {MAY_BE_JAVASCRIPT}"
    )
    assert packagedocs.trace.is_provisional
    assert found.score is not None
    assert found.score < 0.5


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("axios", "npm"),
        ("tailwind", "npm"),
        ("expressjs/express", "npm"),
        ("node redis", "npm"),
        ("flask", "PyPI"),
        ("python redis", "PyPI"),
        ("beautiful soup", "PyPI"),
    ],
)
async def test_well_known_library_of_failed_registry_is_failure(
    name: str, failing: str, registry: PackageRegistry, open_docs: Open
) -> None:
    for each in ("axios", "tailwind", "express", "redis", "flask", "beautiful-soup"):
        if failing == "npm":
            registry.publish_python(each, "1.0", QUILL, releases=200)
        else:
            registry.publish_javascript(each, "1.0.0", TYPED, releases=200)
    settings = {f"packagedocs_{failing.lower()}": ProviderSettings(url="http://127.0.0.1:9")}

    async with open_docs(providers=settings) as packagedocs:
        with pytest.raises(ProviderError, match=f"{failing} could not be reached"):
            await packagedocs.find_libraries(name)


@pytest.mark.parametrize(
    ("name", "warning", "lowest", "highest"),
    [
        ("httpx", "what is published there is not considered", 0.75, 1.0),
        ("redis", "a better known library of that name for JavaScript would not be found", 0.2, 0.5),
    ],
    ids=["well-known in the other registry alone", "well-known in both"],
)
async def test_well_known_library_is_returned_without_other_registry(
    name: str, warning: str, lowest: float, highest: float, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python(name, "1.0", QUILL, releases=200)
    settings = {"packagedocs_npm": ProviderSettings(url="http://127.0.0.1:9")}

    async with open_docs(providers=settings) as packagedocs:
        (found,) = await packagedocs.find_libraries(name)

    assert found.id == f"/pypi/{name}"
    assert warning in packagedocs.trace.warnings[0]
    assert packagedocs.trace.is_provisional
    assert found.score is not None
    assert lowest < found.score <= highest


@pytest.mark.parametrize("body", [b'{"info": 3}', b'{"info": {"name": ["x"]}}'])
async def test_one_invalid_registry_response_gives_warning(
    body: bytes, registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript("quill", "1.0.0", TYPED)
    registry.bodies["/pypi/quill/json"] = body

    async with open_docs() as packagedocs:
        (found,) = await packagedocs.find_libraries("quill")

    assert found.id == "/npm/quill"
    assert sum("for Python would not be found" in each for each in packagedocs.trace.warnings) == 1


async def test_failed_registries_are_no_empty_answer(registry: PackageRegistry, open_docs: Open) -> None:
    registry.status = 503

    async with open_docs() as packagedocs:
        with pytest.raises(ProviderError, match="status 503"):
            await packagedocs.find_libraries("quill")
        with pytest.raises(ProviderError, match="status 503"):
            await packagedocs.query_docs("/pypi/quill", None, 1000)


async def test_documentation_of_python_package_is_read(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("Quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/pypi/quill", "dip a pen", 1000)
        (found,) = await packagedocs.find_libraries("quill")

    first = next(
        each
        for each in snippets
        if "dip(" in (each.code or "") and "Dip a pen" in (each.text or each.code or "")
    )
    assert first.language == "python"
    assert first.source_url
    assert first.source_url.startswith("https://inspector.pypi.io/project/quill/1.4.0/packages/")
    assert first.source_url.endswith("/Quill-1.4.0.tar.gz/Quill-1.4.0/quill/__init__.py")
    assert sum(each.tokens for each in snippets) <= 1000
    assert found.snippet_count
    assert packagedocs.trace.warnings == []


async def test_documentation_and_types_of_javascript_package_are_read(
    registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_javascript(
        "quill", "4.1.0", {"README.md": TYPED["README.md"], "index.js": "exports.dip = () => {};"}
    )
    registry.publish_javascript("@types/quill", "4.0.7", TYPED)

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/npm/quill", "dip", 1000)

    assert any("dip(pen: string): boolean" in (each.code or "") for each in snippets)
    assert registry.count_requests("/@types/quill/-/quill-4.0.7.tgz") == 1


@pytest.mark.extended
async def test_types_are_of_same_major_version(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("quill", "4.1.0", {"README.md": TYPED["README.md"]})
    registry.publish_javascript("@types/quill", "4.0.7", TYPED)
    registry.publish_javascript("@types/quill", "5.0.0", {"index.d.ts": "export const other: string;\n"})
    whole = json.loads(registry.bodies["/@types/quill"])
    whole["versions"] = {"4.0.6": {}, "4.0.7": {}, "5.0.0": {}}
    registry.bodies["/@types/quill"] = json.dumps(whole).encode()

    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/npm/quill", "dip", 1000)

    assert registry.count_requests(".tgz") == 2
    assert registry.count_requests("/@types/quill/-/quill-4.0.7.tgz") == 1


async def test_parts_of_package_are_read_with_it(registry: PackageRegistry, open_docs: Open) -> None:
    declared = "/** Opens an inkwell of glass. */\nexport function openInkwell(): void;\n"
    core, deep = "export * from '@quill/core';\n", "export * from '@quill/deep';\n"
    registry.publish_javascript("@quill/deep", "2.0.0", {"index.d.ts": declared}, types="index.d.ts")
    registry.publish_javascript("@quill/log", "2.0.0", {"index.d.ts": declared.replace("Ink", "Log")})
    registry.publish_javascript(
        "@quill/core", "2.0.0", {"index.d.ts": deep}, types="x", dependencies={"@quill/deep": "^2.0.0"}
    )
    dependencies = {"@quill/core": "2.0.0", "@quill/log": "2.0.0", "ws": "8"}
    registry.publish_javascript(
        "quill", "2.0.0", {**TYPED, "index.d.ts": core}, types="x", dependencies=dependencies
    )

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/npm/quill", "openInkwell", 1000)
        others = await packagedocs.query_docs("/npm/quill", "openLogwell", 1000)

    assert any("openInkwell" in (each.code or "") for each in snippets)
    assert not any("openLogwell" in (each.code or "") for each in others)
    assert registry.count_requests("/ws/latest") == 0


async def test_part_of_several_parts_is_requested_once(registry: PackageRegistry, open_docs: Open) -> None:
    names = [f"@quill/part{number}" for number in range(6)]
    for name in names:
        registry.publish_javascript(name, "2.0.0", TYPED, dependencies=dict.fromkeys(names, "2.0.0"))
    registry.publish_javascript("quill", "2.0.0", TYPED, dependencies=dict.fromkeys(names, "2.0.0"))

    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/npm/quill", "dip", 1000)

    assert [registry.count_requests(f"{name}/2.0.0") for name in names] == [1] * 6


async def test_large_parts_end_the_download(
    registry: PackageRegistry, open_docs: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MAX_TOTAL_BYTES", 100_000)
    large = {"image.bin": random.Random(7).randbytes(40_000), "README.md": "# Ink\n"}
    parts = [f"@quill/part{number}" for number in range(3 * downloads.MAX_DOWNLOADS)]
    for part in parts:
        registry.publish_javascript(part, "2.0.0", large)
    dependencies = dict.fromkeys(parts, "2.0.0")
    registry.publish_javascript("quill", "2.0.0", TYPED, types="x", dependencies=dependencies)

    async with open_docs() as packagedocs:
        assert await packagedocs.query_docs("/npm/quill", "dip", 1000)

    assert registry.count_requests(".tgz") == 1 + downloads.MAX_DOWNLOADS


async def test_large_parts_are_downloaded_one_after_another(
    registry: PackageRegistry, open_docs: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "MAX_PARALLEL_BYTES", 100_000)
    size = 4_000_000
    parts = [f"@quill/part{number}" for number in range(downloads.MAX_DOWNLOADS)]
    for number, part in enumerate(parts):
        text = f"# Ink {number}\n\nThis ink number{number} writes letters in blue, on paper of any colour.\n"
        image = random.Random(number).randbytes(size if number % 2 else 1_000)
        registry.publish_javascript(part, "2.0.0", {"image.bin": image, "docs/ink.md": text})
    named = {"README.md": f"# Quill\n\nIts parts are {', '.join(parts)}.\n"}
    dependencies = dict.fromkeys(parts, "2.0.0")
    registry.publish_javascript("quill", "2.0.0", named, types="x", dependencies=dependencies)
    tracemalloc.start()

    async with open_docs() as packagedocs:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        found = [await packagedocs.query_docs("/npm/quill", f"number{number}", 500) for number in range(8)]
        used = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()

    assert all(f"number{number}" in (first.text or "") for number, (first, *_) in enumerate(found))
    # a body and its copy, and what the local registry keeps; all four at once are 16 MB without copies
    assert used < 3.6 * size


async def test_readme_of_reexported_part_is_read(registry: PackageRegistry, open_docs: Open) -> None:
    for part in ("ink", "blotter"):
        usage = f"# Usage\n\n```js\nawait {part}({{ color: 'blue' }})\n```\n"
        readme = f"# {part}\n\nA package for writers.\n\n{usage}"
        registry.publish_javascript(f"@quill/{part}", "2.0.0", {"README.md": readme})
    named = "export { default as ink } from '@quill/ink';\nimport type { Blotter } from '@quill/blotter';\n"
    reexport = {"index.d.ts": named}
    dependencies = {"@quill/ink": "2.0.0", "@quill/blotter": "2.0.0"}
    registry.publish_javascript("quill", "2.0.0", reexport, types="index.d.ts", dependencies=dependencies)

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/npm/quill", "color of a writer", 1000)

    assert [each.title for each in snippets if "color" in (each.code or "")] == ["Ink > Usage"]


@pytest.mark.extended
async def test_index_is_built_once(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        both = await asyncio.gather(
            *(packagedocs.query_docs("/pypi/quill", topic, 1000) for topic in ("dip", "inkwell"))
        )
        again = await packagedocs.query_docs("/pypi/quill", "dip", 1000)
    async with open_docs() as packagedocs:
        later = await packagedocs.query_docs("/pypi/quill", "dip", 1000)

    assert again == later == both[0]
    assert registry.count_requests(".tar.gz") == 1


@pytest.mark.extended
async def test_newest_version_is_requested_once(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        for _ in range(3):
            await packagedocs.query_docs("/pypi/quill", "dip", 1000)

    assert registry.count_requests("/pypi/quill/json") == 1


@pytest.mark.extended
async def test_new_version_is_read_when_known(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)
    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/pypi/quill", None, 1000)
    registry.publish_python("quill", "1.5.0", build_readme("Now with fountain pens."))

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/pypi/quill", "fountain", 1000)

    assert "fountain" in (snippets[0].text or "")


@pytest.mark.extended
@pytest.mark.parametrize("written", ["/pypi/quill/1.3.0", "/pypi/quill@1.3.0", "/pypi/quill/v1.3"])
async def test_requested_version_is_read(written: str, registry: PackageRegistry, open_docs: Open) -> None:
    old = registry.publish_python("quill", "1.3.0", build_readme("Only goose feathers."))
    body = registry.publish_python("quill", "1.4.0", QUILL)
    body["releases"]["1.3.0"] = old["urls"]
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs(written, "goose feathers", 1000)

    assert "Only goose" in (snippets[0].text or "")


async def test_short_version_is_newest_release_of_it(registry: PackageRegistry, open_docs: Open) -> None:
    old = registry.publish_python("quill", "1.4.2", build_readme("Only goose feathers."))
    body = registry.publish_python("quill", "2.1.0", QUILL)
    files = old["urls"]
    withdrawn = [{**file, "yanked": True} for file in files]
    body["releases"] |= {"1.4.2": files, "1.4.0": files, "1.5.0rc1": files, "1.10.0": withdrawn, "1.11.0": []}
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    async with open_docs() as packagedocs:
        (first, *_) = await packagedocs.query_docs("/pypi/quill@1", "goose feathers", 1000)
        (newest, *_) = await packagedocs.query_docs("/pypi/quill@2.x", None, 1000)
        warnings = packagedocs.trace.warnings

    assert (first.version, newest.version) == ("1.4.2", "2.1.0")
    assert "version 1 is read as 1.4.2, the newest release of it" in warnings
    assert "version 2.x is read as 2.1.0, the newest release of it" in warnings


async def test_release_of_two_numbers_is_read_itself(registry: PackageRegistry, open_docs: Open) -> None:
    old = registry.publish_python("quill", "5.2", build_readme("Only goose feathers."))
    body = registry.publish_python("quill", "5.2.1", QUILL)
    body["releases"]["5.2"] = old["urls"]
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    async with open_docs() as packagedocs:
        (exact, *_) = await packagedocs.query_docs("/pypi/quill@5.2", None, 1000)
        (short, *_) = await packagedocs.query_docs("/pypi/quill@5", None, 1000)

    assert (exact.version, short.version) == ("5.2", "5.2.1")


async def test_release_with_number_of_its_own_is_found(registry: PackageRegistry, open_docs: Open) -> None:
    old = registry.publish_python("quill", "4.10.0.84", build_readme("Only goose feathers."))
    body = registry.publish_python("quill", "4.11.0.2", QUILL)
    body["releases"] |= {"4.10.0.82": old["urls"], "4.10.0.84": old["urls"]}
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    async with open_docs() as packagedocs:
        (found, *_) = await packagedocs.query_docs("/pypi/quill@4.10.0", None, 1000)
        warnings = packagedocs.trace.warnings

    assert found.version == "4.10.0.84"
    assert "version 4.10.0 is read as 4.10.0.84, the newest release of it" in warnings


async def test_unreleased_version_is_no_data(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match=r"no version 9\.9 of /pypi/quill: the newest is 1\.4\.0"):
            await packagedocs.query_docs("/pypi/quill/9.9", None, 1000)


@pytest.mark.extended
@pytest.mark.parametrize("written", ["/encode/quill", "/Encode/Quill/1.4.0", "/encode/python-quill"])
async def test_id_of_repository_finds_its_package(
    written: str, registry: PackageRegistry, open_docs: Open
) -> None:
    url = f"https://github.com/{written.lower().removesuffix('/1.4.0')[1:]}.git"
    registry.publish_python(
        "quill", "1.4.0", QUILL, project_urls={"Homepage": "https://quill.example", "Code": url}
    )
    registry.publish_javascript("quill", "9.0.0", TYPED)

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs(written, "dip", 1000)

    assert any(each.language == "python" for each in snippets)


@pytest.mark.extended
async def test_id_of_moved_repository_finds_its_package(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python(
        "fastapi", "1.0.0", QUILL, project_urls={"Source": "https://github.com/fastapi/fastapi"}
    )

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/tiangolo/fastapi", "dip", 1000)

    assert snippets


@pytest.mark.extended
async def test_concurrent_requests_cause_one_query_and_download(
    registry: PackageRegistry, open_docs: Open, tmp_path: Path
) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        queries = (packagedocs.query_docs("/pypi/quill", f"dip {number}", 1000) for number in range(50))
        answers = await asyncio.gather(*queries)

    assert all(answers)
    assert _list_files(tmp_path / "docs") == ["1.4.0.db"]
    assert (registry.count_requests("/json"), registry.count_requests(".tar.gz")) == (1, 1)


def _list_files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


async def test_id_of_other_repository_is_no_data(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match="/pypi/quill has such a name"):
            await packagedocs.query_docs("/somebody/quill", None, 1000)


async def test_id_of_repository_is_unknown_while_registry_fails(
    registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)
    registry.bodies["/quill/latest"] = b"<html>down</html>"

    async with open_docs() as packagedocs:
        with pytest.raises(ProviderError, match="npm answered with a web page instead of data"):
            await packagedocs.query_docs("/somebody/quill", None, 1000)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("/pypi/scikit-lern", "/pypi/scikit-learn"),
        ("/npm/zzzzz", "libdocs-resolve-library"),
        ("/nobody/zzzzz", "libdocs-resolve-library"),
        ("/pypi/quill/1.0/2.0", "libdocs-resolve-library"),
    ],
)
async def test_unknown_id_is_no_data_with_hint(written: str, hint: str, open_docs: Open) -> None:
    async with open_docs() as packagedocs:
        with pytest.raises(NoData, match=hint):
            await packagedocs.query_docs(written, None, 1000)


async def test_library_without_documentation_is_no_data(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", {"quill/data.bin": "x"})

    async with open_docs() as packagedocs:
        for _ in range(2):
            with pytest.raises(NoData, match=r"no documentation in /pypi/quill 1\.4\.0"):
                await packagedocs.query_docs("/pypi/quill", None, 1000)

    assert registry.count_requests(".tar.gz") == 1


@pytest.mark.extended
async def test_wheel_replaces_source_without_documentation(
    registry: PackageRegistry, open_docs: Open
) -> None:
    body = registry.publish_python("quill", "1.4.0", {"quill/data.bin": "x"})
    body["urls"].append(
        registry.add_upload("quill-1.4.0-py3-none-any.whl", make_zip({"quill/__init__.py": PEN}))
    )
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/pypi/quill", "dip", 1000)

    assert any("dip" in (each.code or "") for each in snippets)


@pytest.mark.extended
async def test_release_with_too_large_archives_has_description_only(
    registry: PackageRegistry, open_docs: Open
) -> None:
    body = registry.publish_python(
        "quill", "1.4.0", QUILL, description=build_readme("Pens that weigh sixty megabytes.")["README.md"]
    )
    body["urls"][0]["size"] = 61 << 20
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/pypi/quill", "pens", 1000)

    assert "sixty megabytes" in (snippets[0].text or "")
    assert packagedocs.trace.warnings == [
        "the documentation of quill is incomplete: it has no archive of a known form that is at most 60 MB"
    ]


async def test_too_large_archive_is_failure(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_javascript("quill", "1.0.0", TYPED, types="x")
    registry.bodies["/quill/-/quill-1.0.0.tgz"] = bytes(61 << 20)

    async with open_docs() as packagedocs:
        with pytest.raises(ProviderError, match="at most 60 MB"):
            await packagedocs.query_docs("/npm/quill", None, 1000)


@pytest.mark.extended
async def test_modified_archive_is_failure(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)
    (path,) = [path for path in registry.bodies if path.endswith(".tar.gz")]
    registry.bodies[path] += b"x"

    async with open_docs() as packagedocs:
        with pytest.raises(ProviderError, match="digest differs from the published one"):
            await packagedocs.query_docs("/pypi/quill", None, 1000)


@pytest.mark.extended
async def test_archive_on_other_host_is_not_fetched(registry: PackageRegistry, open_docs: Open) -> None:
    body = registry.publish_javascript("quill", "1.0.0", TYPED, types="x")
    with run_package_registry("127.0.0.2") as elsewhere:
        body["dist"]["tarball"] = f"{elsewhere.url}/quill-1.0.0.tgz"
        registry.bodies["/quill/latest"] = json.dumps(body).encode()

        async with open_docs() as packagedocs:
            with pytest.raises(ProviderError):
                await packagedocs.query_docs("/npm/quill", None, 1000)

    assert elsewhere.requested_paths == []


async def test_invalid_archive_is_failure(registry: PackageRegistry, open_docs: Open) -> None:
    body = registry.publish_python("quill", "1.4.0", QUILL)
    body["urls"] = [registry.add_upload("quill-1.4.0.tar.gz", b"not an archive")]
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    async with open_docs() as packagedocs:
        with pytest.raises(ProviderError, match="not a valid archive of its kind"):
            await packagedocs.query_docs("/pypi/quill", None, 1000)


async def test_unmatched_topic_is_answered_with_introduction(
    registry: PackageRegistry, open_docs: Open
) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/pypi/quill", "qwertzuiop", 1000)

    assert "Pens for people" in " ".join(each.text or "" for each in snippets)
    assert packagedocs.trace.warnings == ["nothing in quill 1.4.0 matches the topic: this is an introduction"]


async def test_index_answers_while_registry_is_down(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)
    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/pypi/quill", None, 1000)
    registry.status = 503

    async with open_docs() as packagedocs:
        snippets = await packagedocs.query_docs("/pypi/quill", "dip", 1000)

    assert snippets
    assert packagedocs.trace.warnings == [
        "whether 1.4.0 is the newest version could not be checked: PyPI answered with status 503"
    ]
    assert packagedocs.trace.is_provisional
    assert packagedocs.trace.providers["packagedocs"]["status"] == "ok"


async def test_indexed_version_needs_no_registry(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)
    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/pypi/quill", None, 1000)
    registry.requested_paths.clear()

    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/pypi/quill/1.4.0", "dip", 1000)

    assert registry.requested_paths == []
    assert packagedocs.trace.warnings == []


@pytest.mark.extended
async def test_long_build_continues_after_timeout(registry: PackageRegistry, open_docs: Open) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)
    registry.archives_released.clear()

    async with open_docs(timeout=2) as packagedocs:
        with pytest.raises(ProviderTimeout, match="same payment can be sent again") as late:
            await packagedocs.query_docs("/pypi/quill", "dip", 1000)
        registry.archives_released.set()
        snippets = await query_until_built(packagedocs, "/pypi/quill")

    assert late.value.retry_after
    assert snippets
    assert registry.count_requests(".tar.gz") == 1


@pytest.mark.extended
async def test_concurrent_builds_are_limited(registry: PackageRegistry, open_docs: Open) -> None:
    names = [f"quill{number}" for number in range(MAX_BUILDS + 1)]
    for name in names:
        registry.publish_python(name, "1.0", QUILL)
    registry.archives_released.clear()

    async with open_docs(timeout=2.5) as packagedocs:
        tries = [asyncio.create_task(packagedocs.query_docs(f"/pypi/{name}", None, 1000)) for name in names]
        failures = await asyncio.gather(*tries, return_exceptions=True)
        waits = [packagedocs.estimate_wait({"libraryId": f"/pypi/{name}"}) for name in ("other", *names)]
        registry.archives_released.set()

    assert sum(isinstance(each, ProviderRateLimited) for each in failures) == 1
    assert waits[0] == BUILD_RETRY_AFTER
    assert sorted(waits[1:])[:-1] == [0.0] * (len(names) - 1)


@pytest.mark.extended
async def test_too_slow_build_is_ended_and_not_repeated(
    registry: PackageRegistry, open_docs: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.publish_python("quill", "1.4.0", {f"quill/m{number}.py": PEN * 2000 for number in range(40)})
    monkeypatch.setattr("centgate.providers.packagedocs_indexer.BUILD_SECONDS", 0.01)

    async with open_docs() as packagedocs:
        for _ in range(2):
            with pytest.raises(ProviderError, match=r"cannot read /pypi/quill 1\.4\.0: it took more than"):
                await packagedocs.query_docs("/pypi/quill", None, 1000)

    assert registry.count_requests(".tar.gz") == 1


async def test_broken_index_is_rebuilt(registry: PackageRegistry, open_docs: Open, tmp_path: Path) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)

    async with open_docs() as packagedocs:
        await packagedocs.query_docs("/pypi/quill", None, 1000)
        damage_index(tmp_path)
        with pytest.raises(ProviderError, match="broken index"):
            await packagedocs.query_docs("/pypi/quill", "dip", 1000)
        snippets = await packagedocs.query_docs("/pypi/quill", "dip", 1000)

    assert snippets


async def test_unwritable_folder_is_failure(
    registry: PackageRegistry, open_docs: Open, tmp_path: Path
) -> None:
    registry.publish_python("quill", "1.4.0", QUILL)
    (tmp_path / "docs").write_text("in the way")

    async with open_docs() as packagedocs:
        with pytest.raises(ProviderError, match="cannot store its indexes"):
            await packagedocs.query_docs("/pypi/quill", None, 1000)


def test_registry_urls_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_PACKAGEDOCS_PYPI_URL", "https://mirror.example/pypi")
    monkeypatch.setenv("CENTGATE_PACKAGEDOCS_NPM_URL", "https://mirror.example/npm")

    settings = Settings()

    assert settings.provider_settings("packagedocs_pypi").url == "https://mirror.example/pypi"
    assert find_unknown_variables(PackageDocs.info.settings) == []
    assert "https://pypi.org, https://registry.npmjs.org" in render_markdown()
    assert "# CENTGATE_PACKAGEDOCS_NPM_URL=https://registry.npmjs.org\n" in render_env_example()
    assert "CENTGATE_PACKAGEDOCS_URL" not in render_env_example()


# tests against the public registries


@pytest.fixture(scope="module")
def public_registries() -> None:
    """Skip the test if PyPI does not respond."""
    try:
        with urllib.request.urlopen("https://pypi.org/pypi/pip/json", timeout=3) as reply:
            known = reply.status == 200
    except (urllib.error.URLError, OSError):
        known = False
    if not known:
        pytest.skip("needs a package registry, and https://pypi.org does not answer from here")


@asynccontextmanager
async def open_public_docs(folder: Path) -> AsyncGenerator[PackageDocs]:
    """Open the provider with its default settings."""
    settings = Settings(packagedocs_folder=folder)
    async with open_resources(settings) as resources:
        yield PackageDocs(settings, resources).bind(replace(RequestTrace.start()))


@pytest.mark.extended
@pytest.mark.usefixtures("public_registries")
@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("httpx", "/pypi/httpx"),
        ("fastapi", "/pypi/fastapi"),
        ("react", "/npm/react"),
        ("express", "/npm/express"),
        ("Next.js", "/npm/next"),
        ("zod", "/npm/zod"),
        ("django", "/pypi/django"),
        ("sklearn", "/pypi/scikit-learn"),
        ("three", "/npm/three"),
        ("React Query", "/npm/@tanstack~react-query"),
        ("vue", "/npm/vue"),
    ],
)
async def test_well_known_names_are_resolved(name: str, first: str, tmp_path: Path) -> None:
    async with open_public_docs(tmp_path) as packagedocs:
        found = await packagedocs.find_libraries(name)

    assert found[0].id == first


@pytest.mark.extended
@pytest.mark.usefixtures("public_registries")
@pytest.mark.parametrize(
    ("library_id", "topic", "expected"),
    [
        ("/pypi/httpx", "timeouts", "Timeout"),
        ("/encode/httpx", "async client", "AsyncClient"),
        ("/npm/react", "useEffect", "useEffect"),
        ("/npm/express@4.18.2", "router", "Router"),
        ("/npm/@tanstack~react-query", "useMutation", "useMutation"),
    ],
)
async def test_well_known_libraries_are_documented(
    library_id: str, topic: str, expected: str, tmp_path: Path
) -> None:
    async with open_public_docs(tmp_path) as packagedocs:
        snippets = await query_until_built(packagedocs, library_id, topic, 2500)

    assert any(expected in f"{each.title} {each.code}" for each in snippets)
    assert sum(each.tokens for each in snippets) <= 2500


async def query_until_built(
    packagedocs: PackageDocs, library_id: str, topic: str = "dip", tokens: int = 1000
) -> list[DocSnippet]:
    """Return the answer, waiting if the first build of the index exceeds a request's time."""
    async with asyncio.timeout(300):
        while True:
            try:
                return await packagedocs.query_docs(library_id, topic, tokens)
            except ProviderTimeout:
                continue


def damage_index(folder: Path) -> None:
    """Overwrite the only index."""
    (file,) = folder.glob("docs/*/pypi/quill/*")
    file.write_bytes(b"no index" * 1000)
