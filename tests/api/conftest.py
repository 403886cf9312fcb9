"""One API shared by all tests of this folder, which only read from it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack

import httpx
import pytest
import uvicorn
from facilitators import build_settings, open_stub_facilitator

from centgate.log import configure_logging
from centgate.server import run_in_thread
from centgate.settings import Settings


@pytest.fixture(scope="session")
def api_settings(tmp_path_factory: pytest.TempPathFactory) -> Generator[Settings]:
    """Settings of a deployment on a development chain, whose facilitator must not receive requests."""
    folder = tmp_path_factory.mktemp("served_api")
    with pytest.MonkeyPatch.context() as patch, open_stub_facilitator() as stub:
        for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
            patch.delenv(name)
        patch.chdir(folder)
        yield build_settings(folder, stub.url)


@pytest.fixture(scope="session")
def reader(api_settings: Settings) -> Generator[httpx.Client]:
    """A client of the shared API."""
    with ExitStack() as open_parts:
        url = open_parts.enter_context(run_in_thread(api_settings))
        yield open_parts.enter_context(httpx.Client(base_url=url, timeout=30))


@pytest.fixture
def unopened_api_client(api_settings: Settings) -> Generator[httpx.Client]:
    """A client of an API whose database was never opened, so that `/health` fails unexpectedly."""
    from centgate.api.app import create_app

    configure_logging("critical")
    server = uvicorn.Server(uvicorn.Config(create_app(api_settings), port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        yield client
    server.should_exit = True
    thread.join()
    configure_logging("error")
