"""Choice of what to read next from the chain about an account, over a few rounds. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.diamonds import CUT_FACET_CALL, DIAMOND_CUT, FACETS_CALL, list_facets
from centgate.crypto.contract.owners import GET_OWNER_CALL, OWNER_CALL
from centgate.crypto.contract.proxy_standards import (
    ADMIN_SLOT,
    BEACON_SLOT,
    IMPLEMENTATION_CALL,
    IMPLEMENTATION_GETTERS,
    POINTER_SLOTS,
    SLOTS,
    ZEPPELIN_ADMIN_SLOT,
    follow_clones,
    list_pointer_slots,
    list_running,
    parse_coded_implementation,
)


class NextReads(Struct, frozen=True):
    """State to read next; falsy if there is nothing left to read."""

    codes: tuple[str, ...]
    slots: tuple[tuple[str, str], ...]
    calls: tuple[tuple[str, str], ...]

    def __bool__(self) -> bool:
        return bool(self.codes or self.slots or self.calls)


def encode_call(signature: str) -> bytes:
    """Encode the call data of a function signature in `NextReads.calls`."""
    if signature == CUT_FACET_CALL:
        return function_selector("facetAddress(bytes4)") + function_selector(DIAMOND_CUT).ljust(32, b"\0")
    return function_selector(signature)


def next_reads(state: ChainState) -> NextReads:
    """Return what to read next; empty if nothing more is useful."""
    codes: dict[str, None] = {state.address: None}
    slots = [(state.address, slot) for slot in SLOTS]
    calls: list[tuple[str, str]] = []
    if state.code:
        if coded := parse_coded_implementation(state.code):
            target, kind = coded
            if kind != "eip7702":
                calls = [(state.address, each) for each in (OWNER_CALL, GET_OWNER_CALL)]
            running = follow_clones(state, target)
            codes |= dict.fromkeys(running)
            slots += [(each, slot) for each in running for slot, _ in POINTER_SLOTS]
        else:
            calls = list(_list_calls(state))
            codes |= dict.fromkeys(_list_addresses(state))
            codes |= dict.fromkeys(list_running(state, _list_implementation_candidates(state)))
    return NextReads(
        tuple(address for address in codes if address not in state.codes),
        tuple(slot for slot in slots if slot not in state.slots),
        tuple(call for call in calls if call not in state.call_results),
    )


def _list_calls(state: ChainState) -> Iterator[tuple[str, str]]:
    """Yield the calls that can reveal more about a contract."""
    pointers = [target for slot, _ in list_pointer_slots(state) if (target := state.slot_address(slot))]
    yield state.address, OWNER_CALL
    yield state.address, GET_OWNER_CALL
    if beacon := state.slot_address(BEACON_SLOT):
        yield beacon, IMPLEMENTATION_CALL
        yield beacon, OWNER_CALL
    if not any(state.codes.get(pointer, b"?") for pointer in pointers):
        yield state.address, FACETS_CALL
        yield from ((state.address, hint) for hint in IMPLEMENTATION_GETTERS)
    if list_facets(state):
        yield state.address, CUT_FACET_CALL
    for admin in (state.slot_address(ADMIN_SLOT), state.slot_address(ZEPPELIN_ADMIN_SLOT)):
        if admin and state.account_kind(admin) == "contract":
            yield admin, OWNER_CALL


def _list_addresses(state: ChainState) -> Iterator[str]:
    """Yield the addresses in slots and call results."""
    slots = [slot for slot, _ in list_pointer_slots(state)] + [ADMIN_SLOT, ZEPPELIN_ADMIN_SLOT]
    yield from filter(None, (state.slot_address(slot) for slot in slots))
    yield from filter(
        None, (state.returned_address(*call) for call in state.call_results if call[1] != FACETS_CALL)
    )
    yield from list_facets(state)


def _list_implementation_candidates(state: ChainState) -> Iterator[str]:
    """Yield the addresses that slots, getters and a loupe give as implementation."""
    yield from filter(None, (state.slot_address(slot) for slot, _ in list_pointer_slots(state)))
    getters = (call for call in state.call_results if call[1] in IMPLEMENTATION_GETTERS)
    yield from filter(None, (state.returned_address(*call) for call in getters))
    yield from list_facets(state)
