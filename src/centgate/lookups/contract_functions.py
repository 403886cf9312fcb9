"""Read the functions of a contract from its bytecode, of a proxy also those of its implementations."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from centgate.crypto.contract.code_analysis import CodeAnalysis, CodeFunction
from centgate.crypto.contract.functions import (
    CONTROL_BY_SELECTOR,
    SIGNATURE_BY_SELECTOR,
    ContractStandard,
    ControlFunction,
    find_standards,
)
from centgate.crypto.token.powers import PowerCaller, PowerKind, find_caller, infer_powers
from centgate.fallback import attempt
from centgate.providers.bytecode import BytecodeAnalyzer

MAX_ANALYZED_CODES = 20
"""Contracts whose code is analysed, for a diamond its first facets."""


class ContractFunction(Struct, frozen=True):
    """External function of a contract, inferred from its bytecode."""

    contract: str
    """Address whose code has it, lower case."""
    function: CodeFunction
    signature: str | None
    """A signature in common use with this selector."""
    power: PowerKind | ControlFunction | None
    """What its caller can do to others; None: nothing that is known."""
    caller: PowerCaller | None
    """Account that it checks, as far as storage shows it."""


class ContractFunctions(Struct, frozen=True):
    """Functions of all the code that a contract runs."""

    functions: tuple[ContractFunction, ...]
    """Those with a power first."""
    standards: tuple[ContractStandard, ...]
    analysed: tuple[str, ...]
    """Addresses whose code was analysed."""
    unread: tuple[str, ...] = ()
    """Addresses whose code could not be analysed."""

    def count_by_contract(self) -> dict[str, int]:
        """Return the number of functions of each contract whose code was analysed."""
        return dict.fromkeys(self.analysed, 0) | Counter(each.contract for each in self.functions)

    @property
    def selectors(self) -> frozenset[bytes]:
        """Selectors of all functions."""
        return frozenset(each.function.selector for each in self.functions)


async def read_functions(bytecode: BytecodeAnalyzer, codes: Mapping[str, bytes]) -> ContractFunctions:
    """Return the functions in the code of these contracts, by address."""
    analysed = dict(list(codes.items())[:MAX_ANALYZED_CODES])
    results = await asyncio.gather(*(attempt(bytecode.analyze, code) for code in analysed.values()))
    analyses = {
        address: result
        for address, result in zip(analysed, results, strict=True)
        if isinstance(result, CodeAnalysis)
    }
    functions = [
        each for address, analysis in analyses.items() for each in _list_functions(address, analysis)
    ]
    functions.sort(key=lambda each: (each.power is None, not each.function.changes_state))
    selectors = frozenset(each.function.selector for each in functions)
    return ContractFunctions(
        tuple(functions),
        tuple(find_standards(selectors)),
        tuple(analyses),
        tuple(address for address in codes if address not in analyses),
    )


def _list_functions(address: str, analysis: CodeAnalysis) -> Iterator[ContractFunction]:
    powers = {bytes.fromhex(power.selector[2:]): power for power in infer_powers(analysis)}
    for function in analysis.functions:
        power = powers.get(function.selector)
        control = CONTROL_BY_SELECTOR.get(function.selector) if function.changes_state else None
        signature = power.signature if power else SIGNATURE_BY_SELECTOR.get(function.selector)
        yield ContractFunction(
            address,
            function,
            signature,
            power.kind if power else control,
            power.caller if power else find_caller(analysis, function.selector) if control else None,
        )
