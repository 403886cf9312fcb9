"""Break the product in known ways, one at a time, and count the steps until the model of money finds it.

    PYTHONPATH=tests:tests/payments .venv/bin/python bench/break_money.py [--steps 20000]

Ends with 1 where the model does not find one of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import Phase
from money_model import Violation, open_stage
from rich.console import Console
from rich.table import Table
from test_money_model import run_model

from centgate.payments import authorization, claims, facilitator, onchain_status, settlement
from centgate.payments.authorization import Payment, PaymentKey
from centgate.payments.chain_client import ChainClient
from centgate.payments.facilitator import (
    SettlementConfirmed,
    SettlementNotSent,
    SettlementOutcome,
    SettlementRefused,
    SettlementUnknown,
)
from centgate.payments.journal import Journal
from centgate.payments.onchain_status import PaymentQuery
from centgate.payments.payment_node import PaymentNode
from centgate.payments.settle_reasons import ReasonCertainty, classify_reason

Defect = Callable[[], Any]
"""A context in which the product is broken."""


def believe_used_nonce() -> Any:
    """A used nonce is taken for a payment to us."""

    async def pays_us(*_: Any) -> bool:
        return True

    return patch.object(onchain_status, "_is_payment", pays_us)


def believe_facilitator_about_used_nonce() -> Any:
    """A facilitator's word that the nonce is used settles a payment that was presented before."""
    resettle = settlement.Settler._resettle  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    async def believing(self: Any, claim: Any) -> SettlementOutcome:
        result = await resettle(self, claim)
        if isinstance(result, SettlementUnknown) and result.reason == "invalid_exact_evm_nonce_already_used":
            return SettlementConfirmed(
                facilitator.build_settle_response(claim.key, claim.amount, "0x" + "ab" * 32)
            )
        return result

    return patch.object(settlement.Settler, "_resettle", believing)


def forget_claim_block() -> Any:
    """Transfers count whenever they were mined."""

    async def first_block(_node: PaymentNode, _query: PaymentQuery, _latest: int) -> int:
        return 0

    return patch.object(onchain_status, "_first_block", first_block)


def believe_prefixes() -> Any:
    """Reasons are certain by their prefix."""

    def classify_reason(reason: str) -> ReasonCertainty:
        return "payload" if reason.startswith(("invalid_", "insufficient_")) else "in_doubt"

    return patch.object(facilitator, "classify_reason", classify_reason)


def believe_hashed_refusals() -> Any:
    """A certain reason is believed although it comes with a transaction."""
    interpret = facilitator.interpret_response

    def believing(payment: Payment, status: int, content: bytes) -> SettlementOutcome:
        result = interpret(payment, status, content)
        if isinstance(result, SettlementUnknown) and result.reason:
            certainty = classify_reason(result.reason)
            return result if certainty == "in_doubt" else SettlementRefused(result.reason, certainty)
        return result

    return patch.object(facilitator, "interpret_response", believing)


def believe_one_node() -> Any:
    """Make one of three public nodes enough to be believed."""
    init = ChainClient.__init__

    def with_quorum_of_one(self: ChainClient, session: Any, nodes: Any) -> None:
        init(self, session, replace(nodes, quorum=1))

    return patch.object(ChainClient, "__init__", with_quorum_of_one)


def take_status_for_unsent(status: int) -> Defect:
    """A status is taken for a request that was not read."""
    statuses = facilitator.NOT_SENT_STATUSES | {status}
    return lambda: patch.object(facilitator, "NOT_SENT_STATUSES", statuses)


def present_other_bytes() -> Any:
    """A payment is presented again with another address."""
    rebuild_payment = authorization.rebuild_payment

    def with_other_address(key: PaymentKey, terms: Any, signed: str) -> Payment:
        return rebuild_payment(key, terms, signed.replace("https://seller", "https://shop"))

    return patch.object(settlement, "rebuild_payment", with_other_address)


def present_what_came() -> Any:
    """The payment of whoever asks is presented in place of the one that was presented first."""
    again = claims._build_claim  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def first_again(row: Any, worker: Any, *answer: Any) -> Any:
        claim = again(row, worker, *answer)
        claim.outcome_unknown = False
        return claim

    return patch.object(claims, "_build_claim", first_again)


def believe_any_reverted_transaction() -> Any:
    """A reverted transaction refuses a payment, whichever transaction it is."""

    async def holds_nonce(*_: Any) -> bool:
        return True

    return patch.object(onchain_status, "_holds_nonce", holds_nonce)


def look_at_nonce_before() -> Any:
    """A reverted transaction refuses a payment whose nonce was unused before."""
    is_used = onchain_status._is_used  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    status = onchain_status.read_transaction_status

    async def without_look(node: PaymentNode, transaction: str, key: PaymentKey) -> Any:
        found = await status(node, transaction, key)
        receipt = await node.call("eth_getTransactionReceipt", transaction)
        if found != "unknown" or receipt is None or int(receipt["status"], 16) == 1:
            return found
        spends = await onchain_status._holds_nonce(node, transaction, key)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        return "reverted" if spends and await is_used(node, key, receipt["blockNumber"]) else found

    return patch.object(onchain_status, "read_transaction_status", without_look)


