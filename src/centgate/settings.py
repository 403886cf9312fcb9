"""Server settings: `CENTGATE_*` from the environment, `.env`, or files named by `<NAME>_FILE`."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict
from yarl import URL

from centgate.accepted_tokens import (
    ADDRESS_PATTERN,
    DEFAULT_VERSION,
    NETWORK_PATTERN,
    AcceptedToken,
    parse_accepted_tokens,
)
from centgate.client.settings import BuyerSettings
from centgate.client_address import parse_network
from centgate.environment import PREFIX, read_variables
from centgate.phishing.published import parse_list_urls
from centgate.prices import DEFAULT_PRICE, MAX_PRICE, parse_price
from centgate.provider_settings import ProviderSettings, parse_providers
from centgate.signing.assets import TEST_NETWORKS, USDC, Asset
from centgate.signing.evm import parse_address, to_checksum_address
from centgate.signing.webhook_signature import parse_secrets
from centgate.web.fetch.policy import FetchPolicy

CDP_FACILITATOR = "https://api.cdp.coinbase.com/platform/v2/x402"
TEST_FACILITATOR = "https://x402.org/facilitator"
PASSWORD_HASH_PATTERN = r"scrypt:[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}:[A-Za-z0-9_-]{22}:[A-Za-z0-9_-]{43}"
"""Form of the console's password hash: log2 of N, r, p, salt and hash in base64.

It has no `$`, which compose files and shells replace.
"""
_SINGLE_TOKEN_FIELDS = ("network", "pay_to", "asset", "asset_name", "asset_version")
"""Settings of a deployment with one token; with `accepts` they are those of its first entry."""
_PRIVATE_SUFFIXES = (".localhost", ".internal", ".local", ".home.arpa", ".svc", ".svc.cluster.local")
"""Ends of host names that public name servers do not know: reserved ones, and Kubernetes' services."""
_BUYER_VARIABLES = tuple(PREFIX + name.upper() for name in BuyerSettings.model_fields)


def _parse_receiver_url(value: str) -> str:
    """Check the URL of a receiver of webhooks; errors do not show it, since it may contain a key.

    Any address is accepted, also a private one: the operator chose it, and no buyer can change it.
    """
    try:
        url = urlsplit(value)
        host = url.hostname or ""
        _ = url.port  # raises for an invalid one
    except ValueError:
        host, url = "", urlsplit("")
    if url.scheme not in ("http", "https") or not host or re.search(r"[\s#]", value):
        raise ValueError("needs an http:// or https:// address")
    if url.scheme == "http" and not _is_private_host(host):
        raise ValueError("needs https, except on loopback and private networks: events would be readable")
    return value


def _is_private_host(host: str) -> bool:
    """Return True for a loopback or private address, and for names that are never public."""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host.rstrip(".") or host.rstrip(".").lower().endswith(_PRIVATE_SUFFIXES)
    return address.is_loopback or (address.is_private and not address.is_unspecified)


@dataclass(frozen=True, slots=True)
class FacilitatorAccount:
    """One facilitator of the deployment: its address and the keys for it."""

    setting: str
    """Beginning of the names of its settings: `<setting>_URL` and `<setting>_TOKEN`."""
    cdp_setting: str
    """The same for `<cdp_setting>_API_KEY_ID` and `<cdp_setting>_API_KEY_SECRET`."""
    url: str = field(repr=False)
    """Without a trailing slash. It may contain a password."""
    token: SecretStr | None = None
    cdp_api_key_id: str | None = None
    cdp_api_key_secret: SecretStr | None = None

    @property
    def name(self) -> str:
        """Its name in the journal and in messages: the origin, and a digest of a path, which may be a key.

        Credentials are not part of it, so that a changed password does not make it another facilitator.
        """
        try:
            address = URL(self.url)
            origin, path = str(address.origin()), address.raw_path.rstrip("/")
        except ValueError:  # refused at the start, with a message
            origin, path = "invalid", self.url
        return f"{origin}#{sha256(path.encode()).hexdigest()[:8]}" if path else origin

    @property
    def lacks_key(self) -> bool:
        """True if it requires a key and none is set."""
        return self.url == CDP_FACILITATOR and not (self.cdp_api_key_id or self.token)


