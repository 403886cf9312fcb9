"""Settings of how an operator watches a deployment: metrics, console, alerts and webhooks."""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator

from centgate.settings.fields import Origin, SettingsGroup
from centgate.signing.webhook_signature import parse_secrets

PASSWORD_HASH_PATTERN = r"scrypt:[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}:[A-Za-z0-9_-]{22}:[A-Za-z0-9_-]{43}"
"""Form of the console's password hash: log2 of N, r, p, salt and hash in base64.

It has no `$`, which compose files and shells replace.
"""
_PRIVATE_SUFFIXES = (".localhost", ".internal", ".local", ".home.arpa", ".svc", ".svc.cluster.local")
"""Ends of host names that public name servers do not know: reserved ones, and Kubernetes' services."""


class OperationSettings(SettingsGroup):
    """Metrics, console, alerts and webhooks."""

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
    console_url: Origin | None = Field(
        default=None,
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
        default=10,
        gt=0,
        allow_inf_nan=False,
        description="Minutes after which an unresolved payment causes an alert.",
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

    def _check_webhook(self) -> None:
        """Raise ValueError for a webhook without a secret, or the reverse."""
        if bool(self.webhook_url) != bool(self.webhook_secret):
            raise ValueError("CENTGATE_WEBHOOK_URL and CENTGATE_WEBHOOK_SECRET must be set together")

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


def is_loopback_host(host: str) -> bool:
    """Return True for `localhost` and for addresses of this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_private_host(host: str) -> bool:
    """Return True for a loopback or private address, and for names that are never public."""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host.rstrip(".") or host.rstrip(".").lower().endswith(_PRIVATE_SUFFIXES)
    return address.is_loopback or (address.is_private and not address.is_unspecified)
