"""Components of the OpenAPI document that no model generates: schemas, parameters and headers."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, get_args

from centgate.envelope import CONNECTION_ERRORS, ERROR_SPECS
from centgate.errors import PaymentState, Retry
from centgate.payments.delivery_terms import DELIVERY_TERMS

_BASE64_JSON = {"type": "string", "contentEncoding": "base64", "contentMediaType": "application/json"}


def schema_ref(schema: str) -> dict[str, str]:
    """Return a reference to a schema of the document."""
    return {"$ref": f"#/components/schemas/{schema}"}


def response_name(status: int) -> str:
    """Return the name of the component that describes the errors of a status."""
    return "".join(word.capitalize() for word in HTTPStatus(status).phrase.split())


def response_refs(*statuses: int) -> dict[str, Any]:
    """Return references to the responses with errors of these statuses."""
    return {str(each): {"$ref": f"#/components/responses/{response_name(each)}"} for each in statuses}


def header_refs(*names: str) -> dict[str, Any]:
    """Return references to headers of the document."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


CONNECTION_RESPONSES = response_refs(*CONNECTION_ERRORS)
"""Responses of every operation: errors that are sent before the route is known."""


def build_error_schema() -> dict[str, Any]:
    """Return the schema of an error response."""
    string = {"type": "string"}
    payment = {
        "type": "object",
        "description": "State of the payment sent with the request.",
        "required": ["state", "charged", "retry"],
        "properties": {
            "state": {"enum": list(get_args(PaymentState))},
            "charged": {"type": "boolean"},
            "retry": {"enum": list(get_args(Retry))},
            "transaction": string,
        },
    }
    issue = {
        "type": "object",
        "required": ["path", "message"],
        "properties": {"path": string, "message": string},
    }
    return {
        "type": "object",
        "required": ["error", "requestId"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"enum": list(ERROR_SPECS)},
                    "message": string,
                    "provider": {"type": "string", "description": "The upstream that failed."},
                    "details": {
                        "type": "object",
                        "properties": {
                            "issues": {"type": "array", "items": issue},
                            "options": {"type": "array", "items": string},
                            "supported": {"type": "array", "items": string},
                            "accepts": {"type": "array", "items": schema_ref("PaymentRequirements")},
                            "extensions": {
                                "type": "object",
                                "description": "x402's extensions of a 402 that asks for a sign-in.",
                            },
                            "reason": string,
                            "payment": payment,
                        },
                    },
                },
            },
            "requestId": string,
        },
    }


INDEX_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "tagline", "links"],
    "properties": {
        "name": {"type": "string"},
        "tagline": {"type": "string"},
        "links": {"type": "object", "additionalProperties": {"type": "string", "format": "uri"}},
    },
}
CATALOGUE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "services": {
            "type": "array",
            "description": "Every service; absent with `format`.",
            "items": schema_ref("ServiceSummary"),
        },
        "tools": {
            "type": "array",
            "description": "The services as tools, with `format` only.",
            "items": {"type": "object"},
        },
    },
}
REQUIREMENTS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "x402's PaymentRequirements: payee, amount and token.",
    "required": ["scheme", "network", "asset", "amount", "payTo", "maxTimeoutSeconds", "extra"],
    "properties": {
        "scheme": {"const": "exact"},
        "network": {"type": "string", "pattern": "^eip155:[1-9][0-9]*$"},
        "asset": {"type": "string", "description": "The token's contract."},
        "amount": {"type": "string", "pattern": "^[0-9]+$", "description": "In the token's base units."},
        "payTo": {"type": "string"},
        "maxTimeoutSeconds": {
            "type": "integer",
            "description": "Seconds for which a signed payment is valid.",
        },
        "extra": {
            "type": "object",
            "description": "The token's EIP-712 name and version; `upfront`: settled before the work.",
            "required": ["name", "version", "paymentFlow"],
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "string"},
                "paymentFlow": {"const": "upfront"},
            },
        },
    },
}
PAYMENT_SIGNATURE = {
    "name": "PAYMENT-SIGNATURE",
    "in": "header",
    "required": False,
    "description": "An x402 PaymentPayload, base64 of JSON; without it the answer is 402 with the terms.",
    "schema": _BASE64_JSON,
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "With one key, a payer buys one request only once, however many payments are signed for "
    "it. Same as x402's payment-identifier: 16 to 128 letters, digits, - or _. Ignored without a payment.",
    "schema": {"type": "string"},
}
_TERMS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "accepts": {"type": "array", "items": schema_ref("PaymentRequirements")},
        "extensions": {
            "type": "object",
            "properties": {
                DELIVERY_TERMS: {
                    "type": "object",
                    "properties": {"info": schema_ref("DeliveryTerms")},
                }
            },
        },
    },
}
"""What `PAYMENT-REQUIRED` holds of Centgate's own; the rest is x402's."""
HEADERS: dict[str, Any] = {
    "PAYMENT-REQUIRED": {
        "description": "x402 terms, base64 of JSON.",
        "schema": {**_BASE64_JSON, "contentSchema": _TERMS_SCHEMA},
    },
    "PAYMENT-RESPONSE": {
        "description": "x402 settlement, base64 of JSON: the receipt.",
        "schema": _BASE64_JSON,
    },
    "X-Request-Id": {
        "description": "Request ID, also in the server's log.",
        "schema": {"type": "string"},
    },
    "Idempotent-Replayed": {
        "description": "`true` if this answer was delivered before.",
        "schema": {"type": "string"},
    },
    "Allow": {"description": "Methods that the route supports.", "schema": {"type": "string"}},
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
}
