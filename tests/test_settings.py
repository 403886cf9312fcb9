"""Settings of an operator: sources, defaults, and messages about invalid values."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from centgate_process import run_centgate
from pydantic import ValidationError
from x402.mechanisms.evm.default_assets import DEFAULT_ASSETS

from centgate.catalog import all_providers, all_services
from centgate.cli.server_settings import describe_problem
from centgate.cli.settings_docs import render_env_example, render_markdown
from centgate.client import BuyerSettings
from centgate.environment import read_env_file
from centgate.provider_settings import PROVIDER_FIELDS
from centgate.runtime import validate_startup
from centgate.settings import (
    CDP_FACILITATOR,
    GROUPED_FIELDS,
    TEST_FACILITATOR,
    Settings,
    find_unknown_variables,
)
from centgate.settings.fields import SettingsGroup
from centgate.signing.assets import USDC, Asset

ROOT = Path(__file__).parent.parent
PAY_TO = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"

Environment = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch, no_operator: None) -> None:
    """Remove also the settings of other tests, since defaults are tested here."""
    monkeypatch.delenv("CENTGATE_PHISHING_LIST_URL")


def refusal_message(**options: object) -> str:
    """Return the message about refused settings."""
    with pytest.raises(ValidationError) as refusal:
        Settings(**options)  # pyright: ignore[reportArgumentType]
    return str(refusal.value)


def test_default_has_no_payee() -> None:
    assert Settings().pay_to is None


def test_default_is_real_money_on_base() -> None:
    settings = Settings()

    assert (settings.network, settings.development_chain) == ("eip155:8453", None)
    assert settings.facilitator == CDP_FACILITATOR


def test_default_listens_on_loopback_only() -> None:
    settings = Settings()

    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8402, 1)
    assert settings.base_url == "http://127.0.0.1:8402"


def test_environment_variable_is_read(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_PORT", "9000")

    assert Settings().port == 9000


def test_env_file_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CENTGATE_PORT=9001\n", encoding="utf-8")

    assert Settings().port == 9001


def test_environment_precedes_env_file(monkeypatch: Environment, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("CENTGATE_PORT=9001\nCENTGATE_HOST=::1\n", encoding="utf-8")
    monkeypatch.setenv("CENTGATE_PORT", "9000")

    settings = Settings()

    assert (settings.port, settings.host) == (9000, "::1")


def test_argument_precedes_environment(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_PORT", "9000")

    assert Settings(port=9002).port == 9002


def test_empty_variable_counts_as_unset(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_PORT", "")

    assert Settings().port == 8402


def test_other_variables_are_ignored(monkeypatch: Environment) -> None:
    monkeypatch.setenv("PORT", "9000")

    assert Settings().port == 8402


def test_secret_can_be_read_from_file(monkeypatch: Environment, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n", encoding="utf-8")
    monkeypatch.setenv("CENTGATE_FACILITATOR_TOKEN_FILE", str(tmp_path / "token"))

    token = Settings().facilitator_token

    assert token is not None
    assert token.get_secret_value() == "s3cret"


def test_token_must_be_valid_header_value(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_FACILITATOR_TOKEN", " s3cret\n")

    token = Settings().facilitator_token

    assert token is not None
    assert token.get_secret_value() == "s3cret"
    monkeypatch.setenv("CENTGATE_FACILITATOR_TOKEN", "s3cret\r\nX-Other: 1")
    with pytest.raises(ValueError, match="a token may contain only"):
        Settings()
    monkeypatch.setenv("CENTGATE_FACILITATOR_TOKEN", "Bearer s3cret")
    with pytest.raises(ValueError, match="without spaces"):
        Settings()


@pytest.mark.parametrize(
    "url", ["http://a..b/x", "http://host:99999", "http://:80", "http://[::1", f"https://{'a' * 64}.example"]
)
def test_facilitator_url_must_be_valid(url: str) -> None:
    with pytest.raises(ValueError, match="CENTGATE_FACILITATOR_URL: not a valid address"):
        validate_startup(Settings(facilitator_url=url))


def test_value_precedes_its_file(monkeypatch: Environment, tmp_path: Path) -> None:
    (tmp_path / "port").write_text("9001", encoding="utf-8")
    monkeypatch.setenv("CENTGATE_PORT_FILE", str(tmp_path / "port"))
    monkeypatch.setenv("CENTGATE_PORT", "9000")

    assert Settings().port == 9000


def test_missing_file_is_named(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_PAY_TO_FILE", "/nowhere/address")

    with pytest.raises(ValueError, match=r"CENTGATE_PAY_TO_FILE: cannot read /nowhere/address: No such file"):
        Settings()


def test_binary_file_is_named(monkeypatch: Environment, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setenv("CENTGATE_EXA_KEY_FILE", str(tmp_path / "key"))

    with pytest.raises(ValueError, match=r"CENTGATE_EXA_KEY_FILE: .*key is not text in UTF-8"):
        Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FETCH_PORTS", "80,0"),
        ("FETCH_PORTS", "http"),
        ("FETCH_PORTS", "65536"),
        ("FETCH_ALLOWED", "localhost"),
        ("FETCH_ALLOWED", "127.0.0.1:99999"),
        ("FETCH_ALLOWED", "10.0.0.0/40"),
        ("PINNED", "crawler-scrape"),
        ("PINNED", "crawler-scrape=page reader"),
        ("OPERATOR", "two words"),
        ("PAGE_PROCESSES", "0"),
    ],
)
def test_invalid_web_setting_is_refused_by_name(monkeypatch: Environment, name: str, value: str) -> None:
    monkeypatch.setenv(f"CENTGATE_{name}", value)

    with pytest.raises(ValueError, match=name.lower()):
        Settings()


def test_fetchable_addresses_are_separated_by_commas(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_FETCH_ALLOWED", "127.0.0.1:8080, 10.1.0.0/16")
    monkeypatch.setenv("CENTGATE_FETCH_PORTS", "80,443,8443")

    policy = Settings().fetch_policy

    assert policy.can_connect("127.0.0.1", 8080)
    assert policy.can_connect("10.1.2.3", 443)
    assert policy.can_connect("198.41.0.4", 8443)
    assert not policy.can_connect("127.0.0.1", 443)


@pytest.mark.parametrize(
    ("pin", "reason"),
    [
        ("crawl=pagereader", "there is no service 'crawl'"),
        ("crawler-scrape=exa", "crawler-scrape is answered by firecrawl or pagereader, not by 'exa'"),
    ],
)
def test_pin_of_unknown_name_is_refused(pin: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        validate_startup(Settings(pinned=(pin,)))


def test_secrets_are_not_shown(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_EXA_KEY", "s3cret")
    monkeypatch.setenv("CENTGATE_FACILITATOR_TOKEN", "s3cret")

    assert "s3cret" not in repr(Settings())


def test_settings_are_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().port = 1


def test_env_file_that_is_not_text_is_named(tmp_path: Path, monkeypatch: Environment) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_bytes(b"CENTGATE_PORT=9001\n\xff\xfe")

    with pytest.raises(ValueError, match=r"^\.env is not text in UTF-8$"):
        Settings()


def test_folder_named_like_env_file_is_no_file_of_settings(tmp_path: Path, monkeypatch: Environment) -> None:
    """Virtual environments often have that name."""
    monkeypatch.chdir(tmp_path)
    Path(".env").mkdir()

    assert read_env_file() == {}


@pytest.mark.parametrize("line", ["CENTGATE_PRICE='0.05", "CENTGATE_PRICE 0.05"])
def test_line_of_env_file_that_cannot_be_read_is_named(
    line: str, tmp_path: Path, monkeypatch: Environment
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text(f"# prices\n\n{line}\nCENTGATE_PORT=9001\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"^\.env, line 3: write NAME=value, and close its quotes$"):
        Settings()


def test_origins_are_separated_by_commas(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_ALLOWED_ORIGINS", "https://a.example, https://b.example,")

    assert Settings().allowed_origins == ("https://a.example", "https://b.example")


@pytest.mark.parametrize(
    "origins", ["app.example", "https://app.example/shop", "https://*.example", "*,localhost:3000"]
)
def test_origin_that_no_browser_sends_is_refused(origins: str) -> None:
    with pytest.raises(ValidationError, match=r"such as https://app\.example"):
        Settings(allowed_origins=origins)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "origin", ["*", "null", "http://localhost:3000", "chrome-extension://abcdefgh", "file://"]
)
def test_origin_of_browsers_is_accepted(origin: str) -> None:
    assert Settings(allowed_origins=(origin,)).allowed_origins == (origin,)


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://api.example/", "https://api.example"),
        ("https://API.Example:443", "https://api.example"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]"),
        ("HTTP://localhost:8080", "http://localhost:8080"),
        ("https://api.example:80", "https://api.example:80"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example"),
    ],
)
def test_public_url_is_written_as_clients_write_it(url: str, origin: str) -> None:
    assert Settings(public_url=url).base_url == origin


def test_other_origins_are_written_so_too() -> None:
    settings = Settings(host="LOCALHOST", port=80, allowed_origins=("https://App.Example/", "*"))

    assert (settings.base_url, settings.allowed_origins) == ("http://localhost", ("https://app.example", "*"))


def test_known_token_has_its_own_name() -> None:
    usdc = USDC["eip155:8453"]
    named = Settings(asset=usdc.address, asset_name=usdc.name, asset_version=usdc.version)

    assert named.token == usdc
    with pytest.raises(ValidationError, match="USDC on eip155:8453 has the name 'USD Coin'"):
        Settings(asset=usdc.address, asset_name="Wrong")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_wildcard_host_is_reached_by_loopback(host: str) -> None:
    assert Settings(host=host).base_url == "http://127.0.0.1:8402"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:9000/metrics"),
        ("0.0.0.0", "http://127.0.0.1:9000/metrics"),
        ("::1", "http://[::1]:9000/metrics"),
        ("::", "http://[::1]:9000/metrics"),  # its socket accepts only IPv6
    ],
)
def test_metrics_url_is_where_server_publishes(host: str, url: str) -> None:
    assert Settings(metrics_port=9000, metrics_host=host).metrics_url == url
    assert Settings(metrics_host=host).metrics_url is None


def test_ipv6_address_has_brackets() -> None:
    assert Settings(host="::1").base_url == "http://[::1]:8402"


def test_test_network_has_its_own_facilitator() -> None:
    settings = Settings(network="eip155:84532")

    assert (settings.facilitator, settings.development_chain) == (TEST_FACILITATOR, 84532)


def test_address_gets_its_checksum() -> None:
    assert Settings(pay_to=PAY_TO.lower()).pay_to == PAY_TO


def test_upper_case_address_gets_its_checksum() -> None:
    assert Settings(pay_to="0x" + PAY_TO[2:].upper()).pay_to == PAY_TO


def test_address_with_checksum_is_kept() -> None:
    assert Settings(pay_to=PAY_TO).pay_to == PAY_TO


def test_wrong_checksum_is_refused() -> None:
    mistyped = PAY_TO[:-1] + "4"

    assert f"{mistyped} is mistyped: its checksum (EIP-55) is wrong" in refusal_message(pay_to=mistyped)


def test_zero_address_is_refused_as_payee() -> None:
    with pytest.raises(ValueError, match="zero address"):
        Settings(pay_to="0x" + "0" * 40)


def test_unknown_variable_is_found(monkeypatch: Environment) -> None:
    good = (
        "EXA_KEY",
        "EXA_TIMEOUT",
        "RPC_8453_URL",
        "RPC_1_ENABLED",
        "BLOCKSCOUT_10_URL",
        "GOPLUS_PER_MINUTE",
    )
    bad = ("PAYTO", "EXAA_KEY", "RPC_8453_KEY", "RPC_8453_TIMEOUT", "GOPLUS_1_URL", "DEXSCREENER_KEY")
    for name in (*good, *bad):
        monkeypatch.setenv(
            f"CENTGATE_{name}", "1" if name.endswith(("TIMEOUT", "MINUTE", "ENABLED")) else "https://x"
        )
    known = [name for each in all_providers(all_services()).values() for name in each.info.settings]

    assert find_unknown_variables(known) == sorted(f"CENTGATE_{name}" for name in bad)


def test_variables_of_buyer_are_not_unknown(monkeypatch: Environment) -> None:
    for name in ("API_URL", "WALLET", "WALLET_KEY", "CAP_TOTAL", "PAYEE"):
        monkeypatch.setenv(f"CENTGATE_{name}", "anything")

    assert find_unknown_variables([]) == []
    assert Settings().providers == {}


def test_token_address_is_checked() -> None:
    assert "is mistyped" in refusal_message(asset=TOKEN[:-1] + "d", asset_name="USDC")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pay_to", "0x12"),
        ("pay_to", "vitalik.eth"),
        ("pay_to", PAY_TO + "\n"),
        ("network", "base"),
        ("network", "eip155:0"),
        ("network", "eip155:8453\n"),
        ("network", "solana:mainnet"),
        ("port", "eighty"),
        ("port", 65536),
        ("port", -1),
        ("workers", 0),
        ("public_url", "https://api.example/path"),
        ("public_url", "api.example"),
        ("public_url", "https://me:secret@api.example"),
        ("public_url", "https://api.example:99999"),
        ("public_url", "https://api\n.example"),
        ("public_url", "https://api .example"),
        ("public_url", "https://%61pi.example"),
        ("public_url", "https://api\\.example"),
        ("public_url", "https://"),
        ("facilitator_url", "ftp://facilitator.example"),
        ("facilitator_timeout", 0),
        ("database_url", "mysql://localhost/centgate"),
        ("log_level", "loud"),
        ("payment_window", 5),
        ("redeem_hours", 0),
        ("redeem_hours", "inf"),
        ("alert_minutes", "inf"),
        ("ownership_proofs", "signed"),
        ("ownership_proofs", "0x" + "1f" * 64),
        ("ownership_proofs", "1f" * 65),
        ("ownership_proofs", "0x" + "1f" * 65 + "," + "0x" + "1g" * 65),
    ],
)
def test_invalid_value_is_refused_by_name(name: str, value: object) -> None:
    assert name in refusal_message(**{name: value})


def test_ownership_proofs_of_keys_and_contracts_are_accepted() -> None:
    proofs = ("0x" + "1f" * 65, "0x" + "2E" * 300)

    assert Settings(ownership_proofs=", ".join(proofs)).ownership_proofs == proofs  # pyright: ignore[reportArgumentType]


def test_incomplete_cdp_key_is_refused() -> None:
    assert "CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET must be set together" in refusal_message(
        cdp_api_key_id="x"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"facilitator_fallback_token": "x"}, "FACILITATOR_FALLBACK_URL is not set"),
        ({"facilitator_fallback_url": "https://one.example/a/"}, "is the first facilitator's address"),
        ({"facilitator_fallback_url": "https://u:p@ONE.example/a"}, "is the first facilitator's address"),
        (
            {"facilitator_fallback_url": "https://two.example", "facilitator_fallback_cdp_api_key_id": "x"},
            "FACILITATOR_FALLBACK_CDP_API_KEY_SECRET must be set together",
        ),
    ],
    ids=["token alone", "same", "same with a password", "half a key"],
)
def test_invalid_second_facilitator_is_refused(changes: dict[str, Any], reason: str) -> None:
    assert reason in refusal_message(facilitator_url="https://one.example/a", **changes)


def test_name_of_facilitator_has_no_secret() -> None:
    settings = Settings(
        facilitator_url="https://user:s3cret@one.example/s3cret",
        facilitator_fallback_url="https://two.example/",
    )

    first, second = (account.name for account in settings.facilitators)

    assert (first.partition("#")[0], "s3cret" in first, second) == (
        "https://one.example",
        False,
        "https://two.example",
    )


def test_token_without_name_is_refused() -> None:
    assert "CENTGATE_ASSET and CENTGATE_ASSET_NAME must be set together" in refusal_message(asset=TOKEN)


def test_network_without_known_token_requires_one() -> None:
    assert "no token is known on eip155:5" in refusal_message(network="eip155:5", pay_to=PAY_TO)


def test_own_token_is_accepted() -> None:
    settings = Settings(network="eip155:5", pay_to=PAY_TO, asset=TOKEN.lower(), asset_name="Dollar")

    assert settings.token == Asset(TOKEN, "Dollar", "2")


@pytest.mark.parametrize("network", USDC)
def test_known_tokens_match_official_library(network: str) -> None:
    official = DEFAULT_ASSETS[network][0]

    ours = USDC[network]

    assert official["symbol"] == "USDC"
    assert (ours.address, ours.name, ours.version, ours.decimals) == (
        official["asset"],
        official["name"],
        official["version"],
        official["decimals"],
    )


def test_groups_share_no_names() -> None:
    groups = [
        each for each in Settings.__mro__ if issubclass(each, SettingsGroup) and each is not SettingsGroup
    ]
    names = [
        name
        for group in groups
        for name in {*vars(group), *group.__annotations__}
        if not name.startswith(("__", "_abc_", "model_"))
    ]

    # of two validators or methods of one name, one would never run
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.extended
def test_settings_page_matches_command() -> None:
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == run_command("settings")


@pytest.mark.extended
def test_env_example_matches_command() -> None:
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == run_command("settings", "--env")


def test_every_setting_is_explained_on_page() -> None:
    lines = {
        line.split("`")[1]: line for line in render_markdown().splitlines() if line.startswith("| `CENTGATE_")
    }

    named = {*Settings.model_fields, *BuyerSettings.model_fields} - GROUPED_FIELDS
    shared = {f"<NAME>_{name}" for name in PROVIDER_FIELDS}
    assert set(lines) == {f"CENTGATE_{name}" for name in {name.upper() for name in named} | shared}
    assert all(line.split("|")[-2].strip() for line in lines.values())


@pytest.mark.parametrize("name", sorted(all_providers(all_services())))
def test_every_provider_is_on_page_and_in_example(name: str) -> None:
    assert f"| `{name}` |" in render_markdown()
    assert f"# CENTGATE_{name.upper()}_ENABLED=true" in render_env_example()


def test_unchanged_example_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(render_env_example(), encoding="utf-8")

    assert Settings() == Settings.model_construct()


def test_every_line_of_example_can_be_enabled(tmp_path: Path) -> None:
    lines = [line[2:] for line in render_env_example().splitlines() if line.startswith("# CENTGATE_")]
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")

    settings = Settings()

    assert settings.model_copy(update={"providers": {}}) == Settings.model_construct()


def run_command(*arguments: str) -> str:
    """Return the output of a command without settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CENTGATE_")}
    result = run_centgate([*arguments], env=clean)
    result.check_returncode()
    return result.stdout


