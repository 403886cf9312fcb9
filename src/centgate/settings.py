"""Server settings: `CENTGATE_*` from the environment, `.env`, or files named by `<NAME>_FILE`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from centgate.client.settings import BuyerSettings
from centgate.client_address import parse_network
from centgate.phishing.published import parse_list_urls
from centgate.signing.assets import TEST_NETWORKS, USDC, Asset
from centgate.signing.evm import to_checksum_address
from centgate.web.fetch.policy import FetchPolicy

PREFIX = "CENTGATE_"
CDP_FACILITATOR = "https://api.cdp.coinbase.com/platform/v2/x402"
TEST_FACILITATOR = "https://x402.org/facilitator"
_BUYER_VARIABLES = tuple(PREFIX + name.upper() for name in BuyerSettings.model_fields)


def _parse_bool(value: str) -> bool:
    if value.lower() not in ("true", "1", "yes", "on", "false", "0", "no", "off"):
        raise ValueError(f"{value[:40]!r} is neither true nor false")
    return value.lower() in ("true", "1", "yes", "on")


def _parse_urls(value: str) -> str:
    """Check one or several comma-separated URLs; errors do not show them, since some contain keys."""
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if not parts or not all(re.match(r"^https?://[^\s/?#]", part) for part in parts):
        raise ValueError("needs http:// or https:// addresses")
    return ",".join(parts)


def _parse_positive(value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0
    if not 1 <= number <= 1_000_000:
        raise ValueError(f"{value[:40]!r} is not a number of 1 or more")
    return number


def _parse_count(value: str) -> int:
    return int(_parse_positive(value))


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Settings of one provider: each field is `CENTGATE_<NAME>_<FIELD>`, with its parser and meaning."""

    enabled: bool = field(default=True, metadata={"parse": _parse_bool, "meaning": "`false` disables it"})
    url: str | None = field(
        default=None,
        repr=False,
        metadata={"parse": _parse_urls, "meaning": "its address: a proxy, the host of a paid plan, a test"},
    )
    key: SecretStr | None = field(
        default=None, metadata={"parse": SecretStr, "meaning": "the key of the operator's account"}
    )
    per_minute: int | None = field(
        default=None,
        metadata={
            "parse": _parse_count,
            "meaning": "calls per minute instead of its rate limit, divided among the processes (per host if "
            "there are several)",
        },
    )
    timeout: float | None = field(
        default=None, metadata={"parse": _parse_positive, "meaning": "timeout of a call in seconds"}
    )
    resale_permitted: bool | None = field(
        default=None,
        metadata={
            "parse": _parse_bool,
            "meaning": "`true` if the operator may sell answers made of its data, `false` if not; "
            "default: what its terms of use say, empty if they were not found to say it",
        },
    )


PROVIDER_FIELDS = {each.name.upper(): each for each in fields(ProviderSettings)}
"""Fields of the settings of a provider by the ends of their variables' names."""
_PROVIDER_VARIABLE = re.compile(rf"^(?P<name>[A-Z][A-Z0-9_]*?)_(?P<what>{'|'.join(PROVIDER_FIELDS)})$")


def _split_list(value: Any) -> Any:
    """Split a comma-separated string into a tuple; return other values unchanged."""
    if isinstance(value, str):
        return tuple(item for item in (part.strip() for part in value.split(",")) if item)
    return value


