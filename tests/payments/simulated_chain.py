"""Model of a small chain with one EIP-3009 token, and of the JSON-RPC nodes that serve it.

Blocks are never reorganised. A node may lag, lie or not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Literal

from centgate.settings import Settings
from centgate.signing.eip3009 import derive_address, domain_separator, recover_signer, sign, transfer_digest
from centgate.signing.evm import keccak

NETWORK = "eip155:8453"
PRICE = 10_000
BLOCK_SECONDS = 2
FIRST_BLOCKS = 40
_TOKEN = Settings(network=NETWORK).token
TOKEN = _TOKEN.address.lower()
DOMAIN = domain_separator(_TOKEN.name, _TOKEN.version, 8453, TOKEN)
USED = "0x" + keccak(b"AuthorizationUsed(address,bytes32)").hex()
CANCELED = "0x" + keccak(b"AuthorizationCanceled(address,bytes32)").hex()
TRANSFER = "0x" + keccak(b"Transfer(address,address,uint256)").hex()

Nonce = tuple[str, str]
"""Payer and nonce."""


@dataclass
class Clock:
    """The time of everything that is simulated, in seconds since 1970."""

    seconds: float = 1_900_000_000.0

    def now(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass(frozen=True)
class Account:
    """An account with a key, or a contract wallet whose signatures have 66 bytes."""

    number: int
    is_contract: bool = False

    @property
    def _key(self) -> bytes:
        return sha256(f"account {self.number}".encode()).digest()

    @property
    def address(self) -> str:
        return derive_address(self._key)

    def signature(self, authorization: Authorization) -> str:
        if self.is_contract:
            return "0x" + contract_signature(authorization).hex()
        return "0x" + sign(authorization.digest, self._key).hex()

    def authorize(self, to: str, nonce: str, valid_before: int, value: int = PRICE) -> Authorization:
        """Return a signed authorization."""
        unsigned = Authorization(self.address, to, value, valid_before, nonce, "")
        return replace(unsigned, signature=self.signature(unsigned))


@dataclass(frozen=True)
class Authorization:
    """A signed authorization; addresses are lower case."""

    payer: str
    to: str
    value: int
    valid_before: int
    nonce: str
    signature: str

    @property
    def key(self) -> Nonce:
        return self.payer, self.nonce

    @property
    def digest(self) -> bytes:
        return transfer_digest(
            DOMAIN,
            payer=self.payer,
            to=self.to,
            value=self.value,
            valid_after=0,
            valid_before=self.valid_before,
            nonce=self.nonce,
        )


def contract_signature(authorization: Authorization) -> bytes:
    """Return the only signature that the payer's contract accepts."""
    digest = sha256(b"contract" + authorization.digest).digest()
    return digest + digest + b"ok"


@dataclass
class Transaction:
    """Transfers and cancellations of nonces, which happen together or not at all."""

    hash: str
    transfers: Sequence[Authorization] = ()
    cancels: Sequence[Nonce] = ()
    out_of_gas: bool = False
    block: int | None = None
    succeeded: bool = False
    logs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(frozen=True)
class Payment:
    """A transfer that was mined."""

    authorization: Authorization
    block: int
    transaction: str


