"""The wheel: its files, and its commands in an environment with nothing but its dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from zipfile import ZipFile

import httpx2
import pytest

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/centgate"
LICENSE_FILE = "phishing/data/LICENSE"
TIMEOUT = 120


def find_uv() -> str | None:
    """Find uv where the Makefile finds it."""
    return shutil.which("uv") or shutil.which(str(ROOT / ".uv/bin/uv"))


def run_uv(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run uv without a network: it takes everything from its cache."""
    uv = find_uv()
    if uv is None:
        pytest.skip("uv is neither on PATH nor in .uv/bin")
    return subprocess.run(
        [uv, *arguments, "--offline", "--quiet"],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    built = run_uv("build", "--wheel", "--out-dir", folder)
    if built.returncode and "network was disabled" in built.stdout:
        pytest.skip("the build backend is not in uv's cache")
    assert built.returncode == 0, built.stdout
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel and its locked dependencies, without extras; returns the folder of its commands."""
    environment = tmp_path_factory.mktemp("installed") / "venv"
    installed = run_uv(
        *("sync", "--frozen", "--no-default-groups", "--no-install-project", "--python", sys.executable),
        UV_PROJECT_ENVIRONMENT=str(environment),
    )
    if installed.returncode:
        pytest.skip(f"the dependencies are not in uv's cache: {installed.stdout[-300:]}")
    folder = environment / ("Scripts" if sys.platform == "win32" else "bin")
    done = run_uv("pip", "install", "--no-deps", "--python", folder / "python", wheel)
    assert done.returncode == 0, done.stdout
    return folder


def user_environment() -> Mapping[str, str]:
    """Return the environment variables of a user who has neither this repository nor settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CENTGATE_", "PYTHON", "VIRTUAL_ENV"))
    }


def run_command(scripts: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [scripts / "centgate", *arguments],
        cwd=folder,
        env=user_environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@contextmanager
def served_api(scripts: Path, folder: Path) -> Generator[str]:
    """Run `centgate serve` on a free port; yields its URL."""
    with subprocess.Popen(
        [scripts / "centgate", "serve", "--port", "0"],
        cwd=folder,
        env=user_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
        try:
            yield next(line.split()[1] for line in process.stdout if line.startswith("ready "))
        finally:
            process.terminate()
            process.communicate(timeout=TIMEOUT)


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    files = {str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*") if file.is_file()}
    expected = {name for name in files if "__pycache__" not in name} - {LICENSE_FILE} | {"CHANGELOG.md"}

    names = ZipFile(wheel).namelist()

    package = {name.removeprefix("centgate/") for name in names if name.startswith("centgate/")}
    assert package == expected
    assert {"py.typed", "website/templates/home.html.j2", "phishing/data/phishing-list.xz"} <= package
    folder = f"centgate-{version('centgate')}.dist-info/"
    assert all(name.startswith(("centgate/", folder)) for name in names)
    assert {f"{folder}licenses/LICENSE", f"{folder}licenses/src/centgate/{LICENSE_FILE}"} <= set(names)


def test_installed_command_prints_its_version(scripts: Path, tmp_path: Path) -> None:
    done = run_command(scripts, tmp_path, "--version")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"centgate {version('centgate')}\n", "")


def test_installed_server_answers(scripts: Path, tmp_path: Path) -> None:
    with served_api(scripts, tmp_path) as url:
        health = httpx2.get(f"{url}/health", timeout=TIMEOUT)
        ready = httpx2.get(f"{url}/readyz", timeout=TIMEOUT)
        services = httpx2.get(f"{url}/services", timeout=TIMEOUT)

    assert (health.status_code, ready.status_code, services.status_code) == (200, 200, 200)
    assert len(services.json()["services"]) > 10


def test_installed_buyer_shows_its_help(scripts: Path, tmp_path: Path) -> None:
    done = run_command(scripts, tmp_path, "call", "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "centgate call" in done.stdout


def test_demo_without_its_extra_names_it(scripts: Path, tmp_path: Path) -> None:
    done = run_command(scripts, tmp_path, "demo")

    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'centgate[dev]'" in done.stderr
    assert "Traceback" not in done.stderr
