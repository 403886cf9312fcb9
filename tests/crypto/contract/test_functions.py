"""Standards that are recognised by the function selectors in a contract's code."""

from __future__ import annotations

import pytest

from centgate.crypto.abi import function_selector
from centgate.crypto.contract.functions import (
    CONTROL_BY_SELECTOR,
    SIGNATURE_BY_SELECTOR,
    STANDARDS,
    ContractStandard,
    find_standards,
)


@pytest.mark.parametrize("standard", STANDARDS)
def test_standard_requires_all_its_functions(standard: ContractStandard) -> None:
    selectors = [function_selector(signature) for signature in STANDARDS[standard]]

    assert standard in find_standards(selectors)
    assert standard not in find_standards(selectors[1:])


def test_signatures_are_complete_and_unique() -> None:
    assert all("(" in signature and signature.endswith(")") for signature in SIGNATURE_BY_SELECTOR.values())
    assert CONTROL_BY_SELECTOR.keys() <= SIGNATURE_BY_SELECTOR.keys()
    assert SIGNATURE_BY_SELECTOR[bytes.fromhex("a9059cbb")] == "transfer(address,uint256)"
    assert CONTROL_BY_SELECTOR[bytes.fromhex("f2fde38b")] == "change_owner"
