"""The guide pages, generated from the API's documents and from the code."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from math import ceil
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import quote as quote_url

from centgate.api.error_examples import build_error_examples
from centgate.client.caps import DEFAULT_CAPS
from centgate.client.catalog import ServiceDetail
from centgate.client_limits import WRONG_REQUESTS, WRONG_REQUESTS_BURST
from centgate.envelope import CONNECTION_ERRORS, ERROR_SPECS
from centgate.prices import format_price
from centgate.request_body import MAX_BODY_BYTES
from centgate.settings import Settings
from centgate.signing.assets import TOKEN_DECIMALS
from centgate.signing.receipts.typed_data import ANSWER, OFFER, RECEIPT
from centgate.website import discovery
from centgate.website.api_snapshot import ApiSnapshot, ServiceState, parse_price
from centgate.website.code_samples import WALLET_PLACEHOLDER, build_samples, format_literal, network_option
from centgate.website.guide_tables import buyer_settings, list_sources, operator_settings
from centgate.website.markdown import STATE_CLASSES, heading_id
from centgate.website.networks import FAUCET
from centgate.website.openapi_reference import ApiReference
from centgate.website.page import SitePage
from centgate.website.payment_states import PAYMENT_STATES, RETRY_MEANINGS
from centgate.website.status_chart import describe_days, draw_days, draw_latency
from centgate.website.validation import parse_proofs, parse_signer

FIRST_SERVICE = "phishing-check"
"""Slug of the service used in the first steps: it needs no upstream, so it works on every deployment."""

_CALLS_A_DAY = (10, 100, 1_000, 10_000, 100_000)


def build_guides(deployment: ApiSnapshot) -> tuple[SitePage, ...]:
    """Return the guides in reading order."""
    return (
        SitePage(
            "/start",
            "Get started",
            "From the price to a paid answer, from a shell, Python, TypeScript or an agent.",
            "start",
            menu="Quickstart",
            context=_start_context(deployment),
        ),
        SitePage(
            "/paying",
            "How paying works",
            "How a call is paid, what it costs, and when nothing is charged.",
            "paying",
            menu="Paying",
            context=_paying_context(deployment),
        ),
        SitePage(
            "/pricing",
            "Pricing",
            "What calls cost, what is free, and what a failure costs.",
            "pricing",
            layout="pricing.html.j2",
            menu="Pricing",
            context=_pricing_context(deployment),
        ),
        SitePage(
            "/reference",
            "API reference",
            "Every operation of the API, with its fields, statuses and headers.",
            "reference",
            layout="filtered.html.j2",
            menu="Reference",
            context=_reference_context(deployment),
        ),
        SitePage(
            "/errors",
            "Errors",
            "Every error code: when it occurs, whether it costs anything, and what to do.",
            "errors",
            layout="filtered.html.j2",
            context=_errors_context(deployment),
        ),
        SitePage(
            "/agents",
            "For agents",
            "Discovery files, MCP, caps, and how to treat returned text: for agents and their developers.",
            "agents",
            menu="Agents",
            context=_agents_context(deployment),
        ),
        SitePage(
            "/status",
            "Status",
            "The measured state, latency and last 90 days of each service, and the health of the API.",
            "status",
            layout="status.html.j2",
            menu="Status",
            context=_status_context(deployment),
        ),
        SitePage(
            "/trust",
            "Trust",
            "The payee, stored data, third parties that see your requests, and the limits of verdicts.",
            "trust",
            context=_trust_context(deployment),
        ),
        SitePage(
            "/receipt",
            "Check a receipt",
            "What a signed receipt proves, and how to check one: on this page, with a command, or by hand.",
            "receipt",
            layout="receipt.html.j2",
            context=_receipt_context(deployment),
            offline=True,
        ),
        SitePage(
            "/operate",
            "Run your own",
            "How to run your own Centgate and get paid for its answers.",
            "operate",
            context=_operate_context(deployment),
        ),
        SitePage(
            "/changelog",
            "Changelog",
            "What changed in each version.",
            "changelog",
            context=_changelog_context(),
        ),
    )


def first_service(deployment: ApiSnapshot) -> ServiceDetail:
    """Return the service of the first steps: `FIRST_SERVICE`, or the first of the catalogue."""
    return next((each for each in deployment.services if each.slug == FIRST_SERVICE), deployment.services[0])


def _accepts_entries(deployment: ApiSnapshot) -> list[dict[str, Any]]:
    """Return the terms in the form of a 402's `accepts`."""
    return [terms.model_dump(by_alias=True) for terms, _ in deployment.payment_options]


