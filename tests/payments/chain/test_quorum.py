"""Quorum of nodes: as many are queried as can still give the answer."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from fake_upstreams import FakeUpstreams, RecordedRequest

from centgate.payments.chain import chain_client
from centgate.payments.chain.chain_client import ChainClient
from centgate.payments.chain.nodes import NodeSet
from centgate.payments.chain.payment_node import ChainUnreachable, PaymentNode
from centgate.payments.chain.quorum import Quorum

NAMES = ("first", "second", "third")


async def query_nodes(answers: dict[str, int | None]) -> tuple[int | None, list[str]]:
    """Return the answer of two of three nodes, None without one, and the nodes that were queried.

    `answers` has a number for each node; None is a node that fails.
    """
    queried = list[str]()

    async def question(node: PaymentNode) -> int:
        name = names[node]
        queried.append(name)
        await asyncio.sleep(0.01 * len(queried))
        if (answer := answers[name]) is None:
            raise ChainUnreachable(f"{name} is down")
        return answer

    async with aiohttp.ClientSession() as session:
        names = {PaymentNode(session, f"http://{name}.example", chain_id=84532): name for name in NAMES}
        try:
            return await Quorum(list(names), 2).query(question, 10), queried
        except ChainUnreachable:
            return None, queried


@pytest.mark.parametrize(
    ("answers", "result", "queried"),
    [
        ({"first": 1, "second": 1, "third": 1}, 1, ["first", "second"]),
        ({"first": 1, "second": 2, "third": 1}, 1, ["first", "second", "third"]),
        ({"first": 1, "second": None, "third": 1}, 1, ["first", "second", "third"]),
        ({"first": None, "second": None, "third": 1}, None, ["first", "second", "third"]),
        ({"first": 1, "second": 2, "third": 3}, None, ["first", "second", "third"]),
    ],
    ids=["two agree", "one differs", "one fails", "two fail", "all differ"],
)
async def test_node_is_replaced_only_if_needed(
    answers: dict[str, int | None], result: int | None, queried: list[str]
) -> None:
    assert await query_nodes(answers) == (result, queried)


async def test_newest_block_does_not_wait_for_node_that_hangs(
    upstreams: FakeUpstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: RecordedRequest) -> tuple[int, dict[str, object]]:
        results = {"eth_chainId": hex(84532), "eth_blockNumber": hex(7)}
        return 200, {"jsonrpc": "2.0", "id": request.body["id"], "result": results[request.body["method"]]}

    monkeypatch.setattr(chain_client, "BLOCK_WAIT", 60)
    for name in NAMES:
        upstreams.set_response_function(name, "/", answer, method="POST")
    upstreams.faults["first"] = "timeout"
    nodes = NodeSet("eip155:84532", tuple(f"{upstreams.url_of(name)}/" for name in NAMES), 2, "public")

    async with aiohttp.ClientSession() as session, asyncio.timeout(chain_client.TIMEOUT - 1):
        number = await ChainClient(session, nodes).find_newest_block()

    assert number == 7
