"""Collect facts about a contract from registries of verified source and, in rounds, from the chain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ParamSpec, TypeVar

from centgate.chains import CHAIN_BY_ID
from centgate.errors import NoData, ProviderFailure
from centgate.facts.contracts import Created, ProxyClaim, Published, Registry
from centgate.providers.blockscout import Blockscout, ExploredAccount
from centgate.providers.etherscan import Etherscan
from centgate.providers.rpc import Call, Rpc
from centgate.providers.sourcify import Sourcify
from centgate.readings import from_unix_seconds
from centgate.sources import attempt, open_task_group
from centgate.verdicts.proxies import Seen, Wanted, calldata, wanted

P = ParamSpec("P")
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

ROUNDS = 5
"""Rounds of concurrent chain reads; three are enough for most contracts."""
MOST_IMPLEMENTATIONS = 3
"""Implementations whose source is looked up; each costs one more call."""


@dataclass(frozen=True, slots=True)
class Registered:
    """Records of registries about an address, in the order of the queries."""

    published: tuple[Published, ...]
    account: ExploredAccount | None = None
    created: Created | None = None

    @property
    def best(self) -> Published | None:
        """Best record of the source: of this very address, else of a contract with the same code."""
        found = [each for each in self.published if each.match != "none"]
        return next((each for each in found if each.verified), found[0] if found else None)

    @property
    def claims(self) -> list[tuple[Registry, ProxyClaim]]:
        """Statements of the registries about a proxy."""
        claims: dict[Registry, ProxyClaim] = {
            each.registry: each.proxy for each in self.published if each.proxy
        }
        if self.account and self.account.proxy:
            claims.setdefault("blockscout", self.account.proxy)
        return list(claims.items())

    @property
    def is_contract(self) -> bool | None:
        """True if there is or was a contract, as far as the registries know; None if unknown."""
        if any(claim.kind == "eip7702" for _, claim in self.claims):
            return False
        if self.created or self.best or any(claim.is_proxy for _, claim in self.claims):
            return True
        if any(each.code_seen for each in self.published):
            return True
        return self.account.is_contract if self.account else None


class Registries:
    """Source registries available for a chain, the best one first.

    Etherscan and Sourcify are queried concurrently: one knows most contracts, the other how closely their
    source matches. A miss in both does not prove that there is no source, so Blockscout is queried then. A
    registry that failed is not queried again for the same request.
    """

    def __init__(
        self, chain_id: int, etherscan: Etherscan, sourcify: Sourcify, blockscout: Blockscout
    ) -> None:
        self._chain_id = chain_id
        self._etherscan, self._sourcify, self._blockscout = etherscan, sourcify, blockscout
        self._available: list[Etherscan | Sourcify | Blockscout] = [
            each
            for each in (etherscan, sourcify, blockscout)
            if each.is_configured and each.supports_chain(chain_id)
        ]
        self._failed: dict[str, ProviderFailure | NoData] = {}

    @property
    def any(self) -> bool:
        """True if any registry is available."""
        return bool(self._available)

    @property
    def failed(self) -> list[str]:
        """Names of the registries that failed."""
        return list(self._failed)

    async def know(self, address: str) -> Registered:
        """Fetch the records of an address. Raise the first failure if all fail on a supported chain."""
        async with open_task_group() as group:
            published_task = group.create_task(self.published(address))
            creation_task = group.create_task(self._fetch_creation(address))
        published, created = published_task.result(), creation_task.result()
        if self._available and not published and self._chain_id in CHAIN_BY_ID:
            raise next(iter(self._failed.values()))
        creations = [created, *(each.created for each in published)]
        sources = Registered(published, created=_merge_creations([each for each in creations if each]))
        needs_account = any(each.registry == "blockscout" for each in published)
        return await self._with_account(sources, address) if needs_account else sources

    async def published(self, address: str) -> tuple[Published, ...]:
        """Query every available registry."""
        found = await self._query_published(address, self._etherscan, self._sourcify)
        if not any(each.verified for each in found):
            found += await self._query_published(address, self._blockscout)
        return tuple(found)

    async def _query_published(
        self, address: str, *registries: Etherscan | Sourcify | Blockscout
    ) -> list[Published]:
        """Query these registries concurrently."""
        queried = [each for each in registries if self._can_query(each)]
        answers = await asyncio.gather(
            *(attempt(each.published, self._chain_id, address) for each in queried)
        )
        for registry, answer in zip(queried, answers, strict=True):
            if not isinstance(answer, Published):
                self._failed[registry.info.name] = answer
        return [each for each in answers if isinstance(each, Published)]

    def _can_query(self, registry: Etherscan | Sourcify | Blockscout) -> bool:
        return registry in self._available and registry.info.name not in self._failed

    async def dated(self, sources: Registered, address: str, rpc: Rpc) -> Registered:
        """Add the time of creation, from its block or transaction where only those are known."""
        sources = await self._creation_time_from_block(sources, rpc)
        if sources.created and sources.created.at:
            return sources
        if not sources.created or not sources.created.transaction:
            sources = await self._with_account(sources, address)
        transaction = sources.created and sources.created.transaction
        if not transaction or not self._can_query(self._blockscout):
            return sources
        moment = await attempt(self._blockscout.time_of, self._chain_id, transaction)
        return _with_time(sources, moment if isinstance(moment, datetime) else None)

    async def _creation_time_from_block(self, sources: Registered, rpc: Rpc) -> Registered:
        created = sources.created
        if not created or created.at or created.block is None:
            return sources
        if not rpc.is_configured or not rpc.supports_chain(self._chain_id):
            return sources
        blocks = await attempt(rpc.blocks, self._chain_id, [created.block])
        return _with_time(
            sources, from_unix_seconds(blocks[0].timestamp) if isinstance(blocks, list) else None
        )

    async def _with_account(self, sources: Registered, address: str) -> Registered:
        """Add Blockscout's record of the address itself, if Blockscout is available."""
        if sources.account or not self._can_query(self._blockscout):
            return sources
        account = await attempt(self._blockscout.account, self._chain_id, address)
        if not isinstance(account, ExploredAccount):
            return sources
        creations = [each for each in (sources.created, account.created) if each]
        return replace(sources, account=account, created=_merge_creations(creations))

    async def _fetch_creation(self, address: str) -> Created | None:
        """Fetch the creation, for which only Etherscan has a separate call."""
        if self._etherscan not in self._available:
            return None
        answer = await attempt(self._etherscan.creation, self._chain_id, address)
        return answer if isinstance(answer, Created) else None


