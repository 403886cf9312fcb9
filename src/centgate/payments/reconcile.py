"""What became of a settlement whose outcome is unknown: the chain knows.

A used nonce alone does not prove that we were paid: its owner can cancel an authorization, or spend the nonce
on somebody else, and do so in one transaction with another payment to us. So the `AuthorizationUsed` event of
this very nonce is looked up, and the token's next event must be the `Transfer` of our amount to our address:
EIP-3009's reference implementation and Circle's tokens write the two in this order, one after the other.

That we were paid is believed as soon as a block says so, as facilitators do. That we never will be is final
for a buyer who may have lost money, so it is believed of a block that will not be undone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, cast

import aiohttp
import orjson

from centgate.evm import keccak
from centgate.payments.authorization import PaymentKey
from centgate.settings import Settings

_AUTHORIZATION_STATE = keccak(b"authorizationState(address,bytes32)")[:4].hex()
_AUTHORIZATION_USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
_AUTHORIZATION_CANCELED = "0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex()
_TRANSFER = "0x" + keccak(b"Transfer(address,address,uint256)").hex()

SPAN = 2000
"""Blocks asked for at a time: public nodes refuse longer ranges."""
WINDOWS = 60
"""At most this many spans are searched, from when the payment came."""
BEFORE = 600
"""Seconds before that, since clocks differ."""
_DEVELOPMENT = ("anvil", "hardhat")
"""How nodes for development begin to say what they are."""
CONFIRMATIONS = 32
"""Blocks after which one will not be undone, where a node knows no `safe` block."""
WITHOUT_TRANSACTIONS = False
MAX_ANSWER = 4 << 20
"""Bytes of an answer that are read."""


class ChainUnreachable(Exception):
    """No node said what we asked."""


@dataclass(frozen=True, slots=True)
class Sought:
    """A payment, as far as the chain knows it."""

    key: PaymentKey
    pay_to: str
    amount: int
    valid_before: int
    """In seconds since 1970, as is the next."""
    since: float
    """When it was first presented."""


@dataclass(frozen=True, slots=True)
class Paid:
    """The payment reached us in `transaction`."""

    transaction: str


Fate = Paid | Literal["unused", "expired", "lost", "unsure"]
"""`unused`: it can still be settled; `expired`: it never can; `lost`: its nonce went to something else.

`unsure`: one of the last two, by blocks that may yet be undone.
"""


class Chains:
    """The networks that payments are or were made on, as far as the operator has set nodes for them."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings, timeout: float = 10) -> None:
        self._session = session
        self._settings = settings
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._chains: dict[str, Chain | None] = {}

    def of(self, network: str) -> Chain | None:
        """The network's chain; None where no node is set for it."""
        if network not in self._chains:
            self._chains[network] = self._chain(int(network.removeprefix("eip155:")))
        return self._chains[network]

    def _chain(self, chain_id: int) -> Chain | None:
        urls = (self._settings.provider(f"rpc_{chain_id}").url or "").split(",")
        nodes = [Node(self._session, url.strip(), chain_id, self._timeout) for url in urls if url.strip()]
        return Chain(nodes) if nodes else None


class Node:
    """A JSON-RPC node, which must be of the chain it was set for."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, chain_id: int, timeout: aiohttp.ClientTimeout
    ) -> None:
        self._session = session
        self._url = url
        self._chain_id = chain_id
        self._timeout = timeout
        self._known = False

    async def ask(self, method: str, *params: Any) -> Any:
        """The result of one call, None for `null`; ChainUnreachable when there is none."""
        if not self._known:
            if _number(await self._ask("eth_chainId")) != self._chain_id:
                raise ChainUnreachable("the node is of another chain")
            self._known = True
        return await self._ask(method, *params)

    async def block(self, number: str) -> dict[str, Any]:
        """A block by its number or name."""
        found = await self.ask("eth_getBlockByNumber", number, WITHOUT_TRANSACTIONS)
        if found is None:
            raise ChainUnreachable(f"the node has no block {number}")
        return cast(dict[str, Any], found)

    async def is_for_development(self) -> bool:
        """Whether it makes up a chain of its own, where no block is undone and few come by themselves."""
        try:
            version = await self.ask("web3_clientVersion")
        except ChainUnreachable:
            return False
        return str(version).lower().startswith(_DEVELOPMENT)

    async def time_of(self, number: int) -> int:
        """When a block was made, in seconds since 1970."""
        return _number((await self.block(hex(number)))["timestamp"])

    async def _ask(self, method: str, *params: Any) -> Any:
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        try:
            async with self._session.post(
                self._url,
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise ChainUnreachable(f"{method}: status {response.status}")
                return orjson.loads(await _read(response))["result"]
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise ChainUnreachable(f"{method} failed") from error


class Chain:
    """A network, asked about authorizations by the first of its nodes that answers."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes

    async def has_code(self, address: str) -> bool:
        """Whether a contract, or an account that delegates to one, stands at the address."""
        failure = ChainUnreachable("there is no node")
        for node in self._nodes:
            try:
                return (await node.ask("eth_getCode", address, "latest")) not in (None, "", "0x")
            except ChainUnreachable as error:
                failure = error
        raise failure

    async def fate(self, sought: Sought) -> Fate:
        """What became of a payment; ChainUnreachable when no node gives an answer that holds together."""
        failure = ChainUnreachable("there is no node")
        for node in self._nodes:
            try:
                return await _fate(node, sought)
            except ChainUnreachable as error:
                failure = error
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                failure = ChainUnreachable("the node answered in a shape that is not known")
                failure.__cause__ = error
        raise failure


