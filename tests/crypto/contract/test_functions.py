"""Standards by the selectors of a contract's code."""

from __future__ import annotations

import pytest

from centgate.crypto.contract.bytecode import function_selector
from centgate.crypto.contract.functions import (
    CONTROL_BY_SELECTOR,
    SIGNATURE_BY_SELECTOR,
    STANDARDS,
    ContractStandard,
    find_standards,
)


@pytest.mark.parametrize("standard", STANDARDS)
def test_a_standard_is_found_by_all_of_its_functions_alone(standard: ContractStandard) -> None:
    selectors = [function_selector(signature) for signature in STANDARDS[standard]]

    assert standard in find_standards(selectors)
    assert standard not in find_standards(selectors[1:])


def test_signatures_are_whole_and_have_one_meaning() -> None:
    assert all("(" in signature and signature.endswith(")") for signature in SIGNATURE_BY_SELECTOR.values())
    assert CONTROL_BY_SELECTOR.keys() <= SIGNATURE_BY_SELECTOR.keys()
    assert SIGNATURE_BY_SELECTOR[bytes.fromhex("a9059cbb")] == "transfer(address,uint256)"
    assert CONTROL_BY_SELECTOR[bytes.fromhex("f2fde38b")] == "change_owner"
