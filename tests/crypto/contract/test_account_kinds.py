"""Kinds of accounts: by code, and by what a source says."""

from __future__ import annotations

import pytest

from centgate.crypto.contract.account_kinds import classify_code, classify_report

DELEGATION = bytes.fromhex("ef0100" + "11" * 20)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (b"", "wallet"),
        (DELEGATION, "delegated_wallet"),
        (DELEGATION[:-1], "contract"),
        (b"\x60\x01", "contract"),
    ],
    ids=["no code", "delegation", "cut delegation", "code"],
)
def test_code_tells_kind(code: bytes, kind: str) -> None:
    assert classify_code(code) == kind


@pytest.mark.parametrize(("is_contract", "kind"), [(None, "unknown"), (True, "contract"), (False, "wallet")])
def test_report_tells_kind(*, is_contract: bool | None, kind: str) -> None:
    assert classify_report(is_contract=is_contract) == kind