async def _fate(node: Node, sought: Sought) -> Fate:
    latest = await node.block("latest")
    if not await _used(node, sought, "latest"):
        if _number(latest["timestamp"]) < sought.valid_before:
            return "unused"
        return await _surely_expired(node, sought, latest)
    number = _number(latest["number"])
    log = await _spent(node, sought, number)
    if log is None:
        raise ChainUnreachable("the node has no event for a nonce that is used")
    transaction = str(log["transactionHash"])
    if await _pays_us(node, sought, transaction):
        return Paid(transaction)
    safe = await _safe_block(node, number)
    return "lost" if _number(log["blockNumber"]) <= _number(safe["number"]) else "unsure"


async def _surely_expired(node: Node, sought: Sought, latest: dict[str, Any]) -> Fate:
    """Expired, if its nonce is unused in a block past its end that will not be undone."""
    safe = await _safe_block(node, _number(latest["number"]))
    if _number(safe["timestamp"]) < sought.valid_before:
        return "unsure"
    return "unsure" if await _used(node, sought, safe["number"]) else "expired"


async def _safe_block(node: Node, latest: int) -> dict[str, Any]:
    """The newest block that the network itself calls safe: on a rollup, one whose data is on its base."""
    if await node.is_for_development():
        return await node.block(hex(latest))
    try:
        return await node.block("safe")
    except ChainUnreachable:
        return await node.block(hex(max(0, latest - CONFIRMATIONS)))


async def _used(node: Node, sought: Sought, block: str) -> bool:
    data = f"0x{_AUTHORIZATION_STATE}{_word(sought.key.payer)}{sought.key.nonce[2:]}"
    return _number(await node.ask("eth_call", {"to": sought.key.asset, "data": data}, block)) != 0


async def _spent(node: Node, sought: Sought, latest: int) -> dict[str, Any] | None:
    """The event by which it was used or cancelled, searched forward from when the payment came."""
    first = await _block_before(node, sought.since - BEFORE, latest)
    for start in range(first, min(latest + 1, first + WINDOWS * SPAN), SPAN):
        query = {
            "address": sought.key.asset,
            "fromBlock": hex(start),
            "toBlock": hex(min(latest, start + SPAN - 1)),
            "topics": [
                [_AUTHORIZATION_USED, _AUTHORIZATION_CANCELED],
                "0x" + _word(sought.key.payer),
                sought.key.nonce,
            ],
        }
        logs = cast(list[dict[str, Any]], await node.ask("eth_getLogs", query))
        ours = [log for log in logs if _spends(log, sought) and not log.get("removed")]
        if ours:
            return ours[0]
    return None


async def _block_before(node: Node, time: float, latest: int) -> int:
    """A block from before `time`, not many blocks earlier than need be."""
    high, low = latest, max(0, latest - SPAN + 1)
    while low > 0 and await node.time_of(low) >= time:
        high, low = low, max(0, low - 2 * (latest - low))
    while high - low > SPAN:
        middle = (low + high) // 2
        if await node.time_of(middle) >= time:
            high = middle
        else:
            low = middle
    return low


async def _pays_us(node: Node, sought: Sought, transaction: str) -> bool:
    receipt = cast(dict[str, Any] | None, await node.ask("eth_getTransactionReceipt", transaction))
    if receipt is None or _number(receipt["status"]) != 1:
        raise ChainUnreachable("the node has an event without its transaction")
    events = [log for log in receipt["logs"] if log["address"].lower() == sought.key.asset]
    for event, following in zip_longest(events, events[1:]):
        if _spends(event, sought):
            used = event["topics"][0].lower() == _AUTHORIZATION_USED
            return used and following is not None and _is_ours(following, sought)
    raise ChainUnreachable("the node has an event that its transaction has not")


def _spends(log: dict[str, Any], sought: Sought) -> bool:
    """Whether an event is the use or the end of this authorization."""
    topics = [topic.lower() for topic in log["topics"]]
    return (
        log["address"].lower() == sought.key.asset
        and topics[:1] in ([_AUTHORIZATION_USED], [_AUTHORIZATION_CANCELED])
        and topics[1:] == ["0x" + _word(sought.key.payer), sought.key.nonce]
    )


def _is_ours(log: dict[str, Any], sought: Sought) -> bool:
    """Whether an event is the transfer of our amount from the payer to us."""
    ours = [_TRANSFER, "0x" + _word(sought.key.payer), "0x" + _word(sought.pay_to)]
    return [topic.lower() for topic in log["topics"]] == ours and _number(log["data"]) == sought.amount


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise ValueError("the node's answer is too long")
    return bytes(body)


def _word(address: str) -> str:
    return address.lower().removeprefix("0x").rjust(64, "0")


def _number(quantity: Any) -> int:
    try:
        return int(quantity, 16)
    except (TypeError, ValueError) as error:
        raise ChainUnreachable(f"not a number: {str(quantity)[:80]}") from error
