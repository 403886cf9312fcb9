"""Services on a node that returns partial data: they claim nothing about the rest."""

from __future__ import annotations

from typing import Any

import pytest
from buyer import ApiFactory
from fake_upstreams import FakeUpstreams, configure_providers, send_paid
from lookups.chain_world import OFFCHAIN_SOURCES, World
from tampering_proxy import limit_log_range, start_proxy

from centgate.devchain.rpc_client import call_rpc
from centgate.settings import ProviderSettings, Settings

pytestmark = pytest.mark.extended

HASHES = False
"""Limit of the number of transactions."""


@pytest.fixture
def two_block_api(world: World, world_settings: Settings, upstreams: FakeUpstreams) -> Settings:
    """API whose node returns the logs of two blocks at a time, and does not know the later payments."""
    refused = limit_log_range(2, "eth_getLogs is limited to a 2 blocks range")
    newest = call_rpc(world.chain.rpc_url, "eth_getBlockByNumber", hex(max(world.times)), HASHES)

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["params"][:1] == ["latest"]:
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": newest}
        return refused(request)

    url = start_proxy(upstreams, "node", world.chain.rpc_url, change)
    node = {f"rpc_{world.chain.chain_id}": ProviderSettings(url=url)}
    return configure_providers(world_settings, {**node, **upstreams.provider_settings(*OFFCHAIN_SOURCES)})


def buy_envelope(
    api: ApiFactory, settings: Settings, world: World, service: str, wallet: str
) -> dict[str, Any]:
    """Buy a response and return its envelope."""
    body = {"chainId": world.chain.chain_id, "walletAddress": wallet}
    response = send_paid(api(settings), f"/services/{service}", body)
    assert response.status_code == 200, response.text
    return response.json()


def test_unread_blocks_leave_approvals_open(api: ApiFactory, two_block_api: Settings, world: World):
    answer = buy_envelope(api, two_block_api, world, "approval-risk", world.people["approver"].address)

    data, coverage = answer["data"], answer["data"]["coverage"]
    seen = [each for each in world.approvals.values() if each.block >= coverage["fromBlock"]]
    found = {(each["token"]["address"], each["spender"]["address"]) for each in data["approvals"]}
    assert 0 < coverage["fromBlock"] < coverage["toBlock"] == max(world.times)
    assert coverage["complete"] is False
    assert found <= {(each.token, each.spender) for each in seen}
    assert (world.approvals["stale"].token, world.approvals["stale"].spender) not in found
    assert (world.approvals["partly spent"].token, world.approvals["partly spent"].spender) in found
    assert any("older approvals may exist" in each for each in data["warnings"])


def test_wallet_brief_names_the_blocks_that_were_read(api: ApiFactory, two_block_api: Settings, world: World):
    answer = buy_envelope(api, two_block_api, world, "wallet-brief", world.people["approver"].address)

    rows = answer["data"]["recentTransfers"]
    assert rows
    warning = next(each for each in answer["warnings"] if "transfers were read" in each)
    first = int(warning.split("blocks ")[1].split(" ")[0])
    assert first > 0
    assert all(row["blockNumber"] >= first for row in rows)
