"""Payments for which journal and chain may differ, and audits that compare them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
from buyer import Buyer, encoded
from deeds import cancel
from fronts import Interceptor, forward_to_node
from pasts import journal_of, presented, terms_in

from centgate.devchain.house import DevChain
from centgate.devchain.node import ask
from centgate.payments.audit import Auditor, AuditResult, own_recipient, range_by_time
from centgate.payments.claiming import StoredAnswer
from centgate.payments.nodes import NodeSet
from centgate.payments.onchain import SPAN, Chain
from centgate.settings import Settings

Payload = dict[str, Any]
HOUR, DAY = 3600, 86_400
ANSWER = StoredAnswer(200, b"{}", "req_1", "e30=")
FALSE_HASH = "0x" + "ab" * 32


def mine(devchain: DevChain) -> None:
    """Mine a block now."""
    cancel(devchain, Buyer(8), "0x" + f"{time.time_ns():064x}")


def height(devchain: DevChain) -> int:
    """Return the newest block number."""
    return int(ask(devchain.rpc_url, "eth_blockNumber"), 16)


def settle(devchain: DevChain, payload: Payload) -> str:
    """Settle a payment on the chain and return its transaction."""
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}
    answer = httpx.post(devchain.facilitator_url + "/settle", json=body, timeout=30).json()
    assert answer["success"], answer
    return answer["transaction"]


def nonce_of(payload: Payload) -> str:
    return payload["payload"]["authorization"]["nonce"]


def fresh(settings: Settings, buyer: Buyer, **changes: Any) -> Payload:
    """Sign a payment that is not submitted."""
    return buyer.payload(terms_in(settings), now=int(time.time()), **changes)


async def delivered_for_nothing(settings: Settings, buyer: Buyer, *, ago: int = HOUR) -> Payload:
    """Record a payment as delivered although it never reached the chain."""
    submitted_at = int(time.time()) - ago
    payload = buyer.payload(terms_in(settings), now=submitted_at)
    await presented(settings, encoded(payload), submitted_at, transaction=FALSE_HASH, answer=ANSWER)
    return payload


@asynccontextmanager
async def chain_of(urls: Sequence[str], quorum: int = 1) -> AsyncGenerator[Chain]:
    """Open a client of the development chain over some nodes."""
    async with aiohttp.ClientSession() as session:
        yield Chain(session, NodeSet("eip155:84532", tuple(urls), quorum, "own"))


async def audited(
    settings: Settings, *urls: str, since: float | None = None, quorum: int = 1, span: int = SPAN
) -> AuditResult:
    """Audit the last day, or the blocks since a time; uses the node of the settings by default."""
    recipient = own_recipient(settings)
    assert recipient is not None
    now = time.time()
    result = AuditResult(recipient)
    async with chain_of(urls or [settings.rpc_url or ""], quorum) as chain, journal_of(settings) as store:
        blocks = await range_by_time(chain, now - DAY if since is None else since, now + DAY)
        await Auditor(store, span=span).audit(chain, result, blocks)
    return result


def found(result: AuditResult) -> dict[str, str]:
    """Return the kind of each finding by its nonce."""
    return {finding.key.nonce: finding.kind for finding in result.findings}


def later(devchain: DevChain, seconds: int = HOUR) -> Interceptor:
    """Return a node change that makes the newest block younger: all others are old enough to compare."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] != "eth_getBlockByNumber":
            return None
        answer = forward_to_node(devchain.rpc_url, request)
        block = answer["result"]
        if int(block["number"], 16) < height(devchain):
            return 200, answer
        return 200, answer | {"result": {**block, "timestamp": hex(int(block["timestamp"], 16) + seconds)}}

    return change


def answering(method: str, result: Any) -> Interceptor:
    """Return a node change that answers one method with a fixed result."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == method:
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": result}
        return None

    return change
