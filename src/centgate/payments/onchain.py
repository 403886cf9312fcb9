"""Status of payments on the chain, which decides where a facilitator left the outcome of a settlement open.

A used nonce does not prove that we were paid: its owner can cancel an authorization or spend the nonce on
somebody else, and the payment may have bought an answer elsewhere before it came here. Proof is a transaction
that succeeded, in a block younger than our claim, in which the token's next event after
`AuthorizationUsed(payer, nonce)` is the `Transfer` of our amount from the payer to us: EIP-3009's reference
implementation and Circle's tokens write the two one after the other.

"Paid" is believed of the newest block, as facilitators do. "Never will be paid" is final for a buyer whose
money may yet move, so it takes a block that the network calls `safe`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Literal, TypeVar, cast

import aiohttp
import orjson
from cachetools import TTLCache

from centgate.evm import keccak
from centgate.payments.authorization import PaymentKey
from centgate.payments.nodes import NodeSet, payment_nodes
from centgate.settings import Settings

T = TypeVar("T")

_AUTHORIZATION_STATE = keccak(b"authorizationState(address,bytes32)")[:4].hex()
_AUTHORIZATION_USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
_AUTHORIZATION_CANCELED = "0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex()
_DECIMALS = "0x" + keccak(b"decimals()")[:4].hex()
_TRANSFER = "0x" + keccak(b"Transfer(address,address,uint256)").hex()

_UINT8 = re.compile(r"0x0{62}[0-9a-fA-F]{2}")

TIMEOUT = 5.0
"""Seconds that nodes have together while a buyer waits."""
BACKGROUND_TIMEOUT = 60.0
"""Seconds that they have when nobody waits: an old payment may take many questions."""
HEDGE_DELAY = 1.5
"""Seconds after which the next node is asked beside one that has not answered."""
SPAN = 2000
"""Blocks of one `eth_getLogs`: public nodes refuse longer ranges."""
MAX_SPANS = 60
"""Spans that are searched at most, from the claim on."""
CLOCK_ALLOWANCE = 600
"""Seconds that clocks may be wrong, where no block number was known when a payment was claimed."""
CONFIRMATIONS = 32
"""Blocks after which a block is taken for safe, where a node knows no `safe` block."""
MAX_ANSWER = 4 << 20
"""Bytes of an answer that are read."""
BLOCK_REFRESH = 5.0
"""Seconds between two readings of the newest block number while payments arrive."""
BLOCK_WAIT = 1.0
"""Seconds that a payment waits for the newest block number after a pause."""
MAX_BLOCK = 2**53
"""A block number from here on is none."""
BLOCK_MAX_AGE = 600.0
"""Seconds for which a block number that cannot be refreshed is used."""
CODE_TTL = 4 * 3600
NO_CODE_TTL = 60
"""Seconds for which code, and no code, at an address is remembered: a wallet may be deployed at any time."""
CODE_CACHE_SIZE = 10_000
WITHOUT_TRANSACTIONS = False
_DEVELOPMENT = ("anvil", "hardhat")
"""Prefixes of `web3_clientVersion` on development nodes."""


class ChainUnreachable(Exception):
    """No node, or not enough of them, gave an answer that holds together; `answers` are those that came."""

    def __init__(self, message: str, answers: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.answers = answers


@dataclass(frozen=True, slots=True)
class PaymentQuery:
    """A payment as the chain knows it, and since when we have."""

    key: PaymentKey
    pay_to: str
    amount: int
    valid_before: int
    """Seconds since 1970."""
    presented_at: float
    """Seconds since 1970; counts only where `claim_block` is None."""
    claim_block: int | None
    """Newest block number known when the payment was first presented: its transfer must be in a later one."""


@dataclass(frozen=True, slots=True)
class Paid:
    """The payment reached us in `transaction`, after our claim."""

    transaction: str


OnchainStatus = Paid | Literal["unused", "expired_unsafe", "expired", "spent_unsafe", "spent"]
"""`unused`: can still be settled; `expired`: never can; `spent`: used for anything but paying us after our
claim.

