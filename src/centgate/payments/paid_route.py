"""A paid route as payments name it: its URL and service, and how directories list it.

Shapes are those of x402 version 2 (https://github.com/x402-foundation/x402, specs/x402-specification-v2.md),
the discovery block those of its Bazaar extension.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from typing import Any

import orjson
from msgspec import Struct

from centgate.json_schema import iterate_objects, without_field_rules
from centgate.payments.delivery_terms import build_delivery_terms
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.receipts.signer import ReceiptSigner, create_signer


class PaidRoute(Struct, frozen=True, dict=True):
    """A service at its public URL, and what is the same for a payment in each token."""

    service: AnyService
    url: str
    """The public URL that is paid for."""
    window: int
    """Validity of a signature in seconds."""
    development_chain: int | None
    delivery_terms: Mapping[str, Any]
    """What the buyer is promised, by `build_delivery_terms`."""
    signer: ReceiptSigner | None = None
    """Signer of offers and receipts; None unless the operator has set a key."""

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

    def settle_response(self, settlement: dict[str, Any], body: bytes) -> dict[str, Any]:
        """Return x402's SettleResponse of a delivered answer, with a signed receipt if there is a signer."""
        if self.signer is None:
            return settlement
        receipt_extension = self.signer.sign_receipt(settlement, self.url, body, now=int(time.time()))
        return {**settlement, "extensions": receipt_extension}


def build_paid_route(service: AnyService, settings: Settings) -> PaidRoute:
    """Build the route of a service by the settings of a deployment."""
    return PaidRoute(
        service=service,
        url=settings.base_url + service.path,
        window=settings.payment_window,
        development_chain=settings.development_chain,
        delivery_terms=build_delivery_terms(settings),
        signer=create_signer(settings.receipt_key),
    )


def shorten_listing(listing: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
