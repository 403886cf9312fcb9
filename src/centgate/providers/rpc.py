"""JSON-RPC node: reads the chain itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from centgate.chains import CHAIN_BY_ID
from centgate.coercion import MAX_BASE_UNITS, from_unix_seconds
from centgate.crypto.contract.proxy_standards import FIRST_SLOT
from centgate.crypto.event_logs import EventLogs, TopicFilter
from centgate.crypto.token.trade_funding import trade_funding
from centgate.errors import ProviderFailure, ProviderUnconfigured
from centgate.provider import Provider, ProviderInfo, RequestTrace, instrumented
from centgate.providers.jsonrpc.access_lists import read_touched_accounts
from centgate.providers.jsonrpc.client import CallFeatures, RpcNode, RpcRequest, run_concurrently
from centgate.providers.jsonrpc.contract_calls import ContractCall, ContractCaller, build_contract_request
from centgate.providers.jsonrpc.log_ranges import LogFilter, read_event_logs
from centgate.providers.jsonrpc.node_pool import NodePool, RequestJoiner
from centgate.providers.jsonrpc.results import (
    BlockHeader,
    OnchainAccount,
    parse_block,
    parse_bytes,
    parse_number,
    parse_padded,
    parse_word,
)
from centgate.providers.jsonrpc.simulated_calls import (
    CallOutcome,
    SimulatedCall,
    build_call_request,
    can_run,
    group_calls,
    merge_features,
    parse_call_outcome,
    read_features_of_each,
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

LATEST = "latest"
MAX_BLOCK_AGE = timedelta(hours=1)
"""Age from which a node's latest block is named in a warning; the chains make one every few seconds."""


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
        self._contract_caller = ContractCaller()
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
        return await self._nodes_of(chain_id).fetch_each(requests, parse_bytes)

    @instrumented
    async def storage_slots(self, chain_id: int, address: str, slots: Sequence[str]) -> list[bytes]:
        """Return the current 32 bytes in each storage slot (0x and 64 digits) of a contract."""
        requests = [("eth_getStorageAt", [address, slot, LATEST]) for slot in slots]
        return await self._nodes_of(chain_id).fetch_each(requests, parse_word)

    @instrumented
    async def native_balance(self, chain_id: int, address: str) -> int:
        """Return the current balance of the native coin, in wei."""
        (balance,) = await self._nodes_of(chain_id).fetch_each(
            [("eth_getBalance", [address, LATEST])], parse_number
        )
        if not 0 <= balance <= MAX_BASE_UNITS:
            raise self.invalid_response("returned an impossible balance")
        return balance

    @instrumented
    async def transaction_counts(self, chain_id: int, addresses: Sequence[str]) -> list[int]:
        """Return the number of transactions each address has sent (for a contract: contracts created)."""
        requests = [("eth_getTransactionCount", [address, LATEST]) for address in addresses]
        return await self._nodes_of(chain_id).fetch_each(requests, parse_number)

    @instrumented
    async def account(self, chain_id: int, address: str) -> OnchainAccount:
        """Return the current state of an account, in one batch."""
        methods = ("eth_getCode", [address, LATEST]), ("eth_getTransactionCount", [address, LATEST])
        requests = [*methods, ("eth_getStorageAt", [address, FIRST_SLOT, LATEST])]
        code, count, slot = await self._nodes_of(chain_id).fetch_each(requests, parse_padded)
        if len(count) > 8 or len(slot) > 32:
            raise self.invalid_response("returned an impossible account")
        return OnchainAccount(code, int.from_bytes(count), slot.rjust(32, b"\0"))

    @instrumented
    async def latest_block(self, chain_id: int) -> BlockHeader:
        """Return the newest block."""
        (block,) = await self._nodes_of(chain_id).fetch_each(
            [("eth_getBlockByNumber", [LATEST, False])], parse_block
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
        (price,) = await self._nodes_of(chain_id).fetch_each([("eth_gasPrice", [])], parse_number)
        return price

    @instrumented
    async def block_headers(self, chain_id: int, numbers: Sequence[int]) -> list[BlockHeader]:
        """Return blocks by number, in the order of `numbers`."""
        requests = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
        return await self._nodes_of(chain_id).fetch_each(requests, parse_block)

    @instrumented
    async def call_contracts(self, chain_id: int, calls: Sequence[ContractCall]) -> list[bytes | None]:
        """Return the current result of each call, in order; None if it reverted or there is no contract.

        Calls to one contract are sent as one bundle by Multicall3, and so are those to contracts of known
        code; a bundle is executed in one block. Other contracts share no bundle: Multicall3 executes calls
        that may change the state, so that one contract could change what later calls to another one read.
        Without Multicall3, or if a call makes its bundle fail, calls are sent separately.
        """
        return await self._contract_caller.call(self._nodes_of(chain_id), chain_id, calls)

    @instrumented
    async def call_outcome(self, chain_id: int, call: ContractCall) -> CallOutcome:
        """Return the current result of one call, sent by itself, with the reason if it failed."""
        (outcome,) = await self._nodes_of(chain_id).fetch_each(
            [build_contract_request(call)], parse_call_outcome, tolerant=True
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
        touched = await read_touched_accounts(self._nodes_of(chain_id), contract, calls)
        return touched[contract] if touched else None

    @instrumented
    async def touched_accounts(
        self, chain_id: int, contract: str, calls: Sequence[bytes]
    ) -> Mapping[str, frozenset[str]] | None:
        """Return the accounts (lower case) that these calls to a contract touch, with their storage slots.

        As `called_slots`. Some nodes leave out accounts of which no slot is touched.
        """
        return await read_touched_accounts(self._nodes_of(chain_id), contract, calls)

    @instrumented
    async def call_features(self, chain_id: int) -> CallFeatures:
        """Return what a chain's nodes can do in `simulate_calls`; probed once per node, and kept.

        Coins are sent from the wrapped native coin, a contract that always has some.
        """
        features = await self._probe_calls(chain_id, self._nodes_of(chain_id).nodes)
        if not (known := [each for each in features if each is not None]):
            raise self.invalid_response(f"has no node of chain {chain_id} that responds")
        return merge_features(known)

    @instrumented
    async def call_features_by_chain(self) -> dict[int, list[CallFeatures | None]]:
        """Return what each node of each chain can do in `simulate_calls`; None for one without answer."""
        chains = [chain for chain, nodes in self._nodes.items() if nodes]
        features = await asyncio.gather(*(self._probe_calls(chain, self._nodes[chain]) for chain in chains))
        return dict(zip(chains, features, strict=True))

    @instrumented
    async def simulate_calls(self, chain_id: int, calls: Sequence[SimulatedCall]) -> list[CallOutcome]:
        """Run each call by itself on the latest state, and return the results in order.

        Only nodes that can do it, as `call_features` found, are asked: one node for all calls if there is
        such a node, else one node for the calls that need the same features.
        """
        groups = group_calls(self._nodes.get(chain_id, ()), calls)
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
            return parse_number(height), [parse_call_outcome(answer) for answer in answers]

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

        The range is read backwards, in parts as long as the node allows. Reading ends when the range is
        complete, `requests` parts are read, `limit` logs are found, or the time is nearly over. `from_block`
        is the first block that was read.
        """
        return await read_event_logs(
            self._nodes_of(chain_id),
            LogFilter(chain_id, topics, address),
            self.trace,
            to_block=to_block,
            blocks=blocks,
            requests=requests,
            limit=limit,
        )

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

    async def _probe_calls(self, chain_id: int, nodes: Sequence[RpcNode]) -> list[CallFeatures | None]:
        return await read_features_of_each(nodes, trade_funding(chain_id).wrapped, self.remaining_seconds / 2)

    async def _probe_chain(self, chain_id: int) -> list[ProviderFailure]:
        """Return the failures of a chain's nodes."""
        failures: list[ProviderFailure] = []
        for number, node in enumerate(self._nodes[chain_id], 1):
            try:
                (answer,) = await self._open_pool([node], None).fetch_each(
                    [("eth_chainId", [])], parse_number
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
        return self._open_pool(able, self.joiner)

    def _nodes_of(self, chain_id: int) -> NodePool:
        nodes = self._nodes.get(chain_id)
        if not nodes:
            raise ProviderUnconfigured(self.info.name, f"no node is configured for chain {chain_id}")
        return self._open_pool(nodes, self.joiner)

    def _open_pool(self, nodes: Sequence[RpcNode], joiner: RequestJoiner | None) -> NodePool:
        return NodePool(nodes, partial(self.trace.remaining, self.timeout), joiner)


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
