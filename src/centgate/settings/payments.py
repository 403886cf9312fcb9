"""Settings of payments: who may pay, how long a payment counts, and the URL that its terms name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from centgate.settings.fields import Origin, SettingsGroup, split_list
from centgate.signing.evm import parse_address


def _split_payers(value: Any) -> Any:
    """Split a list of payers; raises ValueError for one of separators alone, which would restrict nothing."""
    if isinstance(value, str) and value and not split_list(value):
        raise ValueError("names no address; leave it out to accept every payer")
    return split_list(value)


class PaymentSettings(SettingsGroup):
    """Payers, times and the public URL."""

    payers_allowed: Annotated[tuple[str, ...], BeforeValidator(_split_payers)] = Field(
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
    payers_denied: Annotated[tuple[str, ...], BeforeValidator(_split_payers)] = Field(
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
        allow_inf_nan=False,
        description="Hours that a stored answer is kept and that a settled, undelivered payment can "
        "be redeemed.",
    )
    public_url: Origin | None = Field(
        default=None,
        description="The public URL of this server, without a path; used in the terms, the catalogue "
        "and the OpenAPI document. Default: the address that it listens on.",
    )

    @field_validator("payers_allowed", "payers_denied")
    @classmethod
    def _check_payers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(parse_address, value))
