"""JSON-RPC node: reads the chain itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

from centgate.chains import CHAIN_BY_ID
from centgate.coercion import from_unix_seconds, get_path
from centgate.crypto.event_logs import (
    EventLog,
    EventLogs,
    TopicFilter,
    has_topics,
    parse_event_log,
    parse_hex_number,
)
from centgate.crypto.token.trade_funding import trade_funding
from centgate.crypto.trusted_contracts import trusted_contracts
from centgate.errors import ProviderFailure, ProviderRateLimited, ProviderTimeout, ProviderUnconfigured
from centgate.provider import Provider, ProviderInfo, RequestTrace, instrumented
from centgate.providers.jsonrpc.client import (
    CAPABILITY_TTL,
    CallFailure,
    CallFeatures,
    NodePool,
    RequestJoiner,
    RpcNode,
    RpcRequest,
    run_concurrently,
)
from centgate.providers.jsonrpc.multicall import encode_aggregate, parse_aggregate
from centgate.providers.jsonrpc.simulated_calls import (
    CallOutcome,
    SimulatedCall,
    build_call_request,
    can_run,
    group_by_features,
    merge_features,
    parse_call_outcome,
    read_call_features,
)
from centgate.timestamps import format_timestamp
from centgate.upstream import Upstream

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

PUBLIC_NODES = {
    1: ("https://ethereum-rpc.publicnode.com", "https://eth.drpc.org"),
    8453: ("https://mainnet.base.org", "https://base-rpc.publicnode.com"),
    56: ("https://bsc-dataseed.bnbchain.org", "https://bsc-rpc.publicnode.com"),
    137: ("https://polygon-rpc.com", "https://polygon-bor-rpc.publicnode.com"),
    42161: ("https://arb1.arbitrum.io/rpc", "https://arbitrum-one-rpc.publicnode.com"),
    10: ("https://mainnet.optimism.io", "https://optimism-rpc.publicnode.com"),
}
"""Public nodes without a key, for chains whose `CENTGATE_RPC_<CHAINID>_URL` is not set."""

MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
"""Multicall3, at the same address on all six chains (github.com/mds1/multicall3)."""
MULTICALL_BATCH = 150
"""Calls in one aggregate: gas and response size stay within the limits of public nodes."""
LIST_SECONDS = 2.0
"""Seconds for a node to list what a call touches; a slow one must not use up those of the trades."""
MAX_RESULT_BYTES = 64 << 10
"""Bytes of a call's result that are kept: a hostile contract may return megabytes."""
_BundleResult = list[bytes | None] | Literal["no contract", "refused"]
LATEST = "latest"
_FIRST_SLOT = "0x" + "0" * 64
MAX_BLOCK_AGE = timedelta(hours=1)
"""Age from which a node's latest block is named in a warning; the chains make one every few seconds."""
LOGS_TIME_SHARE = 0.8
"""Share of the deadline after which no more logs are requested; those read so far are returned."""


@dataclass(frozen=True, slots=True)
class ContractCall:
    """Read call to a contract: address and call data."""

    to: str
    data: bytes


@dataclass(frozen=True, slots=True)
class BlockHeader:
    number: int
    timestamp: int
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class OnchainAccount:
    """State of an account: code, number of transactions sent, and 32 bytes of storage slot 0."""

    code: bytes
    transaction_count: int
    first_slot: bytes


