"""Simulator of Coinbase's hosted facilitator (CDP) over real HTTP: paths, authentication and formats.

Tests set its behaviour as that of `StubFacilitator`: `next` and `usually` hold the replies of `/settle`,
`moved` counts the transfers, and `facilitator.move_then_reply(reply)` moves the money before it replies.

The formats are those of Coinbase's OpenAPI client, `cdp-sdk` 1.51.0 (Python), in `cdp/openapi_client/`,
and of its documentation at https://docs.cdp.coinbase.com; each reply names its source. They are not recorded.
"""

# pyjwt is typed in parts
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from facilitators import Reply, StubFacilitator
from go_replies import find_transaction
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ROOT = "/platform/v2/x402"
"""`COINBASE_FACILITATOR_V2_ROUTE` of `cdp/x402/x402.py`."""

KEY_ID = "organizations/1/apiKeys/2"
LONGEST_TOKEN = 120
"""Seconds between `nbf` and `exp`: the two minutes of the documentation."""

TransactionField = Literal["absent", "empty", "hash"]
ErrorName = Literal[
    "invalid_request",
    "unauthorized",
    "payment_method_required",
    "forbidden",
    "rate_limit_exceeded",
    "internal_server_error",
    "bad_gateway",
    "service_unavailable",
    "timed_out",
]
ERRORS: dict[ErrorName, tuple[int, str]] = {
    "invalid_request": (400, "request body has an error: doesn't match schema"),
    "unauthorized": (401, "Unauthorized."),
    "payment_method_required": (402, "A valid payment method is required to complete this operation."),
    "forbidden": (403, "Forbidden."),
    "rate_limit_exceeded": (429, "Rate limit exceeded."),
    "internal_server_error": (500, "An internal server error occurred. Please try again later."),
    "bad_gateway": (502, "Bad gateway. Please try again later."),
    "service_unavailable": (503, "Service unavailable. Please try again later."),
    "timed_out": (504, "The request timed out."),
}
"""API errors by `errorType` (`models/error_type.py`), with status and a message.

`api/x402_facilitator_api.py` declares 402, 500, 502 and 503 for `/settle`; the others are common to the API:
https://docs.cdp.coinbase.com/api-reference/v2/errors, which also says that a 5xx is no guarantee of failure.
"""


def cdp_error(name: ErrorName) -> Reply:
    """Return an API error: `models/error.py`, with its four common fields."""
    status, message = ERRORS[name]

    async def reply(_body: dict[str, Any]) -> Response:
        return JSONResponse(_error(name, message), status)

    return reply


def cdp_settle_rejection(
    reason: str, *, message: str | None = None, transaction: TransactionField = "absent"
) -> Reply:
    """Return a refusal of `/settle`: HTTP 400 with `models/x402_settle_payment_rejection.py`.

    `success` and `errorReason` are required there, and `transaction` is a hash where it is present. An empty
    one contradicts that and follows the specification of x402 v2, section 7.2.
    """

    async def reply(body: dict[str, Any]) -> Response:
        hashes = {"absent": {}, "empty": {"transaction": ""}, "hash": {"transaction": find_transaction(body)}}
        return JSONResponse(
            {
                "success": False,
                "errorReason": reason,
                "errorMessage": message or reason,
                "payer": _payer(body),
                "network": body["paymentRequirements"]["network"],
                **hashes[transaction],
            },
            400,
        )

    return reply


def cdp_verify_rejection(reason: str, *, message: str | None = None) -> Reply:
    """Return a refusal in the format of verify: HTTP 400 with `models/x402_verify_payment_rejection.py`."""

    async def reply(body: dict[str, Any]) -> Response:
        return JSONResponse(
            {
                "isValid": False,
                "invalidReason": reason,
                "invalidMessage": message or reason,
                "payer": _payer(body),
            },
            400,
        )

    return reply


def cdp_settlement_pending() -> Reply:
    """Return a settlement that is not confirmed yet: HTTP 500 with the hash.

    Fields and status: https://docs.cdp.coinbase.com/x402/seller/settlement-pending.
    """

    async def reply(body: dict[str, Any]) -> Response:
        return JSONResponse(
            {
                "success": False,
                "errorReason": "settlement_pending",
                "transaction": find_transaction(body),
                "network": body["paymentRequirements"]["network"],
            },
            500,
        )

    return reply


