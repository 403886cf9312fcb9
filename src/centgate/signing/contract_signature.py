"""Signatures of contract wallets: the call that checks one (ERC-1271), and their wrapper (ERC-6492)."""

from __future__ import annotations

from centgate.signing.evm import keccak

_SELECTOR = keccak(b"isValidSignature(bytes32,bytes)")[:4]
VALID_SIGNATURE = "0x" + _SELECTOR.hex().ljust(64, "0")
"""First word of the answer for a valid signature, in hexadecimal."""
COUNTERFACTUAL_SUFFIX = bytes.fromhex("6492" * 16)
"""Last 32 bytes of a signature by a wallet that may not be deployed yet (ERC-6492)."""


def encode_validity_call(digest: bytes, signature: bytes) -> bytes:
    """Encode the call of `isValidSignature` for a digest of 32 bytes."""
    words = (digest, (64).to_bytes(32, "big"), len(signature).to_bytes(32, "big"))
    return _SELECTOR + b"".join(words) + signature + bytes(-len(signature) % 32)


def unwrap_signature(signature: bytes) -> bytes:
    """Return the wallet's own signature from an ERC-6492 wrapper; any other signature is returned as it is.

    Raises ValueError for the suffix without the encoding: factory address, its call data and a signature.
    """
    if not signature.endswith(COUNTERFACTUAL_SUFFIX):
        return signature
    content = signature[: -len(COUNTERFACTUAL_SUFFIX)]
    words = [int.from_bytes(content[at : at + 32], "big") for at in (0, 32, 64)]
    if words[0] >= 2**160:
        raise ValueError("the factory is not an address")
    _, inner = (_read_bytes(content, at) for at in words[1:])
    return inner


def _read_bytes(content: bytes, at: int) -> bytes:
    """Return the bytes that an ABI encoding has at an offset. Raises ValueError if they are not all there."""
    if not 96 <= at <= len(content) - 32:
        raise ValueError("an offset is outside of the encoding")
    length = int.from_bytes(content[at : at + 32], "big")
    if at + 32 + -(-length // 32) * 32 > len(content):
        raise ValueError("the encoding is cut off")
    return content[at + 32 : at + 32 + length]
