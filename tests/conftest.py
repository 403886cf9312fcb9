"""Shared fixtures: a development chain, a stub facilitator, and the API over real HTTP."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import httpx
import hypothesis
import pytest
from buyer import SHARED, ApiFactory, Buyer
from certificates import Authority
from compile_contracts import PACKAGE_FILES
from databases import Postgres, Redis, create_sqlite, postgres_server, redis_server
from facilitators import StubFacilitator, build_settings, open_stub_facilitators
from fake_upstreams import RECORDINGS, FakeUpstreams, fake_upstreams, recordings
from node_packages import build_typescript_client, install_packages
from small_site import OpenReader, open_reader

from centgate.devchain.devnet import DevChain, open_devchain
from centgate.devchain.environment import devchain_settings
from centgate.garbage_collection import pause_garbage_collection, resume_garbage_collection
from centgate.log import configure_logging
from centgate.resources import PARSER_MEGABYTES, PARSER_MODULES
from centgate.sandbox import Sandbox
from centgate.server import run_in_thread
from centgate.settings import Settings

# a deadline would measure the machine, not the code
hypothesis.settings.register_profile("centgate", deadline=None)
hypothesis.settings.load_profile("centgate")
# for the fast tests; `make test-all` tries more examples
hypothesis.settings.register_profile("quick", hypothesis.settings.get_profile("centgate"), max_examples=20)

MARKS_BY_FIXTURE = {
    "postgres": "postgresql",
    "redis": "redis",
    "npm_tools": "npm",
    "solidity_compiler": "npm",
    "typescript_client": "npm",
    "typescript_sdk": "npm",
    "chromium": "browser",
    "browser": "browser",
    "devchain": "devchain",
    "recordings_url": "recorded",
}
"""Marks that a test gets from its fixtures."""
SLOW_MARKS = {"browser", "npm", "postgresql"}
"""Marks of resources that are slow to start: `make test` runs only the tests with the mark `smoke`."""
EXTENDED_FILE = "pytestmark = pytest.mark.extended"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collections, which would take two fifths of the time."""
    pause_garbage_collection()
    try:
        return (yield)
    finally:
        resume_garbage_collection()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures and databases; leave out those that need absent recordings."""
    for item in items:
        marks = {
            MARKS_BY_FIXTURE[name] for name in getattr(item, "fixturenames", ()) if name in MARKS_BY_FIXTURE
        }
        if "postgresql" in _parameters_of(item):
            marks.add("postgresql")
        if marks & SLOW_MARKS and item.get_closest_marker("smoke") is None:
            marks.add("extended")
        for mark in marks:
            item.add_marker(mark)
    if not RECORDINGS.is_dir():
        items[:] = [item for item in items if item.get_closest_marker("recorded") is None]


def _parameters_of(item: pytest.Item) -> list[str]:
    callspec: Any = getattr(item, "callspec", None)
    return [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of files without a fast test, since some take long to import."""
    if "not extended" not in (config.getoption("markexpr") or "") or collection_path.suffix != ".py":
        return None
    return EXTENDED_FILE in collection_path.read_text(encoding="utf-8") or None


