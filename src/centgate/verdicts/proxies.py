"""What kind of account stands at an address, where a proxy's code really lies, and who can change it.

All of it is judged from what was seen on the chain (`Seen`): `wanted` says what to look at next, a few rounds
of it, and `judge` what it all means.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from centgate.chains import is_burned
from centgate.facts.contracts import AccountKind, ContractSource, ProxyKind
from centgate.verdicts.bytecode import (
    MASTER_COPY,
    clone_of,
    creates,
    delegate,
    reserved,
    runs_others,
    selector,
    word_address,
)

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
POINTERS: tuple[tuple[str, ProxyKind], ...] = (
    (IMPLEMENTATION_SLOT, "eip1967"),
    (BEACON_SLOT, "eip1967_beacon"),
    (PROXIABLE_SLOT, "eip1822"),
    (ZEPPELIN_SLOT, "zeppelinos"),
    (FIRST_SLOT, "safe"),
)
"""The slots that say where code lies, in the order in which they count."""

IMPLEMENTATION, OWNER, FACETS = "implementation()", "owner()", "facetAddresses()"
CUT_FACET = "facetAddress(diamondCut)"
"""facetAddress(bytes4) of the function by which a diamond is changed (EIP-2535)."""
HINTS = (IMPLEMENTATION, "childImplementation()", "comptrollerImplementation()")
"""What proxies of other kinds answer; other contracts do too."""
_CUT = "diamondCut((address,uint8,bytes4[])[],address,bytes)"
_UPGRADES = ("upgradeTo(address)", "upgradeToAndCall(address,bytes)", "updateCodeAddress(address)")
_ADMIN_UPGRADES = ("upgrade(address,address)", "upgradeAndCall(address,address,bytes)")
"""How the owner of a ProxyAdmin, and nobody else, changes the code of the proxies in its care."""
_NOBODY = "0x" + "0" * 40
MOST_FACETS = 60


@dataclass(slots=True)
class Seen:
    """What was seen of an address on the chain so far; what is missing was not looked at."""

    address: str
    """Lower case, like all addresses here."""
    codes: dict[str, bytes] = field(default_factory=dict[str, bytes])
    slots: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    """The 32 bytes in a storage slot, by contract and slot."""
    returned: dict[tuple[str, str], bytes | None] = field(
        default_factory=dict[tuple[str, str], "bytes | None"]
    )
    """What a call returned, by contract and question; None where it reverted."""

    @property
    def code(self) -> bytes | None:
        return self.codes.get(self.address)

    def slot(self, slot: str, address: str | None = None) -> str | None:
        """The address that a slot holds; None unless its first 12 bytes are zero."""
        return word_address(self.slots.get((address or self.address, slot)))

    def told(self, address: str, question: str) -> str | None:
        """The address that a call returned."""
        returned = self.returned.get((address, question))
        return word_address(returned) if returned and len(returned) == 32 else None

    def owner(self, address: str) -> str | None:
        """Who owner() of a contract is, the zero address where it is renounced; None where it did not say."""
        renounced = self.returned.get((address, OWNER)) == bytes(32)
        return _NOBODY if renounced else self.told(address, OWNER)

    def is_nobody(self, address: str) -> bool:
        """Whether nobody can act as this address: the zero address, or one for burning."""
        return address == _NOBODY or (is_burned(address) and self.codes.get(address) == b"")

    def kind(self, address: str) -> AccountKind:
        """What stands at an address."""
        code = self.codes.get(address)
        if code is None or (not code and reserved(address)):
            return "unknown"
        if delegate(code):
            return "delegated_wallet"
        return "contract" if code else "wallet"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look at next; falsy when that is nothing."""

    codes: tuple[str, ...]
    slots: tuple[tuple[str, str], ...]
    calls: tuple[tuple[str, str], ...]

    def __bool__(self) -> bool:
        return bool(self.codes or self.slots or self.calls)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a finding rests on."""

    source: ContractSource
    field: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Finding:
    """What kind of account this is. None is unknown."""

    account: AccountKind
    is_proxy: bool | None
    kind: ProxyKind | None = None
    implementations: tuple[str, ...] = ()
    beacon: str | None = None
    upgradeable: bool | None = None
    by: str | None = None
    """Who can change the code behind a proxy."""
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences for people: what deserves a second look."""
    delegates: bool | None = None
    """Whether its code can run code from elsewhere."""


