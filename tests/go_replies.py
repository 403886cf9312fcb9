"""Replies of facilitators that use x402's Go SDK, written from its source and not recorded.

Format: `SettleResponse` in `go/types.go` (module github.com/x402-foundation/x402/go/v2): `success`,
`transaction` and `network` always, `errorReason`, `errorMessage` and `payer` unless empty. The SDK returns a
failed settlement as a `SettleError` with the same fields (`go/errors.go`), and its servers choose the status:
200 with a `SettleResponse`, or 500 with the error's text as in the SDK's examples. `eip3009.go` below is
`go/mechanisms/evm/exact/facilitator/eip3009.go`; before v2 it is read at commit 0022a09.

The hash is the one that `StubFacilitator.move` gives to the same payment, so that
`facilitator.move_then_reply(reply)` moves the money and answers with its hash.
"""

from __future__ import annotations

from typing import Any

from facilitators import Reply
from starlette.responses import JSONResponse, Response


def go_refusal(reason: str, *, message: str = "", is_sent: bool = False) -> Reply:
    """Return a reply with a failed settlement; it names a transaction if `is_sent`."""

    async def reply(body: dict[str, Any]) -> Response:
        return JSONResponse(
            _settle_response(body, reason, message, find_transaction(body) if is_sent else "")
        )

    return reply


def go_error(reason: str, message: str) -> Reply:
    """Return a reply of the SDK's example servers: status 500 with `SettleError.Error()`, without a hash.

    Source: `examples/go/facilitator/basic/main.go`.
    """

    async def reply(_body: dict[str, Any]) -> Response:
        return JSONResponse({"error": f"{reason}: {message}"}, 500)

    return reply


def go_failed_to_execute_transfer() -> Reply:
    """Return the reply after a failed `WriteContract`, perhaps sent (`eip3009.go` before v2)."""
    return go_refusal(
        "invalid_exact_evm_failed_to_execute_transfer",
        message="failed to send transaction: context deadline exceeded",
    )


def go_failed_to_get_receipt() -> Reply:
    """Return the reply after `WaitForTransactionReceipt` failed (`eip3009.go` before v2)."""
    return go_refusal(
        "invalid_exact_evm_failed_to_get_receipt",
        message="transaction receipt not found after 30 seconds",
        is_sent=True,
    )


def go_settlement_pending() -> Reply:
    """Return the reply after `WaitForTransactionReceipt` failed (`mechanisms/evm/utils.go` of v2)."""
    return go_refusal(
        "settlement_pending", message="transaction receipt not found after 30 seconds", is_sent=True
    )


def go_transaction_failed() -> Reply:
    """Return the reply for a reverted transfer, or for a hash that could not be stored for a retry."""
    return go_refusal("invalid_exact_evm_transaction_failed", is_sent=True)


def go_transfer_event_mismatch() -> Reply:
    """Return the reply for a receipt without the expected `Transfer` event (`eip3009.go` of v2)."""
    return go_refusal("invalid_exact_evm_transfer_event_mismatch", is_sent=True)


def go_transaction_state() -> Reply:
    """Return the reply for a reverted transfer (`exact/v1/facilitator/scheme.go`)."""
    return go_refusal("invalid_exact_evm_transaction_state", is_sent=True)


def go_invalid_payload_of_simulation() -> Reply:
    """Return the reply for a reverted simulation, as for a malformed payload (`eip3009.go` before v2)."""
    return go_refusal(
        "invalid_exact_evm_payload",
        message="execution reverted: FiatTokenV2: authorization is used or canceled",
    )


def find_transaction(body: dict[str, Any]) -> str:
    """Return the hash that `StubFacilitator` names for a settle call."""
    return "0x" + _authorization(body)["nonce"].lower()[2:]


def _settle_response(body: dict[str, Any], reason: str, message: str, transaction: str) -> dict[str, Any]:
    optional = {"errorReason": reason, "errorMessage": message, "payer": _authorization(body)["from"]}
    return {
        "success": False,
        **{name: value for name, value in optional.items() if value},
        "transaction": transaction,
        "network": body["paymentRequirements"]["network"],
    }


def _authorization(body: dict[str, Any]) -> dict[str, str]:
    return body["paymentPayload"]["payload"]["authorization"]