`_unsafe`: so far, by blocks that may yet be undone.
"""

TransactionStatus = Literal["succeeded", "reverted", "unknown"]
"""`reverted`: and the nonce was unused after its block. `unknown`: nothing that says so of this payment."""


@dataclass(frozen=True, slots=True)
class AuthorizedTransfer:
    """A transfer that a token made by an authorization (EIP-3009); addresses are in lower case."""

    payer: str
    nonce: str
    pay_to: str
    amount: int


def authorized_transfers(receipt: dict[str, Any], asset: str) -> tuple[AuthorizedTransfer, ...]:
    """Return the transfers of a token by authorization in a transaction, in their order.

    The token's next event after `AuthorizationUsed(payer, nonce)` must be a `Transfer` from that payer.
    """
    events = [log for log in receipt["logs"] if log["address"].lower() == asset]
    return tuple(
        AuthorizedTransfer(_address(used[1]), used[2], _address(moved[2]), _number(transfer["data"]))
        for event, transfer in pairwise(events)
        if (used := _topics(event))[:1] == [_AUTHORIZATION_USED]
        and (moved := _topics(transfer))[:2] == [_TRANSFER, used[1]]
    )


class Chains:
    """The networks that payments are or were made on."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings) -> None:
        self._session = session
        self._settings = settings
        self._chains: dict[str, Chain | None] = {}

    def of(self, network: str) -> Chain | None:
        """Return the chain of a network (CAIP-2), None where there is no node for it."""
        if network not in self._chains:
            nodes = payment_nodes(self._settings, network)
            self._chains[network] = Chain(self._session, nodes) if nodes.urls else None
        return self._chains[network]


