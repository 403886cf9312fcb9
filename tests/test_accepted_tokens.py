"""`CENTGATE_ACCEPTS`: several networks and tokens, and lists that are refused at the start."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from centgate.accepted_tokens import MAX_TOKENS, AcceptedToken
from centgate.catalog import service_summary
from centgate.payments.terms import build_terms
from centgate.services.phishing_check import phishing_check
from centgate.settings import CDP_FACILITATOR, TEST_FACILITATOR, Settings, find_setting_source
from centgate.signing.assets import USDC, Asset

BASE = {"network": "eip155:8453", "payTo": "0xCeCecececECecEcEcececECECeCECeCEcECececE"}
POLYGON = {"network": "eip155:137", "payTo": "0xD0D0D0d0D0D0d0d0d0d0D0d0d0D0d0d0d0D0D0d0".lower()}
OTHER = "0x1111111111111111111111111111111111111111"
SEPOLIA = {"network": "eip155:11155111", "payTo": OTHER, "asset": OTHER, "name": "USDC"}


@pytest.fixture(autouse=True)
def no_variable(no_operator: None) -> None:
    """Remove the settings of the developer's environment."""


def accept(*entries: object) -> Settings:
    options: dict[str, Any] = {"accepts": json.dumps(entries)}
    return Settings(**options)


def refusal_message(value: Any, **others: Any) -> str:
    options: dict[str, Any] = {"accepts": value if isinstance(value, str) else json.dumps(value)}
    with pytest.raises(ValidationError) as error:
        Settings(**options, **others)
    return str(error.value)


def test_entries_are_accepted_in_order() -> None:
    settings = accept(BASE, POLYGON)

    assert [(each.network, each.asset) for each in settings.accepted_tokens] == [
        ("eip155:8453", USDC["eip155:8453"]),
        ("eip155:137", USDC["eip155:137"]),
    ]
    assert settings.accepted_tokens[0].pay_to == BASE["payTo"]
    assert settings.accepted_tokens[1].pay_to.lower() == POLYGON["payTo"]


def test_single_settings_are_first_entry() -> None:
    settings = accept(POLYGON, BASE)

    assert (settings.network, settings.token) == ("eip155:137", USDC["eip155:137"])
    assert settings.pay_to == settings.accepted_tokens[0].pay_to
    assert settings.facilitator == CDP_FACILITATOR


def test_single_token_is_list_of_one() -> None:
    settings = Settings(pay_to=BASE["payTo"])

    assert settings.accepted_tokens == (AcceptedToken("eip155:8453", USDC["eip155:8453"], BASE["payTo"]),)
    assert Settings().accepted_tokens == ()


def test_list_is_read_from_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_ACCEPTS", json.dumps([BASE, POLYGON]))

    settings = Settings()

    assert [each.network for each in settings.accepted_tokens] == ["eip155:8453", "eip155:137"]
    assert find_setting_source(settings, "pay_to") == "environment"


def test_own_token_requires_its_domain() -> None:
    entry = {"network": "eip155:5", "payTo": OTHER, "asset": OTHER, "name": "Dollar"}

    (token,) = accept(entry).accepted_tokens

    assert token.asset == Asset(OTHER, "Dollar", "2")
    assert accept({**entry, "version": "1"}).token.version == "1"


def test_two_tokens_of_one_network_are_accepted() -> None:
    own = {**BASE, "asset": OTHER, "name": "Dollar"}

    assert [each.asset.name for each in accept(BASE, own).accepted_tokens] == ["USD Coin", "Dollar"]


def test_test_networks_alone_mean_test_money() -> None:
    local = {"network": "eip155:31337", "payTo": OTHER, "asset": OTHER, "name": "USDC"}

    settings = accept(local, {"network": "eip155:84532", "payTo": OTHER})

    assert settings.development_chain == 31337
    assert settings.facilitator == TEST_FACILITATOR


