"""JSON-RPC node: the chain itself, asked through a node."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError

from centgate.errors import ProviderFailure, ProviderUnconfigured
from centgate.jsonrpc.nodes import Node, Nodes, RpcRefused, at_once
from centgate.provider import About, Provider, reported
from centgate.readings import since_1970
from centgate.upstream import Upstream

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

PUBLIC = {
    1: ("https://ethereum-rpc.publicnode.com", "https://eth.drpc.org"),
    8453: ("https://mainnet.base.org", "https://base-rpc.publicnode.com"),
    56: ("https://bsc-dataseed.bnbchain.org", "https://bsc-rpc.publicnode.com"),
    137: ("https://polygon-rpc.com", "https://polygon-bor-rpc.publicnode.com"),
    42161: ("https://arb1.arbitrum.io/rpc", "https://arbitrum-one-rpc.publicnode.com"),
    10: ("https://mainnet.optimism.io", "https://optimism-rpc.publicnode.com"),
}
"""Nodes that answer without a key, for chains whose `CENTGATE_RPC_<CHAINID>_URL` is not set."""

MULTICALL = "0xca11bde05977b3631167028862be2a173976ca11"
"""Multicall3, at the same address on all six chains (github.com/mds1/multicall3)."""
AGGREGATE = bytes.fromhex("82ad56cb")  # aggregate3((address,bool,bytes)[])
CALLS_AT_ONCE = 150
"""Calls in one aggregate: its gas and its answer stay within what public nodes allow."""
LATEST = "latest"
_ADDRESS, _WORD = re.compile("0x[0-9a-fA-F]{40}"), re.compile("0x[0-9a-fA-F]{64}")
_DATA = re.compile("0x(?:[0-9a-fA-F]{2})*")
TIME_FOR_LOGS = 0.8
"""The part of the deadline after which no more logs are asked for: what was read is answered."""


@dataclass(frozen=True, slots=True)
class Call:
    """A read of a contract: its address and the call data."""

    to: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    timestamp: int
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Log:
    """An event: who emitted it, topics and data, all in lower case, and where it stands in the chain."""

    address: str
    topics: tuple[str, ...]
    data: str
    block: int
    index: int
    transaction: str


@dataclass(frozen=True, slots=True)
class Logs:
    """Events of a range of blocks, oldest first."""

    entries: tuple[Log, ...]
    from_block: int
    to_block: int


class Rpc(Provider):
    """Code, storage, balances and allowances as the chain has them now, and event logs of a bounded range.

    A chain may have several nodes: when one fails, or refuses for its rate, the next is asked.
    """

    about = About(
        "rpc",
        "JSON-RPC node",
        docs_url="https://ethereum.org/developers/docs/apis/json-rpc",
        terms="Public nodes are for fair use and limit the rate of calls and the range of logs.",
        max_bytes=8 << 20,
        per_chain=True,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        chains = {*PUBLIC, settings.chain_id} if settings.development_chain else {*PUBLIC}
        urls = {
            chain: _urls(settings, chain) for chain in chains if settings.provider(f"rpc_{chain}").enabled
        }
        self._nodes = {
            chain: [
                Node(url, self.way_out(resources, settings, part=f"{chain}:{number}"))
                for number, url in enumerate(nodes)
            ]
            for chain, nodes in urls.items()
        }
        self._without_multicall: set[int] = set()

    def covers(self, chain_id: int | None) -> bool:
        return chain_id is not None and bool(self._nodes.get(chain_id))

    def upstreams_for(self, chain_id: int | None, asked: Mapping[str, Any]) -> Sequence[Upstream]:
        return [] if chain_id is None else [node.upstream for node in self._nodes.get(chain_id, ())]

    @reported
    async def codes(self, chain_id: int, addresses: Sequence[str]) -> list[bytes]:
        """The code at each address now; empty where there is none."""
        asked = [("eth_getCode", [address, LATEST]) for address in addresses]
        return await self._on(chain_id).each(asked, _bytes)

    @reported
    async def slots(self, chain_id: int, address: str, slots: Sequence[str]) -> list[bytes]:
        """The 32 bytes in each storage slot (0x and 64 digits) of a contract now."""
        asked = [("eth_getStorageAt", [address, slot, LATEST]) for slot in slots]
        return await self._on(chain_id).each(asked, _word)

    @reported
    async def native_balance(self, chain_id: int, address: str) -> int:
        """The balance of the chain's own coin now, in wei."""
        (balance,) = await self._on(chain_id).each([("eth_getBalance", [address, LATEST])], _number)
        return balance

    @reported
    async def nonces(self, chain_id: int, addresses: Sequence[str]) -> list[int]:
        """How many transactions each address has sent (or contracts it has created, for a contract)."""
        asked = [("eth_getTransactionCount", [address, LATEST]) for address in addresses]
        return await self._on(chain_id).each(asked, _number)

    @reported
    async def latest_block(self, chain_id: int) -> Block:
        """The newest block."""
        (block,) = await self._on(chain_id).each([("eth_getBlockByNumber", [LATEST, False])], _block)
        return block

    @reported
    async def blocks(self, chain_id: int, numbers: Sequence[int]) -> list[Block]:
        """Blocks by number, in the order asked."""
        asked = [("eth_getBlockByNumber", [hex(number), False]) for number in numbers]
        return await self._on(chain_id).each(asked, _block)

    @reported
    async def calls(self, chain_id: int, calls: Sequence[Call]) -> list[bytes | None]:
        """What each call returns now, in order; None where it reverted or there was nothing to call.

        Asked in bundles by Multicall3, all of one bundle in one block; one by one in batches where the chain
        has no Multicall3, and where a call spoils its bundle.
        """
        if chain_id in self._without_multicall:
            return await self._singly(chain_id, calls)
        bundles = [calls[start : start + CALLS_AT_ONCE] for start in range(0, len(calls), CALLS_AT_ONCE)]
        answers = await at_once(self._bundle(chain_id, bundle) for bundle in bundles)
        return [returned for answer in answers for returned in answer]

    @reported
    async def logs(
        self,
        chain_id: int,
        topics: Sequence[str | Sequence[str] | None],
        *,
        to_block: int,
        blocks: int,
        requests: int = 20,
        most: int = 5_000,
    ) -> Logs:
        """Events with these topics in the `blocks` blocks up to `to_block`, or as many of them as can be had.

        The range is read backwards in spans as long as the node allows, until it is read, or `requests` spans
        are, or `most` events are found, or the time is nearly over: `from_block` says how far it went.
        """
        found: list[Log] = []
        end, floor = to_block, max(0, to_block - blocks + 1)
        deadline = asyncio.get_running_loop().time() + self.left * TIME_FOR_LOGS
        while end >= floor and requests > 0 and len(found) < most:
            requests -= 1
            try:
                # the first span has the provider's whole time: without it there is no answer
                async with asyncio.timeout_at(deadline if end < to_block else None):
                    span = await self._on(chain_id).first(partial(_newest_logs, topics, floor, end))
            except (TimeoutError, ProviderFailure) as failure:
                if end == to_block:
                    raise
                why = failure.message if isinstance(failure, ProviderFailure) else "time was up"
                self.record.warn(f"event logs before block {end + 1} were not read: {why}")
                self.record.provisional = True
                break
            if span.unread:
                self.record.warn(f"{span.unread} event logs of the node could not be read")
            found += span.entries
            end = span.start - 1
        found.sort(key=lambda log: (log.block, log.index))
        return Logs(tuple(found), end + 1, to_block)

    @reported
    async def probe(self) -> str:
        """Ask every node which chain it is on; warns of those that fail where another stands in."""
        chains = [chain for chain, nodes in self._nodes.items() if nodes]
        failures = await asyncio.gather(*map(self._probed, chains))
        for chain, failed in zip(chains, failures, strict=True):
            if len(failed) == len(self._nodes[chain]):
                raise failed[0]
            for failure in failed:
                self.record.warn(failure.message)
        return f"nodes of {len(chains)} chains answer"

    async def _probed(self, chain_id: int) -> list[ProviderFailure]:
        """What is wrong with each node of a chain that is not as it should be."""
        failures: list[ProviderFailure] = []
        for number, node in enumerate(self._nodes[chain_id], 1):
            try:
                (answer,) = await Nodes([node], self.left).each([("eth_chainId", [])], _number)
                if answer != chain_id:
                    raise node.failed(f"is on chain {answer}, and set for chain {chain_id}")
            except ProviderFailure as failure:
                failure.message += f" (chain {chain_id}, node {number})"
                failures.append(failure)
        return failures

    def _on(self, chain_id: int) -> Nodes:
        nodes = self._nodes.get(chain_id)
        if not nodes:
            raise ProviderUnconfigured(self.about.name, f"no node is set up for chain {chain_id}")
        return Nodes(nodes, self.left)

    async def _bundle(self, chain_id: int, calls: Sequence[Call]) -> list[bytes | None]:
        content = encode(["(address,bool,bytes)[]"], [[(call.to, True, call.data) for call in calls]])
        asked = ("eth_call", [{"to": MULTICALL, "data": "0x" + (AGGREGATE + content).hex()}, LATEST])
        read = partial(_aggregated, len(calls))
        (returned,) = await self._on(chain_id).each([asked], read, tolerant=True)
        if isinstance(returned, list):
            return returned
        if returned == "no contract" and chain_id not in PUBLIC:
            self._without_multicall.add(chain_id)
        return await self._singly(chain_id, calls)

    async def _singly(self, chain_id: int, calls: Sequence[Call]) -> list[bytes | None]:
        asked = [("eth_call", [{"to": call.to, "data": "0x" + call.data.hex()}, LATEST]) for call in calls]
        return await self._on(chain_id).each(asked, _returned, tolerant=True)


