"""Checks of the public URL as buyers see it, through any reverse proxy."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

from centgate.catalog import all_services
from centgate.cli.doctor.check import fail, ok, skip, warn
from centgate.cli.doctor.context import (
    DoctorContext,
    HostUnreachable,
    TimedReply,
    is_loopback,
    is_unencrypted,
)
from centgate.findings import Finding
from centgate.payments.terms import PAYMENT_REQUIRED_MESSAGE, RouteTerms, build_terms

SAFE_HEADER_BYTES, MAX_HEADER_BYTES = 3 * 1024, 8 * 1024
"""Header sizes in bytes: accepted everywhere, and the limit of common proxies and clients."""
EXPOSED = frozenset({"payment-required", "payment-response"})
ORIGIN = "https://example.org"


async def check_public_url(deployment: DoctorContext) -> Finding:
    """CENTGATE_PUBLIC_URL is https, reaches this deployment, and returns this deployment's terms."""
    settings = deployment.settings
    url = settings.public_url
    if problem := _check_url(deployment):
        return problem
    try:
        health = await deployment.request(f"{url}/health")
        if health.status != 200:
            return fail(f"{url}/health returns status {health.status}", "check that the server is running")
        if settings.pay_to is None:
            return ok(f"{url} responds")
        terms = _longest_terms(deployment)
        reply = await deployment.request(terms.route.url, method="POST")
    except HostUnreachable as why:
        return fail(
            f"{url} does not respond: {why}", "start the server; check its name, certificate and proxy"
        )
    return _compare_terms(terms, reply) or ok(f"{url} returns this deployment's terms")


def _check_url(deployment: DoctorContext) -> Finding | None:
    """Return the problem of the URL itself, or None."""
    settings = deployment.settings
    url, is_development = settings.public_url, settings.development_chain is not None
    if url is None and is_development:
        return skip("CENTGATE_PUBLIC_URL is not set")
    if url is None:
        return warn(
            f"CENTGATE_PUBLIC_URL is not set: the terms contain {settings.base_url}",
            "set it to the URL by which buyers reach this server",
        )
    if is_loopback(url) and not is_development:
        return fail(f"{url} points buyers to their own machine", "set CENTGATE_PUBLIC_URL to a public name")
    if is_unencrypted(url):
        return fail(
            f"{url} is not https: terms can be changed in transit",
            "use a reverse proxy with a certificate, and set CENTGATE_PUBLIC_URL to its https URL",
        )
    return None


def _longest_terms(deployment: DoctorContext) -> RouteTerms:
    """Return the longest terms of all services: if these pass the proxy, all do."""
    return max(_all_terms(deployment), key=lambda terms: len(terms.header))


def _all_terms(deployment: DoctorContext) -> list[RouteTerms]:
    return [build_terms(service, deployment.settings) for service in all_services()]


def _compare_terms(terms: RouteTerms, reply: TimedReply) -> Finding | None:
    """Compare a 402 response with this deployment's terms. Returns the problem, or None."""
    if reply.status != 402:
        return fail(
            f"an unpaid request to {terms.route.url} returns status {reply.status}, not 402",
            "check where CENTGATE_PUBLIC_URL points, and how the proxy handles POST",
        )
    header = reply.headers.get("PAYMENT-REQUIRED")
    if header is None:
        return fail(
            "the response header PAYMENT-REQUIRED is missing: buyers cannot pay",
            "configure the proxy to pass this response header unchanged",
        )
    offer = _decode_offer(header)
    if offer is None:
        return fail("PAYMENT-REQUIRED arrives truncated or changed", "allow headers of 8 KB at the proxy")
    expected: dict[str, Any] = {"accepts": terms.accepts, "url": terms.route.url}
    actual: dict[str, Any] = {"accepts": offer.get("accepts"), "url": _resource_url(offer)}
    if actual != expected:
        return fail(
            f"the server there returns different terms ({', '.join(_differences(expected, actual))})",
            "give it these settings, or run this command with its settings",
        )
    return None


def _decode_offer(header: str) -> dict[str, Any] | None:
    try:
        offer = orjson.loads(b64decode(header, validate=True))
    except ValueError:
        return None
    return cast(dict[str, Any], offer) if isinstance(offer, dict) else None


def _resource_url(offer: dict[str, Any]) -> Any:
    resource = offer.get("resource")
    return cast(dict[str, Any], resource).get("url") if isinstance(resource, dict) else None


