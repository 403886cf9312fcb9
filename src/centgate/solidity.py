"""Compiled Solidity contracts, read from the artefacts that `make contracts` writes beside the sources."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class CompiledContract:
    """Contract as the compiler wrote it, without linked libraries."""

    name: str
    initcode: bytes = field(repr=False)
    """Code of the constructor, to which its ABI-encoded arguments are appended."""
    runtime_code: bytes = field(repr=False)
    """Code at the contract's address, with zeros in place of immutables."""
    abi: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def constructor_types(self) -> list[str]:
        """ABI types of the constructor's arguments."""
        constructors = [entry for entry in self.abi if entry["type"] == "constructor"]
        return _input_types(constructors[0]) if constructors else []

    def signature(self, function: str) -> str:
        """Return the signature of a function, such as `transfer(address,uint256)`.

        Raises `LookupError` if the contract has no function of this name, or several.
        """
        found = [one for one in self.abi if one["type"] == "function" and one["name"] == function]
        if len(found) != 1:
            raise LookupError(f"{self.name} has {len(found)} functions named {function!r}")
        return f"{function}({','.join(_input_types(found[0]))})"


@lru_cache(maxsize=256)
def load_contract(folder: Path, source: str, name: str | None = None) -> CompiledContract:
    """Load a contract of a source (its file name without ending); without a name, the contract named like it.

    Raises FileNotFoundError without such an artefact, KeyError if it has no such contract.
    """
    artefact = json.loads((folder / f"{source}.json").read_text())
    contract = artefact["contracts"][name or source]
    return CompiledContract(
        name=name or source,
        initcode=bytes.fromhex(contract["initcode"][2:]),
        runtime_code=bytes.fromhex(contract["runtimeCode"][2:]),
        abi=tuple(contract["abi"]),
    )


def _input_types(entry: dict[str, Any]) -> list[str]:
    return [_abi_type(parameter) for parameter in entry["inputs"]]


def _abi_type(parameter: dict[str, Any]) -> str:
    """Return a parameter's type, with the members of a struct spelt out: `(address,uint256)[]`."""
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    members = cast("list[dict[str, Any]]", parameter["components"])
    return f"({','.join(_abi_type(member) for member in members)}){kind.removeprefix('tuple')}"