class CdpFacilitator(StubFacilitator):
    """Stub facilitator that authenticates `key_id` and `secret`, with CDP's response formats.

    `settings` are what an operator sets to be paid through it.
    """

    def __init__(self) -> None:
        super().__init__()
        key = Ed25519PrivateKey.generate()
        seed = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        self._public = key.public_key()
        public = self._public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.secret = base64.b64encode(seed + public).decode()
        self.verify_next: list[Reply] = []
        """Replies to the next verify calls, first to last; all others are valid."""
        self.unauthorized = 0
        """Number of calls without a valid token."""

    @property
    def settings(self) -> dict[str, Any]:
        """Return settings of an API that uses it."""
        return {
            "facilitator_url": self.url,
            "cdp_api_key_id": KEY_ID,
            "cdp_api_key_secret": SecretStr(self.secret),
        }

    def app(self) -> Starlette:
        """Return its web application."""
        return Starlette(
            routes=[
                Route(f"{ROOT}/settle", self.answer, methods=["POST"]),
                Route(f"{ROOT}/verify", self.answer_verify, methods=["POST"]),
                Route(f"{ROOT}/supported", self.answer_supported, methods=["GET"]),
            ]
        )

    async def answer(self, request: Request) -> Response:
        """Handle `POST /settle`: with a valid token, the scripted reply."""
        if not self._admits(request):
            return await self._refuse_token()
        if not _has_payment(await request.body()):
            return await cdp_error("invalid_request")({})
        return await super().answer(request)

    async def answer_verify(self, request: Request) -> Response:
        """Handle `POST /verify`: HTTP 200 with `models/inline_object.py`, or the scripted reply."""
        if not self._admits(request):
            return await self._refuse_token()
        if not _has_payment(await request.body()):
            return await cdp_error("invalid_request")({})
        body = json.loads(await request.body())
        if self.verify_next:
            return await self.verify_next.pop(0)(body)
        return JSONResponse({"isValid": True, "payer": _payer(body)})

    async def answer_supported(self, request: Request) -> Response:
        """Handle `GET /supported`: HTTP 200 with `models/inline_object2.py`."""
        if not self._admits(request):
            return await self._refuse_token()
        kinds = [
            {"x402Version": 2, "scheme": "exact", "network": network}
            for network in ("eip155:8453", "eip155:84532")
        ]
        return JSONResponse({"kinds": kinds, "extensions": ["bazaar"], "signers": {"eip155:*": []}})

    def _admits(self, request: Request) -> bool:
        """Return True if the bearer token is signed with the key, for this request, and short-lived.

        Claims: https://docs.cdp.coinbase.com/api-reference/v2/authentication, `cdp/auth/utils/jwt.py`.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            header = jwt.get_unverified_header(token)
            claims = jwt.decode(
                token,
                self._public,
                algorithms=["EdDSA"],
                issuer="cdp",
                options={"require": ["sub", "iss", "nbf", "exp"]},
            )
        except jwt.InvalidTokenError:
            return False
        return (
            scheme == "Bearer"
            and bool(header.get("nonce"))
            and header.get("kid") == claims["sub"] == KEY_ID
            and claims["exp"] - claims["nbf"] <= LONGEST_TOKEN
            and claims.get("uris") == [f"{request.method} {request.url.netloc}{request.url.path}"]
        )

    async def _refuse_token(self) -> Response:
        self.unauthorized += 1
        return await cdp_error("unauthorized")({})


@contextmanager
def open_cdp_facilitator() -> Generator[CdpFacilitator]:
    """Serve a simulator of CDP's facilitator on a loopback port; its `url` ends with CDP's path."""
    simulator = CdpFacilitator()
    server = uvicorn.Server(uvicorn.Config(simulator.app(), port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    simulator.url = f"http://127.0.0.1:{port}{ROOT}"
    yield simulator
    server.should_exit = server.force_exit = True
    thread.join()


def _error(error_type: str, message: str) -> dict[str, str]:
    link = "https://docs.cdp.coinbase.com/api-reference/v2/errors#" + error_type.replace("_", "-")
    return {
        "errorType": error_type,
        "errorMessage": message,
        "correlationId": f"{secrets.token_hex(8)}-IAD",
        "errorLink": link,
    }


def _has_payment(content: bytes) -> bool:
    """Return True if a body has the three fields of `models/verify_x402_payment_request.py`."""
    try:
        body: Any = json.loads(content)
    except ValueError:
        return False
    wanted = ("x402Version", "paymentPayload", "paymentRequirements")
    return isinstance(body, dict) and all(name in body for name in wanted)


def _payer(body: dict[str, Any]) -> str:
    return body["paymentPayload"]["payload"]["authorization"]["from"]
