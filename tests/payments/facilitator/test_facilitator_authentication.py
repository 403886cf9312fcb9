"""Authentication at a facilitator: a bearer token, or a new JWT for each request."""

# pyjwt and cryptography are typed in parts
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from buyer import PHISHING, ApiFactory, Buyer, decode_header, encode_header, pay, sign_payload, sign_payment
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from facilitators import StubFacilitator
from pydantic import SecretStr

from centgate.payments.facilitator.cdp import create_cdp_token
from centgate.settings import Settings

KEY_ID = "organizations/1/apiKeys/2"
URL = "https://api.cdp.coinbase.com/platform/v2/x402/settle"

Pair = tuple[str, Any, str]


def make_ed25519_key() -> Pair:
    """Return a key in the form that Coinbase issues, its public key, and its algorithm."""
    key = ed25519.Ed25519PrivateKey.generate()
    seed = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return base64.b64encode(seed + public).decode(), key.public_key(), "EdDSA"


def make_ec_key() -> Pair:
    """Return a key in the form that Coinbase issued earlier."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    return pem, key.public_key(), "ES256"


def make_ec_key_on_one_line() -> Pair:
    """Return the same key as it is in an environment variable."""
    pem, public, algorithm = make_ec_key()
    return pem.replace("\n", "\\n"), public, algorithm


each_key = pytest.mark.parametrize("make", [make_ed25519_key, make_ec_key, make_ec_key_on_one_line])


@each_key
def test_token_is_signed_with_key(make: Callable[[], Pair]) -> None:
    secret, public, algorithm = make()

    token = create_cdp_token(KEY_ID, secret, "POST", URL)

    assert jwt.decode(token, public, algorithms=[algorithm])["sub"] == KEY_ID


@each_key
def test_token_is_for_one_request_and_two_minutes(make: Callable[[], Pair]) -> None:
    secret, public, algorithm = make()

    claims = jwt.decode(create_cdp_token(KEY_ID, secret, "POST", URL), public, algorithms=[algorithm])

    assert claims["uris"] == ["POST api.cdp.coinbase.com/platform/v2/x402/settle"]
    assert claims["iss"] == "cdp"
    assert claims["exp"] - claims["nbf"] == 120
    assert claims["nbf"] == pytest.approx(time.time(), abs=5)


@each_key
def test_token_header_names_key_and_nonce(make: Callable[[], Pair]) -> None:
    secret, _, algorithm = make()

    headers = [jwt.get_unverified_header(create_cdp_token(KEY_ID, secret, "POST", URL)) for _ in range(2)]

    assert [(header["kid"], header["alg"]) for header in headers] == [(KEY_ID, algorithm)] * 2
    assert headers[0]["nonce"] != headers[1]["nonce"]


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        ("\u2026", "is neither base64 nor PEM"),
        ("", "is neither an Ed25519 key"),
        ("no base64!", "is neither base64 nor PEM"),
        ("AAAA", "is neither an Ed25519 key in base64 nor an EC key on P-256 as PEM"),
        ("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----", "is not a readable PEM key"),
    ],
    ids=["placeholder", "empty", "no base64", "too short", "PEM"],
)
def test_invalid_secret_is_named_by_its_setting(secret: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"^CENTGATE_CDP_API_KEY_SECRET {says}"):
        create_cdp_token(KEY_ID, secret, "POST", URL)


def test_facilitator_gets_token_for_settle(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    secret, public, algorithm = make_ed25519_key()
    client = api(
        settings.model_copy(update={"cdp_api_key_id": KEY_ID, "cdp_api_key_secret": SecretStr(secret)})
    )

    pay(client, sign_payment(client, buyer))

    scheme, _, token = facilitator.headers["authorization"].partition(" ")
    claims = jwt.decode(token, public, algorithms=[algorithm])
    assert scheme == "Bearer"
    assert claims["uris"] == [f"POST {facilitator.url.removeprefix('http://')}/settle"]


def test_bearer_token_is_sent_unchanged(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"facilitator_token": SecretStr("let-me-in")}))

    pay(client, sign_payment(client, buyer))

    assert facilitator.headers["authorization"] == "Bearer let-me-in"


def test_no_credentials_send_no_header(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings)

    pay(client, sign_payment(client, buyer))

    assert "authorization" not in facilitator.headers


def test_facilitator_gets_signed_fields_and_own_terms(
    api: ApiFactory, settings: Settings, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings)
    payload = sign_payload(client, buyer)

    pay(client, encode_header(payload | {"memo": "dropped"}))

    terms = decode_header(client.post(PHISHING).headers["PAYMENT-REQUIRED"])["accepts"][0]
    assert facilitator.body == {"x402Version": 2, "paymentPayload": payload, "paymentRequirements": terms}
