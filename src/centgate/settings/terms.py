"""Settings of what a deployment is paid: the accepted tokens, their payees, and the price."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Self, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from centgate.accepted_tokens import MAX_TOKENS, AcceptedToken, parse_accepted_tokens
from centgate.environment import PREFIX
from centgate.prices import DEFAULT_PRICE, MAX_PRICE, parse_price
from centgate.settings.fields import SettingsGroup
from centgate.signing.asset_entries import (
    ADDRESS_PATTERN,
    DEFAULT_VERSION,
    NETWORK_PATTERN,
    find_name_problem,
)
from centgate.signing.assets import TEST_NETWORKS, USDC, Asset, parse_chain_id
from centgate.signing.evm import to_checksum_address

SINGLE_TOKEN_FIELDS = ("network", "pay_to", "asset", "asset_name", "asset_version")
"""Settings of a deployment with one token; with `accepts` they are those of its first entry."""


class TermsSettings(SettingsGroup):
    """Accepted tokens and the price of a call."""

    pay_to: str | None = Field(
        default=None,
        pattern=ADDRESS_PATTERN,
        description="The address that receives all payments: 0x and 40 hex digits. Without it the server "
        "accepts no payments and all paid routes return 402.",
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
    accepts: tuple[AcceptedToken, ...] = Field(
        default=(),
        description="Several networks or tokens at once, instead of the token settings above: a JSON list of "
        f"at most {MAX_TOKENS} objects with `network` and `payTo`, such as "
        '`[{"network": "eip155:8453", "payTo": "0x…"}, {"network": "eip155:137", "payTo": "0x…"}]`, '
        "and with `asset`, `name` and `version` (EIP-712) for "
        "a token that is not known. Buyers are offered them in this order. All are test networks, or none.",
    )
    price: Annotated[Decimal, BeforeValidator(parse_price)] = Field(
        default=DEFAULT_PRICE,
        description="The price of a call in decimal dollars, for every service: more than 0, at most "
        f"{MAX_PRICE}, with at most 6 decimals. `{PREFIX}PRICE_<SERVICE>` sets that of one service, for "
        f"example `{PREFIX}PRICE_TOKEN_RISK=0.03`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _set_first_token(cls, data: Any) -> Any:
        """Set the single token's settings to the first entry of `accepts`; refuse both forms together."""
        values = cast(dict[str, Any], data)
        if not values.get("accepts"):
            return values
        if both := [name for name in SINGLE_TOKEN_FIELDS if values.get(name) is not None]:
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
            raise ValueError("the zero address is neither a payee nor a token")
        return to_checksum_address(value) if value else value

    def _check_token(self) -> None:
        """Raise ValueError unless the payment token is known or described."""
        if bool(self.asset) != bool(self.asset_name):
            raise ValueError("CENTGATE_ASSET and CENTGATE_ASSET_NAME must be set together")
        if problem := find_name_problem(self.asset_name or "", self.asset_version):
            raise ValueError(f"CENTGATE_ASSET_NAME and CENTGATE_ASSET_VERSION: {problem}")
        known = USDC.get(self.network)
        if self.asset and known and self.asset == known.address and self.token != known:
            raise ValueError(
                f"USDC on {self.network} has the name {known.name!r} and version {known.version!r}: remove "
                "CENTGATE_ASSET, CENTGATE_ASSET_NAME and CENTGATE_ASSET_VERSION"
            )
        if self.pay_to and self.network not in USDC and not self.asset:
            raise ValueError(
                f"no token is known on {self.network}: set CENTGATE_ASSET and CENTGATE_ASSET_NAME as well"
            )

    @property
    def chain_id(self) -> int:
        """The EIP-155 id of the payment network."""
        return parse_chain_id(self.network)

    @property
    def development_chain(self) -> int | None:
        """The id of the payment network if it is a test network, which services then support; else None."""
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

    def with_token(self, token: AcceptedToken) -> Self:
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
