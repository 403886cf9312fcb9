"""Where the facts of a contract come from: registries of source, and the chain in rounds."""

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
from centgate.readings import since_1970
from centgate.sources import attempt, together
from centgate.verdicts.proxies import Seen, Wanted, calldata, wanted

P = ParamSpec("P")
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

ROUNDS = 5
"""Looks at the chain, each a few calls at once; three are enough for most contracts."""
MOST_IMPLEMENTATIONS = 3
"""Implementations whose source is looked up: each is a call more."""


@dataclass(frozen=True, slots=True)
class Registered:
    """What registries know of an address, in the order in which they were asked."""

    published: tuple[Published, ...]
    account: ExploredAccount | None = None
    created: Created | None = None

    @property
    def best(self) -> Published | None:
        """What says most of the source: of this very address, else of a twin."""
        found = [each for each in self.published if each.match != "none"]
        return next((each for each in found if each.verified), found[0] if found else None)

    @property
    def claims(self) -> list[tuple[Registry, ProxyClaim]]:
        """What they say of a proxy."""
        claims: dict[Registry, ProxyClaim] = {
            each.registry: each.proxy for each in self.published if each.proxy
        }
        if self.account and self.account.proxy:
            claims.setdefault("blockscout", self.account.proxy)
        return list(claims.items())

    @property
    def is_contract(self) -> bool | None:
        """Whether there is or was a contract, as far as they tell."""
        if any(claim.kind == "eip7702" for _, claim in self.claims):
            return False
        if self.created or self.best or any(claim.is_proxy for _, claim in self.claims):
            return True
        if any(each.code_seen for each in self.published):
            return True
        return self.account.is_contract if self.account else None


class Registries:
    """The registries that know a chain, the best one first.

    Etherscan and Sourcify are asked at once: one knows most contracts, the other how closely their source
    matches. That neither has the source of an address is no proof that there is none, so Blockscout is asked
    then. One that failed is not asked again for the same answer.
    """

    def __init__(
        self, chain_id: int, etherscan: Etherscan, sourcify: Sourcify, blockscout: Blockscout
    ) -> None:
        self._chain_id = chain_id
        self._etherscan, self._sourcify, self._blockscout = etherscan, sourcify, blockscout
        self._able: list[Etherscan | Sourcify | Blockscout] = [
            each for each in (etherscan, sourcify, blockscout) if each.configured and each.covers(chain_id)
        ]
        self._failed: dict[str, ProviderFailure | NoData] = {}

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._able)

    @property
    def failed(self) -> list[str]:
        """Those that failed."""
        return list(self._failed)

    async def know(self, address: str) -> Registered:
        """What they know of an address. When all fail, the first's failure on a chain they should know."""
        async with together() as ask:
            walking = ask.create_task(self.published(address))
            creating = ask.create_task(self._creation(address))
        published, created = walking.result(), creating.result()
        if self._able and not published and self._chain_id in CHAIN_BY_ID:
            raise next(iter(self._failed.values()))
        told = [created, *(each.created for each in published)]
        known = Registered(published, created=_merged([each for each in told if each]))
        unknown = any(each.registry == "blockscout" for each in published)
        return await self._explored(known, address) if unknown else known

    async def published(self, address: str) -> tuple[Published, ...]:
        """What each says that was asked."""
        found = await self._asked(address, self._etherscan, self._sourcify)
        if not any(each.verified for each in found):
            found += await self._asked(address, self._blockscout)
        return tuple(found)

    async def _asked(self, address: str, *registries: Etherscan | Sourcify | Blockscout) -> list[Published]:
        """What these say, all asked at once."""
        asked = [each for each in registries if self._can_ask(each)]
        answers = await asyncio.gather(*(attempt(each.published, self._chain_id, address) for each in asked))
        for registry, answer in zip(asked, answers, strict=True):
            if not isinstance(answer, Published):
                self._failed[registry.about.name] = answer
        return [each for each in answers if isinstance(each, Published)]

    def _can_ask(self, registry: Etherscan | Sourcify | Blockscout) -> bool:
        return registry in self._able and registry.about.name not in self._failed

    async def dated(self, known: Registered, address: str, rpc: Rpc) -> Registered:
        """With the time of a contract's creation, by its block or transaction where only those are told."""
        known = await self._dated_by_block(known, rpc)
        if known.created and known.created.at:
            return known
        if not known.created or not known.created.transaction:
            known = await self._explored(known, address)
        transaction = known.created and known.created.transaction
        if not transaction or not self._can_ask(self._blockscout):
            return known
        moment = await attempt(self._blockscout.time_of, self._chain_id, transaction)
        return _at(known, moment if isinstance(moment, datetime) else None)

    async def _dated_by_block(self, known: Registered, rpc: Rpc) -> Registered:
        created = known.created
        if not created or created.at or created.block is None:
            return known
        if not rpc.configured or not rpc.covers(self._chain_id):
            return known
        blocks = await attempt(rpc.blocks, self._chain_id, [created.block])
        return _at(known, since_1970(blocks[0].timestamp) if isinstance(blocks, list) else None)

    async def _explored(self, known: Registered, address: str) -> Registered:
        """With what Blockscout knows of the address itself, if it can be asked."""
        if known.account or not self._can_ask(self._blockscout):
            return known
        account = await attempt(self._blockscout.account, self._chain_id, address)
        if not isinstance(account, ExploredAccount):
            return known
        told = [each for each in (known.created, account.created) if each]
        return replace(known, account=account, created=_merged(told))

    async def _creation(self, address: str) -> Created | None:
        """How it came to be, which only Etherscan tells in a call of its own."""
        if self._etherscan not in self._able:
            return None
        answer = await attempt(self._etherscan.creation, self._chain_id, address)
        return answer if isinstance(answer, Created) else None


