"""Sign-in messages (EIP-4361, the Ethereum form of CAIP-122) and the digest that a wallet signs (EIP-191)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from centgate.signing.evm import keccak

EXTENSION = "sign-in-with-x"
"""Name of x402's extension."""
VERSION = "1"
"""The only version of EIP-4361."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInMessage:
    """Fields of a sign-in message, as x402's extension `sign-in-with-x` carries them; times are RFC 3339.

    No field may contain a line break: the text could then be read as another message.
    """

    domain: str
    address: str
    """The wallet, in the spelling that is signed."""
    statement: str
    uri: str
    chain_id: int
    nonce: str
    issued_at: str
    expiration_time: str
    resources: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The text that a wallet shows and signs."""
        lines = [
            f"{self.domain} wants you to sign in with your Ethereum account:",
            self.address,
            "",
            self.statement,
            "",
            f"URI: {self.uri}",
            f"Version: {VERSION}",
            f"Chain ID: {self.chain_id}",
            f"Nonce: {self.nonce}",
            f"Issued At: {self.issued_at}",
            f"Expiration Time: {self.expiration_time}",
        ]
        if self.resources:
            lines += ["Resources:", *(f"- {resource}" for resource in self.resources)]
        return "\n".join(lines)

    @property
    def digest(self) -> bytes:
        """The 32-byte digest of the text, which no transaction and no typed data can have."""
        content = self.text.encode()
        return keccak(b"\x19Ethereum Signed Message:\n" + str(len(content)).encode() + content)
