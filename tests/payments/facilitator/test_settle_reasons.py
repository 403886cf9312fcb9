"""The table of a facilitator's reasons: closed, complete for the installed SDK, and careful."""

# x402 is typed, and does not say so
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from facilitator_reasons_docs import render_page
from x402.mechanisms.evm import asset_cache, settle_receipt
from x402.mechanisms.evm.exact import eip3009_utils, facilitator
from x402.mechanisms.evm.exact.v1 import facilitator as facilitator_v1

from centgate.payments.facilitator.settle_reasons import CDP, SETTLE_REASONS, SOURCES, classify_reason

ROOT = Path(__file__).parents[3]
SDK = (facilitator, facilitator_v1, eip3009_utils, asset_cache, settle_receipt)

AFTER_SENDING = (
    "settlement_pending",
    "transaction_failed",
    "invalid_transaction_state",
    "invalid_exact_evm_nonce_already_used",
    "invalid_exact_evm_failed_to_get_receipt",
    "invalid_exact_evm_failed_to_execute_transfer",
    "invalid_exact_evm_transfer_event_mismatch",
    "invalid_exact_evm_transaction_failed",
    "invalid_exact_evm_transaction_state",
    "invalid_exact_evm_payload",  # the Go SDK gives it for failed simulations, and after a deployment
    "settle_exact_evm_transaction_confirmation_timed_out",
    "settle_exact_failed_onchain",
    "settle_exact_node_failure",
    "smart_wallet_deployment_failed",
    "duplicate_settlement",
    "unexpected_settle_error",
    "unknown_error",
)


def list_sdk_reasons(module: ModuleType) -> set[str]:
    """Return the reasons that a module of the SDK uses."""
    return {value for name, value in vars(module).items() if name.startswith("ERR_")}


@pytest.mark.parametrize("reason", AFTER_SENDING)
def test_reason_given_after_sending_is_in_doubt(reason: str) -> None:
    assert classify_reason(reason) == "in_doubt"


@pytest.mark.parametrize("reason", [name for name in SETTLE_REASONS if classify_reason(name) != "in_doubt"])
def test_reason_similar_to_certain_one_is_in_doubt(reason: str) -> None:
    similar = (reason + "_x", "x_" + reason, reason.upper(), f" {reason}", reason[:-1])

    assert {classify_reason(each) for each in similar} == {"in_doubt"}


def test_empty_reason_is_in_doubt() -> None:
    assert classify_reason("") == "in_doubt"


def test_policy_refusal_sends_nothing() -> None:
    assert classify_reason("kyt_risk_detected") == classify_reason("request_blocked_by_location") == "payload"


@pytest.mark.parametrize(
    "reason",
    [
        "insufficient_funds",
        "invalid_exact_evm_insufficient_balance",
        "invalid_exact_evm_payload_authorization_valid_before",
        "invalid_exact_evm_transaction_simulation_failed",
        "invalid_exact_evm_signature",  # the TypeScript SDK gives it for a node that does not answer
    ],
)
def test_reason_read_from_node_may_be_own_effect(reason: str) -> None:
    assert classify_reason(reason) == "chain_state"


def test_every_reason_of_installed_sdk_is_listed() -> None:
    emitted = set[str]().union(*map(list_sdk_reasons, SDK))

    assert len(emitted) > 20
    assert emitted - set(SETTLE_REASONS) == set()


def test_every_reason_has_listed_source() -> None:
    assert [name for name, reason in SETTLE_REASONS.items() if not reason.sources] == []
    assert {source for reason in SETTLE_REASONS.values() for source in reason.sources} == set(SOURCES)


def test_reason_of_closed_service_is_certain_only_about_payload() -> None:
    alone = {name: reason.certainty for name, reason in SETTLE_REASONS.items() if reason.sources == (CDP,)}

    assert {name for name, certainty in alone.items() if certainty == "chain_state"} == {
        "preflight_validation_failed"
    }


def test_page_is_rendered_from_table() -> None:
    assert (ROOT / "docs" / "facilitator-reasons.md").read_text(encoding="utf-8") == render_page()
