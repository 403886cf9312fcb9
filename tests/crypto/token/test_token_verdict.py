"""Level and score of a token, for chosen evidence and for saved bodies."""

from __future__ import annotations

import pytest
from crypto.token.evidence_cases import (
    BYTECODE,
    FACTS,
    NOW,
    OWN,
    OWNER,
    RULE_CASES,
    list_flags,
    set_liquidity,
)
from fake_upstreams import load_body, recorded_case
from msgspec.structs import replace

from centgate.crypto.contract.owners import Owner
from centgate.crypto.token.citations import Citation
from centgate.crypto.token.missing_checks import list_subjects
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity, sum_pool_liquidity
from centgate.crypto.token.token_verdict import TokenScore, evaluate_token
from centgate.providers.goplus_token import parse_token_security


def test_chain_alone_gives_level():
    pools = Liquidity("onchain", 90_000, 2, other_side_usd=45_000)
    alone = TokenEvidence(
        NOW,
        no_simulation_reason="chain_not_covered",
        liquidity=pools,
        bytecode_flags=BYTECODE,
        own_simulation=OWN,
        owner=Owner(None, "none"),
    )

    verdict = evaluate_token(alone)

    assert (verdict.level, list_flags(alone)) == ("low", {"bytecode_only": "low"})
    warnings = " ".join(verdict.warnings)
    assert all(check in warnings for check in list_subjects("goplus"))
    assert evaluate_token(replace(alone, own_simulation=replace(OWN, sell_tax=12.0))).level == "high"
    mintable = replace(alone, bytecode_flags=replace(BYTECODE, mintable=True), owner=Owner(OWNER, "wallet"))
    (flag,) = [each for each in evaluate_token(mintable).flags if each.id == "owner_can_mint"]
    assert flag.severity == "medium"
    assert Citation("onchain", "bytecode.mintable", "true") in flag.evidence


def test_score_is_sum_of_parts_within_level_band():
    for facts, _, _ in RULE_CASES:
        verdict = evaluate_token(facts)
        if verdict.score is None:
            assert verdict.level == "unknown"
            continue
        assert verdict.score.score == sum(part.points for part in verdict.score.parts)
        assert [part.flag_id for part in verdict.score.parts] == [flag.id for flag in verdict.flags]
        lowest, highest = {"low": (0, 24), "medium": (25, 49), "high": (50, 74), "critical": (75, 100)}[
            verdict.level
        ]
        assert lowest <= verdict.score.score <= highest


def test_score_without_findings_is_zero():
    assert evaluate_token(FACTS).score == TokenScore(0, ())


def test_level_is_unknown_without_analysis_and_simulation():
    facts = replace(set_liquidity(5), analysis=None, simulation=None)

    assert list_flags(facts)["low_liquidity"] == "high"
    assert evaluate_token(facts).level == "unknown"


def load_evidence(case: str, token: str) -> TokenEvidence:
    flags = parse_token_security(load_body("goplus_token_security", case)["result"][token], partial=False)
    return TokenEvidence(
        NOW, analysis=flags, no_simulation_reason="source_unavailable", liquidity=sum_pool_liquidity(flags)
    )


@pytest.mark.parametrize(
    ("case", "token", "expected"),
    [
        ("trusted_without_owner", "0x" + "f3" * 20, "low"),
        ("two_tokens", "0x" + "f5" * 20, "low"),
        ("full_sell_tax", "0x" + "f2" * 20, "critical"),
        ("forged_balance", "0x" + "f1" * 20, "critical"),
        recorded_case(
            "eth_weth_trusted_no_owner_no_dex_list", "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2", "low"
        ),
        recorded_case(
            "bsc_two_tokens_launchpad_and_cake_trusted", "0x0e09fabb73bd3ade0a17ecc321fd13a19e81ce82", "low"
        ),
        recorded_case(
            "eth_gvr_100pct_taxes_owner_can_pause", "0x84fa8f52e437ac04107ec1768764b2b39287cb3e", "critical"
        ),
        recorded_case(
            "eth_kokodi_honeypot_hidden_owner_serial_creator",
            "0x4e7e15a6b83718ba79674cc4ce09f7d4a631ec2c",
            "critical",
        ),
    ],
)
def test_saved_token_has_its_risk_level(case: str, token: str, expected: str):
    assert evaluate_token(load_evidence(case, token)).level == expected