class Node:
    """A JSON-RPC node, which must be of the chain it was set for."""

    def __init__(self, session: aiohttp.ClientSession, url: str, chain_id: int) -> None:
        self._session = session
        self._url = url
        self._chain_id = chain_id
        self._timeout = aiohttp.ClientTimeout(total=10)
        self._chain_checked = False

    async def ask(self, method: str, *params: Any) -> Any:
        """Return the result of one call, None for `null`. Raises ChainUnreachable."""
        if not self._chain_checked:
            if _number(await self._post("eth_chainId")) != self._chain_id:
                raise ChainUnreachable("the node is of another chain")
            self._chain_checked = True
        return await self._post(method, *params)

    async def block(self, number: str) -> dict[str, Any]:
        """Return a block by its number in hex or its name. Raises ChainUnreachable."""
        found = await self.ask("eth_getBlockByNumber", number, WITHOUT_TRANSACTIONS)
        if found is None:
            raise ChainUnreachable(f"the node has no block {number}")
        return cast(dict[str, Any], found)

    async def is_for_development(self) -> bool:
        """True for a chain made on one machine, where no block is undone and few come by themselves."""
        try:
            version = await self.ask("web3_clientVersion")
        except ChainUnreachable:
            return False
        return str(version).lower().startswith(_DEVELOPMENT)

    async def timestamp(self, number: int) -> int:
        """Return the time of a block in seconds since 1970. Raises ChainUnreachable."""
        return _number((await self.block(hex(number)))["timestamp"])

    async def _post(self, method: str, *params: Any) -> Any:
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
    """A network, asked about payments through its nodes; as many as the quorum must agree."""

    def __init__(self, session: aiohttp.ClientSession, nodes: NodeSet) -> None:
        chain_id = int(nodes.network.removeprefix("eip155:"))
        self._nodes = [Node(session, url, chain_id) for url in nodes.urls]
        self.is_public = nodes.origin == "public"
        self._quorum = nodes.quorum
        self._code = TTLCache[str, bool](CODE_CACHE_SIZE, CODE_TTL)
        self._no_code = TTLCache[str, bool](CODE_CACHE_SIZE, NO_CODE_TTL)
        self._block: int | None = None
        self._block_at = self._refreshed_at = -BLOCK_MAX_AGE
        """Monotonic times: of the block number known, and of the last attempt to read it."""
        self._refresh: asyncio.Task[None] | None = None

    async def has_code(self, address: str) -> bool:
        """True if there is code at the address, its own or delegated. Raises ChainUnreachable."""
        if address in self._code:
            return True
        if address in self._no_code:
            return False
        found = await self._agreed(lambda node: _has_code(node, address), TIMEOUT)
        (self._code if found else self._no_code)[address] = found
        return found

    async def payment_status(self, query: PaymentQuery, *, max_wait: float = TIMEOUT) -> OnchainStatus:
        """Return the status of a payment.

        Raises ChainUnreachable, with `spent_unsafe` among its answers for each node that knows the nonce to
        be used but could not tell by what.
        """
        used: list[OnchainStatus] = []
        try:
            return await self._agreed(lambda node: _payment_status(node, query, used), max_wait)
        except ChainUnreachable as error:
            raise ChainUnreachable(str(error), (*error.answers, *used)) from error

    async def transaction_status(self, transaction: str, key: PaymentKey) -> TransactionStatus:
        """Return the status of a transaction of a payment by its hash. Raises ChainUnreachable."""
        return await self._agreed(lambda node: _transaction_status(node, transaction, key), TIMEOUT)

    async def received(
        self, transaction: str, asset: str, recipient: str
    ) -> int | Literal["reverted", "unknown"]:
        """Return what a transaction moved of a token to an address from others; `unknown` without a receipt.

        Raises ChainUnreachable.
        """
        return await self._agreed(lambda node: _received(node, transaction, asset, recipient), TIMEOUT)

    async def find_payment(self, query: PaymentQuery, last: int) -> Paid | None:
        """Return the payment if it reached us after our claim and up to a block, None if it did not.

        Raises ChainUnreachable.
        """
        return await self._agreed(lambda node: _find_payment(node, query, last), BACKGROUND_TIMEOUT)

    async def transactions_to(
        self, asset: str, pay_to: str, first: int, last: int
    ) -> tuple[tuple[int, str], ...]:
        """Return block and hash of each transaction that moved a token to an address, in their order.

        Raises ChainUnreachable.
        """
        return await self._agreed(
            lambda node: _transactions_to(node, asset, pay_to, first, last), BACKGROUND_TIMEOUT
        )

    async def authorized_transfers(self, transaction: str, asset: str) -> tuple[AuthorizedTransfer, ...]:
        """Return what a transaction moved of a token by authorizations. Raises ChainUnreachable."""
        return await self._agreed(lambda node: _authorized_transfers(node, transaction, asset), TIMEOUT)

    async def safe_block(self) -> int:
        """Return the newest safe block number that as many nodes as the quorum have.

        Raises ChainUnreachable.
        """
        found = await self._numbers(_safe_number)
        if len(found) < self._quorum:
            raise ChainUnreachable("not enough nodes answer")
        return found[self._quorum - 1]

    async def first_block_since(self, earliest: float, latest: int) -> int:
        """Return the first block up to `latest` that is not older than a time, else the one after `latest`.

        Raises ChainUnreachable.
        """
        return await self._agreed(lambda node: _first_since(node, earliest, latest), BACKGROUND_TIMEOUT)

    async def block_time(self, number: int) -> int:
        """Return the time of a block in seconds since 1970. Raises ChainUnreachable."""
        return await self._agreed(lambda node: node.timestamp(number), TIMEOUT)

    async def decimals(self, token: str) -> int:
        """Return the decimals of a token. Raises ChainUnreachable."""
        return await self._agreed(lambda node: _decimals(node, token), TIMEOUT)

    async def newest_block(self) -> int | None:
        """Return the newest block number known, None if none is; waits a second at most, after a pause."""
        now = time.monotonic()
        if now - self._block_at >= BLOCK_REFRESH and now - self._refreshed_at >= BLOCK_REFRESH:
            self._refreshed_at = now
            self._refresh = asyncio.create_task(self._read_block())
        if self._refresh and now - self._block_at >= 2 * BLOCK_REFRESH:
            await asyncio.wait([self._refresh], timeout=max(0.0, BLOCK_WAIT - (now - self._refreshed_at)))
        return self._block if time.monotonic() - self._block_at < BLOCK_MAX_AGE else None

    async def _read_block(self) -> None:
        """Read the newest block number: the highest that as many nodes as the quorum have reached."""
        asked = [asyncio.create_task(_or_none(node.ask("eth_blockNumber"))) for node in self._nodes]
        found: list[int] = []
        for answer in asyncio.as_completed(asked):
            number = await answer
            # a node that hangs holds up nothing: the others' word counts once there are enough of them
            if number is not None and 0 <= number < MAX_BLOCK:
                found = sorted([*found, number], reverse=True)
            if len(found) >= self._quorum:
                self._block, self._block_at = found[self._quorum - 1], time.monotonic()

    async def _numbers(self, question: Callable[[Node], Awaitable[Any]]) -> list[int]:
        """Return the numbers that nodes answer, highest first; those that fail are left out."""
        asked = (_or_none(_answer(question, node)) for node in self._nodes)
        numbers = [each for each in await asyncio.gather(*asked) if each is not None]
        return sorted((each for each in numbers if 0 <= each < MAX_BLOCK), reverse=True)

    async def _agreed(self, question: Callable[[Node], Awaitable[T]], max_wait: float) -> T:
        """Return the answer that as many nodes give as the quorum; one that fails or is slow is replaced."""
        answers: list[T] = []
        try:
            async with asyncio.timeout(max_wait):
                return await self._first_agreed(question, answers)
        except TimeoutError as error:
            raise ChainUnreachable("the nodes did not answer in time", tuple(answers)) from error

    async def _first_agreed(self, question: Callable[[Node], Awaitable[T]], answers: list[T]) -> T:
        left = iter(self._nodes)
        tasks = {asyncio.ensure_future(_answer(question, node)) for node in islice(left, self._quorum)}
        failure = ChainUnreachable("there is no node")
        try:
            while tasks:
                done, tasks = await asyncio.wait(
                    tasks, timeout=HEDGE_DELAY, return_when=asyncio.FIRST_COMPLETED
                )
                errors = {task: task.exception() for task in done}  # all of them are seen
                for task, error in errors.items():
                    if isinstance(error, ChainUnreachable):
                        failure = error
                    else:
                        answers.append(task.result())
                        if answers.count(task.result()) >= self._quorum:
                            return task.result()
                if (following := next(left, None)) is not None:
                    tasks.add(asyncio.ensure_future(_answer(question, following)))
        finally:
            for task in tasks:
                task.cancel()
        raise ChainUnreachable("the nodes do not agree" if answers else str(failure), tuple(answers))


