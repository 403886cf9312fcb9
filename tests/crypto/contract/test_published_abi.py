"""Signatures of functions from ABIs, which anybody can publish."""

from __future__ import annotations

from typing import Any

import pytest

from centgate.crypto.contract.bytecode import function_selector
from centgate.crypto.contract.published_abi import (
    MAX_ABI_ENTRIES,
    MAX_SIGNATURE_CHARACTERS,
    MAX_TYPE_DEPTH,
    index_signatures,
    parse_signatures,
)


def function(name: Any, *inputs: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "inputs": list(inputs)}


def argument(kind: Any, *components: Any) -> dict[str, Any]:
    return {"type": kind, "components": list(components)}


def nested(depth: int) -> dict[str, Any]:
    """A struct in structs."""
    return argument("tuple", nested(depth - 1)) if depth else argument("bool")


@pytest.mark.parametrize(
    ("entry", "signature"),
    [
        (function("pause"), "pause()"),
        (function("transfer", argument("address"), argument("uint256")), "transfer(address,uint256)"),
        (function("f", argument("bytes32[][4]"), argument("function")), "f(bytes32[][4],function)"),
        (
            function(
                "cut", argument("tuple[]", argument("address"), argument("bytes4[]")), argument("bytes")
            ),
            "cut((address,bytes4[])[],bytes)",
        ),
        (function("$_1", argument("tuple", argument("tuple", argument("int8")))), "$_1(((int8)))"),
    ],
)
def test_signature_has_the_types_of_the_arguments(entry: Any, signature: str) -> None:
    assert parse_signatures([entry]) == (signature,)


@pytest.mark.parametrize(
    "entry",
    [
        *(None, 7, "transfer(address)", [], {}),
        {"type": "function", "name": "f"},
        {"type": "event", "name": "f", "inputs": []},
        *(function(name) for name in (None, 7, "", "two words", "f()", "a" * 65, "f\n", "ignore: this")),
        *(function("f", each) for each in (None, "address", {}, argument(7), argument("struct"))),
        *(function("f", argument(each)) for each in ("uint256)", "address\n", "tuple[", "bytes32 x", "uint")),
        {"type": "function", "name": "f", "inputs": [{"type": "tuple"}]},
        function("f", *[argument("uint256")] * MAX_SIGNATURE_CHARACTERS),
        function("f", nested(MAX_TYPE_DEPTH)),
    ],
)
def test_function_in_an_unknown_format_is_left_out(entry: Any) -> None:
    assert parse_signatures([entry, function("pause")]) == ("pause()",)


@pytest.mark.parametrize("abi", [None, {}, "[]", 7])
def test_what_is_no_abi_has_no_signatures(abi: Any) -> None:
    assert parse_signatures(abi) == ()


def test_overloaded_functions_are_kept_and_repetitions_are_not() -> None:
    abi = [function("f"), function("f", argument("bool")), function("f")]

    assert parse_signatures(abi) == ("f()", "f(bool)")


def test_an_endless_abi_is_cut() -> None:
    assert (
        len(parse_signatures([function(f"f{each}") for each in range(MAX_ABI_ENTRIES + 5)]))
        == MAX_ABI_ENTRIES
    )


def test_signatures_are_found_by_their_own_selector_alone() -> None:
    by_selector = index_signatures(["mint(address,uint256)", "pause()"])

    assert by_selector == {
        function_selector("mint(address,uint256)"): "mint(address,uint256)",
        function_selector("pause()"): "pause()",
    }
