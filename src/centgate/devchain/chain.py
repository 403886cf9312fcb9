"""In-process EVM that mines each transaction immediately into its own block.

Block times are wall-clock times: py-evm requires a block at least one second after its parent, so that many
quick payments would move the chain minutes ahead, and authorizations with a short window would expire.
Here a block may have the time of its parent.
"""

# rlp comes without types
# pyright: reportMissingTypeStubs=false

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
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
from eth.exceptions import PyEVMError, VMError
from eth.exceptions import Revert as EvmRevert
from eth.vm.forks.berlin.transactions import UnsignedAccessListTransaction
from eth.vm.forks.prague import PragueVM
from eth.vm.forks.prague.state import PragueState
from eth.vm.message import Message
from eth.vm.spoof import SpoofTransaction
from eth_typing import Address, BlockNumber
from eth_utils.address import to_canonical_address
from eth_utils.exceptions import ValidationError
from msgspec import Struct, field
from msgspec.structs import replace

from centgate.devchain.call_limits import CallClock, CallTimeout, LimitedComputation
from centgate.devchain.overrides import (
    AccountOverride,
    BlockOverride,
    apply_account_overrides,
    apply_block_override,
)

GAS_LIMIT = 30_000_000
CALL_GAS_CAP = 50_000_000  # go-ethereum's default of --rpc.gascap, for calls and estimates
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


class EvmCall(Struct, frozen=True):
    """Parameters of eth_call, eth_estimateGas and eth_createAccessList.

    Without `to` the data is a constructor, and the result is the code that it returns.
    """

    sender: Address
    to: Address = CREATE_CONTRACT_ADDRESS
    data: bytes = b""
    value: int = 0
    gas: int = GAS_LIMIT
    gas_price: int = 0
    """In wei. At 0 the call is free, and runs in a block with a base fee of 0."""
    overrides: Mapping[Address, AccountOverride] = field(default_factory=dict[Address, AccountOverride])
    block_override: BlockOverride | None = None


class AccessList(Struct, frozen=True):
    """Accounts and storage slots that a call touches, and the gas it uses if they are listed."""

    slots: Mapping[Address, frozenset[int]]
    gas_used: int
    error: str | None


class MinedTransaction(Struct, frozen=True):
    """Mined transaction with its block, which contains no other transaction."""

    transaction: SignedTransactionAPI
    receipt: ReceiptAPI
    block: BlockAPI
    created: bytes | None


class GenesisAccount(Struct):
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

        Raises `CallReverted` if the contract reverts, `TransactionRejected` for any other failure, such as
        code that does not end.
        """
        return _require_output(self._execute(call, block_tag, CallClock()))

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

    def create_access_list(self, call: EvmCall, block_tag: BlockTag = "latest") -> AccessList:
        """Return what a call touches. A call that fails has a list too, with its error."""
        state = self._prepare_state(call, block_tag, CallClock())
        computation = _apply(state, call, self.chain_id)
        slots = _find_accessed_slots(state, computation)
        listed = _apply(self._prepare_state(call, block_tag, CallClock()), call, self.chain_id, slots)
        error = listed.error if listed.is_error else None
        return AccessList(slots, call.gas - listed.get_gas_remaining(), error and _error_message(error))

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
            with suppress(TransactionRejected):  # of another transaction than the one that was sent
                self._mine_block(following)
        return transaction.hash

    def change_state(self, change: Callable[[StateAPI], None]) -> None:
        """Mine a block without transactions whose state is changed by a function.

        This does what no transaction can, such as `create_contract_at`.
        """
        header = self._chain.create_header_from_parent(self.blocks[-1].header)
        machine = self._chain.get_vm(header)
        change(machine.state)
        machine.state.lock_changes()
        machine.state.persist()
        block = machine.get_block()
        block = block.copy(header=block.header.copy(state_root=machine.state.state_root))
        self._chain.persist_block(block)
        self.blocks.append(block)

    def _execute(self, call: EvmCall, block_tag: BlockTag, clock: CallClock | None = None) -> ComputationAPI:
        return _apply(self._prepare_state(call, block_tag, clock), call, self.chain_id)

    def _prepare_state(self, call: EvmCall, block_tag: BlockTag, clock: CallClock | None) -> StateAPI:
        """Return a state of its own for a call, with the call's overrides; limited by a clock."""
        state = self._vm_at(block_tag, call.block_override, is_free=not call.gas_price).state
        apply_account_overrides(state, call.overrides)
        assert isinstance(state, _DevState)
        state.call_clock = clock
        return state

    def _runs_out_of_gas(self, call: EvmCall, gas: int, block_tag: BlockTag) -> bool:
        try:
            return self._execute(replace(call, gas=gas), block_tag).is_error
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

    def _vm_at(
        self, block_tag: BlockTag, override: BlockOverride | None = None, *, is_free: bool = True
    ) -> VirtualMachineAPI:
        if block_tag == "latest":
            header = self._chain.create_header_from_parent(self.blocks[-1].header)
        else:
            header = self.blocks[block_tag].header
        if override is not None:
            header = apply_block_override(header, override)
        # base fee 0: a call works without any balance
        return self._chain.get_vm(header.copy(base_fee_per_gas=0) if is_free else header)


