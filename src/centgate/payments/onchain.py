"""On-chain status of payments, which decides where a facilitator left the outcome of a settlement open.

A used nonce does not prove a payment to this seller: its owner can cancel the authorization or use the nonce
for another recipient, and the payment may have bought an answer elsewhere before it was submitted here. Proof
is a transaction that succeeded, in a block after the claim, in which the token's next event after
`AuthorizationUsed(payer, nonce)` is the `Transfer` of the claimed amount from the payer to `pay_to`:
EIP-3009's reference implementation and Circle's tokens emit the two one after the other.

"Paid" is accepted from the newest block, as facilitators do. "Never will be paid" is final for a buyer whose
money may still move, so it needs a block that the network calls `safe`.
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
from cachetools import TTLCache

from centgate import jsonrpc
from centgate.payments.authorization import PaymentKey
from centgate.payments.nodes import NodeSet, select_nodes
from centgate.settings import Settings
from centgate.signing.evm import keccak

T = TypeVar("T")

_AUTHORIZATION_STATE = keccak(b"authorizationState(address,bytes32)")[:4].hex()
_AUTHORIZATION_USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
_AUTHORIZATION_CANCELED = "0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex()
_DECIMALS = "0x" + keccak(b"decimals()")[:4].hex()
_TRANSFER = "0x" + keccak(b"Transfer(address,address,uint256)").hex()

_UINT8 = re.compile(r"0x0{62}[0-9a-fA-F]{2}")

TIMEOUT = 5.0
"""Total time limit for the nodes in seconds while a buyer waits."""
BACKGROUND_TIMEOUT = 60.0
"""Total time limit in seconds for background work: an old payment may take many calls."""
HEDGE_DELAY = 1.5
"""Seconds without a response after which the next node is queried in parallel."""
SPAN = 2000
"""Blocks of one `eth_getLogs`: public nodes refuse longer ranges."""
MAX_SPANS = 60
"""Maximum number of spans to search, from the claim on."""
CLOCK_ALLOWANCE = 600
"""Allowed clock error in seconds, used if no block number was known when a payment was claimed."""
CONFIRMATIONS = 32
"""Confirmations after which a block counts as safe, for nodes without a `safe` block."""
MAX_ANSWER = 4 << 20
"""Maximum size of a response in bytes."""
BLOCK_REFRESH = 5.0
"""Seconds between two reads of the newest block number while payments arrive."""
BLOCK_WAIT = 1.0
"""Maximum seconds that a payment waits for the newest block number after a pause."""
MAX_BLOCK = 2**53
"""Block numbers from this value on are rejected as invalid."""
BLOCK_MAX_AGE = 600.0
"""Maximum age in seconds of a block number that cannot be refreshed."""
CODE_TTL = 4 * 3600
NO_CODE_TTL = 60
"""Cache TTLs in seconds for code, and for no code, at an address: a wallet may be deployed at any time."""
CODE_CACHE_SIZE = 10_000
WITHOUT_TRANSACTIONS = False
_DEVELOPMENT = ("anvil", "hardhat")
"""Prefixes of `web3_clientVersion` on development nodes."""


class ChainUnreachable(Exception):
    """No node, or too few of them, gave a consistent answer; `answers` are those received."""

    def __init__(self, message: str, answers: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.answers = answers


@dataclass(frozen=True, slots=True)
class PaymentQuery:
    """A payment to look up on the chain, and since when it counts."""

    key: PaymentKey
    pay_to: str
    amount: int
    valid_before: int
    """Seconds since 1970."""
    presented_at: float
    """Seconds since 1970; counts only where `claim_block` is None."""
    claim_block: int | None
    """Newest block number known at the first submission: the transfer must be in a later block."""


@dataclass(frozen=True, slots=True)
class OnchainPayment:
    """The payment reached `pay_to` in `transaction`, after the claim."""

    transaction: str


OnchainStatus = OnchainPayment | Literal["unused", "expired_unsafe", "expired", "spent_unsafe", "spent"]
"""`unused`: can still be settled; `expired`: can never be settled; `spent`: the nonce was used for anything
but this payment after the claim.

