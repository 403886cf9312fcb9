"""Payment terms of a service: x402's PaymentRequired, built once per route, with an entry per accepted token.

Shapes are those of x402 version 2 (https://github.com/x402-foundation/x402, specs/x402-specification-v2.md),
the discovery block those of its Bazaar extension.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, cast

import orjson

from centgate.json_schema import iterate_objects, without_field_rules
from centgate.payments.delivery_terms import (
    DELIVERY_TERMS,
    build_delivery_extension,
    build_delivery_terms,
    shorten_delivery_terms,
)
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.assets import Asset
from centgate.signing.eip3009 import domain_separator
from centgate.signing.receipts.signer import ReceiptSigner, create_signer

X402_VERSION = 2
SCHEME = "exact"
PAYMENT_REQUIRED_MESSAGE = "Payment required"
OFFER_REUSE_SECONDS = 30
"""Seconds for which a signed offer is reused; all servers with the same key return the same offer."""
MAX_OFFER_HEADER = 3072
"""Bytes of `PAYMENT-REQUIRED` with signed offers or several tokens: some facilitators reject longer ones.

The discovery block is shortened as far as it goes; signed offers in several tokens need more bytes.
"""
_MAX_OFFER_BYTES = MAX_OFFER_HEADER // 4 * 3 - 48
"""Maximum bytes of JSON in such a header, minus room for the longest of x402's reasons as `error`."""

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
class RouteTerms:
    """Terms of one route in one token: recipient, amount, token and network, and the service paid for.

    Those in the operator's first token have the `alternatives`, and are the ones that headers are made of.
    """

    service: AnyService
    network: str
    asset: Asset
    pay_to: str
    amount: int
    """In the token's base units."""
    window: int
    """Validity of a signature in seconds."""
    url: str
    """The public URL that is paid for."""
    development_chain: int | None
    delivery_terms: Mapping[str, Any]
    """What the buyer is promised, by `build_delivery_terms`."""
    signer: ReceiptSigner | None = None
    """Signer of offers and receipts; None unless the operator has set a key."""
    alternatives: tuple[RouteTerms, ...] = ()
    """Terms of the same route in the other accepted tokens, in the operator's order."""

    @property
    def options(self) -> tuple[RouteTerms, ...]:
        """These terms and the alternatives: one for each entry of `accepts`."""
        return (self, *self.alternatives)

    @cached_property
    def accepts(self) -> list[dict[str, Any]]:
        """x402's `accepts`: the requirements in each token."""
        return [each.requirements for each in self.options]

    def find_option(self, network: str, asset: str) -> RouteTerms | None:
        """Return the terms in a token by its network and address, None if it is not accepted."""
        for each in self.options:
            if each.network == network and each.asset.address.lower() == asset.lower():
                return each
        return None

    @cached_property
    def requirements(self) -> dict[str, Any]:
        """x402's PaymentRequirements: an entry of `accepts`, also sent to the facilitator."""
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
        """EIP-712 domain separator of the token, which buyers sign with."""
        token = self.asset
        chain_id = int(self.network.removeprefix("eip155:"))
        return domain_separator(token.name, token.version, chain_id, token.address)

    @property
    def header(self) -> str:
        """`PAYMENT-REQUIRED` header for a request without a payment."""
        return self._header_cache(self._offer_expiry())

    def header_with_error(self, error: str) -> str:
        """Return the `PAYMENT-REQUIRED` header with x402's `error` set."""
        return encode_header(self.offer_with_error(error))

    def offer_with_error(self, error: str) -> dict[str, Any]:
        """Return x402's PaymentRequired with its `error` set."""
        return {**self._offer_cache(self._offer_expiry()), "error": error}

    def settle_response(self, settlement: dict[str, Any], body: bytes) -> dict[str, Any]:
        """Return x402's SettleResponse of a delivered answer, with a signed receipt if there is a signer."""
        if self.signer is None:
            return settlement
        receipt_extension = self.signer.sign_receipt(settlement, self.url, body, now=int(time.time()))
        return {**settlement, "extensions": receipt_extension}

    def _offer_expiry(self) -> int:
        """Return the expiry of an offer made now, in seconds since 1970: not before a payment signed now."""
        if self.signer is None:
            return 0
        return (int(time.time()) // OFFER_REUSE_SECONDS + 1) * OFFER_REUSE_SECONDS + self.window

    @cached_property
    def _header_cache(self) -> Callable[[int], str]:
        """Cached `header` of the latest offer, by its expiry."""
        return lru_cache(1)(self._build_header)

    @cached_property
    def _offer_cache(self) -> Callable[[int], dict[str, Any]]:
        """Cached PaymentRequired of the latest offer, by its expiry."""
        return lru_cache(1)(self._build_offer)

    def _build_header(self, expiry: int) -> str:
        return encode_header(self._offer_cache(expiry))

    def _build_offer(self, expiry: int) -> dict[str, Any]:
        """Build PaymentRequired.

        With signed offers or several tokens, extensions are shortened to fit the header.
        """
        if self.signer is None and not self.alternatives:
            return self._payment_required({"bazaar": self.listing, **self._other_extensions})
        signed_extension = (
            self.signer.sign_offers(self.accepts, self.url, until=expiry) if self.signer else {}
        )
        offer: dict[str, Any] = {}
        for listing, others in self._shorten_extensions():
            offer = self._payment_required({"bazaar": listing, **others, **signed_extension})
            if len(orjson.dumps(offer)) <= _MAX_OFFER_BYTES:
                break
        return offer

    @cached_property
    def _other_extensions(self) -> dict[str, Any]:
        delivery = build_delivery_extension(self.delivery_terms)
        return {PAYMENT_IDENTIFIER: _IDENTIFIER_EXTENSION, DELIVERY_TERMS: delivery}

    def _shorten_extensions(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield the discovery block and the other extensions, in full, then shorter and shorter.

        The delivery terms may be shortened or left out, since the OpenAPI document has them too.
        """
        others, shortest = self._other_extensions, self.listing
        yield self.listing, others
        delivery = build_delivery_extension(shorten_delivery_terms(self.delivery_terms))
        for shortest in _shorten_listing(self.listing):
            yield shortest, {**others, DELIVERY_TERMS: delivery}
        yield shortest, {PAYMENT_IDENTIFIER: _IDENTIFIER_EXTENSION}

    def _payment_required(self, extensions: dict[str, Any]) -> dict[str, Any]:
        return {
            "x402Version": X402_VERSION,
            "error": PAYMENT_REQUIRED_MESSAGE,
            "resource": self.resource,
            "accepts": self.accepts,
            "extensions": extensions,
        }

    def _example_answer(self) -> dict[str, Any]:
        """Build an example answer for directories, shortened to the available room."""
        return {
            "service": self.service.slug,
            "requestId": "req_0123456789abcdef01234567",
            "cache": {"hit": False},
            "providers": [{"name": self.service.sources[0].info.name, "status": "ok"}],
            "warnings": [],
            "data": _excerpt_fields(self.service.output_example),
        }

    @cached_property
    def listing_digest(self) -> str:
        """Digest of `resource` and `listing`, by which another version of the server recognises its own."""
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
        """Discovery block for directories: an example of input and output, and their schema."""
        schema = self.service.input_schema(self.development_chain)
        request = _strip_descriptions(without_field_rules(schema))
        return {
            "info": {
                "input": {
                    "type": "http",
                    "method": "POST",
                    "bodyType": "json",
                    "body": self.service.input_example,
                },
                "output": {"type": "json", "example": self._example_answer()},
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


def encode_header(content: Mapping[str, Any]) -> str:
    """Encode JSON as base64, as x402's headers carry it."""
    return b64encode(orjson.dumps(content)).decode()


def _shorten_listing(listing: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a discovery block in full, then shorter and shorter; always with an example of the output.

    Directories refuse a route without an output, and one whose schema has no `output.properties.example`.
    """
    yield listing
    outlined = deepcopy(listing)
    fields: dict[str, Any] = outlined["schema"]["properties"]["input"]["properties"]
    fields["body"] = _outline_schema(fields["body"])
    yield outlined
    for room in (100, 0):
        yield _with_minimal_output(outlined, room)
    shortest = _with_minimal_output(outlined, 0)
    del shortest["schema"]["$schema"]
    shortest["schema"]["properties"]["input"] = {"type": "object", "properties": {"body": fields["body"]}}
    yield shortest


def _with_minimal_output(listing: dict[str, Any], room: int) -> dict[str, Any]:
    """Return a discovery block whose output has only the name of the service and `room` bytes of data."""
    minimal = deepcopy(listing)
    example = listing["info"]["output"]["example"]
    data = _excerpt_fields(example["data"], room)
    minimal["info"]["output"]["example"] = {"service": example["service"], "data": data}
    minimal["schema"]["properties"]["output"] = {"properties": {"example": {"type": "object"}}}
    return minimal


def _outline_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an object's schema with names and types of its fields only."""
    fields = {
        name: {"type": field["type"]} if "type" in field else {}
        for name, field in schema["properties"].items()
    }
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"type": "object", "properties": fields, **required}


def _strip_descriptions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions: headers have little room, the catalogue has the full schema."""
    stripped = orjson.loads(orjson.dumps(schema))
    for node in iterate_objects(stripped):
        if isinstance(node.get("description"), str):
            del node["description"]
    stripped.pop("$schema", None)
    return stripped


def _excerpt_fields(sample: dict[str, Any], room: int = 400) -> dict[str, Any]:
    """Return as many of the sample's short fields, in order, as fit in `room` bytes."""
    excerpt: dict[str, Any] = {}
    for name, value in sample.items():
        size = len(orjson.dumps({name: value}))
        if size <= room:
            excerpt[name] = value
            room -= size
    return excerpt


def parse_idempotency_key(identifier: str | None, header: str | None) -> str | None:
    """Return the buyer's idempotency key: the payment's own identifier, or the `Idempotency-Key` header.

    The header may be quoted, as the IETF's draft has it (draft-ietf-httpapi-idempotency-key-header).
    Raises ValueError for a malformed key, and for two that differ.
    """
    if header is None:
        return identifier
    is_quoted = len(header) > 1 and header[0] == header[-1] == '"'
    header_key = _validate_identifier(header[1:-1] if is_quoted else header, "Idempotency-Key")
    if identifier not in (None, header_key):
        raise ValueError("Idempotency-Key and the payment identifier differ; send one of them")
    return header_key


def parse_payment_identifier(extensions: dict[str, Any] | None) -> str | None:
    """Return the payment identifier of a payload's extensions. Raises ValueError for a malformed one."""
    extension = extensions.get(PAYMENT_IDENTIFIER) if extensions else None
    info = cast(dict[str, Any], extension).get("info") if isinstance(extension, dict) else None
    value = cast(dict[str, Any], info).get("id") if isinstance(info, dict) else None
    return None if value is None else _validate_identifier(value, "the payment identifier")


def _validate_identifier(value: Any, name: str) -> str:
    is_valid = (
        isinstance(value, str) and value.replace("_", "").replace("-", "").isalnum() and value.isascii()
    )
    if not is_valid or not 16 <= len(value) <= 128:
        raise ValueError(f"{name} must be 16 to 128 letters, digits, - or _")
    return value


def _to_base_units(price: Decimal, token: Asset) -> int:
    """Convert dollars to the token's base units. Raises ValueError for a part of a unit."""
    amount = price.scaleb(token.decimals)
    if amount != int(amount):
        raise ValueError(f"the price {price} has more than the {token.decimals} decimals of {token.name}")
    return int(amount)


def build_terms(service: AnyService, settings: Settings) -> RouteTerms:
    """Build the terms of one route: those in the first accepted token, with the others as alternatives.

    Raises ValueError for a deployment without an address to be paid at.
    """
    if not settings.accepted_tokens:
        raise ValueError("payment terms need an address to be paid at")
    signer, delivery_terms = create_signer(settings.receipt_key), build_delivery_terms(settings)
    first, *others = [
        RouteTerms(
            service=service,
            network=token.network,
            asset=token.asset,
            pay_to=token.pay_to,
            amount=_to_base_units(settings.price_of(service.slug), token.asset),
            window=settings.payment_window,
            url=settings.base_url + service.path,
            development_chain=settings.development_chain,
            delivery_terms=delivery_terms,
            signer=signer,
        )
        for token in settings.accepted_tokens
    ]
    return replace(first, alternatives=tuple(others))


def list_requirements(service: AnyService, settings: Settings) -> list[dict[str, Any]]:
    """Return x402's `accepts` of a route; empty without an address to be paid at."""
    return build_terms(service, settings).accepts if settings.accepted_tokens else []
