"""Sign-in of a wallet by x402's extension `sign-in-with-x`: the challenge of a resource, and its check.

The header `SIGN-IN-WITH-X` carries the fields of a message (EIP-4361) and the wallet's signature of it. The
fields must be those of a challenge that a server of this deployment issued for the resource some minutes ago.
Each challenge can be used for one request.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict
from urllib.parse import urlsplit

import orjson
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from centgate.errors import ProviderError, SignInRequired
from centgate.payments.chain.chain_client import ChainClient, ChainClients
from centgate.payments.chain.payment_node import ChainUnreachable
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.sign_in_nonces import RANDOM_DIGITS, IssuedFor, SignInNonces
from centgate.payments.terms import X402_VERSION
from centgate.settings import Settings
from centgate.signing.assets import parse_chain_id
from centgate.signing.contract_signature import unwrap_signature
from centgate.signing.eip3009 import recover_signer
from centgate.signing.evm import to_checksum_address
from centgate.signing.sign_in import EXTENSION, VERSION, SignInMessage
from centgate.timestamps import format_unix_time

CHALLENGE_SECONDS = 300
"""Seconds in which a challenge can be answered."""
MAX_HEADER = 16 * 1024
"""Maximum size of `SIGN-IN-WITH-X` in bytes; an ordinary one has about one thousand."""
STATEMENT = "Show what this wallet has paid for here. This costs nothing and moves no money."
NODE = "payment-node"
"""Name in errors of the nodes that ask contract wallets."""
RETRY_AFTER = 5

SignInReason = Literal[
    "invalid_siwx_header",
    "invalid_siwx_domain_mismatch",
    "invalid_siwx_uri_mismatch",
    "invalid_siwx_issued_at",
    "invalid_siwx_expired",
    "invalid_siwx_nonce",
    "invalid_siwx_unsupported_chain",
    "invalid_siwx_signature",
    "invalid_siwx_malformed_signature",
    "invalid_siwx_verifier_error",
]
"""Reasons of a refused sign-in: those of x402's library, and one for a header that cannot be read."""

_Line = Annotated[str, Field(max_length=2000, pattern=r"^[ -~]*$")]


class SignInPayload(BaseModel):
    """x402's SIWxPayload, as far as challenges of this server need it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    domain: _Line
    address: Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]
    statement: _Line
    uri: _Line
    version: _Line
    chain_id: Annotated[str, Field(alias="chainId", pattern=r"^[ -~]{1,80}$")]
    type: _Line
    nonce: Annotated[str, Field(pattern=rf"^[0-9a-f]{{{2 * RANDOM_DIGITS}}}$")]
    issued_at: _Line = Field(alias="issuedAt")
    expiration_time: _Line = Field(alias="expirationTime")
    resources: list[_Line] = Field(default_factory=list[str], max_length=1)
    signature_scheme: Literal["eip191", "eip1271", "eip6492"] | None = Field(
        default=None, alias="signatureScheme"
    )
    signature: Annotated[str, Field(pattern=r"^0x([0-9a-fA-F]{2})+$")]


class SignInExtension(TypedDict):
    """x402's SIWxExtension."""

    info: dict[str, Any]
    supportedChains: list[dict[str, str]]
    schema: dict[str, Any]


class SignedIn(Struct, frozen=True):
    """A wallet that has signed in."""

    address: str
    """In lower case."""
    network: str | None
    """The only network (CAIP-2) on which the signature proves who owns the address; None for all.

    A key has the same address everywhere. A contract's owner on one network may not be its owner on another.
    """


