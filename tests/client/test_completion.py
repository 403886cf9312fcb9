"""Shell completion: the protocol that `--show-completion` sets up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from buyers_shell import Shell
from hostile import HostileApi, PlannedResponse

from centgate.server import run_in_thread
from centgate.settings import Settings

pytestmark = pytest.mark.extended

NOBODY = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """URL of an API."""
    folder = tmp_path_factory.mktemp("api")
    with run_in_thread(Settings(port=0, database_url=f"sqlite:///{folder / 'journal.db'}")) as address:
        yield address


def complete(shell: Shell, *words: str, times: int = 5, **settings: str) -> list[str]:
    """Return bash's completions of the last word; retry if the API took longer than a second."""
    for _ in range(times):
        done = shell(
            COMP_WORDS="\n".join(("centgate", *words)),
            COMP_CWORD=str(len(words)),
            _CENTGATE_COMPLETE="complete_bash",
            **settings,
        )
        assert done.stderr == ""
        if done.stdout.strip():
            return done.stdout.split()
    return []


@pytest.fixture
def shell(url: str, tmp_path: Path) -> Shell:
    """A buyer at the API."""
    return Shell(tmp_path, {"CENTGATE_API_URL": url})


@pytest.mark.parametrize(
    ("typed", "offers"),
    [
        ("call token-r", "token-risk"),
        ("services libdocs-q", "libdocs-query-docs"),
        ("call crawler-search ", "query= limit="),
        ("call token-risk chain=b", "chain=base chain=bsc"),
        ("call token-risk chain = b", "base bsc"),
        ("call token-risk chain =", "arbitrum base bsc ethereum optimism polygon"),
        ("call token-risk chain=base t", "tokenAddress="),
        ("call crawler-scrape only", "onlyMainContent=true onlyMainContent=false"),
        ("call no-such-service ", ""),
        ("call ../../etc ", ""),
        ("wal", "wallet"),
        ("wallet re", "receipts"),
    ],
)
def test_bash_gets_possible_continuations(shell: Shell, typed: str, offers: str) -> None:
    assert complete(shell, *typed.split(" "), times=5 if offers else 1) == offers.split()


def test_completion_uses_named_api(shell: Shell, url: str) -> None:
    assert complete(shell, "call", "--api", url, "token-r", CENTGATE_API_URL=NOBODY) == ["token-risk"]


def test_older_copy_is_used_without_api(tmp_path: Path) -> None:
    settings = Settings(port=0, database_url=f"sqlite:///{tmp_path / 'journal.db'}")
    with run_in_thread(settings) as address:
        shell = Shell(tmp_path, {"CENTGATE_API_URL": address})
        known = complete(shell, "call", "token-r")

    assert known == complete(shell, "call", "token-r") == ["token-risk"]


def test_without_api_and_copy_nothing_is_offered(shell: Shell) -> None:
    assert complete(shell, "call", "t", times=1, CENTGATE_API_URL=NOBODY) == []


@pytest.mark.parametrize("content", ["{", "[]", "3", "null", "[" * 10_000])
def test_damaged_copy_offers_nothing(tmp_path: Path, content: str) -> None:
    copy = tmp_path / "cache" / "centgate" / "catalog" / "http%3A%2F%2F127.0.0.1%3A1" / "services.json"
    copy.parent.mkdir(parents=True)
    copy.write_text(content)

    assert complete(Shell(tmp_path, {"CENTGATE_API_URL": NOBODY}), "call", "t", times=1) == []


@pytest.mark.parametrize(
    ("services", "offers"),
    [
        ([{"slug": "token-risk"}], ["token-risk"]),
        ([{"slug": "token-risk", "summary": 3}, {"slug": None}, {}], ["token-risk"]),
        ([1, 2], []),
        (None, []),
    ],
)
def test_unexpected_catalogue_is_no_traceback(
    hostile: HostileApi, tmp_path: Path, services: Any, offers: list[str]
) -> None:
    hostile.catalogue = PlannedResponse(200, {"services": services})
    shell = Shell(tmp_path, {"CENTGATE_API_URL": hostile.url})

    assert complete(shell, "call", "t", times=5 if offers else 1) == offers


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_script_is_printed_for_each_shell(shell: Shell, name: str) -> None:
    done = shell(_CENTGATE_COMPLETE=f"source_{name}")

    assert "_CENTGATE_COMPLETE" in done.stdout


def test_bash_completes_command(shell: Shell, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not on this machine")
    (tmp_path / "completion.bash").write_text(shell(_CENTGATE_COMPLETE="source_bash").stdout)
    script = """
        source completion.bash
        COMP_WORDS=(centgate call token-risk chain = b) COMP_CWORD=5
        _centgate_completion centgate
        printf '%s\\n' "${COMPREPLY[@]}"
    """

    done = subprocess.run(
        [bash, "--norc", "-c", script],
        env=shell.environment(PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.split() == ["base", "bsc"], done.stderr
