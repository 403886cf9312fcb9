"""Providers that read a development chain."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from centgate.lookups.token_on_chain import OnchainToken, read_token
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.settings import ProviderSettings, Settings

CHAIN_ID = 84532


@asynccontextmanager
async def open_providers(settings: Settings, url: str) -> AsyncGenerator[tuple[Rpc, BytecodeAnalyzer]]:
    """Open both providers with a node at `url` for the development chain."""
    providers = {f"rpc_{CHAIN_ID}": ProviderSettings(url=url)}
    changed = settings.model_copy(update={"providers": {**settings.providers, **providers}})
    async with open_resources(changed) as resources:
        yield Rpc(changed, resources), BytecodeAnalyzer(changed, resources)


async def read_whole_token(rpc: Rpc, bytecode: BytecodeAnalyzer, token: str) -> OnchainToken:
    """Return all that the chain tells about a token."""
    *_, last = [shown async for shown in read_token(rpc, bytecode, CHAIN_ID, token)]
    return last
