"""JSON-RPC provider on a development chain with honest and hostile contracts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from facilitators import build_settings
from lookups import proxycode
from lookups.chain_world import World, encode_call

from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc
from centgate.resources import open_resources
from centgate.settings import ProviderSettings

APPROVAL = "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"


@asynccontextmanager
async def open_provider(world: World, folder: Path) -> AsyncGenerator[Rpc]:
    """Provider that reads the test chain."""
    node = ProviderSettings(url=world.chain.rpc_url)
    settings = build_settings(folder, "http://127.0.0.1:9", providers={f"rpc_{world.chain.chain_id}": node})
    async with open_resources(settings) as resources:
        yield Rpc(settings, resources)


def encode_topic(address: str) -> str:
    """Encode an address as an event topic."""
    return "0x" + address[2:].rjust(64, "0")


async def test_code_identifies_contracts_and_delegated_wallets(world: World, tmp_path: Path):
    people, box = world.people, world.contracts["box"]

    async with open_provider(world, tmp_path) as rpc:
        contract, wallet, delegated = await rpc.contract_codes(
            world.chain.chain_id, [box, people["holder"].address, people["delegator"].address]
        )

    assert (len(contract) > 60, wallet, delegated) == (True, b"", proxycode.delegation(box))


async def test_proxy_slots_hold_implementation_and_admin(world: World, tmp_path: Path):
    proxy = world.proxies["eip1967 wallet admin"]
    slots = [f"0x{slot:064x}" for slot in (proxycode.IMPLEMENTATION_SLOT, proxycode.ADMIN_SLOT, 7)]

    async with open_provider(world, tmp_path) as rpc:
        words = await rpc.storage_slots(world.chain.chain_id, proxy.address, slots)

    assert [word[-20:].hex() for word in words[:2]] == [proxy.implementations[0][2:], (proxy.admin or "")[2:]]
    assert words[2] == bytes(32)


async def test_one_bundle_reads_tokens_of_every_kind(world: World, tmp_path: Path):
    holder = world.people["holder"].address
    asked = {
        (name, question): ContractCall(world.tokens[name], encode_call(question, *values))
        for name in ("plain", "bytes32", "shy", "lying")
        for question, values in {"balanceOf(address)": (holder,), "decimals()": (), "symbol()": ()}.items()
    }

    async with open_provider(world, tmp_path) as rpc:
        answers = await rpc.call_contracts(world.chain.chain_id, list(asked.values()))

    found = dict(zip(asked, answers, strict=True))
    assert found["shy", "decimals()"] is None
    assert found["bytes32", "symbol()"] == b"MKR".ljust(32, b"\0")
    assert found["plain", "balanceOf(address)"] == (960 * 10**18).to_bytes(32, "big")
    assert found["lying", "balanceOf(address)"] == (2**256 - 2).to_bytes(32, "big")
    assert sum(answer is None for answer in answers) == 1


async def test_approvals_of_wallet_are_found_without_token(world: World, tmp_path: Path):
    owner = world.people["approver"].address

    async with open_provider(world, tmp_path) as rpc:
        latest = await rpc.latest_block(world.chain.chain_id)
        logs = await rpc.event_logs(
            world.chain.chain_id, [APPROVAL, encode_topic(owner)], to_block=latest.number, blocks=100_000
        )

    nfts = [log for log in logs.entries if len(log.topics) == 4]
    assert {log.address for log in logs.entries} == {
        world.tokens[name] for name in ("plain", "talking", "tax", "bytes32", "lying", "nft")
    }
    assert [(log.address, log.data) for log in nfts] == [(world.tokens["nft"], "0x")]
    assert [log.block for log in logs.entries] == sorted(log.block for log in logs.entries)


async def test_blocks_have_their_timestamps(world: World, tmp_path: Path):
    numbers = [0, max(world.times)]

    async with open_provider(world, tmp_path) as rpc:
        blocks = await rpc.block_headers(world.chain.chain_id, numbers)

    assert [block.timestamp for block in blocks] == [world.times[number] for number in numbers]
