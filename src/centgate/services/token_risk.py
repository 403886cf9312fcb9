"""token-risk: risk level of a token, with the reasons."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import ConfigDict, Field

from centgate.answers.token_flags import Evidence, RiskFlag, RiskScore, ScorePart
from centgate.answers.token_liquidity import LiquidityHandData, LiquidityLockData, TokenLiquidity, TopPair
from centgate.answers.token_risk import TokenIdentityData, TokenOwnership, TokenRisk, build_token_risk
from centgate.answers.token_trades import HolderSalesData, HoneypotCheck, Tax, TaxReading, TokenTaxes
from centgate.chains import NAMED_CHAIN_RULE, Address, NamedChainRequest
from centgate.crypto.token.evidence.contract import ImplementationSource
from centgate.crypto.token.token_rule import RULES_VERSION
from centgate.errors import Issue
from centgate.fallback import open_task_group
from centgate.lookups.chain_evidence import read_chain_evidence
from centgate.lookups.contract_sources import SourceRegistries
from centgate.lookups.exchange_pairs import await_pools, list_pairs
from centgate.lookups.token_sources import (
    TokenSources,
    analyse_contract,
    find_wallets_called_locked,
    read_implementation_source,
    simulate_trade,
)
from centgate.provider import Enrichment, Fallback, Primary, Secondary
from centgate.providers.blockscout import Blockscout
from centgate.providers.bytecode import BytecodeAnalyzer
from centgate.providers.dexscreener import DexScreener
from centgate.providers.etherscan import Etherscan
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.goplus import GoPlus
from centgate.providers.honeypotis import HoneypotIs
from centgate.providers.rpc import Rpc
from centgate.providers.sourcify import Sourcify
from centgate.schema import hide_rule, restrict_field
from centgate.service import service

NO_TOKEN = "^0x(0{40}|[eE]{40})$"
"""The zero address, and the placeholder for a chain's native coin. Other low addresses may have a token's
code: that of Polygon's coin is at 0x…1010."""
CHAIN_SECONDS, CHAIN_SECONDS_ALONE = 8.0, 15.0
"""Seconds for reading the chain beside the contract analysis, and in its place. The lookup
of an implementation's source and that of wallets, which begin in between, end with it."""


_EXAMPLE_OWNER = "0x3abd6f64a422225e61e435bae41db12096106df7"
_EXAMPLE_TAX = Tax(
    percent=0,
    readings=[
        TaxReading(source="honeypotis", percent=0, raw="0"),
        TaxReading(source="onchain", percent=0, raw="0"),
    ],
)


class TokenRiskRequest(NamedChainRequest):
    """A token on a chain."""

    model_config = ConfigDict(
        json_schema_extra=hide_rule(
            NAMED_CHAIN_RULE, restrict_field("tokenAddress", {"not": {"pattern": NO_TOKEN}})
        )
    )

    token_address: Address = Field(description="The token's contract: 0x and 40 hexadecimal characters.")

    @classmethod
    def check_cross_field_rules(cls, body: Mapping[str, Any], context: Mapping[str, Any]) -> Iterable[Issue]:
        """Require a named chain and an address that can be a token's."""
        yield from super().check_cross_field_rules(body, context)
        address = body.get("tokenAddress")
        if isinstance(address, str) and re.fullmatch(NO_TOKEN[:-1], address):
            yield Issue(
                "tokenAddress",
                "this is not a token: the zero address, or the placeholder of a chain's native coin",
            )


