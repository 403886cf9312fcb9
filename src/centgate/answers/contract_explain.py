"""Fields of contract-explain on the account: its proxy, published source and creation; and its warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import Field

from centgate.chains import CHAIN_BY_ID
from centgate.crypto.contract.account_finding import AccountFinding
from centgate.crypto.contract.account_kinds import WALLET_KINDS, AccountKind, classify_report
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.bytecode import match_clone
from centgate.crypto.contract.contracts import (
    ContractSource,
    MatchLevel,
    ProxyKind,
    SourceRecord,
)
from centgate.lookups.contract_functions import ContractFunctions
from centgate.lookups.contract_sources import MAX_SOURCE_LOOKUPS, ContractSources, SourceRegistries
from centgate.schema import Data
from centgate.timestamps import format_timestamp

NEW_CONTRACT_AGE = timedelta(days=7)
"""Age below which a contract gets a warning."""


class Implementation(Data):
    """A contract whose code a proxy runs."""

    address: str = Field(description="Lower case.")
    name: str | None = Field(description="Its name in the source: untrusted text of its author.")
    verified: bool | None
    function_count: int | None = Field(
        description="Number of functions in its code; null if that was not read or analysed."
    )


class UpgradePower(Data):
    """Control over the code behind a proxy."""

    possible: bool | None = Field(
        description="Whether the code can be changed at all; null if unknown and if there is no proxy."
    )
    by_address: str | None = Field(
        description="The address that can change it, lower case; null when there is none or it is unknown."
    )
    by_kind: AccountKind | None = Field(description="Kind of account at that address.")


class ProxyEvidence(Data):
    """A value that the finding rests on."""

    source: ContractSource
    field: str = Field(description="A storage slot, a call, a code pattern or a field of the source.")
    value: str | None = Field(description="As the source gave it, as text.")


class ContractProxy(Data):
    """Kind of account, and the location of its code if it is a proxy."""

    account_kind: AccountKind = Field(
        description="`wallet`: no code; `delegated_wallet`: runs other code by EIP-7702; `unknown`: also "
        "when there was code that no longer exists."
    )
    is_proxy: bool | None
    kind: ProxyKind | None = Field(description="Null when it is not a proxy, or when that is unknown.")
    implementations: list[Implementation] = Field(
        description="More than one for a diamond (EIP-2535); and behind an implementation that is a minimal "
        "proxy itself, also the contract whose code that one runs."
    )
    beacon_address: str | None = Field(
        description="The contract where a beacon proxy looks up its implementation, lower case."
    )
    upgrade: UpgradePower
    evidence: list[ProxyEvidence]


class Verification(Data):
    """Entry of one registry of verified sources."""

    source: ContractSource
    match_level: MatchLevel = Field(
        description="`exact`: source and metadata match; `bytecode`: the same code, comments or paths may "
        "differ; `unspecified`: verified, without a match level; `similar`: source of another contract with "
        "the same code; `none`: nothing published."
    )
    similar_address: str | None = Field(
        description="The other contract when the match is `similar`, lower case."
    )
    language: str | None = Field(description="As the source names it: untrusted text.")
    compiler_version: str | None = Field(description="As the source names it: untrusted text.")
    license: str | None = Field(description="As the source names it: untrusted text.")
    url: str | None


class Creation(Data):
    """Creation of the contract."""

    created_at: str | None = Field(description="ISO 8601, UTC.")
    creator_address: str | None = Field(description="Lower case.")
    transaction_hash: str | None


class ContractLinks(Data):
    """Explorer page, verifications and creation."""

    explorer: str | None = Field(
        description="The contract's page at the chain's explorer; null for a development chain."
    )
    verifications: list[Verification]
    creation: Creation | None


def build_implementations(
    registries: SourceRegistries,
    finding: AccountFinding,
    sources: ContractSources,
    behind: Mapping[str, ContractSources],
    functions: ContractFunctions | None,
) -> list[Implementation]:
    """Return a proxy's implementations; `behind` has the source of the first."""
    counts = functions.count_by_contract() if functions else {}
    return [
        Implementation(
            address=address,
            name=_name_implementation(address, sources, behind),
            verified=registries.is_verified(behind[address].records) if address in behind else None,
            function_count=counts.get(address),
        )
        for address in finding.implementations
    ]


