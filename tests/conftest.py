"""What the tests share: a development chain, a facilitator that obeys, and the API over real HTTP."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from buyer import Api, Buyer
from databases import Postgres, Redis, postgres_server, redis_server
from facilitators import StubFacilitator, settings_in, stub_facilitator
from standins import StandIns, recordings, stand_ins

from centgate.dev import paid_on
from centgate.devchain.house import DevChain, open_devchain
from centgate.log import set_up_logs
from centgate.server import serving
from centgate.settings import Settings


@pytest.fixture(scope="session", autouse=True)
def quiet_logs() -> None:
    """Only what goes wrong is written."""
    set_up_logs("error")


@pytest.fixture(autouse=True)
def no_operator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests are not set up by whoever runs them: no CENTGATE_ variables, and no .env."""
    import os

    for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def devchain() -> Generator[DevChain]:
    """The development chain, with its facilitator."""
    with open_devchain() as chain:
        yield chain


@pytest.fixture
def facilitator() -> Generator[StubFacilitator]:
    """A facilitator that does what the test says."""
    with stub_facilitator() as stub:
        yield stub


@pytest.fixture
def settings(tmp_path: Path, facilitator: StubFacilitator) -> Settings:
    """A deployment that is paid through the stub facilitator, with a journal of its own."""
    return settings_in(tmp_path, facilitator.url)


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    """A PostgreSQL cluster; a test that harms it starts its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """The address of a database that nobody has used."""
    return postgres.new_database()


@pytest.fixture
def redis() -> Generator[Redis]:
    """A Redis server with nothing in it."""
    with redis_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind that nobody has used: a test that takes this runs once for each."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'journal.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def chain_settings(devchain: DevChain, tmp_path: Path) -> Settings:
    """A deployment that is paid on the development chain, with a journal of its own."""
    return paid_on(devchain, Settings(port=0), tmp_path)


@pytest.fixture
def api() -> Generator[Api]:
    """Serves the API for settings: `api(settings)` gives a client of it. All end with the test."""
    with ExitStack() as open_parts:

        def start(settings: Settings) -> httpx.Client:
            url = open_parts.enter_context(serving(settings))
            return open_parts.enter_context(httpx.Client(base_url=url, timeout=30))

        yield start


@pytest.fixture
def client(api: Api, settings: Settings) -> httpx.Client:
    """A client of an API that is paid through the stub facilitator."""
    return api(settings)


@pytest.fixture
def upstreams() -> Generator[StandIns]:
    """Stand-ins for upstreams, which answer what the test says."""
    with stand_ins() as standing:
        yield standing


@pytest.fixture(scope="session")
def replayed() -> Generator[str]:
    """The address of the recorded upstreams: `<address>/<upstream>`."""
    with recordings() as url:
        yield url


@pytest.fixture(scope="session")
def npm_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of `tests/npm` installed; skips where there is no npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm is not on this machine")
    folder = tmp_path_factory.mktemp("npm")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).parent / "npm" / name, folder)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=240, check=False)
    if done.returncode:
        pytest.skip("npm cannot install the packages here")
    return folder


@pytest.fixture
def buyer() -> Buyer:
    """The first of the ten payers."""
    return Buyer()