class _DevState(PragueState):
    """State that notes which accounts and slots a transaction touches, also in parts that are reverted."""

    computation_class = LimitedComputation
    call_clock: CallClock | None = None
    """Limit of a call; None for what is mined, and for an estimate of its gas."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.touched: dict[Address, set[int]] = {}
        super().__init__(*args, **kwargs)

    def mark_address_warm(self, address: Address) -> None:
        self.touched.setdefault(address, set())
        super().mark_address_warm(address)

    def mark_storage_warm(self, address: Address, slot: int) -> None:
        self.touched.setdefault(address, set()).add(slot)
        super().mark_storage_warm(address, slot)


def create_contract_at(state: StateAPI, address: str, initcode: bytes, *, sender: str) -> None:
    """Run a constructor so that its contract gets a chosen address. Its events are in no block.

    Raises `CallReverted` if the constructor reverts, `TransactionRejected` for any other failure.
    """
    create_message: Any = Message  # its types want code and data of one type
    message = create_message(
        gas=CALL_GAS_CAP,
        to=CREATE_CONTRACT_ADDRESS,
        sender=to_canonical_address(sender),
        value=0,
        data=b"",
        code=initcode,
        create_address=to_canonical_address(address),
    )
    context = state.get_transaction_context_class()(gas_price=0, origin=message.sender)
    _require_output(state.computation_class.apply_create_message(state, message, context))


def _create_chain(
    chain_id: int, seeds: Mapping[str, GenesisAccount], clock: Callable[[], float]
) -> MiningChain:
    # no validation: every block is made here, and the rules reject only a time equal to the parent's
    class DevVM(PragueVM):
        _state_class = _DevState

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


def _apply(
    state: StateAPI, call: EvmCall, chain_id: int, listed: Mapping[Address, frozenset[int]] | None = None
) -> ComputationAPI:
    """Apply a call to a state, with these accounts and slots as its access list."""
    access_list = [(address, sorted(slots)) for address, slots in (listed or {}).items()]
    create_transaction: Any = UnsignedAccessListTransaction  # complete, though not in its types
    transaction = create_transaction(
        chain_id=chain_id,
        nonce=state.get_nonce(call.sender),
        gas_price=call.gas_price,
        gas=call.gas,
        to=call.to,
        value=call.value,
        data=call.data,
        access_list=access_list,
    )
    try:
        return state.apply_transaction(_with_sender(call.sender, transaction))
    except CallTimeout as late:
        raise TransactionRejected(str(late)) from late
    except (ValidationError, VMError) as error:  # VMError: a constructor longer than EIP-3860 allows
        raise TransactionRejected(str(error)) from error


def _find_accessed_slots(state: StateAPI, computation: ComputationAPI) -> dict[Address, frozenset[int]]:
    """Return what a transaction touched, without the accounts that are warm in any transaction."""
    assert isinstance(state, _DevState)
    message = computation.msg
    always_warm = {message.sender, message.storage_address, state.coinbase}
    always_warm |= state.computation_class.get_precompiles().keys()
    return {
        address: frozenset(slots)
        for address, slots in sorted(state.touched.items())
        if slots or address not in always_warm
    }


def _with_sender(sender: Address, transaction: Any) -> Any:
    return SpoofTransaction(transaction, from_=sender)


def _require_output(computation: ComputationAPI) -> bytes:
    if computation.is_success:
        return computation.output
    if isinstance(computation.error, EvmRevert):
        raise CallReverted(computation.output)
    raise TransactionRejected(_error_message(computation.error))


def _error_message(error: Exception) -> str:
    if isinstance(error, EvmRevert):
        return "execution reverted"
    return f"execution failed: {str(error) or type(error).__name__}"
