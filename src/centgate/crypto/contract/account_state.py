"""State of an account as read from the chain so far, and what proxies keep in their storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from centgate.chains import ZERO_ADDRESS, is_burn_address
from centgate.crypto.abi import parse_address_word
from centgate.crypto.contract.account_kinds import AccountKind, classify_code
from centgate.crypto.contract.bytecode import MASTER_COPY_SELECTOR, is_reserved, match_clone
from centgate.crypto.contract.contracts import ProxyKind
from centgate.crypto.contract.owners import choose_owner, parse_owner

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
MAX_FACETS = 60
MAX_CLONE_LEVELS = 2
"""Minimal proxies behind one another that are followed from an implementation to the code that runs."""


class ChainState(Struct):
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
        return parse_address_word(self.call_results.get((address, signature)))

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
        return choose_owner((self.owner_address(self.address), parse_owner(getter)))

    def is_burn_address(self, address: str) -> bool:
        """True if no one can act as this address: the zero address or a burn address."""
        return address == ZERO_ADDRESS or (is_burn_address(address) and self.codes.get(address) == b"")

    def account_kind(self, address: str) -> AccountKind:
        """Return the kind of account at an address."""
        code = self.codes.get(address)
        if code is None or (not code and is_reserved(address)):
            return "unknown"
        return classify_code(code)


def list_facets(state: ChainState) -> list[str]:
    """Return the facets that a diamond's loupe lists, without the diamond itself."""
    data = state.call_results.get((state.address, FACETS_CALL)) or b""
    count = min(count_facets(state), MAX_FACETS)
    words = (data[64 + 32 * each : 96 + 32 * each] for each in range(count))
    addresses = [
        address for word in words if (address := parse_address_word(word)) and address != state.address
    ]
    return list(dict.fromkeys(addresses))


def count_facets(state: ChainState) -> int:
    """Return the number of facets that a diamond's loupe lists; 0 if it does not return a list."""
    data = state.call_results.get((state.address, FACETS_CALL)) or b""
    count = int.from_bytes(data[32:64], "big") if data[:32] == (32).to_bytes(32, "big") else 0
    return count if count <= 1000 and len(data) >= 64 + 32 * count else 0


def list_pointer_slots(state: ChainState) -> Iterator[tuple[str, ProxyKind]]:
    """Return the slots that can hold the implementation; slot 0 counts only for Safe proxies."""
    safe = MASTER_COPY_SELECTOR in (state.code or b"")
    return ((slot, kind) for slot, kind in POINTER_SLOTS if kind != "safe" or safe)


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
