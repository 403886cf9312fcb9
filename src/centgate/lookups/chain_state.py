"""Read the state of a contract from the chain, in rounds of concurrent requests, and what calls touch."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from typing import ParamSpec, TypeVar

from centgate.crypto.contract.account_reads import NextReads, encode_call, next_reads
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.owners import OWNER_CALL
from centgate.crypto.contract.proxies import is_slot_call_needed
from centgate.errors import ProviderFailure
from centgate.fallback import attempt, found_or_none
from centgate.providers.jsonrpc.contract_calls import ContractCall
from centgate.providers.rpc import Rpc

P = ParamSpec("P")
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

MAX_READ_ROUNDS = 5
"""Rounds of concurrent chain reads; three are enough for most contracts."""


async def read_chain_state(
    rpc: Rpc, chain_id: int, address: str
) -> tuple[ChainState, ProviderFailure | None]:
    """Read the chain state of an address; the second value is the failure that ended reading early."""
    state = ChainState(address)
    clock = asyncio.get_running_loop()
    start = clock.time()
    for _ in range(MAX_READ_ROUNDS):
        reads = next_reads(state)
        if not reads:
            break
        if clock.time() - start > rpc.remaining_seconds:
            return state, rpc.invalid_response("is too slow: not all of the contract was read")
        if failure := await _read_chain(rpc, chain_id, state, reads):
            return state, failure
    if is_slot_call_needed(state):
        touched = await find_touched_accounts(rpc, chain_id, address)
        state.called_slots = touched[address] if touched else None
    return state, None


async def find_touched_accounts(rpc: Rpc, chain_id: int, address: str) -> Mapping[str, frozenset[str]] | None:
    """Return the accounts that calls to a contract touch, with their slots; None if they are not known.

    The calls are of a function that nothing has, which a proxy passes on, of none, and of one in common use.
    """
    calls = [secrets.token_bytes(4), b"", encode_call(OWNER_CALL)]
    return found_or_none(await attempt(rpc.touched_accounts, chain_id, address, calls))


async def _read_chain(rpc: Rpc, chain_id: int, state: ChainState, reads: NextReads) -> ProviderFailure | None:
    """Run all reads concurrently and store the results; return the first failure, if any."""
    calls = [ContractCall(to, encode_call(call)) for to, call in reads.calls]
    pending: list[Awaitable[ProviderFailure | None]] = [
        _read_into(state.slots, slots, rpc.storage_slots, chain_id, contract, [slot for _, slot in slots])
        for contract, slots in _group_by_contract(reads.slots).items()
    ]
    if reads.codes:
        pending.append(_read_into(state.codes, reads.codes, rpc.contract_codes, chain_id, reads.codes))
    if calls:
        pending.append(_read_into(state.call_results, reads.calls, rpc.call_contracts, chain_id, calls))
    return next((failure for failure in await asyncio.gather(*pending) if failure), None)


async def _read_into(
    into: MutableMapping[K, T],
    keys: Sequence[K],
    method: Callable[P, Awaitable[list[T]]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> ProviderFailure | None:
    """Call a method and store its result for each key; return its failure, if any."""
    try:
        into.update(zip(keys, await method(*args, **kwargs), strict=True))
    except ProviderFailure as failure:
        return failure
    return None


def _group_by_contract(slots: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    grouped: dict[str, list[tuple[str, str]]] = {}
    for slot in slots:
        grouped.setdefault(slot[0], []).append(slot)
    return grouped
