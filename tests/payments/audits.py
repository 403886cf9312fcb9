"""Payments for which journal and chain may differ, and audits that compare them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
from buyer import Buyer, encode_header
from chain_actions import cancel_authorization
from seeded_journals import encode_terms, open_journal_store, record_payment
from tampering_proxy import Interceptor, forward_to_node

from centgate.devchain.devnet import DevChain
from centgate.devchain.rpc_client import call_rpc
from centgate.payments.audit.audit import Auditor, AuditResult, configured_recipients, find_range_by_time
from centgate.payments.chain.chain_client import ChainClient
from centgate.payments.chain.nodes import NodeSet
from centgate.payments.chain.payment_node import SPAN
from centgate.payments.claim_values import StoredAnswer
from centgate.settings import Settings

Payload = dict[str, Any]
HOUR, DAY = 3600, 86_400
ANSWER = StoredAnswer(200, b"{}", "req_1", "e30=")
FALSE_HASH = "0x" + "ab" * 32


def mine_block(devchain: DevChain) -> None:
    """Mine a block now."""
    cancel_authorization(devchain, Buyer(8), "0x" + f"{time.time_ns():064x}")


def read_block_number(devchain: DevChain) -> int:
    """Return the newest block number."""
    return int(call_rpc(devchain.rpc_url, "eth_blockNumber"), 16)


def settle_on_chain(devchain: DevChain, payload: Payload) -> str:
    """Settle a payment on the chain and return its transaction."""
    body = {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}
    answer = httpx.post(devchain.facilitator_url + "/settle", json=body, timeout=30).json()
    assert answer["success"], answer
    return answer["transaction"]


def get_nonce(payload: Payload) -> str:
    return payload["payload"]["authorization"]["nonce"]


def sign_unsubmitted(settings: Settings, buyer: Buyer, **changes: Any) -> Payload:
    """Sign a payment that is not submitted."""
    return buyer.payload(encode_terms(settings), now=int(time.time()), **changes)


async def record_false_delivery(settings: Settings, buyer: Buyer, *, ago: int = HOUR) -> Payload:
    """Record a payment as delivered although it never reached the chain."""
    submitted_at = int(time.time()) - ago
    payload = buyer.payload(encode_terms(settings), now=submitted_at)
    await record_payment(
        settings, encode_header(payload), submitted_at, transaction=FALSE_HASH, answer=ANSWER
    )
    return payload


@asynccontextmanager
async def open_chain_client(urls: Sequence[str], quorum: int = 1) -> AsyncGenerator[ChainClient]:
    """Open a client of the development chain over some nodes."""
    async with aiohttp.ClientSession() as session:
        yield ChainClient(session, NodeSet("eip155:84532", tuple(urls), quorum, "own"))


async def run_audit(
    settings: Settings, *urls: str, since: float | None = None, quorum: int = 1, span: int = SPAN
) -> AuditResult:
    """Audit the last day, or the blocks since a time; uses the node of the settings by default."""
    (recipient,) = configured_recipients(settings)
    assert recipient is not None
    now = time.time()
    result = AuditResult(recipient)
    async with (
        open_chain_client(urls or [settings.rpc_url or ""], quorum) as chain,
        open_journal_store(settings) as store,
    ):
        blocks = await find_range_by_time(chain, now - DAY if since is None else since, now + DAY)
        await Auditor(store, span=span).audit(chain, result, blocks)
    return result


def findings_by_nonce(result: AuditResult) -> dict[str, str]:
    """Return the kind of each finding by its nonce."""
    return {finding.key.nonce: finding.kind for finding in result.findings}


def newer_block(devchain: DevChain, seconds: int = HOUR) -> Interceptor:
    """Return a node change that makes the newest block younger: all others are old enough to compare."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] != "eth_getBlockByNumber":
            return None
        answer = forward_to_node(devchain.rpc_url, request)
        block = answer["result"]
        if int(block["number"], 16) < read_block_number(devchain):
            return 200, answer
        return 200, answer | {"result": {**block, "timestamp": hex(int(block["timestamp"], 16) + seconds)}}

    return change


def reply_to_method(method: str, result: Any) -> Interceptor:
    """Return a node change that answers one method with a fixed result."""

    def change(request: dict[str, Any]) -> tuple[int, Any] | None:
        if request["method"] == method:
            return 200, {"jsonrpc": "2.0", "id": request["id"], "result": result}
        return None

    return change