async def _answer(question: Callable[[Node], Awaitable[T]], node: Node) -> T:
    """Ask one node. Raises ChainUnreachable, also for an answer in an unknown shape."""
    try:
        return await question(node)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ChainUnreachable("the node answered in a shape that is not known") from error


async def _or_none(number: Awaitable[Any]) -> int | None:
    try:
        return _number(await number)
    except ChainUnreachable:
        return None


async def _has_code(node: Node, address: str) -> bool:
    return (await node.ask("eth_getCode", address, "latest")) not in (None, "", "0x")


async def _decimals(node: Node, token: str) -> int:
    answer = await node.ask("eth_call", {"to": token, "data": _DECIMALS}, "latest")
    if not isinstance(answer, str) or not _UINT8.fullmatch(answer):
        raise ChainUnreachable("the token does not say its decimals")
    return int(answer, 16)


async def _transaction_status(node: Node, transaction: str, key: PaymentKey) -> TransactionStatus:
    receipt = await node.ask("eth_getTransactionReceipt", transaction)
    if receipt is None:
        return "unknown"
    if _number(receipt["status"]) == 1:
        return "succeeded"
    if not await _holds_nonce(node, transaction, key):
        return "unknown"
    # it may have been reverted because another one had used the nonce, after the nonce was looked at
    return "unknown" if await _is_used(node, key, receipt["blockNumber"]) else "reverted"


async def _holds_nonce(node: Node, transaction: str, key: PaymentKey) -> bool:
    """True if a payment's nonce is in the data of a transaction: facilitators may name a wrong one."""
    found = cast(dict[str, Any] | None, await node.ask("eth_getTransactionByHash", transaction))
    return found is not None and key.nonce[2:] in str(found["input"]).lower()


async def _safe_number(node: Node) -> Any:
    latest = await node.ask("eth_blockNumber")
    return (await _safe_block(node, _number(latest)))["number"]


