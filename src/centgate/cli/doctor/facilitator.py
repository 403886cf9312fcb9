"""Check that the facilitator can settle this deployment's payments."""

from __future__ import annotations

from typing import Any, cast

import orjson

from centgate.cli.doctor.check import Finding, fail, ok, warn
from centgate.cli.doctor.context import (
    DoctorContext,
    HostUnreachable,
    TimedReply,
    display_origin,
    is_unencrypted,
)
from centgate.payments.facilitator import build_auth_headers
from centgate.payments.terms import SCHEME, X402_VERSION

SLOW = 2.0
"""Seconds after which the response to `GET /supported` is slow."""


async def check_facilitator(deployment: DoctorContext) -> Finding:
    """The facilitator responds, settles scheme exact (x402 version 2) on the network, accepts the key."""
    settings = deployment.settings
    url, network = settings.facilitator, settings.network
    if settings.lacks_cdp_key:
        return fail(f"{url} requires a key", "set CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET")
    try:
        reply = await request_supported(deployment)
    except HostUnreachable as why:
        return fail(
            f"{url} does not respond: {why}", "check CENTGATE_FACILITATOR_URL and the outbound connection"
        )
    except ValueError as error:
        return fail(str(error), "copy the key again")
    if problem := _check_status(url, reply):
        return problem
    kinds = _parse_kinds(reply.body)
    if kinds is None:
        return fail(f"{url}/supported is not a facilitator's response", "check CENTGATE_FACILITATOR_URL")
    if (X402_VERSION, SCHEME, network) not in kinds:
        others = ", ".join(sorted({net for version, _, net in kinds if version == X402_VERSION}))
        return fail(
            f"{url} does not settle on {network} with scheme {SCHEME} (it has {others[:200] or 'nothing'})",
            "set another CENTGATE_FACILITATOR_URL, or set CENTGATE_NETWORK to a network it supports",
        )
    return await _check_key(deployment, reply.duration)


async def request_supported(deployment: DoctorContext) -> TimedReply:
    """Send `GET /supported`. Raises HostUnreachable, and ValueError for an invalid signing key."""
    url = deployment.settings.facilitator + "/supported"
    return await deployment.request(url, headers=build_auth_headers(deployment.settings, url, method="GET"))


def _check_status(url: str, reply: TimedReply) -> Finding | None:
    """Return the finding for an unsuccessful status; None for 200."""
    if 300 <= reply.status < 400:
        location = reply.headers.get("Location", "")
        target = display_origin(location) if "://" in location else "another path"
        return fail(
            f"{url} redirects to {target}, and payments do not follow redirects",
            "set CENTGATE_FACILITATOR_URL to the target of the redirect",
        )
    if reply.status in (401, 403):
        return _key_rejected(url, reply.status)
    if reply.status != 200:
        return fail(f"{url}/supported returns status {reply.status}", "check CENTGATE_FACILITATOR_URL")
    return None


def _key_rejected(url: str, status: int) -> Finding:
    return fail(
        f"{url} rejects this deployment's key (status {status})",
        "check CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET, or CENTGATE_FACILITATOR_TOKEN",
    )


def _parse_kinds(body: bytes) -> set[tuple[Any, Any, Any]] | None:
    """Parse the supported kinds as (x402 version, scheme, network); None if the body has another format."""
    try:
        kinds = cast(list[dict[str, Any]], orjson.loads(body)["kinds"])
        return {(kind.get("x402Version"), kind.get("scheme"), kind.get("network")) for kind in kinds}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


async def _check_key(deployment: DoctorContext, seconds: float) -> Finding:
    """Check that `POST /verify` accepts the key; the body contains no payment."""
    settings = deployment.settings
    url = settings.facilitator + "/verify"
    headers = {"Content-Type": "application/json", **build_auth_headers(settings, url)}
    try:
        reply = await deployment.request(url, method="POST", headers=headers, body=b"{}")
    except HostUnreachable as why:
        return fail(f"{url} does not respond: {why}", "check the facilitator's status")
    if reply.status in (401, 403):
        return _key_rejected(settings.facilitator, reply.status)
    duration = f"{seconds * 1000:.0f} ms"
    if seconds > SLOW:
        return warn(f"{settings.facilitator} took {duration}", "every payment is delayed by this time")
    if is_unencrypted(url):
        return warn(f"{settings.facilitator} is used over http, unencrypted", "use https")
    return ok(f"{settings.facilitator} settles {SCHEME} on {settings.network}, {duration}")
