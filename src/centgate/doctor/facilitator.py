"""Whether the facilitator would settle our payments."""

from __future__ import annotations

from typing import Any, cast

import orjson

from centgate.doctor.check import Finding, failed, ok, warning
from centgate.doctor.deployment import Deployment, Reply, Unreached, host, in_the_clear
from centgate.payments.facilitator import authorize
from centgate.payments.terms import SCHEME, X402_VERSION

SLOW = 2.0
"""Seconds after which a facilitator that only lists what it supports is slow."""


async def facilitator(deployment: Deployment) -> Finding:
    """The facilitator answers, settles scheme exact (x402 version 2) on the network, and takes the key."""
    settings = deployment.settings
    url, network = settings.facilitator, settings.network
    if settings.lacks_cdp_key:
        return failed(f"{url} wants a key", "set CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET")
    try:
        reply = await ask_facilitator(deployment)
    except Unreached as why:
        return failed(f"{url} gives no answer: {why}", "see CENTGATE_FACILITATOR_URL, and the way out to it")
    except ValueError as error:
        return failed(str(error), "copy the key anew")
    if trouble := _refusal(url, reply):
        return trouble
    kinds = _kinds(reply.body)
    if kinds is None:
        return failed(
            f"{url}/supported is not a facilitator's answer", "see that CENTGATE_FACILITATOR_URL is right"
        )
    if (X402_VERSION, SCHEME, network) not in kinds:
        others = ", ".join(sorted({net for version, _, net in kinds if version == X402_VERSION}))
        return failed(
            f"{url} does not settle on {network} with scheme {SCHEME} (it has {others[:200] or 'nothing'})",
            "set another CENTGATE_FACILITATOR_URL, or the network it has as CENTGATE_NETWORK",
        )
    return await _with_key(deployment, reply.seconds)


async def ask_facilitator(deployment: Deployment) -> Reply:
    """What `GET /supported` answers; Unreached, and ValueError for a key that cannot sign."""
    url = deployment.settings.facilitator + "/supported"
    return await deployment.ask(url, headers=authorize(deployment.settings, url, method="GET"))


def _refusal(url: str, reply: Reply) -> Finding | None:
    """What a status means that is no success."""
    if 300 <= reply.status < 400:
        onward = reply.headers.get("Location", "")
        return failed(
            f"{url} redirects to {host(onward) if '://' in onward else 'another path'}, and payments are not "
            "sent after a redirect",
            "set CENTGATE_FACILITATOR_URL to where it leads",
        )
    if reply.status in (401, 403):
        return _key_refused(url, reply.status)
    if reply.status != 200:
        return failed(f"{url}/supported answers with status {reply.status}", "see CENTGATE_FACILITATOR_URL")
    return None


def _key_refused(url: str, status: int) -> Finding:
    return failed(
        f"{url} refuses this deployment (status {status})",
        "see CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET, or CENTGATE_FACILITATOR_TOKEN",
    )


def _kinds(body: bytes) -> set[tuple[Any, Any, Any]] | None:
    """What is supported, as (x402 version, scheme, network); None for what is no such list."""
    try:
        kinds = cast(list[dict[str, Any]], orjson.loads(body)["kinds"])
        return {(kind.get("x402Version"), kind.get("scheme"), kind.get("network")) for kind in kinds}
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


async def _with_key(deployment: Deployment, seconds: float) -> Finding:
    """Whether it also takes the key where money is concerned; asked about no payment at all."""
    settings = deployment.settings
    url = settings.facilitator + "/verify"
    headers = {"Content-Type": "application/json", **authorize(settings, url)}
    try:
        reply = await deployment.ask(url, method="POST", headers=headers, body=b"{}")
    except Unreached as why:
        return failed(f"{url} gives no answer: {why}", "see whether the facilitator is in trouble")
    if reply.status in (401, 403):
        return _key_refused(settings.facilitator, reply.status)
    took = f"{seconds * 1000:.0f} ms"
    if seconds > SLOW:
        return warning(f"{settings.facilitator} took {took}", "buyers wait as long for every payment")
    if in_the_clear(url):
        return warning(f"{settings.facilitator} is asked over http, in the clear", "reach it over https")
    return ok(f"{settings.facilitator} settles {SCHEME} on {settings.network}, {took}")