def _split_list(value: Any) -> Any:
    """Split a comma-separated string into a tuple; return other values unchanged."""
    if isinstance(value, str):
        return tuple(item for item in (part.strip() for part in value.split(",")) if item)
    return value


def _split_payers(value: Any) -> Any:
    """Split a list of payers; raises ValueError for one of separators alone, which would restrict nothing."""
    if isinstance(value, str) and value and not _split_list(value):
        raise ValueError("names no address; leave it out to accept every payer")
    return _split_list(value)


class Settings(BaseSettings):
    """Immutable settings, read once at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    pay_to: str | None = Field(
        default=None,
        pattern=ADDRESS_PATTERN,
        description="The address that receives all payments. Without it the server accepts no payments and "
        "all paid routes return 402.",
    )
    network: str = Field(
        default="eip155:8453",
        pattern=NETWORK_PATTERN,
        description="The payment network as a CAIP-2 identifier: Base is eip155:8453.",
    )
    asset: str | None = Field(
        default=None,
        pattern=ADDRESS_PATTERN,
        description="The payment token, a dollar token with 6 decimals. Default: USDC on Base, Ethereum, "
        "Polygon, Arbitrum, Avalanche and Base Sepolia; required on any other network.",
    )
    asset_name: str | None = Field(
        default=None, description="The token's EIP-712 domain name, if `CENTGATE_ASSET` is set."
    )
    asset_version: str = Field(
        default=DEFAULT_VERSION,
        description="The token's EIP-712 domain version, if `CENTGATE_ASSET` is set.",
    )
    accepts: Annotated[tuple[AcceptedToken, ...], NoDecode] = Field(
        default=(),
        description="Several networks or tokens at once, instead of the token settings above: a JSON list of "
        'objects with `network` and `payTo`, such as `[{"network": "eip155:8453", "payTo": "0x…"}, '
        '{"network": "eip155:137", "payTo": "0x…"}]`, and with `asset`, `name` and `version` (EIP-712) for '
        "a token that is not known. Buyers are offered them in this order. All are test networks, or none.",
    )
    price: Annotated[Decimal, BeforeValidator(parse_price)] = Field(
        default=DEFAULT_PRICE,
        description="The price of a call in decimal dollars, for every service: more than 0, at most "
        f"{MAX_PRICE}, with at most 6 decimals. `{PREFIX}PRICE_<SERVICE>` sets that of one service, for "
        f"example `{PREFIX}PRICE_TOKEN_RISK=0.03`.",
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
    facilitator_fallback_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^?#]+$",
        description="A second x402 facilitator. It gets a new payment that surely never reached the first: "
        "no connection, a failed TLS handshake, or status 429. A payment whose outcome is unknown stays with "
        "the facilitator that has it; a replaced facilitator can be kept here until none is left.",
    )
    facilitator_fallback_token: SecretStr | None = Field(
        default=None, description="A bearer token for the second facilitator, if it requires one."
    )
    facilitator_fallback_cdp_api_key_id: str | None = Field(
        default=None, description="The id of a secret API key, if the second facilitator is Coinbase's."
    )
    facilitator_fallback_cdp_api_key_secret: SecretStr | None = Field(
        default=None, description="The secret of that key."
    )
    facilitator_timeout: float = Field(
        default=30, gt=0, le=300, description="Timeout of a facilitator for a settlement, in seconds."
    )
    payers_allowed: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_payers)] = Field(
        default=(),
        description="Addresses whose payments are accepted, separated by commas; all others are refused, "
        "uncharged. Without this setting and the next, every payer is accepted.",
    )
    payers_allowed_file: Path | None = Field(
        default=None,
        description="A file with more such addresses, one per line, with comments after `#`. It is read "
        "again when it changes; if it is not valid then, the last valid list stays in force. An empty "
        "file accepts nobody.",
    )
    payers_denied: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_payers)] = Field(
        default=(),
        description="Addresses whose payments are refused, uncharged, separated by commas, even if they are "
        "allowed. What they paid before can still be redeemed.",
    )
    payers_denied_file: Path | None = Field(
        default=None,
        description="A file with more such addresses, read like `CENTGATE_PAYERS_ALLOWED_FILE`.",
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
        description="Maximum number of connections to PostgreSQL for payments, per server process; reads "
        "open a few more.",
    )
    database_prepared_statements: bool | None = Field(
        default=None,
        description="True if a pooler in front of PostgreSQL keeps prepared statements (PgBouncer from 1.21 "
        "with `max_prepared_statements`, or pooling by session): a statement then takes one round trip, "
        "not two. Default: statements are prepared, but not behind a pooler.",
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
    mpp_enabled: bool = Field(
        default=False,
        description="True to accept payments by MPP, the Machine Payments Protocol, beside x402: every 402 "
        "then has a challenge in `WWW-Authenticate: Payment` (method evm, intent charge) as well. Needs "
        "`CENTGATE_MPP_SECRET`.",
    )
    mpp_secret: SecretStr | None = Field(
        default=None,
        description="A secret of 32 to 200 characters, the same on all servers of the API, by which they "
        "recognise MPP challenges as their own: `openssl rand -hex 32`. Keep it for a while after MPP is "
        "disabled: then payments that were made by MPP still get their answers.",
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="The port of the /metrics endpoint for Prometheus; 0 chooses a free one. Without it "
        "there is no endpoint.",
    )
    metrics_host: str = Field(default="127.0.0.1", description="The address that /metrics listens on.")
    console_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="The port on which `centgate serve` opens the operator's console; 0 chooses a free one. "
        "Without it there is no console; `centgate console` runs one by itself, on 8404 by default.",
    )
    console_host: str = Field(
        default="127.0.0.1",
        description="The address that the console listens on. Anything but loopback needs "
        "`CENTGATE_CONSOLE_URL` and a proxy with TLS.",
    )
    console_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#]+$",
        description="The URL of the console for its operator, without a path, if a proxy with TLS is in "
        "front of it. Requests with another host name are refused.",
    )
    console_password_hash: SecretStr | None = Field(
        default=None,
        description="The hash of the console's password, which `centgate console hash` makes. Without it the "
        "console is entered by the one-time link that it prints at its start.",
    )
    alert_webhook: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s]+$",
        repr=False,
        description="URL that receives alerts (POST, JSON) when settlements fail or payments stay open.",
    )
    alert_minutes: float = Field(
        default=10, gt=0, description="Minutes after which an unresolved payment causes an alert."
    )
    webhook_url: str | None = Field(
        default=None,
        repr=False,
        description="URL that receives an event (POST, JSON, signed by Standard Webhooks) for each payment "
        "that was delivered, refunded or is stuck. https, or http on loopback and private networks. Needs "
        "`CENTGATE_WEBHOOK_SECRET`; without both none is written.",
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="The secret that signs these events: `whsec_` and 24 to 64 random bytes in base64. Two, "
        "separated by a comma, while receivers change from one to the other: events are signed by both.",
    )
    site_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/?#]+$",
        description="The URL of the website that `centgate site` serves or builds, without a path: the API "
        "links to it, and the website uses it as its own URL.",
    )
    repository_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s\"<>]+$",
        description="The URL of the source code that this deployment runs: the OpenAPI document names it, "
        "and the website links to it.",
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
    packagedocs_sites: bool = Field(
        default=True,
        description="Read the documentation sites that packages name, by their llms-full.txt or llms.txt, "
        "else by their sitemap, in addition to the packages. They are fetched like pages for buyers, under "
        "robots.txt.",
    )
    siteindex_folder: Path = Field(
        default=Path("centgate-index"),
        description="Folder for the search index of sites of the operator's choosing, which `centgate index` "
        "writes; shared by all server processes of a machine.",
    )
    siteindex_embeddings_model: str | None = Field(
        default=None,
        description="Model at `CENTGATE_SITEINDEX_EMBEDDINGS_URL`, an OpenAI-compatible endpoint (up to and "
        "with `/v1`), whose vectors find pages of the site index by meaning.",
    )
    siteindex_min_similarity: float = Field(
        default=0.4,
        ge=0,
        le=1,
        description="Cosine similarity from which a page of the site index is near a query. Models differ: "
        "those of the E5 family need about 0.8.",
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
    service_prices: Mapping[str, Decimal] = Field(default_factory=dict, exclude=True)
    """Prices of single services by slug, from `CENTGATE_PRICE_<SERVICE>`."""
    providers: Mapping[str, ProviderSettings] = Field(default_factory=dict, exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _set_first_token(cls, data: Any) -> Any:
        """Set the single token's settings to the first entry of `accepts`; refuse both forms together."""
        values = cast(dict[str, Any], data)
        if not values.get("accepts"):
            return values
        if both := [name for name in _SINGLE_TOKEN_FIELDS if values.get(name) is not None]:
            names = " and ".join(PREFIX + name.upper() for name in both)
            raise ValueError(f"{PREFIX}ACCEPTS replaces {names}: set one form or the other")
        try:
            tokens = parse_accepted_tokens(values["accepts"])
        except ValueError as error:
            raise ValueError(f"{PREFIX}ACCEPTS: {error}") from None
        first = tokens[0]
        return {
            **values,
            "accepts": tokens,
            "network": first.network,
            "pay_to": first.pay_to,
            "asset": first.asset.address,
            "asset_name": first.asset.name,
            "asset_version": first.asset.version,
        }

    @field_validator("pay_to", "asset")
    @classmethod
    def _check_checksum(cls, value: str | None) -> str | None:
        if value and not int(value, 16):
            raise ValueError("the zero address cannot receive payments")
        return to_checksum_address(value) if value else value

    @field_validator("payers_allowed", "payers_denied")
    @classmethod
    def _check_payers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(parse_address, value))

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

    @field_validator("facilitator_token", "facilitator_fallback_token")
    @classmethod
    def _check_token(cls, value: SecretStr | None) -> SecretStr | None:
        token = value.get_secret_value().strip() if value else ""
        if not re.fullmatch(r"[!-~]*", token):
            raise ValueError("a token may contain only printable ASCII")
        return SecretStr(token) if token else None

    @field_validator("webhook_url")
    @classmethod
    def _check_webhook_url(cls, value: str | None) -> str | None:
        return value and _parse_receiver_url(value)

    @field_validator("webhook_secret")
    @classmethod
    def _check_webhook_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            parse_secrets(value.get_secret_value())  # raises for an invalid secret
        return value

    @field_validator("receipt_key")
    @classmethod
    def _check_private_key(cls, value: SecretStr | None) -> SecretStr | None:
        from centgate.signing.receipts.signer import (
            create_signer,  # imports secp256k1, which most settings do not need
        )

        create_signer(value)  # raises for an invalid key
        return value

    @field_validator("mpp_secret")
    @classmethod
    def _check_mpp_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not re.fullmatch(r"[!-~]{32,200}", value.get_secret_value()):
            raise ValueError("needs 32 to 200 ASCII characters without spaces: openssl rand -hex 32")
        return value

    @field_validator("console_password_hash")
    @classmethod
    def _check_password_hash(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not re.fullmatch(PASSWORD_HASH_PATTERN, value.get_secret_value()):
            raise ValueError("not a hash that `centgate console hash` makes")
        return value

    @field_validator("console_url")
    @classmethod
    def _check_console_url(cls, value: str | None) -> str | None:
        if value and value.startswith("http:") and not _is_private_host(urlsplit(value).hostname or ""):
            raise ValueError("needs https, except on loopback and private networks: logins would be readable")
        return value

    @field_validator("public_url", "site_url", "console_url", mode="before")
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
        if bool(self.webhook_url) != bool(self.webhook_secret):
            raise ValueError("CENTGATE_WEBHOOK_URL and CENTGATE_WEBHOOK_SECRET must be set together")
        if bool(self.cdp_api_key_id) != bool(self.cdp_api_key_secret):
            raise ValueError("CENTGATE_CDP_API_KEY_ID and CENTGATE_CDP_API_KEY_SECRET must be set together")
        self._check_fallback()
        if self.mpp_enabled and self.mpp_secret is None:
            raise ValueError("CENTGATE_MPP_ENABLED needs CENTGATE_MPP_SECRET: openssl rand -hex 32")
        if self.mpp_enabled and not re.fullmatch(r"[a-z0-9._:-]+", self.public_host):
            raise ValueError("CENTGATE_MPP_ENABLED needs a host name of ASCII letters in CENTGATE_PUBLIC_URL")
        return self

    def _check_fallback(self) -> None:
        """Raise ValueError unless the settings of a second facilitator are complete and name another one."""
        prefix = f"{PREFIX}FACILITATOR_FALLBACK"
        key_id, secret = (
            self.facilitator_fallback_cdp_api_key_id,
            self.facilitator_fallback_cdp_api_key_secret,
        )
        if bool(key_id) != bool(secret):
            raise ValueError(f"{prefix}_CDP_API_KEY_ID and {prefix}_CDP_API_KEY_SECRET must be set together")
        if self.facilitator_fallback_url is None:
            if key_id or self.facilitator_fallback_token:
                raise ValueError(f"{prefix}_URL is not set, and the key or token of that facilitator is")
        elif self.facilitators[0].name == self.facilitators[1].name:
            raise ValueError(f"{prefix}_URL is the first facilitator's address")

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
    def accepted_tokens(self) -> tuple[AcceptedToken, ...]:
        """The tokens that payments are accepted in, in the operator's order; empty without a payee.

        The first is that of `network`, `token` and `pay_to`.
        """
        if self.accepts:
            return self.accepts
        return () if self.pay_to is None else (AcceptedToken(self.network, self.token, self.pay_to),)

    @property
    def payment_networks(self) -> tuple[str, ...]:
        """The networks (CAIP-2) of the accepted tokens, in their order; without a payee `network` alone."""
        return tuple(dict.fromkeys(each.network for each in self.accepted_tokens)) or (self.network,)

    def with_token(self, token: AcceptedToken) -> Settings:
        """Return the settings of a deployment that accepts this token alone."""
        return self.model_copy(
            update={
                "accepts": (),
                "network": token.network,
                "pay_to": token.pay_to,
                "asset": token.asset.address,
                "asset_name": token.asset.name,
                "asset_version": token.asset.version,
            }
        )

    @property
    def facilitator(self) -> str:
        """The URL of the facilitator, without a trailing slash."""
        default = CDP_FACILITATOR if self.development_chain is None else TEST_FACILITATOR
        return (self.facilitator_url or default).rstrip("/")

    @property
    def facilitators(self) -> tuple[FacilitatorAccount, ...]:
        """The first facilitator, and the second if there is one."""
        first = FacilitatorAccount(
            f"{PREFIX}FACILITATOR",
            f"{PREFIX}CDP",
            self.facilitator,
            self.facilitator_token,
            self.cdp_api_key_id,
            self.cdp_api_key_secret,
        )
        if self.facilitator_fallback_url is None:
            return (first,)
        second = FacilitatorAccount(
            f"{PREFIX}FACILITATOR_FALLBACK",
            f"{PREFIX}FACILITATOR_FALLBACK_CDP",
            self.facilitator_fallback_url.rstrip("/"),
            self.facilitator_fallback_token,
            self.facilitator_fallback_cdp_api_key_id,
            self.facilitator_fallback_cdp_api_key_secret,
        )
        return (first, second)

    @property
    def base_url(self) -> str:
        """The URL of this server for buyers: the public URL if set, else the listening address."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return self.public_url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def metrics_url(self) -> str | None:
        """The URL of the server's metrics on this machine; None without a known port."""
        if not self.metrics_port:
            return None
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.metrics_host, self.metrics_host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.metrics_port}/metrics"

    @property
    def webhook_secrets(self) -> tuple[bytes, ...]:
        """The secrets that sign webhooks; empty without a receiver."""
        return parse_secrets(self.webhook_secret.get_secret_value()) if self.webhook_secret else ()

    @property
    def public_host(self) -> str:
        """The host name of `base_url`, in lower case: the realm of MPP challenges."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def rpc_url(self) -> str | None:
        """JSON-RPC URL of the payment network, used to look up payments with an unknown outcome."""
        urls = self.provider_settings(f"rpc_{self.chain_id}").url
        return urls.split(",")[0].strip() if urls else None

    def price_of(self, service: str) -> Decimal:
        """Return the price of a service in US dollars per call."""
        return self.service_prices.get(service, self.price)

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


GROUPED_FIELDS = frozenset({"providers", "service_prices"})
"""Fields that are read from many variables, not from one of their own name."""
_FIELD_VARIABLES = frozenset(name.upper() for name in Settings.model_fields if name not in GROUPED_FIELDS)
_PRICE_PREFIX = "PRICE_"


def _read_variables() -> dict[str, str]:
    return read_variables(_BUYER_VARIABLES, _FIELD_VARIABLES)


def price_variable(service: str) -> str:
    """Return the name of the variable that sets the price of a service, by its slug."""
    return PREFIX + _PRICE_PREFIX + service.upper().replace("-", "_")


class _EnvironmentSource(PydanticBaseSettingsSource):
    """Source of `CENTGATE_*`: the environment over `.env`, with `_FILE` and the providers' settings."""

    def get_field_value(self, field: Any, field_name: str) -> tuple[Any, str, bool]:
        raise NotImplementedError

    def __call__(self) -> dict[str, Any]:
        variables = _read_variables()
        values: dict[str, Any] = {
            name.lower(): variables.pop(name) for name in _FIELD_VARIABLES & variables.keys()
        }
        prices = _parse_service_prices(variables)
        providers = parse_providers(
            {name: value for name, value in variables.items() if not name.startswith(_PRICE_PREFIX)}
        )
        groups = {"service_prices": prices, "providers": providers}
        return values | {name: group for name, group in groups.items() if group}