def test_phishing_lists_are_fetched_for_real_payments_only(tmp_path: Path) -> None:
    assert not Settings().phishing_urls
    assert set(Settings().with_fetched_lists().phishing_urls) == {"metamask", "polkadot"}
    assert not Settings(phishing_list_url=("off",)).with_fetched_lists().phishing_urls
    assert not Settings(phishing_list=tmp_path / "list.xz").with_fetched_lists().phishing_urls


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("default", {"metamask", "polkadot"}),
        ("default,scamsniffer", {"metamask", "polkadot", "scamsniffer"}),
        ("https://mirror.example/list.json", {"metamask"}),
        ("metamask=https://a.example/v1,hotlist=https://a.example/v2", {"metamask", "hotlist"}),
        ("polkadot=http://127.0.0.1:8000/all.json", {"polkadot"}),
    ],
)
def test_urls_of_phishing_lists_are_parsed(
    monkeypatch: pytest.MonkeyPatch, text: str, urls: set[str]
) -> None:
    monkeypatch.setenv("CENTGATE_PHISHING_LIST_URL", text)

    assert set(Settings().phishing_urls) == urls


@pytest.mark.parametrize(
    "text",
    [
        "metamsk",
        "http://a.example/list.json",
        "metamask=",
        "metamask=file:///etc/passwd",
        "hotlist=https://a",
    ],
)
def test_invalid_phishing_list_url_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CENTGATE_PHISHING_LIST_URL", text)

    with pytest.raises(ValidationError):
        Settings()


