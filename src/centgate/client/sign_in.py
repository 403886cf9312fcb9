"""Answers to the API's challenge to sign in, by x402's extension `sign-in-with-x`."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import orjson
from pydantic import Field, ValidationError

from centgate.client.errors import Drift
from centgate.client.wallet import Wallet
from centgate.client.wire_model import StrictModel, decode_base64
from centgate.signing.assets import NETWORK_ID, parse_chain_id
from centgate.signing.sign_in import EXTENSION, VERSION, SignInMessage

# one line of printable ASCII: nothing can pretend to be another line of the message
_Line = Annotated[str, Field(pattern=r"^[ -~]{1,500}$")]
_Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")]


class _Info(StrictModel):
    domain: _Line
    uri: _Line
    version: Literal["1"]
    statement: _Line
    nonce: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{8,128}$")]
    issued_at: _Time = Field(alias="issuedAt")
    expiration_time: _Time = Field(alias="expirationTime")
    resources: Annotated[list[_Line], Field(max_length=1)] = Field(default_factory=list[str])


class _Chain(StrictModel):
    chain_id: str = Field(alias="chainId")
    type: str


class _Extension(StrictModel):
    info: _Info
    chains: Annotated[list[_Chain], Field(alias="supportedChains", max_length=50)]


class _Offer(StrictModel):
    extensions: dict[str, Any]


def answer_challenge(header: str | None, wallet: Wallet, *, api: str, path: str) -> str:
    """Return `SIGN-IN-WITH-X` for the challenge in a 402's `PAYMENT-REQUIRED`.

    Signs only a message for the API that was called, and for the path that was asked: a signature made here
    is of no use anywhere else. Raises Drift for anything else.
    """
    challenge = _parse_challenge(header, api)
    info, uri = challenge.info, api + path
    host = urlsplit(api).netloc
    if info.domain != host or info.uri != uri or info.resources not in ([], [uri]):
        raise Drift(
            f"{api} asks to sign in at {info.domain} for {info.uri}, not at {host} for {uri}. Nothing was "
            "signed: call the API at its public URL"
        )
    network = next(
        (
            each.chain_id
            for each in challenge.chains
            if each.type == "eip191" and re.fullmatch(NETWORK_ID, each.chain_id)
        ),
        None,
    )
    if network is None:
        raise Drift(f"{api} accepts no sign-in by an Ethereum wallet. Nothing was signed")
    message = SignInMessage(
        domain=info.domain,
        address=wallet.address,
        statement=info.statement,
        uri=info.uri,
        chain_id=parse_chain_id(network),
        nonce=info.nonce,
        issued_at=info.issued_at,
        expiration_time=info.expiration_time,
        resources=info.resources,
    )
    return _encode_payload(info, wallet, network, wallet.sign(message.digest))


def _encode_payload(info: _Info, wallet: Wallet, network: str, signature: bytes) -> str:
    payload: Mapping[str, Any] = {
        "domain": info.domain,
        "address": wallet.address,
        "statement": info.statement,
        "uri": info.uri,
        "version": VERSION,
        "chainId": network,
        "type": "eip191",
        "nonce": info.nonce,
        "issuedAt": info.issued_at,
        "expirationTime": info.expiration_time,
        **({"resources": info.resources} if info.resources else {}),
        "signature": "0x" + signature.hex(),
    }
    return b64encode(orjson.dumps(payload)).decode()


def _parse_challenge(header: str | None, api: str) -> _Extension:
    try:
        offer = _Offer.model_validate(orjson.loads(decode_base64(header or "")))
        return _Extension.model_validate(offer.extensions[EXTENSION])
    except (ValueError, KeyError, ValidationError):
        raise Drift(f"{api} asks for no sign-in that this client knows. Nothing was signed") from None