def _start_context(deployment: ApiSnapshot) -> dict[str, Any]:
    service = first_service(deployment)
    return {
        "service": service,
        "code": {sample.label: sample for sample in build_samples(service, deployment)},
        "network": deployment.payment_network,
        "faucet": FAUCET,
    }


def _paying_context(deployment: ApiSnapshot) -> dict[str, Any]:
    return {
        "price": deployment.price_range,
        "first": deployment.services[0],
        "accepts": _accepts_entries(deployment),
        "network": deployment.payment_network,
        "errors": ERROR_SPECS,
        "states": PAYMENT_STATES,
        "retries": RETRY_MEANINGS,
        "redeem_period": deployment.redeem_period,
        "signer": parse_signer(deployment.x402),
        "buying": buyer_settings(),
    }


def _pricing_context(deployment: ApiSnapshot) -> dict[str, Any]:
    by_charge: dict[str, list[str]] = {"no": [], "yes": [], "redeemable": []}
    for code, meaning in ERROR_SPECS.items():
        by_charge.setdefault(meaning.charged, []).append(code)
    return {
        "price": deployment.price_range,
        "prices": dict(sorted({price: format_price(price) for price in deployment.prices}.items())),
        "caps": DEFAULT_CAPS,
        "is_over_cap": max(deployment.prices) > DEFAULT_CAPS.per_call,
        "costs": [
            (f"{calls:,}", price, format_price(calls * price), format_price(calls * price * 30))
            for price in sorted(set(deployment.prices))
            for calls in _CALLS_A_DAY
        ],
        "redeem_period": deployment.redeem_period,
        "free": by_charge["no"],
        "charged": by_charge["yes"],
        "redeemable": by_charge["redeemable"],
    }


def _reference_context(deployment: ApiSnapshot) -> dict[str, Any]:
    reference = ApiReference(deployment.openapi)
    operations = tuple(reference.operations())
    paths = {service.path for service in deployment.services}
    codes: dict[str, list[str]] = {}
    for code, meaning in ERROR_SPECS.items():
        codes.setdefault(str(meaning.status), []).append(code)
    for status, (code, _) in CONNECTION_ERRORS.items():
        codes.setdefault(str(status), []).append(code)
    return {
        "paid": [each for each in operations if each.price and each.path in paths],
        "free": [each for each in operations if not each.price and each.path not in paths],
        "slugs": {service.path: service.slug for service in deployment.services},
        "codes": codes,
        "answer": reference.answer_fields(),
        "error": reference.error_fields(),
        "headers": reference.headers(),
        "anchor": heading_id,
        "body_kib": MAX_BODY_BYTES // 1024,
    }


def _errors_context(deployment: ApiSnapshot) -> dict[str, Any]:
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    return {
        "errors": ERROR_SPECS,
        "examples": build_error_examples(_accepts_entries(deployment)),
        "limits": {
            "requests": f"{defaults['free_per_minute']:,}",
            "refused": defaults["refused_per_minute"],
            "wrong": WRONG_REQUESTS,
            "wrong_burst": WRONG_REQUESTS_BURST,
        },
    }


def _agents_context(deployment: ApiSnapshot) -> dict[str, Any]:
    service = first_service(deployment)
    code = {sample.label: sample.code for sample in build_samples(service, deployment)}
    stdio, http = code["MCP, paid from a wallet"], code["MCP over HTTP"]
    return {
        "price": deployment.price_range,
        "discovery": discovery.list_discovery_files(deployment),
        "caps": DEFAULT_CAPS,
        "wallet": WALLET_PLACEHOLDER,
        "network_option": "".join(f" {word}" for word in network_option(service)),
        "tool": format_literal(service.slug),
        "arguments": format_literal(service.input_example),
        "first_price": format_price(parse_price(service)),
        "base_units": f"{int(parse_price(service).scaleb(TOKEN_DECIMALS)):_}",
        "mcp_stdio": stdio,
        "mcp_http": http,
        "cursor_link": _cursor_link(_server_entry(stdio)),
        "vscode_link": _vscode_link(_server_entry(stdio)),
        "mcp_vscode": {
            "servers": {
                "centgate": {"type": "stdio", **_server_entry(stdio)},
                "centgate-http": _server_entry(http),
            }
        },
    }


