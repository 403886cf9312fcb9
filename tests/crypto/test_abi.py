"""Texts that contracts return: strings, bytes32 of old tokens, and nonsense."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode

from centgate.crypto.abi import decode_text

LONG = "A name of more than thirty-two bytes, \u00e9"


@pytest.mark.parametrize("text", ["USDC", LONG])
def test_strings_are_decoded(text: str) -> None:
    returned = encode(["string"], [text])

    assert decode_text(returned) == text
    assert decode_text(returned.rstrip(b"\0")) == text  # some tokens leave out the padding


def test_offset_is_followed() -> None:
    returned = encode(["string", "string"], ["first", "second"])

    assert decode_text(returned) == "first"


def test_bytes32_of_old_tokens_is_decoded() -> None:
    assert decode_text(b"MKR".ljust(32, b"\0")) == "MKR"


@pytest.mark.parametrize(
    "returned",
    [
        None,
        b"",
        bytes(32),
        encode(["string"], [""]),
        encode(["string"], [LONG])[:80],
        encode(["string"], [LONG])[:40],
        b"\xff" * 96,
        (32).to_bytes(32) + b"\xff" * 32 + b"text".ljust(32, b"\0"),
    ],
)
def test_missing_and_incomplete_texts_are_none(returned: bytes | None) -> None:
    assert decode_text(returned) is None