@pytest.mark.parametrize("name", ["network", "pay_to", "asset", "asset_name", "asset_version"])
def test_both_forms_together_are_refused(name: str) -> None:
    value = {"network": "eip155:8453", "asset_name": "USD Coin", "asset_version": "2"}.get(name, OTHER)

    assert f"CENTGATE_ACCEPTS replaces CENTGATE_{name.upper()}" in refusal_message([BASE], **{name: value})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("base", "CENTGATE_ACCEPTS: not JSON"),
        ({"network": "eip155:8453"}, "needs a JSON list"),
        ("[]", "the list is empty"),
        (["eip155:8453"], "entry 1 is not a JSON object"),
        ([BASE, {"payTo": OTHER}], "entry 2 has no network"),
        ([{"network": "eip155:8453"}], "entry 1 has no payTo"),
        ([{**BASE, "network": "base"}], "entry 1: network 'base' is not a network"),
        ([{**BASE, "network": "solana:mainnet"}], "is not a network"),
        ([{**BASE, "payTo": "vitalik.eth"}], "entry 1: payTo 'vitalik.eth' is not an address"),
        ([{**BASE, "payTo": OTHER + "\n"}], "is not an address"),
        ([{**BASE, "payTo": "0x" + "0" * 40}], "entry 1: payTo is the zero address"),
        ([{**BASE, "payTo": BASE["payTo"][:-1] + "e"}], "entry 1: payTo: "),
        ([{**BASE, "asset": "0x12"}], "entry 1: asset '0x12' is not an address"),
        ([{**BASE, "asset": OTHER}], "entry 1: add the name of the token"),
        ([{**BASE, "network": "eip155:5"}], "no token is known on eip155:5: add its asset, name and version"),
        ([{**BASE, "name": "USDC"}], "has the name 'USD Coin' and version '2', not 'USDC' and '2'"),
        ([{**BASE, "version": 2}], "entry 1: version is not a text in quotes"),
        ([{**BASE, "payto": OTHER}], "entry 1: unknown key 'payto'; the keys are network, payTo"),
        ('[{"network": "eip155:8453", "payTo": "0x1", "payTo": "0x2"}]', "'payTo' is there twice"),
        ([BASE, {**BASE, "payTo": OTHER}], "entry 2: the token"),
        ([BASE, {"network": "eip155:84532", "payTo": OTHER}], "test networks (eip155:84532) and networks"),
        ([BASE, SEPOLIA], "test networks (eip155:11155111) and networks"),
        ([BASE] * (MAX_TOKENS + 1), f"{MAX_TOKENS + 1} entries are too many: at most {MAX_TOKENS}"),
        ([{**BASE, "asset": OTHER, "name": "D" * 80}], "longer than 80 bytes"),
        ([{**BASE, "asset": OTHER, "name": "\N{EURO SIGN}" * 27}], "longer than 80 bytes"),
        ('[{"network": "eip155:5", "name": "\\ud800"}]', "entry 1"),
        ([{**BASE, "asset": OTHER, "name": "D\ud800"}], "cannot be printed"),
        ([{**BASE, "asset": OTHER, "name": "D\n"}], "cannot be printed"),
        ("[" * 50_000, "CENTGATE_ACCEPTS: not"),  # JSON, or a list of objects: by the limit of recursion
    ],
)
def test_invalid_list_is_refused(value: Any, message: str) -> None:
    assert message in refusal_message(value)


def test_terms_have_an_entry_for_each_token() -> None:
    settings = accept(BASE, POLYGON)

    terms = build_terms(phishing_check, settings)

    assert [(each["network"], each["payTo"].lower(), each["amount"]) for each in terms.accepts] == [
        ("eip155:8453", BASE["payTo"].lower(), "10000"),
        ("eip155:137", POLYGON["payTo"], "10000"),
    ]
    assert terms.first.requirements == terms.accepts[0]


def test_catalogue_names_each_token_and_first_network() -> None:
    payment = service_summary(phishing_check, accept(POLYGON, BASE))["payment"]

    assert payment["network"] == "eip155:137"
    assert [each["network"] for each in payment["accepts"]] == ["eip155:137", "eip155:8453"]
    assert payment["accepts"][1] == {
        **BASE,
        "asset": USDC["eip155:8453"].address,
        "name": "USD Coin",
        "version": "2",
    }
    assert service_summary(phishing_check, Settings())["payment"]["accepts"] == []