def calldata(question: str) -> bytes:
    """The call data of a question that `Wanted.calls` asks."""
    if question == CUT_FACET:
        return selector("facetAddress(bytes4)") + selector(_CUT).ljust(32, b"\0")
    return selector(question)


def facets(seen: Seen) -> list[str]:
    """What a diamond's loupe names, without the diamond itself."""
    returned = seen.returned.get((seen.address, FACETS)) or b""
    count = min(_facets_named(seen), MOST_FACETS)
    words = (returned[64 + 32 * each : 96 + 32 * each] for each in range(count))
    found = [address for word in words if (address := word_address(word)) and address != seen.address]
    return list(dict.fromkeys(found))


def _facets_named(seen: Seen) -> int:
    """How many facets a diamond's loupe names; none where it does not return a list of them."""
    returned = seen.returned.get((seen.address, FACETS)) or b""
    count = int.from_bytes(returned[32:64], "big") if returned[:32] == (32).to_bytes(32, "big") else 0
    return count if count <= 1000 and len(returned) >= 64 + 32 * count else 0


def wanted(seen: Seen) -> Wanted:
    """What is worth looking at, given what was seen: nothing more when all is known."""
    codes: dict[str, None] = {seen.address: None}
    slots = [(seen.address, slot) for slot in SLOTS]
    calls: list[tuple[str, str]] = []
    if seen.code:
        target = delegate(seen.code)
        if not target and (clone := clone_of(seen.code)):
            target = clone[0]
        if target:
            codes[target] = None
            slots += [(target, slot) for slot, kind in POINTERS if kind != "safe"]
        else:
            calls = list(_questions(seen))
            codes |= dict.fromkeys(_named(seen))
    return Wanted(
        tuple(address for address in codes if address not in seen.codes),
        tuple(slot for slot in slots if slot not in seen.slots),
        tuple(call for call in calls if call not in seen.returned),
    )


def _questions(seen: Seen) -> Iterator[tuple[str, str]]:
    """The calls that may tell more of a contract."""
    pointers = [target for slot, _ in _pointers(seen) if (target := seen.slot(slot))]
    yield seen.address, OWNER
    if beacon := seen.slot(BEACON_SLOT):
        yield beacon, IMPLEMENTATION
        yield beacon, OWNER
    if not any(seen.codes.get(pointer, b"?") for pointer in pointers):
        yield seen.address, FACETS
        yield from ((seen.address, hint) for hint in HINTS)
    if facets(seen):
        yield seen.address, CUT_FACET
    for admin in (seen.slot(ADMIN_SLOT), seen.slot(ZEPPELIN_ADMIN_SLOT)):
        if admin and seen.kind(admin) == "contract":
            yield admin, OWNER


def _named(seen: Seen) -> Iterator[str]:
    """The addresses that slots and calls named."""
    slots = [slot for slot, _ in _pointers(seen)] + [ADMIN_SLOT, ZEPPELIN_ADMIN_SLOT]
    yield from filter(None, (seen.slot(slot) for slot in slots))
    yield from filter(None, (seen.told(*asked) for asked in seen.returned if asked[1] != FACETS))
    yield from facets(seen)


def _pointers(seen: Seen) -> Iterator[tuple[str, ProxyKind]]:
    """The slots that say where code lies: the first counts only for Safe's proxies."""
    safe = MASTER_COPY in (seen.code or b"")
    return ((slot, kind) for slot, kind in POINTERS if kind != "safe" or safe)


