"""EIP-712 and secp256k1 for EIP-3009 authorizations: signing and signature recovery.

The digest is packed by hand with the domain separator computed once, a tenth of the cost of a general
EIP-712 encoder.
"""

from __future__ import annotations

from coincurve import PrivateKey, PublicKey

from centgate.signing.evm import keccak

_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


_DOMAIN_TYPE = keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
_TRANSFER_TYPE = keccak(
    b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
    b"bytes32 nonce)"
)


def domain_separator(name: str, version: str, chain_id: int, token: str) -> bytes:
    """Return the EIP-712 domain separator of a token contract."""
    return keccak(
        _DOMAIN_TYPE
        + keccak(name.encode())
        + keccak(version.encode())
        + chain_id.to_bytes(32, "big")
        + _pad_address(token)
    )


def transfer_digest(
    domain: bytes, *, payer: str, to: str, value: int, valid_after: int, valid_before: int, nonce: str
) -> bytes:
    """Return the 32-byte digest that `payer` signs for `TransferWithAuthorization` (EIP-3009)."""
    struct = keccak(
        _TRANSFER_TYPE
        + _pad_address(payer)
        + _pad_address(to)
        + value.to_bytes(32, "big")
        + valid_after.to_bytes(32, "big")
        + valid_before.to_bytes(32, "big")
        + bytes.fromhex(nonce[2:])
    )
    return keccak(b"\x19\x01" + domain + struct)


def sign(digest: bytes, private_key: bytes) -> bytes:
    """Sign a digest: 65 bytes r, s, v with `v` as 27 or 28. Raises ValueError for an invalid key."""
    key = _parse_key(private_key)
    compact = key.sign_recoverable(digest, hasher=None)  # pyright: ignore[reportUnknownMemberType]
    return compact[:64] + bytes([compact[64] + 27])


def derive_address(private_key: bytes) -> str:
    """Return the lower-case address of a 32-byte private key. Raises ValueError for an invalid key."""
    return _address_from_public_key(_parse_key(private_key).public_key)


def recover_signer(digest: bytes, signature: bytes) -> str | None:
    """Return the lower-case address of the signer; None for an invalid signature.

    Rejects `s` in the upper half as the token contract does (EIP-2); accepts `v` as 27/28 or 0/1.
    """
    if len(signature) != 65 or signature[64] not in (0, 1, 27, 28):
        return None
    if int.from_bytes(signature[32:64], "big") > _CURVE_ORDER // 2:
        return None
    compact = signature[:64] + bytes([signature[64] % 27])
    try:
        public = PublicKey.from_signature_and_message(compact, digest, hasher=None)
    except ValueError:
        return None
    return _address_from_public_key(public)


def _parse_key(private_key: bytes) -> PrivateKey:
    if len(private_key) != 32:  # the library pads shorter keys with zeros
        raise ValueError("a private key has 32 bytes")
    return PrivateKey(private_key)


def _address_from_public_key(public: PublicKey) -> str:
    return "0x" + keccak(public.format(compressed=False)[1:])[-20:].hex()


def _pad_address(address: str) -> bytes:
    return bytes(12) + bytes.fromhex(address[2:])