def _server_entry(configuration: str) -> dict[str, Any]:
    return json.loads(configuration)["mcpServers"]["centgate"]


def _cursor_link(server: dict[str, Any]) -> str:
    """Return the link that installs an MCP server in Cursor (cursor.com/docs/mcp/install-links)."""
    config = b64encode(json.dumps(server).encode()).decode()
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name=centgate&config={quote_url(config, safe='')}"


def _vscode_link(server: dict[str, Any]) -> str:
    """Return the link that installs an MCP server in VS Code."""
    config = json.dumps({"name": "centgate", "type": "stdio", **server})
    return f"vscode:mcp/install?{quote_url(config, safe='')}"


def _status_context(deployment: ApiSnapshot) -> dict[str, Any]:
    found = {service.slug: deployment.status_of(service) for service in deployment.services}
    measured = {slug: status for slug, status in found.items() if status}
    return {
        "network": deployment.payment_network,
        "up": sum(deployment.is_up(service) for service in deployment.services),
        "api_state": _api_state(deployment),
        "classes": STATE_CLASSES,
        "days": {each.slug: describe_days(each.days) for each in measured.values()},
        "measured": measured,
        "charts": [
            (service, draw_days(measured[service.slug]), draw_latency(measured[service.slug]))
            for service in deployment.services
            if service.slug in measured
        ],
        "set_up": {service.slug: _source_labels(service, configured=True) for service in deployment.services},
        "missing": {
            service.slug: _source_labels(service, configured=False) for service in deployment.services
        },
    }


def _api_state(deployment: ApiSnapshot) -> ServiceState:
    if deployment.is_healthy:
        return "up"
    return "down" if deployment.health else "not reachable"


def _source_labels(service: ServiceDetail, *, configured: bool) -> str:
    """List a service's sources that are configured, or those that are not."""
    names = {source.name for source in service.sources if source.configured is configured}
    return ", ".join(provider.label for provider in service.providers if provider.name in names) or "none"


def _trust_context(deployment: ApiSnapshot) -> dict[str, Any]:
    return {
        "price": deployment.price_range,
        "first": deployment.services[0],
        "network": deployment.payment_network,
        "service": (service := first_service(deployment)),
        "body": quote(json.dumps(service.input_example)),
        "proofs": parse_proofs(deployment.x402),
        "signer": parse_signer(deployment.x402),
        "redeem_period": deployment.redeem_period,
        "cache_minutes": ceil(max(service.cache_seconds for service in deployment.services) / 60),
        "sources": list_sources(deployment),
        "security_txt": discovery.has_security_contact(deployment),
        "licence": deployment.openapi["info"]["license"]["name"],
    }


def _receipt_context(deployment: ApiSnapshot) -> dict[str, Any]:
    statements = {"offer": OFFER, "receipt": RECEIPT, "answer": ANSWER}
    return {
        "signer": parse_signer(deployment.x402),
        "statements": {
            name: {**asdict(each), "fields": list(each.fields.items())} for name, each in statements.items()
        },
    }


def _operate_context(deployment: ApiSnapshot) -> dict[str, Any]:
    return {
        "price": deployment.price_range,
        "service": first_service(deployment),
        "settings": operator_settings(),
        "sources": list_sources(deployment),
    }


@cache
def _changelog_context() -> dict[str, str]:
    """Read the repository's changelog: from the built package, else from the checkout."""
    packaged = files("centgate") / "CHANGELOG.md"
    path = packaged if packaged.is_file() else Path(__file__).parents[3] / "CHANGELOG.md"
    return {"changelog": path.read_text(encoding="utf-8")}
