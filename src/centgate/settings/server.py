"""Settings of the server: limits of clients, addresses, processes, connections and log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from centgate.client_address import parse_network
from centgate.settings.fields import CommaList, SettingsGroup


class ServerSettings(SettingsGroup):
    """Limits, listening and log of the server's processes."""

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
    trusted_proxies: CommaList = Field(
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

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            parse_network(each)  # raises for an invalid address or network
        return value
