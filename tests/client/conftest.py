"""Fixtures of the client's tests: a hostile API, and both clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hostile import HostileApi, hostile_api
from shopping import NO_AUTHORITIES, SHORT_TIMEOUTS, AwaitableClient, OpenClient, ThreadedClient

from centgate.client.async_client import AsyncCentgate
from centgate.client.sync_client import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYER_ACCOUNTS


@pytest.fixture
def anyio_backend() -> str:
    """Run on asyncio only: these tests do not cover event loops."""
    return "asyncio"


@pytest.fixture(params=["sync", "async"])
async def shop(request: pytest.FixtureRequest) -> AsyncGenerator[OpenClient]:
    """Function that opens a sync or an async client."""
    async with AsyncExitStack() as opened:

        def start(url: str, **options: Any) -> AwaitableClient:
            defaults: dict[str, Any] = {
                "wallet": Wallet.from_key(BUYER_ACCOUNTS[0].private_key),
                "patience": SHORT_TIMEOUTS,
                "tls": NO_AUTHORITIES,
            } | options
            if request.param == "sync":
                client = Centgate(url, **defaults)
                opened.callback(client.close)
                return ThreadedClient(client)
            asynchronous = AsyncCentgate(url, **defaults)
            opened.push_async_callback(asynchronous.aclose)
            return asynchronous

        yield start


@pytest.fixture
def hostile() -> Generator[HostileApi]:
    """API with responses planned by the test."""
    with hostile_api() as api:
        yield api
