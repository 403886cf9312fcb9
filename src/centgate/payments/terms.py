"""What a service asks for: x402's PaymentRequired, built once per route.

Shapes are those of x402 version 2 (https://github.com/x402-foundation/x402, specs/x402-specification-v2.md),
the discovery block those of its Bazaar extension.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, cast

import orjson

from centgate.dollars import Asset
from centgate.eip3009 import domain_separator
from centgate.schema import walk
from centgate.service import AnyService
from centgate.settings import Settings

X402_VERSION = 2
SCHEME = "exact"
ASKED = "Payment required"

_IDENTIFIER = "payment-identifier"
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

    @cached_property
    def header(self) -> str:
        """`PAYMENT-REQUIRED` for a request that brought no payment."""
        return self.header_saying(ASKED)

    def header_saying(self, error: str) -> str:
        """`PAYMENT-REQUIRED` with x402's `error` set."""
        return b64encode(orjson.dumps(self.offer_saying(error))).decode()

    def offer_saying(self, error: str) -> dict[str, Any]:
        """x402's PaymentRequired with its `error` set."""
        return {**self._offer, "error": error}

    @cached_property
    def _offer(self) -> dict[str, Any]:
        return {
            "x402Version": X402_VERSION,
            "error": ASKED,
            "resource": {
                "url": self.url,
                "description": self.service.summary,
                "mimeType": "application/json",
                "serviceName": "Centgate",
                "tags": list(self.service.tags),
            },
            "accepts": [self.requirements],
            "extensions": {"bazaar": self._bazaar, _IDENTIFIER: _IDENTIFIER_EXTENSION},
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
    def _bazaar(self) -> dict[str, Any]:
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


def payment_identifier(extensions: dict[str, Any] | None) -> str | None:
    """The idempotency key a payment carries (`payment-identifier`); ValueError when it is malformed."""
    extension = (extensions or {}).get(_IDENTIFIER)
    info = cast(dict[str, Any], extension).get("info") if isinstance(extension, dict) else None
    value = cast(dict[str, Any], info).get("id") if isinstance(info, dict) else None
    if value is None:
        return None
    plain = isinstance(value, str) and value.replace("_", "").replace("-", "").isalnum() and value.isascii()
    if not plain or not 16 <= len(value) <= 128:
        raise ValueError("the payment identifier must be 16 to 128 letters, digits, - or _")
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
    )