class Settings(BaseSettings):
    """Immutable settings, read once at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    pay_to: str | None = Field(
        default=None,
        pattern=r"^0x[0-9a-fA-F]{40}$",
        description="The address that receives all payments. Without it the server accepts no payments and "
        "all paid routes return 402.",
    )
    network: str = Field(
        default="eip155:8453",
        pattern=r"^eip155:[1-9][0-9]{0,18}$",
        description="The payment network as a CAIP-2 identifier: Base is eip155:8453.",
    )
    asset: str | None = Field(
        default=None,
        pattern=r"^0x[0-9a-fA-F]{40}$",
        description="The payment token, a dollar token with 6 decimals. Default: USDC on Base, Ethereum, "
        "Polygon, Arbitrum, Avalanche and Base Sepolia; required on any other network.",
    )
    asset_name: str | None = Field(
        default=None, description="The token's EIP-712 domain name, if `CENTGATE_ASSET` is set."
    )
    asset_version: str = Field(
        default="2", description="The token's EIP-712 domain version, if `CENTGATE_ASSET` is set."
    )
    facilitator_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^?#]+$",
        description="The x402 facilitator that settles payments. Default: on a test network "
        f"{TEST_FACILITATOR}, elsewhere {CDP_FACILITATOR}, which needs the two CDP settings below.",
    )
    facilitator_token: SecretStr | None = Field(
        default=None, description="A bearer token for the facilitator, if it requires one."
    )
    cdp_api_key_id: str | None = Field(
        default=None, description="Coinbase Developer Platform: the id of a secret API key."
    )
    cdp_api_key_secret: SecretStr | None = Field(
        default=None,
        description="Coinbase Developer Platform: the key's secret, Ed25519 in base64 or EC as PEM.",
    )
    facilitator_timeout: float = Field(
        default=30, gt=0, le=300, description="Timeout of the facilitator for a settlement, in seconds."
    )
    payment_window: int = Field(
        default=120,
        ge=30,
        le=3600,
        description="Seconds that a signed payment is valid (`maxTimeoutSeconds` of the terms).",
    )
    redeem_hours: float = Field(
        default=24,
        gt=0,
        description="Hours that a stored answer is kept and that a settled, undelivered payment can "
        "be redeemed.",
    )
    public_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#]+$",
        description="The public URL of this server, without a path; used in the terms, the catalogue "
        "and the OpenAPI document. Default: the address that it listens on.",
    )
    database_url: str = Field(
        default="sqlite:///centgate.db",
        pattern=r"^(sqlite:///.+|postgres(ql)?://.+)",
        repr=False,
        description="The payment journal: sqlite:///relative/path or sqlite:////absolute/path for one "
        "machine, postgresql://user:password@host/database for several.",
    )
    database_connections: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Maximum number of connections to PostgreSQL per server process.",
    )
    cache_url: str | None = Field(
        default=None,
        pattern=r"^(rediss?|unix)://.+",
        repr=False,
        description="A Redis or Valkey that several servers share: redis://user:password@host:6379/0. It "
        "holds cached answers, leases on work in progress and the rate limits of upstreams; without it, or "
        "while it is down, each server has its own.",
    )
    receipt_key: SecretStr | None = Field(
        default=None,
        description="A private key, 32 bytes in hex, that signs offers and receipts (x402's offer-receipt). "
        "Without it none is signed. Its account needs no funds; do not use the key of `CENTGATE_PAY_TO`.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="The port of the /metrics endpoint for Prometheus; 0 chooses a free one. Without it "
        "there is no endpoint.",
    )
    metrics_host: str = Field(default="127.0.0.1", description="The address that /metrics listens on.")
    alert_webhook: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s]+$",
        repr=False,
        description="URL that receives alerts (POST, JSON) when settlements fail or payments stay open.",
    )
    alert_minutes: float = Field(
        default=10, gt=0, description="Minutes after which an unresolved payment causes an alert."
    )
    site_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#]+$",
        description="The URL of the website that `centgate site` serves or builds, without a path: the API "
        "links to it, and the website uses it as its own URL.",
    )
    ownership_proofs: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        default=(),
        description="Proofs that the payee operates this server, separated by commas: signatures "
        "(EIP-191) of the public URL by the key of `CENTGATE_PAY_TO`. Directories read them in the "
        "OpenAPI document.",
    )
    well_known: Path | None = Field(
        default=None,
        description="A folder of files that the API and the website serve unchanged under /.well-known/, for "
        "directories that verify the owner of a domain.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        default=("*",), description="Allowed browser origins (CORS), separated by commas; * for all."
    )
    free_per_minute: int = Field(
        default=1200,
        ge=0,
        description="Requests per minute without an accepted payment that one client address may send to "
        "each server process, health checks excluded: an IPv4 address, or the /64 of an IPv6 address. More "
        "are refused with 429. 0 disables the limit.",
    )
    free_burst: int = Field(default=1200, ge=1, description="Maximum burst of those requests after a pause.")
    refused_per_minute: int = Field(
        default=30,
        ge=0,
        description="Refused payments per minute and payer, signed by the payer's own key, after which new "
        "payments of this payer are refused for a while. 0 disables the limit.",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        default=(),
        description="Proxies in front of this server, as addresses or networks separated by commas, whose "
        "`X-Forwarded-For` header is trusted. Without it the address of the connection is used, and "
        "behind a proxy all clients share one limit.",
    )
    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(
        default=8402, ge=0, le=65535, description="The port to listen on; 0 chooses a free one."
    )
    workers: int = Field(default=1, ge=1, le=64, description="Number of server processes.")
    connections: int = Field(
        default=4096,
        ge=1,
        description="Maximum number of open connections per server process; never more than half of its open "
        "file limit.",
    )
    connections_per_address: int = Field(
        default=1024,
        ge=1,
        description="Maximum number of open connections per server process and IPv4 address, or /64 of IPv6.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The minimum level of log lines."
    )
    operator: str | None = Field(
        default=None,
        pattern=r"^[\x21-\x7e]{3,200}$",
        description="Contact of the operator, a URL or a mail address: used in the User-Agent for fetched "
        "pages (default: the public URL), in the OpenAPI document and in security.txt.",
    )
    pinned: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        default=(),
        description="Providers that answer a service alone, without a fallback, as `<service>=<provider>` "
        "separated by commas: crawler-scrape=pagereader.",
    )
    resale_permitted_only: bool = Field(
        default=False,
        description="True to use only sources whose terms of use permit selling answers made of their data; "
        "`centgate doctor --only terms` lists them. Services without such a source answer "
        "`provider_unconfigured`.",
    )
    fetch_ports: Annotated[tuple[int, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        default=(80, 443), description="Allowed ports of fetched pages, separated by commas."
    )
    fetch_allowed: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_list)] = Field(
        default=(),
        description="Non-public addresses that may be fetched for buyers, as `address`, "
        "`network/bits` or `address:port`, separated by commas. For tests and intranets.",
    )
    fetch_robots: bool = Field(
        default=True, description="True if the built-in page reader respects a site's robots.txt."
    )
    page_processes: int = Field(
        default=2, ge=1, le=64, description="Number of processes that parse pages, per server process."
    )
    pagereader_render: bool | None = Field(
        default=None,
        description="True if pages that need scripts are rendered with a browser; needs the extra "
        "`render` and a Chromium. Default: true if both are installed.",
    )
    pagereader_chromium: Path | None = Field(
        default=None, description="Path of the browser's executable. Default: searched under its usual names."
    )
    packagedocs_folder: Path = Field(
        default=Path("centgate-docs"),
        description="Folder for the indexes of the built-in documentation search, one file per library and "
        "version.",
    )
    phishing_list: Path | None = Field(
        default=None,
        description="A phishing list made by `centgate phishing-list update`. Default: the list in the "
        "package.",
    )
    phishing_list_url: Annotated[tuple[str, ...] | None, NoDecode, BeforeValidator(_split_list)] = Field(
        default=None,
        description="Phishing lists that are fetched in the background once a day, separated by commas: "
        "`<list>=<url>`, or a list's name alone for its usual address (`metamask`, `polkadot`, `phantom`, "
        "`scamsniffer`), a URL alone for `metamask`, `hotlist=<url>` for the changes of MetaMask's stalelist "
        "every five minutes, `default` for `metamask,polkadot`, `off` for none. Default: `default` for "
        "`centgate serve` unless `CENTGATE_PHISHING_LIST` is set, else `off`.",
    )
    phishing_folder: Path = Field(
        default=Path("centgate-phishing"),
        description="Folder for fetched phishing lists, shared by all server processes of a machine.",
    )
    dev_rpc: str | None = Field(
        default=None,
        description="`centgate dev` only: the JSON-RPC address of a development node to use instead "
        "of the built-in one.",
    )
    fault: str | None = Field(
        default=None,
        description="Tests only: kill the process at this step of a payment. Works on development "
        "chains only.",
    )
    providers: Mapping[str, ProviderSettings] = Field(default_factory=dict, exclude=True)

    @field_validator("pay_to", "asset")
    @classmethod
    def _check_checksum(cls, value: str | None) -> str | None:
        if value and not int(value, 16):
            raise ValueError("the zero address cannot receive payments")
        return to_checksum_address(value) if value else value

    @field_validator("pinned")
    @classmethod
    def _check_pins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pin in value:
            if not re.fullmatch(r"[a-z-]+=[a-z0-9]+", pin):
                raise ValueError(f"{pin!r} is not of the form service=provider")
        return value

    @field_validator("fetch_ports")
    @classmethod
    def _check_ports(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        FetchPolicy(frozenset(value))  # raises for an invalid port
        return value

    @field_validator("fetch_allowed")
    @classmethod
    def _normalize_fetch_allowed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return FetchPolicy(allowed_networks=value).allowed_networks

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            parse_network(each)  # raises for an invalid address or network
        return value

    @field_validator("facilitator_token")
    @classmethod
    def _check_token(cls, value: SecretStr | None) -> SecretStr | None:
        token = value.get_secret_value().strip() if value else ""
        if not re.fullmatch(r"[!-~]*", token):
            raise ValueError("a token may contain only printable ASCII")
        return SecretStr(token) if token else None

    @field_validator("receipt_key")
    @classmethod
    def _check_private_key(cls, value: SecretStr | None) -> SecretStr | None:
        from centgate.signing.receipts.signer import (
            create_signer,  # imports secp256k1, which most settings do not need
        )

        create_signer(value)  # raises for an invalid key
        return value

    @field_validator("public_url", "site_url", mode="before")
    @classmethod
    def _strip_slash(cls, value: Any) -> Any:
        return value.rstrip("/") if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_combinations(self) -> Settings:
        if bool(self.asset) != bool(self.asset_name):
            raise ValueError("CENTGATE_ASSET and CENTGATE_ASSET_NAME must be set together")
        if self.pay_to and self.network not in USDC and not self.asset:
            raise ValueError(
                f"no token is known on {self.network}: set CENTGATE_ASSET and CENTGATE_ASSET_NAME as well"
            )
        if bool(self.cdp_api_key_id) != bool(self.cdp_api_key_secret):
            raise ValueError("CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET must be set together")
        return self

    @field_validator("phishing_list_url")
    @classmethod
    def _check_phishing_urls(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        parse_list_urls(value or ())
        return value

    @property
    def phishing_urls(self) -> Mapping[str, str]:
        """Addresses of the phishing lists to fetch, by list, and of the hotlist."""
        return parse_list_urls(self.phishing_list_url or ())

    def with_fetched_lists(self) -> Settings:
        """Return the settings of a server for real payments, which fetches the default phishing lists."""
        if self.phishing_list_url is not None or self.phishing_list is not None:
            return self
        return self.model_copy(update={"phishing_list_url": ("default",)})

    @property
    def fetch_policy(self) -> FetchPolicy:
        """The policy for addresses that may be fetched for buyers."""
        return FetchPolicy(frozenset(self.fetch_ports), self.fetch_allowed)

    @property
    def chain_id(self) -> int:
        """The EIP-155 id of the payment network."""
        return int(self.network.removeprefix("eip155:"))

    @property
    def development_chain(self) -> int | None:
        """The id of the payment network if its tokens have no value, else None."""
        return self.chain_id if self.network in TEST_NETWORKS else None

    @property
    def token(self) -> Asset:
        """The payment token."""
        if self.asset and self.asset_name:
            return Asset(self.asset, self.asset_name, self.asset_version)
        return USDC[self.network]

    @property
    def facilitator(self) -> str:
        """The URL of the facilitator, without a trailing slash."""
        default = CDP_FACILITATOR if self.development_chain is None else TEST_FACILITATOR
        return (self.facilitator_url or default).rstrip("/")

    @property
    def base_url(self) -> str:
        """The URL of this server for buyers: the public URL if set, else the listening address."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def rpc_url(self) -> str | None:
        """JSON-RPC URL of the payment network, used to look up payments with an unknown outcome."""
        urls = self.provider_settings(f"rpc_{self.chain_id}").url
        return urls.split(",")[0].strip() if urls else None

    @property
    def lacks_cdp_key(self) -> bool:
        """True if payments go to a facilitator that requires a key and none is set."""
        keyed = self.cdp_api_key_id or self.facilitator_token
        return self.pay_to is not None and self.facilitator == CDP_FACILITATOR and not keyed

    def pinned_provider(self, service: str) -> str | None:
        """Return the name of the provider pinned for a service, or None."""
        return dict(pin.split("=", 1) for pin in self.pinned).get(service)

    def provider_settings(self, name: str) -> ProviderSettings:
        """Return the settings of the provider `name`."""
        return self.providers.get(name, ProviderSettings())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by precedence: arguments, then the environment with `.env`."""
        return init_settings, _EnvironmentSource(settings_cls)


class _EnvironmentSource(PydanticBaseSettingsSource):
    """Source of `CENTGATE_*`: the environment over `.env`, with `_FILE` and the providers' settings."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        variables = _read_variables()
        fields = {name.upper() for name in Settings.model_fields} - {"PROVIDERS"}
        values: dict[str, Any] = {name.lower(): variables[name] for name in fields & variables.keys()}
        providers = _parse_providers({name: value for name, value in variables.items() if name not in fields})
        return {**values, "providers": providers} if providers else values


