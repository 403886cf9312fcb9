"""Everything an operator can set: `CENTGATE_*`, from the environment, `.env`, or `<NAME>_FILE`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from centgate.client.settings import BuyerSettings
from centgate.client_address import read_network
from centgate.dollars import TEST_NETWORKS, USDC, Asset
from centgate.evm import checksummed
from centgate.safefetch.policy import Policy

PREFIX = "CENTGATE_"
CDP_FACILITATOR = "https://api.cdp.coinbase.com/platform/v2/x402"
TEST_FACILITATOR = "https://x402.org/facilitator"
_BUYERS = tuple(PREFIX + name.upper() for name in BuyerSettings.model_fields)
_PROVIDER = re.compile(r"^(?P<name>[A-Z][A-Z0-9_]*?)_(?P<what>URL|KEY|ENABLED|PER_MINUTE|TIMEOUT)$")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """What an operator sets for one provider."""

    url: str | None = field(default=None, repr=False)
    key: SecretStr | None = None
    enabled: bool = True
    per_minute: int | None = None
    """Calls a minute in place of the published rate."""
    timeout: float | None = None
    """Seconds in place of the provider's own deadline."""


def _split(value: Any) -> Any:
    """Lists are comma-separated in the environment."""
    if isinstance(value, str):
        return tuple(item for item in (part.strip() for part in value.split(",")) if item)
    return value


