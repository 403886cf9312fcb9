"""Payment payloads: exactly the shapes are accepted that the models of the x402 package accept."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Annotated, Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from x402.schemas import PaymentPayload as SdkPayload

from centgate.payments.payload import decode_payload, parse_payload

Address = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
Number = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,77})$")]


class Authorization(BaseModel):
    """EIP-3009's fields; the package has no model of them that checks their form."""

    model_config = ConfigDict(strict=True)

    payer: Address = Field(alias="from")
    to: Address
    value: Number
    valid_after: Number = Field(alias="validAfter")
    valid_before: Number = Field(alias="validBefore")
    nonce: str = Field(pattern=r"^0x[0-9a-fA-F]{64}$")


class Exact(BaseModel):
    """`payload` of scheme `exact`."""

    model_config = ConfigDict(strict=True)

    signature: str = Field(pattern=r"^0x([0-9a-fA-F]{2})+$")
    authorization: Authorization


AUTHORIZATION: dict[str, Any] = {
    "from": "0x" + "Ab" * 20,
    "to": "0x" + "22" * 20,
    "value": "10000",
    "validAfter": "0",
    "validBefore": "1764100000",
    "nonce": "0x" + "5c" * 32,
}
WHOLE: dict[str, Any] = {
    "x402Version": 2,
    "payload": {"signature": "0x" + "1b" * 65, "authorization": AUTHORIZATION},
    "accepted": {
        "scheme": "exact",
        "network": "eip155:84532",
        "asset": "0x" + "33" * 20,
        "amount": "10000",
        "payTo": "0x" + "22" * 20,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2", "paymentFlow": "upfront"},
    },
    "resource": {
        "url": "https://api.example.org/services/phishing-check",
        "description": "A check",
        "mimeType": "application/json",
        "serviceName": "Centgate",
        "tags": ["phishing", "url"],
        "iconUrl": None,
    },
    "extensions": {"bazaar": {"info": {"input": {"type": "http"}}}, "payment-identifier": {"info": {}}},
}
TIMES: tuple[Any, ...] = ("60", " 60 ", "60.0", "6_0", "+60", 60.0, 60.5, True, 2**70, -1, "", "sixty")
PLACES: list[tuple[str, ...]] = [
    (),
    ("payload",),
    ("payload", "authorization"),
    ("accepted",),
    ("accepted", "extra"),
    ("resource",),
    ("extensions",),
]
SPELLINGS = {
    "x402_version": "x402Version",
    "pay_to": "payTo",
    "max_timeout_seconds": "maxTimeoutSeconds",
    "mime_type": "mimeType",
    "service_name": "serviceName",
    "icon_url": "iconUrl",
    "valid_after": "validAfter",
    "payer": "from",
}
VALUES = st.one_of(
    st.sampled_from(TIMES),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.sampled_from(["0", "00", "1", "9" * 78, "1" + "0" * 77, "0x" + "aB" * 20, "0x" + "22" * 20 + "\n"]),
    st.sampled_from(["0x", "0x1", "0x" + "5c" * 32, "0x" + "5c" * 32 + "\n", "0X" + "5c" * 32, "\u0661"]),
    st.just([]),
    st.just(["one"]),
    st.just([1]),
    st.just({}),
    st.just({"url": "https://example.org"}),
)


@st.composite
def draw_altered_payments(draw: st.DrawFn) -> dict[str, Any]:
    """Return a payment with up to three members left out, added, spelled differently or of another value."""
    whole = deepcopy(WHOLE)
    for _ in range(draw(st.integers(0, 3))):
        part: Any = whole
        for name in draw(st.sampled_from(PLACES)):
            part = as_object(part).get(name)
        alter(draw, as_object(part))
    return whole


def as_object(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def alter(draw: st.DrawFn, part: dict[str, Any]) -> None:
    """Change one member of an object."""
    known = st.sampled_from(sorted({*part, *SPELLINGS, *SPELLINGS.values()}))
    name = draw(known | st.text(max_size=3))
    match draw(st.sampled_from(["remove", "replace", "respell"])):
        case "remove":
            part.pop(name, None)
        case "replace":
            part[name] = draw(VALUES)
        case _ if SPELLINGS.get(name) in part:
            part[name] = part.pop(SPELLINGS[name])
        case _:
            pass


def parse_by_sdk(content: Any) -> tuple[Any, ...] | None:
    """Return the fields as the models of the package read them, or None if they refuse the payload."""
    try:
        payload = SdkPayload.model_validate(content)
        exact = Exact.model_validate(payload.payload)
    except ValidationError:
        return None
    signed = exact.authorization
    if any(int(number) >= 2**256 for number in (signed.value, signed.valid_after, signed.valid_before)):
        return None
    return (
        exact.signature,
        signed.model_dump(),
        payload.accepted.model_dump(by_alias=False),
        payload.extensions,
    )


def parse_by_api(content: Any) -> tuple[Any, ...] | None:
    """Return the fields as the API reads them, or None if it refuses the payload."""
    try:
        payload = decode_payload(json.dumps(content)) or parse_payload(content)
    except ValueError:
        return None
    signed, accepted = payload.payload.authorization, payload.accepted
    return (
        payload.payload.signature,
        {name: getattr(signed, name) for name in signed.__struct_fields__},
        {name: getattr(accepted, name) for name in accepted.__struct_fields__},
        payload.extensions and {name: decode(value) for name, value in payload.extensions.items()},
    )


def decode(extension: Any) -> Any:
    """Return the value of an extension, which may not be decoded yet."""
    return json.loads(bytes(extension)) if isinstance(extension, msgspec.Raw) else extension


def test_official_payment_is_read_as_by_sdk() -> None:
    """No field of the usual form is lost."""
    assert parse_by_api(WHOLE) == parse_by_sdk(WHOLE) is not None


def test_official_payment_needs_no_lenient_model() -> None:
    """The usual form is decoded in one step."""
    assert decode_payload(json.dumps(WHOLE)) is not None


@pytest.mark.extended
@given(draw_altered_payments())
def test_altered_payments_are_read_or_refused_as_by_sdk(content: dict[str, Any]) -> None:
    """Unknown members, other spellings and other types: the same values, or the same refusal."""
    assert parse_by_api(content) == parse_by_sdk(content)


@pytest.mark.parametrize("seconds", TIMES, ids=repr)
def test_numbers_are_as_lenient_as_in_sdk(seconds: Any) -> None:
    """The package also reads `maxTimeoutSeconds` from text and whole floats."""
    content = deepcopy(WHOLE)
    content["accepted"]["maxTimeoutSeconds"] = seconds
    assert parse_by_api(content) == parse_by_sdk(content)


@pytest.mark.parametrize("content", [None, 1, "text", [], [WHOLE], {}, {"payload": WHOLE}], ids=repr)
def test_other_content_is_refused(content: Any) -> None:
    """Not an object, or not a payment."""
    assert parse_by_api(content) is None
    assert parse_by_sdk(content) is None
