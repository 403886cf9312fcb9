"""Validate and sanitize what an API publishes before it is put on pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from centgate.client.catalog import CatalogUnavailable, Health, ListedRequirements, ServiceDetail
from centgate.coercion import as_list, as_object, get_path
from centgate.signing.assets import NETWORK_ID
from centgate.website.markdown_escape import escape_line, escape_name

_SERVICE_PATTERNS = {
    "slug": r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?",
    "category": r"[a-z0-9][a-z0-9 _-]{0,62}",
    "method": r"POST",
    "path": r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){1,8}",
    "price": r"\$\d{1,6}(?:\.\d{1,6})?",
}
"""Patterns of the fields that become URLs, files or amounts; all other fields are text."""
_TERMS_PATTERNS = {
    "network": NETWORK_ID,
    "asset": r"0x[0-9a-fA-F]{40}",
    "pay_to": r"0x[0-9a-fA-F]{40}",
    "amount": r"\d{1,30}",
    "scheme": r"[a-z-]{1,30}",
}
_FIELD_PATTERN = r"[A-Za-z_]\w{0,63}"
_URL_PATTERN = r"https?://(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?(?:/[\w.~%-]*)*"
_CONTACT_PATTERN = r"(?:https?://|mailto:)[^\s<>\"'`\\|()\[\]]{1,300}"
_SIGNATURE_PATTERN = r"0x[0-9a-fA-F]{2,2000}"
_CODE_KEYWORDS = ("default", "enum", "const", "example", "examples", "pattern")
"""Schema keywords whose values are shown unchanged, as code."""

_MAX_REDEEM_HOURS = 1_000_000
_MAX_DEPTH = 64
"""Maximum nesting of objects and lists."""


def is_site_url(text: str) -> bool:
    """Return True for the HTTP(S) URL of an API or a website, safe to put into a header."""
    try:
        port = urlsplit(text).port
    except ValueError:  # unbalanced brackets, or a port that is not a number
        return False
    return port != 0 and bool(re.fullmatch(_URL_PATTERN, text, re.ASCII))


def validate_service(service: ServiceDetail, api: str) -> ServiceDetail:
    """Return a service with its texts sanitized. Raises CatalogUnavailable if no page can be made of it."""
    _check_fields(service, _SERVICE_PATTERNS, f"{api} has a service whose")
    if not service.providers or not service.output_fields:
        raise CatalogUnavailable(f"{api} lists no sources or no output fields for {service.slug}")
    properties = service.input_schema.get("properties")
    if not isinstance(properties, dict):
        raise CatalogUnavailable(f"{api} has no object schema for the input of {service.slug}")
    fields = (*cast(dict[str, Any], properties), *service.input_example, *service.output_fields)
    if invalid := next((each for each in fields if not re.fullmatch(_FIELD_PATTERN, each, re.ASCII)), None):
        raise CatalogUnavailable(
            f"{api} has a field {invalid[:80]!r} in {service.slug}, which is not a valid field name"
        )
    providers = tuple(
        each.model_copy(update={"label": escape_name(each.label)}) for each in service.providers
    )
    sources = tuple(each.model_copy(update={"terms": escape_line(each.terms)}) for each in service.sources)
    return service.model_copy(
        update={
            "title": escape_name(service.title),
            "summary": escape_line(service.summary),
            "description": escape_line(service.description),
            "pricing_note": escape_line(service.pricing_note),
            "guardrails": tuple(map(escape_line, service.guardrails)),
            "providers": providers,
            "sources": sources,
            "input_schema": _sanitize_descriptions(service.input_schema),
            "output_schema": _sanitize_descriptions(service.output_schema),
        }
    )


def validate_terms(terms: ListedRequirements, api: str) -> ListedRequirements:
    """Validate payment terms and sanitize their texts. Raises CatalogUnavailable, also for non-EVM chains."""
    _check_fields(terms, _TERMS_PATTERNS, f"{api} has payment terms whose")
    texts = {key: escape_name(str(terms.extra.get(key, ""))) for key in ("name", "version")}
    return terms.model_copy(update={"extra": {**terms.extra, **texts}})


def sanitize_health(health: Health) -> Health:
    """Sanitize the texts of a health response."""
    return health.model_copy(update={"status": escape_name(health.status), "db": escape_name(health.db)})


def validate_openapi(openapi: Mapping[str, Any], api: str) -> dict[str, Any]:
    """Return the OpenAPI document, sanitized. Raises CatalogUnavailable if it has no version or licence."""
    try:
        document = _sanitize_descriptions(openapi)
        info: dict[str, Any] = document["info"]
        info["version"], info["license"]["name"] = (
            escape_name(info["version"]),
            escape_name(info["license"]["name"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CatalogUnavailable(f"{api}/openapi.json has no version or no licence") from error
    return document


def has_security_scheme(openapi: Mapping[str, Any], name: str) -> bool:
    """Return True if an OpenAPI document declares a security scheme of this name."""
    return name in as_object(get_path(openapi, "components", "securitySchemes"))


def parse_contact(contact: Any) -> str | None:
    """Return the operator's contact as a URL, or None if it is missing or unsafe to link to."""
    fields = as_object(contact)
    addresses = (fields.get("url"), f"mailto:{fields.get('email')}" if fields.get("email") else None)
    return next(
        (each for each in addresses if isinstance(each, str) and re.fullmatch(_CONTACT_PATTERN, each)), None
    )


