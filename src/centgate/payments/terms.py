"""What a service asks for: x402's PaymentRequired, built once per route.

Shapes are those of x402 version 2 (https://github.com/x402-foundation/x402, specs/x402-specification-v2.md),
the discovery block those of its Bazaar extension.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, cast

import orjson

from centgate.dollars import Asset
from centgate.eip3009 import domain_separator
from centgate.receipts.signer import Signer, signer_of
from centgate.schema import walk
from centgate.service import AnyService
from centgate.settings import Settings

X402_VERSION = 2
SCHEME = "exact"
ASKED = "Payment required"
OFFER_KEPT = 30
"""Seconds that a signed offer is kept: all who ask meanwhile, at any server of the key, are told the same."""
MOST_HEADER = 3072
"""Bytes of `PAYMENT-REQUIRED` with a signed offer: some facilitators refuse payments for longer ones."""
_ROOM = MOST_HEADER // 4 * 3 - 48
"""Bytes of JSON in such a header, less what the longest of x402's reasons takes in place of `ASKED`."""

PAYMENT_IDENTIFIER = "payment-identifier"
_IDENTIFIER_EXTENSION: dict[str, Any] = {
    "info": {"required": False},
    "schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "required": {"type": "boolean"},
            "id": {"type": "string", "minLength": 16, "maxLength": 128, "pattern": "^[a-zA-Z0-9_-]+$"},
        },
        "required": ["required"],
    },
}


@dataclass(frozen=True)
class Terms:
    """One route's terms: whom to pay how much of which token on which network, and for what."""

    service: AnyService
    network: str
    asset: Asset
    pay_to: str
    amount: int
    """In the token's base units."""
    window: int
    """Seconds between the signature and its end."""
    url: str
    """The address that is paid for, as buyers call it."""
    development_chain: int | None
    signer: Signer | None = None
    """Who signs offers and receipts; nobody unless the operator has set a key."""

    @cached_property
    def requirements(self) -> dict[str, Any]:
        """x402's PaymentRequirements: the one entry of `accepts`, and what the facilitator is given."""
        return {
            "scheme": SCHEME,
            "network": self.network,
            "asset": self.asset.address,
            "amount": str(self.amount),
            "payTo": self.pay_to,
            "maxTimeoutSeconds": self.window,
            "extra": {"name": self.asset.name, "version": self.asset.version, "paymentFlow": "upfront"},
        }

    @cached_property
    def domain(self) -> bytes:
        """The EIP-712 domain separator buyers sign under."""
        token = self.asset
        chain_id = int(self.network.removeprefix("eip155:"))
        return domain_separator(token.name, token.version, chain_id, token.address)

    @property
    def header(self) -> str:
        """`PAYMENT-REQUIRED` for a request that brought no payment."""
        return self._headers(self._ends())

    def header_saying(self, error: str) -> str:
        """`PAYMENT-REQUIRED` with x402's `error` set."""
        return _encoded(self.offer_saying(error))

    def offer_saying(self, error: str) -> dict[str, Any]:
        """x402's PaymentRequired with its `error` set."""
        return {**self._offers(self._ends()), "error": error}

    def delivered(self, settlement: dict[str, Any], body: bytes) -> dict[str, Any]:
        """x402's SettleResponse of a delivery: with a receipt for it, where receipts are signed."""
        if self.signer is None:
            return settlement
        signed = self.signer.receipt(settlement, self.url, body, now=int(time.time()))
        return {**settlement, "extensions": signed}

    def _ends(self) -> int:
        """When an offer made now ends, in seconds since 1970: not before a payment signed now does."""
        if self.signer is None:
            return 0
        return (int(time.time()) // OFFER_KEPT + 1) * OFFER_KEPT + self.window

    @cached_property
    def _headers(self) -> Callable[[int], str]:
        """`header` by when its offer ends, kept until the next."""
        return lru_cache(1)(self._header)

    @cached_property
    def _offers(self) -> Callable[[int], dict[str, Any]]:
        """x402's PaymentRequired by when its offer ends, kept until the next."""
        return lru_cache(1)(self._offer)

    def _header(self, ends: int) -> str:
        return _encoded(self._offers(ends))

    def _offer(self, ends: int) -> dict[str, Any]:
        """PaymentRequired; beside a signed offer, directories are told what there is room for."""
        if self.signer is None:
            return self._with({"bazaar": self.listing, PAYMENT_IDENTIFIER: _IDENTIFIER_EXTENSION})
        signed = self.signer.offer(self.requirements, self.url, until=ends)
        offer: dict[str, Any] = {}
        for listing in _shorter(self.listing):
            offer = self._with({"bazaar": listing, PAYMENT_IDENTIFIER: _IDENTIFIER_EXTENSION, **signed})
            if len(orjson.dumps(offer)) <= _ROOM:
                break
        return offer

    def _with(self, extensions: dict[str, Any]) -> dict[str, Any]:
        return {
            "x402Version": X402_VERSION,
            "error": ASKED,
            "resource": self.resource,
            "accepts": [self.requirements],
            "extensions": extensions,
        }

    def _answer(self) -> dict[str, Any]:
        """What an answer looks like, as far as there is room for it."""
        return {
            "service": self.service.slug,
            "requestId": "req_0123456789abcdef01234567",
            "cache": {"hit": False},
            "providers": [{"name": self.service.sources[0].about.name, "status": "ok"}],
            "warnings": [],
            "data": _excerpt(self.service.output_example),
        }

    @cached_property
    def listing_digest(self) -> str:
        """A digest of `resource` and `listing`, by which another version of this program knows its own."""
        return sha256(orjson.dumps([self.resource, self.listing])).hexdigest()[:16]

    @cached_property
    def resource(self) -> dict[str, Any]:
        """x402's ResourceInfo."""
        return {
            "url": self.url,
            "description": self.service.summary,
            "mimeType": "application/json",
            "serviceName": "Centgate",
            "tags": list(self.service.tags),
        }

    @cached_property
    def listing(self) -> dict[str, Any]:
        """How a directory lists the route: an example of input and output, and the schema they keep to."""
        request = _terse(self.service.input_schema(self.development_chain))
        return {
            "info": {
                "input": {
                    "type": "http",
                    "method": "POST",
                    "bodyType": "json",
                    "body": self.service.input_example,
                },
                "output": {"type": "json", "example": self._answer()},
            },
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "input": {
                        "type": "object",
                        "properties": {
                            "type": {"type": "string", "const": "http"},
                            "method": {"type": "string", "enum": ["POST"]},
                            "bodyType": {"type": "string", "enum": ["json"]},
                            "body": request,
                        },
                        "required": ["type", "method", "bodyType", "body"],
                        "additionalProperties": False,
                    },
                    "output": {
                        "type": "object",
                        "properties": {"type": {"type": "string"}, "example": {"type": "object"}},
                        "required": ["type"],
                    },
                },
                "required": ["input"],
            },
        }


