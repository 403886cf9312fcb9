"""Read calls to contracts, sent in bundles by Multicall3 where the chain has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from centgate.chains import CHAIN_BY_ID
from centgate.crypto.trusted_contracts import trusted_contracts
from centgate.providers.jsonrpc.client import CallFailure, RpcNode, RpcRequest
from centgate.providers.jsonrpc.multicall import MULTICALL, encode_aggregate, parse_aggregate
from centgate.providers.jsonrpc.node_pool import NodePool
from centgate.providers.jsonrpc.results import parse_bytes

MULTICALL_BATCH = 150
"""Calls in one aggregate: gas and response size stay within the limits of public nodes."""
MAX_RESULT_BYTES = 64 << 10
"""Bytes of a call's result that are kept: a hostile contract may return megabytes."""
_BundleResult = list[bytes | None] | Literal["no contract", "refused"]


class ContractCall(Struct, frozen=True):
    """Read call to a contract: address and call data."""

    to: str
    data: bytes


class ContractCaller:
    """Sends the calls of a request in bundles, and those of a failed bundle separately."""

    def __init__(self) -> None:
        self._no_multicall_chains: set[int] = set()
        """Development chains that were found to have no Multicall3."""

    async def call(self, nodes: NodePool, chain_id: int, calls: Sequence[ContractCall]) -> list[bytes | None]:
        """Return the current result of each call, in order; None if it reverted or there is no contract."""
        if chain_id in self._no_multicall_chains:
            return await _call_each(nodes, calls)
        groups = _group_calls(chain_id, calls)
        bundles = [[calls[position] for position in group] for group in groups]
        answers = await self._call_bundles(nodes, chain_id, bundles)
        results: list[bytes | None] = [None] * len(calls)
        for group, answer in zip(groups, answers, strict=True):
            for position, returned in zip(group, answer, strict=True):
                results[position] = returned
        return results

    async def _call_bundles(
        self, nodes: NodePool, chain_id: int, bundles: Sequence[Sequence[ContractCall]]
    ) -> list[list[bytes | None]]:
        requests = [_build_bundle_request(bundle) for bundle in bundles]

        async def ask_node(node: RpcNode) -> list[_BundleResult]:
            answers = await nodes.send_requests(node, requests, tolerant=True)
            return [_parse_bundle(len(each), answer) for each, answer in zip(bundles, answers, strict=True)]

        results = await nodes.first_success(ask_node)
        if "no contract" in results and chain_id not in CHAIN_BY_ID:
            self._no_multicall_chains.add(chain_id)
        failed = [bundle for bundle, result in zip(bundles, results, strict=True) if isinstance(result, str)]
        separate = iter(await _call_each(nodes, [call for bundle in failed for call in bundle]))
        return [
            [next(separate) for _ in bundle] if isinstance(result, str) else result
            for bundle, result in zip(bundles, results, strict=True)
        ]


def build_contract_request(call: ContractCall) -> RpcRequest:
    """Build the eth_call of a call that is sent by itself."""
    return "eth_call", [{"to": call.to, "data": "0x" + call.data.hex()}, "latest"]


async def _call_each(nodes: NodePool, calls: Sequence[ContractCall]) -> list[bytes | None]:
    if not calls:
        return []
    requests = [build_contract_request(call) for call in calls]
    return await nodes.fetch_each(requests, _parse_call, tolerant=True)


def _group_calls(chain_id: int, calls: Sequence[ContractCall]) -> list[list[int]]:
    """Return the positions of the calls that may share a bundle, at most MULTICALL_BATCH in each.

    Multicall3 executes calls that may change the state, so that one contract could change what later calls to
    another one read: only contracts of known code share a bundle with others.
    """
    by_contract: dict[str, list[int]] = {}
    trusted = trusted_contracts(chain_id)
    for position, call in enumerate(calls):
        key = "" if call.to in trusted else call.to
        by_contract.setdefault(key, []).append(position)
    return [
        group[start : start + MULTICALL_BATCH]
        for group in by_contract.values()
        for start in range(0, len(group), MULTICALL_BATCH)
    ]


def _build_bundle_request(bundle: Sequence[ContractCall]) -> RpcRequest:
    if len(bundle) == 1:
        return build_contract_request(bundle[0])
    content = encode_aggregate([(call.to, call.data) for call in bundle])
    return build_contract_request(ContractCall(MULTICALL, content))


def _parse_bundle(count: int, answer: Any) -> _BundleResult:
    """Parse the result of each call of a bundle."""
    if count == 1:
        return [_parse_call(answer)]
    if isinstance(answer, CallFailure):
        return "refused"  # a call that burns all gas leaves nothing for the others
    returned = parse_bytes(answer)
    if not returned:
        return "no contract"
    return [result and result[:MAX_RESULT_BYTES] for result in parse_aggregate(returned, count)]


def _parse_call(answer: Any) -> bytes | None:
    """Parse the result of a call, cut to MAX_RESULT_BYTES; None if it failed or returned nothing."""
    if isinstance(answer, CallFailure):
        return None
    return parse_bytes(answer[: 2 + 2 * MAX_RESULT_BYTES]) or None
