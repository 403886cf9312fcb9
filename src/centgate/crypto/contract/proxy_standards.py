"""Standards of proxies: their slots, getters and code, and what the state that was read means. No I/O.

Each reader of the chain has its own plan of what to read, and in how many rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.bytecode import (
    MASTER_COPY_SELECTOR,
    delegation_target,
    has_delegatecall,
    match_clone,
)
from centgate.crypto.contract.contracts import ProxyKind

IMPLEMENTATION_SLOT = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
BEACON_SLOT = "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50"
ADMIN_SLOT = "0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103"
"""EIP-1967."""
PROXIABLE_SLOT = "0xc5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7"
"""EIP-1822."""
ZEPPELIN_SLOT = "0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3"
ZEPPELIN_ADMIN_SLOT = "0x10d6a54a4754c8869d6886b5f5d7fbfa5b4522237ea5c60d11bc4e7a1ff9390b"
"""`org.zeppelinos.proxy.…`, before EIP-1967."""
FIRST_SLOT = "0x" + "0" * 64
"""Names the implementation of a Safe; other contracts keep anything there."""
POINTER_SLOTS: tuple[tuple[str, ProxyKind], ...] = (
    (IMPLEMENTATION_SLOT, "eip1967"),
    (BEACON_SLOT, "eip1967_beacon"),
    (PROXIABLE_SLOT, "eip1822"),
    (ZEPPELIN_SLOT, "zeppelinos"),
)
"""Slots that name the implementation of any proxy, or its beacon, in order of precedence."""
SLOTS = (*(slot for slot, _ in POINTER_SLOTS), ADMIN_SLOT, ZEPPELIN_ADMIN_SLOT, FIRST_SLOT)
IMPLEMENTATION_CALL = "implementation()"
"""Getter of a beacon (EIP-1967)."""
IMPLEMENTATION_GETTERS = (IMPLEMENTATION_CALL, "childImplementation()", "comptrollerImplementation()")
"""Getters that proxies of other kinds have; some contracts that are no proxy have them too."""
MAX_CLONE_LEVELS = 2
"""Minimal proxies behind one another that are followed from an implementation to the code that runs."""


def parse_coded_implementation(code: bytes) -> tuple[str, ProxyKind] | None:
    """Return the contract whose code an account's own code names, with the kind; None if it names none.

    It is a minimal proxy, or a wallet with delegated code (EIP-7702). What its storage names does not count.
    """
    target = delegation_target(code)
    return (target, "eip7702") if target else match_clone(code)


def can_run_slots(code: bytes) -> bool:
    """True if an account with this code may run the code that a slot of its storage names."""
    return parse_coded_implementation(code) is None and has_delegatecall(code)


def list_pointer_slots(state: ChainState) -> Iterator[tuple[str, ProxyKind]]:
    """Yield the slots that can hold the implementation; the first slot counts only for Safe proxies."""
    yield from POINTER_SLOTS
    if MASTER_COPY_SELECTOR in (state.code or b""):
        yield FIRST_SLOT, "safe"


def list_named_slots(state: ChainState, address: str | None = None) -> list[str]:
    """Return the slots where proxies of any kind keep an address and this account, or another, has one."""
    return [slot for slot, _ in POINTER_SLOTS if state.slot_address(slot, address)]


def find_implementation(state: ChainState, slot: str) -> str | None:
    """Return the contract that a slot names, or the beacon in it; None if the beacon's answer is missing."""
    pointer = state.slot_address(slot)
    if pointer is None or slot != BEACON_SLOT:
        return pointer
    return state.returned_address(pointer, IMPLEMENTATION_CALL)


def follow_clones(state: ChainState, target: str) -> tuple[str, ...]:
    """Return an implementation and, while it is a minimal proxy itself, the one that its code names."""
    running = [target]
    while clone := match_clone(state.codes.get(running[-1], b"")):
        if clone[0] in running or len(running) > MAX_CLONE_LEVELS:
            break
        running.append(clone[0])
    return tuple(running)


def list_running(state: ChainState, targets: Iterable[str]) -> tuple[str, ...]:
    """Return implementations, then those behind the ones that are minimal proxies."""
    targets = tuple(targets)
    behind = (each for target in targets for each in follow_clones(state, target)[1:])
    return tuple(dict.fromkeys((*targets, *behind)))