def lower_claim_block() -> Any:
    """A refused payment that comes again forgets the block of its claim before."""
    first_presentation = claims._first_submission_values  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def forgetting(attempt: Any, row: Any) -> dict[str, Any]:
        return {} if row["state"] == "refused" else first_presentation(attempt, row)

    return patch.object(claims, "_first_submission_values", forgetting)


def refuse_what_is_not_settled() -> Any:
    """A refusal of a second presentation is believed."""

    def refused(message: str) -> SettlementOutcome:
        prefix = "the facilitator refused a payment that is still open: "
        if message.startswith(prefix):
            return SettlementRefused(message.removeprefix(prefix))
        return SettlementUnknown("error", message)

    return patch.object(settlement, "_unknown_outcome", refused)


def believe_refusals_without_chain() -> Any:
    """A refusal because of the chain's state is believed without a look at the chain."""

    async def check(_self: Any, _claim: Any, refusal: SettlementRefused) -> SettlementOutcome:
        return refusal

    return patch.object(settlement.Settler, "_check_refusal", check)


def present_open_to_second() -> Any:
    """A timeout of the first facilitator is taken for a connection that was not made."""
    settle = facilitator.FacilitatorClient.settle

    async def settle_or_unsent(self: Any, payment: Payment, **options: Any) -> SettlementOutcome:
        result = await settle(self, payment, **options)
        if isinstance(result, SettlementUnknown) and result.kind == "timeout":
            return SettlementNotSent("timeout", result.message, "connection")
        return result

    return patch.object(facilitator.FacilitatorClient, "settle", settle_or_unsent)


def forget_second() -> Any:
    """The second facilitator is called without a word in the journal."""

    async def record_fallback(_self: Any, claim: Any, name: str, _reason: str) -> None:
        claim.facilitator = name

    return patch.object(Journal, "record_fallback", record_fallback)


def present_again_to_first() -> Any:
    """An open payment is presented again to the first facilitator, whichever has it."""
    build_claim = claims._build_claim  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]

    def build(*given: Any) -> Any:
        claim = build_claim(*given)
        claim.facilitator = None
        return claim

    return patch.object(claims, "_build_claim", build)


def present_refused_to_second() -> Any:
    """A payment that the first facilitator has refused may go to the second."""

    def forget(_attempt: Any, _row: Any) -> None:
        return None

    return patch.object(claims, "_earlier_facilitator", forget)


DEFECTS: dict[str, Defect] = {
    "used nonce is paid, by the chain": believe_used_nonce,
    "used nonce is paid, by the facilitator": believe_facilitator_about_used_nonce,
    "no claim block": forget_claim_block,
    "reasons are certain by prefix": believe_prefixes,
    "refusal with a hash is certain": believe_hashed_refusals,
    "one public node is believed": believe_one_node,
    "400 is unsent": take_status_for_unsent(400),
    "500 is unsent": take_status_for_unsent(500),
    "other bytes are presented again": present_other_bytes,
    "doubt is forgotten": present_what_came,
    "second refusal is believed": refuse_what_is_not_settled,
    "chain-state refusal is believed": believe_refusals_without_chain,
    "any reverted transaction refuses": believe_any_reverted_transaction,
    "nonce is not looked at after the receipt": look_at_nonce_before,
    "refused payments lower their claim block": lower_claim_block,
    "second facilitator gets open payments": present_open_to_second,
    "second facilitator is not in the journal": forget_second,
    "first facilitator gets what the second has": present_again_to_first,
    "second facilitator gets refused payments": present_refused_to_second,
}


@contextmanager
def broken(defect: Defect) -> Generator[None]:
    with defect():
        yield


def main() -> None:
    """Break the product in each way."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    reader.add_argument("--steps", type=int, default=20_000)
    reader.add_argument("--only", default="")
    asked = reader.parse_args()
    table = Table("defect", "found after steps", "violation")
    missed = 0
    for name, defect in DEFECTS.items():
        if asked.only not in name:
            continue
        steps, violation = find(defect, asked.steps)
        missed += violation is None
        table.add_row(name, str(steps), violation or "not found")
        print(name, steps, violation, flush=True)  # noqa: T201 - it takes minutes
    Console().print(table)
    sys.exit(1 if missed else 0)


def find(defect: Defect, steps: int) -> tuple[int, str | None]:
    """Return how many steps the model made, and what it found."""
    with tempfile.TemporaryDirectory() as folder, open_stage(Path(folder)) as stage, broken(defect):
        try:
            run_model(stage, steps, derandomize=True, phases=(Phase.generate,))
        except Violation as violation:
            return stage.statistics.steps, str(violation)[:60]
        except BaseException as error:  # noqa: BLE001 - broken products may fail in other ways
            return stage.statistics.steps, f"{type(error).__name__}: {error}"[:60]
    return stage.statistics.steps, None


if __name__ == "__main__":
    main()
