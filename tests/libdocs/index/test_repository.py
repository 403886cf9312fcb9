"""Repositories of libraries on loopback, read from the archive of the release's tag."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from facilitators import build_settings
from package_registry import PackageRegistry, make_tar, run_package_registry
from small_site import SmallSite, serve_small_site

from centgate.libdocs.index import repository
from centgate.libdocs.index.build_job import DownloadedArchive, build_index
from centgate.libdocs.index.index_file import REPOSITORY_FOLDER, read_metadata
from centgate.libdocs.index.repository import list_tags
from centgate.libdocs.libraries import DocSnippet
from centgate.libdocs.registry.packages import Archive, Package
from centgate.libdocs.registry.parsing import find_repository, is_on_github
from centgate.providers.packagedocs import PackageDocs
from centgate.resources import open_resources
from centgate.settings import ProviderSettings

GZIP = "application/x-gzip"
README = "# quill\n\nPens for people who write letters to one another, and to themselves.\n"
GUIDE = """# Dip a pen

The ink well is opened first, then the pen is dipped.

```python
well = quill.open_well()
quill.dip(well)
```
"""
INNER = 'def dip_inner():\n    """Dip a pen into the ink well, and wait until it is wet."""\n'
FILES = {
    "quill-1.4.0/README.md": "# Quill of the repository\n\nPens, told at greater length.\n",
    "quill-1.4.0/docs/dip.md": GUIDE,
    "quill-1.4.0/examples/letters.py": "import quill\n\npen = quill.Pen()\npen.write('a letter')\n",
    "quill-1.4.0/quill/inner.py": INNER,
    "quill-1.4.0/blog/docs/news.md": GUIDE.replace("Dip", "News: dip"),
}


@pytest.fixture
def registry() -> Generator[PackageRegistry]:
    with run_package_registry() as publishing:
        yield publishing


@pytest.fixture
def github() -> Generator[SmallSite]:
    with serve_small_site() as standing:
        yield standing


async def query_docs(
    registry: PackageRegistry, folder: Path, github: SmallSite, topic: str, *, url: str | None = None
) -> list[DocSnippet]:
    packages = ProviderSettings(url=registry.url)
    providers = {
        "packagedocs_pypi": packages,
        "packagedocs_npm": packages,
        "packagedocs_github": ProviderSettings(url=github.url if url is None else url),
    }
    settings = build_settings(
        folder, "http://127.0.0.1:9", providers=providers, fetch_allowed=(github.address,)
    )
    changes: dict[str, Any] = {"packagedocs_folder": folder / "docs", "packagedocs_sites": False}
    settings = settings.model_copy(update=changes)
    async with open_resources(settings) as resources:
        return await PackageDocs(settings, resources).query_docs("/pypi/quill", topic, 2_000)


def publish_package(registry: PackageRegistry, repository_url: str = "https://github.com/ink/quill") -> None:
    registry.publish_python("quill", "1.4.0", {"README.md": README}, project_urls={"Source": repository_url})


async def test_docs_and_examples_of_tag_are_read(
    registry: PackageRegistry, github: SmallSite, tmp_path: Path
) -> None:
    publish_package(registry)
    github.respond("/ink/quill/archive/refs/tags/1.4.0.tar.gz", make_tar(FILES), GZIP)

    first, *others = await query_docs(registry, tmp_path, github, "dip a pen into the ink well")
    written = await query_docs(registry, tmp_path, github, "write letters")

    assert (first.title, first.code) == ("Dip a pen", "well = quill.open_well()\nquill.dip(well)")
    assert (first.origin, first.version) == ("repository", "1.4.0")
    assert first.source_url == f"{github.url}/ink/quill/blob/1.4.0/docs/dip.md"
    assert github.requested_paths[:2] == [
        "/ink/quill/archive/refs/tags/v1.4.0.tar.gz",
        "/ink/quill/archive/refs/tags/1.4.0.tar.gz",
    ]
    assert "Letters" in {each.title for each in written if each.origin == "repository"}
    shown = "\n".join(f"{each.title} {each.text} {each.code}" for each in [first, *others, *written])
    assert "dip_inner" not in shown
    assert "News" not in shown
    assert "of the repository" not in shown  # the README of the package itself


@pytest.mark.parametrize("case", ["off", "elsewhere", "missing", "broken", "damaged"])
async def test_package_without_repository_is_read(
    case: str, registry: PackageRegistry, github: SmallSite, tmp_path: Path
) -> None:
    publish_package(registry, f"https://{'gitlab' if case == 'elsewhere' else 'github'}.com/ink/quill")
    if case == "broken":
        github.respond("/ink/quill/archive/refs/tags/v1.4.0.tar.gz", "<html>", "text/html")
    elif case == "damaged":
        github.respond("/ink/quill/archive/refs/tags/v1.4.0.tar.gz", "no archive", GZIP)
    elif case != "missing":
        github.respond("/ink/quill/archive/refs/tags/v1.4.0.tar.gz", make_tar(FILES), GZIP)

    snippets = await query_docs(registry, tmp_path, github, "pens", url="" if case == "off" else None)

    assert {each.origin for each in snippets} == {"package"}
    assert bool(github.requested_paths) == (case in ("missing", "broken", "damaged"))


def test_unreadable_repository_makes_index_incomplete(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"no archive")
    archive = Archive("repository", "https://github.com/ink/quill", "sha256", None, 10, None)
    downloaded = DownloadedArchive(archive, tmp_path / "archive", REPOSITORY_FOLDER)

    outcome = build_index(str(tmp_path / "index"), [downloaded], {}, README)

    assert outcome.chunks
    assert "repository" in read_metadata(tmp_path / "index")["incomplete"]


@pytest.mark.extended
async def test_hanging_repository_is_skipped(
    registry: PackageRegistry, github: SmallSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_package(registry)
    monkeypatch.setattr(repository, "REPOSITORY_SECONDS", 0.3)
    github.silent_paths.add("/ink/quill/archive/refs/tags/v1.4.0.tar.gz")

    snippets = await query_docs(registry, tmp_path, github, "pens")

    assert {each.origin for each in snippets} == {"package"}


def test_tag_matches_release() -> None:
    package = Package("npm", "@ink/quill", "@ink/quill", "2.0.1", None, "ink/quill", None, None, None, ())

    assert list_tags(package) == ["v2.0.1", "2.0.1", "@ink/quill@2.0.1", "quill-2.0.1"]


def test_first_repository_decides_about_host() -> None:
    links = ["https://quill.example", "https://gitlab.com/ink/quill", "https://github.com/else/quill"]

    assert (find_repository(links), is_on_github(links)) == ("ink/quill", False)
    assert is_on_github(links[2:])
