"""Classify the account at an address: kind, implementations of a proxy, and who can upgrade it. No I/O.

The input is the state read from the chain so far (`ChainState`). `next_reads` returns what to read next,
over a few rounds; `classify_account` returns the finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from centgate.chains import is_burn_address
from centgate.crypto.contract.bytecode import (
    MASTER_COPY_SELECTOR,
    delegation_target,
    function_selector,
    has_create,
    has_delegatecall,
    is_reserved,
    match_clone,
    parse_address_word,
)
from centgate.crypto.contract.contracts import AccountKind, ContractSource, ProxyKind
from centgate.crypto.contract.owners import parse_owner

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
SLOTS = (
    IMPLEMENTATION_SLOT,
    BEACON_SLOT,
    ADMIN_SLOT,
    PROXIABLE_SLOT,
    ZEPPELIN_SLOT,
    ZEPPELIN_ADMIN_SLOT,
    FIRST_SLOT,
)
POINTER_SLOTS: tuple[tuple[str, ProxyKind], ...] = (
    (IMPLEMENTATION_SLOT, "eip1967"),
    (BEACON_SLOT, "eip1967_beacon"),
    (PROXIABLE_SLOT, "eip1822"),
    (ZEPPELIN_SLOT, "zeppelinos"),
    (FIRST_SLOT, "safe"),
)
"""Slots that can hold the implementation's address, in order of precedence."""

IMPLEMENTATION_CALL, OWNER_CALL, FACETS_CALL = "implementation()", "owner()", "facetAddresses()"
GET_OWNER_CALL = "getOwner()"
"""Getter of the owner in tokens of BNB Smart Chain (BEP-20)."""
CUT_FACET_CALL = "facetAddress(diamondCut)"
"""facetAddress(bytes4) of the function that upgrades a diamond (EIP-2535)."""
IMPLEMENTATION_GETTERS = (IMPLEMENTATION_CALL, "childImplementation()", "comptrollerImplementation()")
"""Getters that proxies of other kinds have; some contracts that are no proxy have them too."""
_DIAMOND_CUT = "diamondCut((address,uint8,bytes4[])[],address,bytes)"
_UPGRADE_FUNCTIONS = ("upgradeTo(address)", "upgradeToAndCall(address,bytes)", "updateCodeAddress(address)")
_ADMIN_UPGRADE_FUNCTIONS = ("upgrade(address,address)", "upgradeAndCall(address,address,bytes)")
"""Functions by which only the owner of a ProxyAdmin upgrades its proxies."""
_ZERO_ADDRESS = "0x" + "0" * 40
MAX_FACETS = 60
MAX_CLONE_LEVELS = 2
"""Minimal proxies behind one another that are followed from an implementation to the code that runs."""


@dataclass(slots=True)
class ChainState:
    """On-chain state of an address read so far; a missing key was not read."""

    address: str
    """Lower case, like all addresses here."""
    codes: dict[str, bytes] = field(default_factory=dict[str, bytes])
    slots: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    """The 32 bytes of a storage slot, by contract and slot."""
    call_results: dict[tuple[str, str], bytes | None] = field(
        default_factory=dict[tuple[str, str], "bytes | None"]
    )
    """Return data of a call, by contract and function signature; None if it reverted."""
    called_slots: frozenset[str] | None = None
    """Slots that calls to the contract read, whatever functions it has; None if that is not known."""

    @property
    def code(self) -> bytes | None:
        return self.codes.get(self.address)

    def slot_address(self, slot: str, address: str | None = None) -> str | None:
        """Return the address in a slot; None unless its first 12 bytes are zero."""
        return parse_address_word(self.slots.get((address or self.address, slot)))

    def is_unread_slot(self, slot: str) -> bool:
        """True if no call to the contract reads a slot, as far as that is known."""
        return self.called_slots is not None and slot not in self.called_slots

    def returned_address(self, address: str, signature: str) -> str | None:
        """Return the address that a call returned; None if it returned none."""
        data = self.call_results.get((address, signature))
        return parse_address_word(data) if data and len(data) == 32 else None

    def owner_address(self, address: str) -> str | None:
        """Return the owner() of a contract; the zero address if renounced, None if it did not return one."""
        return parse_owner(self.call_results.get((address, OWNER_CALL)))

    @property
    def has_asked_owner(self) -> bool:
        """True if the contract was asked for its owner."""
        return (self.address, OWNER_CALL) in self.call_results

    @property
    def stated_owner(self) -> str | None:
        """The owner() of the contract itself, else its getOwner(); None if it states none."""
        getter = self.call_results.get((self.address, GET_OWNER_CALL))
        return self.owner_address(self.address) or parse_owner(getter)

    def is_burn_address(self, address: str) -> bool:
        """True if no one can act as this address: the zero address or a burn address."""
        return address == _ZERO_ADDRESS or (is_burn_address(address) and self.codes.get(address) == b"")

    def account_kind(self, address: str) -> AccountKind:
        """Return the kind of account at an address."""
        code = self.codes.get(address)
        if code is None or (not code and is_reserved(address)):
            return "unknown"
        if delegation_target(code):
            return "delegated_wallet"
        return "contract" if code else "wallet"