`_unsafe`: provisional, from blocks that may still be reorganised.
"""

TransactionStatus = Literal["succeeded", "reverted", "unknown"]
"""`reverted`: and the nonce was unused after its block. `unknown`: no evidence for this payment."""


@dataclass(frozen=True, slots=True)
class AuthorizedTransfer:
    """A token transfer by authorization (EIP-3009); addresses are in lower case."""

    payer: str
    nonce: str
    pay_to: str
    amount: int


def parse_authorized_transfers(receipt: dict[str, Any], asset: str) -> tuple[AuthorizedTransfer, ...]:
    """Parse the transfers of a token by authorization from a transaction receipt, in order.

    The token's next event after `AuthorizationUsed(payer, nonce)` must be a `Transfer` from that payer.
    """
    events = [log for log in receipt["logs"] if log["address"].lower() == asset]
    return tuple(
        AuthorizedTransfer(
            _decode_address(used_topics[1]),
            used_topics[2],
            _decode_address(moved_topics[2]),
            _parse_quantity(transfer["data"]),
        )
        for event, transfer in pairwise(events)
        if (used_topics := _topics(event))[:1] == [_AUTHORIZATION_USED]
        and (moved_topics := _topics(transfer))[:2] == [_TRANSFER, used_topics[1]]
    )


class ChainClients:
    """Chain clients by network, created on first use."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings) -> None:
        self._session = session
        self._settings = settings
        self._chains: dict[str, ChainClient | None] = {}

    def for_network(self, network: str) -> ChainClient | None:
        """Return the client of a network (CAIP-2), None if there is no node for it."""
        if network not in self._chains:
            nodes = select_nodes(self._settings, network)
            self._chains[network] = ChainClient(self._session, nodes) if nodes.urls else None
        return self._chains[network]


