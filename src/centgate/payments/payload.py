"""Shape of an x402 payment: version 2's PaymentPayload, scheme `exact` over EIP-3009.

What the official clients send is decoded by msgspec, in a fraction of pydantic's time. Everything else is
left to models that accept what those of the `x402` package accept: either spelling of a name, and numbers as
text.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

# `\Z`, because `$` also matches before a newline at the end
Address = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{40}\Z")]
# the first form is that of a key's signature, and is matched in a tenth of the other's time
Signature = Annotated[str, Meta(pattern=r"^0x(?:[0-9a-fA-F]{130}|(?:[0-9a-fA-F]{2})+)\Z")]
Nonce = Annotated[str, Meta(pattern=r"^0x[0-9a-fA-F]{64}\Z")]
Uint256 = Annotated[str, Meta(pattern=r"^(0|[1-9][0-9]{0,77})\Z")]
"""A number as a decimal string, as x402 carries amounts and times; checked to have at most 256 bits."""


def require_256_bits(number: str) -> None:
    """Raise ValueError for a decimal string of more than 256 bits."""
    if len(number) > 77 and int(number) >= 2**256:
        raise ValueError("more than 256 bits")


class TransferAuthorization(Struct, frozen=True):
    """EIP-3009's fields as x402 carries them: numbers are decimal strings."""

    payer: Address = field(name="from")
    to: Address
    value: Uint256
    valid_after: Uint256 = field(name="validAfter")
    valid_before: Uint256 = field(name="validBefore")
    nonce: Nonce

    def __post_init__(self) -> None:
        for number in (self.value, self.valid_after, self.valid_before):
            require_256_bits(number)


class ExactPayload(Struct, frozen=True):
    """A signed authorization: `payload` of an x402 payment of scheme `exact`."""

    signature: Signature
    authorization: TransferAuthorization


class AcceptedTerms(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The entry of `accepts` that a payment was signed for, by its own statement."""

    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str
    max_timeout_seconds: int
    extra: dict[str, Any] = {}


class _Resource(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    url: str
    description: str | None = None
    mime_type: str | None = None
    service_name: str | None = None
    tags: list[str] | None = None
    icon_url: str | None = None


class PaymentPayload(Struct, frozen=True, forbid_unknown_fields=True):
    """A payment of scheme `exact`, as `PAYMENT-SIGNATURE` carries it."""

    x402_version: int = field(name="x402Version")
    payload: ExactPayload
    accepted: AcceptedTerms
    resource: _Resource | None = None
    extensions: dict[str, Any] | None = None
    """By name; `msgspec.Raw` if not decoded yet."""


class _UsualPayload(PaymentPayload, frozen=True, forbid_unknown_fields=True):
    """The same with extensions left undecoded: they are half of a payment, and little of them is read."""

    extensions: dict[str, msgspec.Raw] | None = None


_DECODER = msgspec.json.Decoder(_UsualPayload)


class _LenientModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _LenientTerms(_LenientModel):
    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str
    max_timeout_seconds: int
    extra: dict[str, Any] = {}


class _LenientResource(_LenientModel):
    url: str
    description: str | None = None
    mime_type: str | None = None
    service_name: str | None = None
    tags: list[str] | None = None
    icon_url: str | None = None


class _LenientPayload(_LenientModel):
    x402_version: int = 2
    payload: dict[str, Any]
    accepted: _LenientTerms
    resource: _LenientResource | None = None
    extensions: dict[str, Any] | None = None


def decode_payload(text: str) -> PaymentPayload | None:
    """Decode an x402 payment as the official clients send it; return None for any other text."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def parse_payload(content: Any) -> PaymentPayload:
    """Parse an x402 payment from its JSON. Raises ValueError, which names the member, for anything else."""
    try:
        lenient = _LenientPayload.model_validate(content)
        exact = msgspec.convert(lenient.payload, ExactPayload)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        problem = first["msg"].partition(" or instance of ")[0]  # the rest names a class of this module
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {problem}") from error
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        raise ValueError(f"payload{place.rstrip('`')}: {problem}") from error
    return PaymentPayload(
        x402_version=lenient.x402_version,
        payload=exact,
        accepted=AcceptedTerms(**lenient.accepted.model_dump()),
        extensions=lenient.extensions,
    )
