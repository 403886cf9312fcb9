"""Defect injection: apply known defects one by one, and count the steps until the money model detects each.

    PYTHONPATH=tests:tests/payments .venv/bin/python bench/defect_injection.py [--steps 20000]

Exits with 1 if the model misses a defect.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import Phase
from money_model import Violation, open_stage
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table
from test_money_model import run_model

from centgate.payments import authorization, settlement
from centgate.payments.authorization import Payment
from centgate.payments.chain import onchain_status
from centgate.payments.chain.chain_client import ChainClient
from centgate.payments.chain.onchain_status import PaymentQuery
from centgate.payments.chain.payment_node import PaymentNode
from centgate.payments.facilitator import facilitator
from centgate.payments.facilitator.facilitator import (
    SettlementConfirmed,
    SettlementNotSent,
    SettlementOutcome,
    SettlementRefused,
    SettlementUnknown,
)
from centgate.payments.facilitator.settle_reasons import ReasonCertainty, classify_reason
from centgate.payments.journal import claims
from centgate.payments.journal.journal import Journal
from centgate.payments.payment_key import PaymentKey

Defect = Callable[[], Any]
"""Function that returns a context manager, inside of which the defect is active."""


def accept_any_nonce_use() -> Any:
    """Count every on-chain use of a nonce as a payment to the seller."""

    async def is_payment(*_: Any) -> bool:
        return True

    return patch.object(onchain_status, "_is_payment", is_payment)


def accept_nonce_used_reason() -> Any:
    """Confirm a resubmitted payment if the facilitator reports its nonce as used."""
    resubmit = settlement.Settler._resubmit  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    async def resubmit_with_defect(self: Any, claim: Any) -> SettlementOutcome:
        result = await resubmit(self, claim)
        if isinstance(result, SettlementUnknown) and result.reason == "invalid_exact_evm_nonce_already_used":
            return SettlementConfirmed(
                facilitator.build_settle_response(claim.key, claim.amount, "0x" + "ab" * 32)
            )
        return result

    return patch.object(settlement.Settler, "_resubmit", resubmit_with_defect)


def ignore_claim_block() -> Any:
    """Count transfers in any block, also in blocks before the claim."""

    async def first_block(_node: PaymentNode, _query: PaymentQuery, _latest: int) -> int:
        return 0

    return patch.object(onchain_status, "_first_block", first_block)


def classify_reasons_by_prefix() -> Any:
    """Classify refusal reasons as certain by their prefix."""

    def classify_reason(reason: str) -> ReasonCertainty:
        return "payload" if reason.startswith(("invalid_", "insufficient_")) else "in_doubt"

    return patch.object(facilitator, "classify_reason", classify_reason)


def accept_refusal_with_transaction() -> Any:
    """Accept a refusal with a certain reason although the response names a transaction."""
    interpret_response = facilitator.interpret_response

    def interpret_with_defect(payment: Payment, status: int, content: bytes) -> SettlementOutcome:
        result = interpret_response(payment, status, content)
        if isinstance(result, SettlementUnknown) and result.reason:
            certainty = classify_reason(result.reason)
            return result if certainty == "in_doubt" else SettlementRefused(result.reason, certainty)
        return result

    return patch.object(facilitator, "interpret_response", interpret_with_defect)


def lower_node_quorum() -> Any:
    """Accept the response of one of three public nodes: a quorum of 1."""
    init = ChainClient.__init__

    def init_with_defect(self: ChainClient, session: Any, nodes: Any) -> None:
        init(self, session, replace(nodes, quorum=1))

    return patch.object(ChainClient, "__init__", init_with_defect)


def treat_status_as_not_sent(status: int) -> Defect:
    """Treat an HTTP status of the facilitator as proof that it did not read the request."""
    statuses = facilitator.NOT_SENT_STATUSES | {status}
    return lambda: patch.object(facilitator, "NOT_SENT_STATUSES", statuses)


def change_resubmitted_payment() -> Any:
    """Resubmit a payment with another resource URL."""
    rebuild_payment = authorization.rebuild_payment

    def rebuild_with_defect(key: PaymentKey, terms: Any, signed: str) -> Payment:
        return rebuild_payment(key, terms, signed.replace("https://seller", "https://shop"))

    return patch.object(settlement, "rebuild_payment", rebuild_with_defect)


def clear_unknown_outcome() -> Any:
    """Treat a payment with an unknown outcome as new: submit the request's data, not the stored data."""
    build_claim = claims._build_claim  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def build_with_defect(row: Any, worker: Any, *answer: Any) -> Any:
        claim = build_claim(row, worker, *answer)
        claim.outcome_unknown = False
        return claim

    return patch.object(claims, "_build_claim", build_with_defect)


def accept_any_reverted_transaction() -> Any:
    """Refuse a payment because of a reverted transaction that does not contain its nonce."""

    async def holds_nonce(*_: Any) -> bool:
        return True

    return patch.object(onchain_status, "_holds_nonce", holds_nonce)


def skip_nonce_check_after_revert() -> Any:
    """Refuse a payment after its transaction was reverted, although its nonce is used in that block."""
    is_used = onchain_status._is_used  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    read_transaction_status = onchain_status.read_transaction_status

    async def read_with_defect(node: PaymentNode, transaction: str, key: PaymentKey) -> Any:
        status = await read_transaction_status(node, transaction, key)
        receipt = await node.call("eth_getTransactionReceipt", transaction)
        if status != "unknown" or receipt is None or int(receipt["status"], 16) == 1:
            return status
        holds_nonce = await onchain_status._holds_nonce(node, transaction, key)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return "reverted" if holds_nonce and await is_used(node, key, receipt["blockNumber"]) else status

    return patch.object(onchain_status, "read_transaction_status", read_with_defect)