def _name_implementation(
    address: str, sources: ContractSources, behind: Mapping[str, ContractSources]
) -> str | None:
    """Return the name in the published source, else the one that an explorer gives with the proxy."""
    record = behind[address].best_record if address in behind else None
    return (record and record.name) or sources.implementation_names.get(address)


class ContractOverview:
    """The combined evidence about an address, and what follows from it."""

    def __init__(
        self,
        address: str,
        state: ChainState,
        finding: AccountFinding,
        sources: ContractSources,
        implementations: list[Implementation],
        registries: SourceRegistries,
        behind: Mapping[str, ContractSources],
    ) -> None:
        self.address, self.state, self.finding = address, state, finding
        self.sources, self.implementations, self._registries = sources, implementations, registries
        self._behind = behind
        self.is_destroyed = state.code == b"" and sources.is_contract is True
        self.kind: AccountKind = self._account_kind()
        self.is_wallet = self.kind in WALLET_KINDS
        self.verified = self._is_verified()

    @property
    def has_source(self) -> bool | None:
        """True if any registry has the source; None for a wallet, or if no registry could tell."""
        return self._combine([each.source_available for each in self.sources.records])

    @property
    def has_abi(self) -> bool | None:
        """True if any registry has the ABI; None for a wallet, or if no registry could tell."""
        return self._combine([each.abi_available for each in self.sources.records])

    def _combine(self, found: Sequence[bool | None]) -> bool | None:
        if any(found):
            return None if self.is_wallet else True
        return None if self.verified is None or None in found else False

    def warnings(self) -> Iterator[str]:
        """Yield the warnings besides those about the proxy: findings, and what is not known."""
        yield from self._source_warnings()
        if self.is_destroyed:
            yield (
                "there was a contract at this address and there is no code now: it destroyed itself, or the "
                "queried node is behind"
            )
        else:
            yield from _warn_outdated(self.sources.records, "this contract")
        yield from self._implementation_warnings()
        yield from self._age_warnings()

    def _account_kind(self) -> AccountKind:
        if self.is_destroyed:
            return "unknown"
        if self.state.code is not None or self.finding.account == "delegated_wallet":
            return self.finding.account
        return classify_report(is_contract=self.sources.is_contract)

    def _is_verified(self) -> bool | None:
        if self.kind != "contract" or not self.sources.records:
            return None
        return self._registries.is_verified(self.sources.records)

    def _source_warnings(self) -> Iterator[str]:
        best = self.sources.best_record
        if self.kind == "unknown" and not self.is_destroyed and self.state.code is None:
            yield _name_unread_registries(
                "whether there is a contract at this address is not known",
                self._registries,
                self.sources.records,
            )
        if not self._registries.has_any or (self.kind == "contract" and not self.sources.records):
            yield _describe_unread_registries(self._registries)
        elif best and best.match == "similar":
            address = f"of {best.similar_address}, " if best.similar_address else ""
            yield (
                f"the source that {best.registry} shows is that {address}another contract with the same "
                "code; it was not found for this address"
            )
        if self.kind == "contract" and self.sources.records and self.verified is None:
            found = (
                "the source found is outdated"
                if _has_outdated(self.sources.records)
                else "no source was found"
            )
            yield (
                f"{found}, but not all registries were read, so `verified` is null: "
                f"{', '.join(self._registries.list_unread(self.sources.records))}"
            )
        elif self.verified is False and not best and self._is_published_clone():
            # without a known end, a published proxy would clear whatever is behind it
            rest = (
                ""
                if self.finding.upgradeable is False
                else ", but this code may run other code, whose source was not looked up"
            )
            yield f"no source is published for this clone itself; that of the code which it runs is{rest}"
        elif self.verified is False and not best:
            yield "closed source: no source is published for this contract, so what it does cannot be read"

    def _is_published_clone(self) -> bool:
        """True if its own code, and clones behind it, only run that of contracts with published source."""
        if match_clone(self.state.code or b"") is None:
            return False
        codes = [(each, self.state.codes.get(each.address)) for each in self.implementations]
        run = [(each, code) for each, code in codes if match_clone(code or b"") is None]
        return bool(run) and all(each.verified and code != b"" for each, code in run)

    def _implementation_warnings(self) -> Iterator[str]:
        for each in self.implementations:
            records = self._behind[each.address].records if each.address in self._behind else ()
            yield from _warn_outdated(records, f"the implementation {each.address}")
            if each.verified is False and not _has_outdated(records):
                yield f"no source is published for the implementation {each.address}"
        looked_up = self.implementations[:MAX_SOURCE_LOOKUPS]
        if unknown := [each.address for each in looked_up if each.verified is None]:
            found = (self._behind[each].records if each in self._behind else () for each in unknown)
            unread = dict.fromkeys(
                each for records in found for each in self._registries.list_unread(records)
            )
            reason = ", ".join(unread) or "none could be reached"
            yield f"whether the source of an implementation is published is not known: {reason}"
        if (count := len(self.implementations)) > MAX_SOURCE_LOOKUPS:
            yield f"the source of the first {MAX_SOURCE_LOOKUPS} of {count} implementations was looked up"

    def _age_warnings(self) -> Iterator[str]:
        created_at = self.sources.creation and self.sources.creation.at
        if created_at and (age := datetime.now(UTC) - created_at) < NEW_CONTRACT_AGE:
            days = f"{age.days} days" if age.days > 1 else "less than two days"
            yield f"this contract is new: it was created {days} ago"
        elif not created_at and self.kind == "contract":
            yield "the creation time of this contract is not known, so it may be new"