@pytest.mark.parametrize("url", ["http://console.example.com", "http://8.8.8.8:8404"])
def test_public_console_without_tls_is_refused(monkeypatch: Environment, url: str) -> None:
    monkeypatch.setenv("CENTGATE_CONSOLE_URL", url)

    with pytest.raises(ValidationError, match="needs https, except on loopback and private networks"):
        Settings()


@pytest.mark.parametrize(
    "url", ["http://localhost:8404", "http://10.0.0.7:8404", "https://console.example.com"]
)
def test_console_url_is_accepted(monkeypatch: Environment, url: str) -> None:
    monkeypatch.setenv("CENTGATE_CONSOLE_URL", url)

    assert Settings().console_url == url


def test_password_in_refused_url_is_not_shown(monkeypatch: Environment) -> None:
    monkeypatch.setenv("CENTGATE_FACILITATOR_URL", "https://user:s3cret@facilitator.example/x?y=1")

    with pytest.raises(ValidationError) as refusal:
        Settings()

    described = [describe_problem(error) for error in refusal.value.errors()]
    assert "CENTGATE_FACILITATOR_URL: the value is not valid" in described[0]
    assert "s3cret" not in "".join(described)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PORT", "http", "'http' is not a whole number"),
        ("PORT", "99999", "must be at most 65535, not '99999'"),
        ("FETCH_PORTS", "80;443", "'80;443' is not a whole number"),
        ("FACILITATOR_TIMEOUT", "10s", "'10s' is not a number"),
        ("FACILITATOR_TIMEOUT", "0", "must be more than 0, not '0'"),
        ("PAYMENT_WINDOW", "5", "must be at least 30, not '5'"),
        ("MPP_ENABLED", "maybe", "'maybe' is neither true nor false"),
        ("LOG_LEVEL", "LOUD", "'LOUD' is not 'debug', 'info', 'warning' or 'error'"),
    ],
)
def test_refused_value_is_repeated(monkeypatch: Environment, name: str, value: str, message: str) -> None:
    monkeypatch.setenv(f"CENTGATE_{name}", value)

    with pytest.raises(ValidationError) as refusal:
        Settings()

    assert [describe_problem(error) for error in refusal.value.errors()] == [f"CENTGATE_{name}: {message}"]


