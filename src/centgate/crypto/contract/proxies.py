"""Classify the account at an address: kind, implementations of a proxy, and who can upgrade it. No I/O.

The input is the state read from the chain so far (`ChainState`); `account_reads` tells what to read next.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from centgate.crypto.contract.account_finding import (
    AccountEvidence,
    AccountFinding,
    create_code_evidence,
    create_slot_evidence,
)
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.bytecode import (
    delegation_target,
    has_create,
    has_delegatecall,
    is_reserved,
    match_clone,
)
from centgate.crypto.contract.contracts import ProxyKind
from centgate.crypto.contract.diamonds import (
    CUT_FACET_CALL,
    FACETS_CALL,
    MAX_FACETS,
    count_facets,
    list_facets,
)
from centgate.crypto.contract.proxy_standards import (
    BEACON_SLOT,
    IMPLEMENTATION_CALL,
    IMPLEMENTATION_GETTERS,
    IMPLEMENTATION_SLOT,
    POINTER_SLOTS,
    can_run_slots,
    find_implementation,
    follow_clones,
    list_named_slots,
    list_pointer_slots,
    list_running,
)
from centgate.crypto.contract.upgrade_power import add_owner, add_upgrade_power, can_upgrade


def classify_account(state: ChainState) -> AccountFinding | None:
    """Classify the account from the state read so far; None if its code was not read."""
    if state.code is None:
        return None
    if not state.code:
        return _classify_without_code(state)
    if target := delegation_target(state.code):
        return _add_clones(state, _classify_delegation(state, target))
    if clone := match_clone(state.code):
        return _add_delegation(state, _add_clones(state, _classify_clone(state, *clone)))
    if not has_delegatecall(state.code):
        return replace(_classify_unconfirmed(state), has_delegatecall=False)
    finding = (
        _classify_by_slot(state)
        or _classify_diamond(state)
        or _classify_by_getter(state)
        or _classify_unconfirmed(state)
    )
    return replace(_add_delegation(state, _add_clones(state, finding)), has_delegatecall=True)


def is_slot_call_needed(state: ChainState) -> bool:
    """True if it depends on the slots that a call reads whether the contract is a proxy."""
    if not state.code or not can_run_slots(state.code):
        return False
    finding = _classify_by_slot(state)
    return finding is not None and finding.kind != "safe"


def _classify_without_code(state: ChainState) -> AccountFinding:
    if named := list_named_slots(state):
        note = (
            f"its storage names {state.slot_address(named[0])} as a proxy's does, though there is no code: "
            "it is a wallet that was delegated earlier, or the node did not tell its code"
        )
        return AccountFinding("unknown", is_proxy=None, notes=(note,))
    note = "this address is reserved by the chain: no one holds its key"
    return AccountFinding(
        state.account_kind(state.address),
        is_proxy=False,
        notes=(note,) if is_reserved(state.address) else (),
        has_delegatecall=False,
    )


def _add_clones(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Add the code that runs behind implementations that are minimal proxies themselves."""
    running = list_running(state, finding.implementations)
    clones = {each: clone[0] for each in running if (clone := match_clone(state.codes.get(each, b"")))}
    if not clones:
        return finding
    is_complete = all(target in state.codes and target in running for target in clones.values())
    return replace(
        finding,
        implementations=running,
        upgradeable=None if finding.upgradeable is False and not is_complete else finding.upgradeable,
        notes=(*finding.notes, *(_describe_clone(state, running, *each) for each in clones.items())),
    )


