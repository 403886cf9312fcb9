"""Untrusted text: invisible characters are removed, and the length is limited."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from centgate.sanitize import clean_line, has_invisible, strip_invisible


@pytest.mark.parametrize(
    ("text", "expected"),
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
def test_name_is_cleaned(text: str | None, expected: str | None) -> None:
    assert clean_line(text) == expected


@given(st.text(), st.integers(min_value=1, max_value=80))
def test_cleaned_text_has_no_invisible_characters_and_limited_length(wrote: str, length: int) -> None:
    cleaned = clean_line(wrote, length) or ""

    assert len(cleaned) <= length
    assert all(unicodedata.category(character)[0] not in "CZ" or character == " " for character in cleaned)
    assert cleaned == " ".join(cleaned.split())


@given(st.text())
def test_clean_text_is_unchanged(wrote: str) -> None:
    cleaned = clean_line(wrote)

    assert clean_line(cleaned) == cleaned


def test_megabyte_of_name_is_cleaned_in_time() -> None:
    assert len(clean_line("\u202e" * 10**6 + "x") or "") <= 64


@pytest.mark.parametrize(("text", "is_hidden"), [("USD Coin", False), ("US\u200bDC", True), ("a\nb", True)])
def test_hidden_characters_are_found(text: str, is_hidden: bool) -> None:  # noqa: FBT001
    assert has_invisible(text) is is_hidden


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\r\ntwo\rthree\n\n\tfour", "one\ntwo\nthree\n\n\tfour"),
        ("para\u2029graph\u2028line\x85end", "para\ngraph\nline\nend"),
        ("a\u202eb\u2066c\u200bd\ufeffe", "abcde"),
        ("no\x00\x07\x1b[31mbell", "no[31mbell"),
        ("tags \U000e0041\U000e0042 here", "tags  here"),
        ("icon \ue001\uf8ff font", "icon  font"),
        ("half \ud800 pair", "half  pair"),
        ("soft\u00adhyphen", "softhyphen"),
        ("a\u200db", "ab"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("\U0001f469\u200d\U0001f52c", "\U0001f469\u200d\U0001f52c"),
        ("\u4e2d\u6587 na\u00efve \u20ac\u00a0", "\u4e2d\u6587 na\u00efve \u20ac\u00a0"),
        ("", ""),
    ],
)
def test_multi_line_text_keeps_visible_characters(text: str, expected: str) -> None:
    assert strip_invisible(text) == expected


@given(st.text())
def test_legible_text_is_unchanged_and_hides_nothing(wrote: str) -> None:
    cleaned = strip_invisible(wrote)

    controls = {each for each in cleaned if unicodedata.category(each) == "Cc"}
    assert controls <= {"\n", "\t"}
    assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff\r")
    assert strip_invisible(cleaned) == cleaned