@pytest.fixture(scope="session", autouse=True)
def quiet_logs() -> None:
    """Log only errors."""
    configure_logging("error")


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Use one certificate authority, since each HTTP client loads all of the system's."""
    file = tmp_path_factory.mktemp("authority") / "authority.pem"
    Authority().write_certificate(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_public_nodes() -> Generator[None]:
    """Disable public nodes, which tests never call; the provider finds a closed port in their place."""
    from centgate.providers import rpc

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("centgate.payments.chain.nodes.PUBLIC_NODES", {})
        patch.setattr(rpc, "PUBLIC_NODES", dict.fromkeys(rpc.PUBLIC_NODES, ("http://127.0.0.1:9",)))
        yield


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for the working directories of tests."""
    return tmp_path_factory.mktemp("folders")


@pytest.fixture(autouse=True)
def no_operator(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, folders: Path) -> None:
    """Remove the operator's settings: CENTGATE_ variables and .env of the developer's environment.

    The working directory is the test's `tmp_path`, or a new folder if it has none: creating a `tmp_path`
    takes longer than most tests.
    """
    for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CENTGATE_PHISHING_LIST_URL", "off")  # `centgate serve` would call the Internet
    has_path = "tmp_path" in request.fixturenames
    monkeypatch.chdir(request.getfixturevalue("tmp_path") if has_path else mkdtemp(dir=folders))


@pytest.fixture(scope="session")
def devchain() -> Generator[DevChain]:
    """The development chain, with its facilitator."""
    with open_devchain() as chain:
        yield chain


@pytest.fixture(scope="session")
def facilitators() -> Generator[Callable[[], StubFacilitator]]:
    """Create stub facilitators."""
    with open_stub_facilitators() as another:
        yield another


@pytest.fixture
def facilitator(facilitators: Callable[[], StubFacilitator]) -> StubFacilitator:
    """A stub facilitator with behaviour set by the test."""
    return facilitators()


@pytest.fixture
def settings(tmp_path: Path, facilitator: StubFacilitator) -> Settings:
    """A deployment that is paid through the stub facilitator, with a journal of its own."""
    return build_settings(tmp_path, facilitator.url)


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    """A shared PostgreSQL cluster; tests that damage it start their own."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: Postgres) -> str:
    """URL of a new database."""
    return postgres.new_database()


@pytest.fixture
def redis() -> Generator[Redis]:
    """An empty Redis server."""
    with redis_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a new database; the test runs once for each kind."""
    if request.param == "sqlite":
        return create_sqlite(tmp_path)
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def chain_settings(devchain: DevChain, tmp_path: Path) -> Settings:
    """A deployment that is paid on the development chain, with a journal of its own."""
    return devchain_settings(devchain, Settings(port=0), tmp_path)


@pytest.fixture
def stubbed(chain_settings: Settings, facilitator: StubFacilitator) -> Settings:
    """A deployment on the development chain with the stub facilitator."""
    return chain_settings.model_copy(update={"facilitator_url": facilitator.url})


@pytest.fixture(scope="session")
def close_later() -> Generator[Callable[[ExitStack], None]]:
    """Close the resources of a test in the background, during the next test."""
    with ThreadPoolExecutor(4) as pool:
        ended: list[Future[None]] = []
        yield lambda open_parts: ended.append(pool.submit(open_parts.close))
        for each in ended:
            each.result()


@pytest.fixture
def api(close_later: Callable[[ExitStack], None]) -> Generator[ApiFactory]:
    """Serve the API for settings: `api(settings)` returns a client. All stop after the test."""
    open_parts = ExitStack()

    def start(settings: Settings) -> httpx.Client:
        url = open_parts.enter_context(run_in_thread(settings))
        return open_parts.enter_context(httpx.Client(base_url=url, timeout=30, limits=SHARED))

    yield start
    close_later(open_parts)


@pytest.fixture
def client(api: ApiFactory, settings: Settings) -> httpx.Client:
    """A client of an API that is paid through the stub facilitator."""
    return api(settings)


@pytest.fixture
def upstreams() -> Generator[FakeUpstreams]:
    """Fake upstreams with responses set by the test."""
    with fake_upstreams() as standing:
        yield standing


@pytest.fixture(scope="module")
async def readers() -> AsyncGenerator[Sandbox]:
    """Shared page parsers, since their processes are slow to start."""
    sandbox = Sandbox(2, megabytes=PARSER_MEGABYTES, modules=PARSER_MODULES)
    yield sandbox
    await sandbox.close()


@pytest.fixture
def page_reader(readers: Sandbox, tmp_path: Path) -> OpenReader:
    """Open a deployment that reads pages of the given sites."""
    return partial(open_reader, readers, tmp_path)


@pytest.fixture(scope="session")
def recordings_url() -> Generator[str]:
    """URL of the recorded upstreams: `<url>/<upstream>`."""
    with recordings() as url:
        yield url


@pytest.fixture(scope="session")
def npm_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages of `tests/npm` installed; skips where there is no npm."""
    return install_packages(tmp_path_factory, "npm", (Path(__file__).parent / "npm").glob("*.json"), "ci")


@pytest.fixture(scope="session")
def solidity_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Solidity compiler of `tools/solidity`; skips where there is no npm."""
    return install_packages(tmp_path_factory, "solidity", PACKAGE_FILES, "ci")


@pytest.fixture(scope="session")
def typescript_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the TypeScript client and its tests, both built; skips where there is no npm."""
    return build_typescript_client(tmp_path_factory)


@pytest.fixture(scope="session")
def typescript_sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the TypeScript SDK, for `sdk_facilitators.typescript_facilitator`; skips without npm."""
    from sdk_facilitators import install_typescript_packages  # loads web3, which few need

    return install_typescript_packages(tmp_path_factory)


@pytest.fixture
def buyer() -> Buyer:
    """The first of the ten payers."""
    return Buyer()
