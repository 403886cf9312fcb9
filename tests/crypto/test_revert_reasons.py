"""Reasons of failed calls: known ones become codes, others stay untrusted text."""

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from centgate.crypto.token.revert_reasons import FAILURE_TEXTS, MAX_REASON_LENGTH, parse_failure
from centgate.signing.evm import keccak


def encode_revert(text: str) -> bytes:
    """Encode a reason as `revert("…")` does."""
    return bytes.fromhex("08c379a0") + encode(["string"], [text])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Pausable: paused", "paused"),
        ("Trading is not open yet", "not_open"),
        ("trading not enabled", "not_open"),
        ("Not launched", "not_open"),
        ("Transfer cooldown is active", "cooldown"),
        ("You are blacklisted", "blocked"),
        ("Bot detected", "blocked"),
        ("Exceeds max wallet size", "wallet_limit"),
        ("Max tx exceeded", "trade_limit"),
        ("ERC20: insufficient allowance", "no_allowance"),
        ("ERC20: transfer amount exceeds balance", "no_balance"),
        ("UniswapV2: K", "pool_short"),
        ("IIA", "pool_short"),
        ("LOK", "pool_locked"),
        ("TransferHelper: TRANSFER_FROM_FAILED", "transfer_failed"),
        ("Both sides agree", None),
        ("robots are welcome", None),
    ],
)
def test_known_reasons_become_codes(text: str, code: str | None):
    failure = parse_failure(encode_revert(text))

    assert (failure.code, failure.text) == (code, text)
    assert failure.explanation == (FAILURE_TEXTS[failure.code] if failure.code else None)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("ERC20InsufficientBalance(address,uint256,uint256)", "no_balance"),
        ("EnforcedPause()", "paused"),
        ("TransferFromFailed()", "transfer_failed"),
        ("ReturnedFalse()", "returned_false"),
        ("NothingArrived()", "nothing_arrived"),
        ("NothingReceived()", "nothing_received"),
        ("NothingPaid()", "nothing_paid"),
        ("NoCapital()", "no_capital"),
        ("ApprovalIgnored()", "no_allowance"),
        ("Panic(uint256)", "arithmetic"),
    ],
)
def test_known_errors_become_codes(error: str, code: str):
    assert parse_failure(keccak(error.encode())[:4] + bytes(32)).code == code


def test_unknown_error_is_named_by_selector():
    failure = parse_failure(bytes.fromhex("deadbeef") + b"\xff" * 60)

    assert (failure.code, failure.text) == (None, "error 0xdeadbeef")


def test_long_or_hidden_text_is_cleaned():
    failure = parse_failure(encode_revert("x\u202e\u200b" * 500)[:192])

    assert failure.text is not None
    assert len(failure.text) <= MAX_REASON_LENGTH
    assert set(failure.text) == {"x"}


@given(st.binary(max_size=192))
def test_any_bytes_are_parsed(data: bytes):
    failure = parse_failure(data)

    assert failure.text is None or len(failure.text) <= MAX_REASON_LENGTH


@given(st.binary(max_size=188))
def test_any_bytes_after_known_selector_are_parsed(data: bytes):
    assert parse_failure(bytes.fromhex("08c379a0") + data) is not None
