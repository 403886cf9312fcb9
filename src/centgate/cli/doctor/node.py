"""Check of the payment network's nodes: enough of them can determine a payment's outcome."""

from __future__ import annotations

import asyncio
import time

from msgspec import Struct

from centgate.cli.doctor.check import check_each, fail, ok, skip, warn
from centgate.cli.doctor.context import DoctorContext, display_origin, is_unencrypted
from centgate.errors import ProviderFailure
from centgate.findings import Finding
from centgate.payments.chain.nodes import NodeSet, select_nodes
from centgate.payments.chain.payment_node import CONFIRMATIONS, SPAN
from centgate.payments.chain.transfer_events import AUTHORIZATION_USED
from centgate.providers.jsonrpc.client import RpcNode

OLD_BLOCK_SECONDS, STALLED_BLOCK_SECONDS = 60, 300
"""Age limits of the latest block, in seconds."""
TIMEOUT = 7.0
"""Timeout per node, in seconds."""
UNUSED_NONCE = "0x" + "0" * 63 + "1"
"""Nonce of a payment that does not exist."""


class _NodeState(Struct, frozen=True):
    """State reported by one node."""

    block: int
    age: float
    """Age of its latest block, in seconds."""
    has_safe_block: bool


class _NodeProblem(Struct, frozen=True):
    """Problem of a node, and how to fix it if it is the operator's own."""

    what: str
    mend: str


async def check_node(deployment: DoctorContext) -> Finding:
    """The nodes that resolve unknown outcomes are on the right chain, are up to date, and return the logs
    needed for payments that a facilitator left open."""
    return await check_each(deployment.by_network, _check_network)


async def _check_network(deployment: DoctorContext) -> Finding:
    return await check_nodes(deployment, select_nodes(deployment.settings, deployment.settings.network))


async def check_nodes(deployment: DoctorContext, nodes: NodeSet) -> Finding:
    """Query each node, and check that enough of them respond."""
    if nodes.origin == "none":
        return missing_node(deployment, "only the facilitator can resolve unknown outcomes")
    results = await asyncio.gather(*(_query_with_timeout(deployment, url) for url in nodes.urls))
    states = sorted((each for each in results if isinstance(each, _NodeState)), key=lambda each: each.age)
    by_url = zip(nodes.urls, results, strict=True)
    problems = [(url, each) for url, each in by_url if isinstance(each, _NodeProblem)]
    if len(states) < nodes.quorum:
        return _too_few_nodes(deployment, nodes, problems)
    return _evaluate(deployment, nodes, states[nodes.quorum - 1], problems)


async def _query_with_timeout(deployment: DoctorContext, url: str) -> _NodeState | _NodeProblem:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await _query_node(deployment, url)
    except TimeoutError:
        return _NodeProblem("the node does not respond in time", f"check {deployment.node_setting}")


async def _query_node(deployment: DoctorContext, url: str) -> _NodeState | _NodeProblem:
    """Query everything that payments need from one node."""
    node_client = deployment.create_node(url)
    setting, chain_id = deployment.node_setting, deployment.settings.chain_id
    try:
        chain, block = await node_client.send_requests(
            [("eth_chainId", []), ("eth_getBlockByNumber", ["latest", False])], tolerant=False
        )
        number, age = int(block["number"], 16), time.time() - int(block["timestamp"], 16)
        if int(chain, 16) != chain_id:
            mend = f"set {setting} to a node of chain {chain_id}"
            return _NodeProblem(f"the node is on chain {int(chain, 16)}, payments are on {chain_id}", mend)
        floor = max(0, number - SPAN + 1)
        _, start = await node_client.get_logs(
            [AUTHORIZATION_USED, None, UNUSED_NONCE], floor, number, address=_token_address(deployment)
        )
        has_safe_block = await _has_safe_block(node_client)
    except ProviderFailure as failure:
        return _NodeProblem(failure.message, f"check the node in {setting}")
    except (ValueError, LookupError, TypeError):
        return _NodeProblem("the node sends invalid responses", f"check {setting}")
    if start > floor:
        message = f"the node returns logs of {number - start + 1} blocks per request, and {SPAN} are needed"
        return _NodeProblem(message, f"set {setting} to a node that returns more")
    return _NodeState(number, age, has_safe_block)


async def _has_safe_block(node_client: RpcNode) -> bool:
    try:
        (block,) = await node_client.send_requests(
            [("eth_getBlockByNumber", ["safe", False])], tolerant=False
        )
        return int(block["number"], 16) >= 0
    except (ProviderFailure, ValueError, LookupError, TypeError):
        return False


def _token_address(deployment: DoctorContext) -> str | None:
    """Return the payment token's address, or None; public nodes require a contract for log queries."""
    try:
        return deployment.settings.token.address
    except KeyError:
        return None


def _too_few_nodes(
    deployment: DoctorContext, nodes: NodeSet, problems: list[tuple[str, _NodeProblem]]
) -> Finding:
    if len(nodes.urls) == 1:
        return fail(problems[0][1].what, problems[0][1].mend)
    if nodes.origin == "own":
        return fail(
            f"no node responds: {_format_problems(problems)}", f"check the nodes in {deployment.node_setting}"
        )
    return fail(
        f"too few of the {nodes.description} respond: {_format_problems(problems)}",
        f"set {deployment.node_setting} to your own node",
    )


def _evaluate(
    deployment: DoctorContext, nodes: NodeSet, state: _NodeState, problems: list[tuple[str, _NodeProblem]]
) -> Finding:
    """Evaluate the nodes after enough of them responded."""
    block, setting = f"block {state.block}, {max(0, state.age):.0f} s old", deployment.node_setting
    if state.age > OLD_BLOCK_SECONDS:
        message = f"the latest block, {state.block}, is {state.age:.0f} s old"
        stalled = state.age > STALLED_BLOCK_SECONDS and deployment.settings.development_chain is None
        mend = f"check whether the node in {setting} has fallen behind"
        return fail(message, mend) if stalled else warn(message, mend)
    suffix = f"; not responding: {_format_problems(problems)}" if problems else ""
    if nodes.origin == "public":
        return ok(
            f"public nodes, {nodes.quorum} of {len(nodes.urls)} must agree; "
            f"set {setting} to use your own; {block}{suffix}"
        )
    if any(map(is_unencrypted, nodes.urls)):
        return warn("the node is used over http, unencrypted", "use https")
    hosts = ", ".join(map(display_origin, nodes.urls))
    safe = "" if state.has_safe_block else f", no safe block: the one {CONFIRMATIONS} blocks older is used"
    what = f"{hosts}, chain {deployment.settings.chain_id}, {block}{safe}{suffix}"
    return warn(what, f"check the nodes in {setting}") if problems else ok(what)


def _format_problems(problems: list[tuple[str, _NodeProblem]]) -> str:
    return "; ".join(f"{display_origin(url)} ({each.what})" for url, each in problems)


def missing_node(deployment: DoctorContext, because: str = "the chain was not queried") -> Finding:
    """Return the finding for a missing node: a warning if payments use real money."""
    what, mend = f"{deployment.node_setting} is not set: {because}", f"set {deployment.node_setting}"
    if deployment.settings.development_chain is None and deployment.settings.pay_to:
        return warn(what, mend)
    return skip(what, mend)
