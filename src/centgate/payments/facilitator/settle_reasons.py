"""Refusal reasons of x402 facilitators, and what each proves about the money.

A closed table: a reason that is not in it, or that is only similar to one in it, is in doubt. The SDKs were
read at the places where they return each reason. The source of CDP's service is not public. A reason that it
shares with an SDK is classified as in the SDK; a reason of its own is certain only if it is about the payload
alone, or about a check before sending. A reason that is possible before and after sending is in doubt.

Two facts hold for all of the SDKs. Their settle functions verify again and return verify's reason as their
own. And they derive the reason of a rejected broadcast from the error's text, with the same reasons as for a
failed simulation.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

ReasonCertainty = Literal["payload", "chain_state", "in_doubt"]


class ReasonSource(Struct, frozen=True):
    """A source of reasons: a library at a version, and its files."""

    name: str
    version: str
    files: str


class SettleReason(Struct, frozen=True):
    """Certainty and meaning of one reason, and the sources that name it."""

    certainty: ReasonCertainty
    meaning: str
    sources: tuple[ReasonSource, ...]


PYTHON = ReasonSource(
    "Python",
    "`x402` 2.25.0",
    "`mechanisms/evm/`: `constants.py`, `exact/facilitator.py`, `exact/eip3009_utils.py`,"
    " `exact/v1/facilitator.py`, `asset_cache.py`, `settle_receipt.py`",
)
TYPESCRIPT = ReasonSource(
    "TypeScript",
    "`@x402/evm` 2.27.0",
    "`src/exact/facilitator/`: `eip3009.ts`, `eip3009-utils.ts`, `errors.ts`;"
    " `src/exact/v1/facilitator/scheme.ts`; `src/shared/`: `settleReceipt.ts`, `verifySignature.ts`",
)
GO = ReasonSource(
    "Go",
    "`x402-foundation/x402/go/v2`",
    "`mechanisms/evm/exact/facilitator/`: `errors.go`, `eip3009.go`; `mechanisms/evm/utils.go`; `errors.go`;"
    " `facilitator.go`",
)
GO_OLD = ReasonSource(
    "Go before v2",
    "`x402-foundation/x402/go` at 0022a09",
    "`mechanisms/evm/exact/facilitator/`: `eip3009.go`, `eip3009_helpers.go`",
)
GO_V1 = ReasonSource(
    "Go, protocol v1",
    "`x402-foundation/x402/go` at 0022a09",
    "`mechanisms/evm/exact/v1/facilitator/`: `errors.go`, `scheme.go`",
)
CDP = ReasonSource(
    "CDP",
    "`cdp-sdk` 1.51.0 (Python)",
    "`cdp/openapi_client/models/`: `x402_settle_error_reason.py`, `x402_verify_invalid_reason.py`",
)
SPECIFICATION = ReasonSource("specification", "x402 v2", "`specs/x402-specification-v2.md`, section 9")
MIDDLEWARE = ReasonSource(
    "Python middleware", "`x402` 2.25.0", "`http/middleware/fastapi.py`, `http/middleware/flask.py`"
)
SOURCES = (PYTHON, TYPESCRIPT, GO, GO_OLD, GO_V1, CDP, SPECIFICATION, MIDDLEWARE)


def classify_reason(reason: str) -> ReasonCertainty:
    """Return the certainty of a refusal with this reason; unknown reasons are in doubt."""
    entry = SETTLE_REASONS.get(reason)
    return entry.certainty if entry else "in_doubt"


def _payload(meaning: str, *sources: ReasonSource) -> SettleReason:
    return SettleReason("payload", meaning, sources)


def _chain_state(meaning: str, *sources: ReasonSource) -> SettleReason:
    return SettleReason("chain_state", meaning, sources)


def _in_doubt(meaning: str, *sources: ReasonSource) -> SettleReason:
    return SettleReason("in_doubt", meaning, sources)


SETTLE_REASONS: Mapping[str, SettleReason] = MappingProxyType(
    {
        # scheme, network and version
        "invalid_scheme": _payload("The scheme is not supported.", SPECIFICATION, CDP),
        "unsupported_scheme": _payload("The scheme is not `exact`.", SPECIFICATION, PYTHON),
        "invalid_exact_evm_scheme": _payload("The scheme is not `exact`.", TYPESCRIPT, GO, CDP),
        "invalid_exact_evm_unsupported_scheme": _payload("The scheme is not `exact`.", GO_V1, CDP),
        "unsupported_payload_type": _payload("The payload is of no kind that `exact` has.", GO, CDP),
        "invalid_network": _payload("The network is not supported.", SPECIFICATION, CDP),
        "network_mismatch": _payload("The payload is for another network than the terms.", PYTHON),
        "invalid_exact_evm_network_mismatch": _payload(
            "The payload is for another network than the terms.", TYPESCRIPT, GO, GO_V1, CDP
        ),
        "no_facilitator_for_network": _payload("No scheme is registered for the network.", GO),
        "invalid_exact_evm_failed_to_get_network_config": _payload(
            "The network's name has no chain id.", PYTHON, GO, GO_V1, CDP
        ),
        "invalid_x402_version": _payload("The protocol version is not supported.", SPECIFICATION, CDP),
        "invalid_version": _payload("The protocol version is missing or unknown.", GO),
        # the form of the payload and of the terms
        "invalid_payload": _payload("The payload is malformed.", SPECIFICATION, CDP),
        "invalid_v1_payload": _payload("The payload is malformed.", GO),
        "invalid_v2_payload": _payload("The payload is malformed.", GO),
        "invalid_payment_requirements": _payload("The terms are malformed.", SPECIFICATION, CDP),
        "invalid_v1_requirements": _payload("The terms are malformed.", GO),
        "invalid_v2_requirements": _payload("The terms are malformed.", GO),
        "invalid_exact_evm_required_amount": _payload(
            "The amount of the terms is no number.", GO, GO_V1, CDP
        ),
        "invalid_exact_evm_extra_field": _payload("`extra` of the terms is malformed.", GO_V1, CDP),
        "missing_eip712_domain": _payload("The terms lack the token's name or version.", PYTHON),
        "invalid_exact_evm_missing_eip712_domain": _payload(
            "The terms lack the token's name or version.", TYPESCRIPT, GO, GO_V1, CDP
        ),
        "invalid_exact_evm_failed_to_get_asset_info": _payload(
            "The asset is not configured. Only an early Go facilitator returned it.", PYTHON
        ),
        "invalid_bazaar_extension": _payload("The discovery extension is malformed.", CDP),
        # recipient and amount
        "invalid_exact_evm_recipient_mismatch": _payload(
            "The payment is to another recipient.", TYPESCRIPT, GO, CDP
        ),
        "invalid_exact_evm_payload_recipient_mismatch": _payload(
            "The payment is to another recipient.", SPECIFICATION, PYTHON, GO_V1, CDP
        ),
        "self_send_not_allowed": _payload("Payer and recipient are the same.", CDP),
        "invalid_exact_evm_payload_authorization_value_mismatch": _payload(
            "The payment is of another amount.", SPECIFICATION, PYTHON, TYPESCRIPT, GO, GO_V1, CDP
        ),
        "invalid_exact_evm_authorization_value": _payload(
            "The amount is wrong or no number.", TYPESCRIPT, GO, CDP
        ),
        "invalid_exact_evm_payload_authorization_value": _payload(
            "The amount is wrong or no number.", GO_V1, CDP
        ),
        "invalid_exact_evm_payload_authorization_value_too_low": _payload("The amount is too low.", CDP),
        "amount_too_low": _payload("The amount is too low.", CDP),
        "invalid_amount": _payload("The amount is no amount.", CDP),
        # the form of the signature
        "invalid_exact_evm_payload_missing_signature": _payload("There is no signature.", GO, GO_V1, CDP),
        "invalid_exact_evm_signature_format": _payload("The signature is not hexadecimal.", GO, GO_V1, CDP),
        "invalid_exact_evm_failed_to_parse_signature": _payload(
            "The ERC-6492 wrapper is malformed.", TYPESCRIPT, GO, GO_V1, CDP
        ),
        "invalid_exact_evm_payload_authorization_typed_data_message": _payload(
            "The authorization cannot be hashed.", CDP
        ),
        "invalid_exact_evm_payload_signature_address": _payload("Another address has signed.", CDP),
        # policy
        "kyt_risk_detected": _payload("Policy: an address is considered a risk.", CDP),
        "invalid_exact_evm_payload_authorization_from_address_kyt": _payload(
            "Policy: the payer is considered a risk.", CDP
        ),
        "invalid_exact_evm_payload_authorization_to_address_kyt": _payload(
            "Policy: the recipient is considered a risk.", CDP
        ),
        "request_blocked_by_location": _payload("Policy: not from this location.", CDP),
        # the signature, checked with a node
        "invalid_exact_evm_signature": _chain_state(
            "The signature is wrong, or a contract wallet or a simulation refused it now. TypeScript says it"
            " too when the node did not answer about the payer's code.",
            TYPESCRIPT,
            GO,
            CDP,
        ),
        "invalid_exact_evm_payload_signature": _chain_state(
            "The signature is wrong, or a contract wallet or a simulation refused it now.",
            SPECIFICATION,
            PYTHON,
            GO_V1,
            CDP,
        ),
        "invalid_exact_evm_failed_to_verify_signature": _chain_state(
            "The check of the signature failed, for example because the node did not answer.",
            PYTHON,
            GO,
            GO_V1,
            CDP,
        ),
        "invalid_exact_evm_payload_undeployed_smart_wallet": _chain_state(
            "The payer is a contract wallet that does not exist yet.", PYTHON, GO, GO_V1, CDP
        ),
        "invalid_exact_evm_failed_to_check_deployment": _chain_state(
            "The node did not answer about the payer's code.", GO, GO_V1, CDP
        ),
        "eip6492_factory_not_allowed": _chain_state(
            "The payer's contract wallet does not exist yet, and its factory is not on the allowlist."
            " TypeScript says it too when the node did not answer about the payer's code.",
            PYTHON,
            TYPESCRIPT,
            GO,
        ),
        # the clock
        "invalid_exact_evm_payload_authorization_valid_before": _chain_state(
            "The authorization expires in less than 6 seconds, or has expired.",
            SPECIFICATION,
            PYTHON,
            TYPESCRIPT,
            GO,
            GO_V1,
            CDP,
        ),
        "invalid_exact_evm_payload_authorization_valid_after": _chain_state(
            "The authorization is not valid yet.", SPECIFICATION, PYTHON, TYPESCRIPT, GO, GO_V1, CDP
        ),
        # balance, token and simulation
        "insufficient_funds": _chain_state("The payer's balance is too low.", SPECIFICATION, CDP),
        "invalid_exact_evm_insufficient_funds": _chain_state("The payer's balance is too low.", GO_V1, CDP),
        "invalid_exact_evm_insufficient_balance": _chain_state(
            "The payer's balance is too low. TypeScript can say it too when the facilitator lacks gas.",
            PYTHON,
            TYPESCRIPT,
            GO,
            CDP,
        ),
        "invalid_exact_evm_failed_to_get_balance": _chain_state(
            "The node did not answer about the balance.", GO, CDP
        ),
        "invalid_exact_evm_failed_to_check_nonce": _chain_state(
            "The node did not answer about the nonce.", GO, CDP
        ),
        "asset_not_deployed_contract": _chain_state(
            "The node knows no contract at the asset's address.", PYTHON, TYPESCRIPT, GO
        ),
        "invalid_exact_evm_token_name_mismatch": _chain_state(
            "A simulation failed; the token has another name than the terms.", PYTHON, TYPESCRIPT, GO, CDP
        ),
        "invalid_exact_evm_token_version_mismatch": _chain_state(
            "A simulation failed; the token has another version than the terms.", PYTHON, TYPESCRIPT, GO, CDP
        ),
        "invalid_exact_evm_eip3009_not_supported": _chain_state(
            "A simulation failed; the token did not answer about the nonce.", PYTHON, TYPESCRIPT, GO, CDP
        ),
        "invalid_exact_evm_transaction_simulation_failed": _chain_state(
            "A simulation failed for another cause.", PYTHON, TYPESCRIPT, GO, CDP
        ),
        "invalid_exact_evm_verification_failed": _chain_state(
            "The verification broke off, for example because the node did not answer.", GO, GO_V1, CDP
        ),
        "preflight_validation_failed": _chain_state("A check before sending failed.", CDP),
        # possible after sending
        "invalid_exact_evm_payload": _in_doubt(
            "The payload is malformed. Go says it too after the transaction to the payer's factory; before v2"
            " it says it of every failed simulation, also for a used nonce.",
            GO,
            GO_OLD,
            GO_V1,
            CDP,
        ),
        "settlement_pending": _in_doubt(
            "The transfer was sent and its receipt not seen yet; comes with the hash.",
            PYTHON,
            TYPESCRIPT,
            GO,
            CDP,
        ),
        "invalid_exact_evm_nonce_already_used": _in_doubt(
            "The authorization was used or canceled: by an earlier sending of it, perhaps our own.",
            PYTHON,
            TYPESCRIPT,
            GO,
            CDP,
        ),
        "transaction_failed": _in_doubt(
            "The transfer was reverted (with a hash); or its broadcast failed in unknown words, or its hash"
            " could not be stored for a retry.",
            PYTHON,
        ),
        "invalid_exact_evm_transaction_failed": _in_doubt(
            "The transfer was reverted (with a hash); or its broadcast failed in unknown words, or its hash"
            " could not be stored for a retry.",
            TYPESCRIPT,
            GO,
            GO_V1,
            CDP,
        ),
        "invalid_exact_evm_failed_to_execute_transfer": _in_doubt(
            "The broadcast failed; the node may have taken the transfer all the same.", GO, GO_OLD, CDP
        ),
        "invalid_exact_evm_failed_to_get_receipt": _in_doubt(
            "The transfer was sent and its receipt not seen.", GO, GO_OLD, GO_V1, CDP
        ),
        "invalid_exact_evm_transfer_event_mismatch": _in_doubt(
            "The transfer was mined, without the expected event.", PYTHON, TYPESCRIPT, GO
        ),
        "invalid_transaction_state": _in_doubt("The transfer was reverted.", SPECIFICATION, TYPESCRIPT),
        "invalid_exact_evm_transaction_state": _in_doubt("The transfer was reverted.", GO_V1, CDP),
        "smart_wallet_deployment_failed": _in_doubt(
            "The transaction to the payer's factory was sent, and failed or was not seen mined. Its data are"
            " the payer's, in Go before v2 its address too, so it may hold the transfer itself.",
            PYTHON,
            TYPESCRIPT,
            GO,
            GO_OLD,
            GO_V1,
            CDP,
        ),
        "settle_exact_evm_transaction_confirmation_timed_out": _in_doubt(
            "The transfer was sent and not confirmed in time.", CDP
        ),
        "settle_exact_failed_onchain": _in_doubt("The transfer failed on the chain.", CDP),
        "settle_exact_node_failure": _in_doubt("The node failed, before or after sending.", CDP),
        "node_failure": _in_doubt("The node failed, before or after sending.", CDP),
        "duplicate_settlement": _in_doubt("The same payment is or was being settled.", CDP),
        "unexpected_settle_error": _in_doubt("Anything may have happened.", SPECIFICATION, MIDDLEWARE),
        "unexpected_verify_error": _in_doubt("Anything may have happened.", SPECIFICATION),
        "unknown_error": _in_doubt("Anything may have happened.", CDP),
    }
)
