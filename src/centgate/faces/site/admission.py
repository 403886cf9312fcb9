"""What an API says of itself, as far as it may stand on pages: forms are checked, words are made harmless."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from centgate.client.catalog import CatalogUnread, Entry, Health, Requirements
from centgate.faces.site.wording import line, name

_FORMS = {
    "slug": r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?",
    "category": r"[a-z0-9][a-z0-9 _-]{0,62}",
    "method": r"POST",
    "path": r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*){1,8}",
    "price": r"\$\d{1,6}(?:\.\d{1,6})?",
}
"""What becomes an address, a file or a sum; all else is words."""
_TERMS = {
    "network": r"eip155:[1-9]\d{0,17}",
    "asset": r"0x[0-9a-fA-F]{40}",
    "pay_to": r"0x[0-9a-fA-F]{40}",
    "amount": r"\d{1,30}",
    "scheme": r"[a-z-]{1,30}",
}
_FIELD = r"[A-Za-z_]\w{0,63}"
_ADDRESS = r"https?://(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?(?:/[\w.~%-]*)*"
_CONTACT = r"(?:https?://|mailto:)[^\s<>\"'`\\|()\[\]]{1,300}"
_SIGNATURE = r"0x[0-9a-fA-F]{2,2000}"
_EXAMPLES = ("default", "enum", "const", "example", "examples", "pattern")
"""Keywords of schemas whose values are shown as code, as they are."""

_DEEPEST = 64
"""Objects and lists inside one another."""


def is_address(text: str) -> bool:
    """Whether a text is the address of an API or a website: HTTP, a host, nothing that ends a header."""
    try:
        port = urlsplit(text).port
    except ValueError:  # brackets that do not match, a port that is no number
        return False
    return port != 0 and bool(re.fullmatch(_ADDRESS, text, re.ASCII))


def admitted(service: Entry, api: str) -> Entry:
    """A service whose words keep to their places; CatalogUnread for one that no page can be made of."""
    _check(service, _FORMS, f"{api} says of a service that its")
    if not service.providers or not service.output_fields:
        raise CatalogUnread(f"{api} names no sources or no fields of the answer for {service.slug}")
    properties = service.input_schema.get("properties")
    if not isinstance(properties, dict):
        raise CatalogUnread(f"{api} has no schema of an object for the input of {service.slug}")
    fields = (*cast(dict[str, Any], properties), *service.input_example, *service.output_fields)
    if odd := next((each for each in fields if not re.fullmatch(_FIELD, each, re.ASCII)), None):
        raise CatalogUnread(f"{api} calls a field of {service.slug} {odd[:80]!r}, which no client can name")
    providers = tuple(each.model_copy(update={"label": name(each.label)}) for each in service.providers)
    sources = tuple(each.model_copy(update={"terms": line(each.terms)}) for each in service.sources)
    return service.model_copy(
        update={
            "title": name(service.title),
            "summary": line(service.summary),
            "description": line(service.description),
            "pricing_note": line(service.pricing_note),
            "guardrails": tuple(map(line, service.guardrails)),
            "providers": providers,
            "sources": sources,
            "input_schema": _described(service.input_schema),
            "output_schema": _described(service.output_schema),
        }
    )


def admitted_terms(terms: Requirements, api: str) -> Requirements:
    """Terms whose parts are what they say; CatalogUnread for those of another kind of chain."""
    _check(terms, _TERMS, f"{api} says of its terms that the")
    named = {key: name(str(terms.extra.get(key, ""))) for key in ("name", "version")}
    return terms.model_copy(update={"extra": {**terms.extra, **named}})


def admitted_health(health: Health) -> Health:
    """Health in words."""
    return health.model_copy(update={"status": name(health.status), "db": name(health.db)})


def admitted_document(openapi: Mapping[str, Any], api: str) -> dict[str, Any]:
    """The OpenAPI document, its descriptions one line each; CatalogUnread where it says no version."""
    try:
        document = _described(openapi)
        info: dict[str, Any] = document["info"]
        info["version"], info["license"]["name"] = name(info["version"]), name(info["license"]["name"])
    except (KeyError, TypeError, AttributeError) as error:
        raise CatalogUnread(f"{api}/openapi.json does not say which version it is, or its licence") from error
    return document


def admitted_contact(contact: Any) -> str | None:
    """Whom to write to, if that is an address that a page may link to."""
    given: Mapping[str, Any] = cast(Mapping[str, Any], contact) if isinstance(contact, Mapping) else {}
    addresses = (given.get("url"), f"mailto:{given.get('email')}" if given.get("email") else None)
    return next((each for each in addresses if isinstance(each, str) and re.fullmatch(_CONTACT, each)), None)


def admitted_proofs(x402: Any) -> list[str]:
    """The signatures by which the operator shows who is paid."""
    said = cast(dict[str, Any], x402) if isinstance(x402, dict) else {}
    given = said.get("ownershipProofs")
    proofs = cast(list[Any], given) if isinstance(given, list) else []
    return [each for each in proofs if isinstance(each, str) and re.fullmatch(_SIGNATURE, each)]


def admitted_signer(x402: Any) -> str | None:
    """Who signs offers and receipts, where the API says so."""
    said = cast(dict[str, Any], x402) if isinstance(x402, dict) else {}
    signer = said.get("receiptSigner")
    return signer if isinstance(signer, str) and re.fullmatch(_TERMS["pay_to"], signer) else None


def _check(given: object, forms: Mapping[str, str], beginning: str) -> None:
    for field, form in forms.items():
        value = str(getattr(given, field))
        if not re.fullmatch(form, value, re.ASCII):
            raise CatalogUnread(f"{beginning} {field} is {value[:80]!r}, which this website cannot show")


def _described(node: Any, deep: int = 0) -> Any:
    """JSON in which every description and summary is one harmless line."""
    if deep > _DEEPEST:
        raise CatalogUnread("what the API says of itself is nested too deep to be shown")
    if isinstance(node, list):
        return [_described(each, deep + 1) for each in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    return {key: _member(key, value, deep + 1) for key, value in cast(dict[str, Any], node).items()}


def _member(key: str, value: Any, deep: int) -> Any:
    if key in _EXAMPLES:
        return value
    if key == "properties" and isinstance(value, dict):
        return {field: _described(each, deep) for field, each in cast(dict[str, Any], value).items()}
    if key in ("description", "summary") and isinstance(value, str):
        return line(value)
    return _described(value, deep)