def find_unknown_variables(providers: Collection[str]) -> list[str]:
    """Return the `CENTGATE_` variables that no setting reads; `providers` are provider settings, no prefix.

    `*` in a provider setting stands for a chain id.
    """
    fields = {name.upper() for name in Settings.model_fields}
    known = {name.upper() for name in providers}
    return [
        PREFIX + name
        for name in sorted(_read_variables())
        if name not in fields and not {name, re.sub(r"_[0-9]+_", "_*_", name)} & known
    ]


def get_raw_value(name: str) -> str | None:
    """Return the raw value of a setting, by its name without the prefix; None if it is not set."""
    return _read_variables().get(name)


def _read_variables() -> dict[str, str]:
    """Return all non-empty `CENTGATE_` variables without prefix; `X_FILE` sets X to the content of that file.

    The buyer's variables are excluded, since both sides may run on one machine.
    """
    merged = {**{name: value or "" for name, value in dotenv_values(".env").items()}, **os.environ}
    variables = {
        name.removeprefix(PREFIX): value
        for name, value in merged.items()
        if name.startswith(PREFIX) and value and not name.startswith(_BUYER_VARIABLES)
    }
    files = {name: path for name, path in variables.items() if name.endswith("_FILE")}
    for name, path in files.items():
        variables.setdefault(name.removesuffix("_FILE"), _read_secret_file(name, path))
        del variables[name]
    return variables


def _read_secret_file(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{PREFIX}{name}: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{PREFIX}{name}: {path} is not text in UTF-8") from error


def _parse_providers(variables: Mapping[str, str]) -> dict[str, ProviderSettings]:
    settings: dict[str, dict[str, Any]] = {}
    for name, value in variables.items():
        if match := _PROVIDER_VARIABLE.match(name):
            parsed = settings.setdefault(match["name"].lower(), {})
            parsed[match["what"].lower()] = _parse_provider_variable(name, match["what"], value)
    return {name: ProviderSettings(**values) for name, values in settings.items()}


def _parse_provider_variable(name: str, what: str, value: str) -> Any:
    try:
        return PROVIDER_FIELDS[what].metadata["parse"](value)
    except ValueError as error:
        raise ValueError(f"{PREFIX}{name}: {error}") from None
