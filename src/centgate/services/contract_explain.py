"""contract-explain: verification, proxy and upgrade control of the contract at an address."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from pydantic import Field

from centgate.chains import CHAIN_BY_ID, Address, ChainRequest
from centgate.crypto.contract.contracts import (
    AccountKind,
    ContractSource,
    MatchLevel,
    ProxyKind,
    SourceRecord,
)
from centgate.crypto.contract.functions import ContractStandard
from centgate.crypto.contract.proxies import AccountFinding, ChainState, classify_account
from centgate.crypto.contract.proxy_claims import apply_registry_claims
from centgate.crypto.contract.published_abi import index_signatures
from centgate.fallback import open_task_group
from centgate.lookups.contract_functions import ContractFunctions, read_functions
from centgate.lookups.contract_report import (
    ContractRole,
    ContractUpgrade,
    ContractUpgrades,
    ControllingAccount,
    ExplainedFunction,
    OwnerAccount,
    build_functions,
    read_contract_roles,
    read_contract_upgrades,
    read_stated_owner,
    read_upgrade_controller,
)
from centgate.lookups.contract_sources import (
    MAX_SOURCE_LOOKUPS,
    ContractSources,
    SourceRegistries,
    read_chain_state,
)
from centgate.lookups.log_history import LogReader
from centgate.provider import Enrichment, Fallback, GapFallback, Primary
from centgate.providers.blockscout import Blockscout
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.etherscan import Etherscan, explorer_page
from centgate.providers.rpc import Rpc
from centgate.providers.sourcify import Sourcify
from centgate.schema import Data
from centgate.service import service
from centgate.timestamps import format_timestamp

NEW_CONTRACT_AGE = timedelta(days=7)
"""Age below which a contract gets a warning."""
NO_REGISTRY = "no registry of published source is configured for this chain, so `verified` is null"


class ContractExplainRequest(ChainRequest):
    """A contract on a chain."""

    contract_address: Address = Field(description="The contract: 0x and 40 hexadecimal characters.")


class Implementation(Data):
    """A contract whose code a proxy runs."""

    address: str = Field(description="Lower case.")
    name: str | None
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
    implementations: list[Implementation] = Field(description="More than one for a diamond (EIP-2535).")
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
    language: str | None
    compiler_version: str | None
    license: str | None
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


class ContractExplanation(Data):
    """Facts about a contract, without its source."""

    verified: bool | None = Field(
        description="Whether source that matches the code at exactly this address is published; null when "
        "the account has no code of its own, or when none was found and a registry was not read. A `similar` "
        "match does not count."
    )
    contract_name: str | None = Field(description="Its name in the source.")
    source_available: bool | None
    abi_available: bool | None
    proxy: ContractProxy
    links: ContractLinks
    warnings: list[str] = Field(
        description="Checks that were not possible, and findings that need attention."
    )
    functions: list[ExplainedFunction] | None = Field(
        max_length=100,
        description="Those with a power first, then those that change state; at most 100. Null when the code "
        "could not be read or analysed.",
    )
    function_count: int | None = Field(description="Number of all functions that were found.")
    standards: list[ContractStandard] | None = Field(
        description="Standards whose functions are all there; a contract may still break their rules."
    )
    owner: ControllingAccount | None = Field(
        description="The account that `owner()` or `getOwner()` names; null when that was not read."
    )
    upgrade_controller: ControllingAccount | None = Field(
        description="The account at `proxy.upgrade.byAddress`; null when there is none or it was not read."
    )
    roles: list[ContractRole] | None = Field(
        description="Roles with names in common use; empty without AccessControl, null when the code or the "
        "roles could not be read."
    )
    upgrades: ContractUpgrades | None = Field(
        description="Null unless it is a proxy whose event logs could be read."
    )


@service(
    order=30,
    title="Contract explain",
    category="crypto-context",
    fixed_roles=True,
    tags=("contract", "verification", "proxy", "abi", "evm"),
    guardrails=(
        "One contract per request.",
        "Says whether source and ABI are published; neither is part of the answer.",
        "Published source says what the code is, not that it is safe.",
        "Read-only: nothing is signed or sent.",
    ),
    cache_ttl=timedelta(minutes=10),
    input_example=ContractExplainRequest(
        chain_id=8453, contract_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
    ),
    output_example=ContractExplanation(
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
                    address="0x2ce6311ddae708829bc0784c967b7d77d19fd779",
                    name="FiatTokenV2_2",
                    verified=True,
                    function_count=52,
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
        functions=[
            ExplainedFunction(
                selector="0x40c10f19",
                signature="mint(address,uint256)",
                signature_source="abi",
                arguments="address,uint256",
                mutability="nonpayable",
                power="mint",
                caller=None,
                contract_address="0x2ce6311ddae708829bc0784c967b7d77d19fd779",
            )
        ],
        function_count=52,
        standards=["ERC-20", "ERC-2612", "ERC-3009", "Ownable", "Pausable"],
        owner=ControllingAccount(
            address="0x3abd6f64a422225e61e435bae41db12096106df7",
            kind="wallet",
            threshold=None,
            owner_count=None,
            delay_seconds=None,
            owner=None,
        ),
        upgrade_controller=ControllingAccount(
            address="0x4fc7850364958d97b4d3f5a08f79db2493f8ca44",
            kind="contract",
            threshold=None,
            owner_count=None,
            delay_seconds=None,
            owner=OwnerAccount(
                address="0x" + "5a" * 20,
                kind="safe",
                threshold=3,
                owner_count=5,
                delay_seconds=None,
            ),
        ),
        roles=[],
        upgrades=ContractUpgrades(
            events=[
                ContractUpgrade(
                    implementation_address="0x2ce6311ddae708829bc0784c967b7d77d19fd779",
                    block_number=11_112_223,
                    at="2024-02-28T18:31:13Z",
                    transaction_hash="0x" + "9c" * 32,
                )
            ],
            from_block=0,
            to_block=38_400_000,
        ),
    ),
)
async def contract_explain(
    request: ContractExplainRequest,
    etherscan: Primary[Etherscan],
    sourcify: Fallback[Sourcify],
    blockscout: Fallback[Blockscout],
    rpc: GapFallback[Rpc],
    bytecode: Enrichment[BytecodeAnalyzer],
) -> ContractExplanation:
    """Return verification, source and ABI availability, name and proxy of a contract.

    Distinguishes wallets, contracts and proxies, and returns where a proxy's code is, who can change it, and
    how closely the published source matches. Lists functions, standards and powers by the bytecode. Queries
    explorers, a registry of verified sources, and the chain itself for code and storage. If no explorer
    supports the chain, only the chain is read.
    """
    chain_id, address = request.chain_id, request.contract_address
    registries = SourceRegistries(chain_id, etherscan, sourcify, blockscout)
    async with open_task_group() as group:
        state_task = group.create_task(read_chain_state(rpc, chain_id, address))
        sources_task = group.create_task(registries.fetch(address))
    (state, failure), sources = state_task.result(), sources_task.result()
    if state.code is None and not sources.records:
        assert failure
        raise failure
    finding = apply_registry_claims(classify_account(state), sources.proxy_claims)
    async with open_task_group() as group:
        implementations_task = group.create_task(_fetch_implementation_sources(registries, finding))
        creation_task = group.create_task(_add_creation_time(registries, sources, finding, address, rpc))
        functions_task = group.create_task(_read_functions(bytecode, state, finding))
        roles_task = group.create_task(
            read_contract_roles(
                rpc,
                chain_id,
                address,
                reading=functions_task,
                candidates=_list_role_candidates(state, finding, sources),
            )
        )
        owner_task = group.create_task(read_stated_owner(rpc, chain_id, state))
        upgrader_task = group.create_task(read_upgrade_controller(rpc, chain_id, finding, state))
        upgrades_task = group.create_task(
            read_contract_upgrades(LogReader(chain_id, rpc, etherscan), finding, address, rpc.trace)
        )
    functions, sources = functions_task.result(), creation_task.result()
    behind = implementations_task.result()
    implementations = _build_implementations(registries, finding, sources, behind, functions)
    report = _ContractReport(address, state, finding, sources, implementations, registries)
    for warning in _list_unread_sources(chain_id, registries, state, is_complete=failure is None):
        rpc.trace.add_warning(warning)
    return ContractExplanation(
        verified=report.verified,
        contract_name=sources.best_record.name if sources.best_record and not report.is_wallet else None,
        source_available=report.is_available("source_available"),
        abi_available=report.is_available("abi_available"),
        proxy=_build_proxy(report),
        links=ContractLinks(
            explorer=explorer_page(chain_id, address),
            verifications=[_build_verification(each) for each in sources.records],
            creation=_build_creation(sources),
        ),
        warnings=list(dict.fromkeys([*rpc.trace.warnings, *finding.notes, *report.warnings()])),
        functions=build_functions(functions, _index_published_signatures({address: sources, **behind})),
        function_count=len(functions.functions) if functions else None,
        standards=list(functions.standards) if functions else None,
        owner=owner_task.result(),
        upgrade_controller=upgrader_task.result(),
        roles=roles_task.result(),
        upgrades=upgrades_task.result(),
    )


async def _read_functions(
    bytecode: BytecodeAnalyzer, state: ChainState, finding: AccountFinding
) -> ContractFunctions | None:
    """Return the functions of the code that runs; None, with a warning, if it was not read."""
    running = finding.implementations or (state.address,)
    codes = {address: code for address in running if (code := state.codes.get(address))}
    if not codes or finding.account == "wallet" or not bytecode.is_configured:
        return None
    functions = await read_functions(bytecode, codes)
    missing = len(running) - len(codes) + len(functions.unread)
    if missing:
        bytecode.trace.add_warning(f"the code of {missing} contracts could not be analysed")
    return functions if len(functions.unread) < len(codes) else None


def _list_role_candidates(state: ChainState, finding: AccountFinding, sources: ContractSources) -> list[str]:
    """Return the accounts that may hold roles of a contract which does not list their members."""
    creator = sources.creation.creator if sources.creation else None
    return [each for each in (state.stated_owner, finding.upgrader, creator) if each]


async def _add_creation_time(
    registries: SourceRegistries, sources: ContractSources, finding: AccountFinding, address: str, rpc: Rpc
) -> ContractSources:
    """Add the time of creation, if there is a contract."""
    if sources.creation or finding.account == "contract":
        return await registries.with_creation_time(sources, address, rpc)
    return sources


async def _fetch_implementation_sources(
    registries: SourceRegistries, finding: AccountFinding
) -> dict[str, ContractSources]:
    """Return the source of a proxy's first MAX_SOURCE_LOOKUPS implementations, by address."""
    addresses = finding.implementations[:MAX_SOURCE_LOOKUPS]
    results = await asyncio.gather(*(registries.fetch_records(each) for each in addresses))
    return {
        address: ContractSources(published) for address, published in zip(addresses, results, strict=True)
    }


