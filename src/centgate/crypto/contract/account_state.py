"""State of an account as read from the chain so far. No I/O."""

from __future__ import annotations

from msgspec import Struct, field

from centgate.chains import ZERO_ADDRESS, is_burn_address
from centgate.crypto.abi import parse_address_word
from centgate.crypto.contract.account_kinds import AccountKind, classify_code
from centgate.crypto.contract.bytecode import is_reserved
from centgate.crypto.contract.owners import GET_OWNER_CALL, OWNER_CALL, choose_owner, parse_owner


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
