"""An operator's own files under `/.well-known/`, and what is refused at the start."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest
from buyer import ApiFactory
from centgate_process import run_centgate

from centgate.api.app import create_routes
from centgate.api.wellknown_files import (
    MAX_FILE_BYTES,
    MAX_FILES,
    RESERVED_NAMES,
    WELL_KNOWN_PREFIX,
    UnservableFile,
    read_wellknown_files,
)
from centgate.settings import Settings
from centgate.website.api_snapshot import read_snapshot
from centgate.website.files import build_files

pytestmark = pytest.mark.extended


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An operator's folder, empty."""
    made = tmp_path / "well-known"
    made.mkdir()
    return made


def test_file_is_served_unchanged(api: ApiFactory, settings: Settings, folder: Path) -> None:
    (folder / "402index-verify.txt").write_bytes(b"f00d\xff\n")
    client = api(settings.model_copy(update={"well_known": folder}))

    response = client.get("/.well-known/402index-verify.txt")

    assert response.content == b"f00d\xff\n"
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert client.head("/.well-known/402index-verify.txt").headers["Content-Length"] == "6"
    assert client.get("/.well-known/402index-verify").status_code == 404


def test_files_are_read_once(api: ApiFactory, settings: Settings, folder: Path) -> None:
    file = folder / "proof.txt"
    file.write_text("first")
    client = api(settings.model_copy(update={"well_known": folder}))
    file.write_text("second")
    (folder / "later.txt").write_text("late")

    assert client.get("/.well-known/proof.txt").text == "first"
    assert client.get("/.well-known/later.txt").status_code == 404


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.JSON", "application/json"),
        ("a.html", "text/html; charset=utf-8"),
        ("apple-app-site-association", "text/plain; charset=utf-8"),
        ("a.exe", "text/plain; charset=utf-8"),
    ],
)
def test_type_follows_suffix(folder: Path, name: str, media_type: str) -> None:
    (folder / name).write_text("x")

    (file,) = read_wellknown_files(folder)

    assert (file.name, file.path, file.media_type) == (name, f"/.well-known/{name}", media_type)


def test_without_folder_there_are_no_files() -> None:
    assert read_wellknown_files(None) == ()


def test_hidden_files_stay_hidden(folder: Path) -> None:
    (folder / ".DS_Store").write_text("x")
    (folder / ".git").mkdir()

    assert read_wellknown_files(folder) == ()


def test_folder_of_internal_links_is_served(folder: Path) -> None:
    """As container platforms mount configuration."""
    (folder / "..2026").mkdir()
    (folder / "..2026" / "proof.txt").write_text("x")
    (folder / "..data").symlink_to("..2026")
    (folder / "proof.txt").symlink_to("..data/proof.txt")

    assert [file.name for file in read_wellknown_files(folder)] == ["proof.txt"]


def test_maximum_size_and_number_are_served(folder: Path) -> None:
    for number in range(MAX_FILES):
        (folder / f"{number}.txt").write_bytes(b"x")
    (folder / "0.txt").write_bytes(b"x" * MAX_FILE_BYTES)

    assert len(read_wellknown_files(folder)) == MAX_FILES
    assert len(read_wellknown_files(folder)[0].content) == MAX_FILE_BYTES


@pytest.mark.parametrize(
    "name", ["with space.txt", "umlaut-ä.txt", "per%20cent.txt", "a+b", "x" * 101, "{a}"]
)
def test_other_characters_in_name_are_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("x")

    with pytest.raises(UnservableFile, match="letters, digits, dots, dashes and underscores"):
        read_wellknown_files(folder)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_file_that_hides_own_path_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text("x")

    with pytest.raises(UnservableFile, match="would hide"):
        read_wellknown_files(folder)


def test_subfolder_is_refused(folder: Path) -> None:
    (folder / "pki-validation").mkdir()

    with pytest.raises(UnservableFile, match="folders are not served"):
        read_wellknown_files(folder)


def test_link_out_of_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (folder / "proof.txt").symlink_to("../secret")

    with pytest.raises(UnservableFile, match="outside the folder"):
        read_wellknown_files(folder)


@pytest.mark.parametrize("target", ["nothing", "proof.txt"])
def test_broken_link_is_refused(folder: Path, target: str) -> None:
    (folder / "proof.txt").symlink_to(target)

    with pytest.raises(UnservableFile, match=r"CENTGATE_WELL_KNOWN: .*proof\.txt is not a file"):
        read_wellknown_files(folder)


def test_pipe_is_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe.txt")

    with pytest.raises(UnservableFile, match="is not a file"):
        read_wellknown_files(folder)


def test_too_long_file_is_refused(folder: Path) -> None:
    (folder / "long.txt").write_bytes(b"x" * (MAX_FILE_BYTES + 1))

    with pytest.raises(UnservableFile, match=r"longer than 64 KiB"):
        read_wellknown_files(folder)


def test_too_many_files_are_refused(folder: Path) -> None:
    for number in range(MAX_FILES + 1):
        (folder / f"{number}.txt").write_bytes(b"x")

    with pytest.raises(UnservableFile, match="contains 101 files"):
        read_wellknown_files(folder)


def test_every_own_path_is_reserved(reader: httpx.Client, api_settings: Settings) -> None:
    address = str(reader.base_url).rstrip("/")
    paths = {route.path for route in create_routes(api_settings)} | build_files(
        read_snapshot(address, None)
    ).keys()

    made = {path.split("/")[2] for path in paths if path.startswith(WELL_KNOWN_PREFIX)}

    assert made <= RESERVED_NAMES


@pytest.mark.parametrize(("trouble", "workers"), [("absent", "1"), ("file", "2"), ("hides", "1")])
def test_invalid_folder_ends_start_with_message(folder: Path, trouble: str, workers: str) -> None:
    given = folder / "absent" if trouble == "absent" else folder
    if trouble == "hides":
        (folder / "x402").write_text("{}")
    if trouble == "file":
        given = folder / "file.txt"
        given.write_text("x")
    environment = {**os.environ, "CENTGATE_WELL_KNOWN": str(given)}

    done = run_centgate(["serve", "--port", "0", "--workers", workers], env=environment, cwd=folder.parent)

    assert done.returncode == 2
    assert "CENTGATE_WELL_KNOWN: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "ready" not in done.stdout
