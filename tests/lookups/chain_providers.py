"""Providers that read a development chain."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from centgate.crypto.contract.bytecode import function_selector
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.rpc import ContractCall, Rpc
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


def lose_answers(
    monkeypatch: pytest.MonkeyPatch, rpc: Rpc, is_lost: Callable[[ContractCall, bytes | None], bool]
) -> None:
    """Let calls fail at the node by themselves, chosen by the call and its true answer."""
    call_contracts = rpc.call_contracts

    async def answer(chain_id: int, calls: Sequence[ContractCall]) -> list[bytes | None]:
        answers = await call_contracts(chain_id, calls)
        return [None if is_lost(call, each) else each for call, each in zip(calls, answers, strict=True)]

    monkeypatch.setattr(rpc, "call_contracts", answer)


def is_call_of(call: ContractCall, *signatures: str) -> bool:
    """True if a call is of one of these functions."""
    return call.data[:4] in map(function_selector, signatures)
