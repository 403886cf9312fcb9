"""contract-explain: what stands at an address, whether its source is published, and who can change it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from pydantic import Field

from centgate.chains import CHAIN_BY_ID, Address, OnChain
from centgate.facts.contracts import AccountKind, ContractSource, MatchLevel, ProxyKind, Published
from centgate.inquiries.registries import MOST_IMPLEMENTATIONS, Registered, Registries, look
from centgate.provider import Fallback, GapFallback, Primary
from centgate.providers.blockscout import Blockscout
from centgate.providers.etherscan import Etherscan, page
from centgate.providers.rpc import Rpc
from centgate.providers.sourcify import Sourcify
from centgate.schema import Data
from centgate.service import service
from centgate.sources import together
from centgate.text import timestamp
from centgate.verdicts.proxies import Finding, Seen, judge
from centgate.verdicts.proxy_claims import with_claims

NEW = timedelta(days=7)
"""Younger contracts deserve a second look."""
NO_REGISTRY = "no registry of published source is set up for this chain, so `verified` is null"


class ContractExplainRequest(OnChain):
    """A contract on a chain."""

    contract_address: Address = Field(description="The contract: 0x and 40 hexadecimal characters.")


class Implementation(Data):
    """Code that a proxy runs."""

    address: str = Field(description="Lower case.")
    name: str | None
    verified: bool | None


class UpgradePower(Data):
    """Who can change the code behind a proxy."""

    possible: bool | None = Field(
        description="Whether the code can be changed at all; null also where there is no proxy."
    )
    by_address: str | None = Field(description="Who can, lower case; null when nobody or unknown.")
    by_kind: AccountKind | None = Field(description="What stands at that address.")


class ProxyEvidence(Data):
    """What a finding rests on."""

    source: ContractSource
    field: str = Field(description="A storage slot, a call, a code pattern or a field of the source.")
    value: str | None = Field(description="As the source gave it, as text.")


class ContractProxy(Data):
    """What kind of account this is, and where its code really lies."""

    account_kind: AccountKind = Field(
        description="`wallet` has no code, `delegated_wallet` lends itself some by EIP-7702; `unknown` also "
        "where there was code and is no more."
    )
    is_proxy: bool | None
    kind: ProxyKind | None = Field(description="Null when it is no proxy or that is unknown.")
    implementations: list[Implementation] = Field(description="More than one for a diamond (EIP-2535).")
    beacon_address: str | None = Field(
        description="Where a beacon proxy looks up its implementation, lower case."
    )
    upgrade: UpgradePower
    evidence: list[ProxyEvidence]


class Verification(Data):
    """What one registry of verified sources says."""

    source: ContractSource
    match_level: MatchLevel = Field(
        description="`exact`: source and metadata; `bytecode`: the same code, comments or paths may differ; "
        "`unspecified`: verified, how closely is not said; `similar`: source of another contract with the "
        "same code; `none`: nothing published."
    )
    similar_address: str | None = Field(
        description="The other contract when the match is `similar`, lower case."
    )
    language: str | None
    compiler_version: str | None
    license: str | None
    url: str | None


class Creation(Data):
    """How the contract came to be."""

    created_at: str | None = Field(description="ISO 8601, UTC.")
    creator_address: str | None = Field(description="Lower case.")
    transaction_hash: str | None


class ContractLinks(Data):
    """Where to read on, and what was found there."""

    explorer: str | None = Field(
        description="The contract's page at the chain's explorer, null for a development chain."
    )
    verifications: list[Verification]
    creation: Creation | None


class ContractExplanation(Data):
    """What is known of a contract, without its source."""

    verified: bool | None = Field(
        description="Whether source that matches the code at this very address is published; null when there "
        "is no code of its own or no source could tell. A `similar` match does not count."
    )
    contract_name: str | None = Field(description="Its name in the source.")
    source_available: bool | None
    abi_available: bool | None
    proxy: ContractProxy
    links: ContractLinks
    warnings: list[str] = Field(description="What could not be checked, and what deserves a second look.")


@service(
    order=30,
    title="Contract explain",
    category="crypto-context",
    tags=("contract", "verification", "proxy", "abi", "evm"),
    guardrails=(
        "One contract per request.",
        "Tells whether source and ABI are published; neither is part of the answer.",
        "Published source says what the code is, not that it is safe.",
        "Read-only: nothing is signed or sent.",
    ),
    fresh_for=timedelta(minutes=10),
    example=ContractExplainRequest(
        chain_id=8453, contract_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
    ),
    sample=ContractExplanation(
        verified=True,
        contract_name="FiatTokenProxy",
        source_available=True,
        abi_available=True,
        proxy=ContractProxy(
            account_kind="contract",
            is_proxy=True,
            kind="zeppelinos",
            implementations=[
                Implementation(
                    address="0x2ce6311ddae708829bc0784c967b7d77d19fd779", name="FiatTokenV2_2", verified=True
                )
            ],
            beacon_address=None,
            upgrade=UpgradePower(
                possible=True,
                by_address="0x4fc7850364958d97b4d3f5a08f79db2493f8ca44",
                by_kind="contract",
            ),
            evidence=[
                ProxyEvidence(
                    source="rpc",
                    field="storage 0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3",
                    value="0x0000000000000000000000002ce6311ddae708829bc0784c967b7d77d19fd779",
                )
            ],
        ),
        links=ContractLinks(
            explorer="https://basescan.org/address/0x833589fcd6edb6e08f4c7c32d4f71b54bda02913#code",
            verifications=[
                Verification(
                    source="etherscan",
                    match_level="unspecified",
                    similar_address=None,
                    language="Solidity",
                    compiler_version="v0.6.12+commit.27d51765",
                    license="Apache-2.0",
                    url="https://basescan.org/address/0x833589fcd6edb6e08f4c7c32d4f71b54bda02913#code",
                )
            ],
            creation=Creation(created_at="2023-08-10T00:00:00Z", creator_address=None, transaction_hash=None),
        ),
        warnings=[
            "its code can be changed by its admin 0x4fc7850364958d97b4d3f5a08f79db2493f8ca44, a contract"
        ],
    ),
)
async def contract_explain(
    request: ContractExplainRequest,
    etherscan: Primary[Etherscan],
    sourcify: Fallback[Sourcify],
    blockscout: Fallback[Blockscout],
    rpc: GapFallback[Rpc],
) -> ContractExplanation:
    """Verification, source and ABI availability, name and proxy of a contract.

    Tells wallets, contracts and proxies apart, where a proxy's code lies and who can change it, and how
    closely the published source matches. Explorers and a registry of verified sources are asked, and the
    chain itself for code and storage. Where no explorer knows the chain, the chain alone answers.
    """
    chain_id, address = request.chain_id, request.contract_address
    registries = Registries(chain_id, etherscan, sourcify, blockscout)
    async with together() as ask:
        looking = ask.create_task(look(rpc, chain_id, address))
        asking = ask.create_task(registries.know(address))
    (seen, failure), known = looking.result(), asking.result()
    if seen.code is None and not known.published:
        assert failure
        raise failure
    found = with_claims(judge(seen), known.claims)
    async with together() as ask:
        implementing = ask.create_task(_implementations(registries, found))
        dating = ask.create_task(_dated(registries, known, found, address, rpc))
    known, implementations = dating.result(), implementing.result()
    story = _Story(address, seen, found, known, implementations, registries)
    for lack in _missing(chain_id, registries, seen, looked_at_all=failure is None):
        rpc.record.warn(lack)
    return ContractExplanation(
        verified=story.verified,
        contract_name=known.best.name if known.best and not story.wallet else None,
        source_available=story.available("source_available"),
        abi_available=story.available("abi_available"),
        proxy=_proxy(story),
        links=ContractLinks(
            explorer=page(chain_id, address),
            verifications=[_verification(each) for each in known.published],
            creation=_creation(known),
        ),
        warnings=list(dict.fromkeys([*rpc.record.warnings, *found.notes, *story.warnings()])),
    )


async def _dated(
    registries: Registries, known: Registered, found: Finding, address: str, rpc: Rpc
) -> Registered:
    """With the time of creation, if there is a contract."""
    if known.created or found.account == "contract":
        return await registries.dated(known, address, rpc)
    return known


async def _implementations(registries: Registries, found: Finding) -> list[Implementation]:
    """The code a proxy runs; the source of the first few is looked up."""
    looked_up = found.implementations[:MOST_IMPLEMENTATIONS]
    answers = await asyncio.gather(*(registries.published(each) for each in looked_up))
    known = [Registered(published) for published in answers]
    return [
        Implementation(
            address=each,
            name=of.best.name if of.best else None,
            verified=any(each.verified for each in of.published) if of.published else None,
        )
        for each, of in zip(looked_up, known, strict=True)
    ] + [
        Implementation(address=each, name=None, verified=None)
        for each in found.implementations[MOST_IMPLEMENTATIONS:]
    ]


class _Story:
    """All that is known of an address, and what follows from it together."""

    def __init__(
        self,
        address: str,
        seen: Seen,
        found: Finding,
        known: Registered,
        implementations: list[Implementation],
        registries: Registries,
    ) -> None:
        self.address, self.seen, self.found = address, seen, found
        self.known, self.implementations, self._registries = known, implementations, registries
        self.gone = seen.code == b"" and known.is_contract is True
        self.kind: AccountKind = self._kind()
        self.wallet = self.kind in ("wallet", "delegated_wallet")
        self.verified = self._verified()

    def available(self, what: str) -> bool | None:
        """Whether any registry has it; None where there is nothing to have, or none could tell."""
        said = [getattr(each, what) for each in self.known.published]
        if any(said):
            return None if self.wallet else True
        return None if self.verified is None or None in said else False

    def warnings(self) -> Iterator[str]:
        """What deserves a second look beside the proxy itself, and what could not be told."""
        yield from self._of_source()
        if self.gone:
            yield (
                "there was a contract at this address and there is no code now: it destroyed itself, or the "
                "node that was asked is behind"
            )
        if any(each.self_destructed for each in self.known.published) and not self.gone:
            yield "an explorer says that this contract destroyed itself"
        if any(each.changed for each in self.known.published):
            yield "an explorer says that the code is no longer what was verified"
        yield from self._of_implementations()
        unpublished = self.verified is False or any(each.verified is False for each in self.implementations)
        if unpublished and (failed := self._registries.failed):
            yield f"that no source is published was not confirmed by {', '.join(failed)}"
        yield from self._of_age()

    def _kind(self) -> AccountKind:
        if self.gone:
            return "unknown"
        if self.seen.code is not None or self.found.account == "delegated_wallet":
            return self.found.account
        told = self.known.is_contract
        return "unknown" if told is None else "contract" if told else "wallet"

    def _verified(self) -> bool | None:
        if self.kind != "contract" or not self.known.published:
            return None
        return any(each.verified for each in self.known.published)

    def _of_source(self) -> Iterator[str]:
        best = self.known.best
        if self.kind == "unknown" and not self.gone and self.seen.code is None:
            yield "whether there is a contract at this address is not known, so `verified` is null"
        if not self._registries.any:
            yield NO_REGISTRY
        elif self.kind == "contract" and not self.known.published:
            yield "no registry of published source could be asked, so `verified` is null"
        elif best and best.match == "similar":
            of = f"of {best.similar_address}, " if best.similar_address else ""
            yield (
                f"the source that {best.registry} shows is that {of}another contract with the same code; "
                "nobody published any for this address, so `verified` is false"
            )
        elif self.verified is False:
            yield "closed source: no source is published for this contract, so what it does cannot be read"

    def _of_implementations(self) -> Iterator[str]:
        for each in self.implementations:
            if each.verified is False:
                yield f"no source is published for the implementation {each.address}"
        if (count := len(self.implementations)) > MOST_IMPLEMENTATIONS:
            yield f"the source of the first {MOST_IMPLEMENTATIONS} of {count} implementations was looked up"

    def _of_age(self) -> Iterator[str]:
        at = self.known.created and self.known.created.at
        if at and (age := datetime.now(UTC) - at) < NEW:
            days = f"{age.days} days" if age.days > 1 else "a day or less"
            yield f"this contract is new: it was created {days} ago"
        elif not at and self.kind == "contract":
            yield "when this contract was created could not be found out, so whether it is new is not known"


def _missing(chain_id: int, registries: Registries, seen: Seen, *, looked_at_all: bool) -> Iterator[str]:
    """Which sources that there are for a chain could not be asked."""
    if chain_id in CHAIN_BY_ID and not registries.any:
        yield NO_REGISTRY
    if seen.code is None:
        yield "the chain itself could not be asked: what is said of proxies comes from explorers alone"
    elif not looked_at_all:
        yield "the chain was not looked at in full: what is said of the proxy may lack something"


def _proxy(story: _Story) -> ContractProxy:
    found, seen = story.found, story.seen
    by_kind = story.kind if found.by == story.address else seen.kind(found.by) if found.by else None
    return ContractProxy(
        account_kind=story.kind,
        is_proxy=None if story.gone else found.is_proxy,
        kind=found.kind,
        implementations=story.implementations,
        beacon_address=found.beacon,
        upgrade=UpgradePower(possible=found.upgradeable, by_address=found.by, by_kind=by_kind),
        evidence=[
            ProxyEvidence(source=each.source, field=each.field, value=each.value) for each in found.evidence
        ],
    )


def _verification(published: Published) -> Verification:
    return Verification(
        source=published.registry,
        match_level=published.match,
        similar_address=published.similar_address,
        language=published.language,
        compiler_version=published.compiler_version,
        license=published.license,
        url=published.url,
    )


def _creation(known: Registered) -> Creation | None:
    created = known.created
    if created is None:
        return None
    return Creation(
        created_at=timestamp(created.at) if created.at else None,
        creator_address=created.creator,
        transaction_hash=created.transaction,
    )
