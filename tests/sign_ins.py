"""Sign-ins of wallets, by x402's own library and its message format as an oracle."""

# eth-account is typed in parts
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
from buyer import decode_header, encode_header
from eth_account import Account
from eth_account.messages import encode_defunct
from x402.extensions.sign_in_with_x import create_siwx_message

from centgate.devchain.accounts import BUYER_ACCOUNTS

EXTENSION = "sign-in-with-x"
SignText = Callable[[str], bytes]
"""Signs a text."""


def fetch_challenge(client: httpx.Client, path: str = "/payments") -> dict[str, Any]:
    """Return the extension of an unsigned request's 402."""
    response = client.get(path)
    assert response.status_code == 402, response.text
    return decode_header(response.headers["PAYMENT-REQUIRED"])["extensions"][EXTENSION]


def sign_text(key: str, text: str) -> bytes:
    """Sign a text as a wallet does (EIP-191)."""
    return bytes(Account.sign_message(encode_defunct(text=text), key).signature)


def answer_challenge(
    challenge: dict[str, Any], number: int = 0, *, address: str | None = None, sign: SignText | None = None
) -> dict[str, Any]:
    """Return the payload of a signed challenge; `number` is the buyer."""
    account = BUYER_ACCOUNTS[number]
    signer = address or account.address
    chain = challenge["supportedChains"][0]
    info = {**challenge["info"], "chainId": chain["chainId"], "type": chain["type"]}
    text = create_siwx_message(info, signer)
    signature = sign(text) if sign else sign_text(account.private_key, text)
    return {**info, "address": signer, "signature": "0x" + signature.hex()}


def sign_in(client: httpx.Client, path: str = "/payments", number: int = 0) -> dict[str, str]:
    """Return the headers of a request that is signed in."""
    payload = answer_challenge(fetch_challenge(client, path), number)
    return {"SIGN-IN-WITH-X": encode_header(payload)}


def get_signed(client: httpx.Client, path: str = "/payments", number: int = 0) -> httpx.Response:
    """Sign in and send a GET request; the challenge is that of the path without its query."""
    return client.get(path, headers=sign_in(client, path.partition("?")[0], number))


def send_payload(client: httpx.Client, payload: Any, path: str = "/payments") -> httpx.Response:
    """Send a GET request with a payload as its sign-in."""
    return client.get(path, headers={"SIGN-IN-WITH-X": encode_header(payload)})
