"""Fixtures of the MCP tests: clients, and APIs to call."""

from __future__ import annotations

import os
from collections.abc import Generator

import httpx
import pytest
from buyer import ApiFactory
from facilitators import StubFacilitator, build_settings, open_stub_facilitator
from fake_upstreams import FakeUpstreams, configure_providers
from mcp import Client
from mcp_clients import MODES, TOKEN, ConnectClient

from centgate.server import run_in_thread
from centgate.settings import ProviderSettings, Settings


@pytest.fixture
def anyio_backend() -> str:
    """Backend of the official client and the API: asyncio."""
    return "asyncio"


@pytest.fixture(params=list(MODES))
def connect_client(request: pytest.FixtureRequest) -> ConnectClient:
    """Return a function that connects the official client to an API; one run per protocol version."""
    mode = MODES[request.param]
    return lambda api: Client(str(api.base_url.join("/mcp")), mode=mode)


@pytest.fixture
def chain_client(api: ApiFactory, chain_settings: Settings) -> httpx.Client:
    """A client of an API that is paid on the development chain."""
    return api(chain_settings)


@pytest.fixture(scope="session")
def idle_facilitator() -> Generator[StubFacilitator]:
    """A facilitator that must not receive requests."""
    with open_stub_facilitator() as stub:
        yield stub


@pytest.fixture(scope="session")
def reader(
    idle_facilitator: StubFacilitator, tmp_path_factory: pytest.TempPathFactory
) -> Generator[httpx.Client]:
    """A client of one API for all tests that buy nothing."""
    folder = tmp_path_factory.mktemp("reader")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
            patch.delenv(name)
        patch.chdir(folder)
        settings = build_settings(folder, idle_facilitator.url)
    with run_in_thread(settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client


@pytest.fixture
def no_data_client(api: ApiFactory, settings: Settings, upstreams: FakeUpstreams) -> httpx.Client:
    """A client of an API whose sources have no pair of a token."""
    upstreams.set_response("dexscreener", f"/token-pairs/v1/base/{TOKEN}", [])
    upstreams.set_response("dexscreener", f"/latest/dex/pairs/base/{TOKEN}", {"pairs": None, "pair": None})
    for path in (f"tokens/{TOKEN}/pools", f"pools/{TOKEN}"):
        nothing = {"errors": [{"status": "404", "title": "Not Found"}]}
        upstreams.set_response("geckoterminal", f"/api/v2/networks/base/{path}", nothing, status=404)
    return api(
        configure_providers(
            settings,
            upstreams.provider_settings("dexscreener", "geckoterminal", timeout=2.5)
            | {"rpc": ProviderSettings(enabled=False)},
        )
    )
