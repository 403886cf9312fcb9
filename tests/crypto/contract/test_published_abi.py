"""Function signatures parsed from published ABIs, which are untrusted."""

from __future__ import annotations

from typing import Any

import pytest

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.published_abi import (
    MAX_ABI_ENTRIES,
    MAX_SIGNATURE_CHARACTERS,
    MAX_TYPE_DEPTH,
    index_signatures,
    parse_signatures,
)


def build_function(name: Any, *inputs: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "inputs": list(inputs)}


def build_argument(kind: Any, *components: Any) -> dict[str, Any]:
    return {"type": kind, "components": list(components)}


def nest_struct(depth: int) -> dict[str, Any]:
    """Return a struct type nested to this depth."""
    return build_argument("tuple", nest_struct(depth - 1)) if depth else build_argument("bool")


@pytest.mark.parametrize(
    ("entry", "signature"),
    [
        (build_function("pause"), "pause()"),
        (
            build_function("transfer", build_argument("address"), build_argument("uint256")),
            "transfer(address,uint256)",
        ),
        (
            build_function("f", build_argument("bytes32[][4]"), build_argument("function")),
            "f(bytes32[][4],function)",
        ),
        (
            build_function(
                "cut",
                build_argument("tuple[]", build_argument("address"), build_argument("bytes4[]")),
                build_argument("bytes"),
            ),
            "cut((address,bytes4[])[],bytes)",
        ),
        (
            build_function("$_1", build_argument("tuple", build_argument("tuple", build_argument("int8")))),
            "$_1(((int8)))",
        ),
    ],
)
def test_signature_has_argument_types(entry: Any, signature: str) -> None:
    assert parse_signatures([entry]) == (signature,)


@pytest.mark.parametrize(
    "entry",
    [
        *(None, 7, "transfer(address)", [], {}),
        {"type": "function", "name": "f"},
        {"type": "event", "name": "f", "inputs": []},
        *(
            build_function(name)
            for name in (None, 7, "", "two words", "f()", "a" * 65, "f\n", "ignore: this")
        ),
        *(
            build_function("f", each)
            for each in (None, "address", {}, build_argument(7), build_argument("struct"))
        ),
        *(
            build_function("f", build_argument(each))
            for each in ("uint256)", "address\n", "tuple[", "bytes32 x", "uint")
        ),
        {"type": "function", "name": "f", "inputs": [{"type": "tuple"}]},
        build_function("f", *[build_argument("uint256")] * MAX_SIGNATURE_CHARACTERS),
        build_function("f", nest_struct(MAX_TYPE_DEPTH)),
    ],
)
def test_function_in_unknown_format_is_skipped(entry: Any) -> None:
    assert parse_signatures([entry, build_function("pause")]) == ("pause()",)


@pytest.mark.parametrize("abi", [None, {}, "[]", 7])
def test_invalid_abi_has_no_signatures(abi: Any) -> None:
    assert parse_signatures(abi) == ()


def test_overloads_are_kept_and_duplicates_removed() -> None:
    abi = [build_function("f"), build_function("f", build_argument("bool")), build_function("f")]

    assert parse_signatures(abi) == ("f()", "f(bool)")


def test_number_of_functions_is_limited() -> None:
    assert (
        len(parse_signatures([build_function(f"f{each}") for each in range(MAX_ABI_ENTRIES + 5)]))
        == MAX_ABI_ENTRIES
    )


def test_signatures_are_selected_by_their_selector() -> None:
    by_selector = index_signatures(["mint(address,uint256)", "pause()"])

    assert by_selector == {
        function_selector("mint(address,uint256)"): "mint(address,uint256)",
        function_selector("pause()"): "pause()",
    }