def lower_claim_block() -> Any:
    """Replace the claim block of a refused payment by the one of its next claim, even if that is lower."""
    first_submission_values = claims._first_submission_values  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def get_values_with_defect(attempt: Any, row: Any) -> dict[str, Any]:
        return {} if row["state"] == "refused" else first_submission_values(attempt, row)

    return patch.object(claims, "_first_submission_values", get_values_with_defect)


def accept_refused_resubmission() -> Any:
    """Refuse an open payment if the facilitator refuses its second submission."""

    def build_outcome(message: str) -> SettlementOutcome:
        prefix = "the facilitator refused a payment that is still open: "
        if message.startswith(prefix):
            return SettlementRefused(message.removeprefix(prefix))
        return SettlementUnknown("error", message)

    return patch.object(settlement, "_unknown_outcome", build_outcome)


def skip_refusal_check() -> Any:
    """Accept a refusal because of the chain's state without a query to the chain."""

    async def check_refusal(_self: Any, _claim: Any, refusal: SettlementRefused) -> SettlementOutcome:
        return refusal

    return patch.object(settlement.Settler, "_check_refusal", check_refusal)


def treat_timeout_as_not_sent() -> Any:
    """Treat a timeout of the first facilitator as a failed connection, which permits the second one."""
    settle = facilitator.FacilitatorClient.settle

    async def settle_with_defect(self: Any, payment: Payment, **options: Any) -> SettlementOutcome:
        result = await settle(self, payment, **options)
        if isinstance(result, SettlementUnknown) and result.kind == "timeout":
            return SettlementNotSent("timeout", result.message, "connection")
        return result

    return patch.object(facilitator.FacilitatorClient, "settle", settle_with_defect)


def skip_fallback_record() -> Any:
    """Call the second facilitator without recording it in the journal."""

    async def record_fallback(_self: Any, claim: Any, name: str, _reason: str, *, may_be_sent: bool) -> None:
        claim.facilitator, claim.presentations = name, claim.presentations + may_be_sent

    return patch.object(Journal, "record_fallback", record_fallback)


def clear_claim_facilitator() -> Any:
    """Resubmit an open payment to the first facilitator, even if the second one received it."""
    build_claim = claims._build_claim  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def build_with_defect(*arguments: Any) -> Any:
        claim = build_claim(*arguments)
        claim.facilitator = None
        return claim

    return patch.object(claims, "_build_claim", build_with_defect)


def clear_earlier_facilitator() -> Any:
    """Permit the second facilitator for a payment that the first one refused."""

    def earlier_facilitator(_attempt: Any, _row: Any) -> None:
        return None

    return patch.object(claims, "_earlier_facilitator", earlier_facilitator)


DEFECTS: dict[str, Defect] = {
    "any use of a nonce counts as paid": accept_any_nonce_use,
    "a nonce that the facilitator reports as used counts as paid": accept_nonce_used_reason,
    "claim block is ignored": ignore_claim_block,
    "reasons are certain by prefix": classify_reasons_by_prefix,
    "refusal with a transaction is certain": accept_refusal_with_transaction,
    "quorum of one public node": lower_node_quorum,
    "status 400 counts as not sent": treat_status_as_not_sent(400),
    "status 500 counts as not sent": treat_status_as_not_sent(500),
    "resubmitted payment is changed": change_resubmitted_payment,
    "unknown outcome is cleared": clear_unknown_outcome,
    "refusal of a resubmission is accepted": accept_refused_resubmission,
    "chain-state refusal is not checked": skip_refusal_check,
    "any reverted transaction refuses a payment": accept_any_reverted_transaction,
    "nonce is not checked after a revert": skip_nonce_check_after_revert,
    "refused payments lower their claim block": lower_claim_block,
    "second facilitator gets open payments": treat_timeout_as_not_sent,
    "second facilitator is not recorded": skip_fallback_record,
    "first facilitator gets payments of the second": clear_claim_facilitator,
    "second facilitator gets refused payments": clear_earlier_facilitator,
}


@contextmanager
def apply_defect(defect: Defect) -> Generator[None]:
    """Apply a defect until the `with` ends."""
    with defect():
        yield


def main() -> None:
    """Apply each defect and print a table of the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    table = Table("defect", "found after steps", "violation")
    missed = 0
    for name, defect in DEFECTS.items():
        if options.only not in name:
            continue
        steps, violation = search_violation(defect, options.steps)
        missed += violation is None
        table.add_row(name, str(steps), violation or "not found")
        print(name, steps, violation, flush=True)  # noqa: T201 - the table follows only after minutes
    Console().print(table)
    sys.exit(1 if missed else 0)


def search_violation(defect: Defect, steps: int) -> tuple[int, str | None]:
    """Run the model with a defect; return the number of its steps, and the violation or None."""
    with tempfile.TemporaryDirectory() as folder, open_stage(Path(folder)) as stage, apply_defect(defect):
        try:
            run_model(stage, steps, derandomize=True, phases=(Phase.generate,))
        except Violation as violation:
            return stage.statistics.steps, str(violation)[:60]
        except BaseException as error:  # noqa: BLE001 - a defect may also cause other errors
            return stage.statistics.steps, f"{type(error).__name__}: {error}"[:60]
    return stage.statistics.steps, None


if __name__ == "__main__":
    main()