def _encoded(content: Mapping[str, Any]) -> str:
    """JSON as x402's headers carry it."""
    return b64encode(orjson.dumps(content)).decode()


def _shorter(listing: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A directory's block: whole, then without the example of an answer, then with the input in outline."""
    yield listing
    given = listing["schema"]["properties"]["input"]
    yield _asking(listing, given)
    fields = {**given["properties"], "body": _outline(given["properties"]["body"])}
    yield _asking(listing, {**given, "properties": fields})


def _asking(listing: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A directory's block that tells of the input alone."""
    return {
        "info": {"input": listing["info"]["input"]},
        "schema": {**listing["schema"], "properties": {"input": schema}},
    }


def _outline(schema: dict[str, Any]) -> dict[str, Any]:
    """What an object's schema says of its fields, less what each may be."""
    fields = {
        name: {"type": field["type"]} if "type" in field else {}
        for name, field in schema["properties"].items()
    }
    return {"type": "object", "properties": fields, "required": schema.get("required", [])}


def _terse(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without its prose: headers have little room, the catalogue has the rest."""
    terse = orjson.loads(orjson.dumps(schema))
    for node in walk(terse):
        if isinstance(node.get("description"), str):
            del node["description"]
    terse.pop("$schema", None)
    return terse


def _excerpt(sample: dict[str, Any], room: int = 400) -> dict[str, Any]:
    """As many of the sample's short fields, in order, as fit in `room` bytes."""
    excerpt: dict[str, Any] = {}
    for name, value in sample.items():
        size = len(orjson.dumps({name: value}))
        if size <= room:
            excerpt[name] = value
            room -= size
    return excerpt


def idempotency_key(inside: str | None, header: str | None) -> str | None:
    """Return the buyer's idempotency key: the payment identifier `inside` a payment, or `Idempotency-Key`.

    The header may be quoted, as the IETF's draft has it (draft-ietf-httpapi-idempotency-key-header).
    Raises ValueError for one that is malformed, and for two that differ.
    """
    if header is None:
        return inside
    quoted = len(header) > 1 and header[0] == header[-1] == '"'
    beside = _plain(header[1:-1] if quoted else header, "Idempotency-Key")
    if inside not in (None, beside):
        raise ValueError("Idempotency-Key and the payment identifier differ; send one of them")
    return beside


def payment_identifier(extensions: dict[str, Any] | None) -> str | None:
    """Return the payment identifier of a payload's extensions. Raises ValueError for a malformed one."""
    extension = extensions.get(PAYMENT_IDENTIFIER) if extensions else None
    info = cast(dict[str, Any], extension).get("info") if isinstance(extension, dict) else None
    value = cast(dict[str, Any], info).get("id") if isinstance(info, dict) else None
    return None if value is None else _plain(value, "the payment identifier")


def _plain(value: Any, name: str) -> str:
    plain = isinstance(value, str) and value.replace("_", "").replace("-", "").isalnum() and value.isascii()
    if not plain or not 16 <= len(value) <= 128:
        raise ValueError(f"{name} must be 16 to 128 letters, digits, - or _")
    return value


def terms_of(service: AnyService, settings: Settings) -> Terms:
    """The terms of one route on this deployment, which takes payments."""
    if settings.pay_to is None:
        raise ValueError("no terms without an address to pay to")
    token = settings.token
    return Terms(
        service=service,
        network=settings.network,
        asset=token,
        pay_to=settings.pay_to,
        amount=int(service.price * Decimal(10) ** token.decimals),
        window=settings.payment_window,
        url=settings.address + service.path,
        development_chain=settings.development_chain,
        signer=signer_of(settings.receipt_key),
    )
