"""Each rule for tokens raises its flag alone."""

from __future__ import annotations

from typing import Any

import pytest
from crypto.token.evidence_cases import FACTS, LEVELS, RULE_CASES
from msgspec.structs import fields

from centgate.crypto.token.security import (
    GOPLUS_FIELDS,
    SOURCE_LABELS,
    TokenFlags,
)
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import RULES_VERSION, SEVERITY_RANK
from centgate.crypto.token.token_rules import TOKEN_RULES
from centgate.crypto.token.token_verdict import TokenScore, TokenVerdict, evaluate_token
from centgate.provider import Provider
from centgate.providers.dexscreener import DexScreener
from centgate.providers.geckoterminal import GeckoTerminal
from centgate.providers.goplus import GoPlus
from centgate.providers.honeypotis import HoneypotIs


def test_good_evidence_raises_no_flags():
    verdict = evaluate_token(FACTS)

    assert verdict == TokenVerdict("low", (), verdict.warnings, TokenScore(0, ()))


def test_every_rule_has_case():
    assert {name for _, name, _ in RULE_CASES} == {rule.id for rule in TOKEN_RULES}
    assert len({rule.id for rule in TOKEN_RULES}) == len(TOKEN_RULES)


@pytest.mark.parametrize(
    ("facts", "name", "severity"),
    RULE_CASES,
    ids=[f"{number}-{name}" for number, (_, name, _) in enumerate(RULE_CASES)],
)
def test_rule_raises_its_flag_alone(facts: TokenEvidence, name: str, severity: Any):
    verdict = evaluate_token(facts)

    (flag,) = [each for each in verdict.flags if each.id == name]
    assert flag.severity == severity
    assert flag.rules_version == RULES_VERSION
    assert flag.evidence
    assert not flag.explanation[0].islower()
    assert flag.explanation.endswith(".")
    assert "{" not in flag.explanation
    assert (
        LEVELS[verdict.level] >= SEVERITY_RANK[flag.severity]
        or SEVERITY_RANK[flag.severity] <= SEVERITY_RANK["low"]
    )


def test_evidence_covers_every_flag():
    assert {*GOPLUS_FIELDS} <= {field.name for field in fields(TokenFlags)}


@pytest.mark.parametrize("source", [GoPlus, HoneypotIs, DexScreener, GeckoTerminal])
def test_source_has_label_of_its_provider(source: type[Provider]):
    assert SOURCE_LABELS[source.info.name] == source.info.label  # pyright: ignore[reportArgumentType]
