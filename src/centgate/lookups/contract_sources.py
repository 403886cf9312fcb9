"""Collect facts about a contract from registries of verified source."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import from_chain_seconds
from centgate.crypto.contract.contracts import ContractCreation, ProxyClaim, SourceRecord, SourceRegistry
from centgate.errors import NoData, ProviderFailure, ProviderTimeout
from centgate.fallback import attempt, open_task_group
from centgate.lookups.block_times import read_block_times
from centgate.provider import describe_fallback
from centgate.providers.blockscout import Blockscout, ExplorerAccount
from centgate.providers.etherscan import Etherscan
from centgate.providers.rpc import Rpc
from centgate.providers.sourcify import Sourcify

MAX_SOURCE_LOOKUPS = 3
"""Implementations whose source is looked up; each costs one more call."""


class ContractSources(Struct, frozen=True):
    """Records of registries about an address, in the order of the queries."""

    records: tuple[SourceRecord, ...]
    account: ExplorerAccount | None = None
    creation: ContractCreation | None = None

    @property
    def best_record(self) -> SourceRecord | None:
        """Best record of the source: of this very address, else of a contract with the same code."""
        found = [each for each in self.records if each.match != "none"]
        return next((each for each in found if each.is_verified), found[0] if found else None)

    @property
    def proxy_claims(self) -> list[tuple[SourceRegistry, ProxyClaim]]:
        """Statements of the registries about a proxy."""
        claims: dict[SourceRegistry, ProxyClaim] = {
            each.registry: each.proxy for each in self.records if each.proxy
        }
        if self.account and self.account.proxy:
            claims.setdefault("blockscout", self.account.proxy)
        return list(claims.items())

    @property
    def implementation_names(self) -> dict[str, str]:
        """Names of implementations by address, as explorers give them."""
        claimed = [each for _, claim in self.proxy_claims for each in claim.implementations]
        return {each.address: each.name for each in claimed if each.name}

    @property
    def is_contract(self) -> bool | None:
        """True if there is or was a contract, as far as the registries know; None if unknown."""
        if any(claim.kind == "eip7702" for _, claim in self.proxy_claims):
            return False
        if self.creation or self.best_record or any(claim.is_proxy for _, claim in self.proxy_claims):
            return True
        if any(each.has_code for each in self.records):
            return True
        return self.account.is_contract if self.account else None


class SourceRegistries:
    """Source registries available for a chain, the best one first.

    Etherscan and Sourcify are queried concurrently: one knows most contracts, the other how closely their
    source matches. A miss in both does not prove that there is no source, so Blockscout is queried then. A
    registry that failed is not queried again for the same request.
    """

    def __init__(
        self,
        chain_id: int,
        etherscan: Etherscan,
        sourcify: Sourcify,
        blockscout: Blockscout,
        *,
        deadline: float | None = None,
    ) -> None:
        """`deadline` is a time of the event loop, after which no record is waited for."""
        self._chain_id, self._deadline = chain_id, deadline
        self._etherscan, self._sourcify, self._blockscout = etherscan, sourcify, blockscout
        self._available: list[Etherscan | Sourcify | Blockscout] = [
            each for each in (etherscan, sourcify, blockscout) if each.is_available(chain_id)
        ]
        self._failed: dict[str, ProviderFailure | NoData] = {}
        self._unasked: set[str] = set()

    @property
    def has_any(self) -> bool:
        """True if any registry is available."""
        return bool(self._available)

    @property
    def first_failure(self) -> ProviderFailure | NoData | None:
        """Failure of the best registry that failed; None if none did."""
        names = (each.info.name for each in self._available)
        return next((self._failed[name] for name in names if name in self._failed), None)

    def list_unread(self, records: Sequence[SourceRecord]) -> list[str]:
        """Return the registries that gave none of the records of an address, with the reason.

        They cover the chain, so they may have the source. An address with a verified record has some that
        were not asked.
        """
        registries = (self._etherscan, self._sourcify, self._blockscout)
        answered = {each.registry for each in records}
        return [
            f"{each.info.label} ({self._describe_silence(each)})"
            for each in registries
            if each.supports_chain(self._chain_id) and each.info.name not in answered
        ]

    def _describe_silence(self, registry: Etherscan | Sourcify | Blockscout) -> str:
        if registry not in self._available:
            return "not configured"
        return "not asked in time" if registry.info.name in self._unasked else "no answer"

    def describe_fallback(self, records: Sequence[SourceRecord]) -> str | None:
        """Return that other registries answered instead of the primary one, which failed; None if not so.

        `records` are of one address: a registry that failed may have given some for another one.
        """
        answered = {each.registry for each in records}
        failed = self._failed.get(self._etherscan.info.name)
        if not answered or "etherscan" in answered or not isinstance(failed, ProviderFailure):
            return None
        used = " and ".join(each.info.label for each in self._available if each.info.name in answered)
        return describe_fallback(used, self._etherscan.info, "failed")

    def is_verified(self, records: Sequence[SourceRecord]) -> bool | None:
        """True if a record is of verified source; False only if every registry of the chain has none."""
        if any(each.is_verified for each in records):
            return True
        return None if self.list_unread(records) or not records else False

    async def fetch(self, address: str) -> ContractSources:
        """Fetch the records of an address; those of a registry that fails are missing."""
        async with open_task_group() as group:
            published_task = group.create_task(self.fetch_records(address))
            creation_task = group.create_task(self._fetch_creation(address))
        published, created = published_task.result(), creation_task.result()
        creations = [created, *(each.created for each in published)]
        sources = ContractSources(published, creation=_merge_creations([each for each in creations if each]))
        needs_account = any(each.registry == "blockscout" for each in published)
        return await self._with_account(sources, address) if needs_account else sources

    async def fetch_records(self, address: str) -> tuple[SourceRecord, ...]:
        """Query every available registry."""
        found = await self._query_published(address, self._etherscan, self._sourcify)
        if not any(each.is_verified for each in found):
            found += await self._query_published(address, self._blockscout)
        return tuple(found)

    async def _query_published(
        self, address: str, *registries: Etherscan | Sourcify | Blockscout
    ) -> list[SourceRecord]:
        """Query these registries concurrently."""
        queried = [each for each in registries if self._can_query(each)]
        if self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline:
            self._unasked.update(each.info.name for each in queried)
            return []
        answers = await asyncio.gather(*(self._query_record(each, address) for each in queried))
        for registry, answer in zip(queried, answers, strict=True):
            if not isinstance(answer, SourceRecord):
                self._failed[registry.info.name] = answer
        return [each for each in answers if isinstance(each, SourceRecord)]

    async def _query_record(
        self, registry: Etherscan | Sourcify | Blockscout, address: str
    ) -> SourceRecord | NoData | ProviderFailure:
        """Query a registry until the deadline."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await attempt(registry.source_record, self._chain_id, address)
        except TimeoutError:
            late = ProviderTimeout(registry.info.name, f"{registry.info.label} did not answer in time")
            registry.record_failure(late, "timeout", "source_record")  # its call was cancelled
            return late

    def _can_query(self, registry: Etherscan | Sourcify | Blockscout) -> bool:
        return registry in self._available and registry.info.name not in self._failed

    async def with_creation_time(self, sources: ContractSources, address: str, rpc: Rpc) -> ContractSources:
        """Add the time of creation, from its block or transaction where only those are known."""
        sources = await self._creation_time_from_block(sources, rpc)
        if sources.creation and sources.creation.at:
            return sources
        if not sources.creation or not sources.creation.transaction:
            sources = await self._with_account(sources, address)
        transaction = sources.creation and sources.creation.transaction
        if not transaction or not self._can_query(self._blockscout):
            return sources
        moment = await attempt(self._blockscout.transaction_time, self._chain_id, transaction)
        return _with_time(sources, moment if isinstance(moment, datetime) else None)

    async def _creation_time_from_block(self, sources: ContractSources, rpc: Rpc) -> ContractSources:
        created = sources.creation
        if not created or created.at or created.block is None:
            return sources
        if not rpc.is_available(self._chain_id):
            return sources
        times = await read_block_times(rpc, self._chain_id, [created.block])
        return _with_time(sources, from_chain_seconds(times.get(created.block), self._chain_id))

    async def _with_account(self, sources: ContractSources, address: str) -> ContractSources:
        """Add Blockscout's record of the address itself, if Blockscout is available."""
        if sources.account or not self._can_query(self._blockscout):
            return sources
        account = await attempt(self._blockscout.explorer_account, self._chain_id, address)
        if not isinstance(account, ExplorerAccount):
            return sources
        creations = [each for each in (sources.creation, account.creation) if each]
        return replace(sources, account=account, creation=_merge_creations(creations))

    async def _fetch_creation(self, address: str) -> ContractCreation | None:
        """Fetch the creation, for which only Etherscan has a separate call."""
        if self._etherscan not in self._available:
            return None
        answer = await attempt(self._etherscan.contract_creation, self._chain_id, address)
        return answer if isinstance(answer, ContractCreation) else None


def _with_time(sources: ContractSources, moment: datetime | None) -> ContractSources:
    """Set the time of creation."""
    return replace(sources, creation=replace(sources.creation, at=moment)) if sources.creation else sources


def _merge_creations(creations: Sequence[ContractCreation]) -> ContractCreation | None:
    """Merge records: each value from the first that has it."""
    if not creations:
        return None
    return ContractCreation(
        creator=next((each.creator for each in creations if each.creator), None),
        transaction=next((each.transaction for each in creations if each.transaction), None),
        at=next((each.at for each in creations if each.at), None),
        block=next((each.block for each in creations if each.block is not None), None),
    )
