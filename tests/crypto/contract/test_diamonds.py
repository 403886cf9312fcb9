"""Facets of diamonds: what their loupe returns, also if it is hostile."""

from __future__ import annotations

import time

import pytest
from eth_abi.abi import encode

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.code_analysis import CodeAnalysis, CodeFunction, StorageVariable
from centgate.crypto.contract.diamonds import LOUPE_CALL, parse_facets, share_storage
from centgate.crypto.token.powers import DECISIVE_SELECTORS, infer_powers

FIRST, SECOND, NOBODY = "0x" + "a1" * 20, "0x" + "b2" * 20, "0x" + "0" * 40
MINT, PAUSE = function_selector("mint(address,uint256)"), function_selector("pause()")


def encode_facets(*facets: tuple[str, list[bytes]]) -> bytes:
    return encode(["(address,bytes4[])[]"], [facets])


def encode_words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32) for number in numbers)


def test_loupe_has_the_selector_of_the_standard():
    # the interface id is that of EIP-2535; npm's @solidstate/abi has the same four functions
    names = ("facets()", "facetFunctionSelectors(address)", "facetAddresses()", "facetAddress(bytes4)")
    selectors = [int.from_bytes(function_selector(name)) for name in names]

    assert function_selector(LOUPE_CALL).hex() == "7a0ed627"
    assert selectors[0] ^ selectors[1] ^ selectors[2] ^ selectors[3] == 0x48E2B093


def test_functions_are_parsed_by_facet():
    returned = encode_facets((FIRST, [MINT, PAUSE]), (SECOND, []), (NOBODY, [MINT]), (FIRST, [MINT]))

    assert parse_facets(returned) == {FIRST: {MINT, PAUSE}, SECOND: frozenset()}


@pytest.mark.parametrize(
    "returned",
    [
        None,
        b"",
        b"\xff" * 320,
        encode_facets((FIRST, [MINT]))[:-32],
        encode_words(32, 2**255, 1),
        encode_words(32, 1, 32, int(FIRST, 16), 64, 2**200),
        # many facets that share one long list
        encode_words(32, 400, *[400 * 32] * 400, int(FIRST, 16), 64, 400, *[1] * 400),
    ],
)
def test_unreadable_answers_name_no_facets(returned: bytes | None):
    assert parse_facets(returned) == {}


def test_variable_of_facets_has_what_all_show_of_it():
    owner = function_selector("owner()")
    getter = CodeAnalysis((), (StorageVariable("a", 0, "address", frozenset({owner}), frozenset()),))
    power = CodeAnalysis((), (StorageVariable("a", 0, "uint256", frozenset({MINT}), frozenset({PAUSE})),))

    _, shared = share_storage([getter, power])

    assert shared.storage == (
        StorageVariable("a", 0, "address", frozenset({owner, MINT}), frozenset({PAUSE})),
    )


def test_powers_of_large_facets_take_little_time():
    functions = tuple(CodeFunction(each, "", "nonpayable") for each in DECISIVE_SELECTORS)
    facets = [
        CodeAnalysis(
            functions,
            tuple(
                StorageVariable(f"{facet}-{slot}", 0, "uint256", DECISIVE_SELECTORS, DECISIVE_SELECTORS)
                for slot in range(1_000)
            ),
        )
        for facet in range(20)
    ]
    started = time.process_time()

    powers = [infer_powers(each) for each in share_storage(facets)]

    assert all(powers)
    assert time.process_time() - started < 1.5