def find_unknown_variables(providers: Collection[str]) -> list[str]:
    """Return the `CENTGATE_` variables that no setting reads; `providers` are provider settings, no prefix.

    `*` in a provider setting stands for a chain id.
    """
    known = {name.upper() for name in providers}
    return [
        PREFIX + name
        for name in sorted(_read_variables())
        if name not in _FIELD_VARIABLES
        and not name.startswith(_PRICE_PREFIX)  # the start refuses those of no service
        and not {name, re.sub(r"_[0-9]+_", "_*_", name)} & known
    ]


def get_raw_value(name: str) -> str | None:
    """Return the raw value of a setting, by its name without the prefix; None if it is not set."""
    return _read_variables().get(name)


def find_variables(names: Iterable[str]) -> list[str]:
    """Return the variables, with prefix, that set these settings, in lower case, by a value or a file."""
    merged: dict[str, str | None] = {**dotenv_values(".env"), **os.environ}
    candidates = (f"{PREFIX}{name.upper()}{suffix}" for name in names for suffix in ("", "_FILE"))
    return [each for each in candidates if merged.get(each)]


SettingSource = Literal["environment", ".env", "file", "command", "default"]
"""Where the value of a setting comes from; `command`: an option, or derived at the start."""
_COMMAND_OPTIONS = frozenset({"host", "port", "workers"})


