"""Local analysis of bytecode: functions and storage of a contract without its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachetools import LRUCache

from centgate.crypto.contract.code_analysis import MAX_CODE_BYTES, CodeAnalysis, analyze_code
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.sandbox import TaskFailed
from centgate.settings import Settings
from centgate.signing.evm import keccak

if TYPE_CHECKING:
    from centgate.resources import Resources

ANALYSIS_SECONDS = 4
"""Seconds for one contract; genuine contracts of 24 KB take about 0.05."""
MAX_CACHED_ANALYSES = 500


class BytecodeAnalyzer(Provider):
    """Functions and storage of a contract, recovered from its bytecode. No network."""

    info = ProviderInfo(
        "bytecode",
        "Built-in bytecode analysis",
        docs_url="https://github.com/cdump/evmole",
        resale="permitted",
        terms="evmole is under the MIT licence; code on a chain is public.",
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self._analyses = LRUCache[bytes, CodeAnalysis](MAX_CACHED_ANALYSES)

    def supports_chain(self, chain_id: int | None) -> bool:
        return True

    @instrumented
    async def analyze(self, code: bytes) -> CodeAnalysis:
        """Return the functions and storage of runtime code; cached by its hash.

        Raises ProviderError for code that is too long, or that takes too much time or memory.
        """
        assert self.resources, "no provider is called during startup validation"
        if len(code) > MAX_CODE_BYTES:
            raise self.invalid_response(f"does not read code of {len(code)} bytes")
        key = keccak(code)
        if (known := self._analyses.get(key)) is not None:
            return known
        try:
            analysis = await self.resources.page_parsers.run_task(ANALYSIS_SECONDS, analyze_code, code)
        except (TaskFailed, ValueError) as error:
            raise self.invalid_response(f"could not read the code: {error}") from error
        self._analyses[key] = analysis
        return analysis
