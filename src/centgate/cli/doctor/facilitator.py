"""Check that each facilitator can settle this deployment's payments."""

from __future__ import annotations

from typing import Any, cast

import orjson

from centgate.cli.doctor.check import fail, ok, skip, warn
from centgate.cli.doctor.context import (
    DoctorContext,
    HostUnreachable,
    TimedReply,
    display_origin,
    is_unencrypted,
)
from centgate.environment import PREFIX
from centgate.findings import Finding
from centgate.payments.facilitator.facilitator import build_auth_headers
from centgate.payments.terms import SCHEME, X402_VERSION
from centgate.settings import FacilitatorAccount

SLOW = 2.0
"""Seconds after which the response to `GET /supported` is slow."""


async def check_facilitator(deployment: DoctorContext) -> Finding:
    """The facilitator responds, settles scheme exact (x402 version 2) on the network, accepts the key."""
    return await _check_account(deployment, deployment.settings.facilitators[0])


async def check_fallback(deployment: DoctorContext) -> Finding:
    """The second facilitator, if there is one, does the same."""
    accounts = deployment.settings.facilitators
    if len(accounts) == 1:
        return skip(
            "there is no second facilitator",
            f"{PREFIX}FACILITATOR_FALLBACK_URL takes payments while the first is down",
        )
    return await _check_account(deployment, accounts[1])


async def _check_account(deployment: DoctorContext, account: FacilitatorAccount) -> Finding:
    url, settings = account.url, deployment.settings
    if account.lacks_key:
        key = account.cdp_setting
        return fail(f"{url} requires a key", f"set {key}_API_KEY_ID and {key}_API_KEY_SECRET")
    try:
        reply = await request_supported(deployment, account)
    except HostUnreachable as why:
        return fail(
            f"{url} does not respond: {why}", f"check {account.setting}_URL and the outbound connection"
        )
    except ValueError as error:
        return fail(str(error), "copy the key again")
    if problem := _check_status(account, reply):
        return problem
    kinds = _parse_kinds(reply.body)
    if kinds is None:
        return fail(f"{url}/supported is not a facilitator's response", f"check {account.setting}_URL")
    networks = settings.payment_networks
    if missing := [each for each in networks if (X402_VERSION, SCHEME, each) not in kinds]:
        others = ", ".join(sorted({net for version, _, net in kinds if version == X402_VERSION}))
        return fail(
            f"{url} does not settle on {' or '.join(missing)} with scheme {SCHEME} (it has "
            f"{others[:200] or 'nothing'})",
            f"set another {account.setting}_URL, or "
            + (
                f"remove from {PREFIX}ACCEPTS what it does not support"
                if settings.accepts
                else f"set {PREFIX}NETWORK to a network it supports"
            ),
        )
    return await _check_key(deployment, account, reply.duration)


async def request_supported(deployment: DoctorContext, account: FacilitatorAccount) -> TimedReply:
    """Send `GET /supported`. Raises HostUnreachable, and ValueError for an invalid signing key."""
    url = account.url + "/supported"
    return await deployment.request(url, headers=build_auth_headers(account, url, method="GET"))


def _check_status(account: FacilitatorAccount, reply: TimedReply) -> Finding | None:
    """Return the finding for an unsuccessful status; None for 200."""
    url, setting = account.url, f"{account.setting}_URL"
    if 300 <= reply.status < 400:
        location = reply.headers.get("Location", "")
        target = display_origin(location) if "://" in location else "another path"
        return fail(
            f"{url} redirects to {target}, and payments do not follow redirects",
            f"set {setting} to the target of the redirect",
        )
    if reply.status in (401, 403):
        return _key_rejected(account, reply.status)
    if reply.status != 200:
        return fail(f"{url}/supported returns status {reply.status}", f"check {setting}")
    return None


def _key_rejected(account: FacilitatorAccount, status: int) -> Finding:
    key = account.cdp_setting
    return fail(
        f"{account.url} rejects this deployment's key (status {status})",
        f"check {key}_API_KEY_ID and {key}_API_KEY_SECRET, or {account.setting}_TOKEN",
    )


def _parse_kinds(body: bytes) -> set[tuple[Any, Any, Any]] | None:
    """Parse the supported kinds as (x402 version, scheme, network); None if the body has another format."""
    try:
        kinds = cast(list[dict[str, Any]], orjson.loads(body)["kinds"])
        return {(kind.get("x402Version"), kind.get("scheme"), kind.get("network")) for kind in kinds}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


async def _check_key(deployment: DoctorContext, account: FacilitatorAccount, seconds: float) -> Finding:
    """Check that `POST /verify` accepts the key; the body contains no payment."""
    url = account.url + "/verify"
    headers = {"Content-Type": "application/json", **build_auth_headers(account, url)}
    try:
        reply = await deployment.request(url, method="POST", headers=headers, body=b"{}")
    except HostUnreachable as why:
        return fail(f"{url} does not respond: {why}", "check the facilitator's status")
    if reply.status in (401, 403):
        return _key_rejected(account, reply.status)
    duration = f"{seconds * 1000:.0f} ms"
    if seconds > SLOW:
        return warn(f"{account.url} took {duration}", "every payment is delayed by this time")
    if is_unencrypted(url):
        return warn(f"{account.url} is used over http, unencrypted", "use https")
    networks = " and ".join(deployment.settings.payment_networks)
    return ok(f"{account.url} settles {SCHEME} on {networks}, {duration}")
