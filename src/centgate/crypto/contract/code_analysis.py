"""Functions and storage of a contract, recovered from its bytecode by evmole.

The bytecode is hostile and evmole is native code, so this must run in a sandbox process.
"""

from __future__ import annotations

from typing import Literal

import evmole
from msgspec import Struct

from centgate.crypto.contract.bytecode import has_account_constant, list_opcodes

Mutability = Literal["pure", "view", "nonpayable", "payable"]

MAX_CODE_BYTES = 49_152
"""Twice the limit of EIP-170, since a few chains allow more."""
MAX_FUNCTIONS = 1_000
"""Functions that are kept; a genuine contract has far fewer."""
MAX_TYPE_CHARACTERS = 200
_MUTABILITIES: dict[str, Mutability] = {
    "pure": "pure",
    "view": "view",
    "nonpayable": "nonpayable",
    "payable": "payable",
}


class CodeFunction(Struct, frozen=True):
    """External function of a contract."""

    selector: bytes
    """Four bytes."""
    arguments: str
    """Types as in a signature, separated by commas; inferred, so a type may be wider than declared."""
    mutability: Mutability | None

    @property
    def changes_state(self) -> bool:
        """True unless the function only reads; also if that is not known."""
        return self.mutability not in ("view", "pure")


class StorageVariable(Struct, frozen=True):
    """Value in a contract's storage, with the selectors of the functions that read and write it."""

    slot: str
    """64 hexadecimal digits."""
    offset: int
    """Bytes from the low end of the slot."""
    type: str
    readers: frozenset[bytes]
    writers: frozenset[bytes]


class CodeAnalysis(Struct, frozen=True):
    """Functions and storage of a contract, as far as they can be told from its bytecode."""

    functions: tuple[CodeFunction, ...]
    storage: tuple[StorageVariable, ...]
    opcodes: frozenset[int] = frozenset()
    """Opcodes of the code, without push data."""
    names_account: bool = False
    """True if the code holds the address of an account, as far as it is not computed."""

    @property
    def selectors(self) -> frozenset[bytes]:
        """Selectors of all functions."""
        return frozenset(each.selector for each in self.functions)


def analyze_code(code: bytes) -> CodeAnalysis:
    """Return the functions and storage of runtime bytecode; ValueError if it is too long."""
    if len(code) > MAX_CODE_BYTES:
        raise ValueError(f"the code has {len(code)} bytes, more than {MAX_CODE_BYTES}")
    info = evmole.contract_info(code, selectors=True, arguments=True, state_mutability=True, storage=True)
    functions = [
        CodeFunction(
            bytes.fromhex(each.selector),
            (each.arguments or "")[:MAX_TYPE_CHARACTERS],
            _MUTABILITIES.get(each.state_mutability or ""),
        )
        for each in (info.functions or [])[:MAX_FUNCTIONS]
    ]
    storage = [
        StorageVariable(
            each.slot,
            each.offset,
            each.type[:MAX_TYPE_CHARACTERS],
            frozenset(map(bytes.fromhex, each.reads)),
            frozenset(map(bytes.fromhex, each.writes)),
        )
        for each in (info.storage or [])[:MAX_FUNCTIONS]
    ]
    return CodeAnalysis(tuple(functions), tuple(storage), list_opcodes(code), has_account_constant(code))
