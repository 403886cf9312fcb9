"""Calls that run code which is not on the chain: without recipient, or with overrides of accounts.

Nodes differ in what they know of this, so each is probed before it is used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from centgate.errors import ProviderFailure
from centgate.providers.jsonrpc.client import CallFailure, CallFeatures, RpcNode, RpcRequest
from centgate.providers.jsonrpc.errors import is_refusal

FEATURES_TTL = 6 * 3600.0
"""Seconds for which the features of a node are kept."""
NO_FEATURES_TTL = 600.0
"""Seconds for which a node without them is remembered as such; it may have failed for another reason."""
_PROBE_GAS = 200_000
_PROBE_ACCOUNT = "0x00000000000000000000000000000000ce47a7e0"
"""Address without code."""
_PROBE_BALANCE = 42
_RETURN_SENT_VALUE = bytes.fromhex("3460005260206000f3")
_RETURN_OWN_BALANCE = bytes.fromhex("303160005260206000f3")


@dataclass(frozen=True, slots=True)
class AccountState:
    """State of an account during one call; None keeps what the chain has."""

    code: bytes | None = field(default=None, repr=False)
    balance: int | None = None
    """Native coins, in wei."""
    slots: Mapping[str, str] | None = None
    """Storage slots with other values, each 0x and 64 digits; the others keep theirs."""


@dataclass(frozen=True, slots=True)
class SimulatedCall:
    """Call that changes nothing. Without `to`, `data` is a constructor, which returns code as the result."""

    data: bytes = field(repr=False)
    gas: int
    to: str | None = None
    sender: str | None = None
    value: int = 0
    """Native coins, in wei."""
    gas_price: int = 0
    """In wei. At 0 nodes run the call in a block with a base fee of 0, which contracts can see."""
    overrides: Mapping[str, AccountState] = field(default_factory=dict[str, AccountState])


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Result of a simulated call."""

    succeeded: bool
    data: bytes = field(repr=False)
    """Returned data, or revert data as far as the node gives it."""
    message: str | None = None
    """The node's message on a failed call; untrusted text."""
    is_refusal: bool = False
    """True if the called code ended the call; False also if the node's gas or time did."""


def build_call_request(call: SimulatedCall) -> RpcRequest:
    """Build the eth_call of a simulated call."""
    transaction = {"gas": hex(call.gas), "data": "0x" + call.data.hex()}
    if call.to is not None:
        transaction["to"] = call.to
    if call.sender is not None:
        transaction["from"] = call.sender
    if call.value:
        transaction["value"] = hex(call.value)
    if call.gas_price:
        transaction["gasPrice"] = hex(call.gas_price)
    overrides = {address: _build_override(state) for address, state in call.overrides.items()}
    return "eth_call", [transaction, "latest", *([overrides] if overrides else [])]


def parse_call_outcome(answer: Any) -> CallOutcome:
    """Parse the result of an eth_call. Raises ValueError for anything but bytes."""
    if isinstance(answer, CallFailure):
        return CallOutcome(
            succeeded=False,
            data=_parse_hex(answer.data or "0x"),
            message=answer.message,
            is_refusal=is_refusal(answer.code, answer.message.lower()),
        )
    return CallOutcome(succeeded=True, data=bytes.fromhex(answer.removeprefix("0x")))


async def read_call_features(node: RpcNode, sender: str) -> CallFeatures | None:
    """Return the features of a node, probed once in a while; None if it does not answer.

    `sender` is a contract with coins, such as the wrapped native coin.
    """
    if node.call_features is not None and time.monotonic() < node.call_features_until:
        return node.call_features
    creates, overrides, coins = await asyncio.gather(
        _probe_call(node, SimulatedCall(_RETURN_SENT_VALUE, _PROBE_GAS, sender=sender, value=1), 1),
        _probe_call(node, _override_probe(), _PROBE_BALANCE),
        _read_coins(node, sender),
    )
    if coins is None:
        return None
    features = CallFeatures(creates and coins > 0, overrides, coins)
    ttl = FEATURES_TTL if creates and overrides else NO_FEATURES_TTL
    node.call_features, node.call_features_until = features, time.monotonic() + ttl
    return features


async def read_features_of_each(
    nodes: Sequence[RpcNode], sender: str, max_wait: float
) -> list[CallFeatures | None]:
    """Return the features of each node; None for one that does not answer within `max_wait` seconds."""

    async def read(node: RpcNode) -> CallFeatures | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max_wait):
                return await read_call_features(node, sender)
        return None

    return await asyncio.gather(*map(read, nodes))


def merge_features(features: Sequence[CallFeatures]) -> CallFeatures:
    """Return what a chain's nodes can do together; the coins are the fewest that a node tells."""
    creators = [each for each in features if each.create_calls]
    return CallFeatures(
        create_calls=bool(creators),
        overrides=any(each.overrides for each in features),
        coins=min((each.coins for each in creators), default=0),
    )


def group_calls(nodes: Sequence[RpcNode], calls: Sequence[SimulatedCall]) -> list[list[int]]:
    """Group calls, by their positions, that one node is asked for.

    All of them if a node can run all, else those that need the same features.
    """
    if any(can_run(node, calls) for node in nodes):
        return [list(range(len(calls)))]
    groups: dict[tuple[bool, bool], list[int]] = {}
    for position, call in enumerate(calls):
        groups.setdefault((call.to is None, bool(call.overrides)), []).append(position)
    return list(groups.values())


def can_run(node: RpcNode, calls: Sequence[SimulatedCall]) -> bool:
    """True if a node can run all of these calls, as far as it was probed."""
    features = node.call_features
    return features is not None and all(
        (features.create_calls or call.to is not None) and (features.overrides or not call.overrides)
        for call in calls
    )


def _override_probe() -> SimulatedCall:
    state = AccountState(_RETURN_OWN_BALANCE, _PROBE_BALANCE)
    return SimulatedCall(b"", _PROBE_GAS, to=_PROBE_ACCOUNT, overrides={_PROBE_ACCOUNT: state})


async def _probe_call(node: RpcNode, call: SimulatedCall, expected: int) -> bool:
    """True if a call returns the expected number."""
    try:
        (answer,) = await node.send_requests([build_call_request(call)], tolerant=True)
        outcome = parse_call_outcome(answer)
    except (ProviderFailure, ValueError, TypeError, AttributeError):
        return False
    return outcome.succeeded and outcome.data == expected.to_bytes(32, "big")


async def _read_coins(node: RpcNode, address: str) -> int | None:
    try:
        (answer,) = await node.send_requests([("eth_getBalance", [address, "latest"])], tolerant=False)
        return int(answer, 16)
    except (ProviderFailure, ValueError, TypeError):
        return None


def _build_override(state: AccountState) -> dict[str, Any]:
    override: dict[str, Any] = {}
    if state.code is not None:
        override["code"] = _encode_code(state.code)
    if state.balance is not None:
        override["balance"] = hex(state.balance)
    if state.slots:
        override["stateDiff"] = dict(state.slots)
    return override


@lru_cache(maxsize=8)
def _encode_code(code: bytes) -> str:
    """Encode code in hexadecimal digits; the same 15 KB are set at each account."""
    return "0x" + code.hex()


def _parse_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        return b""
