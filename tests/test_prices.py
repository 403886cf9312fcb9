"""Prices: their format in settings, and values that are refused at the start."""

from __future__ import annotations

from decimal import Decimal

import pytest

from centgate.catalog import all_services, service_summary
from centgate.prices import describe_prices, format_price, format_price_range, parse_price
from centgate.runtime import validate_startup
from centgate.settings import Settings, find_unknown_variables, price_variable

VALID = {
    "0.01": "$0.01",
    "0.03": "$0.03",
    "0.10": "$0.10",
    "0.1": "$0.10",
    "1": "$1.00",
    "1.500000000": "$1.50",
    "0.005": "$0.005",
    "0.000001": "$0.000001",
    "100": "$100.00",
}
INVALID = {
    "": "write decimal dollars",
    "0": "more than 0",
    "0.000": "more than 0",
    "-0.01": "write decimal dollars",
    "1e-2": "write decimal dollars",
    "$0.03": "write decimal dollars",
    "0,03": "write decimal dollars",
    "NaN": "write decimal dollars",
    "Infinity": "write decimal dollars",
    "1_0": "write decimal dollars",
    "٣": "write decimal dollars",  # a digit outside of ASCII
    "0.0000001": "more than 6 decimals",
    "100.01": "more than the highest price",
    "10000": "more than the highest price",
}


@pytest.mark.parametrize(("text", "expected"), VALID.items())
def test_price_is_decimal_dollars(text: str, expected: str) -> None:
    assert format_price(parse_price(text)) == expected


@pytest.mark.parametrize(("text", "reason"), INVALID.items())
def test_invalid_price_is_refused_with_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_price(text)


def test_prices_of_several_services_are_described() -> None:
    cent, more = Decimal("0.01"), Decimal("0.05")

    assert (describe_prices([cent, cent]), format_price_range([cent, cent])) == ("one cent", "$0.01")
    assert describe_prices([more, more]) == "$0.05"
    assert describe_prices([more, cent]) == format_price_range([more, cent]) == "$0.01 to $0.05"


def test_default_price_of_every_service_is_one_cent() -> None:
    assert {Settings().price_of(service.slug) for service in all_services()} == {Decimal("0.01")}


def test_general_price_and_service_price_are_combined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CENTGATE_PRICE", "0.02")
    monkeypatch.setenv("CENTGATE_PRICE_TOKEN_RISK", "0.035")

    settings = Settings()

    prices = {service.slug: service_summary(service, settings) for service in all_services()}
    assert (prices["token-risk"]["price"], prices["token-risk"]["priceUsd"]) == ("$0.035", 0.035)
    assert {entry["price"] for slug, entry in prices.items() if slug != "token-risk"} == {"$0.02"}
    assert find_unknown_variables([]) == []
    validate_startup(settings)


@pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)
def test_every_service_has_its_variable(monkeypatch: pytest.MonkeyPatch, service: object) -> None:
    slug = str(getattr(service, "slug", ""))
    monkeypatch.setenv(price_variable(slug), "0.07")

    settings = Settings()

    assert settings.service_prices == {slug: Decimal("0.07")}
    validate_startup(settings)


def test_price_of_unknown_service_is_refused_with_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CENTGATE_PRICE_TOKEN_RISKS", "0.02")

    with pytest.raises(ValueError, match="CENTGATE_PRICE_TOKEN_RISKS: there is no such service") as refused:
        validate_startup(Settings())

    assert all(price_variable(service.slug) in str(refused.value) for service in all_services())


@pytest.mark.parametrize("name", ["CENTGATE_PRICE", "CENTGATE_PRICE_TOKEN_RISK"])
def test_invalid_price_is_refused_with_its_variable(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "free")

    with pytest.raises(ValueError, match="is not a price") as refused:
        Settings()

    assert name.removeprefix("CENTGATE_").lower() in str(refused.value).lower()


def test_price_variable_like_provider_setting_is_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_PRICE_CHECK_URL", "0.02")

    settings = Settings()

    assert (settings.service_prices, dict(settings.providers)) == ({"check-url": Decimal("0.02")}, {})


def test_price_can_be_read_from_file(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "price"
    file.write_text("0.04\n")
    monkeypatch.setenv("CENTGATE_PRICE_TOKEN_RISK_FILE", str(file))

    assert Settings().price_of("token-risk") == Decimal("0.04")
