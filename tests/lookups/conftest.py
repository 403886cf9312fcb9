"""One test chain for all tests of a worker, one API that is paid on it, and chains with exchanges."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from exchange_market import install_market
from fake_upstreams import FakeUpstreams, configure_providers, fake_upstreams, send_paid
from lookups.chain_world import OFFCHAIN_SOURCES, World, open_world
from lookups.pool_market import CHAIN, Market, open_market
from msgspec.structs import replace

from centgate.devchain.chain import EvmChain
from centgate.devchain.environment import devchain_settings
from centgate.devchain.well_known import BASE, ETHEREUM
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.rpc import Rpc
from centgate.server import run_in_thread
from centgate.settings import ProviderSettings, Settings

TIME_LIMITS = (
    "centgate.lookups.holder_sales.TRANSFER_SECONDS",
    "centgate.provider.REQUEST_SECONDS",
    "centgate.providers.bytecode.ANALYSIS_SECONDS",
    "centgate.lookups.pair_confirmation.MAX_CHAIN_SECONDS",
    "centgate.services.token_risk.CHAIN_SECONDS",
    "centgate.services.token_risk.CHAIN_SECONDS_ALONE",
    "centgate.services.wallet_brief.MAX_ACCOUNT_SECONDS",
)
"""Limits of the time for a chain and its code."""
SLOW_PROVIDERS = (Rpc, BytecodeAnalyzer)
"""Providers that may be slow here: the EVM is written in Python, and the first sandbox has to start."""
MAX_SECONDS = 120
"""Time that both have in these tests, as a machine may be busy."""


@pytest.fixture(autouse=True)
def patient_lookups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nodes and sandboxes take their time."""
    for limit in TIME_LIMITS:
        monkeypatch.setattr(limit, MAX_SECONDS)
    for provider in SLOW_PROVIDERS:
        monkeypatch.setattr(provider, "info", replace(provider.info, timeout=MAX_SECONDS))


@dataclass(frozen=True)
class Shop:
    """API that is paid on the test chain, and fake upstreams of sources that are not on it."""

    client: httpx.Client
    elsewhere: FakeUpstreams

    def answer(self, path: str, body: Any) -> dict[str, Any]:
        """Buy a response and return its envelope."""
        response = send_paid(self.client, path, body)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture(scope="session")
def world() -> Generator[World]:
    """Contracts and wallets on a separate chain, with the expected facts."""
    with open_world() as opened:
        yield opened


@pytest.fixture(scope="session")
def shop(world: World, tmp_path_factory: pytest.TempPathFactory) -> Generator[Shop]:
    """One API for all tests of a worker."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch, fake_upstreams() as elsewhere:
        for name in [name for name in os.environ if name.startswith("CENTGATE_")]:
            patch.delenv(name)
        patch.chdir(folder)
        own = {
            f"rpc_{world.chain.chain_id}": ProviderSettings(url=world.chain.rpc_url, timeout=MAX_SECONDS),
            BytecodeAnalyzer.info.name: ProviderSettings(timeout=MAX_SECONDS),
        }
        settings = configure_providers(
            devchain_settings(world.chain, Settings(port=0), folder),
            {**own, **elsewhere.provider_settings(*OFFCHAIN_SOURCES)},
        )
        with run_in_thread(settings) as url, httpx.Client(base_url=url, timeout=MAX_SECONDS) as client:
            yield Shop(client, elsewhere)


@pytest.fixture
def world_settings(world: World, tmp_path: Path) -> Settings:
    """Settings of a deployment that is paid on the test chain, with its own journal."""
    return devchain_settings(world.chain, Settings(port=0), tmp_path)


@pytest.fixture
def buy_answer(world: World, shop: Shop) -> Generator[Callable[..., dict[str, Any]]]:
    """Function that buys a response, `buy_answer("wallet-brief", walletAddress=…)`; returns the envelope."""

    def buy_answer(service: str, **body: Any) -> dict[str, Any]:
        return shop.answer(f"/services/{service}", {"chainId": world.chain.chain_id, **body})

    yield buy_answer
    assert shop.elsewhere.requests == []


@pytest.fixture
async def market(tmp_path: Path) -> AsyncGenerator[Market]:
    """A development chain."""
    chain = EvmChain(CHAIN, {})
    async for each in open_market(chain, install_market(chain, ETHEREUM), tmp_path):
        yield each


@pytest.fixture
async def base_market(tmp_path: Path) -> AsyncGenerator[Market]:
    """A chain with the id and the contracts of Base."""
    chain = EvmChain(8453, {})
    exchanges, now = install_market(chain, BASE), int(time.time())
    exchanges.set_feed(exchanges.addresses.sequencer_feed, 0, started_at=now - 10**6, updated_at=now)
    async for each in open_market(chain, exchanges, tmp_path):
        yield each
