"""Settings of the client: `CENTGATE_*` environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from platformdirs import user_config_path, user_data_path
from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from centgate.client.caps import DEFAULT_CAPS, Caps
from centgate.client.policy import ANY_NETWORK, DEFAULT_POLICY, Allowed, parse_allowed_assets, parse_payees
from centgate.client.wallet import Wallet, is_key
from centgate.signing.assets import Asset

APP_NAME = "centgate"
_CAP_PREFIX = "CENTGATE_CAP_"
_Assets = Mapping[str, Asset]


def _split_commas(value: Any) -> Any:
    """Split a comma-separated list of the environment."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


class BuyerSettings(BaseSettings):
    """Frozen settings. No `.env` is read: a downloaded folder must not decide whom a wallet pays."""

    model_config = SettingsConfigDict(
        env_prefix="CENTGATE_",
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        hide_input_in_errors=True,  # it may be a key
    )

    api_url: str = Field(
        default="http://127.0.0.1:8402", description="The API that is called: its address without a path."
    )
    wallet: Path = Field(
        default_factory=lambda: user_config_path(APP_NAME, appauthor=False) / "wallet",
        description="The file that holds the private key, one line of hex that nobody else can read.",
    )
    wallet_key: SecretStr | None = Field(
        default=None, description="The private key itself, for CI; it wins over the file."
    )
    cap_per_call: Decimal = Field(
        default=DEFAULT_CAPS.per_call, ge=0, allow_inf_nan=False, description="US dollars one call may cost."
    )
    cap_total: Decimal = Field(
        default=DEFAULT_CAPS.total,
        ge=0,
        allow_inf_nan=False,
        description="US dollars that the wallet may sign for in all, as the ledger counts over all processes "
        "and runs. `centgate wallet cap` shows the count, and begins a new one with `--reset`.",
    )
    cap_per_hour: Decimal | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="US dollars that the wallet may sign for within any hour, counted as for the total cap.",
    )
    cap_per_day: Decimal | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="US dollars that the wallet may sign for within any 24 hours.",
    )
    wallet_rpc: str | None = Field(
        default=None,
        repr=False,  # it may hold a key
        description="Your own Ethereum node, which shows the wallet's balance, and whether a payment whose "
        "window has ended was used.",
    )
    allowed_assets: Annotated[_Assets | None, NoDecode, BeforeValidator(parse_allowed_assets)] = Field(
        default=None,
        description="Dollar tokens with six decimals that may be paid with on their networks, in place of "
        "Circle's USDC there, as a JSON list with the name and version of each token's EIP-712 domain: "
        '`[{"network": "eip155:31337", "asset": "0x…", "name": "USDC", "version": "2"}]`. Its networks need '
        "no other name; if CENTGATE_NETWORKS is set, only those of them that it names are paid on. Copy the "
        "address from the token's issuer, never from the terms of an API.",
    )
    networks: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_commas)] = Field(
        default=(),
        description="Networks that may be paid on (CAIP-2), separated by commas, such as `eip155:8453` for "
        "Base. Unless set, test networks alone.",
    )
    preferred_network: str | None = Field(
        default=None,
        description="Network (CAIP-2) to pay on if an API accepts several and it may be paid on. Unless "
        "set, the cheapest that may be paid on, and of equal ones the API's first; terms that are settled "
        "after the work come before terms that are paid upfront, at any price.",
    )
    payee: str | None = Field(
        default=None,
        description="The only address that is paid, or the only ones by network: "
        "`eip155:8453=0x…,eip155:137=0x…`. Unless set, whoever an API asks to pay first is "
        "remembered, and another refused.",
    )
    ledger: Path = Field(
        default_factory=lambda: user_data_path(APP_NAME, appauthor=False) / "ledger.jsonl",
        description="The file that keeps what was signed and what came of it.",
    )

    proxy: str | None = Field(
        default=None,
        repr=False,  # it may hold a password
        description="The HTTP proxy that an API is asked through, or `environment` for what HTTPS_PROXY and "
        "its like say. Unless set, none is used.",
    )

    @field_validator("wallet")
    @classmethod
    def _validate_wallet(cls, value: Path) -> Path:
        if is_key(str(value)):
            raise ValueError("it names the file that holds the key, and not the key: use CENTGATE_WALLET_KEY")
        return value

    @field_validator("proxy")
    @classmethod
    def _validate_proxy(cls, value: str | None) -> str | None:
        if value in (None, "environment"):
            return value
        try:
            parts = urlsplit(value)
            is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid:
            raise ValueError("a proxy is `environment` or an address such as http://127.0.0.1:3128")
        return value

    @field_validator("networks")
    @classmethod
    def _validate_networks(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "allowed_assets" in info.data:  # else they are invalid, which is reported by itself
            Allowed(assets=info.data["allowed_assets"] or {}).with_networks(value)
        return value

    @field_validator("preferred_network")
    @classmethod
    def _validate_preferred(cls, value: str | None) -> str | None:
        return DEFAULT_POLICY.with_preferred(value).preferred_network if value else value

    @field_validator("payee")
    @classmethod
    def _to_checksum(cls, value: str | None) -> str | None:
        payees = parse_payees(value)
        return payees.get(ANY_NETWORK) or ",".join(map("=".join, payees.items())) or None

    @model_validator(mode="after")
    def _refuse_unknown_caps(self) -> Self:
        """Refuse a variable that names no cap: the wallet would spend up to the defaults."""
        fields = type(self).model_fields
        caps = [
            name for name in (f"CENTGATE_{field.upper()}" for field in fields) if name.startswith(_CAP_PREFIX)
        ]
        for name, value in os.environ.items():
            if value and name.upper().startswith(_CAP_PREFIX) and name.upper() not in caps:
                problem = ValueError(f"{name} is not a cap: the caps are {', '.join(caps)}")
                # a ValueError would have all settings as its input, the wallet's key among them
                details = InitErrorDetails(type="value_error", ctx={"error": problem}, input=name)
                raise ValidationError.from_exception_data(type(self).__name__, [details])
        return self

    @property
    def allowed(self) -> Allowed:
        """Tokens that may be paid with on their networks, beside the networks themselves."""
        return DEFAULT_POLICY.with_assets(self.allowed_assets or {}, self.networks)

    @property
    def caps(self) -> Caps:
        """Spending caps."""
        return Caps(self.cap_per_call, self.cap_total, self.cap_per_hour, self.cap_per_day)

    def open_wallet(self) -> Wallet | None:
        """Open the wallet; None if no key is set and there is no key file at the default path.

        Raises WalletUnreadable if the configured key cannot be read.
        """
        if self.wallet_key is not None:
            return Wallet.from_key(self.wallet_key.get_secret_value())
        if "wallet" not in self.model_fields_set and not self.wallet.exists():
            return None
        return Wallet.from_file(self.wallet)
