"""Wheel: its files, and its commands in environments with the buyer's and the server's dependencies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from zipfile import ZipFile

import httpx2
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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


def install(wheel: Path, environment: Path, *extras: str) -> Path:
    """Install the wheel and its locked dependencies with extras; returns the folder of its commands."""
    chosen = [word for extra in extras for word in ("--extra", extra)]
    installed = run_uv(
        *("sync", "--frozen", "--no-default-groups", "--no-install-project", "--python", sys.executable),
        *chosen,
        UV_PROJECT_ENVIRONMENT=str(environment),
    )
    if installed.returncode:
        pytest.skip(f"the dependencies are not in uv's cache: {installed.stdout[-300:]}")
    folder = environment / ("Scripts" if sys.platform == "win32" else "bin")
    done = run_uv("pip", "install", "--no-deps", "--python", folder / "python", wheel)
    assert done.returncode == 0, done.stdout
    return folder


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a buyer, who installed no extra."""
    return install(wheel, tmp_path_factory.mktemp("buyer") / "venv")


@pytest.fixture(scope="module")
def server_scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an operator."""
    return install(wheel, tmp_path_factory.mktemp("server") / "venv", "server")


def user_environment() -> Mapping[str, str]:
    """Return the environment variables of a user without this repository and without settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CENTGATE_", "PYTHON", "VIRTUAL_ENV"))
    }


def run_command(
    scripts: Path, folder: Path, *arguments: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [scripts / "centgate", *arguments],
        cwd=folder,
        env={**user_environment(), "HOME": str(folder), "XDG_DATA_HOME": str(folder), **settings},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


@contextmanager
def served_api(scripts: Path, folder: Path, command: str = "serve") -> Generator[tuple[str, list[str]]]:
    """Run a server on a free port; yields its URL and the lines printed before it was ready."""
    with subprocess.Popen(
        [scripts / "centgate", command, "--port", "0"],
        cwd=folder,
        env=user_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout
        try:
            printed: list[str] = []
            for line in process.stdout:
                printed.append(line)
                if line.startswith("ready "):
                    break
            yield printed[-1].split()[1], printed
        finally:
            process.terminate()
            process.communicate(timeout=TIMEOUT)


def test_wheel_has_exactly_files_of_package(wheel: Path) -> None:
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


def test_buyer_installs_few_packages(scripts: Path) -> None:
    code = "from importlib.metadata import distributions; print(*sorted(d.name for d in distributions()))"
    done = subprocess.run([scripts / "python", "-c", code], capture_output=True, text=True, check=True)

    names = done.stdout.split()
    assert len(names) <= 30, names
    assert not {"sqlalchemy", "starlette", "uvicorn", "web3", "lxml", "x402"} & {
        each.lower() for each in names
    }


def test_client_modules_are_importable_without_extras(scripts: Path) -> None:
    modules = sorted(
        ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts)
        for folder in ("client", "cli/buyer", "signing")
        for file in (SOURCE / folder).rglob("*.py")
        if "adapters" not in file.parts and file.name != "__init__.py"
    )
    code = "import sys, importlib; [importlib.import_module(name) for name in sys.argv[1:]]"

    done = subprocess.run(
        [scripts / "python", "-c", code, *modules], env=user_environment(), capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_installed_server_answers(server_scripts: Path, tmp_path: Path) -> None:
    with served_api(server_scripts, tmp_path) as (url, _):
        health = httpx2.get(f"{url}/health", timeout=TIMEOUT)
        ready = httpx2.get(f"{url}/readyz", timeout=TIMEOUT)
        services = httpx2.get(f"{url}/services", timeout=TIMEOUT)

    assert (health.status_code, ready.status_code, services.status_code) == (200, 200, 200)
    assert len(services.json()["services"]) > 10


def test_installed_buyer_pays_for_answer(scripts: Path, tmp_path: Path) -> None:
    with served_api(Path(sys.executable).parent, tmp_path, "dev") as (url, printed):
        key = next(line.split()[1] for line in printed if line.startswith("  0x"))
        bought = run_command(
            scripts,
            tmp_path,
            *("call", "phishing-check", "url=https://example.org", "--json"),
            CENTGATE_API_URL=url,
            CENTGATE_WALLET_KEY=key,
        )

    assert (bought.returncode, bought.stderr) == (0, "")
    assert json.loads(bought.stdout)["receipt"]["transaction"].startswith("0x")


def test_installed_buyer_shows_its_help(scripts: Path, tmp_path: Path) -> None:
    done = run_command(scripts, tmp_path, "call", "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert "centgate call" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("serve",), "server"),
        (("settings",), "server"),
        (("doctor",), "server"),
        (("payments", "list"), "server"),
        (("site",), "server"),
        (("mcp",), "mcp"),
        (("dev",), "dev"),
        (("demo",), "dev"),
    ],
)
def test_command_without_its_extra_names_it(
    scripts: Path, tmp_path: Path, command: tuple[str, ...], extra: str
) -> None:
    done = run_command(scripts, tmp_path, *command)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"centgate: `centgate {command[0]}` needs packages that are not installed")
    assert done.stderr.rstrip().endswith(f"pip install 'centgate[{extra}]'")
    assert len(done.stderr.splitlines()) <= (
        2 if extra == "mcp" else 1
    )  # the message also says that there is no wallet


def list_requirements(name: str, extras: frozenset[str] = frozenset()) -> Generator[tuple[str, Requirement]]:
    """Yield the requirements of an installed package with these extras, each with the package's name."""
    for text in requires(name) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield name, requirement


def list_all_requirements(name: str, extras: frozenset[str]) -> list[tuple[str, Requirement]]:
    """Return the requirements of an installed package, of its requirements, and so on."""
    found: dict[str, tuple[str, Requirement]] = {}
    waiting = [*list_requirements(name, extras)]
    while waiting:
        owner, requirement = waiting.pop()
        if str(requirement) not in found:
            found[str(requirement)] = (owner, requirement)
            with suppress(PackageNotFoundError):  # an extra that is not installed here
                waiting += list_requirements(requirement.name, frozenset(requirement.extras))
    return [*found.values()]


def test_extras_that_old_pips_do_not_find_are_required_directly() -> None:
    """Such a pip compares names of extras as they are written: `html_clean` is not lxml's `html-clean`."""
    direct = {
        canonicalize_name(each.name) for _, each in list_requirements("centgate", frozenset({"server"}))
    }

    missing: list[str] = []
    for owner, requirement in list_all_requirements("centgate", frozenset({"server"})):
        with suppress(PackageNotFoundError):
            offered = metadata(requirement.name).get_all("Provides-Extra") or []
            for extra in requirement.extras - {*offered}:
                needed = list_requirements(requirement.name, frozenset({canonicalize_name(extra)}))
                always = {each.name for _, each in list_requirements(requirement.name)}
                missing += [
                    f"{owner} needs {each.name}"
                    for _, each in needed
                    if each.name not in always and canonicalize_name(each.name) not in direct
                ]

    assert missing == []