def find_setting_source(settings: Settings, name: str) -> SettingSource:
    """Return where the value of a setting comes from, by its name in lower case, without the prefix."""
    if settings.accepts and name in _SINGLE_TOKEN_FIELDS:
        name = "accepts"
    variable = PREFIX + name.upper()
    value, field = getattr(settings, name, None), Settings.model_fields.get(name)
    places: tuple[tuple[Mapping[str, str | None], SettingSource], ...] = (
        (os.environ, "environment"),
        (dotenv_values(".env"), ".env"),
    )
    for names, kind in places:
        if raw := names.get(variable):
            return "command" if name in _COMMAND_OPTIONS and raw != str(value) else kind
        if names.get(f"{variable}_FILE") and f"{name}_file" not in Settings.model_fields:
            return "file"
    return "command" if field is not None and value != field.default else "default"


def _parse_service_prices(variables: Mapping[str, str]) -> dict[str, Decimal]:
    """Parse `PRICE_<SERVICE>`, by slug. Raises ValueError."""
    prices: dict[str, Decimal] = {}
    for name, value in variables.items():
        if name.startswith(_PRICE_PREFIX):
            try:
                slug = name.removeprefix(_PRICE_PREFIX).lower().replace("_", "-")
                prices[slug] = parse_price(value)
            except ValueError as error:
                raise ValueError(f"{PREFIX}{name}: {error}") from None
    return prices