@dataclass(frozen=True, slots=True)
class NextReads:
    """State to read next; falsy if there is nothing left to read."""

    codes: tuple[str, ...]
    slots: tuple[tuple[str, str], ...]
    calls: tuple[tuple[str, str], ...]

    def __bool__(self) -> bool:
        return bool(self.codes or self.slots or self.calls)


@dataclass(frozen=True, slots=True)
class AccountEvidence:
    """A value that a finding rests on, with its source."""

    source: ContractSource
    field: str
    value: str | None


@dataclass(frozen=True, slots=True)
class AccountFinding:
    """Classification of an account. None means unknown."""

    account: AccountKind
    is_proxy: bool | None
    kind: ProxyKind | None = None
    implementations: tuple[str, ...] = ()
    beacon: str | None = None
    upgradeable: bool | None = None
    upgrader: str | None = None
    """Address that can change the code behind a proxy."""
    evidence: tuple[AccountEvidence, ...] = ()
    notes: tuple[str, ...] = ()
    """Warnings as sentences."""
    has_delegatecall: bool | None = None
    """True if its code can run another contract's code (DELEGATECALL)."""


def encode_call(signature: str) -> bytes:
    """Encode the call data of a function signature in `NextReads.calls`."""
    if signature == CUT_FACET_CALL:
        return function_selector("facetAddress(bytes4)") + function_selector(_DIAMOND_CUT).ljust(32, b"\0")
    return function_selector(signature)


def list_facets(state: ChainState) -> list[str]:
    """Return the facets that a diamond's loupe lists, without the diamond itself."""
    data = state.call_results.get((state.address, FACETS_CALL)) or b""
    count = min(_count_facets(state), MAX_FACETS)
    words = (data[64 + 32 * each : 96 + 32 * each] for each in range(count))
    addresses = [
        address for word in words if (address := parse_address_word(word)) and address != state.address
    ]
    return list(dict.fromkeys(addresses))


def _count_facets(state: ChainState) -> int:
    """Return the number of facets that a diamond's loupe lists; 0 if it does not return a list."""
    data = state.call_results.get((state.address, FACETS_CALL)) or b""
    count = int.from_bytes(data[32:64], "big") if data[:32] == (32).to_bytes(32, "big") else 0
    return count if count <= 1000 and len(data) >= 64 + 32 * count else 0


def next_reads(state: ChainState) -> NextReads:
    """Return what to read next; empty if nothing more is useful."""
    codes: dict[str, None] = {state.address: None}
    slots = [(state.address, slot) for slot in SLOTS]
    calls: list[tuple[str, str]] = []
    if state.code:
        target = delegation_target(state.code)
        if not target and (clone := match_clone(state.code)):
            target = clone[0]
            calls = [(state.address, each) for each in (OWNER_CALL, GET_OWNER_CALL)]
        if target:
            running = _follow_clones(state, target)
            codes |= dict.fromkeys(running)
            slots += [(each, slot) for each in running for slot, kind in POINTER_SLOTS if kind != "safe"]
        else:
            calls = list(_list_calls(state))
            codes |= dict.fromkeys(_list_addresses(state))
            codes |= dict.fromkeys(_list_running(state, _list_implementation_candidates(state)))
    return NextReads(
        tuple(address for address in codes if address not in state.codes),
        tuple(slot for slot in slots if slot not in state.slots),
        tuple(call for call in calls if call not in state.call_results),
    )