def _has_outdated(records: Iterable[SourceRecord]) -> bool:
    return any(each.is_outdated for each in records)


def _warn_outdated(records: Iterable[SourceRecord], subject: str) -> Iterator[str]:
    """Yield what explorers report of code that is no longer what was verified."""
    outdated = [each for each in records if each.is_outdated]
    if any(each.is_self_destructed for each in outdated):
        yield f"an explorer reports that {subject} destroyed itself"
    if any(each.is_code_changed for each in outdated):
        yield f"an explorer reports that the code of {subject} has changed since it was verified"


def list_unread_sources(
    chain_id: int,
    registries: SourceRegistries,
    records: Sequence[SourceRecord],
    state: ChainState,
    *,
    is_complete: bool,
) -> Iterator[str]:
    """Yield a warning for each source of the chain that could not be read."""
    if not records and (registries.has_any or chain_id in CHAIN_BY_ID):
        yield _describe_unread_registries(registries)
    if state.code is None:
        yield "the chain itself could not be read: facts about proxies come from explorers only"
    elif not is_complete:
        yield "the chain could not be read in full: the facts about the proxy may be incomplete"


def _describe_unread_registries(registries: SourceRegistries) -> str:
    state = "could be read" if registries.has_any else "is configured for this chain"
    return _name_unread_registries(f"no registry of published source {state}", registries, ())


def _name_unread_registries(
    finding: str, registries: SourceRegistries, records: Sequence[SourceRecord]
) -> str:
    """Return a finding that leaves `verified` null, with the registries that gave no record."""
    unread = ", ".join(registries.list_unread(records))
    return f"{finding}, so `verified` is null{': ' if unread else ''}{unread}"


def build_proxy(report: ContractOverview) -> ContractProxy:
    """Return the proxy's part of the answer."""
    finding, state = report.finding, report.state
    by_kind = (
        report.kind
        if finding.upgrader == report.address
        else state.account_kind(finding.upgrader)
        if finding.upgrader
        else None
    )
    return ContractProxy(
        account_kind=report.kind,
        is_proxy=None if report.is_destroyed else finding.is_proxy,
        kind=finding.kind,
        implementations=report.implementations,
        beacon_address=finding.beacon,
        upgrade=UpgradePower(possible=finding.upgradeable, by_address=finding.upgrader, by_kind=by_kind),
        evidence=[
            ProxyEvidence(source=each.source, field=each.field, value=each.value) for each in finding.evidence
        ],
    )


def build_verification(published: SourceRecord) -> Verification:
    """Return a registry's part of the answer."""
    return Verification(
        source=published.registry,
        match_level=published.match,
        similar_address=published.similar_address,
        language=published.language,
        compiler_version=published.compiler_version,
        license=published.license,
        url=published.url,
    )


def build_creation(sources: ContractSources) -> Creation | None:
    """Return the creation of the contract, if it is known."""
    created = sources.creation
    if created is None:
        return None
    return Creation(
        created_at=format_timestamp(created.at) if created.at else None,
        creator_address=created.creator,
        transaction_hash=created.transaction,
    )
