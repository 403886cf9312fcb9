"""Payment terms of a service: x402's PaymentRequired, built once per route.

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

from centgate.json_schema import iterate_objects
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
"""Maximum bytes of `PAYMENT-REQUIRED` with a signed offer: some facilitators reject longer ones."""
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
    """Terms of one route: recipient, amount, token and network, and the service that is paid for."""

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
    signer: ReceiptSigner | None = None
    """Signer of offers and receipts; None unless the operator has set a key."""

    @cached_property
    def requirements(self) -> dict[str, Any]:
        """x402's PaymentRequirements: the only entry of `accepts`, also sent to the facilitator."""
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
        return _encode_header(self.offer_with_error(error))

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
        return _encode_header(self._offer_cache(expiry))

    def _build_offer(self, expiry: int) -> dict[str, Any]:
        """Build PaymentRequired; with a signed offer, the discovery block is shortened to fit the header."""
        if self.signer is None:
            return self._payment_required({"bazaar": self.listing, PAYMENT_IDENTIFIER: _IDENTIFIER_EXTENSION})
        signed_extension = self.signer.sign_offer(self.requirements, self.url, until=expiry)
        offer: dict[str, Any] = {}
        for listing in _shorten_listing(self.listing):
            offer = self._payment_required(
                {"bazaar": listing, PAYMENT_IDENTIFIER: _IDENTIFIER_EXTENSION, **signed_extension}
            )
            if len(orjson.dumps(offer)) <= _MAX_OFFER_BYTES:
                break
        return offer

    def _payment_required(self, extensions: dict[str, Any]) -> dict[str, Any]:
        return {
            "x402Version": X402_VERSION,
            "error": PAYMENT_REQUIRED_MESSAGE,
            "resource": self.resource,
            "accepts": [self.requirements],
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
        request = _strip_descriptions(self.service.input_schema(self.development_chain))
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


def _encode_header(content: Mapping[str, Any]) -> str:
    """Encode JSON as base64, as x402's headers carry it."""
    return b64encode(orjson.dumps(content)).decode()


def _shorten_listing(listing: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a discovery block in full, then without the output, then with the input schema in outline."""
    yield listing
    input_schema = listing["schema"]["properties"]["input"]
    yield _input_only_listing(listing, input_schema)
    fields = {**input_schema["properties"], "body": _outline_schema(input_schema["properties"]["body"])}
    yield _input_only_listing(listing, {**input_schema, "properties": fields})


def _input_only_listing(listing: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a discovery block with the input only."""
    return {
        "info": {"input": listing["info"]["input"]},
        "schema": {**listing["schema"], "properties": {"input": schema}},
    }


def _outline_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an object's schema with names and types of its fields only."""
    fields = {
        name: {"type": field["type"]} if "type" in field else {}
        for name, field in schema["properties"].items()
    }
    return {"type": "object", "properties": fields, "required": schema.get("required", [])}


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


def build_terms(service: AnyService, settings: Settings) -> RouteTerms:
    """Build the terms of one route. Raises ValueError for a deployment without an address to be paid at."""
    if settings.pay_to is None:
        raise ValueError("payment terms need an address to be paid at")
    token = settings.token
    return RouteTerms(
        service=service,
        network=settings.network,
        asset=token,
        pay_to=settings.pay_to,
        amount=int(service.price * Decimal(10) ** token.decimals),
        window=settings.payment_window,
        url=settings.base_url + service.path,
        development_chain=settings.development_chain,
        signer=create_signer(settings.receipt_key),
    )
