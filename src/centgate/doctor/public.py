"""What buyers see of the deployment: its public address, through whatever stands in front."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from centgate.catalog import all_services
from centgate.doctor.check import Finding, failed, ok, skipped, warning
from centgate.doctor.deployment import Deployment, Reply, Unreached, in_the_clear, is_loopback
from centgate.payments.terms import ASKED, Terms, terms_of

GOOD, MOST = 3 * 1024, 8 * 1024
"""Bytes of a header: what passes everywhere, and where proxies and clients give up."""
EXPOSED = frozenset({"payment-required", "payment-response"})
ORIGIN = "https://example.org"


async def public_url(deployment: Deployment) -> Finding:
    """CENTGATE_PUBLIC_URL is https, leads here, and asks for the terms that are set here."""
    settings = deployment.settings
    url = settings.public_url
    if trouble := _unsuited(deployment):
        return trouble
    try:
        health = await deployment.ask(f"{url}/health")
        if health.status != 200:
            return failed(f"{url}/health answers with status {health.status}", "see whether the server runs")
        if settings.pay_to is None:
            return ok(f"{url} answers")
        terms = _sample(deployment)
        reply = await deployment.ask(terms.url, method="POST")
    except Unreached as why:
        return failed(
            f"{url} gives no answer: {why}", "start the server, and see to its name, certificate and proxy"
        )
    return _compared(terms, reply) or ok(f"{url} answers with the terms that are set here")


def _unsuited(deployment: Deployment) -> Finding | None:
    """What is wrong with the address itself."""
    settings = deployment.settings
    url, worthless = settings.public_url, settings.development_chain is not None
    if url is None and worthless:
        return skipped("CENTGATE_PUBLIC_URL is not set")
    if url is None:
        return warning(
            f"CENTGATE_PUBLIC_URL is not set: the terms name {settings.address}",
            "set it to the address that buyers reach this server by",
        )
    if is_loopback(url) and not worthless:
        return failed(f"{url} leads buyers to their own machine", "set CENTGATE_PUBLIC_URL to a public name")
    if in_the_clear(url):
        return failed(
            f"{url} is not https: terms can be changed on their way",
            "put a proxy with a certificate in front, and set CENTGATE_PUBLIC_URL to its https address",
        )
    return None


def _sample(deployment: Deployment) -> Terms:
    """The terms that take the most room: what comes through with them comes through with all."""
    return max(_all_terms(deployment), key=lambda terms: len(terms.header))


def _all_terms(deployment: Deployment) -> list[Terms]:
    return [terms_of(service, deployment.settings) for service in all_services()]


def _compared(terms: Terms, reply: Reply) -> Finding | None:
    """What is wrong with a 402, held against the terms that are set here."""
    if reply.status != 402:
        return failed(
            f"a request without a payment to {terms.url} gets status {reply.status}, and not 402",
            "see where CENTGATE_PUBLIC_URL leads, and what the proxy does with POST",
        )
    header = reply.headers.get("PAYMENT-REQUIRED")
    if header is None:
        return failed(
            "PAYMENT-REQUIRED does not come through: buyers cannot pay",
            "have the proxy pass this response header on, whole",
        )
    offered = _decoded(header)
    if offered is None:
        return failed("PAYMENT-REQUIRED comes through cut or changed", "allow headers of 8 KB at the proxy")
    wanted: dict[str, Any] = {"accepts": [terms.requirements], "url": terms.url}
    found: dict[str, Any] = {"accepts": offered.get("accepts"), "url": _url(offered)}
    if found != wanted:
        return failed(
            f"the server there asks for other terms ({', '.join(_differences(wanted, found))})",
            "give it the settings you have here, or run this with those it has",
        )
    return None


def _decoded(header: str) -> dict[str, Any] | None:
    try:
        offer = orjson.loads(b64decode(header, validate=True))
    except ValueError:
        return None
    return cast(dict[str, Any], offer) if isinstance(offer, dict) else None


def _url(offered: dict[str, Any]) -> Any:
    resource = offered.get("resource")
    return cast(dict[str, Any], resource).get("url") if isinstance(resource, dict) else None


def _differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The names of what differs."""
    try:
        first: dict[str, Any] = dict(found["accepts"][0])
    except (LookupError, TypeError, ValueError):
        return ["accepts"]
    ours: dict[str, Any] = wanted["accepts"][0]
    names = [name for name, value in ours.items() if first.get(name) != value]
    return [*names, *(["resource.url"] if found["url"] != wanted["url"] else [])] or ["more than one entry"]


