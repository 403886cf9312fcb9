"""Strangers' text: what cannot be seen is gone, and what is left is bounded."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.text import cleaned, hidden


@pytest.mark.parametrize(
    ("wrote", "shown"),
    [
        ("USD Coin", "USD Coin"),
        ("Tether\n\u202eUSD", "Tether USD"),
        ("U\u200bS\u200dD\ufeffT", "USDT"),
        ("\u2066USDC\u2069", "USDC"),
        ("a\u00a0\u3000 b", "a b"),
        ("\u0000\u0007bell", "bell"),
        ("\U000e0041\U000e0042tags", "tags"),
        ("\u3164\u115f\u2800blank", "blank"),
        ("x\ufe0f", "x"),
        (
            "\u4e2d\u6587 \u0440\u0443\u0441 \u20ac \U0001f419",
            "\u4e2d\u6587 \u0440\u0443\u0441 \u20ac \U0001f419",
        ),
        ("   ", None),
        ("\u200b", None),
        ("", None),
        (None, None),
        ("a" * 65, "a" * 63 + "\u2026"),
        ("a" * 64, "a" * 64),
    ],
)
def test_a_name_is_shown_as_it_reads(wrote: str | None, shown: str | None) -> None:
    assert cleaned(wrote) == shown


@given(st.text(), st.integers(min_value=1, max_value=80))
def test_nothing_invisible_is_left_and_nothing_is_too_long(wrote: str, length: int) -> None:
    shown = cleaned(wrote, length) or ""

    assert len(shown) <= length
    assert all(unicodedata.category(character)[0] not in "CZ" or character == " " for character in shown)
    assert shown == " ".join(shown.split())


@given(st.text())
def test_cleaning_what_is_clean_changes_nothing(wrote: str) -> None:
    shown = cleaned(wrote)

    assert cleaned(shown) == shown


def test_a_megabyte_of_name_is_no_work() -> None:
    assert len(cleaned("\u202e" * 10**6 + "x") or "") <= 64


@pytest.mark.parametrize(("wrote", "is_hidden"), [("USD Coin", False), ("US\u200bDC", True), ("a\nb", True)])
def test_hidden_characters_are_found(wrote: str, is_hidden: bool) -> None:  # noqa: FBT001
    assert hidden(wrote) is is_hidden
