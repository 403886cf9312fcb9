"""An example of each error response, built by the code that builds the real ones."""

from __future__ import annotations

from typing import Any

import orjson

from centgate import envelope
from centgate.errors import (
    UNCHARGED_RESEND,
    CentgateError,
    InternalError,
    InvalidRequest,
    Issue,
    MethodNotAllowed,
    NoData,
    NotFound,
    PaymentConflict,
    PaymentNote,
    ProviderError,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnconfigured,
    RateLimited,
    UnsupportedOptions,
    unexpected_error,
)
from centgate.payments.gate import payment_required, payments_disabled

REQUEST_ID = "req_5b1c0d2e9f7a4836c1d0e2f3"
TRANSACTION = "0x" + "4c" * 32


def build_error_examples(accepts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return an example error envelope for each error code; `accepts` are the terms shown in a 402."""
    settled = PaymentNote("settled", charged=True, retry="same_payment", transaction=TRANSACTION)
    delivered = PaymentNote("delivered", charged=True, retry="none", transaction=TRANSACTION)
    unused = PaymentNote("unused", charged=False, retry="none")
    challenge = payment_required()
    challenge.details["accepts"] = accepts
    errors: tuple[CentgateError, ...] = (
        InvalidRequest([Issue("tokenAddress", "must be 0x and 40 hexadecimal digits")]),
        UnsupportedOptions(["scrapeOptions"], ["query", "limit"]),
        challenge,
        payments_disabled(),
        NotFound("no route '/services/unknown'; see GET /services and GET /openapi.json"),
        NoData("no source knows this token", payment=delivered),
        MethodNotAllowed("DELETE", ("GET", "HEAD", "POST")),
        PaymentConflict("the idempotency key was already used for another request; use another key"),
        RateLimited(
            "too many requests without an accepted payment came from this address",
            retry_after=3,
            payment=UNCHARGED_RESEND,
        ),
        ProviderRateLimited("dexscreener", "asks to slow down", payment=settled, retry_after=20),
        unexpected_error(),
        ProviderError("goplus", "answered 500", payment=settled),
        ProviderUnconfigured(
            "brave", "crawler-search needs brave, not configured on this deployment", payment=unused
        ),
        ProviderTimeout("goplus", "gave no answer within 8 seconds", payment=settled),
    )
    return {error.code: _render_example(error) for error in errors}


def build_connection_example(code: str, cause: str) -> dict[str, Any]:
    """Return an example of an error that is sent before the route is known; `cause` is a sentence."""
    message = cause[0].lower() + cause[1:].rstrip(".")
    invalid = code == InvalidRequest.code
    return _render_example(InvalidRequest([Issue("", message)]) if invalid else InternalError(message))


def _render_example(error: CentgateError) -> dict[str, Any]:
    return orjson.loads(envelope.render_error(error, REQUEST_ID))
