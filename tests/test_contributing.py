"""CONTRIBUTING.md: the files that it shows work unchanged, and the files that it names exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
SHOWN_FILE = re.compile(r"^```python\n# ((?:src|tests)/\S+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`([^`\n]+)`")

pytestmark = pytest.mark.extended


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the package with the files of the page."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "centgate", tmp_path / "src" / "centgate", ignore=ignored)
    for name, content in SHOWN_FILE.findall(PAGE.read_text(encoding="utf-8")):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return tmp_path


def run_module(checkout: Path, *arguments: str) -> str:
    """Run a Python module in the checkout and return its output; fails the test if it fails."""
    paths = [checkout / "src", ROOT / "tests", ROOT / "tests" / "payments", ROOT / "tools"]
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_tests(checkout: Path, *options: str) -> str:
    """Run the tests in the checkout, with the fixtures of this repository."""
    own_path = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(checkout), "-o", "pythonpath=")
    plugins = ("-p", "conftest", "-p", "no:cacheprovider")
    return run_module(checkout, "pytest", "-q", *own_path, *plugins, *options, str(checkout / "tests"))


def test_tests_of_page_pass(checkout: Path) -> None:
    assert "16 passed" in run_tests(checkout)


def test_request_of_page_passes_tests_of_all_requests(checkout: Path) -> None:
    for name in ("test_schema.py", "test_validation.py"):
        shutil.copy(ROOT / "tests" / name, checkout / "tests")

    # those of the other services are run where they stand
    assert "passed" in run_tests(checkout, "-k", "word-meaning")


def test_files_of_page_follow_style(checkout: Path) -> None:
    files = [str(checkout / name) for name, _ in SHOWN_FILE.findall(PAGE.read_text(encoding="utf-8"))]
    configuration = ("--no-cache", "--config", str(ROOT / "pyproject.toml"))

    run_module(checkout, "ruff", "check", *configuration, *files)
    run_module(checkout, "ruff", "format", "--check", *configuration, *files)


def list_mentioned_paths() -> Iterator[str]:
    """Return the files and folders that the page names, of the repository or of the package."""
    shown = {name for name, _ in SHOWN_FILE.findall(PAGE.read_text(encoding="utf-8"))}
    for code in INLINE_CODE.findall(PAGE.read_text(encoding="utf-8")):
        if re.fullmatch(r"[\w./-]+(?:/|\.py|\.md)", code) and code not in shown:
            yield code


@pytest.mark.parametrize("path", sorted(set(list_mentioned_paths())))
def test_named_file_exists(path: str) -> None:
    assert (ROOT / path).exists() or (ROOT / "src" / "centgate" / path).exists()
