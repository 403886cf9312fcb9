"""Coercion of single values of upstreams' JSON."""

from __future__ import annotations

import pytest

from centgate.coercion import as_amount, as_base_units, as_count, as_number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("1.5", 1.5),
        ("-2", -2),
        ("1e-7", 1e-7),
        (3, 3),
        ("1_000", None),
        ("\u0661\u0662", None),  # Arabic digits
        ("\uff11", None),  # a full-width digit
        ("nan", None),
        ("inf", None),
        (True, None),
        ("", None),
    ],
)
def test_as_number_reads_ascii_digits_only(value: object, number: float | None) -> None:
    assert as_number(value) == number


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("1000", 1000),
        ("0x1F", 31),
        ("0X1f", 31),
        (7, 7),
        ("1_000", None),
        ("0x1_0", None),
        ("\u0661", None),
        ("+5", None),
        (" 5", None),
        ("0x", None),
        ("", None),
        (-1, None),
        (True, None),
    ],
)
def test_as_base_units_reads_digits_or_hex_only(value: object, units: int | None) -> None:
    assert as_base_units(value) == units


def test_amounts_and_counts_follow_numbers() -> None:
    assert (as_amount("1_0"), as_count("1_0")) == (None, None)