class SignInGate:
    """Challenges wallets, and checks their answers."""

    def __init__(
        self, settings: Settings, journal: Journal, chains: ChainClients, nonces: SignInNonces
    ) -> None:
        self._base_url = settings.base_url
        self._domain = _host_of(settings.base_url)
        self._networks = settings.payment_networks
        self._journal = journal
        self._chains = chains
        self._nonces = nonces

    async def challenge(self, path: str, refusal: SignInRefused | None = None) -> SignInRequired:
        """Return the 402 error with a new challenge for a path of this server. Raises JournalUnavailable."""
        uri = self._base_url + path
        now = await self._journal.now()
        issued_for = IssuedFor(uri, format_unix_time(now), format_unix_time(now + CHALLENGE_SECONDS))
        info = {
            "domain": self._domain,
            "uri": uri,
            "version": VERSION,
            "statement": STATEMENT,
            "nonce": await self._nonces.issue(issued_for),
            "issuedAt": issued_for.issued_at,
            "expirationTime": issued_for.expiration_time,
            "resources": [uri],
        }
        extension: SignInExtension = {
            "info": info,
            "supportedChains": [{"chainId": network, "type": "eip191"} for network in self._networks],
            "schema": PAYLOAD_SCHEMA,
        }
        message = f"sign in with the wallet that paid{f': {refusal}' if refusal else ''}"
        offer: Mapping[str, Any] = {
            "x402Version": X402_VERSION,
            "error": refusal.reason if refusal else "Sign in with the wallet that paid",
            "resource": {
                "url": uri,
                "description": "The payments of the wallet that signs in, and their stored answers.",
                "mimeType": "application/json",
                "serviceName": "Centgate",
            },
            "accepts": [],
            "extensions": {EXTENSION: extension},
        }
        hint = f"sign the message in {EXTENSION} and send the request again with SIGN-IN-WITH-X; it is free"
        return SignInRequired(f"{message}; {hint}", offer, reason=refusal.reason if refusal else None)

    async def verify(
        self, header: str, path: str, request_id: str, *, on_node_query: Callable[[], None]
    ) -> SignedIn:
        """Return the wallet that signed the challenge of a path.

        `on_node_query` is called before nodes are asked about a contract, whatever they say. Raises
        SignInRefused if no wallet signed, ProviderError if its contract cannot be asked at the moment,
        JournalUnavailable.
        """
        payload = _decode_header(header)
        await self._check_challenge(payload, self._base_url + path)
        signed_in = await self._check_signature(payload, on_node_query)
        expires_at = datetime.fromisoformat(payload.expiration_time).timestamp()
        if not await self._nonces.use(payload.nonce, request_id, expires_at):
            raise SignInRefused("invalid_siwx_nonce", "its nonce was used before")
        return signed_in

    async def _check_challenge(self, payload: SignInPayload, uri: str) -> None:
        """Raise SignInRefused unless the fields are those of a challenge for a URI that is still good."""
        if payload.domain != self._domain:
            raise SignInRefused("invalid_siwx_domain_mismatch", f"the domain must be {self._domain}")
        if payload.uri != uri or payload.resources not in ([], [uri]):
            raise SignInRefused("invalid_siwx_uri_mismatch", f"the uri, and the only resource, must be {uri}")
        if payload.chain_id not in self._networks:
            networks = ", ".join(self._networks)
            raise SignInRefused("invalid_siwx_unsupported_chain", f"chainId must be one of {networks}")
        issued_for = IssuedFor(uri, payload.issued_at, payload.expiration_time)
        if not await self._nonces.is_issued(payload.nonce, issued_for):
            raise SignInRefused(
                "invalid_siwx_nonce", "its nonce was not issued here for this uri and these times"
            )
        if (payload.version, payload.statement, payload.type) != (VERSION, STATEMENT, "eip191"):
            raise SignInRefused("invalid_siwx_header", "version, statement or type is not the challenge's")
        if payload.expiration_time < format_unix_time(await self._journal.now()):
            raise SignInRefused("invalid_siwx_expired", "the challenge has expired")

    async def _check_signature(self, payload: SignInPayload, on_node_query: Callable[[], None]) -> SignedIn:
        """Return who signed: the wallet's own key, or its contract says so."""
        # the message of EIP-4361 has the address in EIP-55, whatever the spelling in the header
        spellings = dict.fromkeys((payload.address, to_checksum_address(payload.address)))
        digests = [_build_message(payload, each).digest for each in spellings]
        address, signature = payload.address.lower(), bytes.fromhex(payload.signature[2:])
        if any(recover_signer(digest, signature) == address for digest in digests):
            return SignedIn(address, None)
        try:
            signature = unwrap_signature(signature)
        except ValueError as error:
            raise SignInRefused("invalid_siwx_malformed_signature", str(error)) from error
        network = payload.chain_id
        chain = self._chains.for_network(network)
        if chain is None:
            raise SignInRefused(
                "invalid_siwx_verifier_error",
                f"the signature is not by the key of {address}, and this server has no node of {network} "
                "that could ask a contract",
            )
        on_node_query()
        await _ask_contract(chain, address, network, digests, signature)
        return SignedIn(address, network)