def _urls(settings: Settings, chain_id: int) -> tuple[str, ...]:
    """The nodes of a chain: its own setting, else the gateway's, else public ones."""
    own, gateway = settings.provider(f"rpc_{chain_id}").url, settings.provider("rpc").url
    if not own and not gateway:
        return PUBLIC.get(chain_id, ())
    urls = own or (gateway or "").replace("{chain_id}", str(chain_id))
    return tuple(url.strip() for url in urls.split(",") if url.strip())


@dataclass(frozen=True, slots=True)
class _Span:
    """Events of the blocks from `start` on; `unread` of them are not in a form that is known."""

    entries: Sequence[Log]
    unread: int
    start: int


async def _newest_logs(
    topics: Sequence[str | Sequence[str] | None], floor: int, end: int, node: Node
) -> _Span:
    entries, start = await node.logs(list(topics), floor, end)
    read = [log for entry in entries if (log := _log(entry))]
    if entries and not read:
        raise ValueError("no event log in a form that is known")
    asked_for = [log for log in read if _has(log, topics)]
    return _Span(asked_for, len(entries) - len(read), start)


def _has(log: Log, topics: Sequence[str | Sequence[str] | None]) -> bool:
    """Whether an event has the topics that were asked for; some nodes are careless."""
    return len(topics) <= len(log.topics) and all(
        wanted is None or topic in ([wanted] if isinstance(wanted, str) else wanted)
        for wanted, topic in zip(topics, log.topics, strict=False)
    )


