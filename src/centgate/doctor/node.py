"""Nodes of the payment network: enough of them can tell what became of a payment."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from centgate.doctor.check import Finding, failed, ok, skipped, warning
from centgate.doctor.deployment import MEGABYTE, Deployment, host, in_the_clear
from centgate.errors import ProviderFailure
from centgate.evm import keccak
from centgate.jsonrpc.nodes import Node
from centgate.payments.nodes import NodeSet, payment_nodes
from centgate.payments.onchain import CONFIRMATIONS, SPAN
from centgate.upstream import Upstream

OLD, STALLED = 60, 300
"""Seconds of age of the newest block."""
TIMEOUT = 7.0
"""Seconds that each node has."""
USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
NOBODY = "0x" + "0" * 63 + "1"
"""The nonce of a payment that nobody made."""


@dataclass(frozen=True, slots=True)
class _Answers:
    """What one node knows."""

    block: int
    age: float
    """Seconds of its newest block."""
    has_safe_block: bool


@dataclass(frozen=True, slots=True)
class _Unfit:
    """What is wrong with a node, and how to mend that where it is the operator's own."""

    what: str
    mend: str


async def node(deployment: Deployment) -> Finding:
    """The nodes that decide about unknown outcomes are on the right chain, are up to date, and give the logs
    that settle what a facilitator left open."""
    return await check_nodes(deployment, payment_nodes(deployment.settings, deployment.settings.network))


async def check_nodes(deployment: Deployment, nodes: NodeSet) -> Finding:
    """Ask each node, and see whether enough of them answer."""
    if nodes.origin == "none":
        return without_node(deployment, "outcomes that a facilitator leaves open are asked of it alone")
    found = await asyncio.gather(*(_ask_in_time(deployment, url) for url in nodes.urls))
    answered = sorted((each for each in found if isinstance(each, _Answers)), key=lambda each: each.age)
    named = zip(nodes.urls, found, strict=True)
    unfit = [(url, each) for url, each in named if isinstance(each, _Unfit)]
    if len(answered) < nodes.quorum:
        return _too_few(deployment, nodes, unfit)
    return _judged(deployment, nodes, answered[nodes.quorum - 1], unfit)


async def _ask_in_time(deployment: Deployment, url: str) -> _Answers | _Unfit:
    try:
        async with asyncio.timeout(TIMEOUT):
            return await _ask(deployment, url)
    except TimeoutError:
        return _Unfit("the node does not answer in time", f"see {deployment.node_setting}")


async def _ask(deployment: Deployment, url: str) -> _Answers | _Unfit:
    """Ask one node for all that payments need of it."""
    session = deployment.resources.session
    asked = Node(url, Upstream("node", "the node", session, max_bytes=4 * MEGABYTE, patience=5))
    setting, chain_id = deployment.node_setting, deployment.settings.chain_id
    try:
        chain, block = await asked.ask(
            [("eth_chainId", []), ("eth_getBlockByNumber", ["latest", False])], tolerant=False
        )
        number, age = int(block["number"], 16), time.time() - int(block["timestamp"], 16)
        if int(chain, 16) != chain_id:
            mend = f"set {setting} to a node of chain {chain_id}"
            return _Unfit(f"the node is on chain {int(chain, 16)}, payments are on {chain_id}", mend)
        floor = max(0, number - SPAN + 1)
        _, start = await asked.logs([USED, None, NOBODY], floor, number, address=_token(deployment))
        has_safe_block = await _has_safe_block(asked)
    except ProviderFailure as failure:
        return _Unfit(failure.message, f"see to the node in {setting}")
    except (ValueError, LookupError, TypeError):
        return _Unfit("the node does not answer as a node does", f"see {setting}")
    if start > floor:
        given = f"the node gives logs of {number - start + 1} blocks at a time, and {SPAN} are asked for"
        return _Unfit(given, f"set {setting} to a node that gives more")
    return _Answers(number, age, has_safe_block)


async def _has_safe_block(asked: Node) -> bool:
    try:
        (block,) = await asked.ask([("eth_getBlockByNumber", ["safe", False])], tolerant=False)
        return int(block["number"], 16) >= 0
    except (ProviderFailure, ValueError, LookupError, TypeError):
        return False


def _token(deployment: Deployment) -> str | None:
    """The token that payments are made in, None where none is known: public nodes want a contract named."""
    try:
        return deployment.settings.token.address
    except KeyError:
        return None


def _too_few(deployment: Deployment, nodes: NodeSet, unfit: list[tuple[str, _Unfit]]) -> Finding:
    if len(nodes.urls) == 1:
        return failed(unfit[0][1].what, unfit[0][1].mend)
    if nodes.origin == "own":
        return failed(f"no node answers: {_listed(unfit)}", f"see to the nodes in {deployment.node_setting}")
    return failed(
        f"too few of the {nodes.description}: {_listed(unfit)}",
        f"set {deployment.node_setting} to a node of your own",
    )


def _judged(
    deployment: Deployment, nodes: NodeSet, answers: _Answers, unfit: list[tuple[str, _Unfit]]
) -> Finding:
    """Judge nodes of which enough answer."""
    block, setting = f"block {answers.block}, {max(0, answers.age):.0f} s old", deployment.node_setting
    if answers.age > OLD:
        seen = f"the newest block, {answers.block}, is {answers.age:.0f} s old"
        stalled = answers.age > STALLED and deployment.settings.development_chain is None
        mend = f"see whether it has fallen behind; {setting} names it"
        return failed(seen, mend) if stalled else warning(seen, mend)
    without = f"; without an answer: {_listed(unfit)}" if unfit else ""
    if nodes.origin == "public":
        return ok(
            f"public nodes, {nodes.quorum} of {len(nodes.urls)} must agree; "
            f"set {setting} to rely on your own; {block}{without}"
        )
    if any(map(in_the_clear, nodes.urls)):
        return warning("the node is asked over http, in the clear", "reach it over https")
    hosts = ", ".join(map(host, nodes.urls))
    safe = "" if answers.has_safe_block else f", no safe block: the one {CONFIRMATIONS} older counts for it"
    what = f"{hosts}, chain {deployment.settings.chain_id}, {block}{safe}{without}"
    return warning(what, f"see to the nodes in {setting}") if unfit else ok(what)


def _listed(unfit: list[tuple[str, _Unfit]]) -> str:
    return "; ".join(f"{host(url)} ({each.what})" for url, each in unfit)


def without_node(deployment: Deployment, because: str = "the chain was not asked") -> Finding:
    """What cannot be looked at; that matters where money is worth something."""
    what, mend = f"{deployment.node_setting} is not set: {because}", f"set {deployment.node_setting}"
    if deployment.settings.development_chain is None and deployment.settings.pay_to:
        return warning(what, mend)
    return skipped(what, mend)
