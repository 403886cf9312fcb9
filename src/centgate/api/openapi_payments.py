"""The operations of the OpenAPI document on which a wallet signs in to see its payments."""

from __future__ import annotations

from typing import Any

from centgate.api.openapi_components import CONNECTION_RESPONSES, header_refs, response_refs, schema_ref
from centgate.client.policy import DEFAULT_LIMIT
from centgate.client.wallet_payments import MAX_LIMIT, PAYMENTS_PATH

SIGN_IN_SCHEMES: dict[str, Any] = {
    "siwx": {
        "type": "apiKey",
        "in": "header",
        "name": "SIGN-IN-WITH-X",
        "description": "A signed message, base64 of JSON: x402's extension sign-in-with-x (CAIP-122). "
        "Without it the answer is 402 with a challenge to sign, good for five minutes and one request. "
        "Signing is free.",
        "x-agentcash-auth-kind": "siwx",
    }
}
"""The security scheme of a signed message; directories know it by its name and its mark."""

_REFERENCE = {
    "name": "transaction",
    "in": "path",
    "required": True,
    "description": "The transaction that settled the payment, or the payment's nonce.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_.~-]{1,200}$"},
}
_PAGE_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "limit",
        "in": "query",
        "description": "Payments on the page.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
    },
    {
        "name": "cursor",
        "in": "query",
        "description": "The `cursor` of the previous page. Each page takes a sign-in of its own.",
        "schema": {"type": "string"},
    },
]


def payment_paths() -> dict[str, Any]:
    """Return the paths of a wallet's payments."""
    return {
        PAYMENTS_PATH: {
            "get": _build_operation(
                "list_payments",
                "The wallet's payments",
                "Free, for the wallet that signs in: its payments, newest first, with what to do about each.",
                schema_ref("WalletPaymentPage"),
                _PAGE_PARAMETERS,
                500,
            )
        },
        PAYMENTS_PATH + "/{transaction}": {
            "get": _build_operation(
                "get_payment",
                "The wallet's payments in a transaction",
                "Free, for the wallet that signs in: all its payments in a transaction, with their stored "
                "answers. A transaction of another wallet is not found, as an unknown one.",
                schema_ref("TransactionPayments"),
                [_REFERENCE],
                404,
                500,
            ),
            "post": {
                **_build_operation(
                    "redeem_payment",
                    "An answer that was paid for",
                    "Free, for the wallet that signs in: with the body that was paid for, the answer that "
                    "the payment bought. A stored answer is repeated, one that is owed is made now. Nothing "
                    "is charged. For a buyer that lost its payment; one that has it sends it to the service.",
                    {"type": "object"},
                    [_REFERENCE],
                    404,
                    500,
                    503,
                    504,
                    headers=("PAYMENT-RESPONSE", "Idempotent-Replayed"),
                ),
                "requestBody": {
                    "required": True,
                    "description": "The same request as was paid for.",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
            },
        },
    }


def _build_operation(
    operation: str,
    summary: str,
    description: str,
    content_schema: dict[str, Any],
    parameters: list[dict[str, Any]],
    *errors: int,
    headers: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return an operation; `errors` and `headers` are those besides what all of them have."""
    return {
        "operationId": operation,
        "summary": summary,
        "description": description,
        "tags": ["payments"],
        "security": [{"siwx": []}],
        "parameters": parameters,
        "responses": {
            "200": {
                "description": description,
                "headers": header_refs("X-Request-Id", *headers),
                "content": {"application/json": {"schema": content_schema}},
            },
            **CONNECTION_RESPONSES,
            **response_refs(*sorted({400, 402, 405, 429, 502, *errors})),
        },
    }
