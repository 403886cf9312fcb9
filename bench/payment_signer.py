"""A buyer in a hurry: payments for the terms of a 402, signed by the thousand."""

from __future__ import annotations

import json
import secrets
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from typing import Any

import orjson
from coincurve import PrivateKey

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.signing.eip3009 import domain_separator, transfer_digest

VALID_SECONDS = 600
KEYS = [(buyer.address, PrivateKey.from_hex(buyer.private_key[2:])) for buyer in BUYER_ACCOUNTS]


def offer_of(url: str, body: bytes) -> dict[str, Any]:
    """The PaymentRequired that a server answers to a request without a payment."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            raise ValueError(f"{url} answered {response.status} without a payment")
    except urllib.error.HTTPError as error:
        with error:
            header = error.headers.get("PAYMENT-REQUIRED")
            if error.code != 402 or header is None:
                raise ValueError(f"{url} answered {error.code} and named no terms") from error
            return json.loads(b64decode(header))


def signed_payments(offer: dict[str, Any], count: int) -> list[bytes]:
    """So many `PAYMENT-SIGNATURE` headers, each good once.

    As the official client does, they echo the offer's resource and extensions.
    """
    wanted = offer["accepts"][0]
    domain = domain_separator(
        wanted["extra"]["name"],
        wanted["extra"]["version"],
        int(wanted["network"].removeprefix("eip155:")),
        wanted["asset"],
    )
    until = int(time.time()) + VALID_SECONDS
    return [_signed(offer, wanted, domain, until, *KEYS[number % len(KEYS)]) for number in range(count)]


def _signed(
    offer: dict[str, Any], wanted: dict[str, Any], domain: bytes, until: int, payer: str, key: PrivateKey
) -> bytes:
    nonce = "0x" + secrets.token_hex(32)
    digest = transfer_digest(
        domain,
        payer=payer,
        to=wanted["payTo"],
        value=int(wanted["amount"]),
        valid_after=0,
        valid_before=until,
        nonce=nonce,
    )
    signature = key.sign_recoverable(digest, hasher=None)  # pyright: ignore[reportUnknownMemberType]
    payload: dict[str, Any] = {
        "x402Version": 2,
        "resource": offer.get("resource"),
        "accepted": wanted,
        "payload": {
            "signature": "0x" + signature[:64].hex() + f"{signature[64] + 27:02x}",
            "authorization": {
                "from": payer,
                "to": wanted["payTo"],
                "value": wanted["amount"],
                "validAfter": "0",
                "validBefore": str(until),
                "nonce": nonce,
            },
        },
    }
    if offer.get("extensions"):
        payload["extensions"] = offer["extensions"]
    return b64encode(orjson.dumps(payload))
