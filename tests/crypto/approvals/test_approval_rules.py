"""Rules for approvals: the finding and severity of each fact, and properties that hold for all evidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from centgate.chains import CHAIN_BY_ID
from centgate.coercion import as_address
from centgate.crypto.approvals.approval_evidence import DAY_SECONDS, PERMIT2, ApprovalEvidence
from centgate.crypto.approvals.approval_rules import SEVERITY_ORDER, ApprovalFindingId, ApprovalSeverity
from centgate.crypto.approvals.approval_verdict import evaluate_approval, recommend_action, total_exposure
from centgate.crypto.approvals.exploited_spenders import EXPLOITED_SPENDERS
from centgate.crypto.approvals.reported import ReportedApproval, ReportedSpender, ReportedToken

NOW = 1_790_000_000
TOKEN = "0x" + "11" * 20
SPENDER = "0x" + "22" * 20
UNI = "0x1f9840a85d5af5bf1d1762f925bdaddc4201f984"
SUSHI = "0x044b75f554b886a065b9567891e45c79542d7357"
HIDING = "0x0000" + "5a" * 16 + "0000"
MAX = 2**256 - 1


def build_evidence(**known: Any) -> ApprovalEvidence:
    """Return a bounded approval of yesterday to a contract, read completely; `known` replaces facts."""
    token = ReportedToken(known.pop("token", TOKEN), **known.pop("token_is", {}))
    spender = ReportedSpender(known.pop("spender", SPENDER), **known.pop("spender_is", {}))
    told: dict[str, Any] = {
        "source": "goplus",
        "amount": 500,
        "amount_text": "500",
        "changed_at": NOW - DAY_SECONDS,
    }
    told |= known.pop("told", {})
    read: dict[str, Any] = {"allowance": 500, "balance": 50, "supply": 10_000, "kind": "contract"}
    return ApprovalEvidence(
        ReportedApproval(token, spender, **told), known.pop("chain_id", 1), NOW, **(read | known)
    )


def find_severities(evidence: ApprovalEvidence) -> dict[ApprovalFindingId, ApprovalSeverity]:
    """Return the findings of the rules with their severities."""
    return {finding.id: finding.severity for finding in evaluate_approval(evidence).findings}


def test_recent_bounded_approval_has_no_findings():
    verdict = evaluate_approval(build_evidence())

    assert verdict.findings == ()
    assert verdict.severity == "info"
    assert recommend_action(verdict) is None


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"spender_is": {"misconduct": ("phishing_activities",)}}, {"malicious_spender": "danger"}),
        ({"spender_is": {"is_doubtful": True}}, {"doubtful_spender": "danger"}),
        ({"token_is": {"malicious": True}}, {"malicious_token": "danger"}),
        ({"token_is": {"misconduct": ("reinit",)}}, {"malicious_token": "danger"}),
        ({"spender": SUSHI}, {"exploited_spender": "danger"}),
        ({"spender": SUSHI, "spender_is": {"trusted": True}}, {"exploited_spender": "danger"}),
        ({"spender": SUSHI, "chain_id": 8453}, {}),
        ({"spender": HIDING}, {"spender_hides": "warning"}),
        ({"spender": HIDING, "spender_is": {"trusted": True}}, {"spender_hides": "info"}),
        ({"spender": HIDING[:-1] + "1"}, {}),
        ({"spender": "0x1" + HIDING[3:]}, {}),
        ({"kind": "wallet"}, {"spender_is_wallet": "danger"}),
        ({"kind": "delegated_wallet"}, {"spender_is_wallet": "danger"}),
        ({"kind": "unused"}, {"spender_has_no_code": "danger"}),
        ({"kind": "unused", "spender_is": {"is_contract": True}}, {"spender_has_no_code": "danger"}),
        ({"spender_is": {"is_contract": False}}, {}),
        (
            {"kind": None, "spender_is": {"is_contract": False}},
            {"spender_is_wallet": "danger", "unread": "info"},
        ),
        ({"allowance": MAX}, {"unlimited": "warning"}),
        ({"allowance": MAX, "spender_is": {"trusted": True}}, {"unlimited": "info"}),
        ({"spender_is": {"source_verified": False}}, {"spender_unverified": "warning"}),
        ({"spender_is": {"deployed_at": NOW - 29 * DAY_SECONDS}}, {"spender_young": "warning"}),
        ({"spender_is": {"deployed_at": NOW - 31 * DAY_SECONDS}}, {}),
        ({"told": {"changed_at": NOW - 181 * DAY_SECONDS}}, {"stale": "info"}),
        ({"told": {"changed_at": NOW - 180 * DAY_SECONDS}}, {}),
        ({"told": {"changed_at": None}}, {}),
        (
            {"told": {"changed_at": NOW - 181 * DAY_SECONDS}, "allowance": MAX},
            {"stale": "warning", "unlimited": "warning"},
        ),
        ({"spender": PERMIT2, "allowance": MAX}, {"unlimited": "info", "permit2": "info"}),
        ({"balance": 0}, {"nothing_held": "info"}),
        ({"allowance": None}, {"unread": "info"}),
        ({"allowance": None, "told": {"amount": None, "amount_text": "?"}}, {"unread": "warning"}),
        ({"kind": "wallet", "spender_is": {"trusted": True}}, {"spender_is_wallet": "danger"}),
        (
            {"spender_is": {"trusted": True, "misconduct": ("stealing_attack",)}},
            {"malicious_spender": "danger"},
        ),
    ],
    ids=str,
)
def test_fact_has_its_finding_and_severity(
    known: dict[str, Any], expected: dict[ApprovalFindingId, ApprovalSeverity]
):
    assert find_severities(build_evidence(**known)) == expected


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"allowance": 2**255, "supply": None}, True),
        ({"allowance": 2**255 - 1, "supply": None}, False),
        ({"allowance": 10_001}, True),
        ({"allowance": 10_000}, False),
        ({"allowance": 10_001, "supply": 0}, False),
        ({"allowance": 2**96 - 1, "token": UNI, "supply": None}, True),
        ({"allowance": 2**96 - 2, "token": UNI, "supply": None}, False),
        ({"allowance": 2**96 - 1, "token": UNI, "supply": None, "chain_id": 56}, False),
        ({"allowance": 2**160 - 1, "spender": PERMIT2, "supply": None}, True),
        ({"allowance": 2**160 - 1, "supply": None}, False),
        ({"allowance": None, "told": {"amount": None, "unlimited": True}}, True),
        ({"allowance": 7, "told": {"amount": None, "unlimited": True}}, False),
        ({"allowance": None, "told": {"amount": MAX}}, True),
        ({"allowance": None, "told": {"amount": 2**96}}, True),
        ({"allowance": None, "told": {"amount": 2**96}, "supply": None}, None),
        ({"allowance": None, "told": {"amount": 2**96 - 1}, "supply": None}, False),
        ({"allowance": None, "told": {"amount": None}}, None),
    ],
    ids=str,
)
def test_unlimited_exceeds_any_possible_balance(known: dict[str, Any], expected: Any):
    assert build_evidence(**known).is_unlimited is expected


def test_empty_wallet_lowers_severity_and_warns_of_deposits():
    verdict = evaluate_approval(build_evidence(kind="wallet", balance=0))

    assert verdict.severity == "warning"
    assert verdict.is_dangerous
    assert any("later deposits are exposed" in finding.explanation for finding in verdict.findings)


@pytest.mark.parametrize(
    ("known", "exposed"),
    [
        ({}, 50),
        ({"allowance": 20}, 20),
        ({"allowance": None, "told": {"amount": None, "unlimited": True}}, 50),
        ({"balance": None}, None),
        ({"allowance": None, "told": {"amount": None}}, None),
    ],
    ids=str,
)
def test_exposed_amount_is_lesser_of_amount_and_balance(known: dict[str, Any], exposed: int | None):
    assert build_evidence(**known).exposed_amount == exposed


def test_approvals_are_ordered_by_severity_then_unlimited_and_stale():
    long_ago = {"changed_at": NOW - 200 * DAY_SECONDS}
    ordered = [
        build_evidence(kind="wallet"),
        build_evidence(kind="wallet", balance=0),
        build_evidence(allowance=MAX, told=long_ago),
        build_evidence(allowance=MAX, told=long_ago, spender_is={"trusted": True}),
        build_evidence(allowance=MAX),
        build_evidence(told=long_ago),
        build_evidence(spender_is={"source_verified": False}),
        build_evidence(),
    ]

    verdicts = sorted(
        (evaluate_approval(each) for each in reversed(ordered)), key=lambda verdict: verdict.sort_key
    )

    assert [verdict.evidence for verdict in verdicts] == ordered
    assert [line.action if (line := recommend_action(verdict)) else None for verdict in verdicts] == [
        *("revoke", "revoke", "revoke", "review", "review", "review", "review"),
        None,
    ]


def test_old_unlimited_permit2_approval_is_to_be_reviewed():
    line = recommend_action(
        evaluate_approval(
            build_evidence(spender=PERMIT2, allowance=MAX, told={"changed_at": NOW - 400 * DAY_SECONDS})
        )
    )

    assert line
    assert line.action == "review"
    assert "Permit2" in line.reason


SPENDERS = st.builds(
    ReportedSpender,
    st.sampled_from([SPENDER, PERMIT2, SUSHI, HIDING]),
    is_contract=st.sampled_from([True, False, None]),
    source_verified=st.sampled_from([True, False, None]),
    trusted=st.sampled_from([True, False, None]),
    is_doubtful=st.sampled_from([True, False, None]),
    misconduct=st.sampled_from([(), ("mixer",)]),
    deployed_at=st.sampled_from([None, NOW - DAY_SECONDS, NOW - 900 * DAY_SECONDS]),
)
TOKENS = st.builds(
    ReportedToken,
    st.sampled_from([TOKEN, UNI]),
    malicious=st.sampled_from([True, False, None]),
    misconduct=st.sampled_from([(), ("reinit",)]),
)
AMOUNTS = st.one_of(
    st.none(), st.sampled_from([0, 1, 2**96 - 1, 2**160 - 1, 2**255, MAX]), st.integers(0, MAX)
)
APPROVALS = st.builds(
    ReportedApproval,
    TOKENS,
    SPENDERS,
    st.sampled_from(["goplus", "rpc", "etherscan"]),
    AMOUNTS,
    st.just("said"),
    unlimited=st.booleans(),
    changed_at=st.one_of(st.none(), st.integers(1, NOW)),
    mechanism=st.sampled_from(["token", "permit2"]),
    expires_at=st.one_of(st.none(), st.integers(0, 2**48 - 1)),
)
CASES = st.builds(
    ApprovalEvidence,
    APPROVALS,
    st.just(1),
    st.just(NOW),
    allowance=AMOUNTS,
    balance=AMOUNTS,
    supply=AMOUNTS,
    kind=st.sampled_from([None, "contract", "wallet", "delegated_wallet", "unused"]),
    expires_at=st.one_of(st.none(), st.integers(0, 2**48 - 1)),
    permit2_limit=AMOUNTS,
    decimals=st.sampled_from([None, 0, 6, 18, 255]),
    price_usd=st.one_of(st.none(), st.floats(0, 1e12)),
)


def list_worse(evidence: ApprovalEvidence) -> list[ApprovalEvidence]:
    """Return copies of the evidence, each with one more bad fact."""
    told = evidence.entry
    spenders: list[dict[str, Any]] = [
        {"misconduct": ("sanctioned",)},
        {"is_doubtful": True},
        {"source_verified": False},
        {"is_contract": False},
        {"deployed_at": NOW - 60},
    ]
    tokens: list[dict[str, Any]] = [{"malicious": True}, {"misconduct": ("honeypot_related_address",)}]
    bad_entries = [
        *(replace(told, spender=replace(told.spender, **bad)) for bad in spenders),
        *(replace(told, token=replace(told.token, **bad)) for bad in tokens),
        replace(told, changed_at=NOW - 900 * DAY_SECONDS),
        *([] if evidence.is_unlimited is None else [replace(told, unlimited=True)]),
    ]
    return [
        *(replace(evidence, entry=bad) for bad in bad_entries),
        *(replace(evidence, kind=kind) for kind in ("wallet", "delegated_wallet", "unused")),
        replace(evidence, expires_at=NOW + 900 * DAY_SECONDS),
        replace(evidence, permit2_limit=MAX),
        replace(evidence, balance=MAX),
        *([] if evidence.is_unlimited is None else [replace(evidence, allowance=MAX)]),
    ]


@pytest.mark.extended
@given(CASES)
def test_additional_bad_fact_never_lowers_severity_or_rank(evidence: ApprovalEvidence):
    before = evaluate_approval(evidence)

    for bad in list_worse(evidence):
        after = evaluate_approval(bad)
        assert SEVERITY_ORDER[after.severity] <= SEVERITY_ORDER[before.severity], bad
        assert after.priority_group <= before.priority_group, bad


@given(CASES, st.sampled_from(["allowance", "balance", "supply", "kind", "permit2_limit"]))
def test_unread_fact_never_lowers_severity_silently(evidence: ApprovalEvidence, lost: str):
    before, after = evaluate_approval(evidence), evaluate_approval(replace(evidence, **{lost: None}))

    safer = (
        SEVERITY_ORDER[after.severity] > SEVERITY_ORDER[before.severity]
        or after.priority_group > before.priority_group
    )
    assert not safer or any(finding.id == "unread" for finding in after.findings)


@given(CASES)
def test_unread_balance_never_lowers_severity(evidence: ApprovalEvidence):
    before, after = evaluate_approval(evidence), evaluate_approval(replace(evidence, balance=None))

    assert SEVERITY_ORDER[after.severity] <= SEVERITY_ORDER[before.severity]


@pytest.mark.extended
@given(st.lists(CASES, max_size=12, unique_by=lambda evidence: evidence.entry.key), st.data())
def test_order_does_not_depend_on_input_order(cases: list[ApprovalEvidence], data: st.DataObject):
    verdicts = [evaluate_approval(evidence) for evidence in cases]
    shuffled = data.draw(st.permutations(verdicts))

    orders = [verdict.sort_key for verdict in verdicts]
    assert len(set(orders)) == len(orders)
    assert sorted(shuffled, key=lambda each: each.sort_key) == sorted(
        verdicts, key=lambda each: each.sort_key
    )


@given(CASES)
def test_every_finding_is_one_sentence_with_source(evidence: ApprovalEvidence):
    for finding in evaluate_approval(evidence).findings:
        assert finding.explanation.endswith(".")
        assert finding.source in ("goplus", "rpc", "etherscan", "centgate")


@pytest.mark.extended
@given(st.lists(CASES, max_size=12, unique_by=lambda evidence: evidence.entry.key))
def test_usd_at_risk_never_exceeds_sum_of_approvals(drawn: list[ApprovalEvidence]):
    first = {each.entry.token.address: each for each in reversed(drawn)}
    cases = [_same_wallet(each, first[each.entry.token.address]) for each in drawn]
    verdicts = [evaluate_approval(evidence) for evidence in cases]
    total = total_exposure(verdicts)

    values = [each.exposed_usd for each in cases if each.exposed_amount != 0]
    assert total.unpriced_tokens <= len(values)
    if total.usd is not None and None not in values:
        assert 0 <= total.usd <= sum(value for value in values if value is not None) * (1 + 1e-9)


def _same_wallet(evidence: ApprovalEvidence, other: ApprovalEvidence) -> ApprovalEvidence:
    """Return evidence with another's facts about token and wallet, which are the same for all."""
    return replace(
        evidence,
        balance=other.balance,
        decimals=other.decimals,
        price_usd=other.price_usd,
        supply=other.supply,
        permit2_limit=other.permit2_limit,
    )


def test_exploited_contracts_are_identified_by_chain_and_address():
    for chain_id, spender in EXPLOITED_SPENDERS:
        assert chain_id in CHAIN_BY_ID
        assert as_address(spender) == spender