async def _ask_contract(
    chain: ChainClient, address: str, network: str, digests: Sequence[bytes], signature: bytes
) -> None:
    """Raise SignInRefused unless a contract at the address accepts the signature of one of the digests."""
    try:
        if not await chain.has_code(address):
            raise SignInRefused(
                "invalid_siwx_signature",
                f"the signature is not by the key of {address}, which has no contract on {network}",
            )
        is_accepted = False
        for digest in digests:
            is_accepted = is_accepted or await chain.accepts_signature(address, digest, signature)
    except ChainUnreachable as error:
        raise ProviderError(
            NODE,
            f"no node of {network} could be asked about the contract {address}: sign in again later",
            retry_after=RETRY_AFTER,
        ) from error
    if not is_accepted:
        message = f"the contract {address} on {network} does not accept the signature"
        raise SignInRefused("invalid_siwx_signature", message)


class SignInRefused(Exception):
    """A header `SIGN-IN-WITH-X` that shows no wallet; the message says why."""

    def __init__(self, reason: SignInReason, message: str) -> None:
        super().__init__(message)
        self.reason: SignInReason = reason


def _decode_header(header: str) -> SignInPayload:
    if len(header) > MAX_HEADER:
        raise SignInRefused("invalid_siwx_header", f"SIGN-IN-WITH-X is longer than {MAX_HEADER} bytes")
    try:
        payload = SignInPayload.model_validate(orjson.loads(a2b_base64(header, strict_mode=True)))
        to_checksum_address(payload.address)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:100]
        raise SignInRefused("invalid_siwx_header", f"{where or 'SIGN-IN-WITH-X'}: {first['msg']}") from error
    except ValueError as error:
        message = (
            "SIGN-IN-WITH-X is not the base64 of a signed challenge, with an address in EIP-55 or one case"
        )
        raise SignInRefused("invalid_siwx_header", message) from error
    return payload


def _build_message(payload: SignInPayload, address: str) -> SignInMessage:
    """Return the message with the address in one of its spellings."""
    return SignInMessage(
        domain=payload.domain,
        address=address,
        statement=payload.statement,
        uri=payload.uri,
        chain_id=parse_chain_id(payload.chain_id),
        nonce=payload.nonce,
        issued_at=payload.issued_at,
        expiration_time=payload.expiration_time,
        resources=payload.resources,
    )


def _host_of(base_url: str) -> str:
    """Return host and port as a browser's `URL.host` has them: in lower case, without the default port."""
    parts = urlsplit(base_url)
    default_port = ":443" if parts.scheme == "https" else ":80"
    return parts.netloc.lower().removesuffix(default_port)


def _build_payload_schema() -> dict[str, Any]:
    """Return the schema of the header's JSON, which x402's extensions carry beside their info."""
    names = ("domain", "address", "statement", "uri", "version", "chainId", "type", "nonce", "signature")
    fields: dict[str, Any] = {name: {"type": "string"} for name in names}
    fields |= {name: {"type": "string", "format": "date-time"} for name in ("issuedAt", "expirationTime")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            **fields,
            "resources": {"type": "array", "items": {"type": "string", "format": "uri"}},
            "signatureScheme": {"type": "string"},
        },
        "required": list(fields),
    }


PAYLOAD_SCHEMA = _build_payload_schema()