def is_slot_call_needed(state: ChainState) -> bool:
    """True if it depends on the slots that a call reads whether the contract is a proxy."""
    code = state.code
    if not code or delegation_target(code) or match_clone(code) or not has_delegatecall(code):
        return False
    finding = _classify_by_slot(state)
    return finding is not None and finding.kind != "safe"


def _list_calls(state: ChainState) -> Iterator[tuple[str, str]]:
    """Yield the calls that can reveal more about a contract."""
    pointers = [target for slot, _ in _list_pointer_slots(state) if (target := state.slot_address(slot))]
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
    slots = [slot for slot, _ in _list_pointer_slots(state)] + [ADMIN_SLOT, ZEPPELIN_ADMIN_SLOT]
    yield from filter(None, (state.slot_address(slot) for slot in slots))
    yield from filter(
        None, (state.returned_address(*call) for call in state.call_results if call[1] != FACETS_CALL)
    )
    yield from list_facets(state)


def _list_implementation_candidates(state: ChainState) -> Iterator[str]:
    """Yield the addresses that slots, getters and a loupe give as implementation."""
    yield from filter(None, (state.slot_address(slot) for slot, _ in _list_pointer_slots(state)))
    getters = (call for call in state.call_results if call[1] in IMPLEMENTATION_GETTERS)
    yield from filter(None, (state.returned_address(*call) for call in getters))
    yield from list_facets(state)


def _follow_clones(state: ChainState, target: str) -> tuple[str, ...]:
    """Return an implementation and, while it is a minimal proxy itself, the one that its code names."""
    running = [target]
    while clone := match_clone(state.codes.get(running[-1], b"")):
        if clone[0] in running or len(running) > MAX_CLONE_LEVELS:
            break
        running.append(clone[0])
    return tuple(running)


def _list_running(state: ChainState, targets: Iterable[str]) -> tuple[str, ...]:
    """Return implementations, then those behind the ones that are minimal proxies."""
    targets = tuple(targets)
    behind = (each for target in targets for each in _follow_clones(state, target)[1:])
    return tuple(dict.fromkeys((*targets, *behind)))


def _list_pointer_slots(state: ChainState) -> Iterator[tuple[str, ProxyKind]]:
    """Return the slots that can hold the implementation; slot 0 counts only for Safe proxies."""
    safe = MASTER_COPY_SELECTOR in (state.code or b"")
    return ((slot, kind) for slot, kind in POINTER_SLOTS if kind != "safe" or safe)


def classify_account(state: ChainState) -> AccountFinding | None:
    """Classify the account from the state read so far; None if its code was not read."""
    if state.code is None:
        return None
    if not state.code:
        if stored := next(
            (each for slot, kind in POINTER_SLOTS if kind != "safe" and (each := state.slot_address(slot))),
            None,
        ):
            return AccountFinding(
                "unknown",
                is_proxy=None,
                notes=(
                    f"its storage names {stored} as a proxy's does, though there is no code: it is a wallet "
                    "that was delegated earlier, or the node did not tell its code",
                ),
            )
        note = (
            "this address is reserved by the chain: no one holds its key"
            if is_reserved(state.address)
            else None
        )
        return AccountFinding(
            state.account_kind(state.address),
            is_proxy=False,
            notes=(note,) if note else (),
            has_delegatecall=False,
        )
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


