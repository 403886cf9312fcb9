"""contract-explain: what stands at an address, whether its source is published, and who can change it."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from centgate.chains import Address, OnChain
from centgate.errors import ProviderUnconfigured
from centgate.provider import Enrichment, Fallback, Primary
from centgate.providers.blockscout import Blockscout
from centgate.providers.etherscan import Etherscan
from centgate.providers.rpc import Rpc
from centgate.providers.sourcify import Sourcify
from centgate.schema import Data
from centgate.service import service

ContractSource = Literal["etherscan", "sourcify", "blockscout", "rpc"]
AccountKind = Literal["contract", "wallet", "delegated_wallet", "unknown"]
MatchLevel = Literal["exact", "bytecode", "unspecified", "similar", "none"]
ProxyKind = Literal[
    "eip1167",
    "eip1822",
    "eip1967",
    "eip1967_beacon",
    "eip2535",
    "eip7702",
    "clone_with_immutable_args",
    "safe",
    "zeppelinos",
    "other",
]


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

    possible: bool | None = Field(description="Whether the code can be changed at all.")
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
        description="`delegated_wallet` is a wallet that lends itself code by EIP-7702; `wallet` has no code."
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

    explorer: str = Field(description="The contract's page at the chain's explorer.")
    verifications: list[Verification]
    creation: Creation | None


class ContractExplanation(Data):
    """What is known of a contract, without its source."""

    verified: bool | None = Field(
        description="Whether source that matches the code at this very address is published; null when there "
        "is no code or no source could tell. A `similar` match does not count."
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
                by_kind="unknown",
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
        warnings=["the code behind this proxy can be changed by its admin"],
    ),
)
async def contract_explain(
    request: ContractExplainRequest,
    etherscan: Primary[Etherscan],
    sourcify: Fallback[Sourcify],
    blockscout: Fallback[Blockscout],
    rpc: Enrichment[Rpc],
) -> ContractExplanation:
    """Verification, source and ABI availability, name and proxy of a contract.

    Tells wallets, contracts and proxies apart, where a proxy's code lies and who can change it, and how
    closely the published source matches. Explorers and a registry of verified sources are asked, and the
    chain itself for code and storage.
    """
    raise ProviderUnconfigured(etherscan.about.name, f"this build has no adapter for {etherscan.about.name}")