async def proxy(deployment: Deployment) -> Finding:
    """What stands before the public URL lets a browser of an allowed origin pay, and passes a payment on."""
    settings = deployment.settings
    url = settings.public_url
    if url is None or settings.pay_to is None:
        return skipped("CENTGATE_PUBLIC_URL or CENTGATE_PAY_TO is not set")
    if not settings.allowed_origins:
        return skipped("CENTGATE_ALLOWED_ORIGINS names none")
    origin = settings.allowed_origins[0].replace("*", "") or ORIGIN
    terms = _sample(deployment)
    # a payment repeats the terms, so it is about as long as they are
    unreadable = b64encode(b"x" * (len(terms.header) * 3 // 4)).decode()
    try:
        before = await deployment.ask(terms.url, method="OPTIONS", headers=_preflight(origin))
        headers = {"Origin": origin, "PAYMENT-SIGNATURE": unreadable, "Content-Type": "application/json"}
        body = orjson.dumps(terms.service.input_example)
        paid = await deployment.ask(terms.url, method="POST", headers=headers, body=body)
    except Unreached as why:
        return failed(f"{url} gives no answer: {why}", "see `public-url`")
    return (
        _browser(before, paid)
        or _passed_on(paid)
        or ok(f"pages of {origin} can pay, and payments come through")
    )


def _preflight(origin: str) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,payment-signature",
    }


def _browser(before: Reply, paid: Reply) -> Finding | None:
    """What keeps a page of another origin from paying."""
    mend = "let the server answer OPTIONS itself, and pass its Access-Control headers on as they are"
    if before.status >= 300 or "Access-Control-Allow-Origin" not in before.headers:
        return failed(f"a browser's question before a call (OPTIONS) gets status {before.status}", mend)
    allowed = before.headers.get("Access-Control-Allow-Headers", "").lower()
    if "payment-signature" not in allowed and allowed != "*":
        return failed("browsers may not send PAYMENT-SIGNATURE", mend)
    named = paid.headers.get("Access-Control-Expose-Headers", "").lower()
    if "Access-Control-Allow-Origin" not in paid.headers or not {
        name.strip() for name in named.split(",")
    } >= set(EXPOSED):
        return failed("pages cannot read PAYMENT-REQUIRED and PAYMENT-RESPONSE", mend)
    return None


def _passed_on(paid: Reply) -> Finding | None:
    """Whether a header as long as a payment reaches the server, which then says what is wrong with it."""
    if paid.status in (400, 413, 431, 494):
        return failed(
            f"a payment is too long for the proxy (status {paid.status})",
            "allow headers of 16 KB at the proxy",
        )
    offered = _decoded(paid.headers.get("PAYMENT-REQUIRED", "")) or {}
    if paid.status != 402 or offered.get("error", ASKED) == ASKED:  # another reason is that it was read
        return failed(
            "PAYMENT-SIGNATURE does not reach the server: no payment can arrive",
            "have the proxy pass this request header on",
        )
    return None


async def header_size(deployment: Deployment) -> Finding:
    """The longest PAYMENT-REQUIRED of all routes is short enough for proxies, or comes through whole."""
    if deployment.settings.pay_to is None:
        return skipped("CENTGATE_PAY_TO is not set: there are no terms")
    longest = _sample(deployment)
    size, path = len(longest.header), urlsplit(longest.url).path
    what = f"the longest PAYMENT-REQUIRED has {size:,} bytes ({path})"
    if GOOD < size <= MOST and await _comes_through(deployment, longest):
        return ok(f"{what}, and comes through whole")
    if size > MOST:
        return failed(what, "shorten CENTGATE_PUBLIC_URL and CENTGATE_ASSET_NAME: many proxies stop at 8 KB")
    if size > GOOD:
        return warning(what, "see that proxies in front allow response headers of 8 KB")
    return ok(what)


async def _comes_through(deployment: Deployment, terms: Terms) -> bool:
    if deployment.settings.public_url is None:
        return False
    try:
        reply = await deployment.ask(terms.url, method="POST")
    except Unreached:
        return False
    return _decoded(reply.headers.get("PAYMENT-REQUIRED", "")) is not None