def parse_redeem_hours(openapi: Any) -> float | None:
    """Return the hours for which a payment can be redeemed, or None if the API does not publish them."""
    hours = get_path(openapi, "x-delivery-terms", "redeemableHours")
    if isinstance(hours, bool) or not isinstance(hours, int | float):
        return None
    return float(hours) if 0 < hours <= _MAX_REDEEM_HOURS else None


def parse_link(address: Any) -> str | None:
    """Return an http or https URL, or None if it is missing or unsafe to link to."""
    is_safe = isinstance(address, str) and address.startswith(("https://", "http://"))
    return address if is_safe and re.fullmatch(_CONTACT_PATTERN, address) else None


def parse_proofs(x402: Any) -> list[str]:
    """Return the operator's ownership proofs, without malformed ones."""
    proofs = as_list(get_path(x402, "ownershipProofs"))
    return [each for each in proofs if isinstance(each, str) and re.fullmatch(_SIGNATURE_PATTERN, each)]


def parse_signer(x402: Any) -> str | None:
    """Return the address that signs offers and receipts, or None."""
    signer = get_path(x402, "receiptSigner")
    return signer if isinstance(signer, str) and re.fullmatch(_TERMS_PATTERNS["pay_to"], signer) else None


def _check_fields(model: object, patterns: Mapping[str, str], prefix: str) -> None:
    """Check fields against their patterns. Raises CatalogUnavailable; the message begins with `prefix`."""
    for field, pattern in patterns.items():
        value = str(getattr(model, field))
        if not re.fullmatch(pattern, value, re.ASCII):
            raise CatalogUnavailable(f"{prefix} {field} is {value[:80]!r}, which this website cannot show")


def _sanitize_descriptions(node: Any, depth: int = 0) -> Any:
    """Return JSON with every description and summary sanitized to one line."""
    if depth > _MAX_DEPTH:
        raise CatalogUnavailable("the API's documents are nested too deeply to be shown")
    if isinstance(node, list):
        return [_sanitize_descriptions(each, depth + 1) for each in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    return {key: _sanitize_member(key, value, depth + 1) for key, value in cast(dict[str, Any], node).items()}


def _sanitize_member(key: str, value: Any, depth: int) -> Any:
    if key in _CODE_KEYWORDS:
        return value
    if key == "properties" and isinstance(value, dict):
        return {
            field: _sanitize_descriptions(each, depth) for field, each in cast(dict[str, Any], value).items()
        }
    if key in ("description", "summary") and isinstance(value, str):
        return escape_line(value)
    return _sanitize_descriptions(value, depth)
