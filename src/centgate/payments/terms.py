"""Payment terms of a service: x402's PaymentRequired, built once per route, with an entry per accepted token.

Shapes are those of x402 version 2 (https://github.com/x402-foundation/x402, specs/x402-specification-v2.md).
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any

import orjson
from msgspec import Struct

from centgate.payments.delivery_terms import (
    DELIVERY_TERMS,
    build_delivery_extension,
    shorten_delivery_terms,
)
from centgate.payments.idempotency_key import IDENTIFIER_EXTENSION, PAYMENT_IDENTIFIER
from centgate.payments.paid_route import PaidRoute, build_paid_route, shorten_listing
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.assets import Asset, parse_chain_id
from centgate.signing.eip3009 import domain_separator

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


class TokenTerms(Struct, frozen=True, dict=True):
    """Terms of one route in one token: an entry of x402's `accepts`."""

    route: PaidRoute
    network: str
    asset: Asset
    pay_to: str
    amount: int
    """In the token's base units."""

    @cached_property
    def requirements(self) -> dict[str, Any]:
        """x402's PaymentRequirements: an entry of `accepts`, also sent to the facilitator."""
        return {
            "scheme": SCHEME,
            "network": self.network,
            "asset": self.asset.address,
            "amount": str(self.amount),
            "payTo": self.pay_to,
            "maxTimeoutSeconds": self.route.window,
            "extra": {"name": self.asset.name, "version": self.asset.version, "paymentFlow": "upfront"},
        }

    @cached_property
    def domain(self) -> bytes:
        """EIP-712 domain separator of the token, which buyers sign with."""
        token = self.asset
        chain_id = parse_chain_id(self.network)
        return domain_separator(token.name, token.version, chain_id, token.address)


class RouteTerms(Struct, frozen=True, dict=True):
    """Terms of one route in each accepted token, and x402's PaymentRequired made of them."""

    route: PaidRoute
    tokens: tuple[TokenTerms, ...]
    """In the operator's order; at least one."""

    @property
    def first(self) -> TokenTerms:
        """The terms in the operator's first token, the only one of MPP."""
        return self.tokens[0]

    @cached_property
    def accepts(self) -> list[dict[str, Any]]:
        """x402's `accepts`: the requirements in each token."""
        return [each.requirements for each in self.tokens]

    def find_token(self, network: str, asset: str) -> TokenTerms | None:
        """Return the terms in a token by its network and address, None if it is not accepted."""
        for each in self.tokens:
            if each.network == network and each.asset.address.lower() == asset.lower():
                return each
        return None

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

    def _offer_expiry(self) -> int:
        """Return the expiry of an offer made now, in seconds since 1970: not before a payment signed now."""
        if self.route.signer is None:
            return 0
        return (int(time.time()) // OFFER_REUSE_SECONDS + 1) * OFFER_REUSE_SECONDS + self.route.window

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
        route, signer = self.route, self.route.signer
        if signer is None and len(self.tokens) == 1:
            return self._payment_required({"bazaar": route.listing, **self._other_extensions})
        signed_extension = signer.sign_offers(self.accepts, route.url, until=expiry) if signer else {}
        offer: dict[str, Any] = {}
        for listing, others in self._shorten_extensions():
            offer = self._payment_required({"bazaar": listing, **others, **signed_extension})
            if len(orjson.dumps(offer)) <= _MAX_OFFER_BYTES:
                break
        return offer

    @cached_property
    def _other_extensions(self) -> dict[str, Any]:
        delivery = build_delivery_extension(self.route.delivery_terms)
        return {PAYMENT_IDENTIFIER: IDENTIFIER_EXTENSION, DELIVERY_TERMS: delivery}

    def _shorten_extensions(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield the discovery block and the other extensions, in full, then shorter and shorter.

        The delivery terms may be shortened or left out, since the OpenAPI document has them too.
        """
        others, shortest = self._other_extensions, self.route.listing
        yield shortest, others
        delivery = build_delivery_extension(shorten_delivery_terms(self.route.delivery_terms))
        for shortest in shorten_listing(self.route.listing):
            yield shortest, {**others, DELIVERY_TERMS: delivery}
        yield shortest, {PAYMENT_IDENTIFIER: IDENTIFIER_EXTENSION}

    def _payment_required(self, extensions: dict[str, Any]) -> dict[str, Any]:
        return {
            "x402Version": X402_VERSION,
            "error": PAYMENT_REQUIRED_MESSAGE,
            "resource": self.route.resource,
            "accepts": self.accepts,
            "extensions": extensions,
        }


def encode_header(content: Mapping[str, Any]) -> str:
    """Encode JSON as base64, as x402's headers carry it."""
    return b64encode(orjson.dumps(content)).decode()


def _to_base_units(price: Decimal, token: Asset) -> int:
    """Convert dollars to the token's base units. Raises ValueError for a part of a unit."""
    amount = price.scaleb(token.decimals)
    if amount != int(amount):
        raise ValueError(f"the price {price} has more than the {token.decimals} decimals of {token.name}")
    return int(amount)


def build_terms(service: AnyService, settings: Settings) -> RouteTerms:
    """Build the terms of one route.

    Raises ValueError for a deployment without an address to be paid at.
    """
    if not settings.accepted_tokens:
        raise ValueError("payment terms need an address to be paid at")
    route, price = build_paid_route(service, settings), settings.price_of(service.slug)
    return RouteTerms(
        route,
        tuple(
            TokenTerms(route, token.network, token.asset, token.pay_to, _to_base_units(price, token.asset))
            for token in settings.accepted_tokens
        ),
    )


def list_requirements(service: AnyService, settings: Settings) -> list[dict[str, Any]]:
    """Return x402's `accepts` of a route; empty without an address to be paid at."""
    return build_terms(service, settings).accepts if settings.accepted_tokens else []
