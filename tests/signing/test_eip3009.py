"""EIP-3009 digests and signers, compared with known values and with eth-account."""

# eth-account is typed in parts
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import pytest
from buyer import TYPES
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

from centgate.signing.eip3009 import derive_address, domain_separator, recover_signer, sign, transfer_digest

KEY = "0x" + "11" * 32
PAYER = "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"
AUTHORIZATION: dict[str, Any] = {
    "payer": PAYER,
    "to": "0x2222222222222222222222222222222222222222",
    "value": 10000,
    "valid_after": 0,
    "valid_before": 1900000000,
    "nonce": "0x" + "33" * 32,
}
SEPOLIA = ("USDC", "2", 84532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e")
BASE = ("USD Coin", "2", 8453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913")

# computed once with eth-account for the two deployments of USDC
KNOWN = {
    "Base Sepolia": (
        SEPOLIA,
        "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818",
        "8e72981b94d221476f6bf752b4f6b3953f1a99bb1087a21d9eda4e823df41b43",
        "78849c341f502a40546dd63145bfa1deda00765d7c9621bcb5ee2c69d840cc3f"
        "1871f3e8131279fa38a94411a2d6accc0d3e57d6ddfd8fa1923c3cda4d1ac5811b",
    ),
    "Base": (
        BASE,
        "02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f",
        "532ad231be0c6420bb8931d90c294e972b19791626c8293d85d5f87ef9e51253",
        "037e94552e9c5df0957e3927cf3f7dd49eaad89cd966d839b1cf516547410435"
        "7dad856c41164bfc18876a9723922e31bd5947c4e1481080e2644a915e1ea0351b",
    ),
}
each_known = pytest.mark.parametrize(
    ("domain", "separator", "digest", "signature"), KNOWN.values(), ids=KNOWN.keys()
)

words = st.integers(0, 2**256 - 1)
keys = st.integers(1, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364140)
addresses = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())
nonces = st.binary(min_size=32, max_size=32).map(lambda raw: "0x" + raw.hex())
domains = st.tuples(st.text(max_size=40), st.text(max_size=4), st.integers(1, 2**63), addresses)


@each_known
def test_domain_separator_matches_token(
    domain: tuple[str, str, int, str], separator: str, digest: str, signature: str
) -> None:
    assert domain_separator(*domain).hex() == separator


@each_known
def test_digest_has_known_value(
    domain: tuple[str, str, int, str], separator: str, digest: str, signature: str
) -> None:
    assert transfer_digest(domain_separator(*domain), **AUTHORIZATION).hex() == digest


@each_known
def test_signer_of_known_signature_is_payer(
    domain: tuple[str, str, int, str], separator: str, digest: str, signature: str
) -> None:
    assert recover_signer(bytes.fromhex(digest), bytes.fromhex(signature)) == PAYER.lower()


@pytest.mark.extended
@settings(deadline=None)
@given(domain=domains, payer=addresses, to=addresses, value=words, after=words, before=words, nonce=nonces)
def test_digests_match_eth_account(
    domain: tuple[str, str, int, str], payer: str, to: str, value: int, after: int, before: int, nonce: str
) -> None:
    digest = transfer_digest(
        domain_separator(*domain),
        payer=payer,
        to=to,
        value=value,
        valid_after=after,
        valid_before=before,
        nonce=nonce,
    )

    message = {"from": payer, "to": to, "value": value, "validAfter": after, "validBefore": before}
    names = ("name", "version", "chainId", "verifyingContract")
    theirs = encode_typed_data(dict(zip(names, domain, strict=True)), TYPES, {**message, "nonce": nonce})
    assert digest == keccak(b"\x19" + theirs.version + theirs.header + theirs.body)


@settings(deadline=None)
@given(key=keys, digest=st.binary(min_size=32, max_size=32))
def test_signers_match_eth_account(key: int, digest: bytes) -> None:
    account = Account.from_key(key.to_bytes(32, "big"))
    signature = account.unsafe_sign_hash(digest).signature

    assert recover_signer(digest, bytes(signature)) == account.address.lower()


@settings(deadline=None)
@given(digest=st.binary(min_size=32, max_size=32), signature=st.binary(max_size=80))
def test_any_bytes_have_signer_or_none(digest: bytes, signature: bytes) -> None:
    signer = recover_signer(digest, signature)

    assert signer is None or len(signer) == 42


@pytest.mark.parametrize("length", [0, 64, 66, 130])
def test_signature_of_other_length_has_no_signer(length: int) -> None:
    assert recover_signer(bytes(32), b"\x01" * length) is None


@given(key=keys, digest=st.binary(min_size=32, max_size=32))
def test_own_signature_is_recovered(key: int, digest: bytes) -> None:
    raw = key.to_bytes(32, "big")

    assert (
        recover_signer(digest, sign(digest, raw))
        == derive_address(raw)
        == Account.from_key(raw).address.lower()
    )


@each_known
def test_own_signature_has_known_value(
    domain: tuple[str, str, int, str], separator: str, digest: str, signature: str
) -> None:
    assert sign(bytes.fromhex(digest), bytes.fromhex(KEY[2:])).hex() == signature


@pytest.mark.parametrize("key", [bytes(32), b"\xff" * 32, b"", b"\x11" * 31])
def test_invalid_key_is_refused(key: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are the library's
        sign(bytes(32), key)
