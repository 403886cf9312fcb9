"""Payment signer: x402 payments for the challenge of a server, signed in batches with development keys."""

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


def fetch_challenge(url: str, body: bytes) -> dict[str, Any]:
    """Return the challenge (x402's PaymentRequired) that a server sends for an unpaid request.

    Raises ValueError if the response is not a 402 with a challenge.
    """
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            raise ValueError(f"{url} answered {response.status} without a payment")
    except urllib.error.HTTPError as error:
        with error:
            header = error.headers.get("PAYMENT-REQUIRED")
            if error.code != 402 or header is None:
                raise ValueError(f"{url} answered {error.code} without a challenge") from error
            return json.loads(b64decode(header))


def sign_payments(challenge: dict[str, Any], count: int) -> list[bytes]:
    """Return `count` values of the `PAYMENT-SIGNATURE` header, each with its own nonce.

    As with the official client, they repeat the challenge's resource and extensions.
    """
    requirements = challenge["accepts"][0]
    domain = domain_separator(
        requirements["extra"]["name"],
        requirements["extra"]["version"],
        int(requirements["network"].removeprefix("eip155:")),
        requirements["asset"],
    )
    valid_before = int(time.time()) + VALID_SECONDS
    return [
        _sign_payment(challenge, requirements, domain, valid_before, *KEYS[number % len(KEYS)])
        for number in range(count)
    ]


def _sign_payment(
    challenge: dict[str, Any],
    requirements: dict[str, Any],
    domain: bytes,
    valid_before: int,
    payer: str,
    key: PrivateKey,
) -> bytes:
    nonce = "0x" + secrets.token_hex(32)
    digest = transfer_digest(
        domain,
        payer=payer,
        to=requirements["payTo"],
        value=int(requirements["amount"]),
        valid_after=0,
        valid_before=valid_before,
        nonce=nonce,
    )
    signature = key.sign_recoverable(digest, hasher=None)  # pyright: ignore[reportUnknownMemberType]
    payload: dict[str, Any] = {
        "x402Version": 2,
        "resource": challenge.get("resource"),
        "accepted": requirements,
        "payload": {
            "signature": "0x" + signature[:64].hex() + f"{signature[64] + 27:02x}",
            "authorization": {
                "from": payer,
                "to": requirements["payTo"],
                "value": requirements["amount"],
                "validAfter": "0",
                "validBefore": str(valid_before),
                "nonce": nonce,
            },
        },
    }
    if challenge.get("extensions"):
        payload["extensions"] = challenge["extensions"]
    return b64encode(orjson.dumps(payload))