class PaymentNode:
    """Client of one JSON-RPC node; checks that the node is on the configured chain."""

    def __init__(self, session: aiohttp.ClientSession, url: str, chain_id: int) -> None:
        self._session = session
        self._url = url
        self._chain_id = chain_id
        self._timeout = aiohttp.ClientTimeout(total=10)
        self._chain_checked = False

    async def call(self, method: str, *params: Any) -> Any:
        """Call a JSON-RPC method and return its result, None for `null`. Raises ChainUnreachable."""
        if not self._chain_checked:
            if _parse_quantity(await self._post("eth_chainId")) != self._chain_id:
                raise ChainUnreachable("the node is on another chain")
            self._chain_checked = True
        return await self._post(method, *params)

    async def read_block(self, number: str) -> dict[str, Any]:
        """Return a block by its hexadecimal number or its tag. Raises ChainUnreachable."""
        block = await self.call("eth_getBlockByNumber", number, WITHOUT_TRANSACTIONS)
        if block is None:
            raise ChainUnreachable(f"the node does not have block {number}")
        return cast(dict[str, Any], block)

    async def is_for_development(self) -> bool:
        """Return True for a local development chain: no reorganisations, few blocks without transactions."""
        try:
            version = await self.call("web3_clientVersion")
        except ChainUnreachable:
            return False
        return str(version).lower().startswith(_DEVELOPMENT)

    async def read_block_time(self, number: int) -> int:
        """Return the time of a block in seconds since 1970. Raises ChainUnreachable."""
        return _parse_quantity((await self.read_block(hex(number)))["timestamp"])

    async def _post(self, method: str, *params: Any) -> Any:
        try:
            async with self._session.post(
                self._url,
                data=jsonrpc.encode_request(method, params),
                headers={"Content-Type": "application/json"},
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise ChainUnreachable(f"{method}: status {response.status}")
                return jsonrpc.decode_result(await _read_body(response))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise ChainUnreachable(f"{method} failed") from error


class ChainClient:
    """Client of one network over several nodes; as many nodes as the quorum must agree."""

    def __init__(self, session: aiohttp.ClientSession, nodes: NodeSet) -> None:
        chain_id = int(nodes.network.removeprefix("eip155:"))
        self._nodes = [PaymentNode(session, url, chain_id) for url in nodes.urls]
        self.is_public = nodes.origin == "public"
        self._quorum = nodes.quorum
        self._code = TTLCache[str, bool](CODE_CACHE_SIZE, CODE_TTL)
        self._no_code = TTLCache[str, bool](CODE_CACHE_SIZE, NO_CODE_TTL)
        self._block: int | None = None
        self._block_at = self._refreshed_at = -BLOCK_MAX_AGE
        """Monotonic times of the known block number, and of the last attempt to read it."""
        self._refresh: asyncio.Task[None] | None = None

    async def has_code(self, address: str) -> bool:
        """Return True if there is code at the address, its own or delegated. Raises ChainUnreachable."""
        if address in self._code:
            return True
        if address in self._no_code:
            return False
        has_code = await self._query_quorum(lambda node: _has_code(node, address), TIMEOUT)
        (self._code if has_code else self._no_code)[address] = has_code
        return has_code

    async def read_payment_status(self, query: PaymentQuery, *, max_wait: float = TIMEOUT) -> OnchainStatus:
        """Return the status of a payment.

        Raises ChainUnreachable, with `spent_unsafe` among its answers for each node on which the nonce is
        used for an unknown purpose.
        """
        used: list[OnchainStatus] = []
        try:
            return await self._query_quorum(lambda node: _payment_status(node, query, used), max_wait)
        except ChainUnreachable as error:
            raise ChainUnreachable(str(error), (*error.answers, *used)) from error

    async def read_transaction_status(self, transaction: str, key: PaymentKey) -> TransactionStatus:
        """Return the status of a transaction of a payment by its hash. Raises ChainUnreachable."""
        return await self._query_quorum(lambda node: _transaction_status(node, transaction, key), TIMEOUT)

    async def read_received_amount(
        self, transaction: str, asset: str, recipient: str
    ) -> int | Literal["reverted", "unknown"]:
        """Return the amount of a token that a transaction moved to an address; `unknown` without a receipt.

        Transfers from the address to itself do not count.

        Raises ChainUnreachable.
        """
        return await self._query_quorum(
            lambda node: _read_received_amount(node, transaction, asset, recipient), TIMEOUT
        )

    async def find_payment(self, query: PaymentQuery, last: int) -> OnchainPayment | None:
        """Return the payment if it reached `pay_to` after the claim and up to a block, None if it did not.

        Raises ChainUnreachable.
        """
        return await self._query_quorum(lambda node: _find_payment(node, query, last), BACKGROUND_TIMEOUT)

    async def find_transactions_to(
        self, asset: str, pay_to: str, first: int, last: int
    ) -> tuple[tuple[int, str], ...]:
        """Return block and hash of each transaction that moved a token to an address, in order.

        Raises ChainUnreachable.
        """
        return await self._query_quorum(
            lambda node: _transactions_to(node, asset, pay_to, first, last), BACKGROUND_TIMEOUT
        )

    async def read_authorized_transfers(self, transaction: str, asset: str) -> tuple[AuthorizedTransfer, ...]:
        """Return the transfers by authorization in a transaction. Raises ChainUnreachable."""
        return await self._query_quorum(
            lambda node: _read_authorized_transfers(node, transaction, asset), TIMEOUT
        )

    async def read_safe_block(self) -> int:
        """Return the newest safe block number that a quorum of nodes has reached.

        Raises ChainUnreachable.
        """
        numbers = await self._collect_numbers(_safe_block_number)
        if len(numbers) < self._quorum:
            raise ChainUnreachable("too few nodes respond")
        return numbers[self._quorum - 1]

    async def find_first_block_since(self, earliest: float, latest: int) -> int:
        """Return the first block up to `latest` that is not older than a time, else the one after `latest`.

        Raises ChainUnreachable.
        """
        return await self._query_quorum(lambda node: _first_since(node, earliest, latest), BACKGROUND_TIMEOUT)

    async def read_block_time(self, number: int) -> int:
        """Return the time of a block in seconds since 1970. Raises ChainUnreachable."""
        return await self._query_quorum(lambda node: node.read_block_time(number), TIMEOUT)

    async def read_decimals(self, token: str) -> int:
        """Return the decimals of a token. Raises ChainUnreachable."""
        return await self._query_quorum(lambda node: _read_decimals(node, token), TIMEOUT)

    async def find_newest_block(self) -> int | None:
        """Return the newest known block number, None if unknown; after a pause it waits at most a second."""
        now = time.monotonic()
        if now - self._block_at >= BLOCK_REFRESH and now - self._refreshed_at >= BLOCK_REFRESH:
            self._refreshed_at = now
            self._refresh = asyncio.create_task(self._read_block())
        if self._refresh and now - self._block_at >= 2 * BLOCK_REFRESH:
            await asyncio.wait([self._refresh], timeout=max(0.0, BLOCK_WAIT - (now - self._refreshed_at)))
        return self._block if time.monotonic() - self._block_at < BLOCK_MAX_AGE else None

    async def _read_block(self) -> None:
        """Read the newest block number: the highest that a quorum of nodes has reached."""
        tasks = [asyncio.create_task(_parse_or_none(node.call("eth_blockNumber"))) for node in self._nodes]
        numbers: list[int] = []
        for answer in asyncio.as_completed(tasks):
            number = await answer
            # a node that hangs blocks nothing: a quorum of the others is enough
            if number is not None and 0 <= number < MAX_BLOCK:
                numbers = sorted([*numbers, number], reverse=True)
            if len(numbers) >= self._quorum:
                self._block, self._block_at = numbers[self._quorum - 1], time.monotonic()

    async def _collect_numbers(self, question: Callable[[PaymentNode], Awaitable[Any]]) -> list[int]:
        """Return one number from each node, highest first; nodes that fail are left out."""
        calls = (_parse_or_none(_query_node(question, node)) for node in self._nodes)
        numbers = [each for each in await asyncio.gather(*calls) if each is not None]
        return sorted((each for each in numbers if 0 <= each < MAX_BLOCK), reverse=True)

    async def _query_quorum(self, question: Callable[[PaymentNode], Awaitable[T]], max_wait: float) -> T:
        """Return the answer that a quorum of nodes gives; nodes that fail or are slow are replaced."""
        answers: list[T] = []
        try:
            async with asyncio.timeout(max_wait):
                return await self._query_until_quorum(question, answers)
        except TimeoutError as error:
            raise ChainUnreachable("the nodes did not respond in time", tuple(answers)) from error

    async def _query_until_quorum(
        self, question: Callable[[PaymentNode], Awaitable[T]], answers: list[T]
    ) -> T:
        remaining = iter(self._nodes)
        tasks = {
            asyncio.ensure_future(_query_node(question, node)) for node in islice(remaining, self._quorum)
        }
        failure = ChainUnreachable("there is no node")
        try:
            while tasks:
                done, tasks = await asyncio.wait(
                    tasks, timeout=HEDGE_DELAY, return_when=asyncio.FIRST_COMPLETED
                )
                errors = {task: task.exception() for task in done}  # every exception must be retrieved
                for task, error in errors.items():
                    if isinstance(error, ChainUnreachable):
                        failure = error
                    else:
                        answers.append(task.result())
                        if answers.count(task.result()) >= self._quorum:
                            return task.result()
                if (next_node := next(remaining, None)) is not None:
                    tasks.add(asyncio.ensure_future(_query_node(question, next_node)))
        finally:
            for task in tasks:
                task.cancel()
        raise ChainUnreachable("the nodes do not agree" if answers else str(failure), tuple(answers))


async def _query_node(question: Callable[[PaymentNode], Awaitable[T]], node: PaymentNode) -> T:
    """Query one node. Raises ChainUnreachable, also for an unexpected response format."""
    try:
        return await question(node)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ChainUnreachable("the node returned an unexpected response") from error


async def _parse_or_none(number: Awaitable[Any]) -> int | None:
    try:
        return _parse_quantity(await number)
    except ChainUnreachable:
        return None


async def _has_code(node: PaymentNode, address: str) -> bool:
    return (await node.call("eth_getCode", address, "latest")) not in (None, "", "0x")


async def _read_decimals(node: PaymentNode, token: str) -> int:
    answer = await node.call("eth_call", {"to": token, "data": _DECIMALS}, "latest")
    if not isinstance(answer, str) or not _UINT8.fullmatch(answer):
        raise ChainUnreachable("the token did not return its decimals")
    return int(answer, 16)


async def _transaction_status(node: PaymentNode, transaction: str, key: PaymentKey) -> TransactionStatus:
    receipt = await node.call("eth_getTransactionReceipt", transaction)
    if receipt is None:
        return "unknown"
    if _parse_quantity(receipt["status"]) == 1:
        return "succeeded"
    if not await _holds_nonce(node, transaction, key):
        return "unknown"
    # it may have been reverted because another transaction used the nonce after the nonce was checked
    return "unknown" if await _is_used(node, key, receipt["blockNumber"]) else "reverted"


async def _holds_nonce(node: PaymentNode, transaction: str, key: PaymentKey) -> bool:
    """Return True if a payment's nonce is in a transaction's data: facilitators may name a wrong hash."""
    data = cast(dict[str, Any] | None, await node.call("eth_getTransactionByHash", transaction))
    return data is not None and key.nonce[2:] in str(data["input"]).lower()


async def _safe_block_number(node: PaymentNode) -> Any:
    latest = await node.call("eth_blockNumber")
    return (await _safe_block(node, _parse_quantity(latest)))["number"]


async def _read_received_amount(
    node: PaymentNode, transaction: str, asset: str, recipient: str
) -> int | Literal["reverted", "unknown"]:
    receipt = await node.call("eth_getTransactionReceipt", transaction)
    if receipt is None:
        return "unknown"
    if _parse_quantity(receipt["status"]) != 1:
        return "reverted"
    topic = "0x" + _encode_address(recipient)
    events = [log for log in receipt["logs"] if log["address"].lower() == asset]
    return sum(
        _parse_quantity(log["data"])
        for log in events
        if (topics := _topics(log))[:1] == [_TRANSFER] and topics[1] != topic == topics[2]
    )


async def _transactions_to(
    node: PaymentNode, asset: str, pay_to: str, first: int, last: int
) -> tuple[tuple[int, str], ...]:
    topic = "0x" + _encode_address(pay_to)
    logs_filter = {
        "address": asset,
        "fromBlock": hex(first),
        "toBlock": hex(last),
        "topics": [_TRANSFER, None, topic],
    }
    logs = cast(list[dict[str, Any]], await node.call("eth_getLogs", logs_filter))
    found = {
        (number, str(log["transactionHash"]).lower())
        for log in logs
        if first <= (number := _parse_quantity(log["blockNumber"])) <= last
        and log["address"].lower() == asset
        and (topics := _topics(log))[:1] == [_TRANSFER]
        and topics[2:] == [topic]
        and not log.get("removed")
    }
    return tuple(sorted(found))


async def _read_authorized_transfers(
    node: PaymentNode, transaction: str, asset: str
) -> tuple[AuthorizedTransfer, ...]:
    return parse_authorized_transfers(await _successful_receipt(node, transaction), asset)


async def _find_payment(node: PaymentNode, query: PaymentQuery, last: int) -> OnchainPayment | None:
    """Search for the payment from the claim to the end of its authorization."""
    first = await _first_block(node, query, last)
    log = await _find_event(node, query, first, min(last, await _first_since(node, query.valid_before, last)))
    if log is None:
        return None
    transaction = str(log["transactionHash"]).lower()
    return OnchainPayment(transaction) if await _is_payment(node, query, transaction) else None


async def _payment_status(node: PaymentNode, query: PaymentQuery, used: list[OnchainStatus]) -> OnchainStatus:
    """Return the status of a payment on one node; appends to `used` if the nonce is used there."""
    latest = await node.read_block("latest")
    number = _parse_quantity(latest["number"])
    if not await _is_used(node, query.key, "latest"):
        if query.claim_block is not None and number < query.claim_block:
            raise ChainUnreachable("the node has not reached the block of the claim")
        if _parse_quantity(latest["timestamp"]) < query.valid_before:
            return "unused"
        return await _expiry_status(node, query, number)
    used.append("spent_unsafe")
    first = await _first_block(node, query, number)
    # an event from before the claim is better evidence than the state of its block, which nodes soon prune
    log = await _find_event(node, query, max(0, first - SPAN), number)
    if log is None:
        return await _status_of_earlier_use(node, query, first - 1, number)
    transaction = str(log["transactionHash"]).lower()
    if _parse_quantity(log["blockNumber"]) >= first and await _is_payment(node, query, transaction):
        return OnchainPayment(transaction)
    safe = await _safe_block(node, number)
    return (
        "spent" if _parse_quantity(log["blockNumber"]) <= _parse_quantity(safe["number"]) else "spent_unsafe"
    )


async def _expiry_status(node: PaymentNode, query: PaymentQuery, latest: int) -> OnchainStatus:
    """Return `expired` if the nonce is unused in a safe block past the end of the authorization."""
    safe = await _safe_block(node, latest)
    if _parse_quantity(safe["timestamp"]) < query.valid_before or await _is_used(
        node, query.key, safe["number"]
    ):
        return "expired_unsafe"
    return "expired"


async def _status_of_earlier_use(
    node: PaymentNode, query: PaymentQuery, before: int, latest: int
) -> OnchainStatus:
    """Return the status of a used nonce that has no event since the claim.

    A node may lack events, so the state of block `before` must show the nonce as used. Raises
    ChainUnreachable if it does not, or if the node has pruned that state.
    """
    if before < 0 or not await _is_used(node, query.key, hex(before)):
        raise ChainUnreachable("the node has no event for a used nonce")
    safe = _parse_quantity((await _safe_block(node, latest))["number"])
    return "spent" if before <= safe or await _is_used(node, query.key, hex(safe)) else "spent_unsafe"


async def _safe_block(node: PaymentNode, latest: int) -> dict[str, Any]:
    """Return the newest `safe` block: on a rollup, one whose data is on its base layer."""
    if await node.is_for_development():
        return await node.read_block(hex(latest))
    try:
        return await node.read_block("safe")
    except ChainUnreachable:
        return await node.read_block(hex(max(0, latest - CONFIRMATIONS)))


async def _is_used(node: PaymentNode, key: PaymentKey, block: str) -> bool:
    data = f"0x{_AUTHORIZATION_STATE}{_encode_address(key.payer)}{key.nonce[2:]}"
    return _parse_quantity(await node.call("eth_call", {"to": key.asset, "data": data}, block)) != 0


async def _first_block(node: PaymentNode, query: PaymentQuery, latest: int) -> int:
    """Return the first block in which a transfer counts: the one after the claim.

    If no block number was known then, time decides: the first block that is at most `CLOCK_ALLOWANCE` older
    than the claim.
    """
    if query.claim_block is not None:
        return query.claim_block + 1
    return await _first_since(node, query.presented_at - CLOCK_ALLOWANCE, latest)


async def _first_since(node: PaymentNode, earliest: float, latest: int) -> int:
    """Return the first block up to `latest` that is not older than a time, else the one after `latest`."""
    high, low = latest + 1, max(0, latest - SPAN)
    while low > 0 and await node.read_block_time(low) >= earliest:
        high, low = low, max(0, low - 2 * (latest - low))
    while low < high:
        middle = (low + high) // 2
        if await node.read_block_time(middle) >= earliest:
            high = middle
        else:
            low = middle + 1
    return low


async def _find_event(
    node: PaymentNode, query: PaymentQuery, first: int, latest: int
) -> dict[str, Any] | None:
    """Return the event that used or cancelled the nonce, None if there is no event since `first`.

    Raises ChainUnreachable if there are more blocks than `MAX_SPANS` spans.
    """
    for start in range(first, latest + 1, SPAN):
        if start >= first + MAX_SPANS * SPAN:
            raise ChainUnreachable("too many blocks since the payment was submitted")
        logs_filter = {
            "address": query.key.asset,
            "fromBlock": hex(start),
            "toBlock": hex(min(latest, start + SPAN - 1)),
            "topics": [
                [_AUTHORIZATION_USED, _AUTHORIZATION_CANCELED],
                "0x" + _encode_address(query.key.payer),
                query.key.nonce,
            ],
        }
        logs = cast(list[dict[str, Any]], await node.call("eth_getLogs", logs_filter))
        for log in logs:
            in_range = first <= _parse_quantity(log["blockNumber"]) <= latest
            if in_range and _ends_authorization(log, query) and not log.get("removed"):
                return log
    return None


async def _is_payment(node: PaymentNode, query: PaymentQuery, transaction: str) -> bool:
    receipt = await _successful_receipt(node, transaction)
    if not any(_ends_authorization(log, query) for log in receipt["logs"]):
        raise ChainUnreachable("the node has an event that is missing in its transaction")
    expected = AuthorizedTransfer(query.key.payer, query.key.nonce, query.pay_to.lower(), query.amount)
    return expected in parse_authorized_transfers(receipt, query.key.asset)


async def _successful_receipt(node: PaymentNode, transaction: str) -> dict[str, Any]:
    """Return the receipt of a transaction from a node with its event. Raises ChainUnreachable without one."""
    receipt = cast(dict[str, Any] | None, await node.call("eth_getTransactionReceipt", transaction))
    if receipt is None or _parse_quantity(receipt["status"]) != 1:
        raise ChainUnreachable("the node has an event without its transaction")
    return receipt


def _ends_authorization(log: dict[str, Any], query: PaymentQuery) -> bool:
    """Return True for the use or the cancellation of this authorization."""
    topics = _topics(log)
    return (
        log["address"].lower() == query.key.asset
        and topics[:1] in ([_AUTHORIZATION_USED], [_AUTHORIZATION_CANCELED])
        and topics[1:] == ["0x" + _encode_address(query.key.payer), query.key.nonce]
    )


def _topics(log: dict[str, Any]) -> list[str]:
    return [topic.lower() for topic in log["topics"]]


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_ANSWER:
            raise ValueError("the node's answer is too long")
    return bytes(body)


def _encode_address(address: str) -> str:
    return address.lower().removeprefix("0x").rjust(64, "0")


def _decode_address(topic: str) -> str:
    return "0x" + topic[-40:]


def _parse_quantity(quantity: Any) -> int:
    try:
        return int(quantity, 16)
    except (TypeError, ValueError) as error:
        raise ChainUnreachable(f"not a number: {str(quantity)[:80]}") from error