class Chain:
    """Blocks, pending transactions, and used nonces."""

    def __init__(self, clock: Clock, contracts: frozenset[str]) -> None:
        self.clock = clock
        self.contracts = contracts
        self.timestamps = [int(clock.now()) + BLOCK_SECONDS * n for n in range(-FIRST_BLOCKS, 0)]
        self.waiting: list[Transaction] = []
        self.transactions: dict[str, Transaction] = {}
        self.used_at: dict[Nonce, int] = {}
        """The block in which a nonce was used or cancelled."""
        self.payments: dict[Nonce, Payment] = {}
        """Mined transfers."""

    @property
    def height(self) -> int:
        return len(self.timestamps) - 1

    def is_signed(self, authorization: Authorization) -> bool:
        """True if the token would accept the signature."""
        signature = bytes.fromhex(authorization.signature[2:])
        if authorization.payer in self.contracts:
            return signature == contract_signature(authorization)
        return recover_signer(authorization.digest, signature) == authorization.payer

    def can_execute(self, authorization: Authorization) -> bool:
        """True if a transfer mined now would succeed."""
        return (
            authorization.key not in self.used_at
            and self.clock.now() + BLOCK_SECONDS < authorization.valid_before
            and self.is_signed(authorization)
        )

    def send(
        self,
        transfers: Sequence[Authorization] = (),
        cancels: Sequence[Nonce] = (),
        *,
        out_of_gas: bool = False,
    ) -> str:
        """Broadcast a transaction, and return its hash."""
        name = "0x" + sha256(f"transaction {len(self.transactions)}".encode()).hexdigest()
        self.transactions[name] = Transaction(name, transfers, cancels, out_of_gas)
        self.waiting.append(self.transactions[name])
        return name

    def mine(self) -> None:
        """Mine a block with all pending transactions."""
        self.clock.advance(BLOCK_SECONDS)
        self.timestamps.append(max(int(self.clock.now()), self.timestamps[-1] + 1))
        for transaction in self.waiting:
            self._execute(transaction)
        self.waiting = []

    def _execute(self, transaction: Transaction) -> None:
        transaction.block = self.height
        nonces = [transfer.key for transfer in transaction.transfers] + list(transaction.cancels)
        transaction.succeeded = (
            not transaction.out_of_gas
            and len(set(nonces)) == len(nonces)
            and not any(nonce in self.used_at for nonce in nonces)
            and all(self._is_executable(transfer) for transfer in transaction.transfers)
        )
        if not transaction.succeeded:
            return
        for transfer in transaction.transfers:
            self.payments[transfer.key] = Payment(transfer, self.height, transaction.hash)
            transaction.logs += build_transfer_logs(transfer, self.height, transaction.hash)
        for payer, nonce in transaction.cancels:
            topics = [CANCELED, to_word(payer), nonce]
            transaction.logs.append(build_log(topics, "0x", self.height, transaction.hash))
        self.used_at |= dict.fromkeys(nonces, self.height)

    def _is_executable(self, transfer: Authorization) -> bool:
        return self.timestamps[-1] < transfer.valid_before and self.is_signed(transfer)


def build_transfer_logs(transfer: Authorization, block: int, transaction: str) -> list[dict[str, Any]]:
    """Return the two events of a transfer."""
    return [
        build_log([USED, to_word(transfer.payer), transfer.nonce], "0x", block, transaction),
        build_log(
            [TRANSFER, to_word(transfer.payer), to_word(transfer.to)],
            "0x" + f"{transfer.value:064x}",
            block,
            transaction,
        ),
    ]


def build_log(topics: list[str], data: str, block: int, transaction: str) -> dict[str, Any]:
    return {
        "address": TOKEN,
        "topics": topics,
        "data": data,
        "blockNumber": hex(block),
        "transactionHash": transaction,
        "removed": False,
    }


def to_word(address: str) -> str:
    return "0x" + address.removeprefix("0x").rjust(64, "0")


Lie = Literal["unused", "paid", "spent", "expired", "reverted", "high", "low", "code", "no code"]


class RpcError(Exception):
    """An error in JSON-RPC's format."""


