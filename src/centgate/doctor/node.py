"""Whether the payment network's node can tell what became of a payment."""

from __future__ import annotations

import time

from centgate.doctor.check import Finding, failed, ok, skipped, warning
from centgate.doctor.deployment import Deployment, host, in_the_clear
from centgate.errors import ProviderFailure
from centgate.evm import keccak
from centgate.payments.onchain import SPAN

OLD, STALLED = 60, 300
"""Seconds of age of the newest block."""
USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
NOBODY = "0x" + "0" * 63 + "1"
"""The nonce of a payment that nobody made."""


async def node(deployment: Deployment) -> Finding:
    """The payment network's node is on the right chain, is up to date, and gives the logs that settle what a
    facilitator left open."""
    asked = deployment.node
    if asked is None:
        return without_node(deployment, "outcomes that a facilitator leaves open are asked of it alone")
    setting, chain_id = deployment.node_setting, deployment.settings.chain_id
    try:
        chain, block = await asked.ask(
            [("eth_chainId", []), ("eth_getBlockByNumber", ["latest", False])], tolerant=False
        )
        number, age = int(block["number"], 16), time.time() - int(block["timestamp"], 16)
        if int(chain, 16) != chain_id:
            return failed(
                f"the node is on chain {int(chain, 16)}, payments are on {chain_id}",
                f"set {setting} to a node of chain {chain_id}",
            )
        floor = max(0, number - SPAN + 1)
        _, start = await asked.logs([USED, None, NOBODY], floor, number)
    except ProviderFailure as failure:
        return failed(failure.message, f"see to the node in {setting}")
    except (ValueError, LookupError, TypeError):
        return failed("the node does not answer as a node does", f"see {setting}")
    if start > floor:
        return failed(
            f"the node gives logs of {number - start + 1} blocks at a time, and {SPAN} are asked for",
            f"set {setting} to a node that gives more",
        )
    return _age(number, age, deployment)


def _age(number: int, age: float, deployment: Deployment) -> Finding:
    url = deployment.settings.rpc_url or ""
    if age > OLD:
        seen = f"the node's newest block, {number}, is {age:.0f} s old"
        mend = f"see whether it has fallen behind; {deployment.node_setting} names it"
        stalled = age > STALLED and deployment.settings.development_chain is None
        return failed(seen, mend) if stalled else warning(seen, mend)
    if in_the_clear(url):
        return warning("the node is asked over http, in the clear", "reach it over https")
    return ok(f"{host(url)}, chain {deployment.settings.chain_id}, block {number}, {max(0, age):.0f} s old")


def without_node(deployment: Deployment, because: str = "the chain was not asked") -> Finding:
    """What cannot be looked at; that matters where money is worth something."""
    what, mend = f"{deployment.node_setting} is not set: {because}", f"set {deployment.node_setting}"
    if deployment.settings.development_chain is None and deployment.settings.pay_to:
        return warning(what, mend)
    return skipped(what, mend)