async def _received(
    node: Node, transaction: str, asset: str, recipient: str
) -> int | Literal["reverted", "unknown"]:
    receipt = await node.ask("eth_getTransactionReceipt", transaction)
    if receipt is None:
        return "unknown"
    if _number(receipt["status"]) != 1:
        return "reverted"
    topic = "0x" + _word(recipient)
    events = [log for log in receipt["logs"] if log["address"].lower() == asset]
    return sum(
        _number(log["data"])
        for log in events
        if (topics := _topics(log))[:1] == [_TRANSFER] and topics[1] != topic == topics[2]
    )


async def _transactions_to(
    node: Node, asset: str, pay_to: str, first: int, last: int
) -> tuple[tuple[int, str], ...]:
    topic = "0x" + _word(pay_to)
    logs_filter = {
        "address": asset,
        "fromBlock": hex(first),
        "toBlock": hex(last),
        "topics": [_TRANSFER, None, topic],
    }
    logs = cast(list[dict[str, Any]], await node.ask("eth_getLogs", logs_filter))
    found = {
        (number, str(log["transactionHash"]).lower())
        for log in logs
        if first <= (number := _number(log["blockNumber"])) <= last
        and log["address"].lower() == asset
        and (topics := _topics(log))[:1] == [_TRANSFER]
        and topics[2:] == [topic]
        and not log.get("removed")
    }
    return tuple(sorted(found))


async def _authorized_transfers(node: Node, transaction: str, asset: str) -> tuple[AuthorizedTransfer, ...]:
    return authorized_transfers(await _successful_receipt(node, transaction), asset)


async def _find_payment(node: Node, query: PaymentQuery, last: int) -> Paid | None:
    """Look for the payment from our claim on, until its authorization ended."""
    first = await _first_block(node, query, last)
    log = await _find_event(node, query, first, min(last, await _first_since(node, query.valid_before, last)))
    if log is None:
        return None
    transaction = str(log["transactionHash"]).lower()
    return Paid(transaction) if await _pays_us(node, query, transaction) else None


async def _payment_status(node: Node, query: PaymentQuery, used: list[OnchainStatus]) -> OnchainStatus:
    """Return the status of a payment by one node; `used` is appended to if that knows its nonce as used."""
    latest = await node.block("latest")
    number = _number(latest["number"])
    if not await _is_used(node, query.key, "latest"):
        if query.claim_block is not None and number < query.claim_block:
            raise ChainUnreachable("the node has not reached the block of the claim")
        if _number(latest["timestamp"]) < query.valid_before:
            return "unused"
        return await _expiry_status(node, query, number)
    used.append("spent_unsafe")
    first = await _first_block(node, query, number)
    # an event from before the claim says more than the state of its block, which most nodes soon forget
    log = await _find_event(node, query, max(0, first - SPAN), number)
    if log is None:
        return await _earlier_use(node, query, first - 1, number)
    transaction = str(log["transactionHash"]).lower()
    if _number(log["blockNumber"]) >= first and await _pays_us(node, query, transaction):
        return Paid(transaction)
    safe = await _safe_block(node, number)
    return "spent" if _number(log["blockNumber"]) <= _number(safe["number"]) else "spent_unsafe"


async def _expiry_status(node: Node, query: PaymentQuery, latest: int) -> OnchainStatus:
    """Return `expired` if the nonce is unused in a safe block past the end of the authorization."""
    safe = await _safe_block(node, latest)
    if _number(safe["timestamp"]) < query.valid_before or await _is_used(node, query.key, safe["number"]):
        return "expired_unsafe"
    return "expired"


async def _earlier_use(node: Node, query: PaymentQuery, before: int, latest: int) -> OnchainStatus:
    """Return the status of a nonce that is used, but has no event since our claim.

    A node may lack events, so that the nonce was used by then must be in the state of that block. Raises
    ChainUnreachable if it is not, or if the node has no such state any more.
    """
    if before < 0 or not await _is_used(node, query.key, hex(before)):
        raise ChainUnreachable("the node has no event for a nonce that is used")
    safe = _number((await _safe_block(node, latest))["number"])
    return "spent" if before <= safe or await _is_used(node, query.key, hex(safe)) else "spent_unsafe"


async def _safe_block(node: Node, latest: int) -> dict[str, Any]:
    """Return the newest block that the network calls safe: on a rollup, one whose data is on its base."""
    if await node.is_for_development():
        return await node.block(hex(latest))
    try:
        return await node.block("safe")
    except ChainUnreachable:
        return await node.block(hex(max(0, latest - CONFIRMATIONS)))


