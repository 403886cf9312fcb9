"""Check of payments by MPP at the public URL."""

from __future__ import annotations

import re

import orjson

from centgate.api.mpp_discovery import accepts_mpp
from centgate.catalog import all_services
from centgate.cli.doctor.check import fail, ok, skip
from centgate.cli.doctor.context import DoctorContext, HostUnreachable, TimedReply
from centgate.findings import Finding
from centgate.payments.mpp.challenge import ChallengeIssuer, create_issuer
from centgate.payments.paid_route import PaidRoute, build_paid_route

UNREADABLE = "Payment e30"
"""An `Authorization` header that the server refuses as malformed."""


async def check_mpp(deployment: DoctorContext) -> Finding:
    """The public URL has MPP challenges of this deployment, and credentials reach the server."""
    settings = deployment.settings
    issuer = create_issuer(settings)
    if issuer is None or not issuer.is_enabled:
        return skip("CENTGATE_MPP_ENABLED is not set: only x402 is accepted")
    if not accepts_mpp(settings) or settings.public_url is None:
        return skip("CENTGATE_PUBLIC_URL or CENTGATE_PAY_TO is not set")
    route = build_paid_route(all_services()[0], settings)
    body = orjson.dumps(route.service.input_example)
    headers = {"Content-Type": "application/json"}
    try:
        unpaid_reply = await deployment.request(route.url, method="POST")
        paid_reply = await deployment.request(
            route.url, method="POST", headers={**headers, "Authorization": UNREADABLE}, body=body
        )
    except HostUnreachable as why:
        return fail(f"{settings.public_url} does not respond: {why}", "see the check `public-url`")
    return (
        _check_challenge(unpaid_reply, issuer, route)
        or _check_authorization(paid_reply)
        or ok(f"challenges have the realm {issuer.realm}, and credentials reach the server")
    )


def _check_challenge(reply: TimedReply, issuer: ChallengeIssuer, route: PaidRoute) -> Finding | None:
    """Return the problem of the challenge in a 402, or None if this deployment's secret made it."""
    header = reply.headers.get("WWW-Authenticate", "")
    parameters: dict[str, str] = dict(re.findall(r'([a-z]+)="([^"]*)"', header))
    if reply.status != 402 or not header.startswith("Payment ") or "id" not in parameters:
        return fail(
            f"the 402 of {route.url} has no challenge in WWW-Authenticate",
            "restart the servers with CENTGATE_MPP_ENABLED, and let the proxy pass this response header",
        )
    if parameters.get("realm") != issuer.realm:
        return fail(
            f"the challenges there have the realm {parameters.get('realm', '')[:80]!r}, not {issuer.realm!r}",
            "give the server there the same CENTGATE_PUBLIC_URL",
        )
    content = [parameters.get(name, "") for name in ("request", "expires", "opaque")]
    if parameters["id"] != issuer.compute_id(*content):
        return fail(
            "the challenges there were made with another secret",
            "give all servers the same CENTGATE_MPP_SECRET",
        )
    return None


def _check_authorization(reply: TimedReply) -> Finding | None:
    """Return the problem if a server did not read the `Authorization` header, or None."""
    try:
        reason = orjson.loads(reply.body)["error"]["details"]["reason"]
    except (ValueError, LookupError, TypeError):
        reason = None
    if reply.status == 402 and reason == "invalid_payload":
        return None
    return fail(
        f"Authorization: Payment does not reach the server (status {reply.status})",
        "configure the proxy to forward this request header, and not to ask for a password itself",
    )