@service(
    order=10,
    title="Token risk",
    category="crypto-context",
    tags=("token", "honeypot", "tax", "ownership", "evm"),
    guardrails=(
        "One token per request.",
        "Read-only: nothing is signed or sent.",
        "honeypot.is simulates buys and sells on ethereum, base and bsc. Centgate's own simulation is a "
        "source of its own (`onchain`), on every chain with a node that can simulate calls. Without either, "
        "token-security flags decide.",
        "A fact that no source gave is null and is never treated as safe.",
        "The level describes what sources report now; it is neither advice nor a forecast.",
    ),
    cache_ttl=timedelta(minutes=5),
    input_example=TokenRiskRequest(chain="base", token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"),
    output_example=TokenRisk(
        token_address="0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
        risk_level="low",
        risk_score=RiskScore(
            score=2,
            parts=[
                ScorePart(flag_id="owner_can_blacklist", points=2),
                ScorePart(flag_id="well_known", points=0),
            ],
            rules_version=RULES_VERSION,
        ),
        risk_flags=[
            RiskFlag(
                id="owner_can_blacklist",
                severity="low",
                explanation="It has a blacklist: single holders can be kept from selling. It is a well-known "
                "token, so this counts as centralised control.",
                evidence=[
                    Evidence(source="goplus", field="is_blacklisted", value="1"),
                    Evidence(source="goplus", field="owner_address", value=_EXAMPLE_OWNER),
                    Evidence(source="onchain", field="owner.address", value=_EXAMPLE_OWNER),
                    Evidence(source="onchain", field="owner.kind", value="contract"),
                    Evidence(source="onchain", field="bytecode.blacklists", value="true"),
                ],
                rules_version=RULES_VERSION,
            ),
            RiskFlag(
                id="well_known",
                severity="info",
                explanation="It is on a list of trusted tokens, or traded on a large exchange.",
                evidence=[
                    Evidence(source="goplus", field="trust_list", value="1"),
                    Evidence(source="goplus", field="is_in_cex.listed", value="0"),
                ],
                rules_version=RULES_VERSION,
            ),
        ],
        token=TokenIdentityData(
            name="USD Coin",
            symbol="USDC",
            decimals=6,
            total_supply="4100000000000000",
            supply=4_100_000_000,
            source="onchain",
        ),
        honeypot=HoneypotCheck(
            is_honeypot=False,
            simulated=True,
            not_simulated=None,
            can_buy=True,
            can_sell=True,
            can_transfer=None,
            reason=None,
            source_reason=None,
            simulated_by=["honeypotis", "onchain"],
            holder_sales=[
                HolderSalesData(
                    source="onchain",
                    tested=8,
                    failed=0,
                    siphoned=0,
                    average_tax=0,
                    highest_tax=0,
                    high_tax_count=0,
                )
            ],
            max_buy=None,
            max_sell=None,
            sources_agree=True,
            evidence=[
                Evidence(source="goplus", field="is_honeypot", value="0"),
                Evidence(source="honeypotis", field="honeypotResult.isHoneypot", value="false"),
                Evidence(source="onchain", field="simulation.isHoneypot", value="false"),
            ],
        ),
        taxes=TokenTaxes(
            buy=_EXAMPLE_TAX,
            sell=_EXAMPLE_TAX,
            transfer=Tax(percent=None, readings=[]),
            modifiable=False,
        ),
        ownership=TokenOwnership(
            state="held",
            owner_address=_EXAMPLE_OWNER,
            owner_is_contract=True,
            owner_kind="contract",
            owner_threshold=None,
            owner_count=None,
            owner_has_modules=None,
            owner_delay_seconds=None,
            creator_address=None,
            reclaimable=False,
            source_verified=True,
            upgradeable=False,
            can_mint=False,
            can_pause=False,
            can_blacklist=True,
            can_change_balances=False,
            can_self_destruct=False,
            owner_percent=0,
            creator_percent=None,
            top_holders_percent=21.4,
            holder_count=4_100_000,
            trusted=True,
            source="goplus",
        ),
        liquidity=TokenLiquidity(
            total_usd=412_000_000,
            other_side_usd=198_000_000,
            pair_count=30,
            top_pair=TopPair(
                pair_address="0xd0b53d9277642d899df5c87a3966a349a798f224",
                dex="uniswap",
                liquidity_usd=98_000_000,
                created_at="2023-08-16T19:05:00Z",
            ),
            traded_since="2023-08-16T19:05:00Z",
            locked_percent=62.5,
            largest_wallet_percent=3.1,
            unlocked_percent=3.1,
            locks=[
                LiquidityLockData(
                    address="0x4f0fd563be89ec8c3e7d595bf3639128c0a7c33a",
                    locker="Team Finance",
                    percent=62.5,
                    unlocks_at="2027-06-01T00:00:00Z",
                    burned=False,
                )
            ],
            unlocked_holders=[
                LiquidityHandData(address="0x" + "5a" * 20, percent=3.1, contract=False, lock_ended_at=None)
            ],
            source="dexscreener",
        ),
        source_note=None,
        warnings=[
            "not checked, as GoPlus Security gives no value: the transfer tax, fraudulent airdrops, the "
            "creator's share",
        ],
    ),
)
async def token_risk(
    request: TokenRiskRequest,
    goplus: Primary[GoPlus],
    rpc: Fallback[Rpc],
    honeypotis: Secondary[HoneypotIs],
    dexscreener: Enrichment[DexScreener],
    geckoterminal: Enrichment[GeckoTerminal],
    bytecode: Enrichment[BytecodeAnalyzer],
    etherscan: Enrichment[Etherscan],
    sourcify: Enrichment[Sourcify],
    blockscout: Enrichment[Blockscout],
) -> TokenRisk:
    """Rate the honeypot, tax and ownership risk of an EVM token.

    Combines token-security flags, simulated buys and sells, what the chain itself shows, and the liquidity on
    exchanges into one risk level with its reasons. Every reason names its source and value. Taxes are in
    percent; if several sources give a tax, the highest one counts. Where the chain shows a proxy or a clone,
    source registries are asked if the source of the code that it runs is published.
    """
    chain_id, token = request.target_chain_id, request.token_address
    max_wait = CHAIN_SECONDS if goplus.is_configured else CHAIN_SECONDS_ALONE
    deadline = asyncio.get_running_loop().time() + max_wait
    registries = SourceRegistries(chain_id, etherscan, sourcify, blockscout, deadline=deadline)
    source_tasks: list[asyncio.Task[ImplementationSource]] = []
    async with open_task_group() as group:
        analysis = group.create_task(analyse_contract(goplus, chain_id, token))
        wallets = group.create_task(find_wallets_called_locked(rpc, chain_id, analysis, max_wait=max_wait))
        simulation = group.create_task(simulate_trade(honeypotis, chain_id, token))
        listing = group.create_task(list_pairs(dexscreener, geckoterminal, chain_id, token))
        pools = partial(await_pools, listing)

        def start_source_lookup(address: str) -> None:
            source_tasks.append(group.create_task(read_implementation_source(registries, address)))

        chain = group.create_task(
            read_chain_evidence(
                rpc,
                bytecode,
                chain_id,
                token,
                list_pools=pools,
                max_wait=max_wait,
                on_implementation=start_source_lookup,
            )
        )
    implementation = source_tasks[0].result() if source_tasks else None
    sources = TokenSources(
        analysis.result(),
        simulation.result(),
        listing.result(),
        chain.result(),
        implementation,
        wallets.result(),
    )
    if missing := sources.find_missing(goplus, rpc, token):
        raise missing
    evidence = sources.build_evidence(chain_id)
    if evidence.liquidity and evidence.liquidity.source == "goplus":
        goplus.trace.add_warning(
            "liquidity is the sum of the pairs that GoPlus Security lists, as no exchange index gives it"
        )
    # an index that answered, and that the chain refutes, has a warning of its own
    is_replaced = sources.listing.liquidity is None and sources.listing.has_failure
    if is_replaced and evidence.liquidity and evidence.liquidity.source == "onchain":
        rpc.trace.add_warning("liquidity is read from the chain, as an exchange index did not answer")
    return build_token_risk(token, evidence, sources.chain.identity, goplus.trace.warnings)