def _differences(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """Return the names of the fields that differ."""
    try:
        entries: list[dict[str, Any]] = [dict(each) for each in actual["accepts"]]
    except (TypeError, ValueError):
        return ["accepts"]
    wanted: list[dict[str, Any]] = expected["accepts"]
    if not entries:
        return ["accepts"]
    pairs = zip(wanted, entries, strict=False)
    names = [name for terms, found in pairs for name, value in terms.items() if found.get(name) != value]
    if len(entries) != len(wanted):
        names.append(f"{len(entries)} entries, not {len(wanted)}")
    if actual["url"] != expected["url"]:
        names.append("resource.url")
    return list(dict.fromkeys(names)) or ["other fields"]


async def check_proxy(deployment: DoctorContext) -> Finding:
    """The proxy at the public URL allows browsers of an allowed origin to pay, and forwards payments."""
    settings = deployment.settings
    url = settings.public_url
    if url is None or settings.pay_to is None:
        return skip("CENTGATE_PUBLIC_URL or CENTGATE_PAY_TO is not set")
    if not settings.allowed_origins:
        return skip("CENTGATE_ALLOWED_ORIGINS is empty")
    origin = settings.allowed_origins[0].replace("*", "") or ORIGIN
    terms = _longest_terms(deployment)
    # a payment echoes the terms, so it has about the same length
    unreadable = b64encode(b"x" * (len(terms.header) * 3 // 4)).decode()
    try:
        preflight_reply = await deployment.request(
            terms.route.url, method="OPTIONS", headers=_preflight_headers(origin)
        )
        headers = {"Origin": origin, "PAYMENT-SIGNATURE": unreadable, "Content-Type": "application/json"}
        body = orjson.dumps(terms.route.service.input_example)
        paid_reply = await deployment.request(terms.route.url, method="POST", headers=headers, body=body)
    except HostUnreachable as why:
        return fail(f"{url} does not respond: {why}", "see the check `public-url`")
    return (
        _check_cors(preflight_reply, paid_reply)
        or _check_payment_header(paid_reply)
        or ok(f"pages of {origin} can pay, and payments reach the server")
    )


def _preflight_headers(origin: str) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,payment-signature",
    }


def _check_cors(preflight_reply: TimedReply, paid_reply: TimedReply) -> Finding | None:
    """Return the CORS problem that prevents pages of another origin from paying, or None."""
    mend = "let the server handle OPTIONS, and pass its Access-Control headers unchanged"
    if preflight_reply.status >= 300 or "Access-Control-Allow-Origin" not in preflight_reply.headers:
        return fail(f"a browser's preflight request (OPTIONS) returns {preflight_reply.status}", mend)
    allowed_headers = preflight_reply.headers.get("Access-Control-Allow-Headers", "").lower()
    if "payment-signature" not in allowed_headers and allowed_headers != "*":
        return fail("browsers are not allowed to send PAYMENT-SIGNATURE", mend)
    exposed_headers = paid_reply.headers.get("Access-Control-Expose-Headers", "").lower()
    if "Access-Control-Allow-Origin" not in paid_reply.headers or not {
        name.strip() for name in exposed_headers.split(",")
    } >= set(EXPOSED):
        return fail("pages cannot read PAYMENT-REQUIRED and PAYMENT-RESPONSE", mend)
    return None


def _check_payment_header(reply: TimedReply) -> Finding | None:
    """Check that a header of a payment's length reaches the server, which then reports that it is invalid."""
    if reply.status in (400, 413, 431, 494):
        return fail(
            f"a payment is too long for the proxy (status {reply.status})",
            "allow headers of 16 KB at the proxy",
        )
    offer = _decode_offer(reply.headers.get("PAYMENT-REQUIRED", "")) or {}
    if (
        reply.status != 402 or offer.get("error", PAYMENT_REQUIRED_MESSAGE) == PAYMENT_REQUIRED_MESSAGE
    ):  # another error: the server read the header
        return fail(
            "PAYMENT-SIGNATURE does not reach the server: payments fail",
            "configure the proxy to forward this request header",
        )
    return None


async def check_header_size(deployment: DoctorContext) -> Finding:
    """The longest PAYMENT-REQUIRED of all routes is short enough for proxies, or arrives complete."""
    if deployment.settings.pay_to is None:
        return skip("CENTGATE_PAY_TO is not set: there are no terms")
    longest = _longest_terms(deployment)
    size, path = len(longest.header), urlsplit(longest.route.url).path
    what = f"the longest PAYMENT-REQUIRED has {size:,} bytes ({path})"
    if SAFE_HEADER_BYTES < size <= MAX_HEADER_BYTES and await _arrives_complete(deployment, longest):
        return ok(f"{what}, and arrives complete")
    if size > MAX_HEADER_BYTES:
        return fail(what, "shorten CENTGATE_PUBLIC_URL and CENTGATE_ASSET_NAME: many proxies limit to 8 KB")
    if size > SAFE_HEADER_BYTES:
        return warn(what, "check that your proxies allow response headers of 8 KB")
    return ok(what)


async def _arrives_complete(deployment: DoctorContext, terms: RouteTerms) -> bool:
    if deployment.settings.public_url is None:
        return False
    try:
        reply = await deployment.request(terms.route.url, method="POST")
    except HostUnreachable:
        return False
    return _decode_offer(reply.headers.get("PAYMENT-REQUIRED", "")) is not None
