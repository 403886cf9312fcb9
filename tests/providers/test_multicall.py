"""Multicall3 encoding, compared with a general ABI codec, and decoding of any bytes."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from centgate.providers.jsonrpc.multicall import SELECTOR, encode_aggregate, parse_aggregate

ADDRESSES = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())


@given(st.lists(st.tuples(ADDRESSES, st.binary(max_size=100)), max_size=5))
def test_encoding_matches_abi_codec(calls: list[tuple[str, bytes]]) -> None:
    expected = encode(["(address,bool,bytes)[]"], [[(address, True, data) for address, data in calls]])

    assert encode_aggregate(calls) == SELECTOR + expected


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), max_size=5))
def test_encoded_results_are_decoded(results: list[tuple[bool, bytes]]) -> None:
    returned = encode(["(bool,bytes)[]"], [results])

    assert parse_aggregate(returned, len(results)) == [
        data if success and data else None for success, data in results
    ]


@given(st.binary(max_size=400), st.integers(1, 5))
def test_any_bytes_give_results_or_value_error(returned: bytes, count: int) -> None:
    try:
        results = parse_aggregate(returned, count)
    except ValueError:
        return

    assert len(results) == count


def test_other_number_of_results_is_an_error() -> None:
    returned = encode(["(bool,bytes)[]"], [[(True, b"1")]])

    with pytest.raises(ValueError, match="2 calls"):
        parse_aggregate(returned, 2)
