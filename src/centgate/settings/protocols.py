"""Settings of what is offered beside plain x402: signed receipts, and payments by MPP."""

from __future__ import annotations

import re

from pydantic import Field, SecretStr, field_validator

from centgate.settings.fields import SettingsGroup


class ProtocolSettings(SettingsGroup):
    """Receipts and MPP."""

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
