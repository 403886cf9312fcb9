"""JSON envelopes of responses and errors, and the HTTP status of each error code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import orjson

from centgate.errors import CentgateError

RoleName = Literal["primary", "secondary", "enrichment", "fallback"]
Status = Literal["ok", "error", "timeout", "rate_limited", "no_data", "unconfigured", "skipped"]


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """One row of the error table: HTTP status, cause, if it is charged, and the client's next step."""

    status: int
    when: str
    charged: Literal["no", "yes", "redeemable"]
    action: str


_FIX_INPUT = "Fix the input; do not retry unchanged."
_BACK_OFF = "Retry with backoff, with the same payment."
ERROR_SPECS: Mapping[str, ErrorSpec] = {
    "validation_error": ErrorSpec(
        400, "The body is missing, malformed or fails the schema.", "no", _FIX_INPUT
    ),
    "unsupported_options": ErrorSpec(
        400, "The request asks for options that the price does not include.", "no", _FIX_INPUT
    ),
    "payment_required": ErrorSpec(
        402, "No valid payment came with the request.", "no", "Sign the terms and send the request again."
    ),
    "payment_not_configured": ErrorSpec(
        402, "This deployment takes no payments.", "no", "Use another deployment."
    ),
    "not_found": ErrorSpec(
        404, "No such route or service.", "no", "See GET /services and GET /openapi.json."
    ),
    "no_data": ErrorSpec(404, "The sources have no data about it: a final answer.", "yes", "Do not retry."),
    "method_not_allowed": ErrorSpec(405, "The route has other methods.", "no", "Use one named in Allow."),
    "payment_conflict": ErrorSpec(
        409, "The idempotency key belongs to another request.", "no", "Use a new key for a new request."
    ),
    "rate_limited": ErrorSpec(
        429,
        "Too much unpaid or refused work came from this address or payer.",
        "no",
        "Wait for Retry-After, then send the same request, with the same payment if one came with it.",
    ),
    "provider_rate_limited": ErrorSpec(429, "An upstream's rate limit is reached.", "redeemable", _BACK_OFF),
    "internal_error": ErrorSpec(
        500, "An internal error occurred.", "redeemable", "Retry once, then report the requestId."
    ),
    "provider_error": ErrorSpec(502, "An upstream failed.", "redeemable", _BACK_OFF),
    "provider_unconfigured": ErrorSpec(
        503,
        "A needed upstream is not configured here.",
        "no",
        "Treat the service as down on this deployment.",
    ),
    "provider_timeout": ErrorSpec(504, "An upstream did not answer in time.", "redeemable", _BACK_OFF),
}
"""All error codes. `redeemable`: if money was taken, the same payment buys the answer later."""
CONNECTION_ERRORS: Mapping[int, tuple[str, str]] = {
    408: ("validation_error", "The headers or the body did not arrive in time."),
    431: ("validation_error", "The headers are too large or too many."),
    503: ("internal_error", "Too many connections are open."),
}
"""Code and cause of the errors that `connection_limits.py` sends, with their own status, before any route."""


_OPTIONAL_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
PROVIDER_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["name", "status"],
    "properties": {
        "name": {"type": "string", "description": "The upstream source."},
        "status": {"enum": list(get_args(Status))},
        "role": {"enum": list(get_args(RoleName))},
        "fetchedAt": {"type": "string", "format": "date-time", "description": "Time of the request to it."},
        "selection": {"type": "object", "description": "pool-snapshot: how the pair was chosen."},
        "list": {"type": "string", "description": "phishing-check: the source of the first list."},
        "version": {**_OPTIONAL_TEXT, "description": "phishing-check: that list's version."},
        "date": {**_OPTIONAL_TEXT, "description": "phishing-check: that list's date."},
    },
}
"""JSON Schema of one entry in `providers`."""
_FAILURE_STATUSES = ("error", "timeout", "rate_limited")


@dataclass(frozen=True, slots=True)
class ServiceResult:
    """Result of a service without the envelope: `data` as JSON, and the status of each provider."""

    data: bytes
    providers: list[dict[str, Any]]
    warnings: list[str]
    is_provisional: bool = False
    """True if a later result may contain more: a provider still collects data, or a part failed."""

    @property
    def is_degraded(self) -> bool:
        """True if a provider failed or returned only a part."""
        return self.is_provisional or any(
            provider["status"] in _FAILURE_STATUSES for provider in self.providers
        )


def render_success(service: str, request_id: str, result: ServiceResult, *, hit: bool) -> bytes:
    """Return the success envelope as JSON."""
    return orjson.dumps(
        {
            "service": service,
            "requestId": request_id,
            "cache": {"hit": hit},
            "providers": result.providers,
            "warnings": result.warnings,
            "data": orjson.Fragment(result.data),
        }
    )


def success_schema(service: str, data: Mapping[str, Any], provider: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the success envelope; `data` and `provider` are schemas or references."""
    return {
        "type": "object",
        "required": ["service", "requestId", "cache", "providers", "warnings", "data"],
        "properties": {
            "service": {"const": service},
            "requestId": {"type": "string"},
            "cache": {
                "type": "object",
                "required": ["hit"],
                "properties": {"hit": {"type": "boolean", "description": "Whether it came from the cache."}},
            },
            "providers": {"type": "array", "items": provider},
            "warnings": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What degraded the answer, in sentences; empty when nothing did.",
            },
            "data": data,
        },
    }


def render_error(error: CentgateError, request_id: str) -> bytes:
    """Return the error envelope as JSON."""
    content: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.provider:
        content["provider"] = error.provider
    details = dict(error.details)
    if error.payment:
        details["payment"] = error.payment.as_json()
    if details:
        content["details"] = details
    return orjson.dumps({"error": content, "requestId": request_id})


def http_status(error: CentgateError) -> int:
    """Return the HTTP status of an error."""
    return ERROR_SPECS[error.code].status
