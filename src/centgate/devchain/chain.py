"""In-process EVM that mines each transaction immediately into its own block.

Block times are wall-clock times: py-evm requires a block at least one second after its parent, so that many
quick payments would move the chain minutes ahead, and authorizations with a short window would expire.
Here a block may have the time of its parent.
"""

# rlp comes without types
# pyright: reportMissingTypeStubs=false

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import rlp.exceptions
from eth.abc import (
    BlockAPI,
    BlockHeaderAPI,
    ComputationAPI,
    ReceiptAPI,
    SignedTransactionAPI,
    StateAPI,
    VirtualMachineAPI,
)
from eth.chains.base import MiningChain
from eth.constants import CREATE_CONTRACT_ADDRESS
from eth.db.atomic import AtomicDB
from eth.exceptions import PyEVMError
from eth.exceptions import Revert as EvmRevert
from eth.vm.forks.prague import PragueVM
from eth.vm.spoof import SpoofTransaction
from eth_typing import Address, BlockNumber
from eth_utils.address import to_canonical_address
from eth_utils.exceptions import ValidationError

GAS_LIMIT = 30_000_000
BASE_FEE = 7  # wei; the minimum that the fee rule of EIP-1559 keeps constant from block to block
TIP = 1_000_000  # wei, about the real chain's value

BlockTag = int | Literal["latest"]


class TransactionRejected(Exception):
    """The chain rejects this transaction or call; the message has the reason."""


class CallReverted(Exception):
    """A call was reverted. `data` is the contract's encoded reason."""

    def __init__(self, data: bytes) -> None:
        super().__init__("execution reverted")
        self.data = data


@dataclass(frozen=True)
class EvmCall:
    """Parameters of eth_call and eth_estimateGas."""

    sender: Address
    to: Address = CREATE_CONTRACT_ADDRESS
    data: bytes = b""
    value: int = 0
    gas: int = GAS_LIMIT


@dataclass(frozen=True)
class MinedTransaction:
    """Mined transaction with its block, which contains no other transaction."""

    transaction: SignedTransactionAPI
    receipt: ReceiptAPI
    block: BlockAPI
    created: bytes | None


@dataclass
class GenesisAccount:
    """State of an account in the genesis block."""

    balance: int = 0
    code: bytes = b""
    storage: Mapping[int, int] = field(default_factory=dict[int, int])