class Node:
    """A JSON-RPC node of the chain."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.lag = 0
        """Number of blocks that the node lags behind."""
        self.safe_lag = 2
        """Blocks between its newest and its safe block."""
        self.down = False
        self.lie: Lie | None = None
        self.lie_to = ""
        """Recipient of the payments that the node invents."""
        self.on_call: Callable[[], None] = lambda: None
        """Callback before each request."""

    @property
    def height(self) -> int:
        return max(0, self.chain.height - self.lag)

    @property
    def is_honest(self) -> bool:
        return self.lie is None and not self.down

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one JSON-RPC request."""
        self.on_call()
        method, params = request["method"], request["params"]
        try:
            result = _METHODS[method](self, *params)
        except RpcError as error:
            return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32000, "message": str(error)}}
        if self.lie and (method, self.lie) in _LIES:
            result = _LIES[method, self.lie](self, result, params)
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def _block(self, name: str) -> int:
        match name:
            case "latest":
                return self.height
            case "safe":
                return max(0, self.height - self.safe_lag)
            case _:
                number = int(name, 16)
                if number > self.height:
                    raise RpcError("header not found")
                return number

    def block_by_number(self, name: str, _whole: bool) -> dict[str, Any]:  # noqa: FBT001 - as nodes take it
        number = self._block(name)
        return {"number": hex(number), "timestamp": hex(self.chain.timestamps[number])}

    def call(self, call: dict[str, str], block: str) -> str:
        payer, nonce = "0x" + call["data"][34:74], "0x" + call["data"][74:138]
        used_at = self.chain.used_at.get((payer, nonce))
        return "0x" + f"{int(used_at is not None and used_at <= self._block(block)):064x}"

    def logs(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        kinds, payer, nonce = query["topics"]
        return [
            log
            for transaction in self.chain.transactions.values()
            for log in transaction.logs
            if first <= int(log["blockNumber"], 16) <= min(last, self.height)
            and log["topics"][0] in kinds
            and log["topics"][1:] == [payer, nonce]
        ]

    def receipt(self, name: str) -> dict[str, Any] | None:
        transaction = self._find_mined(name)
        return transaction and {
            "status": hex(int(transaction.succeeded)),
            "logs": transaction.logs,
            "blockNumber": hex(transaction.block or 0),
            "transactionHash": name,
        }

    def transaction(self, name: str) -> dict[str, Any] | None:
        transaction = self._find_mined(name)
        if transaction is None:
            return None
        nonces = [transfer.key for transfer in transaction.transfers] + list(transaction.cancels)
        data = "".join(to_word(payer)[2:] + nonce[2:] for payer, nonce in nonces)
        return {"hash": name, "to": TOKEN, "input": "0x" + data}

    def _find_mined(self, name: str) -> Transaction | None:
        transaction = self.chain.transactions.get(name)
        if transaction is None or transaction.block is None or transaction.block > self.height:
            return None
        return transaction


def _chain_id(_node: Node) -> str:
    return hex(8453)


def _version(_node: Node) -> str:
    return "Geth/v1.16.0"


def _block_number(node: Node) -> str:
    return hex(node.height)


def _code(node: Node, address: str, _block: str) -> str:
    return "0x60" if address in node.chain.contracts else "0x"


_METHODS: dict[str, Callable[..., Any]] = {
    "eth_chainId": _chain_id,
    "web3_clientVersion": _version,
    "eth_blockNumber": _block_number,
    "eth_getCode": _code,
    "eth_getBlockByNumber": Node.block_by_number,
    "eth_call": Node.call,
    "eth_getLogs": Node.logs,
    "eth_getTransactionReceipt": Node.receipt,
    "eth_getTransactionByHash": Node.transaction,
}

_ZERO, _ONE = "0x" + "0" * 64, "0x" + "0" * 63 + "1"
_INVENTED: dict[str, Nonce] = {}
"""Transactions that lying nodes have invented, and the nonces of their transfers."""


def _invent_logs(node: Node, _result: Any, params: list[Any]) -> Any:
    query = params[0]
    payer, nonce = "0x" + query["topics"][1][26:], query["topics"][2]
    name = "0x" + sha256(f"invented {payer} {nonce}".encode()).hexdigest()
    _INVENTED[name] = payer, nonce
    return build_transfer_logs(_invent_authorization(node, payer, nonce), int(query["toBlock"], 16), name)[:1]


def _invent_receipt(node: Node, result: Any, params: list[Any]) -> Any:
    if params[0] not in _INVENTED:
        return result
    transfer = _invent_authorization(node, *_INVENTED[params[0]])
    return {"status": "0x1", "logs": build_transfer_logs(transfer, node.height, params[0])}


def _invent_authorization(node: Node, payer: str, nonce: str) -> Authorization:
    return Authorization(payer, node.lie_to, PRICE, 0, nonce, "")


def _delay_timestamp(_node: Node, result: Any, _params: list[Any]) -> Any:
    return {**result, "timestamp": hex(int(result["timestamp"], 16) + 100_000)}


def _mark_reverted(_node: Node, result: Any, _params: list[Any]) -> Any:
    return {**(result or {"blockNumber": "0x0"}), "status": "0x0", "logs": []}


def _reply_with_result(result: Any) -> Callable[[Node, Any, list[Any]], Any]:
    return lambda _node, _result, _params: result


_LIES: dict[tuple[str, Lie], Callable[[Node, Any, list[Any]], Any]] = {
    ("eth_call", "unused"): _reply_with_result(_ZERO),
    ("eth_call", "paid"): _reply_with_result(_ONE),
    ("eth_getLogs", "paid"): _invent_logs,
    ("eth_getTransactionReceipt", "paid"): _invent_receipt,
    ("eth_call", "spent"): _reply_with_result(_ONE),
    ("eth_getLogs", "spent"): _reply_with_result([]),
    ("eth_call", "expired"): _reply_with_result(_ZERO),
    ("eth_getBlockByNumber", "expired"): _delay_timestamp,
    ("eth_call", "reverted"): _reply_with_result(_ZERO),
    ("eth_getTransactionReceipt", "reverted"): _mark_reverted,
    ("eth_blockNumber", "high"): _reply_with_result(hex(100_000)),
    ("eth_blockNumber", "low"): _reply_with_result("0x0"),
    ("eth_getCode", "code"): _reply_with_result("0x60"),
    ("eth_getCode", "no code"): _reply_with_result("0x"),
}
