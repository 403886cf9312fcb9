"""What the tests of the buyer's client share: a hostile API, and both clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hostile import HostileApi, hostile_api
from shopping import HASTY, NOBODY, Client, InThread, Shop

from centgate.client.asynchronous import AsyncCentgate
from centgate.client.sync import Centgate
from centgate.client.wallet import Wallet
from centgate.devchain.accounts import BUYERS


@pytest.fixture
def anyio_backend() -> str:
    """The client's tests are about money and not about event loops."""
    return "asyncio"


@pytest.fixture(params=["sync", "async"])
async def shop(request: pytest.FixtureRequest) -> AsyncGenerator[Shop]:
    """The same for both clients."""
    async with AsyncExitStack() as opened:

        def start(url: str, **options: Any) -> Client:
            given: dict[str, Any] = {
                "wallet": Wallet.from_key(BUYERS[0].private_key),
                "patience": HASTY,
                "tls": NOBODY,
            } | options
            if request.param == "sync":
                client = Centgate(url, **given)
                opened.callback(client.close)
                return InThread(client)
            asynchronous = AsyncCentgate(url, **given)
            opened.push_async_callback(asynchronous.aclose)
            return asynchronous

        yield start


@pytest.fixture
def hostile() -> Generator[HostileApi]:
    """An API that answers as the test says."""
    with hostile_api() as api:
        yield api