def judge(seen: Seen) -> Finding | None:
    """What kind of account this is, as far as was seen; None when not even its code was."""
    if seen.code is None:
        return None
    if not seen.code:
        note = (
            "this address is reserved by the chain: nobody holds its key" if reserved(seen.address) else None
        )
        return Finding(
            seen.kind(seen.address), is_proxy=False, notes=(note,) if note else (), delegates=False
        )
    if target := delegate(seen.code):
        return _delegated_wallet(seen, target)
    if clone := clone_of(seen.code):
        return _clone(seen, *clone)
    found = _by_slot(seen) or _diamond(seen) or _by_hint(seen) or _none_found(seen)
    return replace(found, delegates=runs_others(seen.code))


def _delegated_wallet(seen: Seen, target: str) -> Finding:
    notes = [
        f"this is a wallet with delegated code (EIP-7702): it runs the code of {target} until its owner "
        "signs another delegation"
    ]
    if seen.codes.get(target) == b"":
        notes.append(f"the delegation names {target}, which has no code")
    return Finding(
        "delegated_wallet",
        is_proxy=True,
        kind="eip7702",
        implementations=(target,),
        upgradeable=True,
        by=seen.address,
        evidence=(_pattern("code EIP-7702", seen),),
        notes=(*notes, *_nested(seen, target)),
        delegates=True,
    )


def _clone(seen: Seen, target: str, kind: ProxyKind) -> Finding:
    nested = _nested(seen, target)
    looked = target in seen.codes and (target, IMPLEMENTATION_SLOT) in seen.slots
    empty = (f"it runs the code of {target}, which has none",) if seen.codes.get(target) == b"" else ()
    return Finding(
        "contract",
        is_proxy=True,
        kind=kind,
        implementations=(target,),
        upgradeable=None if nested or not looked else False,
        evidence=(_pattern("code of a minimal proxy", seen),),
        notes=(*empty, *nested),
        delegates=True,
    )


def _nested(seen: Seen, target: str) -> tuple[str, ...]:
    """What to say when the code that is run is a proxy's in turn."""
    slots = (slot for slot, kind in POINTERS if kind != "safe" and seen.slot(slot, target))
    further = next(slots, None)
    if not further:
        return ()
    return (
        f"the code it runs, of {target}, may be that of a proxy in turn: whether it can be changed is open",
    )


def _by_slot(seen: Seen) -> Finding | None:
    """A proxy that says in its storage where its code lies."""
    for slot, kind in _pointers(seen):
        target = seen.slot(slot)
        if not target or target == seen.address or not seen.codes.get(target):
            continue
        stored = _storage(seen, slot)
        if kind == "eip1967_beacon":
            if found := _by_beacon(seen, target, stored):
                return found
        else:
            found = Finding(
                "contract", is_proxy=True, kind=kind, implementations=(target,), evidence=(stored,)
            )
            return _with_power(seen, found)
    return None


def _by_beacon(seen: Seen, beacon: str, stored: Evidence) -> Finding | None:
    target = seen.told(beacon, IMPLEMENTATION)
    if not target or not seen.codes.get(target):
        return None
    said = Evidence("rpc", f"call {IMPLEMENTATION} of the beacon {beacon}", target)
    found = Finding(
        "contract",
        is_proxy=True,
        kind="eip1967_beacon",
        implementations=(target,),
        beacon=beacon,
        evidence=(stored, said),
    )
    if not _can_upgrade(seen.codes[beacon]):
        return found
    return _owned(seen, replace(found, upgradeable=True), beacon, "the beacon")


def _with_power(seen: Seen, found: Finding) -> Finding:
    """With who can change the code, as far as the chain tells."""
    slot = ZEPPELIN_ADMIN_SLOT if found.kind == "zeppelinos" else ADMIN_SLOT
    if (admin := seen.slot(slot)) and found.kind != "safe":
        return _by_admin(seen, replace(found, evidence=(*found.evidence, _storage(seen, slot))), admin)
    if found.kind == "safe":
        note = "the code of a Safe can be changed by a transaction of the Safe, where its code allows that"
        return replace(found, notes=(*found.notes, note))
    if not any(_can_upgrade(seen.codes[each]) for each in (seen.address, *found.implementations)):
        return found
    return _by_own_code(seen, found)