def _with_time(sources: Registered, moment: datetime | None) -> Registered:
    """Set the time of creation."""
    return replace(sources, created=replace(sources.created, at=moment)) if sources.created else sources


def _merge_creations(creations: Sequence[Created]) -> Created | None:
    """Merge records: each value from the first that has it."""
    if not creations:
        return None
    return Created(
        creator=next((each.creator for each in creations if each.creator), None),
        transaction=next((each.transaction for each in creations if each.transaction), None),
        at=next((each.at for each in creations if each.at), None),
        block=next((each.block for each in creations if each.block is not None), None),
    )


async def look(rpc: Rpc, chain_id: int, address: str) -> tuple[Seen, ProviderFailure | None]:
    """Read the chain state of an address; the second value is the failure that ended reading early."""
    state = Seen(address)
    clock = asyncio.get_running_loop()
    start = clock.time()
    for _ in range(ROUNDS):
        next_reads = wanted(state)
        if not next_reads:
            break
        if clock.time() - start > rpc.remaining_seconds:
            return state, rpc.invalid_response("is too slow: not all of the contract was read")
        if failure := await _read_chain(rpc, chain_id, state, next_reads):
            return state, failure
    return state, None


async def _read_chain(rpc: Rpc, chain_id: int, state: Seen, reads: Wanted) -> ProviderFailure | None:
    """Run all reads concurrently and store the results; return the first failure, if any."""
    calls = [Call(to, calldata(call)) for to, call in reads.calls]
    pending: list[Awaitable[ProviderFailure | None]] = [
        _read_into(state.slots, slots, rpc.slots, chain_id, contract, [slot for _, slot in slots])
        for contract, slots in _group_by_contract(reads.slots).items()
    ]
    if reads.codes:
        pending.append(_read_into(state.codes, reads.codes, rpc.codes, chain_id, reads.codes))
    if calls:
        pending.append(_read_into(state.returned, reads.calls, rpc.calls, chain_id, calls))
    return next((failure for failure in await asyncio.gather(*pending) if failure), None)


async def _read_into(
    into: MutableMapping[K, T],
    keys: Sequence[K],
    method: Callable[P, Awaitable[list[T]]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> ProviderFailure | None:
    """Call a method and store its result for each key; return its failure, if any."""
    try:
        into.update(zip(keys, await method(*args, **kwargs), strict=True))
    except ProviderFailure as failure:
        return failure
    return None


def _group_by_contract(slots: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    grouped: dict[str, list[tuple[str, str]]] = {}
    for slot in slots:
        grouped.setdefault(slot[0], []).append(slot)
    return grouped