def _aggregated(count: int, answer: Any) -> list[bytes | None] | Literal["no contract", "refused"]:
    """What each call of an aggregate returned."""
    if isinstance(answer, RpcRefused):
        return "refused"  # a call that burns all gas leaves none for the others
    returned = _bytes(answer)
    if not returned:
        return "no contract"
    try:
        (results,) = decode(["(bool,bytes)[]"], returned)
    except DecodingError as error:
        raise ValueError("not the results of an aggregate") from error
    if len(results) != count:
        raise ValueError(f"{len(results)} results of {count} calls")
    # an address without code succeeds with nothing
    return [data if success and data else None for success, data in results]


def _returned(answer: Any) -> bytes | None:
    return None if isinstance(answer, RpcRefused) else _bytes(answer) or None


def _bytes(value: Any) -> bytes:
    return bytes.fromhex(value.removeprefix("0x"))


def _word(value: Any) -> bytes:
    # some nodes leave out leading zeros, or all of them
    return int(value.removeprefix("0x") or "0", 16).to_bytes(32, "big")


def _number(value: Any) -> int:
    return int(value, 16)


def _height(value: Any) -> int:
    """The number of a block."""
    if not 0 <= (height := int(value, 16)) < 2**53:
        raise ValueError("no number of a block")
    return height


def _block(block: Any) -> Block:
    seconds = _number(block["timestamp"])
    if seconds and not since_1970(seconds):
        raise ValueError("no time of a block")
    return Block(_height(block["number"]), seconds)


def _log(entry: Any) -> Log | None:
    try:
        return Log(
            address=_matched(_ADDRESS, entry["address"]),
            topics=tuple(_matched(_WORD, topic) for topic in entry["topics"]),
            data=_matched(_DATA, entry["data"]),
            block=_height(entry["blockNumber"]),
            index=_height(entry["logIndex"]),
            transaction=_matched(_WORD, entry["transactionHash"]),
        )
    except (ValueError, LookupError, TypeError):
        return None


def _matched(pattern: re.Pattern[str], value: Any) -> str:
    if not pattern.fullmatch(value):
        raise ValueError("not in the form of its kind")
    return value.lower()