def _by_own_code(seen: Seen, found: Finding) -> Finding:
    """A proxy whose own code, or the code that it runs, can replace the latter."""
    owner = seen.owner(seen.address)
    if not owner:
        note = "the code behind this proxy can be changed, by whom its own code decides"
        return replace(found, upgradeable=True, notes=(*found.notes, note))
    found = replace(found, evidence=(*found.evidence, Evidence("rpc", f"call {OWNER}", owner)))
    if seen.is_nobody(owner):
        note = (
            f"the code behind this proxy can be changed by whom its own code allows that, often its owner(), "
            f"which is nobody ({owner}): whether anybody can is not known"
        )
        return replace(found, notes=(*found.notes, note))
    note = (
        f"the code behind this proxy can be changed by whom its own code allows that, often its owner(), "
        f"{owner}, {_described(seen.kind(owner))}"
    )
    return replace(found, upgradeable=True, notes=(*found.notes, note))


def _by_admin(seen: Seen, found: Finding, admin: str) -> Finding:
    """A proxy with an admin in its storage."""
    kind = seen.kind(admin)
    if seen.is_nobody(admin):
        note = f"its admin is nobody ({admin}), so no admin can change its code"
        return _unless_by_own_code(seen, replace(found, notes=(*found.notes, note)))
    if kind in ("wallet", "delegated_wallet"):
        note = f"its code can be changed at any time by a single wallet, {admin}"
        return replace(found, upgradeable=True, by=admin, notes=(*found.notes, note))
    note = f"its code can be changed by its admin {admin}, {_described(kind)}"
    if owner := seen.owner(admin):
        said = Evidence("rpc", f"call {OWNER} of the admin {admin}", owner)
        found = replace(found, evidence=(*found.evidence, said))
        if seen.is_nobody(owner):
            return _by_ownerless_admin(seen, found, admin, owner)
        note += f", whose owner() is {owner}, {_described(seen.kind(owner))}"
    return replace(found, upgradeable=True, by=admin, notes=(*found.notes, note))


def _by_ownerless_admin(seen: Seen, found: Finding, admin: str, owner: str) -> Finding:
    """A proxy whose admin is a contract that nobody owns: a ProxyAdmin obeys nobody else, others may."""
    if _holds(seen.codes.get(admin, b""), _ADMIN_UPGRADES):
        note = (
            f"its code cannot be changed by its admin {admin}, a contract whose owner() is nobody ({owner})"
        )
        return _unless_by_own_code(seen, replace(found, notes=(*found.notes, note)))
    note = (
        f"its code can be changed by its admin {admin} alone, a contract whose owner() is nobody ({owner}): "
        "whether anybody else can make it do that is not known"
    )
    return replace(found, notes=(*found.notes, note))


def _unless_by_own_code(seen: Seen, found: Finding) -> Finding:
    """A proxy that no admin can change; the code that it runs may still be able to replace itself."""
    if any(_can_upgrade(seen.codes[each]) for each in found.implementations):
        return _by_own_code(seen, found)
    return replace(found, upgradeable=False)


def _diamond(seen: Seen) -> Finding | None:
    """A contract whose loupe names facets that have code."""
    names = facets(seen)
    living = tuple(facet for facet in names if seen.codes.get(facet))
    if not living:
        return None
    said = Evidence("rpc", f"call {FACETS}", f"{len(names)} addresses")
    more = _facets_named(seen) - MOST_FACETS
    notes = (f"it names {more} more facets, which were not looked at",) if more > 0 else ()
    found = Finding(
        "contract", is_proxy=True, kind="eip2535", implementations=living, evidence=(said,), notes=notes
    )
    if not seen.told(seen.address, CUT_FACET):
        return found
    cut = Evidence("rpc", f"call {CUT_FACET}", seen.told(seen.address, CUT_FACET))
    found = replace(found, upgradeable=True, evidence=(said, cut))
    return _owned(seen, found, seen.address, "the diamond")


