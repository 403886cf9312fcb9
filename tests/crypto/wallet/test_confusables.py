"""Folding of confusable letters, and detection of mixed alphabets."""

# ruff: noqa: RUF001 - these tests are about letters that look like others

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from centgate.crypto.wallet.confusables import (
    confusable_table,
    fold_confusables,
    has_mixed_alphabets,
    join_spaced_letters,
)

often = settings(deadline=None, database=None)


def test_table_matches_unicode() -> None:
    table = confusable_table()

    assert len(table) > 1_500
    assert {table[ord(letter)] for letter in "СᏟꓚ"} == {"C"}
    assert (table[0x02F3], table[0x2024], table[0x20AE]) == ("\u3002", ".", "T")
    assert min(table) > 127


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Сlаіm 1O0", "Claim 1O0"),
        ("ＵＳＤＣ", "USDC"),
        ("𝐔𝐒𝐃", "USD"),
        ("Łódź", "Lodz"),
        ("柴犬", "柴犬"),
        ("🆄🆂🅳🆃", "USDT"),
        ("🅓🅐🅘", "DAI"),
        ("🇺🇸🇩🇨", "USDC"),
    ],
)
def test_letters_are_folded_to_latin(text: str, folded: str) -> None:
    assert fold_confusables(text) == folded


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("U S D C", "USDC"),
        ("g o  n o w", "g o  now"),
        ("e x . c o m !", "ex.com!"),
        ("A B", "A B"),
        ("Curve A B gauge", "Curve A B gauge"),
    ],
)
def test_three_separated_letters_are_joined(text: str, joined: str) -> None:
    assert join_spaced_letters(text) == joined


@pytest.mark.parametrize(
    ("text", "mixed"),
    [
        ("Uniswар", True),
        ("РЕРЕ Coin", True),
        ("Ꭰai", True),
        ("Shiba شيبا", False),
        ("Кошка", False),
        ("αETH", False),
    ],
)
def test_mixed_alphabets_are_detected(text: str, *, mixed: bool) -> None:
    assert has_mixed_alphabets(text) is mixed


@often
@given(st.text())
def test_ascii_is_unchanged_and_folding_is_stable(text: str) -> None:
    ascii_text = "".join(filter(str.isascii, text))

    assert fold_confusables(ascii_text) == ascii_text
    assert not has_mixed_alphabets(ascii_text)
    join_spaced_letters(fold_confusables(text))