def _at(known: Registered, moment: datetime | None) -> Registered:
    """With this time of creation."""
    return replace(known, created=replace(known.created, at=moment)) if known.created else known


def _merged(known: Sequence[Created]) -> Created | None:
    """Each fact from the first that tells it."""
    if not known:
        return None
    return Created(
        creator=next((each.creator for each in known if each.creator), None),
        transaction=next((each.transaction for each in known if each.transaction), None),
        at=next((each.at for each in known if each.at), None),
        block=next((each.block for each in known if each.block is not None), None),
    )


async def look(rpc: Rpc, chain_id: int, address: str) -> tuple[Seen, ProviderFailure | None]:
    """What the chain shows of an address, and what ended the looking early, if anything did."""
    seen = Seen(address)
    clock = asyncio.get_running_loop()
    start = clock.time()
    for _ in range(ROUNDS):
        further = wanted(seen)
        if not further:
            break
        if clock.time() - start > rpc.left:
            return seen, rpc.failed("is too slow to look at everything")
        if failure := await _see(rpc, chain_id, seen, further):
            return seen, failure
    return seen, None


async def _see(rpc: Rpc, chain_id: int, seen: Seen, further: Wanted) -> ProviderFailure | None:
    """Look at all of it at once, and keep what could be seen; the first failure, if there was any."""
    calls = [Call(to, calldata(question)) for to, question in further.calls]
    asked: list[Awaitable[ProviderFailure | None]] = [
        _entered(seen.slots, slots, rpc.slots, chain_id, contract, [slot for _, slot in slots])
        for contract, slots in _by_contract(further.slots).items()
    ]
    if further.codes:
        asked.append(_entered(seen.codes, further.codes, rpc.codes, chain_id, further.codes))
    if calls:
        asked.append(_entered(seen.returned, further.calls, rpc.calls, chain_id, calls))
    return next((failure for failure in await asyncio.gather(*asked) if failure), None)


async def _entered(
    into: MutableMapping[K, T],
    keys: Sequence[K],
    method: Callable[P, Awaitable[list[T]]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> ProviderFailure | None:
    """Ask a method, and enter its answer for each key."""
    try:
        into.update(zip(keys, await method(*args, **kwargs), strict=True))
    except ProviderFailure as failure:
        return failure
    return None


def _by_contract(slots: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for slot in slots:
        found.setdefault(slot[0], []).append(slot)
    return found
