"""contract-explain: verification, proxy and upgrade control of the contract at an address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field

from centgate.answers.contract_control import (
    ContractRole,
    ContractUpgrade,
    ContractUpgrades,
    ControllingAccount,
    ExplainedFunction,
    OwnerAccount,
    build_controller,
    build_functions,
    build_roles,
    build_upgrades,
)
from centgate.answers.contract_explain import (
    ContractLinks,
    ContractOverview,
    ContractProxy,
    Creation,
    Implementation,
    ProxyEvidence,
    UpgradePower,
    Verification,
    build_creation,
    build_implementations,
    build_proxy,
    build_verification,
    list_unread_sources,
)
from centgate.answers.native_balance import NativeBalance, Worth, build_native_balance
from centgate.chains import Address, ChainRequest
from centgate.crypto.contract.account_finding import AccountFinding
from centgate.crypto.contract.account_state import ChainState
from centgate.crypto.contract.contracts import CLONE_KINDS
from centgate.crypto.contract.functions import ContractStandard
from centgate.crypto.contract.proxies import classify_account
from centgate.crypto.contract.proxy_claims import apply_registry_claims
from centgate.crypto.contract.published_abi import index_signatures
from centgate.fallback import open_task_group
from centgate.lookups.accounts import read_native_balance
from centgate.lookups.chain_state import read_chain_state
from centgate.lookups.contract_control import read_contract_roles, read_stated_owner, read_upgrade_controller
from centgate.lookups.contract_functions import ContractFunctions, read_functions
from centgate.lookups.contract_sources import MAX_SOURCE_LOOKUPS, ContractSources, SourceRegistries
from centgate.lookups.log_history import LogReader
from centgate.lookups.upgrade_history import read_contract_upgrades
from centgate.provider import Enrichment, Fallback, Primary
from centgate.providers.blockscout import Blockscout
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.etherscan import Etherscan, explorer_page
from centgate.providers.rpc import Rpc
from centgate.providers.sourcify import Sourcify
from centgate.schema import Data
from centgate.service import service


class ContractExplainRequest(ChainRequest):
    """A contract on a chain."""

    contract_address: Address = Field(description="The contract: 0x and 40 hexadecimal characters.")


class ContractExplanation(Data):
    """Facts about a contract, without its source."""

    verified: bool | None = Field(
        description="Whether source that matches the code at exactly this address is published; null when "
        "the account has no code of its own, or when none was found and a registry was not read. A `similar` "
        "match does not count."
    )
    contract_name: str | None = Field(description="Its name in the source: untrusted text of its author.")
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
    native_balance: NativeBalance | None = Field(
        description="What the address itself holds of the chain's native coin, as the node tells it; tokens "
        "are not in it. Its value in US dollars is by Chainlink's feed on the chain. Null when no node tells "
        "the balance."
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
            has_modules=None,
            delay_seconds=None,
            owner=None,
        ),
        upgrade_controller=ControllingAccount(
            address="0x4fc7850364958d97b4d3f5a08f79db2493f8ca44",
            kind="contract",
            threshold=None,
            owner_count=None,
            has_modules=None,
            delay_seconds=None,
            owner=OwnerAccount(
                address="0x" + "5a" * 20,
                kind="safe",
                threshold=3,
                owner_count=5,
                has_modules=False,
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
        native_balance=NativeBalance(
            symbol="ETH",
            amount_base_units="250000000000000000",
            decimals=18,
            amount=0.25,
            worth=Worth(
                price_usd=3100,
                value_usd=775,
                confidence=None,
                doubtful=False,
                priced_at="2026-11-03T08:02:11Z",
                source="chainlink",
            ),
            source="rpc",
        ),
    ),
)
async def contract_explain(
    request: ContractExplainRequest,
    etherscan: Primary[Etherscan],
    sourcify: Fallback[Sourcify],
    blockscout: Fallback[Blockscout],
    rpc: Fallback[Rpc],
    bytecode: Enrichment[BytecodeAnalyzer],
) -> ContractExplanation:
    """Return verification, source and ABI availability, name and proxy of a contract.

    Distinguishes wallets, contracts and proxies, and returns where a proxy's code is, who can change it, and
    how closely the published source matches. Lists functions, standards and powers by the bytecode. Queries
    explorers, a registry of verified sources, and the chain itself for code, storage and balance. If no
    explorer or registry supports the chain, or none answers, only the chain is read.
    """
    chain_id, address = request.chain_id, request.contract_address
    registries = SourceRegistries(chain_id, etherscan, sourcify, blockscout)
    async with open_task_group() as group:
        state_task = group.create_task(read_chain_state(rpc, chain_id, address))
        balance_task = group.create_task(read_native_balance(rpc, chain_id, address))
        sources_task = group.create_task(registries.fetch(address))
    (state, failure), sources, balance = state_task.result(), sources_task.result(), balance_task.result()
    if state.code is None and not sources.records:
        unread = registries.first_failure or failure
        assert unread
        raise unread
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
        owner_task = group.create_task(read_stated_owner(rpc, chain_id, state, reading=functions_task))
        upgrader_task = group.create_task(read_upgrade_controller(rpc, chain_id, finding, state))
        upgrades_task = group.create_task(
            read_contract_upgrades(LogReader(chain_id, rpc, etherscan), finding, address, rpc.trace)
        )
    functions, sources = functions_task.result(), creation_task.result()
    behind = implementations_task.result()
    implementations = build_implementations(registries, finding, sources, behind, functions)
    report = ContractOverview(address, state, finding, sources, implementations, registries, behind)
    if fallback := registries.describe_fallback(sources.records):
        rpc.trace.add_warning(fallback)
    for warning in list_unread_sources(
        chain_id, registries, sources.records, state, is_complete=failure is None
    ):
        rpc.trace.add_warning(warning)
    return ContractExplanation(
        verified=report.verified,
        contract_name=sources.best_record.name if sources.best_record and not report.is_wallet else None,
        source_available=report.has_source,
        abi_available=report.has_abi,
        proxy=build_proxy(report),
        links=ContractLinks(
            explorer=explorer_page(chain_id, address),
            verifications=[build_verification(each) for each in sources.records],
            creation=build_creation(sources),
        ),
        warnings=list(dict.fromkeys([*rpc.trace.warnings, *finding.notes, *report.warnings()])),
        functions=build_functions(functions, _index_published_signatures({address: sources, **behind})),
        function_count=len(functions.functions) if functions else None,
        standards=list(functions.standards) if functions else None,
        owner=build_controller(owner_task.result()),
        upgrade_controller=build_controller(upgrader_task.result()),
        roles=build_roles(roles_task.result()),
        upgrades=build_upgrades(upgrades_task.result(), chain_id),
        native_balance=build_native_balance(chain_id, *balance, "rpc") if balance else None,
    )


async def _read_functions(
    bytecode: BytecodeAnalyzer, state: ChainState, finding: AccountFinding
) -> ContractFunctions | None:
    """Return the functions of the code that runs; None if it was not analysed.

    A warning names code that should have been: it could not be read or analysed, or nothing analyses it here.
    A proxy's own functions are called before those of the code behind it, so they are among them.
    """
    behind = finding.implementations
    is_own_code_called = finding.account == "contract" and finding.kind not in CLONE_KINDS
    running = (*((state.address,) if is_own_code_called or not behind else ()), *behind)
    codes = {address: code for address in running if (code := state.codes.get(address))}
    if not codes or finding.account == "wallet":
        return None
    if not bytecode.is_configured:
        bytecode.trace.add_warning(
            f"{bytecode.info.label} is not configured on this deployment, so functions, standards and roles "
            "are missing"
        )
        return None
    functions = await read_functions(bytecode, codes)
    missing = len(running) - len(codes) + len(functions.unread)
    if missing:
        bytecode.trace.add_warning(f"the code of {missing} contracts could not be analysed")
    return functions if not {*functions.analysed}.isdisjoint(behind or running) else None


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
