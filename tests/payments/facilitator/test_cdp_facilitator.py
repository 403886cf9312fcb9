"""Simulator of Coinbase's hosted facilitator: token checks and published response shapes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from buyer import ApiFactory, Buyer, decode_header, pay, sign_payload, sign_payment
from cdp_facilitator import (
    ERRORS,
    KEY_ID,
    CdpFacilitator,
    cdp_error,
    cdp_settle_rejection,
    cdp_settlement_pending,
    cdp_verify_rejection,
    open_cdp_facilitator,
)
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from facilitators import Reply, build_settings
from jsonschema import validate

from centgate.payments.facilitator.cdp import create_cdp_token

HASH = "^0x[0-9a-fA-F]{64}$"
TEXT = {"type": "string", "minLength": 1}
REJECTION = {
    "success": {"const": False},
    "errorReason": TEXT,
    "errorMessage": TEXT,
    "payer": TEXT,
    "network": TEXT,
}
SHAPES: dict[str, tuple[Reply, int, dict[str, Any]]] = {
    "settle rejection": (cdp_settle_rejection("insufficient_funds"), 400, REJECTION),
    "settle rejection with a hash": (
        cdp_settle_rejection("invalid_exact_evm_failed_to_get_receipt", transaction="hash"),
        400,
        REJECTION | {"transaction": {"type": "string", "pattern": HASH}},
    ),
    "verify rejection": (
        cdp_verify_rejection("invalid_payload"),
        400,
        {"isValid": {"const": False}, "invalidReason": TEXT, "invalidMessage": TEXT, "payer": TEXT},
    ),
    "settlement pending": (
        cdp_settlement_pending(),
        500,
        {
            "success": {"const": False},
            "errorReason": {"const": "settlement_pending"},
            "transaction": {"type": "string", "pattern": HASH},
            "network": TEXT,
        },
    ),
    **{
        name: (
            cdp_error(name),
            status,
            {
                "errorType": {"const": name},
                "errorMessage": TEXT,
                "correlationId": TEXT,
                "errorLink": {"type": "string", "pattern": r"^https?://.*$", "minLength": 11},
            },
        )
        for name, (status, _) in ERRORS.items()
    },
}


@pytest.fixture
def cdp() -> Generator[CdpFacilitator]:
    """Scripted facilitator of Coinbase."""
    with open_cdp_facilitator() as simulator:
        yield simulator


@pytest.fixture
def body(api: ApiFactory, cdp: CdpFacilitator, buyer: Buyer, tmp_path: Path) -> dict[str, Any]:
    """Body of a settle call as the API sends it."""
    client = api(build_settings(tmp_path, **cdp.settings))
    payload = sign_payload(client, buyer)
    return {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": payload["accepted"]}


def settle_signed(
    cdp: CdpFacilitator, body: Any, *, signed_for: str = "", secret: str = ""
) -> httpx.Response:
    """Call `/settle` with a token for an address, by default its own."""
    url = cdp.url + "/settle"
    token = create_cdp_token(KEY_ID, secret or cdp.secret, "POST", signed_for or url)
    return httpx.post(url, json=body, headers={"Authorization": f"Bearer {token}"})


def test_cdp_facilitator_settles_payment_of_api(
    api: ApiFactory, cdp: CdpFacilitator, buyer: Buyer, tmp_path: Path
) -> None:
    client = api(build_settings(tmp_path, **cdp.settings))

    response = pay(client, sign_payment(client, buyer))

    assert response.status_code == 200
    assert decode_header(response.headers["PAYMENT-RESPONSE"])["success"] is True
    assert (sum(cdp.moved.values()), cdp.settle_calls, cdp.unauthorized) == (1, 1, 0)


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP256K1()], ids=lambda curve: curve.name)
def test_key_on_another_curve_is_refused(curve: ec.EllipticCurve) -> None:
    key = ec.generate_private_key(curve)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    with pytest.raises(ValueError, match="nor an EC key on P-256 as PEM"):
        create_cdp_token(KEY_ID, pem, "POST", "https://cdp.example/settle")


def test_key_on_p256_signs() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    token = create_cdp_token(KEY_ID, pem, "POST", "https://cdp.example/settle")

    assert jwt.decode(token, key.public_key(), algorithms=["ES256"])["sub"] == KEY_ID


def test_token_for_another_path_is_unauthorized(cdp: CdpFacilitator, body: dict[str, Any]) -> None:
    response = settle_signed(cdp, body, signed_for=cdp.url + "/verify")

    assert (response.status_code, response.json()["errorType"]) == (401, "unauthorized")
    assert (cdp.unauthorized, cdp.settle_calls, sum(cdp.moved.values())) == (1, 0, 0)


def test_token_of_another_key_is_unauthorized(cdp: CdpFacilitator, body: dict[str, Any]) -> None:
    response = settle_signed(cdp, body, secret=CdpFacilitator().secret)

    assert (response.status_code, response.json()["errorType"]) == (401, "unauthorized")


@pytest.mark.extended
@pytest.mark.parametrize("path", ["/settle", "/verify", "/supported"])
def test_call_without_token_is_unauthorized(cdp: CdpFacilitator, path: str) -> None:
    response = httpx.request("GET" if path == "/supported" else "POST", cdp.url + path)

    assert response.status_code == 401


def test_body_without_payment_is_invalid_request(cdp: CdpFacilitator) -> None:
    response = settle_signed(cdp, {"x402Version": 2})

    assert (response.status_code, response.json()["errorType"]) == (400, "invalid_request")


@pytest.mark.extended
@pytest.mark.parametrize("shape", SHAPES)
def test_reply_has_published_shape(cdp: CdpFacilitator, body: dict[str, Any], shape: str) -> None:
    reply, status, properties = SHAPES[shape]
    cdp.next.append(cdp.move_then_reply(reply))

    response = settle_signed(cdp, body)

    assert response.status_code == status
    assert sum(cdp.moved.values()) == 1
    validate(
        response.json(),
        {
            "type": "object",
            "properties": properties,
            "required": sorted(properties),
            "additionalProperties": False,
        },
    )