def _build_implementations(
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


def _index_published_signatures(
    published: Mapping[str, ContractSources],
) -> dict[str, Mapping[bytes, str]]:
    """Return the signatures in the ABI of each contract, by address and selector.

    An ABI names the functions of its own contract alone: in another one, a function with the same selector
    may be a different one.
    """
    return {
        address: index_signatures(
            signature
            for record in sources.records
            if record.match != "none"
            for signature in record.signatures
        )
        for address, sources in published.items()
    }


class _ContractReport:
    """The combined evidence about an address, and what follows from it."""

    def __init__(
        self,
        address: str,
        state: ChainState,
        finding: AccountFinding,
        sources: ContractSources,
        implementations: list[Implementation],
        registries: SourceRegistries,
    ) -> None:
        self.address, self.state, self.finding = address, state, finding
        self.sources, self.implementations, self._registries = sources, implementations, registries
        self.is_destroyed = state.code == b"" and sources.is_contract is True
        self.kind: AccountKind = self._account_kind()
        self.is_wallet = self.kind in ("wallet", "delegated_wallet")
        self.verified = self._is_verified()

    def is_available(self, attribute: str) -> bool | None:
        """Return True if any registry has it; None for a wallet, or if no registry could tell."""
        values = [getattr(each, attribute) for each in self.sources.records]
        if any(values):
            return None if self.is_wallet else True
        return None if self.verified is None or None in values else False

    def warnings(self) -> Iterator[str]:
        """Yield the warnings besides those about the proxy: findings, and what is not known."""
        yield from self._source_warnings()
        if self.is_destroyed:
            yield (
                "there was a contract at this address and there is no code now: it destroyed itself, or the "
                "queried node is behind"
            )
        if any(each.is_self_destructed for each in self.sources.records) and not self.is_destroyed:
            yield "an explorer reports that this contract destroyed itself"
        if any(each.is_code_changed for each in self.sources.records):
            yield "an explorer reports that the code has changed since it was verified"
        yield from self._implementation_warnings()
        yield from self._age_warnings()

    def _account_kind(self) -> AccountKind:
        if self.is_destroyed:
            return "unknown"
        if self.state.code is not None or self.finding.account == "delegated_wallet":
            return self.finding.account
        is_contract = self.sources.is_contract
        return "unknown" if is_contract is None else "contract" if is_contract else "wallet"

    def _is_verified(self) -> bool | None:
        if self.kind != "contract" or not self.sources.records:
            return None
        return self._registries.is_verified(self.sources.records)

    def _source_warnings(self) -> Iterator[str]:
        best = self.sources.best_record
        if self.kind == "unknown" and not self.is_destroyed and self.state.code is None:
            yield "whether there is a contract at this address is not known, so `verified` is null"
        if not self._registries.has_any:
            yield NO_REGISTRY
        elif self.kind == "contract" and not self.sources.records:
            yield "no registry of published source could be reached, so `verified` is null"
        elif best and best.match == "similar":
            address = f"of {best.similar_address}, " if best.similar_address else ""
            yield (
                f"the source that {best.registry} shows is that {address}another contract with the same "
                "code; it was not found for this address"
            )
        if self.kind == "contract" and self.sources.records and self.verified is None:
            yield (
                "no source was found, but not all registries were read, so `verified` is null: "
                f"{', '.join(self._registries.unread)}"
            )
        elif self.verified is False and not best:
            yield "closed source: no source is published for this contract, so what it does cannot be read"

    def _implementation_warnings(self) -> Iterator[str]:
        for each in self.implementations:
            if each.verified is False:
                yield f"no source is published for the implementation {each.address}"
        if any(each.verified is None for each in self.implementations[:MAX_SOURCE_LOOKUPS]):
            unread = ", ".join(self._registries.unread) or "none could be reached"
            yield f"whether the source of an implementation is published is not known: {unread}"
        if (count := len(self.implementations)) > MAX_SOURCE_LOOKUPS:
            yield f"the source of the first {MAX_SOURCE_LOOKUPS} of {count} implementations was looked up"

    def _age_warnings(self) -> Iterator[str]:
        created_at = self.sources.creation and self.sources.creation.at
        if created_at and (age := datetime.now(UTC) - created_at) < NEW_CONTRACT_AGE:
            days = f"{age.days} days" if age.days > 1 else "a day or less"
            yield f"this contract is new: it was created {days} ago"
        elif not created_at and self.kind == "contract":
            yield "the creation time of this contract is not known, so it may be new"


def _list_unread_sources(
    chain_id: int, registries: SourceRegistries, state: ChainState, *, is_complete: bool
) -> Iterator[str]:
    """Yield a warning for each source of the chain that could not be read."""
    if chain_id in CHAIN_BY_ID and not registries.has_any:
        yield NO_REGISTRY
    if state.code is None:
        yield "the chain itself could not be read: facts about proxies come from explorers only"
    elif not is_complete:
        yield "the chain could not be read in full: the facts about the proxy may be incomplete"


def _build_proxy(report: _ContractReport) -> ContractProxy:
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


def _build_verification(published: SourceRecord) -> Verification:
    return Verification(
        source=published.registry,
        match_level=published.match,
        similar_address=published.similar_address,
        language=published.language,
        compiler_version=published.compiler_version,
        license=published.license,
        url=published.url,
    )


def _build_creation(sources: ContractSources) -> Creation | None:
    created = sources.creation
    if created is None:
        return None
    return Creation(
        created_at=format_timestamp(created.at) if created.at else None,
        creator_address=created.creator,
        transaction_hash=created.transaction,
    )