async def _is_used(node: Node, key: PaymentKey, block: str) -> bool:
    data = f"0x{_AUTHORIZATION_STATE}{_word(key.payer)}{key.nonce[2:]}"
    return _number(await node.ask("eth_call", {"to": key.asset, "data": data}, block)) != 0


async def _first_block(node: Node, query: PaymentQuery, latest: int) -> int:
    """Return the first block in which a transfer counts: the one after our claim.

    Where no block number was known then, time decides: the first block that is not older than the claim by
    more than clocks may be wrong.
    """
    if query.claim_block is not None:
        return query.claim_block + 1
    return await _first_since(node, query.presented_at - CLOCK_ALLOWANCE, latest)


async def _first_since(node: Node, earliest: float, latest: int) -> int:
    """Return the first block up to `latest` that is not older than a time, else the one after `latest`."""
    high, low = latest + 1, max(0, latest - SPAN)
    while low > 0 and await node.timestamp(low) >= earliest:
        high, low = low, max(0, low - 2 * (latest - low))
    while low < high:
        middle = (low + high) // 2
        if await node.timestamp(middle) >= earliest:
            high = middle
        else:
            low = middle + 1
    return low


async def _find_event(node: Node, query: PaymentQuery, first: int, latest: int) -> dict[str, Any] | None:
    """Return the event by which the nonce was used or cancelled, None if there is none since `first`.

    Raises ChainUnreachable when there are more blocks than are searched.
    """
    for start in range(first, latest + 1, SPAN):
        if start >= first + MAX_SPANS * SPAN:
            raise ChainUnreachable("too many blocks since the payment came")
        logs_filter = {
            "address": query.key.asset,
            "fromBlock": hex(start),
            "toBlock": hex(min(latest, start + SPAN - 1)),
            "topics": [
                [_AUTHORIZATION_USED, _AUTHORIZATION_CANCELED],
                "0x" + _word(query.key.payer),
                query.key.nonce,
            ],
        }
        logs = cast(list[dict[str, Any]], await node.ask("eth_getLogs", logs_filter))
        for log in logs:
            in_range = first <= _number(log["blockNumber"]) <= latest
            if in_range and _ends_authorization(log, query) and not log.get("removed"):
                return log
    return None


async def _pays_us(node: Node, query: PaymentQuery, transaction: str) -> bool:
    receipt = await _successful_receipt(node, transaction)
    if not any(_ends_authorization(log, query) for log in receipt["logs"]):
        raise ChainUnreachable("the node has an event that its transaction has not")
    wanted = AuthorizedTransfer(query.key.payer, query.key.nonce, query.pay_to.lower(), query.amount)
    return wanted in authorized_transfers(receipt, query.key.asset)


async def _successful_receipt(node: Node, transaction: str) -> dict[str, Any]:
    """Return the receipt of a transaction whose event a node has. Raises ChainUnreachable without one."""
    receipt = cast(dict[str, Any] | None, await node.ask("eth_getTransactionReceipt", transaction))
    if receipt is None or _number(receipt["status"]) != 1:
        raise ChainUnreachable("the node has an event without its transaction")
    return receipt


def _ends_authorization(log: dict[str, Any], query: PaymentQuery) -> bool:
    """True for the use or the cancellation of this authorization."""
    topics = _topics(log)
    return (
        log["address"].lower() == query.key.asset
        and topics[:1] in ([_AUTHORIZATION_USED], [_AUTHORIZATION_CANCELED])
        and topics[1:] == ["0x" + _word(query.key.payer), query.key.nonce]
    )


def _topics(log: dict[str, Any]) -> list[str]:
    return [topic.lower() for topic in log["topics"]]


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise ValueError("the node's answer is too long")
    return bytes(body)


def _word(address: str) -> str:
    return address.lower().removeprefix("0x").rjust(64, "0")


def _address(topic: str) -> str:
    return "0x" + topic[-40:]


def _number(quantity: Any) -> int:
    try:
        return int(quantity, 16)
    except (TypeError, ValueError) as error:
        raise ChainUnreachable(f"not a number: {str(quantity)[:80]}") from error
