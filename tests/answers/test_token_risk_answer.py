"""Answer of token-risk as built from evidence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from centgate.answers.token_risk import build_token_risk
from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.evidence.simulations import MissingReason
from centgate.crypto.token.identity import TokenIdentity
from centgate.crypto.token.security import (
    GOPLUS_FIELDS,
    Holder,
    HolderSales,
    Simulation,
    TokenFlags,
    TokenLock,
)
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.services.token_risk import token_risk

NOW = datetime(2026, 11, 1, tzinfo=UTC)
TOKEN = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
OWNER = "0x3abd6f64a422225e61e435bae41db12096106df7"
POWERS: dict[str, Any] = {"proxy": False, "mintable": False, "pausable": False, "blacklists": True}
READ: dict[str, Any] = (
    dict.fromkeys(GOPLUS_FIELDS, False)
    | dict.fromkeys(("open_source", "in_dex", "genuine", "trusted"), True)
    | POWERS
    | {"airdrop_scam": None}
)
TRADED_SINCE = datetime(2023, 8, 16, 19, 5, tzinfo=UTC)


def build_example_flags() -> TokenFlags:
    """Return what GoPlus Security says of the token in the published example."""
    lock = TokenLock(62.5, datetime(2027, 6, 1, tzinfo=UTC))
    locker = "0x4f0fd563be89ec8c3e7d595bf3639128c0a7c33a"
    values = {name: str(int(READ[field])) for field, name in GOPLUS_FIELDS.items() if READ[field] is not None}
    return TokenFlags(
        **READ,
        owner_address=OWNER,
        owner_percent=0,
        holder_count=4_100_000,
        holders=(Holder("0x" + "7b" * 20, None, contract=False, locked=False, percent=21.4),),
        lp_holders=(
            Holder(locker, "Team Finance", contract=True, locked=True, percent=62.5, locks=(lock,)),
            Holder("0x" + "5a" * 20, None, contract=False, locked=False, percent=3.1),
        ),
        raw=values | {"owner_address": OWNER},
    )


def build_example_evidence() -> TokenEvidence:
    """Return the evidence of the published example."""
    taxes = {f"simulationResult.{name}Tax": "0" for name in ("buy", "sell")}
    sold = Simulation(succeeded=True, honeypot=False, buy_tax=0, sell_tax=0, pair_empty=False)
    sales = HolderSales(tested=8, failed=0, siphoned=0, average_tax=0, highest_tax=0, high_tax_count=0)
    raw = {"honeypotResult.isHoneypot": "false", "summary.riskLevel": "1", **taxes}
    return TokenEvidence(
        NOW,
        analysis=build_example_flags(),
        simulation=replace(sold, risk_level=1, open_source=True, proxy=False, raw=raw),
        own_simulation=replace(sold, summarised=False, transfer_blocked=False, holder_sales=sales),
        owner=Owner(OWNER, "contract"),
        bytecode_flags=TokenFlags(**POWERS),
        chain_id=8453,
        supply=4.1e9,
        liquidity=Liquidity(
            "dexscreener",
            412e6,
            30,
            other_side_usd=198e6,
            top_pair="0xd0b53d9277642d899df5c87a3966a349a798f224",
            top_dex="uniswap",
            top_usd=98e6,
            top_created_at=TRADED_SINCE,
            trading_since=TRADED_SINCE,
        ),
    )


def test_published_example_is_answer_to_its_evidence():
    identity = TokenIdentity("USD Coin", "USDC", 6, 4_100_000_000_000_000)

    assert build_token_risk(TOKEN, build_example_evidence(), identity, []) == token_risk.example_data


@pytest.mark.parametrize(
    ("of_service", "of_chain", "told"),
    [
        ("chain_not_covered", "source_unavailable", "source_unavailable"),
        ("chain_not_covered", "no_pair", "no_pair"),
        ("no_pair", "source_unavailable", "no_pair"),
        ("chain_not_covered", "chain_not_covered", "chain_not_covered"),
        (None, "chain_not_covered", "failed"),
        (None, None, "failed"),
    ],
)
def test_missing_simulation_is_told_by_one_that_covers_chain(
    of_service: MissingReason | None, of_chain: MissingReason | None, told: str
):
    evidence = TokenEvidence(NOW, no_simulation_reason=of_service, no_own_simulation_reason=of_chain)

    assert build_token_risk(TOKEN, evidence, None, []).honeypot.not_simulated == told


def test_simulation_without_result_failed():
    evidence = TokenEvidence(
        NOW, own_simulation=Simulation(explanation="it stalled"), no_simulation_reason="chain_not_covered"
    )

    assert build_token_risk(TOKEN, evidence, None, []).honeypot.not_simulated == "failed"


@pytest.mark.parametrize(("symbol", "told"), [(None, (18, "honeypotis")), ("SOME", (None, "goplus"))])
def test_decimals_are_those_of_named_source(symbol: str | None, told: tuple[int | None, str]):
    simulated = Simulation(symbol="SOME", decimals=18)
    evidence = TokenEvidence(NOW, analysis=TokenFlags(symbol=symbol), simulation=simulated)

    token = build_token_risk(TOKEN, evidence, None, []).token

    assert (token.decimals, token.source) == told
