"""The settings of a server, as one immutable object made of the groups of this package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from centgate.environment import PREFIX
from centgate.provider_settings import ProviderSettings
from centgate.settings.facilitators import FacilitatorSettings
from centgate.settings.fields import normalize_origin
from centgate.settings.operation import OperationSettings
from centgate.settings.payments import PaymentSettings
from centgate.settings.protocols import ProtocolSettings
from centgate.settings.publication import PublicationSettings
from centgate.settings.server import ServerSettings
from centgate.settings.sources import SourceSettings
from centgate.settings.storage import StorageSettings
from centgate.settings.variables import EnvironmentSource


class Settings(
    # pydantic collects fields from the last base to the first: the order of docs/settings.md, reversed
    SourceSettings,
    ServerSettings,
    PublicationSettings,
    OperationSettings,
    ProtocolSettings,
    StorageSettings,
    PaymentSettings,
    FacilitatorSettings,
):
    """Immutable settings, read once at the start."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True, defer_build=False
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

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        """Check settings that depend on each other; the first problem is reported."""
        self._check_token()
        self._check_webhook()
        self._check_facilitators()
        self._check_mpp()
        return self

    def _check_mpp(self) -> None:
        """Raise ValueError if MPP is enabled without a secret, or with a host that cannot be a realm."""
        if self.mpp_enabled and self.mpp_secret is None:
            raise ValueError("CENTGATE_MPP_ENABLED needs CENTGATE_MPP_SECRET: openssl rand -hex 32")
        if self.mpp_enabled and not re.fullmatch(r"[a-z0-9._:-]+", self.public_host):
            raise ValueError("CENTGATE_MPP_ENABLED needs a host name of ASCII letters in CENTGATE_PUBLIC_URL")

    @property
    def base_url(self) -> str:
        """The URL of this server for buyers: the public URL if set, else the listening address.

        Raises ValueError if a URL cannot have that address.
        """
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        try:
            return self.public_url or normalize_origin(
                f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
            )
        except ValueError:
            raise ValueError(
                f"CENTGATE_HOST: {host!r} is neither an address nor a host name that a URL can have"
            ) from None

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
        return init_settings, EnvironmentSource(settings_cls)
