"""Website as files, which any static host can serve."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser_session import ServedSite
from lxml import html as lxml
from msgspec.structs import replace
from site_command import run_build

from centgate.api.wellknown_files import WellKnownFile
from centgate.website.page_changes import read_versions
from centgate.website.static_build import UnwritableFile, write_site

READER: Any = lxml
CENTGATE = Path(sys.executable).with_name("centgate")
WAIT = 30.0


@pytest.fixture(scope="session")
def built(shop: ServedSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The website, written to a folder."""
    out = tmp_path_factory.mktemp("built")
    write_site(shop.deployment, out)
    return out


@pytest.fixture(scope="session")
def host(built: Path) -> Generator[httpx.Client]:
    """Client of Python's own server of static files, which follows redirects."""
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(
        command, cwd=built, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        port = server.stdout.readline().split(" port ")[1].split()[0]
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, timeout=WAIT, follow_redirects=True) as client:
            yield client
        server.terminate()


def test_all_served_files_are_written(shop: ServedSite, built: Path) -> None:
    for file in shop.files.values():
        assert (built / file.static_path).read_bytes() == file.content, file.path


def test_missing_file_of_earlier_build_loses_its_time_alone(shop: ServedSite, tmp_path: Path) -> None:
    write_site(shop.deployment, tmp_path)
    complete = read_versions(tmp_path, shop.deployment.site)

    (tmp_path / "start.md").unlink()

    rest = {path: version for path, version in complete.items() if path != "/start"}
    assert len(rest) == len(complete) - 1
    assert read_versions(tmp_path, shop.deployment.site) == rest


@pytest.mark.extended
def test_plain_host_serves_every_page_and_its_links(
    shop: ServedSite, built: Path, host: httpx.Client
) -> None:
    links: set[str] = set()
    for file in built.rglob("*.html"):
        tree = READER.document_fromstring(file.read_bytes().decode())
        links.update(tree.xpath("//a/@href | //link[@rel='stylesheet']/@href | //script/@src"))

    inside = sorted({link.partition("#")[0] for link in links if link.startswith("/")})

    assert {"/site.css", "/page.js", "/services/token-risk", "/llms.txt"} <= set(inside)
    assert {link: host.get(link).status_code for link in inside if host.get(link).status_code != 200} == {}


def test_hosts_get_headers_and_404_page(shop: ServedSite, built: Path) -> None:
    headers = (built / "_headers").read_text()

    rules = {block.splitlines()[0]: block for block in ("\n" + headers).split("\n/") if block.strip()}
    assert "Content-Security-Policy: default-src 'none'" in rules["*"]
    assert "Content-Type: text/markdown" in rules["services/token-risk.md"]
    assert "application/linkset+json" in rules[".well-known/api-catalog"]
    assert len(rules) <= 100  # the maximum that Cloudflare reads
    assert (built / "404.html").is_file()


@pytest.mark.extended
def test_operator_files_are_written(shop: ServedSite, tmp_path: Path) -> None:
    own = WellKnownFile("proof.txt", "text/plain; charset=utf-8", b"proof")

    write_site(shop.deployment, tmp_path, [own])

    assert (tmp_path / ".well-known" / "proof.txt").read_bytes() == b"proof"


@pytest.mark.extended
@pytest.mark.parametrize("slug", ["../../outside", "a/../../../outside"])
def test_nothing_is_written_outside_folder(shop: ServedSite, tmp_path: Path, slug: str) -> None:
    first, *others = shop.deployment.services
    hostile = replace(shop.deployment, services=(first.model_copy(update={"slug": slug}), *others))

    with pytest.raises(UnwritableFile, match="nothing was written"):
        write_site(hostile, tmp_path / "out" / "site")

    assert list(tmp_path.rglob("*")) == []


@pytest.mark.extended
def test_symlink_in_folder_is_refused(shop: ServedSite, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "services").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UnwritableFile, match="nothing was written"):
        write_site(shop.deployment, tmp_path / "out")

    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.extended
def test_existing_files_are_kept(shop: ServedSite, tmp_path: Path) -> None:
    (tmp_path / "CNAME").write_text("site.example")

    write_site(shop.deployment, tmp_path)

    assert (tmp_path / "CNAME").read_text() == "site.example"


@pytest.mark.extended
def test_command_writes_site_with_given_url(shop: ServedSite, tmp_path: Path) -> None:
    arguments = [
        "--api",
        shop.deployment.api,
        "--url",
        "https://site.example/",
        "--out",
        str(tmp_path / "out"),
    ]
    command = [CENTGATE, "site", "build", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert 'href="https://site.example/paying"' in (tmp_path / "out" / "paying" / "index.html").read_text()
    assert "](https://site.example/paying.md)" in (tmp_path / "out" / "index.md").read_text()


@pytest.mark.extended
def test_command_reports_its_default_url(shop: ServedSite, tmp_path: Path) -> None:
    done = run_build("--api", shop.deployment.api, "--out", str(tmp_path))

    assert done.exit_code == 0
    assert "--url is not set" in done.stderr


@pytest.mark.extended
def test_unwritable_folder_is_reported(shop: ServedSite, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")

    done = run_build(
        "--api", shop.deployment.api, "--url", "https://site.example", "--out", str(tmp_path / "out")
    )

    assert done.exit_code == 1
    assert done.stderr.startswith(f"centgate: cannot write {tmp_path / 'out'}")