def _add_delegation(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Add that the code can be changed if it is that of a wallet, whose owner can delegate to other code."""
    wallets = [each for each in finding.implementations if delegation_target(state.codes.get(each, b""))]
    if not wallets:
        return finding
    note = (
        f"the code it runs, of {wallets[0]}, is that of a wallet with delegated code (EIP-7702), whose owner "
        "can change it at any time"
    )
    return replace(
        finding,
        upgradeable=True,
        upgrader=finding.upgrader or wallets[0],
        notes=(*finding.notes, note),
    )


def _describe_clone(state: ChainState, running: tuple[str, ...], clone: str, target: str) -> str:
    note = f"the code it runs, of {clone}, is a minimal proxy itself, which runs the code of {target}"
    if target not in running or target not in state.codes:
        return f"{note}: that code was not looked at"
    return note if state.codes[target] else f"{note}, which has none"


def _classify_delegation(state: ChainState, target: str) -> AccountFinding:
    notes = [
        f"this is a wallet with delegated code (EIP-7702): it runs the code of {target} until its owner "
        "signs another delegation"
    ]
    if state.codes.get(target) == b"":
        notes.append(f"the delegation names {target}, which has no code")
    running = follow_clones(state, target)
    nested = [_describe_nested(each) for each in running if list_named_slots(state, each)]
    return AccountFinding(
        "delegated_wallet",
        is_proxy=True,
        kind="eip7702",
        implementations=(target,),
        upgradeable=True,
        upgrader=state.address,
        evidence=(create_code_evidence(state, "code EIP-7702"),),
        notes=(*notes, *nested),
        has_delegatecall=True,
    )


def _classify_clone(state: ChainState, target: str, kind: ProxyKind) -> AccountFinding:
    running = follow_clones(state, target)
    # without a known slot, the code that a DELEGATECALL runs may be named anywhere
    is_delegating = has_delegatecall(state.codes.get(running[-1], b""))
    nested = tuple(
        _describe_nested(each)
        for each in running
        if list_named_slots(state, each) or (is_delegating and each == running[-1])
    )
    # where there is no code yet, its author may place any later, as by CREATE2
    is_fixed = all(state.codes.get(each) and (each, IMPLEMENTATION_SLOT) in state.slots for each in running)
    empty = (f"it runs the code of {target}, which has none",) if state.codes.get(target) == b"" else ()
    return AccountFinding(
        "contract",
        is_proxy=True,
        kind=kind,
        implementations=(target,),
        upgradeable=None if nested or not is_fixed else False,
        evidence=(create_code_evidence(state, "code of a minimal proxy"),),
        notes=(*empty, *nested),
        has_delegatecall=True,
    )


def _describe_nested(address: str) -> str:
    return f"the code it runs, of {address}, may be a proxy itself: whether it can be changed is not known"


def _classify_by_slot(state: ChainState) -> AccountFinding | None:
    """Return the finding for a proxy that stores its implementation in a slot."""
    for slot, kind in list_pointer_slots(state):
        target = state.slot_address(slot)
        if not target or target == state.address or not state.codes.get(target):
            continue
        if kind != "safe" and state.is_unread_slot(slot):
            continue
        stored = create_slot_evidence(state, slot)
        if kind == "eip1967_beacon":
            if finding := _classify_beacon(state, target, stored):
                return _add_unread_slot(state, slot, finding)
        else:
            finding = AccountFinding(
                "contract", is_proxy=True, kind=kind, implementations=(target,), evidence=(stored,)
            )
            return _add_unread_slot(state, slot, add_upgrade_power(state, finding))
    return None


def _add_unread_slot(state: ChainState, slot: str, finding: AccountFinding) -> AccountFinding:
    """Add that a proxy may run other code than its slot names, if its own code does not name the slot.

    Anyone can write an address there to be taken for a proxy of well-known code. A call that reads the slot
    tells more than a name.
    """
    if (
        finding.kind == "safe"
        or state.called_slots is not None
        or bytes.fromhex(slot[2:]) in (state.code or b"")
    ):
        return finding
    note = (
        f"its own code does not name the storage slot that holds {finding.implementations[0]}, so it may run "
        "other code than that"
    )
    return replace(finding, notes=(*finding.notes, note))


def _classify_beacon(state: ChainState, beacon: str, stored: AccountEvidence) -> AccountFinding | None:
    target = find_implementation(state, BEACON_SLOT)
    if not target or not state.codes.get(target):
        return None
    call = AccountEvidence("rpc", f"call {IMPLEMENTATION_CALL} of the beacon {beacon}", target)
    finding = AccountFinding(
        "contract",
        is_proxy=True,
        kind="eip1967_beacon",
        implementations=(target,),
        beacon=beacon,
        evidence=(stored, call),
    )
    if not can_upgrade(state.codes[beacon]):
        return finding
    return add_owner(state, replace(finding, upgradeable=True), beacon, "the beacon")


def _classify_diamond(state: ChainState) -> AccountFinding | None:
    """Return the finding for a diamond: its loupe lists facets that have code."""
    addresses = list_facets(state)
    with_code = tuple(facet for facet in addresses if state.codes.get(facet))
    if not with_code:
        return None
    call = AccountEvidence("rpc", f"call {FACETS_CALL}", f"{len(addresses)} addresses")
    more = count_facets(state) - MAX_FACETS
    notes = (
        "it runs the code of these facets as it says itself (EIP-2535), so it may run other code",
        # a facet keeps the code of functions that were removed from the diamond, or moved to another facet
        "functions are those in the code of its facets, of which it may use a part only",
        *((f"it lists {more} more facets, which were not checked",) if more > 0 else ()),
    )
    finding = AccountFinding(
        "contract", is_proxy=True, kind="eip2535", implementations=with_code, evidence=(call,), notes=notes
    )
    if not state.returned_address(state.address, CUT_FACET_CALL):
        return finding
    cut = AccountEvidence(
        "rpc", f"call {CUT_FACET_CALL}", state.returned_address(state.address, CUT_FACET_CALL)
    )
    finding = replace(finding, upgradeable=True, evidence=(call, cut))
    return add_owner(state, finding, state.address, "the diamond")


def _classify_by_getter(state: ChainState) -> AccountFinding | None:
    """Return the finding for a contract that has an implementation getter and uses DELEGATECALL."""
    results = ((hint, state.returned_address(state.address, hint)) for hint in IMPLEMENTATION_GETTERS)
    match = next(((hint, target) for hint, target in results if target and state.codes.get(target)), None)
    if not match:
        return None
    hint, target = match
    evidence = (AccountEvidence("rpc", f"call {hint}", target),)
    if has_create(state.code or b""):
        note = f"it returns {target} as {hint} but also creates contracts: it may be a proxy or a factory"
        return AccountFinding("contract", is_proxy=None, evidence=evidence, notes=(note,))
    note = f"it runs the code of {target} as it says itself ({hint}), so it may run other code"
    return AccountFinding(
        "contract", is_proxy=True, kind="other", implementations=(target,), evidence=evidence, notes=(note,)
    )


def _classify_unconfirmed(state: ChainState) -> AccountFinding:
    """Return the finding for a contract without a confirmed sign of a proxy."""
    evidence = tuple(_list_unconfirmed_slots(state))
    if not has_delegatecall(state.code or b""):
        return AccountFinding("contract", is_proxy=False, notes=tuple(_list_decoys(state)))
    if not evidence:
        return AccountFinding("contract", is_proxy=None)
    notes = tuple(
        f"storage {slot} holds {each.value}, which {_slot_problem(state, slot)}"
        for each in evidence
        if (slot := each.field.removeprefix("storage "))
    )
    return AccountFinding("contract", is_proxy=None, evidence=evidence, notes=notes)


def _list_decoys(state: ChainState) -> Iterator[str]:
    """Yield what makes a contract look like a proxy, although its code runs no other code."""
    if named := list_named_slots(state):
        yield (
            f"it stores {state.slot_address(named[0])} where a proxy keeps the address of its code, but runs "
            "no other code than its own: explorers may show another contract's source for it"
        )
    elif list_facets(state):
        yield "it lists facets like a diamond (EIP-2535), but runs no other code than its own"


def _slot_problem(state: ChainState, slot: str) -> str:
    """Return why the value of a slot leads to no code."""
    target = state.slot_address(slot)
    if target == state.address:
        return "is its own address"
    if not target or not state.codes.get(target):
        return "is not a contract's address"
    if state.is_unread_slot(slot):
        return "a call to it does not read, so it may run other code"
    return "leads to no code to run"


def _list_unconfirmed_slots(state: ChainState) -> Iterator[AccountEvidence]:
    """Yield non-empty proxy slots as evidence, although they confirm no proxy."""
    for slot, _ in POINTER_SLOTS:
        word = state.slots.get((state.address, slot), b"")
        if any(word):
            yield create_slot_evidence(state, slot)