def _owned(seen: Seen, found: Finding, address: str, what: str) -> Finding:
    """A finding whose code the owner of `address` can change."""
    owner = seen.owner(address)
    if not owner:
        note = f"its code can be changed through {what}, by whom is not known"
        return replace(found, notes=(*found.notes, note))
    evidence = Evidence("rpc", f"call {OWNER} of {address}", owner)
    if seen.is_nobody(owner):
        note = f"its code cannot be changed through {what}: its owner() is nobody ({owner})"
        return replace(
            found, upgradeable=False, evidence=(*found.evidence, evidence), notes=(*found.notes, note)
        )
    single = "a single wallet, " if seen.kind(owner) in ("wallet", "delegated_wallet") else ""
    note = f"its code can be changed by the owner() of {what}: {single}{owner}"
    return replace(found, by=owner, evidence=(*found.evidence, evidence), notes=(*found.notes, note))


def _by_hint(seen: Seen) -> Finding | None:
    """A contract that names an implementation when asked, and can run code from elsewhere."""
    answers = ((hint, seen.told(seen.address, hint)) for hint in HINTS)
    said = next(((hint, target) for hint, target in answers if target and seen.codes.get(target)), None)
    if not said or not runs_others(seen.code or b""):
        return None
    hint, target = said
    evidence = (Evidence("rpc", f"call {hint}", target),)
    if creates(seen.code or b""):
        note = f"it names {target} as {hint} but also creates contracts: it may be a proxy or a factory"
        return Finding("contract", is_proxy=None, evidence=evidence, notes=(note,))
    return Finding("contract", is_proxy=True, kind="other", implementations=(target,), evidence=evidence)


def _none_found(seen: Seen) -> Finding:
    """A contract without any sign of a proxy that could be confirmed."""
    code = seen.code or b""
    named = tuple(_unconfirmed(seen))
    if not runs_others(code):
        return Finding("contract", is_proxy=False)
    if not named:
        return Finding("contract", is_proxy=None)
    notes = tuple(
        f"storage {slot} holds {each.value}, which {_unfit(seen, slot)}"
        for each in named
        if (slot := each.field.removeprefix("storage "))
    )
    return Finding("contract", is_proxy=None, evidence=named, notes=notes)


def _unfit(seen: Seen, slot: str) -> str:
    """Why what a slot holds leads to no code."""
    target = seen.slot(slot)
    if target == seen.address:
        return "is its own address"
    return "names no code to run" if target and seen.codes.get(target) else "is no address of a contract"


def _unconfirmed(seen: Seen) -> Iterator[Evidence]:
    """Slots of proxies that hold something which cannot be accepted."""
    for slot, _ in POINTERS[:-1]:
        word = seen.slots.get((seen.address, slot), b"")
        if any(word):
            yield _storage(seen, slot)


def _can_upgrade(code: bytes) -> bool:
    return _holds(code, _UPGRADES)


def _holds(code: bytes, signatures: Iterable[str]) -> bool:
    """Whether code has any of these functions, as far as that can be told from its bytes."""
    return any(selector(signature) in code for signature in signatures)


def _pattern(name: str, seen: Seen) -> Evidence:
    return Evidence("rpc", name, "0x" + (seen.code or b"")[:64].hex())


def _storage(seen: Seen, slot: str) -> Evidence:
    return Evidence("rpc", f"storage {slot}", "0x" + seen.slots[seen.address, slot].hex())


def _described(kind: AccountKind) -> str:
    return {
        "contract": "a contract",
        "wallet": "a wallet",
        "delegated_wallet": "a wallet with delegated code",
        "unknown": "of which nothing is known here",
    }[kind]