class Rpc(Provider):
    """Current code, storage, balances and allowances on the chain, and event logs of a bounded range.

    A chain may have several nodes: if one fails or is rate limited, the next is tried.
    """

    info = ProviderInfo(
        "rpc",
        "JSON-RPC node",
        docs_url="https://ethereum.org/developers/docs/apis/json-rpc",
        resale="permitted",
        terms="Public nodes are for fair use and limit the rate of calls and the range of logs.",
        max_bytes=8 << 20,
        per_chain=True,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        chains = {*PUBLIC_NODES, settings.chain_id} if settings.development_chain else {*PUBLIC_NODES}
        urls = {
            chain: _node_urls(settings, chain)
            for chain in chains
            if settings.provider_settings(f"rpc_{chain}").enabled
        }
        self._nodes = {
            chain: [
                RpcNode(url, self.open_upstream(resources, settings, part=f"{chain}:{number}"))
                for number, url in enumerate(nodes)
            ]
            for chain, nodes in urls.items()
        }
        self._no_multicall_chains: set[int] = set()
        self.joiner = RequestJoiner()

    def bind(self, trace: RequestTrace, skip_reason: str | None = None) -> Self:
        bound = super().bind(trace, skip_reason)
        # only calls of one request are joined: no buyer waits for what another one asked
        bound.joiner = RequestJoiner()
        return bound

    def supports_chain(self, chain_id: int | None) -> bool:
        return chain_id is not None and bool(self._nodes.get(chain_id))

    def upstreams_for(self, chain_id: int | None, options: Mapping[str, Any]) -> Sequence[Upstream]:
        return [] if chain_id is None else [node.upstream for node in self._nodes.get(chain_id, ())]

    @instrumented
    async def contract_codes(self, chain_id: int, addresses: Sequence[str]) -> list[bytes]:
        """Return the current code at each address; empty without a contract."""
        requests = [("eth_getCode", [address, LATEST]) for address in addresses]
        return await self._nodes_of(chain_id).fetch_each(requests, _parse_bytes)

    @instrumented
    async def storage_slots(self, chain_id: int, address: str, slots: Sequence[str]) -> list[bytes]:
        """Return the current 32 bytes in each storage slot (0x and 64 digits) of a contract."""
        requests = [("eth_getStorageAt", [address, slot, LATEST]) for slot in slots]
        return await self._nodes_of(chain_id).fetch_each(requests, _parse_word)

    @instrumented
    async def native_balance(self, chain_id: int, address: str) -> int:
        """Return the current balance of the native coin, in wei."""
        (balance,) = await self._nodes_of(chain_id).fetch_each(
            [("eth_getBalance", [address, LATEST])], _parse_number
        )
        return balance

    @instrumented
    async def transaction_counts(self, chain_id: int, addresses: Sequence[str]) -> list[int]:
        """Return the number of transactions each address has sent (for a contract: contracts created)."""
        requests = [("eth_getTransactionCount", [address, LATEST]) for address in addresses]
        return await self._nodes_of(chain_id).fetch_each(requests, _parse_number)

    @instrumented
    async def account(self, chain_id: int, address: str) -> OnchainAccount:
        """Return the current state of an account, in one batch."""
        methods = ("eth_getCode", [address, LATEST]), ("eth_getTransactionCount", [address, LATEST])
        requests = [*methods, ("eth_getStorageAt", [address, _FIRST_SLOT, LATEST])]
        code, count, slot = await self._nodes_of(chain_id).fetch_each(requests, _parse_padded)
        if len(count) > 8 or len(slot) > 32:
            raise self.invalid_response("returned an impossible account")
        return OnchainAccount(code, int.from_bytes(count), slot.rjust(32, b"\0"))

    @instrumented
    async def latest_block(self, chain_id: int) -> BlockHeader:
        """Return the newest block."""
        (block,) = await self._nodes_of(chain_id).fetch_each(
            [("eth_getBlockByNumber", [LATEST, False])], _parse_block
        )
        made = from_unix_seconds(block.timestamp)
        if chain_id in CHAIN_BY_ID and made and datetime.now(UTC) - made > MAX_BLOCK_AGE:
            self.trace.add_warning(
                f"the node's latest block is of {format_timestamp(made)}: what happened since is missing"
            )
        return block

    @instrumented
    async def gas_price(self, chain_id: int) -> int:
        """Return the price of gas in wei that the node proposes for a transaction."""
        (price,) = await self._nodes_of(chain_id).fetch_each([("eth_gasPrice", [])], _parse_number)
        return price

    @instrumented
    async def block_headers(self, chain_id: int, numbers: Sequence[int]) -> list[BlockHeader]:
        """Return blocks by number, in the order of `numbers`."""
        requests = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
        return await self._nodes_of(chain_id).fetch_each(requests, _parse_block)

    @instrumented
    async def call_contracts(self, chain_id: int, calls: Sequence[ContractCall]) -> list[bytes | None]:
        """Return the current result of each call, in order; None if it reverted or there is no contract.

        Calls to one contract are sent as one bundle by Multicall3, and so are those to contracts of known
        code; a bundle is executed in one block. Other contracts share no bundle: Multicall3 executes calls
        that may change the state, so that one contract could change what later calls to another one read.
        Without Multicall3, or if a call makes its bundle fail, calls are sent separately.
        """
        groups = _group_calls(chain_id, calls)
        bundles = [[calls[position] for position in group] for group in groups]
        if chain_id in self._no_multicall_chains:
            return await self._call_each(chain_id, calls)
        answers = await self._call_bundles(chain_id, bundles)
        results: list[bytes | None] = [None] * len(calls)
        for group, answer in zip(groups, answers, strict=True):
            for position, returned in zip(group, answer, strict=True):
                results[position] = returned
        return results

    @instrumented
    async def call_outcome(self, chain_id: int, call: ContractCall) -> CallOutcome:
        """Return the current result of one call, sent by itself, with the reason if it failed."""
        (outcome,) = await self._nodes_of(chain_id).fetch_each(
            [_build_call_request(call)], parse_call_outcome, tolerant=True
        )
        return outcome

    @instrumented
    async def called_slots(
        self, chain_id: int, contract: str, calls: Sequence[bytes]
    ) -> frozenset[str] | None:
        """Return the storage slots (0x and 64 digits) of a contract that these calls to it touch.

        None if no node tells. The calls are sent by Multicall3: nodes may leave out slots of the account that
        a transaction names, as listing them costs more than it saves.
        """
        content = encode_aggregate([(contract, data) for data in calls])
        request = ("eth_createAccessList", [{"to": MULTICALL, "data": "0x" + content.hex()}, LATEST])
        nodes = self._nodes_of(chain_id).nodes
        max_wait = min(LIST_SECONDS, self.remaining_seconds / (2 * len(nodes)))
        for node in nodes:
            if time.monotonic() < node.no_access_lists_until:
                continue
            try:
                async with asyncio.timeout(max_wait):
                    (answer,) = await node.send_requests([request], tolerant=True)
                return _parse_called_slots(answer, contract)
            except (TimeoutError, ProviderRateLimited, ProviderTimeout):
                continue
            except (ProviderFailure, ValueError, LookupError, TypeError, AttributeError):
                # many nodes lack this method, which is no failure of theirs
                node.no_access_lists_until = time.monotonic() + CAPABILITY_TTL
        return None

    @instrumented
    async def call_features(self, chain_id: int) -> CallFeatures:
        """Return what a chain's nodes can do in `simulate_calls`; probed once per node, and kept.

        Coins are sent from the wrapped native coin, a contract that always has some.
        """
        features = await self._probe_calls(self._nodes_of(chain_id).nodes, chain_id)
        if not (known := [each for each in features if each is not None]):
            raise self.invalid_response(f"has no node of chain {chain_id} that responds")
        return merge_features(known)

    @instrumented
    async def call_features_by_chain(self) -> dict[int, list[CallFeatures | None]]:
        """Return what each node of each chain can do in `simulate_calls`; None for one without answer."""
        chains = [chain for chain, nodes in self._nodes.items() if nodes]
        features = await asyncio.gather(*(self._probe_calls(self._nodes[chain], chain) for chain in chains))
        return dict(zip(chains, features, strict=True))

    @instrumented
    async def simulate_calls(self, chain_id: int, calls: Sequence[SimulatedCall]) -> list[CallOutcome]:
        """Run each call by itself on the latest state, and return the results in order.

        Only nodes that `call_features` found able to are asked: one for all calls if there is such a node,
        else one for those that need the same features.
        """
        nodes = self._nodes.get(chain_id, ())
        is_one_able = any(can_run(node, calls) for node in nodes)
        groups = [list(range(len(calls)))] if is_one_able else group_by_features(calls)
        answers = await run_concurrently(
            self._run_calls(chain_id, [calls[position] for position in group]) for group in groups
        )
        outcomes = {
            position: outcome
            for group, answer in zip(groups, answers, strict=True)
            for position, outcome in zip(group, answer, strict=True)
        }
        return [outcomes[position] for position in range(len(calls))]

    @instrumented
    async def simulate_at_accounts(
        self, chain_id: int, calls: Mapping[str, SimulatedCall]
    ) -> tuple[int, dict[str, tuple[bytes, CallOutcome]]]:
        """Run a call for each account.

        Return the node's latest block, and the account's code on the chain with the result, by account.
        """
        requests: list[RpcRequest] = [("eth_blockNumber", [])]
        requests += [("eth_getCode", [account, LATEST]) for account in calls]
        requests += [build_call_request(call) for call in calls.values()]
        pool = self._nodes_for(chain_id, list(calls.values()))

        async def ask_node(node: RpcNode) -> tuple[int, list[CallOutcome]]:
            height, *answers = await pool.send_requests(node, requests, tolerant=True)
            return _parse_number(height), [parse_call_outcome(answer) for answer in answers]

        height, outcomes = await pool.first_success(ask_node)
        codes = [outcome.data for outcome in outcomes[: len(calls)]]
        return height, dict(zip(calls, zip(codes, outcomes[len(calls) :], strict=True), strict=True))

    @instrumented
    async def event_logs(
        self,
        chain_id: int,
        topics: TopicFilter,
        *,
        to_block: int,
        blocks: int,
        requests: int = 20,
        limit: int = 5_000,
        address: str | None = None,
    ) -> EventLogs:
        """Return event logs with these topics in the `blocks` blocks up to `to_block`, as far as possible.

        `address` limits them to one contract.

        The range is read backwards in parts as long as the node allows, until it is complete, or `requests`
        parts are read, or `limit` logs are found, or the time is nearly over; `from_block` is the first block
        that was read.
        """
        logs: list[EventLog] = []
        unread = 0
        end, floor = to_block, max(0, to_block - blocks + 1)
        deadline = asyncio.get_running_loop().time() + self.remaining_seconds * LOGS_TIME_SHARE
        while end >= floor and requests > 0 and len(logs) < limit:
            requests -= 1
            try:
                # the first part has the provider's whole time: without it there is no result
                async with asyncio.timeout_at(deadline if end < to_block else None):
                    log_range = await self._nodes_of(chain_id).first_success(
                        partial(_read_log_range, chain_id, topics, floor, end, address)
                    )
            except (TimeoutError, ProviderFailure) as failure:
                if end == to_block:
                    raise
                reason = failure.message if isinstance(failure, ProviderFailure) else "out of time"
                self.trace.add_warning(f"event logs before block {end + 1} were not read: {reason}")
                self.trace.is_provisional = True
                break
            if log_range.unread:
                self.trace.add_warning(f"{log_range.unread} event logs of the node could not be parsed")
            unread += log_range.unread
            logs += log_range.entries
            end = log_range.start - 1
        logs.sort(key=lambda log: (log.block, log.index))
        return EventLogs(tuple(logs), end + 1, to_block, unread)

    @instrumented
    async def probe(self) -> str:
        """Query the chain id of every node; warn of failed nodes of chains that have a working one."""
        chains = [chain for chain, nodes in self._nodes.items() if nodes]
        failures = await asyncio.gather(*map(self._probe_chain, chains))
        for chain, node_failures in zip(chains, failures, strict=True):
            if len(node_failures) == len(self._nodes[chain]):
                raise node_failures[0]
            for failure in node_failures:
                self.trace.add_warning(failure.message)
        return f"nodes of {len(chains)} chains respond"

    async def _probe_calls(self, nodes: Sequence[RpcNode], chain_id: int) -> list[CallFeatures | None]:
        """Return what each node can do; None for one that does not answer within half of the time left."""
        sender, max_wait = trade_funding(chain_id).wrapped, self.remaining_seconds / 2

        async def probe(node: RpcNode) -> CallFeatures | None:
            with suppress(TimeoutError):
                async with asyncio.timeout(max_wait):
                    return await read_call_features(node, sender)
            return None

        return await asyncio.gather(*map(probe, nodes))

    async def _probe_chain(self, chain_id: int) -> list[ProviderFailure]:
        """Return the failures of a chain's nodes."""
        failures: list[ProviderFailure] = []
        for number, node in enumerate(self._nodes[chain_id], 1):
            try:
                (answer,) = await NodePool([node], self.remaining_seconds).fetch_each(
                    [("eth_chainId", [])], _parse_number
                )
                if answer != chain_id:
                    raise node.invalid_response(f"is on chain {answer} but configured for chain {chain_id}")
            except ProviderFailure as failure:
                failure.message += f" (chain {chain_id}, node {number})"
                failures.append(failure)
        return failures

    async def _run_calls(self, chain_id: int, calls: Sequence[SimulatedCall]) -> list[CallOutcome]:
        requests = [build_call_request(call) for call in calls]
        return await self._nodes_for(chain_id, calls).fetch_each(requests, parse_call_outcome, tolerant=True)

    def _nodes_for(self, chain_id: int, calls: Sequence[SimulatedCall]) -> NodePool:
        """Return the nodes that can run these calls."""
        able = [node for node in self._nodes.get(chain_id, ()) if can_run(node, calls)]
        if not able:
            raise self.invalid_response("has no node that can simulate these calls")
        return NodePool(able, self.remaining_seconds, self.joiner)

    def _nodes_of(self, chain_id: int) -> NodePool:
        nodes = self._nodes.get(chain_id)
        if not nodes:
            raise ProviderUnconfigured(self.info.name, f"no node is configured for chain {chain_id}")
        return NodePool(nodes, self.remaining_seconds, self.joiner)

    async def _call_bundles(
        self, chain_id: int, bundles: Sequence[Sequence[ContractCall]]
    ) -> list[list[bytes | None]]:
        requests = [_build_bundle_request(bundle) for bundle in bundles]
        pool = self._nodes_of(chain_id)

        async def ask_node(node: RpcNode) -> list[_BundleResult]:
            answers = await pool.send_requests(node, requests, tolerant=True)
            return [_parse_bundle(len(each), answer) for each, answer in zip(bundles, answers, strict=True)]

        results = await pool.first_success(ask_node)
        if "no contract" in results and chain_id not in PUBLIC_NODES:
            self._no_multicall_chains.add(chain_id)
        failed = [bundle for bundle, result in zip(bundles, results, strict=True) if isinstance(result, str)]
        separate = iter(await self._call_each(chain_id, [call for bundle in failed for call in bundle]))
        return [
            [next(separate) for _ in bundle] if isinstance(result, str) else result
            for bundle, result in zip(bundles, results, strict=True)
        ]

    async def _call_each(self, chain_id: int, calls: Sequence[ContractCall]) -> list[bytes | None]:
        if not calls:
            return []
        requests = [_build_call_request(call) for call in calls]
        return await self._nodes_of(chain_id).fetch_each(requests, _parse_call, tolerant=True)


def _node_urls(settings: Settings, chain_id: int) -> tuple[str, ...]:
    """Return the node URLs of a chain: its own setting, else the gateway's, else public nodes."""
    chain_urls, gateway = (
        settings.provider_settings(f"rpc_{chain_id}").url,
        settings.provider_settings("rpc").url,
    )
    if not chain_urls and not gateway:
        return PUBLIC_NODES.get(chain_id, ())
    urls = chain_urls or (gateway or "").replace("{chain_id}", str(chain_id))
    return tuple(url.strip() for url in urls.split(",") if url.strip())


@dataclass(frozen=True, slots=True)
class _LogRange:
    """Event logs of the blocks from `start` on; `unread` of them could not be parsed."""

    entries: Sequence[EventLog]
    unread: int
    start: int


async def _read_log_range(
    chain_id: int, topics: TopicFilter, floor: int, end: int, address: str | None, node: RpcNode
) -> _LogRange:
    returned, start = await node.get_logs(list(topics), floor, end, address=address)
    # what a reorganisation took out of the chain did not happen
    entries = [entry for entry in returned if get_path(entry, "removed") is not True]
    parsed = [log for entry in entries if (log := parse_event_log(entry, chain_id))]
    if entries and not parsed:
        raise ValueError("no event log in a known format")
    matching = [log for log in parsed if has_topics(log, topics) and address in (None, log.address)]
    return _LogRange(matching, len(entries) - len(parsed), start)


def _group_calls(chain_id: int, calls: Sequence[ContractCall]) -> list[list[int]]:
    """Return the positions of the calls that may share a bundle, at most MULTICALL_BATCH in each."""
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


def _build_call_request(call: ContractCall) -> RpcRequest:
    return "eth_call", [{"to": call.to, "data": "0x" + call.data.hex()}, LATEST]


def _build_bundle_request(bundle: Sequence[ContractCall]) -> RpcRequest:
    if len(bundle) == 1:
        return _build_call_request(bundle[0])
    content = encode_aggregate([(call.to, call.data) for call in bundle])
    return _build_call_request(ContractCall(MULTICALL, content))


def _parse_bundle(count: int, answer: Any) -> _BundleResult:
    """Parse the result of each call of a bundle."""
    if count == 1:
        return [_parse_call(answer)]
    if isinstance(answer, CallFailure):
        return "refused"  # a call that burns all gas leaves nothing for the others
    returned = _parse_bytes(answer)
    if not returned:
        return "no contract"
    return [result and result[:MAX_RESULT_BYTES] for result in parse_aggregate(returned, count)]


def _parse_call(answer: Any) -> bytes | None:
    """Parse the result of a call, cut to MAX_RESULT_BYTES; None if it failed or returned nothing."""
    if isinstance(answer, CallFailure):
        return None
    return _parse_bytes(answer[: 2 + 2 * MAX_RESULT_BYTES]) or None


def _parse_called_slots(answer: Any, contract: str) -> frozenset[str] | None:
    """Parse the slots of a contract in an access list.

    None if the contract is missing, as without a call, or if the call failed, which cuts the list.
    """
    if isinstance(answer, CallFailure) or answer.get("error"):
        return None
    entries = [each for each in answer["accessList"] if each["address"].lower() == contract]
    slots = (int(slot, 16) for entry in entries for slot in entry["storageKeys"])
    return frozenset(f"0x{slot:064x}" for slot in slots) if entries else None


def _parse_bytes(value: Any) -> bytes:
    return bytes.fromhex(value.removeprefix("0x"))


def _parse_padded(value: Any) -> bytes:
    """Parse hex digits, also those of a quantity, which may be odd in number."""
    digits = value.removeprefix("0x")
    return bytes.fromhex("0" * (len(digits) % 2) + digits)


def _parse_word(value: Any) -> bytes:
    # some nodes omit leading zeros, or all of them
    return int(value.removeprefix("0x") or "0", 16).to_bytes(32, "big")


def _parse_number(value: Any) -> int:
    return int(value, 16)


def _parse_block(block: Any) -> BlockHeader:
    seconds = _parse_number(block["timestamp"])
    if seconds and not from_unix_seconds(seconds):
        raise ValueError("not a block time")
    return BlockHeader(parse_hex_number(block["number"]), seconds)
