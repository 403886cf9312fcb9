"""Responses of the package registries, and candidates for names."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from package_registry import PackageRegistry, make_zip, run_package_registry

from centgate.errors import AnswerTooLong, ProviderError
from centgate.libdocs.index.resolve import suggest_similar
from centgate.libdocs.registry.aliases import ALIASES, REPOSITORIES
from centgate.libdocs.registry.client import RegistryClient
from centgate.libdocs.registry.crates import CratesRegistry
from centgate.libdocs.registry.go import GoRegistry
from centgate.libdocs.registry.library_id import parse_library_id
from centgate.libdocs.registry.npm import NpmRegistry
from centgate.libdocs.registry.package_candidates import (
    MAX_CANDIDATES,
    find_candidates,
    find_other_ecosystem,
    names_rust,
)
from centgate.libdocs.registry.package_names import candidate_from_id, normalize_package_name, package_id
from centgate.libdocs.registry.packages import Package, maintenance_score
from centgate.libdocs.registry.parsing import (
    MAX_ARCHIVE_BYTES,
    MAX_METADATA_BYTES,
    download_archive,
    find_newest_of,
    find_version,
    parse_integrity,
    resolve_archive_url,
)
from centgate.libdocs.registry.pypi import PypiRegistry
from centgate.upstream import Upstream, open_session

NOW = datetime(2026, 11, 21, tzinfo=UTC)
README = {"README.md": "# It\n"}


@pytest.fixture
def registry() -> Generator[PackageRegistry]:
    """Run a registry on loopback."""
    with run_package_registry() as publishing:
        yield publishing


@pytest.fixture
async def upstream() -> AsyncGenerator[Upstream]:
    """Open an upstream for the registry."""
    async with open_session() as session:
        yield Upstream("packagedocs", "the registry", session, max_bytes=MAX_ARCHIVE_BYTES, max_wait=5)


async def test_python_package_is_parsed(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_python("Quill", "1.4.0", README, summary="Pens and\u202e ink.")

    package = await PypiRegistry(upstream, registry.url).fetch_latest("quill")

    assert package
    assert (package.id, package.title, package.version) == ("/pypi/quill", "Quill", "1.4.0")
    assert (package.summary, package.repository, package.deprecated) == ("Pens and ink.", "Quill/Quill", None)
    assert (package.releases, package.published) == (40, datetime(2026, 9, 1, 10, 0, 0, 123456, UTC))
    (archive,) = package.archives
    assert (archive.kind, archive.algorithm, len(archive.digest or b"")) == ("sdist", "sha256", 32)
    assert archive.viewer_url
    assert archive.viewer_url.startswith("https://inspector.pypi.io/project/quill/1.4.0/packages/")
    assert archive.viewer_url.endswith("/Quill-1.4.0.tar.gz/")


async def test_javascript_package_is_parsed(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_javascript(
        "@ink/quill",
        "2.0.1",
        README,
        types="index.d.ts",
        dependencies={"@ink/core": "2.0.1", "left-pad": "1"},
    )
    dependencies = {"quill-core": "2.0.1", "quill-any": "^2.0.0", "quillet": "2.0.1"}
    registry.publish_javascript("quill", "2.0.1", README, dependencies=dependencies)

    package = await NpmRegistry(upstream, registry.url).fetch_latest("@ink/quill")
    named = await NpmRegistry(upstream, registry.url).fetch_latest("quill")

    assert named
    assert named.parts == (("quill-core", "2.0.1"),)
    assert package
    assert (package.id, package.version, package.has_types) == ("/npm/@ink~quill", "2.0.1", True)
    assert (package.repository, package.parts) == ("ink/quill", (("@ink/core", "2.0.1"),))
    assert package.archives[0].algorithm == "sha512"
    assert registry.requested_paths == ["/@ink/quill/latest", "/quill/latest"]


async def test_several_packages_of_its_name_are_parts(registry: PackageRegistry, upstream: Upstream) -> None:
    dependencies = {"quill-ink": "^2.0.0", "quill-nib": "^2.1.0", "quill-paper": "^2.0.4", "left-pad": "1"}
    registry.publish_javascript("quill", "2.0.1", README, dependencies=dependencies)

    package = await NpmRegistry(upstream, registry.url).fetch_latest("quill")

    assert package
    assert package.parts == (("quill-ink", "^2.0.0"), ("quill-nib", "^2.1.0"), ("quill-paper", "^2.0.4"))


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        *(("2.0.1", "2.0.1"), ("^3.0.0", "3.1.0"), ("latest", "3.1.0"), ("*", "3.1.0"), ("", "3.1.0")),
        *(("^2.0.0", "2.10.0"), ("~2.1", "2.1.3"), ("2 || 1", "2.10.0"), (">=1.0.0 <2.1.3", "2.1.0")),
        *(("^3.2.0-beta.1", "3.2.0-beta.2"), ("^2.11.0", "2.11.0"), ("^9.0.0", None)),
        *(("workspace:^", "3.1.0"), ("git+https://example.org/ink.git", "3.1.0"), ("npm:pen@1", "3.1.0")),
    ],
)
async def test_part_is_newest_release_in_range(
    wanted: str, version: str | None, registry: PackageRegistry, upstream: Upstream
) -> None:
    published = ("1.0.0", "2.0.1", "2.1.0", "2.1.3", "2.9.9", "2.10.0", "2.11.0", "3.2.0-beta.2", "3.1.0")
    releases = {each: registry.publish_javascript("@quill/ink", each, README) for each in published}
    listing = json.loads(registry.bodies["/@quill/ink"])
    deprecated = {"2.11.0": {**releases["2.11.0"], "deprecated": "broken"}}
    registry.bodies["/@quill/ink"] = json.dumps({**listing, "versions": releases | deprecated}).encode()

    package = await NpmRegistry(upstream, registry.url).fetch_newest_in("@quill/ink", wanted)

    assert (package.version if package else None) == version


async def test_versions_are_listed_only_if_latest_is_not_in_range(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.publish_javascript("@quill/ink", "3.1.0", README)
    npm = NpmRegistry(upstream, registry.url)

    await npm.fetch_newest_in("@quill/ink", "^3.0.0")
    assert registry.requested_paths == ["/@quill/ink/latest"]
    await npm.fetch_newest_in("@quill/ink", "^2.0.0")
    assert registry.requested_paths[1:] == ["/@quill/ink/latest", "/@quill/ink"]


async def test_lists_of_versions_are_read_a_few_at_a_time(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    size = MAX_METADATA_BYTES - 100_000
    parts = [f"@quill/part{number}" for number in range(12)]
    for part in parts:
        registry.publish_javascript(part, "3.1.0", README)
        registry.bodies[f"/{part}"] = b'{"versions": {}}' + b" " * size
    npm = NpmRegistry(upstream, registry.url)
    tracemalloc.start()

    found = await asyncio.gather(*(npm.fetch_newest_in(part, "^2.0.0") for part in parts))
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found == [None] * 12
    # each with its copy and what was read ahead; all at once are 144 MB without copies
    assert used < 5 * MAX_METADATA_BYTES


async def test_comparison_of_many_versions_leaves_time_for_others(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.publish_javascript("@quill/ink", "3.1.0", README)
    versions: dict[str, Any] = {f"1.0.{number}": {} for number in range(8_000)}
    registry.bodies["/@quill/ink"] = json.dumps({"versions": versions}).encode()
    wanted = "||".join(f"{number}.1" for number in range(4, 50))

    search = asyncio.create_task(NpmRegistry(upstream, registry.url).fetch_newest_in("@quill/ink", wanted))
    longest = 0.0
    while not search.done():
        start = time.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, time.monotonic() - start)

    assert await search is None
    assert longest < 0.25  # the comparison takes a second


async def test_part_with_too_many_versions_is_left_out(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_javascript("@quill/ink", "3.1.0", README)
    registry.bodies["/@quill/ink"] = b" " * (MAX_METADATA_BYTES + 1)

    assert await NpmRegistry(upstream, registry.url).fetch_newest_in("@quill/ink", "^2.0.0") is None


async def test_newest_release_is_requested_again_after_a_day(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    hours = 0
    registry.publish_javascript("quill", "2.0.1", README)
    registries = RegistryClient(
        PypiRegistry(upstream, registry.url),
        NpmRegistry(upstream, registry.url),
        crates=CratesRegistry(upstream, registry.url),
        go=GoRegistry(upstream, registry.url, registry.url),
        clock=lambda: hours * 3600.0,
    )
    quill = candidate_from_id("/npm/quill", 1.0)

    package = await registries.fetch_latest(quill)
    hours = 13
    assert package
    complete = await registries.complete_history(package)
    assert await registries.complete_history(package) == complete
    hours = 25
    await registries.fetch_latest(quill)

    assert complete.releases is not None
    assert registry.requested_paths == ["/quill/latest", "/quill", "/quill/latest"]


async def test_viewer_links_exist_only_for_public_registry(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    body = registry.publish_python("quill", "1.0", README)
    body["urls"][0]["url"] = f"{registry.url}/files/quill-1.0.tar.gz"
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()
    registry.publish_javascript("quill", "1.0.0", README)

    python = await PypiRegistry(upstream, registry.url).fetch_latest("quill")
    javascript = await NpmRegistry(upstream, registry.url).fetch_latest("quill")

    assert python
    assert javascript
    assert python.archives[0].viewer_url is None
    assert javascript.archives[0].viewer_url is None


async def test_source_distribution_precedes_wheels_and_large_files_are_skipped(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    body = registry.publish_python("quill", "1.0", README)
    wheel = make_zip({"quill/__init__.py": ""})
    body["urls"] = [
        registry.add_upload("quill-1.0-cp313-cp313-win32.whl", wheel),
        registry.add_upload("quill-1.0-py3-none-any.whl", wheel),
        registry.add_upload("quill-1.0.tar.bz2", b""),
        registry.add_upload("quill-1.0.zip", b"x", size=MAX_ARCHIVE_BYTES + 1),
        *body["urls"],
    ]
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    package = await PypiRegistry(upstream, registry.url).fetch_latest("quill")

    assert package
    names = [archive.url.rpartition("/")[2] for archive in package.archives]
    assert names == ["quill-1.0.tar.gz", "quill-1.0-py3-none-any.whl", "quill-1.0-cp313-cp313-win32.whl"]


async def test_version_is_found_in_any_notation(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_python("quill", "1.4.0", README)
    pypi = PypiRegistry(upstream, registry.url)

    found = [
        await pypi.fetch_release("quill", version) for version in ("1.4.0", "v1.4", "1.4.0.0", "1.5", "0.0.3")
    ]

    assert [each and each.version for each in found] == ["1.4.0", "1.4.0", "1.4.0", None, "0.0.3"]


async def test_missing_list_of_releases_is_requested_by_version(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    body = registry.publish_python("quill", "1.4.0", README)
    del body["releases"]
    registry.bodies["/pypi/quill/json"] = registry.bodies["/pypi/quill/1.4.0/json"] = json.dumps(
        body
    ).encode()
    pypi = PypiRegistry(upstream, registry.url)

    package, missing = await pypi.fetch_release("quill", "1.4.0"), await pypi.fetch_release("quill", "9")

    assert package
    assert package.releases is None
    assert missing is None


async def test_tag_is_no_version(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_javascript("quill", "1.4.0", README)
    registry.bodies["/quill/next"] = registry.bodies["/quill/latest"]
    npm = NpmRegistry(upstream, registry.url)

    found = [await npm.fetch_release("quill", version) for version in ("v1.4.0", "next", "3.0.0")]

    assert [each and each.version for each in found] == ["1.4.0", None, None]


async def test_unknown_package_is_none(registry: PackageRegistry, upstream: Upstream) -> None:
    assert await PypiRegistry(upstream, registry.url).fetch_latest("quill") is None
    assert await NpmRegistry(upstream, registry.url).fetch_latest("@ink/quill") is None
    assert await NpmRegistry(upstream, registry.url).fetch_history("quill") == (None, None)


async def test_releases_are_counted_without_pre_releases(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.publish_javascript("quill", "1.4.0", README, releases=7)
    body = json.loads(registry.bodies["/quill"])
    body["versions"]["2.0.0-beta.1"] = {}
    registry.bodies["/quill"] = json.dumps(body).encode()

    releases, published = await NpmRegistry(upstream, registry.url).fetch_history("quill")

    assert (releases, published) == (7, datetime(2026, 9, 1, 10, 0, 0, 123000, UTC))


async def test_newest_of_major_version_is_found(registry: PackageRegistry, upstream: Upstream) -> None:
    for version in ("4.9.0", "4.17.2", "5.0.0"):
        registry.publish_javascript("@types/quill", version, README)
    body = json.loads(registry.bodies["/@types/quill"])
    body["versions"] = {version: {} for version in ("4.9.0", "4.17.2", "4.18.0-rc.1", "5.0.0")}
    registry.bodies["/@types/quill"] = json.dumps(body).encode()

    package = await NpmRegistry(upstream, registry.url).fetch_latest_of_major("@types/quill", "4")

    assert package
    assert package.version == "4.17.2"


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"classifiers": ["Development Status :: 7 - Inactive"]}, "inactive"),
        ({"classifiers": None, "project_urls": None, "summary": None}, None),
    ],
)
async def test_inactive_project_is_deprecated(
    info: dict[str, Any], said: str | None, registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.publish_python("quill", "1.0", README, **info)

    package = await PypiRegistry(upstream, registry.url).fetch_latest("quill")

    assert package
    assert package.deprecated == said


async def test_yanked_release_is_deprecated(registry: PackageRegistry, upstream: Upstream) -> None:
    body = registry.publish_python("quill", "1.0", README)
    body["urls"][0] |= {"yanked": True, "yanked_reason": "loses\x07 data"}
    registry.bodies["/pypi/quill/json"] = json.dumps(body).encode()

    package = await PypiRegistry(upstream, registry.url).fetch_latest("quill")

    assert package
    assert package.deprecated == 'yanked: "loses data"'


@pytest.mark.parametrize(
    "body",
    [
        b'{"info": 7}',
        b'{"info": {"name": "quill"}}',
        b'{"info": {"name": "quill", "version": "../../x"}}',
        b'{"info": {"name": "other", "version": "1.0"}}',
        b'{"info": {"name": "quill", "version": "1.0"}, "releases": 3}',
        b"[]",
        b"null",
        b"<html>",
        b'{"info": {"name": "quill", "vers',
    ],
)
async def test_invalid_pypi_response_is_failure(
    body: bytes, registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.bodies["/pypi/quill/json"] = body

    with pytest.raises((ProviderError, ValueError, LookupError, TypeError)):
        await PypiRegistry(upstream, registry.url).fetch_latest("quill")


@pytest.mark.parametrize(
    "body",
    [
        b"7",
        b"[]",
        b"{}",
        b'{"name": "other", "version": "1.0.0"}',
        b'{"name": "quill", "version": 1}',
        b"<html>",
    ],
)
async def test_invalid_npm_response_is_failure(
    body: bytes, registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.bodies["/quill/latest"] = body

    with pytest.raises((ProviderError, ValueError, LookupError, TypeError)):
        await NpmRegistry(upstream, registry.url).fetch_latest("quill")


async def test_invalid_fields_of_javascript_package_are_unknown(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.publish_javascript(
        "quill",
        "1.0.0",
        README,
        description=7,
        repository=[],
        dependencies=[],
        exports={"types": 1},
        deprecated=True,
    )

    package = await NpmRegistry(upstream, registry.url).fetch_latest("quill")

    assert package
    assert (package.summary, package.repository, package.parts) == (None, None, ())
    assert package.deprecated == "deprecated"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://files.pythonhosted.org/packages/a/b/c/x.tar.gz", True),
        ("../../packages/x.tar.gz", True),
        ("http://127.0.0.9:8000/packages/x.tar.gz", True),
        ("https://127.0.0.9:8000/packages/x.tar.gz", True),
        ("http://files.pythonhosted.org/x.tar.gz", False),
        ("https://files.pythonhosted.org:444/x.tar.gz", False),
        ("https://files.pythonhosted.org@evil.example/x.tar.gz", False),
        ("https://files.pythonhosted.org.evil.example/x.tar.gz", False),
        ("http://127.0.0.9:8001/x.tar.gz", False),
        ("http://user@127.0.0.9:8000/x.tar.gz", False),
        ("http://169.254.169.254/x.tar.gz", False),
        ("file:///etc/passwd", False),
        ("//169.254.169.254/x", False),
        (None, False),
        (7, False),
    ],
)
def test_archives_come_from_registry_only(url: Any, allowed: bool) -> None:  # noqa: FBT001 - a case
    whole = resolve_archive_url(url, "http://127.0.0.9:8000/pypi/x/json", "https://files.pythonhosted.org")

    assert (whole is not None) is allowed


def test_https_registry_is_not_left_for_http() -> None:
    assert (
        resolve_archive_url("http://host.example/x", "https://host.example/y", "https://files.example")
        is None
    )


@pytest.mark.parametrize(
    ("written", "algorithm"),
    [
        ("sha512-" + "A" * 86 + "==", "sha512"),
        ("sha1-AAAA sha256-" + "A" * 43 + "=", "sha256"),
        ("sha512-???", None),
        ("md5-AAAA", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_digests_are_parsed(written: Any, algorithm: str | None) -> None:
    known = parse_integrity(written)

    assert (known and known[0]) == algorithm


@given(st.text(max_size=30), st.lists(st.text(max_size=12), max_size=5))
def test_any_version_can_be_compared(asked: str, known: list[str]) -> None:
    found = find_version(asked, dict.fromkeys(known))

    assert found is None or found in known


@pytest.mark.parametrize(
    ("version", "meant"),
    [
        *(("2", "2.10.0"), ("v2.9", "2.9.3"), ("2.x", "2.10.0"), ("0", None), ("2.9.1", None), ("two", None)),
        *(
            ("3", None),
            ("2.9.3.1", None),
            ("20", None),
            ("2.", None),
            ("V2.X", "2.10.0"),
            ("2.x.x", "2.10.0"),
        ),
    ],
)
def test_short_version_stands_for_newest_release(version: str, meant: str | None) -> None:
    usable = ["2.9.3", "2.10.0", "2.9.1", "3.0.0rc1", "1.0", "2.11.0.dev1"]

    assert find_newest_of(version, usable) == meant


@pytest.mark.parametrize(
    ("version", "meant"),
    [
        *(("24", "v24.0.9+incompatible"), ("v24.0.2", "v24.0.2+incompatible"), ("0.17", "0.17.1+1.8.1")),
        *(("0.17.0", "0.17.0+1.7.2"), ("0.17.0+1.7.1", None)),
    ],
)
def test_build_metadata_is_no_part_of_version(version: str, meant: str | None) -> None:
    published = ["v24.0.9+incompatible", "v24.0.2+incompatible", "0.17.1+1.8.1", "0.17.0+1.7.2"]

    assert find_version(version, dict.fromkeys(published), published) == meant


async def test_crate_with_build_metadata_has_newest_release(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    for version in ("0.9.0", "0.17.0+1.8.1"):
        registry.publish_rust("quill", version, README)

    newest = await CratesRegistry(upstream, registry.url).fetch_latest("quill")

    assert newest
    assert newest.version == "0.17.0+1.8.1"


async def test_short_version_of_npm_is_newest_release_of_it(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    for version in ("4.9.0", "4.17.2", "5.0.0"):
        registry.publish_javascript("quill", version, README)
    body = json.loads(registry.bodies["/quill"])
    body["versions"] = {version: {} for version in ("4.9.0", "4.17.2", "4.18.0-rc.1", "5.0.0")}
    registry.bodies["/quill"] = json.dumps(body).encode()
    npm = NpmRegistry(upstream, registry.url)

    found = [await npm.fetch_release("quill", version) for version in ("4", "v4.9", "3")]

    assert [each and each.version for each in found] == ["4.17.2", "4.9.0", None]


async def test_short_version_of_npm_is_no_deprecated_release(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    for version in ("3.9.0", "4.9.0", "4.9.1", "5.0.0"):
        registry.publish_javascript("quill", version, README)
    body = json.loads(registry.bodies["/quill"])
    withdrawn = {"deprecated": "published by mistake"}
    body["versions"] = {"3.9.0": withdrawn, "4.9.0": {"deprecated": ""}, "4.9.1": withdrawn, "5.0.0": {}}
    registry.bodies["/quill"] = json.dumps(body).encode()
    npm = NpmRegistry(upstream, registry.url)

    found = [await npm.fetch_release("quill", version) for version in ("4", "4.9.1", "3")]

    assert [each and each.version for each in found] == ["4.9.0", "4.9.1", "3.9.0"]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("httpx", "/pypi/httpx"),
        ("next.js", "/npm/next"),
        ("NextJS", "/npm/next"),
        ("Vue.js", "/npm/vue"),
        ("express.js", "/npm/express"),
        ("React Query", "/npm/@tanstack~react-query"),
        ("sklearn", "/pypi/scikit-learn"),
        ("scikit learn", "/pypi/scikit-learn"),
        ("bs4", "/pypi/beautifulsoup4"),
        ("cv2", "/pypi/opencv-python"),
        ("PIL", "/pypi/pillow"),
        ("node-fetch", "/npm/node-fetch"),
        ("tailwind", "/npm/tailwindcss"),
        ("react router", "/npm/react-router"),
        ("@tanstack/react-query", "/npm/@tanstack~react-query"),
        ("/npm/@tanstack~react-query", "/npm/@tanstack~react-query"),
        ("tiangolo/fastapi", "/pypi/fastapi"),
        ("vercel/next.js", "/npm/next"),
        ("https", "/pypi/https"),
        ("psycopg 3", "/pypi/psycopg"),
        ("sqlalchemy orm python", "/pypi/sqlalchemy-orm-python"),
        ("dart sass", "/npm/sass"),
        *((name, f"/crates/{name}") for name in ("clap", "hyper", "diesel", "bevy", "sqlx", "serde_json")),
        ("serde json", "/crates/serde_json"),
        ("cargo watch", "/crates/watch"),
        ("cobra", "/go/github.com~spf13~cobra"),
        ("viper", "/go/github.com~spf13~viper"),
        ("echo", "/go/github.com~labstack~echo~v4"),
    ],
)
def test_most_likely_candidate_of_name_is_first(name: str, first: str) -> None:
    found = find_candidates(name)

    assert found[0].id == first


def test_version_after_name_is_ignored() -> None:
    assert "/npm/react" in [each.id for each in find_candidates("react 18")]


@pytest.mark.parametrize(
    "name",
    [
        *("react", "requests", "fastapi", "express", "numpy", "java script parser", "java python bridge"),
        *("gem", "php", "rust", "swift", "/npm/sidekiq", "react native swift", "ruby-parser"),
    ],
)
def test_name_of_supported_registry_has_no_other_ecosystem(name: str) -> None:
    assert find_other_ecosystem(name) is None
    assert not names_rust(name)


@given(st.text(max_size=200))
def test_any_name_gives_few_distinct_candidates(name: str) -> None:
    found = find_candidates(name)

    assert len({each.id for each in found}) == len(found) <= MAX_CANDIDATES
    assert all(0 < each.similarity <= 1 for each in found)
    assert all(normalize_package_name(each.registry, each.name) == each.name for each in found)


def test_alias_tables_name_valid_packages() -> None:
    for package in (*ALIASES, *REPOSITORIES.values()):
        _, registry, name = package.split("/")

        assert registry in ("pypi", "npm", "go")
        candidate = candidate_from_id(package, 1.0)
        assert normalize_package_name(candidate.registry, name) == candidate.name
        assert package_id(candidate.registry, candidate.name) == package


@pytest.mark.parametrize(
    ("written", "first", "version", "repository"),
    [
        ("/pypi/httpx", "/pypi/httpx", None, None),
        ("/pypi/HTTPX/0.27.0", "/pypi/httpx", "0.27.0", None),
        ("/pypi/httpx@0.27.0", "/pypi/httpx", "0.27.0", None),
        ("/pypi/httpx/latest", "/pypi/httpx", None, None),
        ("/npm/react@Latest", "/npm/react", None, None),
        ("/npm/@tanstack~react-query", "/npm/@tanstack~react-query", None, None),
        ("/npm/@tanstack~react-query/5.0.0", "/npm/@tanstack~react-query", "5.0.0", None),
        ("/npm/@tanstack~react-query@5.0.0", "/npm/@tanstack~react-query", "5.0.0", None),
        ("/npm/@tanstack/react-query", "/npm/@tanstack~react-query", None, None),
        ("/encode/httpx", "/pypi/httpx", None, "encode/httpx"),
        ("/encode/httpx/v0.27.0", "/pypi/httpx", "v0.27.0", "encode/httpx"),
        ("/tiangolo/fastapi", "/pypi/fastapi", None, "tiangolo/fastapi"),
    ],
)
def test_ids_are_parsed(written: str, first: str, version: str | None, repository: str | None) -> None:
    wanted = parse_library_id(written)

    assert wanted
    assert (wanted.packages[0].id, wanted.version) == (first, version)
    assert wanted.repository in (repository, None)


@pytest.mark.parametrize(
    "written", ["", "/", "/pypi", "/pypi/-", "/npm/..", "/a/b/c/d", "/pypi/x/..", "/pypi/x@"]
)
def test_invalid_id_is_none(written: str) -> None:
    assert parse_library_id(written) is None


def build_package(**more: Any) -> Package:
    """Return a well-maintained package."""
    known: dict[str, Any] = {
        "registry": "npm",
        "name": "quill",
        "title": "quill",
        "version": "1.0.0",
        "summary": "Pens.",
        "repository": "ink/quill",
        "deprecated": None,
        "releases": 90,
        "published": NOW - timedelta(days=30),
        "archives": (),
    }
    return Package(**(known | more))


@pytest.mark.parametrize(
    "worse",
    [
        {"summary": None},
        {"summary": "Reserved package name."},
        {"summary": "npm security holding package"},
        {"repository": None},
        {"repository": "somebody/else"},
        {"deprecated": "use ink"},
        {"releases": 1},
        {"published": NOW - timedelta(days=3000)},
        {"published": None},
    ],
)
def test_poorly_maintained_package_ranks_lower(worse: dict[str, Any]) -> None:
    assert 0 <= maintenance_score(build_package(**worse), NOW) < maintenance_score(build_package(), NOW) <= 1


def test_similar_indexed_names_are_found() -> None:
    found = suggest_similar("fastap", [("pypi", "fastapi"), ("npm", "express")])

    assert found[0].id == "/pypi/fastapi"
    assert found[0].similarity < 1


async def test_too_long_list_of_versions_is_ignored(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_javascript("quill", "1.0.0", {})
    registry.bodies["/quill"] = b" " * (MAX_METADATA_BYTES + 1)
    npm = NpmRegistry(upstream, registry.url)

    newest = await npm.fetch_latest_of_major("quill", "1")

    assert newest is None
    with pytest.raises(AnswerTooLong):
        await npm.fetch_history("quill")


async def test_pre_release_is_not_newest_version(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_python("quill", "1.10.0", README)
    stable = json.loads(registry.bodies["/pypi/quill/json"])["releases"]
    newest = registry.publish_python("quill", "2.0.0rc1", README)
    newest["releases"] |= stable | {"1.9.0": stable["1.10.0"], "1.11.0": []}
    registry.bodies["/pypi/quill/json"] = json.dumps(newest).encode()
    registry.publish_javascript("quill", "3.1.4", README)
    listing = json.loads(registry.bodies["/quill"])
    registry.publish_javascript("quill", "4.0.0-beta.1", README)
    registry.bodies["/quill"] = json.dumps(listing).encode()

    python = await PypiRegistry(upstream, registry.url).fetch_latest("quill")
    javascript = await NpmRegistry(upstream, registry.url).fetch_latest("quill")

    assert python
    assert (python.version, len(python.archives)) == ("1.10.0", 1)
    assert javascript
    assert javascript.version == "3.1.4"


async def test_library_with_only_pre_releases_has_newest(
    registry: PackageRegistry, upstream: Upstream
) -> None:
    registry.publish_python("quill", "0.1.0a1", README, releases=1)
    registry.publish_javascript("quill", "0.1.0-alpha", README, releases=1)

    python = await PypiRegistry(upstream, registry.url).fetch_latest("quill")
    javascript = await NpmRegistry(upstream, registry.url).fetch_latest("quill")

    assert python
    assert python.version == "0.1.0a1"
    assert javascript
    assert javascript.version == "0.1.0-alpha"


async def test_crate_has_newest_stable_release(registry: PackageRegistry, upstream: Upstream) -> None:
    registry.publish_rust("quill", "1.9.0", README)
    registry.publish_rust("quill", "1.10.0", README)
    site = "https://quill.example"
    links = {"repository": "https://github.com/ink/quill", "homepage": site, "documentation": None}
    body = registry.publish_rust("quill", "2.0.0-rc.1", README, **links)
    crates = CratesRegistry(upstream, registry.url)

    newest = await crates.fetch_latest("quill")
    body["versions"][1]["yanked"] = True
    registry.bodies["/api/v1/crates/quill"] = json.dumps(body).encode()
    without_yanked = await crates.fetch_latest("quill")
    of_short_version = await crates.fetch_release("quill", "1")
    requested = await crates.fetch_release("quill", "2.0.0-rc.1")

    assert newest
    assert (newest.id, newest.version, newest.releases) == ("/crates/quill", "1.10.0", 3)
    assert (newest.repository, newest.sites) == ("ink/quill", (f"{site}/",))
    assert newest.archives[0].kind == "crate"
    assert (
        await download_archive(crates.upstream, newest.archives[0])
        == registry.bodies["/crates/quill/quill-1.10.0.crate"]
    )
    assert without_yanked
    assert without_yanked.version == "1.9.0"
    assert of_short_version == without_yanked
    assert requested
    assert requested.version == "2.0.0-rc.1"
    assert await crates.fetch_latest("unknown") is None
