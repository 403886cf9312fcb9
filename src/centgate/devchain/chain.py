"""An EVM in this process, which mines every transaction into a block of its own at once.

Its clock is the wall's: py-evm's own rule, a block at least one second after its parent, would let a
chain of many quick payments run minutes ahead, and authorizations with a short window would expire.
So blocks here may carry the time of their parent.
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
BASE_FEE = 7  # wei; the least that the fee rule of EIP-1559 keeps as it is, block after block
TIP = 1_000_000  # wei, about what the real chain asks

Moment = int | Literal["latest"]


class Refused(Exception):
    """The chain does not take this transaction or call; the message says why."""


class Reverted(Exception):
    """A call ended in a revert. `data` is what the contract gave as its reason, encoded."""

    def __init__(self, data: bytes) -> None:
        super().__init__("execution reverted")
        self.data = data


@dataclass(frozen=True)
class Call:
    """What eth_call and eth_estimateGas carry."""

    sender: Address
    to: Address = CREATE_CONTRACT_ADDRESS
    data: bytes = b""
    value: int = 0
    gas: int = GAS_LIMIT


@dataclass(frozen=True)
class Mined:
    """A transaction with the block that holds it, and it alone."""

    transaction: SignedTransactionAPI
    receipt: ReceiptAPI
    block: BlockAPI
    created: bytes | None


@dataclass
class Seed:
    """What an account holds before the first block."""

    balance: int = 0
    code: bytes = b""
    storage: Mapping[int, int] = field(default_factory=dict[int, int])


class Chain:
    """The chain. One thread at a time may use it."""

    def __init__(
        self, chain_id: int, seeds: Mapping[str, Seed], *, clock: Callable[[], float] = time.time
    ) -> None:
        self.chain_id = chain_id
        self._chain = _open(chain_id, seeds, clock)
        self.blocks: list[BlockAPI] = [self._chain.get_canonical_block_by_number(BlockNumber(0))]
        self.mined: dict[bytes, Mined] = {}
        self.waiting: dict[tuple[bytes, int], SignedTransactionAPI] = {}

    @property
    def height(self) -> int:
        return len(self.blocks) - 1

    def state(self, moment: Moment = "latest") -> StateAPI:
        """Balances, nonces, code and storage after a block."""
        return self._machine(moment).state

    def call(self, call: Call, moment: Moment = "latest") -> bytes:
        """Run a call and forget what it changed. `latest` runs at the time it is now, in the next block.

        Raises `Reverted` when the contract refuses, `Refused` for anything else that ends it.
        """
        return _output_of(self._run(call, moment))

    def estimate(self, call: Call, moment: Moment = "latest") -> int:
        """Gas that is enough for a call, and not much more."""
        computation = self._run(call, moment)
        _output_of(computation)
        used = call.gas - computation.get_gas_remaining() + computation.data_floor_gas
        # a call hands on at most 63/64 of its gas, so what was used may not be enough to be given
        enough = min(used, call.gas)
        while enough < call.gas and self._fails(call, enough, moment):
            enough = min(enough * 9 // 8, call.gas)
        return enough

    def send(self, raw: bytes) -> bytes:
        """Take a signed transaction and mine it, with those of its sender that waited for it. Its hash.

        One whose nonce is ahead waits for the gap to close. Raises `Refused` when it can never be mined.
        """
        transaction = self._decoded(raw)
        nonce = self.state().get_nonce(transaction.sender)
        if transaction.nonce < nonce:
            raise Refused(f"nonce too low: next is {nonce}, the transaction has {transaction.nonce}")
        if transaction.nonce > nonce:
            self.waiting[transaction.sender, transaction.nonce] = transaction
            return transaction.hash
        self._mine(transaction)
        while following := self.waiting.pop((transaction.sender, nonce := nonce + 1), None):
            self._mine(following)
        return transaction.hash

    def _run(self, call: Call, moment: Moment) -> ComputationAPI:
        machine = self._machine(moment)
        transaction = machine.create_unsigned_transaction(
            nonce=machine.state.get_nonce(call.sender),
            gas_price=0,
            gas=call.gas,
            to=call.to,
            value=call.value,
            data=call.data,
        )
        try:
            return machine.state.apply_transaction(_sent_by(call.sender, transaction))
        except ValidationError as error:
            raise Refused(str(error)) from error

    def _fails(self, call: Call, gas: int, moment: Moment) -> bool:
        try:
            return self._run(Call(call.sender, call.to, call.data, call.value, gas), moment).is_error
        except Refused:  # not even the gas that every transaction pays
            return True

    def _decoded(self, raw: bytes) -> SignedTransactionAPI:
        try:
            transaction = self._machine("latest").get_transaction_builder().decode(raw)
            transaction.validate()
        except (rlp.exceptions.RLPException, PyEVMError, ValidationError, ValueError, LookupError) as error:
            raise Refused(f"not a transaction this chain can read: {error}") from error
        if transaction.chain_id not in (None, self.chain_id):
            raise Refused(f"the transaction is for chain {transaction.chain_id}, this is {self.chain_id}")
        return transaction

    def _mine(self, transaction: SignedTransactionAPI) -> None:
        try:
            result, receipts, computations = self._chain.mine_all(
                [transaction], parent_header=self.blocks[-1].header
            )
        except ValidationError as error:
            raise Refused(str(error)) from error
        created = computations[0].msg.storage_address if computations[0].msg.is_create else None
        self.blocks.append(result.imported_block)
        self.mined[transaction.hash] = Mined(transaction, receipts[0], result.imported_block, created)

    def _machine(self, moment: Moment) -> VirtualMachineAPI:
        if moment == "latest":
            header = self._chain.create_header_from_parent(self.blocks[-1].header)
        else:
            header = self.blocks[moment].header
        # calls are free: nothing need be held to ask
        return self._chain.get_vm(header.copy(base_fee_per_gas=0))


def _open(chain_id: int, seeds: Mapping[str, Seed], clock: Callable[[], float]) -> MiningChain:
    # every block is made here: all that the rules could find is a time equal to the parent's
    class Machine(PragueVM):
        def validate_block(self, block: BlockAPI) -> None:
            return

    class Wall(MiningChain):
        def create_header_from_parent(
            self, parent_header: BlockHeaderAPI, **header_params: Any
        ) -> BlockHeaderAPI:
            now = max(parent_header.timestamp, int(clock()))
            params = {"timestamp": now, "gas_limit": parent_header.gas_limit, **header_params}
            return super().create_header_from_parent(parent_header, **params)

        def validate_block(self, block: BlockAPI) -> None:
            return

    Wall.chain_id = chain_id
    Wall.vm_configuration = ((BlockNumber(0), Machine),)
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
    chain = Wall.from_genesis(AtomicDB(), genesis, state)
    assert isinstance(chain, Wall)
    return chain


def _sent_by(sender: Address, transaction: Any) -> Any:
    return SpoofTransaction(transaction, from_=sender)


def _output_of(computation: ComputationAPI) -> bytes:
    if computation.is_success:
        return computation.output
    if isinstance(computation.error, EvmRevert):
        raise Reverted(computation.output)
    raise Refused(f"execution failed: {str(computation.error) or type(computation.error).__name__}")
