"""Responses of a Go module proxy and of its checksum database."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime

import pytest
from package_registry import PackageRegistry, run_package_registry

from centgate.libdocs.registry.go import BASE_URL, GoRegistry, escape, find_digest, parse_retractions
from centgate.libdocs.registry.library_id import parse_library_id
from centgate.libdocs.registry.package_candidates import find_candidates
from centgate.libdocs.registry.package_names import normalize_package_name
from centgate.libdocs.registry.parsing import download_archive
from centgate.upstream import Upstream, open_session

MODULE = "github.com/Ink/quill"
FILES = {"README.md": "# Quill\n"}


@pytest.fixture
def registry() -> Generator[PackageRegistry]:
    with run_package_registry() as publishing:
        yield publishing


@pytest.fixture
async def proxy(registry: PackageRegistry) -> AsyncGenerator[GoRegistry]:
    async with open_session() as session:
        upstream = Upstream("packagedocs", "the proxy", session, max_bytes=1 << 20, max_wait=5)
        yield GoRegistry(upstream, registry.url, registry.url)


async def test_newest_stable_release_is_found(registry: PackageRegistry, proxy: GoRegistry) -> None:
    for version in ("v1.10.0", "v1.9.0", "v2.0.0-rc.1"):
        registry.publish_go(MODULE, version, FILES)

    newest = await proxy.fetch_latest(MODULE)

    assert newest
    assert (newest.id, newest.version, newest.releases) == ("/go/github.com~Ink~quill", "v1.10.0", 3)
    assert (newest.repository, newest.published) == ("Ink/quill", datetime(2026, 9, 1, 10, tzinfo=UTC))
    (archive,) = newest.archives
    assert archive.url == f"{registry.url}/github.com/!ink/quill/@v/v1.10.0.zip"
    assert (archive.kind, archive.algorithm, archive.viewer_url) == ("go", "h1", None)
    assert (
        await download_archive(proxy.upstream, archive)
        == registry.bodies["/github.com/!ink/quill/@v/v1.10.0.zip"]
    )


async def test_short_version_of_incompatible_release_is_found(
    registry: PackageRegistry, proxy: GoRegistry
) -> None:
    for version in ("v1.4.0", "v24.0.2+incompatible", "v24.0.9+incompatible"):
        registry.publish_go(MODULE, version, FILES)

    found = [await proxy.fetch_release(MODULE, version) for version in ("v24", "24.0.2")]

    assert [each and each.version for each in found] == ["v24.0.9+incompatible", "v24.0.2+incompatible"]


async def test_retracted_releases_are_not_newest(registry: PackageRegistry, proxy: GoRegistry) -> None:
    registry.publish_go(MODULE, "v1.0.0", FILES)
    registry.publish_go(MODULE, "v1.1.0", FILES)
    retracted = "retract (\n\tv1.2.0 // broken\n\t[v1.1.0, v1.1.9]\n)\n"
    module_file = f"// Deprecated: use ink/v2.\nmodule {MODULE}\n\n{retracted}"
    registry.publish_go(MODULE, "v1.2.0", FILES | {"go.mod": module_file})

    newest = await proxy.fetch_latest(MODULE)
    withdrawn = await proxy.fetch_release(MODULE, "1.2.0")
    of_short_version = await proxy.fetch_release(MODULE, "v1")

    assert of_short_version
    assert of_short_version.version == "v1.0.0"
    assert newest
    assert (newest.version, newest.deprecated) == ("v1.0.0", "use ink/v2.")
    assert withdrawn
    assert (withdrawn.version, withdrawn.deprecated) == ("v1.2.0", "retracted")


async def test_module_without_tags_has_release_of_proxy(registry: PackageRegistry, proxy: GoRegistry) -> None:
    version = "v0.0.0-20260101000000-abcdefabcdef"
    registry.publish_go(MODULE, version, FILES)
    registry.bodies["/github.com/!ink/quill/@latest"] = registry.bodies[
        f"/github.com/!ink/quill/@v/{version}.info"
    ]
    registry.bodies["/github.com/!ink/quill/@v/list"] = b""

    newest = await proxy.fetch_latest(MODULE)

    assert newest
    assert (newest.version, newest.releases) == (version, 0)


@pytest.mark.parametrize("version", ["main", "v9.0.0", "v1.1"])
async def test_invalid_release_is_none(version: str, registry: PackageRegistry, proxy: GoRegistry) -> None:
    registry.publish_go(MODULE, "v1.0.0", FILES)
    # a proxy answers requests for a branch or a version prefix with a commit
    info = json.dumps({"Version": "v1.1.0-0.20260101000000-abcdefabcdef"}).encode()
    registry.bodies |= {f"/github.com/!ink/quill/@v/{name}.info": info for name in ("main", "v1.1")}

    assert await proxy.fetch_release(MODULE, version) is None
    assert await proxy.fetch_latest("github.com/ink/unknown") is None


async def test_release_without_checksum_has_no_archive(registry: PackageRegistry, proxy: GoRegistry) -> None:
    registry.publish_go(MODULE, "v1.0.0", FILES)
    del registry.bodies["/lookup/github.com/!ink/quill@v1.0.0"]

    newest = await proxy.fetch_latest(MODULE)

    assert newest
    assert newest.archives == ()


async def test_public_proxy_has_links_to_pkg_go_dev(
    registry: PackageRegistry, monkeypatch: pytest.MonkeyPatch, proxy: GoRegistry
) -> None:
    registry.publish_go(MODULE, "v1.0.0", FILES)
    monkeypatch.setattr("centgate.libdocs.registry.go.BASE_URL", registry.url)

    newest = await proxy.fetch_latest(MODULE)

    assert BASE_URL == "https://proxy.golang.org"
    assert newest
    assert newest.archives[0].viewer_url == "https://pkg.go.dev/github.com/Ink/quill@v1.0.0"


def test_digest_is_that_of_module_and_not_of_file() -> None:
    written = "h1:g61tztE5qeGQ89tm6NTjjM9VPIm088od1l6aSorWRWg="
    lines = f"1\ngolang.org/x/text v0.3.0/go.mod h1:x=\ngolang.org/x/text v0.3.0 {written}\n"

    found = find_digest(lines, "golang.org/x/text", "v0.3.0")

    assert found
    assert len(found) == 32
    assert find_digest(lines, "golang.org/x/text", "v0.3.1") is None
    assert find_digest(lines.replace("h1:", "h2:"), "golang.org/x/text", "v0.3.0") is None


def test_capitals_are_escaped() -> None:
    assert escape("github.com/BurntSushi/toml") == "github.com/!burnt!sushi/toml"
    assert escape("v2.0.0+incompatible") == "v2.0.0+incompatible"


def test_retractions_ignore_comments() -> None:
    found = parse_retractions(
        "retract (\n v1.0.0 // Published accidentally (see issue #12).\n v1.1.0 // Leaks keys.\n)\n"
    )

    assert [low[:3] for low, _ in found] == [(1, 0, 0), (1, 1, 0)]


@pytest.mark.parametrize(
    ("bounds", "newest_version"),
    [
        ("[v1.2.0-rc.1, v1.2.0]", "v1.1.0"),
        ("[v1.1.0, v1.2.0-rc.1]", "v1.2.0"),
        ("v1.2.0-rc.1", "v1.2.0"),
    ],
)
async def test_retracted_range_may_have_pre_release(
    registry: PackageRegistry, proxy: GoRegistry, bounds: str, newest_version: str
) -> None:
    registry.publish_go(MODULE, "v1.1.0", FILES)
    registry.publish_go(MODULE, "v1.2.0", FILES | {"go.mod": f"module {MODULE}\n\nretract {bounds}\n"})

    newest = await proxy.fetch_latest(MODULE)

    assert newest
    assert newest.version == newest_version


async def test_newest_pre_release_is_found_by_number(registry: PackageRegistry, proxy: GoRegistry) -> None:
    for version in ("v0.10.0-rc.2", "v0.10.0-rc.10", "v0.10.0-rc", "v0.9.0-rc.1"):
        registry.publish_go(MODULE, version, FILES)

    newest = await proxy.fetch_latest(MODULE)

    assert newest
    assert newest.version == "v0.10.0-rc.10"


def test_retractions_are_versions_and_ranges() -> None:
    found = parse_retractions(
        "retract v1.0.1 // why\nretract [v1.1.0, v1.2.0]\nretract (\n v2.0.0\n)\nrequire x v9.0.0\n"
    )

    assert [(low[:3], high[:3]) for low, high in found] == [
        ((1, 0, 1), (1, 0, 1)),
        ((1, 1, 0), (1, 2, 0)),
        ((2, 0, 0), (2, 0, 0)),
    ]


def test_open_retractions_are_left_at_once() -> None:
    start = time.thread_time()

    found = parse_retractions("retract (\n" * 6_000 + "v1.0.0\n)\n")

    assert time.thread_time() - start < 0.1  # 0.3 s if each is read up to the bracket that ends it
    assert [low[:3] for low, _ in found] == [(1, 0, 0)]


@pytest.mark.parametrize(
    ("written", "module"),
    [
        ("/go/github.com~BurntSushi~toml", "github.com/BurntSushi/toml"),
        ("/go/github.com~go-chi~chi~v5@v5.1.0", "github.com/go-chi/chi/v5"),
        ("/go/github.com~go-chi~chi~v5/v5.1.0", "github.com/go-chi/chi/v5"),
        ("/go/gorm.io/gorm", "gorm.io/gorm"),
        ("/go/gopkg.in~yaml.v3", "gopkg.in/yaml.v3"),
    ],
)
def test_module_ids_are_parsed(written: str, module: str) -> None:
    library = parse_library_id(written)

    assert library
    assert [(each.registry, each.name) for each in library.packages] == [("go", module)]


@pytest.mark.parametrize("path", ["net/http", "github.com/../x", "a b.com/c", "", "github.com/a/b@v1"])
def test_invalid_module_path_is_none(path: str) -> None:
    assert normalize_package_name("go", path) is None


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("gin", "/go/github.com~gin-gonic~gin"),
        ("gin-gonic/gin", "/go/github.com~gin-gonic~gin"),
        ("golang pgx", "/go/github.com~jackc~pgx~v5"),
        ("golang.org/x/net/html", "/go/golang.org~x~net~html"),
        ("pkg.go.dev/github.com/BurntSushi/toml?tab=doc", "/go/github.com~BurntSushi~toml"),
    ],
)
def test_go_names_are_candidates_as_modules_only(name: str, first: str) -> None:
    candidates = find_candidates(name)

    assert candidates[0].id == first
    assert {each.registry for each in candidates} == {"go"}