class Settings(BaseSettings):
    """One frozen value, read once at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    pay_to: str | None = Field(
        default=None,
        pattern=r"^0x[0-9a-fA-F]{40}$",
        description="The address that receives every payment. Without it no payment is taken and "
        "nothing is served.",
    )
    network: str = Field(
        default="eip155:8453",
        pattern=r"^eip155:[1-9][0-9]{0,18}$",
        description="The network payments are made on, as a CAIP-2 identifier: Base is eip155:8453.",
    )
    asset: str | None = Field(
        default=None,
        pattern=r"^0x[0-9a-fA-F]{40}$",
        description="The token to be paid in, a dollar with 6 decimals. Known for USDC on Base, Ethereum, "
        "Polygon, Arbitrum, Avalanche and Base Sepolia; needed on any other network.",
    )
    asset_name: str | None = Field(
        default=None, description="The token's EIP-712 domain name, when `CENTGATE_ASSET` is set."
    )
    asset_version: str = Field(
        default="2", description="The token's EIP-712 domain version, when `CENTGATE_ASSET` is set."
    )
    facilitator_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^?#]+$",
        description="The x402 facilitator that settles payments. Unless set: on a test network "
        f"{TEST_FACILITATOR}, elsewhere {CDP_FACILITATOR}, which needs the two CDP settings below.",
    )
    facilitator_token: SecretStr | None = Field(
        default=None, description="A bearer token for the facilitator, where it wants one."
    )
    cdp_api_key_id: str | None = Field(
        default=None, description="Coinbase Developer Platform: the id of a secret API key."
    )
    cdp_api_key_secret: SecretStr | None = Field(
        default=None, description="Coinbase Developer Platform: its secret, Ed25519 in base64 or EC as PEM."
    )
    facilitator_timeout: float = Field(
        default=30, gt=0, le=300, description="Seconds the facilitator has to settle a payment."
    )
    payment_window: int = Field(
        default=120,
        ge=30,
        le=3600,
        description="Seconds a signed payment is good for (`maxTimeoutSeconds` of the terms).",
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
        description="The address buyers reach this server by, without a path; it stands in the terms,"
        " the catalogue "
        "and the OpenAPI document. Where it listens, unless set.",
    )
    database_url: str = Field(
        default="sqlite:///centgate.db",
        pattern=r"^(sqlite:///.+|postgres(ql)?://.+)",
        repr=False,
        description="The payment journal: sqlite:///relative/path or sqlite:////absolute/path for one "
        "machine, postgresql://user:password@host/database for several.",
    )
    database_connections: int = Field(
        default=10, ge=1, le=1000, description="Connections to PostgreSQL, at most, of each server process."
    )
    cache_url: str | None = Field(
        default=None,
        pattern=r"^(rediss?|unix)://.+",
        repr=False,
        description="A Redis or Valkey that several servers share: redis://user:password@host:6379/0. They "
        "share fresh answers, work under way and the rates of upstreams by it; without it, or while it is "
        "down, each has its own.",
    )
    receipt_key: SecretStr | None = Field(
        default=None,
        description="A private key, 32 bytes in hex, that signs offers and receipts (x402's offer-receipt). "
        "Without it none is signed. It needs no money, and should not be the key of `CENTGATE_PAY_TO`.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="The port that Prometheus reads /metrics on; 0 takes a free one. There is none unless "
        "it is set.",
    )
    metrics_host: str = Field(default="127.0.0.1", description="The address that /metrics is served on.")
    alert_webhook: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s]+$",
        repr=False,
        description="Where to POST an alert, as JSON, when settlements fail or a payment stays unresolved.",
    )
    alert_minutes: float = Field(
        default=10, gt=0, description="Minutes after which an unresolved payment is worth an alert."
    )
    site_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#]+$",
        description="The address of the website that `centgate site` serves or builds, without a path: what "
        "the API points people and agents to, and what the website calls itself.",
    )
    ownership_proofs: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Proofs that this address is run by who is paid, separated by commas: signatures "
        "(EIP-191) of the public URL by the key of `CENTGATE_PAY_TO`. Directories read them in the "
        "OpenAPI document.",
    )
    well_known: Path | None = Field(
        default=None,
        description="A folder of files that are served under /.well-known/ as they are, by the API and the "
        "website: what directories ask for to see who runs a domain.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=("*",), description="Browser origins that may call, separated by commas; * for all."
    )
    free_per_minute: int = Field(
        default=600,
        ge=0,
        description="Requests a minute without an accepted payment that one client address may make of each "
        "server process, health checks aside: an IPv4 address, or the /64 of an IPv6 address. More are "
        "refused with 429. 0 switches it off.",
    )
    free_burst: int = Field(
        default=300, ge=1, description="How many of those requests may come at once after a pause."
    )
    refused_per_minute: int = Field(
        default=30,
        ge=0,
        description="Payments a minute, signed by the payer's own key, that the facilitator may refuse "
        "before no new payment of this payer is tried for a while. 0 switches it off.",
    )
    trusted_proxies: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Proxies in front of this server, as addresses or networks separated by commas, whose "
        "`X-Forwarded-For` tells the client's address. Without it the address of the connection counts, and "
        "behind a proxy all clients share one limit.",
    )
    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(default=8402, ge=0, le=65535, description="The port to listen on; 0 takes a free one.")
    workers: int = Field(default=1, ge=1, le=64, description="Server processes.")
    connections: int = Field(
        default=4096,
        ge=1,
        description="Connections that each server process keeps open; never more than half of the files that "
        "it may open.",
    )
    connections_per_address: int = Field(
        default=1024,
        ge=1,
        description="Connections that each server process keeps open with one IPv4 address, or one /64 of "
        "IPv6.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least important kind of log line that is written."
    )
    operator: str | None = Field(
        default=None,
        pattern=r"^[\x21-\x7e]{3,200}$",
        description="Whom sites can turn to, as a URL or a mail address: it stands in the User-Agent that "
        "pages are fetched with (the public URL, unless set), and in the OpenAPI document and security.txt.",
    )
    pinned: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Sources that alone answer for a service, `<service>=<provider>` separated by commas: "
        "crawler-scrape=pagereader. Nothing stands in for them.",
    )
    fetch_ports: Annotated[tuple[int, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(80, 443), description="Ports that pages are fetched from, separated by commas."
    )
    fetch_allowed: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)] = Field(
        default=(),
        description="Addresses that buyers may have fetched although they are not public, as `address`, "
        "`network/bits` or `address:port`, separated by commas. For tests and intranets.",
    )
    fetch_robots: bool = Field(
        default=True, description="Whether the built-in reader keeps to a site's robots.txt."
    )
    page_processes: int = Field(
        default=2, ge=1, le=64, description="Processes that parse pages, for each server process."
    )
    pagereader_render: bool = Field(
        default=False,
        description="Whether pages that are made by their scripts are read with a browser; needs the extra "
        "`render` and a Chromium.",
    )
    pagereader_chromium: Path | None = Field(
        default=None, description="The browser's program; looked for under its usual names unless set."
    )
    packagedocs_folder: Path = Field(
        default=Path("centgate-docs"),
        description="Where the built-in documentation keeps its indexes, a file for each library and "
        "version.",
    )
    phishing_list: Path | None = Field(
        default=None,
        description="A phishing list made by `centgate phishing-list update`; the one in the package "
        "unless set.",
    )
    dev_rpc: str | None = Field(
        default=None,
        description="`centgate dev` only: the JSON-RPC address of a development node to use in place "
        "of its own.",
    )
    fault: str | None = Field(
        default=None,
        description="Tests only: end the process at this step of a payment. Works on development "
        "chains alone.",
    )
    providers: Mapping[str, ProviderSettings] = Field(default_factory=dict, exclude=True)

    @field_validator("pay_to", "asset")
    @classmethod
    def _checksum(cls, value: str | None) -> str | None:
        if value and not int(value, 16):
            raise ValueError("nobody can be paid at the zero address")
        return checksummed(value) if value else value

    @field_validator("pinned")
    @classmethod
    def _pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pin in value:
            if not re.fullmatch(r"[a-z-]+=[a-z0-9]+", pin):
                raise ValueError(f"{pin!r} is not of the form service=provider")
        return value

    @field_validator("fetch_ports")
    @classmethod
    def _ports(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        Policy(frozenset(value))  # refuses what is no port
        return value

    @field_validator("fetch_allowed")
    @classmethod
    def _allowed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return Policy(allowed=value).allowed

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            read_network(each)  # refuses what is neither an address nor a network
        return value

    @field_validator("facilitator_token")
    @classmethod
    def _in_a_header(cls, value: SecretStr | None) -> SecretStr | None:
        token = value.get_secret_value().strip() if value else ""
        if not re.fullmatch(r"[!-~]*", token):
            raise ValueError("a token is of ASCII letters, digits and signs")
        return SecretStr(token) if token else None

    @field_validator("receipt_key")
    @classmethod
    def _private_key(cls, value: SecretStr | None) -> SecretStr | None:
        from centgate.receipts.signer import signer_of  # loads the curve, which most settings do without

        signer_of(value)  # refuses what is no key
        return value

    @field_validator("public_url", "site_url", mode="before")
    @classmethod
    def _without_slash(cls, value: Any) -> Any:
        return value.rstrip("/") if isinstance(value, str) else value

    @model_validator(mode="after")
    def _complete(self) -> Settings:
        if bool(self.asset) != bool(self.asset_name):
            raise ValueError("CENTGATE_ASSET and CENTGATE_ASSET_NAME belong together")
        if self.pay_to and self.network not in USDC and not self.asset:
            raise ValueError(
                f"no token is known on {self.network}: set CENTGATE_ASSET and CENTGATE_ASSET_NAME as well"
            )
        if bool(self.cdp_api_key_id) != bool(self.cdp_api_key_secret):
            raise ValueError("CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET belong together")
        return self

    @property
    def fetch_policy(self) -> Policy:
        """Which addresses may be fetched for buyers."""
        return Policy(frozenset(self.fetch_ports), self.fetch_allowed)

    @property
    def chain_id(self) -> int:
        """The EIP-155 id of the payment network."""
        return int(self.network.removeprefix("eip155:"))

    @property
    def development_chain(self) -> int | None:
        """The id of the payment network where its money is worth nothing, else None."""
        return self.chain_id if self.network in TEST_NETWORKS else None

    @property
    def token(self) -> Asset:
        """The token payments are made in."""
        if self.asset and self.asset_name:
            return Asset(self.asset, self.asset_name, self.asset_version)
        return USDC[self.network]

    @property
    def facilitator(self) -> str:
        """The address of the facilitator, without a slash at its end."""
        default = CDP_FACILITATOR if self.development_chain is None else TEST_FACILITATOR
        return (self.facilitator_url or default).rstrip("/")

    @property
    def address(self) -> str:
        """How buyers reach this server: what the operator says, else where it listens."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def rpc_url(self) -> str | None:
        """A JSON-RPC address of the payment network, which settles what a facilitator left open."""
        urls = self.provider(f"rpc_{self.chain_id}").url
        return urls.split(",")[0].strip() if urls else None

    @property
    def lacks_cdp_key(self) -> bool:
        """Whether payments would go to a facilitator that wants a key, and there is none."""
        keyed = self.cdp_api_key_id or self.facilitator_token
        return self.pay_to is not None and self.facilitator == CDP_FACILITATOR and not keyed

    def pin(self, service: str) -> str | None:
        """The name of the provider that alone answers for a service; None where any may."""
        return dict(pin.split("=", 1) for pin in self.pinned).get(service)

    def provider(self, name: str) -> ProviderSettings:
        """What is set for the provider `name`."""
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
        """What the program says, then the environment, then `.env`."""
        return init_settings, _Environment(settings_cls)


