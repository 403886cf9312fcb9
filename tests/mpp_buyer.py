"""A buyer that answers MPP challenges with credentials of its own making, without the reference clients."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Any

import httpx
from buyer import PHISHING, QUESTION, Buyer
from eth_utils.crypto import keccak

MPP_SECRET = "a-secret-of-tests-long-enough-for-it"
MPP_SETTINGS: dict[str, Any] = {"mpp_enabled": True, "mpp_secret": MPP_SECRET}

Challenge = dict[str, str]
"""Parameters of a challenge, as `WWW-Authenticate` has them."""


def decode_base64url(text: str) -> Any:
    """Decode the JSON of an MPP header."""
    return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def encode_base64url(content: Any) -> str:
    """Encode JSON as in an MPP header."""
    return urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def parse_challenge(header: str) -> Challenge:
    """Parse the value of `WWW-Authenticate`."""
    scheme, _, parameters = header.partition(" ")
    assert scheme == "Payment", header
    return dict(re.findall(r'([a-z]+)="([^"]*)"', parameters))


def fetch_challenge(client: httpx.Client, path: str = PHISHING) -> Challenge:
    """Return the challenge of an unpaid request."""
    response = client.post(path)
    assert response.status_code == 402, response.text
    return parse_challenge(response.headers["WWW-Authenticate"])


def json_nonce(challenge: Challenge) -> str:
    """Return the nonce that pympp makes from a challenge."""
    return "0x" + keccak(text=f'["{challenge["id"]}","{challenge["realm"]}"]').hex()


def joined_nonce(challenge: Challenge) -> str:
    """Return the nonce that mppx makes from a challenge."""
    return "0x" + keccak(text=challenge["id"] + challenge["realm"]).hex()


def answer_challenge(buyer: Buyer, challenge: Challenge, **changes: Any) -> dict[str, Any]:
    """Return a signed credential; `changes` replace fields of the authorization before it is signed."""
    request = decode_base64url(challenge["request"])
    network = f"eip155:{request['methodDetails']['chainId']}"
    authorization = {
        "from": buyer.address,
        "to": request["recipient"],
        "value": request["amount"],
        "validAfter": "0",
        "validBefore": str(int(datetime.fromisoformat(challenge["expires"]).timestamp())),
        "nonce": json_nonce(challenge),
    } | changes
    name = "USDC" if network == "eip155:84532" else "USD Coin"
    wanted = {
        "network": network,
        "asset": request["currency"],
        "extra": {"name": name, "version": "2"},
    }
    signature = buyer.signature(wanted, authorization)
    return {
        "challenge": challenge,
        "payload": {"type": "authorization", **authorization, "signature": signature},
        "source": f"did:pkh:{network}:{buyer.address}",
    }


def buy_challenge(client: httpx.Client, buyer: Buyer, path: str = PHISHING, **changes: Any) -> str:
    """Return a signed credential for a new challenge of a route, encoded."""
    return encode_base64url(answer_challenge(buyer, fetch_challenge(client, path), **changes))


def pay_by_mpp(
    client: httpx.Client, credential: str, path: str = PHISHING, body: Any = QUESTION, **headers: str
) -> httpx.Response:
    """Send a request with a credential."""
    return client.post(path, json=body, headers={"Authorization": f"Payment {credential}", **headers})