@pytest.mark.parametrize(
    "secret", ["0x" + "5e" * 32, "postgresql://centgate:5e5e@db/journal", "https://node.example/v2/5e5e"]
)
def test_value_that_may_be_secret_is_not_repeated(monkeypatch: Environment, secret: str) -> None:
    for name in ("PORT", "FACILITATOR_TIMEOUT", "MPP_ENABLED", "LOG_LEVEL"):
        monkeypatch.setenv(f"CENTGATE_{name}", secret)

    with pytest.raises(ValidationError) as refusal:
        Settings()

    messages = [describe_problem(error) for error in refusal.value.errors()]
    assert len(messages) == 4
    assert not any("5e5e" in message for message in messages)


@pytest.mark.parametrize("host", ["not an address", "999.1.1.1"])
def test_invalid_host_names_its_setting(host: str) -> None:
    with pytest.raises(ValueError, match=f"CENTGATE_HOST: '{host}' is neither an address nor a host name"):
        _ = Settings(host=host).base_url


def test_unreadable_phishing_list_names_its_setting(tmp_path: Path) -> None:
    (damaged := tmp_path / "damaged.xz").write_bytes(b"no snapshot")

    for path, problem in ((tmp_path / "absent.xz", "cannot read"), (damaged, str(damaged))):
        with pytest.raises(ValueError, match=f"CENTGATE_PHISHING_LIST: {problem}"):
            validate_startup(Settings(phishing_list=path))


@pytest.mark.parametrize("key", ["5a" * 32, "5a" * 31 + "5", f"{'5a' * 16} {'5a' * 16}"])
def test_private_key_that_was_copied_badly_is_not_shown(key: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        Settings(pay_to=f"0x{key}")

    (described,) = map(describe_problem, refusal.value.errors())
    assert described.startswith("CENTGATE_PAY_TO: the value is not valid. ")