class _Environment(PydanticBaseSettingsSource):
    """`CENTGATE_*` of the environment over those of `.env`, with `_FILE` and the providers' settings."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        given = _given()
        fields = {name.upper() for name in Settings.model_fields} - {"PROVIDERS"}
        values: dict[str, Any] = {name.lower(): given[name] for name in fields & given.keys()}
        providers = _providers({name: value for name, value in given.items() if name not in fields})
        return {**values, "providers": providers} if providers else values


def misspelt(providers: Collection[str]) -> list[str]:
    """The `CENTGATE_` variables that set nothing, given those of the providers, without the prefix.

    `*` in one of them stands for the id of a chain.
    """
    fields = {name.upper() for name in Settings.model_fields}
    known = {name.upper() for name in providers}
    return [
        PREFIX + name
        for name in sorted(_given())
        if name not in fields and not {name, re.sub(r"_[0-9]+_", "_*_", name)} & known
    ]


def as_given(name: str) -> str | None:
    """What was set for a setting, by its name without the prefix, before it is read; None if nothing was."""
    return _given().get(name)


def _given() -> dict[str, str]:
    """Every non-empty `CENTGATE_` variable without its prefix; `X_FILE` gives X from the file it names.

    The buyer's variables are not the server's, also where both run on one machine.
    """
    merged = {**{name: value or "" for name, value in dotenv_values(".env").items()}, **os.environ}
    ours = {
        name.removeprefix(PREFIX): value
        for name, value in merged.items()
        if name.startswith(PREFIX) and value and not name.startswith(_BUYERS)
    }
    files = {name: path for name, path in ours.items() if name.endswith("_FILE")}
    for name, path in files.items():
        ours.setdefault(name.removesuffix("_FILE"), _contents(name, path))
        del ours[name]
    return ours


def _contents(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{PREFIX}{name}: cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{PREFIX}{name}: {path} is not text in UTF-8") from error


def _providers(given: Mapping[str, str]) -> dict[str, ProviderSettings]:
    found: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        if match := _PROVIDER.match(name):
            found.setdefault(match["name"].lower(), {})[match["what"].lower()] = value
    return {
        name: ProviderSettings(
            url=_addresses(name, values["url"]) if "url" in values else None,
            key=SecretStr(values["key"]) if "key" in values else None,
            enabled=_switch(name, values.get("enabled", "true")),
            per_minute=int(_positive(name, "PER_MINUTE", values["per_minute"]))
            if "per_minute" in values
            else None,
            timeout=_positive(name, "TIMEOUT", values["timeout"]) if "timeout" in values else None,
        )
        for name, values in found.items()
    }


def _switch(name: str, value: str) -> bool:
    if value.lower() not in ("true", "1", "yes", "on", "false", "0", "no", "off"):
        raise ValueError(f"{PREFIX}{name.upper()}_ENABLED: {value[:40]!r} is neither true nor false")
    return value.lower() in ("true", "1", "yes", "on")


def _addresses(name: str, value: str) -> str:
    """One address, or several separated by commas; a wrong one is not repeated, since keys stand in some."""
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if not parts or not all(re.match(r"^https?://[^\s/?#]", part) for part in parts):
        raise ValueError(f"{PREFIX}{name.upper()}_URL: needs http:// or https:// addresses")
    return ",".join(parts)


def _positive(name: str, what: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0
    if not 1 <= number <= 1_000_000:
        raise ValueError(f"{PREFIX}{name.upper()}_{what}: {value[:40]!r} is no number of 1 or more")
    return number