class EvmChain:
    """Development chain. Not thread-safe: use it from one thread at a time."""

    def __init__(
        self, chain_id: int, seeds: Mapping[str, GenesisAccount], *, clock: Callable[[], float] = time.time
    ) -> None:
        self.chain_id = chain_id
        self._chain = _create_chain(chain_id, seeds, clock)
        self.blocks: list[BlockAPI] = [self._chain.get_canonical_block_by_number(BlockNumber(0))]
        self.mined_transactions: dict[bytes, MinedTransaction] = {}
        self.queued_transactions: dict[tuple[bytes, int], SignedTransactionAPI] = {}

    @property
    def height(self) -> int:
        return len(self.blocks) - 1

    def state_at(self, block_tag: BlockTag = "latest") -> StateAPI:
        """Return the state (balances, nonces, code, storage) after a block."""
        return self._vm_at(block_tag).state

    def run_call(self, call: EvmCall, block_tag: BlockTag = "latest") -> bytes:
        """Run a call without keeping its changes. `latest` runs in the next block, at the current time.

        Raises `CallReverted` if the contract reverts, `TransactionRejected` for any other failure.
        """
        return _require_output(self._execute(call, block_tag))

    def estimate_gas(self, call: EvmCall, block_tag: BlockTag = "latest") -> int:
        """Estimate the gas that a call needs."""
        computation = self._execute(call, block_tag)
        _require_output(computation)
        used = call.gas - computation.get_gas_remaining() + computation.data_floor_gas
        # a call forwards at most 63/64 of its gas, so the gas used may be too low as a limit
        enough = min(used, call.gas)
        while enough < call.gas and self._runs_out_of_gas(call, enough, block_tag):
            enough = min(enough * 9 // 8, call.gas)
        return enough

    def send_transaction(self, raw: bytes) -> bytes:
        """Mine a signed transaction and the sender's queued ones that follow it. Returns its hash.

        A transaction with a nonce gap is queued. Raises `TransactionRejected` if it can never be mined.
        """
        transaction = self._decode(raw)
        nonce = self.state_at().get_nonce(transaction.sender)
        if transaction.nonce < nonce:
            raise TransactionRejected(
                f"nonce too low: next is {nonce}, the transaction has {transaction.nonce}"
            )
        if transaction.nonce > nonce:
            self.queued_transactions[transaction.sender, transaction.nonce] = transaction
            return transaction.hash
        self._mine_block(transaction)
        while following := self.queued_transactions.pop((transaction.sender, nonce := nonce + 1), None):
            self._mine_block(following)
        return transaction.hash

    def _execute(self, call: EvmCall, block_tag: BlockTag) -> ComputationAPI:
        machine = self._vm_at(block_tag)
        transaction = machine.create_unsigned_transaction(
            nonce=machine.state.get_nonce(call.sender),
            gas_price=0,
            gas=call.gas,
            to=call.to,
            value=call.value,
            data=call.data,
        )
        try:
            return machine.state.apply_transaction(_with_sender(call.sender, transaction))
        except ValidationError as error:
            raise TransactionRejected(str(error)) from error

    def _runs_out_of_gas(self, call: EvmCall, gas: int, block_tag: BlockTag) -> bool:
        try:
            return self._execute(
                EvmCall(call.sender, call.to, call.data, call.value, gas), block_tag
            ).is_error
        except TransactionRejected:  # below the intrinsic gas of a transaction
            return True

    def _decode(self, raw: bytes) -> SignedTransactionAPI:
        try:
            transaction = self._vm_at("latest").get_transaction_builder().decode(raw)
            transaction.validate()
        except (rlp.exceptions.RLPException, PyEVMError, ValidationError, ValueError, LookupError) as error:
            raise TransactionRejected(f"cannot decode the transaction: {error}") from error
        if transaction.chain_id not in (None, self.chain_id):
            raise TransactionRejected(
                f"the transaction is for chain {transaction.chain_id}, this is {self.chain_id}"
            )
        return transaction

    def _mine_block(self, transaction: SignedTransactionAPI) -> None:
        try:
            result, receipts, computations = self._chain.mine_all(
                [transaction], parent_header=self.blocks[-1].header
            )
        except ValidationError as error:
            raise TransactionRejected(str(error)) from error
        created = computations[0].msg.storage_address if computations[0].msg.is_create else None
        self.blocks.append(result.imported_block)
        self.mined_transactions[transaction.hash] = MinedTransaction(
            transaction, receipts[0], result.imported_block, created
        )

    def _vm_at(self, block_tag: BlockTag) -> VirtualMachineAPI:
        if block_tag == "latest":
            header = self._chain.create_header_from_parent(self.blocks[-1].header)
        else:
            header = self.blocks[block_tag].header
        # base fee 0: a call works without any balance
        return self._chain.get_vm(header.copy(base_fee_per_gas=0))


def _create_chain(
    chain_id: int, seeds: Mapping[str, GenesisAccount], clock: Callable[[], float]
) -> MiningChain:
    # no validation: every block is made here, and the rules reject only a time equal to the parent's
    class DevVM(PragueVM):
        def validate_block(self, block: BlockAPI) -> None:
            return

    class WallClockChain(MiningChain):
        def create_header_from_parent(
            self, parent_header: BlockHeaderAPI, **header_params: Any
        ) -> BlockHeaderAPI:
            now = max(parent_header.timestamp, int(clock()))
            params = {"timestamp": now, "gas_limit": parent_header.gas_limit, **header_params}
            return super().create_header_from_parent(parent_header, **params)

        def validate_block(self, block: BlockAPI) -> None:
            return

    WallClockChain.chain_id = chain_id
    WallClockChain.vm_configuration = ((BlockNumber(0), DevVM),)
    genesis: dict[str, Any] = {
        "difficulty": 0,
        "gas_limit": GAS_LIMIT,
        "timestamp": int(clock()),
        "base_fee_per_gas": BASE_FEE,
    }
    state: Any = {
        to_canonical_address(address): {
            "balance": seed.balance,
            "nonce": 0,
            "code": seed.code,
            "storage": dict(seed.storage),
        }
        for address, seed in seeds.items()
    }
    chain = WallClockChain.from_genesis(AtomicDB(), genesis, state)
    assert isinstance(chain, WallClockChain)
    return chain


def _with_sender(sender: Address, transaction: Any) -> Any:
    return SpoofTransaction(transaction, from_=sender)


def _require_output(computation: ComputationAPI) -> bytes:
    if computation.is_success:
        return computation.output
    if isinstance(computation.error, EvmRevert):
        raise CallReverted(computation.output)
    raise TransactionRejected(
        f"execution failed: {str(computation.error) or type(computation.error).__name__}"
    )
