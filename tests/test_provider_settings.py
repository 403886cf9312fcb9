"""Settings of the providers, `CENTGATE_<NAME>_<FIELD>`: parsing, messages and effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from centgate.providers.exa import Exa
from centgate.providers.goplus import GoPlus
from centgate.providers.searxng import SearXNG
from centgate.rate_limiter import RateLimit
from centgate.settings import Settings

Environment = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def no_variable(no_operator: None) -> None:
    """Remove the settings of other tests."""


def test_provider_has_key_url_and_switch(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_EXA_KEY", "k")
    monkeypatch.setenv("CENTGATE_EXA_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("CENTGATE_EXA_ENABLED", "false")

    exa = Settings().provider_settings("exa")

    assert exa.key is not None
    assert (exa.key.get_secret_value(), exa.url, exa.enabled) == ("k", "http://127.0.0.1:1", False)


def test_invalid_switch_is_refused_by_name(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_GOPLUS_ENABLED", "maybe")

    with pytest.raises(ValueError, match="CENTGATE_GOPLUS_ENABLED: 'maybe' is neither true nor false"):
        Settings()


def test_provider_has_rate_and_timeout(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_GOPLUS_PER_MINUTE", "600")
    monkeypatch.setenv("CENTGATE_GOPLUS_TIMEOUT", "2.5")

    goplus = Settings().provider_settings("goplus")

    assert (goplus.per_minute, goplus.timeout) == (600, 2.5)


@pytest.mark.parametrize("what", ["PER_MINUTE", "TIMEOUT"])
@pytest.mark.parametrize("value", ["0", "-1", "many", "nan", "inf", "0.5", "2000000"])
def test_invalid_rate_or_timeout_is_refused_by_name(monkeypatch: Environment, what: str, value: str) -> None:
    monkeypatch.setenv(f"CENTGATE_GOPLUS_{what}", value)

    with pytest.raises(
        ValueError, match=f"CENTGATE_GOPLUS_{what}: '{value}' is not a number from 1 to 1,000,000"
    ):
        Settings()


def test_calls_per_minute_are_integers(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_GOPLUS_PER_MINUTE", "2.5")

    with pytest.raises(ValueError, match=r"CENTGATE_GOPLUS_PER_MINUTE: '2\.5' is not a whole number"):
        Settings()


@pytest.mark.parametrize(
    "value", ["example.com", "ftp://example.com", "https://a.example, b", "https://", ","]
)
def test_invalid_provider_url_is_refused_by_name(monkeypatch: Environment, value: str) -> None:
    monkeypatch.setenv("CENTGATE_RPC_1_URL", value)

    with pytest.raises(ValueError, match="CENTGATE_RPC_1_URL: needs http:// or https:// addresses"):
        Settings()


def test_additional_comma_is_no_address(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_RPC_1_URL", " https://a.example, ,https://b.example/KEY,")

    assert Settings().provider_settings("rpc_1").url == "https://a.example,https://b.example/KEY"
    assert "KEY" not in repr(Settings().providers["rpc_1"])


def test_provider_without_settings_is_enabled() -> None:
    exa = Settings().provider_settings("exa")

    assert (exa.key, exa.url, exa.enabled, exa.per_minute, exa.timeout) == (None, None, True, None, None)


def test_provider_key_can_be_read_from_file(monkeypatch: Environment, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k\n", encoding="utf-8")
    monkeypatch.setenv("CENTGATE_EXA_KEY_FILE", str(tmp_path / "key"))

    key = Settings().provider_settings("exa").key

    assert key is not None
    assert key.get_secret_value() == "k"


def test_payment_node_is_first_of_its_chain(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_RPC_8453_URL", "https://one.example, https://two.example")
    monkeypatch.setenv("CENTGATE_RPC_1_URL", "https://other.example")

    assert Settings().rpc_url == "https://one.example"


def test_calls_per_minute_replace_published_rate(monkeypatch: Environment) -> None:
    published = [provider(Settings()).rate_limit for provider in (GoPlus, Exa, SearXNG)]
    for name in ("GOPLUS", "EXA", "SEARXNG"):
        monkeypatch.setenv(f"CENTGATE_{name}_PER_MINUTE", "100")

    set_by_operator = [provider(Settings()).rate_limit for provider in (GoPlus, Exa, SearXNG)]

    assert published == [RateLimit(30), RateLimit(10, 1), None]
    assert set_by_operator == [RateLimit(100), RateLimit(1, 0.6), RateLimit(100)]


@pytest.mark.parametrize(
    ("per_minute", "rate"), [(600, RateLimit(10, 1)), (1200, RateLimit(20, 1)), (30, RateLimit(1, 2))]
)
def test_calls_per_minute_keep_window_of_source(
    monkeypatch: Environment, per_minute: int, rate: RateLimit
) -> None:
    monkeypatch.setenv("CENTGATE_EXA_PER_MINUTE", str(per_minute))

    assert Exa(Settings()).rate_limit == rate
