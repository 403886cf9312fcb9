"""State and block overrides of calls, in go-ethereum's format.

Source: https://geth.ethereum.org/docs/interacting-with-geth/rpc/objects, "State override set" and
"Block override set". Unlike go-ethereum, an unknown key is an error: a misspelt override would do nothing.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from eth.abc import BlockHeaderAPI, StateAPI
from eth_typing import Address, BlockNumber
from msgspec import Struct, field

_ADDRESS = re.compile("0x[0-9a-fA-F]{40}")
_BYTES = re.compile("0x(?:[0-9a-fA-F]{2})*")
_QUANTITY = re.compile("0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})")
_WORD = re.compile("0x[0-9a-fA-F]{64}")
_ACCOUNT_KEYS = {"balance", "nonce", "code", "state", "stateDiff"}
_BLOCK_KEYS = {"number", "time"}


class AccountOverride(Struct, frozen=True):
    """State of an account during one call; None keeps what the chain has."""

    balance: int | None = None
    nonce: int | None = None
    code: bytes | None = None
    storage: Mapping[int, int] | None = None
    """The whole storage: all other slots are zero."""
    storage_changes: Mapping[int, int] = field(default_factory=dict[int, int])


class BlockOverride(Struct, frozen=True):
    """Number and time (seconds since 1970) of the block that a call runs in; None keeps the chain's."""

    number: int | None = None
    time: int | None = None


def parse_account_overrides(overrides: Any) -> dict[Address, AccountOverride]:
    """Parse the state overrides of a call. Raises ValueError for anything that is not in the format."""
    if overrides is None:
        return {}
    accounts = _require_object(overrides, "state overrides")
    return {
        Address(bytes.fromhex(_require_match(_ADDRESS, address)[2:])): _parse_account(address, content)
        for address, content in accounts.items()
    }


def parse_block_override(overrides: Any) -> BlockOverride | None:
    """Parse the block overrides of a call. Raises ValueError for anything that is not in the format."""
    if overrides is None:
        return None
    block = _require_object(overrides, "block overrides")
    _reject_unknown_keys(block, _BLOCK_KEYS)
    return BlockOverride(_parse_quantity(block.get("number")), _parse_quantity(block.get("time")))


def apply_account_overrides(state: StateAPI, overrides: Mapping[Address, AccountOverride]) -> None:
    """Change the state of accounts. The changes become what a transaction finds, not what it did."""
    for address, override in overrides.items():
        _apply_account(state, address, override)
    if overrides:
        state.lock_changes()


def apply_block_override(header: BlockHeaderAPI, override: BlockOverride) -> BlockHeaderAPI:
    """Return the header with the overridden number and time."""
    number = header.block_number if override.number is None else BlockNumber(override.number)
    time = header.timestamp if override.time is None else override.time
    return header.copy(block_number=number, timestamp=time)


def _parse_account(address: str, content: Any) -> AccountOverride:
    account = _require_object(content, f"override of {address}")
    _reject_unknown_keys(account, _ACCOUNT_KEYS)
    state, changes = account.get("state"), account.get("stateDiff")
    if state is not None and changes is not None:
        raise ValueError(f"account {address} has both 'state' and 'stateDiff'")
    code = account.get("code")
    return AccountOverride(
        balance=_parse_quantity(account.get("balance")),
        nonce=_parse_quantity(account.get("nonce")),
        code=None if code is None else bytes.fromhex(_require_match(_BYTES, code)[2:]),
        storage=None if state is None else _parse_storage(state),
        storage_changes={} if changes is None else _parse_storage(changes),
    )


def _parse_storage(content: Any) -> dict[int, int]:
    slots = _require_object(content, "storage")
    return {
        int(_require_match(_WORD, slot), 16): int(_require_match(_WORD, word), 16)
        for slot, word in slots.items()
    }


def _parse_quantity(value: Any) -> int | None:
    return None if value is None else int(_require_match(_QUANTITY, value), 16)


def _require_object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object")
    return cast("dict[str, Any]", value)


def _reject_unknown_keys(content: Mapping[str, Any], known: set[str]) -> None:
    if unknown := sorted(content.keys() - known):
        raise ValueError(f"unknown override {unknown[0]!r}")


def _require_match(pattern: re.Pattern[str], value: Any) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{value!r} is not hex of the required length")
    return value


def _apply_account(state: StateAPI, address: Address, override: AccountOverride) -> None:
    if override.balance is not None:
        state.set_balance(address, override.balance)
    if override.nonce is not None:
        state.set_nonce(address, override.nonce)
    if override.code is not None:
        state.set_code(address, override.code)
    if override.storage is not None:
        state.delete_storage(address)
    for slot, word in {**(override.storage or {}), **override.storage_changes}.items():
        state.set_storage(address, slot, word)