def _add_clones(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Add the code that runs behind implementations that are minimal proxies themselves."""
    running = _list_running(state, finding.implementations)
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
    nested = [_describe_nested(each) for each in _follow_clones(state, target) if _has_pointer(state, each)]
    return AccountFinding(
        "delegated_wallet",
        is_proxy=True,
        kind="eip7702",
        implementations=(target,),
        upgradeable=True,
        upgrader=state.address,
        evidence=(_code_evidence("code EIP-7702", state),),
        notes=(*notes, *nested),
        has_delegatecall=True,
    )


def _classify_clone(state: ChainState, target: str, kind: ProxyKind) -> AccountFinding:
    running = _follow_clones(state, target)
    # without a known slot, the code that a DELEGATECALL runs may be named anywhere
    is_delegating = has_delegatecall(state.codes.get(running[-1], b""))
    nested = tuple(
        _describe_nested(each)
        for each in running
        if _has_pointer(state, each) or (is_delegating and each == running[-1])
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
        evidence=(_code_evidence("code of a minimal proxy", state),),
        notes=(*empty, *nested),
        has_delegatecall=True,
    )


def _has_pointer(state: ChainState, address: str) -> bool:
    """True if a contract stores an address where proxies keep that of their code."""
    return any(state.slot_address(slot, address) for slot, kind in POINTER_SLOTS if kind != "safe")


def _describe_nested(address: str) -> str:
    return f"the code it runs, of {address}, may be a proxy itself: whether it can be changed is not known"


def _classify_by_slot(state: ChainState) -> AccountFinding | None:
    """Return the finding for a proxy that stores its implementation in a slot."""
    for slot, kind in _list_pointer_slots(state):
        target = state.slot_address(slot)
        if not target or target == state.address or not state.codes.get(target):
            continue
        if kind != "safe" and state.is_unread_slot(slot):
            continue
        stored = _slot_evidence(state, slot)
        if kind == "eip1967_beacon":
            if finding := _classify_beacon(state, target, stored):
                return _add_unread_slot(state, slot, finding)
        else:
            finding = AccountFinding(
                "contract", is_proxy=True, kind=kind, implementations=(target,), evidence=(stored,)
            )
            return _add_unread_slot(state, slot, _add_upgrade_power(state, finding))
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
    target = state.returned_address(beacon, IMPLEMENTATION_CALL)
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
    if not _can_upgrade(state.codes[beacon]):
        return finding
    return _add_owner(state, replace(finding, upgradeable=True), beacon, "the beacon")


def _add_upgrade_power(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Add who can change the code, as far as the chain shows it."""
    slot = ZEPPELIN_ADMIN_SLOT if finding.kind == "zeppelinos" else ADMIN_SLOT
    if (admin := state.slot_address(slot)) and finding.kind != "safe":
        return _add_admin(
            state, replace(finding, evidence=(*finding.evidence, _slot_evidence(state, slot))), admin
        )
    if finding.kind == "safe":
        note = "the code of a Safe can be changed by a transaction of the Safe, where its code allows that"
        return replace(finding, notes=(*finding.notes, note))
    if not _can_upgrade(state.code or b"") and not _can_implementation_upgrade(state, finding):
        return finding
    return _add_self_upgrade(state, finding)


def _add_self_upgrade(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Add the owner of a proxy that is upgraded by its own code or by its implementation."""
    owner = state.owner_address(state.address)
    if not owner:
        note = "the code behind this proxy can be changed; its own code decides by whom"
        return replace(finding, upgradeable=True, notes=(*finding.notes, note))
    finding = replace(
        finding, evidence=(*finding.evidence, AccountEvidence("rpc", f"call {OWNER_CALL}", owner))
    )
    if state.is_burn_address(owner):
        note = (
            f"the code behind this proxy can be changed by the accounts that its own code allows, often its "
            f"owner(), but that is a burn address ({owner}): whether any account can is not known"
        )
        return replace(finding, notes=(*finding.notes, note))
    note = (
        f"the code behind this proxy can be changed by the accounts that its own code allows, often its "
        f"owner(), {owner}, {_describe_kind(state.account_kind(owner))}"
    )
    return replace(finding, upgradeable=True, notes=(*finding.notes, note))


def _add_admin(state: ChainState, finding: AccountFinding, admin: str) -> AccountFinding:
    """Add the admin that a proxy stores in a slot."""
    kind = state.account_kind(admin)
    if state.is_burn_address(admin):
        note = f"the admin that it stores is a burn address ({admin}), which cannot change its code"
        return _add_upgrade_without_admin(state, replace(finding, notes=(*finding.notes, note)))
    if kind in ("wallet", "delegated_wallet"):
        note = f"its code can be changed at any time by a single wallet, {admin}"
        return replace(finding, upgradeable=True, upgrader=admin, notes=(*finding.notes, note))
    note = f"its code can be changed by its admin {admin}, {_describe_kind(kind)}"
    if owner := state.owner_address(admin):
        call = AccountEvidence("rpc", f"call {OWNER_CALL} of the admin {admin}", owner)
        finding = replace(finding, evidence=(*finding.evidence, call))
        if state.is_burn_address(owner):
            return _add_ownerless_admin(state, finding, admin, owner)
        note += f", whose owner() is {owner}, {_describe_kind(state.account_kind(owner))}"
    return replace(finding, upgradeable=True, upgrader=admin, notes=(*finding.notes, note))


def _add_ownerless_admin(
    state: ChainState, finding: AccountFinding, admin: str, owner: str
) -> AccountFinding:
    """Add an admin contract that names no owner, by whom a ProxyAdmin would upgrade its proxies."""
    if _has_function(state.codes.get(admin, b""), _ADMIN_UPGRADE_FUNCTIONS):
        note = (
            f"its admin {admin} is a contract whose owner() is a burn address ({owner}): as a ProxyAdmin it "
            "cannot change the code"
        )
        return _add_upgrade_without_admin(state, replace(finding, notes=(*finding.notes, note)))
    note = (
        f"its code can be changed by its admin {admin} alone, a contract whose owner() is a burn address "
        f"({owner}): whether any account can make it do that is not known"
    )
    return replace(finding, notes=(*finding.notes, note))


def _add_upgrade_without_admin(state: ChainState, finding: AccountFinding) -> AccountFinding:
    """Finish a proxy that its admin cannot change; its implementation may be able to upgrade it.

    Anyone can deploy a proxy that stores such an admin and obeys another account, so nothing is ruled out.
    """
    return _add_self_upgrade(state, finding) if _can_implementation_upgrade(state, finding) else finding


def _classify_diamond(state: ChainState) -> AccountFinding | None:
    """Return the finding for a diamond: its loupe lists facets that have code."""
    addresses = list_facets(state)
    with_code = tuple(facet for facet in addresses if state.codes.get(facet))
    if not with_code:
        return None
    call = AccountEvidence("rpc", f"call {FACETS_CALL}", f"{len(addresses)} addresses")
    more = _count_facets(state) - MAX_FACETS
    notes = (
        "it runs the code of these facets as it says itself (EIP-2535), so it may run other code",
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
    return _add_owner(state, finding, state.address, "the diamond")


def _add_owner(state: ChainState, finding: AccountFinding, address: str, label: str) -> AccountFinding:
    """Add that the owner() of `address` can change the code."""
    owner = state.owner_address(address)
    if not owner:
        note = f"its code can be changed through {label}; by whom is not known"
        return replace(finding, notes=(*finding.notes, note))
    evidence = AccountEvidence("rpc", f"call {OWNER_CALL} of {address}", owner)
    if state.is_burn_address(owner):
        # whom the code obeys may be another account than the one that it names
        note = f"its code cannot be changed by the owner() of {label}, a burn address ({owner})"
        return replace(
            finding, upgradeable=None, evidence=(*finding.evidence, evidence), notes=(*finding.notes, note)
        )
    single = "a single wallet, " if state.account_kind(owner) in ("wallet", "delegated_wallet") else ""
    note = f"its code can be changed by the owner() of {label}: {single}{owner}"
    return replace(
        finding, upgrader=owner, evidence=(*finding.evidence, evidence), notes=(*finding.notes, note)
    )


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
    slots = (slot for slot, kind in POINTER_SLOTS if kind != "safe")
    if target := next((each for slot in slots if (each := state.slot_address(slot))), None):
        yield (
            f"it stores {target} where a proxy keeps the address of its code, but runs no other code than "
            "its own: explorers may show another contract's source for it"
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
    for slot, _ in POINTER_SLOTS[:-1]:
        word = state.slots.get((state.address, slot), b"")
        if any(word):
            yield _slot_evidence(state, slot)


def _can_implementation_upgrade(state: ChainState, finding: AccountFinding) -> bool:
    running = _list_running(state, finding.implementations)
    return any(_can_upgrade(state.codes.get(each, b"")) for each in running)


def _can_upgrade(code: bytes) -> bool:
    return _has_function(code, _UPGRADE_FUNCTIONS)


def _has_function(code: bytes, signatures: Iterable[str]) -> bool:
    """True if the code contains the selector of any of these functions."""
    return any(function_selector(signature) in code for signature in signatures)


def _code_evidence(name: str, state: ChainState) -> AccountEvidence:
    return AccountEvidence("rpc", name, "0x" + (state.code or b"")[:64].hex())


def _slot_evidence(state: ChainState, slot: str) -> AccountEvidence:
    return AccountEvidence("rpc", f"storage {slot}", "0x" + state.slots[state.address, slot].hex())


def _describe_kind(kind: AccountKind) -> str:
    return {
        "contract": "a contract",
        "wallet": "a wallet",
        "delegated_wallet": "a wallet with delegated code",
        "unknown": "an account of unknown kind",
    }[kind]
