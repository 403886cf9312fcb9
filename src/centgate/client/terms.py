"""What an API asks for in a 402, and why a buyer would not sign it (x402 version 2, `exact`, EIP-3009)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from centgate.client.errors import Drift, TermsRefused
from centgate.client.reading import from_base64
from centgate.dollars import TEST_NETWORKS, USDC, Asset
from centgate.evm import checksummed

FLOWS = ("authorization", "upfront", None)
"""When the money moves: after the work or before it; unsaid is after."""
WINDOW = (10, 3600)
"""Seconds that a payment may be good for."""
MAX_HEADER = 12 * 1024
"""Characters of PAYMENT-REQUIRED that are answered: with more, the payment would be too long for a header."""
MAX_DEPTH = 64
"""Objects and lists within each other that are answered: with a thousand, nothing could write them again."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a buyer allows beyond the ordinary."""

    networks: frozenset[str] = TEST_NETWORKS
    """Networks (CAIP-2) that are paid on; those of `assets` are too. Unless named, test networks alone."""
    assets: Mapping[str, Asset] = field(default_factory=dict[str, Asset])
    """Dollar tokens by network, in place of Circle's USDC."""
    hosts: frozenset[str] = frozenset()
    """Hosts that terms may name although another was called."""
    plain_http: frozenset[str] = frozenset()
    """Public hosts that are called without TLS."""

    def asset(self, network: str) -> Asset | None:
        """The token that is paid in on a network; None where none is."""
        if network in self.assets:
            return self.assets[network]
        return USDC.get(network) if network in self.networks else None

    def with_networks(self, networks: Iterable[str]) -> Allowed:
        """Return the same with these networks in place of its own; ValueError for one that is not known."""
        names = frozenset((networks,) if isinstance(networks, str) else networks)
        for name in sorted(names - USDC.keys() - TEST_NETWORKS - self.assets.keys()):
            raise ValueError(
                f"{name[:40]!r} is no network this client can pay on: it knows {', '.join(USDC)}"
            )
        return replace(self, networks=names)


ALLOWED = Allowed()
"""What is allowed unless the caller says otherwise."""


class _Wire(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Requirements(_Wire):
    """One entry of `accepts`."""

    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str = Field(alias="payTo")
    window: int = Field(alias="maxTimeoutSeconds")
    extra: dict[str, Any] = Field(default_factory=dict[str, Any])


class Offer(_Wire):
    """x402's PaymentRequired; its parts as they came, since they are echoed whole."""

    version: int = Field(alias="x402Version")
    resource: dict[str, Any]
    accepts: list[dict[str, Any]] = Field(min_length=1)
    extensions: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("accepts", mode="before")
    @classmethod
    def _without_what_is_no_entry(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        entries = cast(list[Any], value)
        return [each for each in entries if isinstance(each, dict)] or entries

    @field_validator("extensions", mode="before")
    @classmethod
    def _none_are_none(cls, value: Any) -> Any:
        return {} if value is None else value


@dataclass(frozen=True, slots=True)
class Option:
    """An entry of `accepts` that can be signed."""

    offer: Offer
    raw: dict[str, Any]
    network: str
    asset: Asset
    payee: str
    amount: int
    """In the token's base units."""
    window: int
    flow: str | None

    @property
    def usd(self) -> Decimal:
        """The price in US dollars."""
        return Decimal(self.amount) / 10**self.asset.decimals

    @property
    def chain_id(self) -> int:
        """The EIP-155 id of the network."""
        return int(self.network.removeprefix("eip155:"))


@dataclass(frozen=True, slots=True)
class Quote:
    """What a call would cost and who would be paid; nothing was signed."""

    usd: Decimal
    network: str
    asset: str
    token: str
    """The name of the asset, as its contract has it."""
    payee: str
    seconds: int
    """How long a signature would be good for."""
    resource: str
    """The address that the terms are for."""
    objections: tuple[str, ...]
    """Why this client would not sign these terms; none when it would."""
    offer: dict[str, Any]
    """x402's PaymentRequired as it came."""


def read_offer(header: str | None) -> Offer:
    """The terms in PAYMENT-REQUIRED; Drift when there are none."""
    if header is None:
        raise Drift("the API asks for a payment without its terms (PAYMENT-REQUIRED): is a Centgate there?")
    if len(header) > MAX_HEADER:
        raise TermsRefused(f"the terms are longer than {MAX_HEADER} characters, so no payment can echo them")
    try:
        content = orjson.loads(from_base64(header))
        if _is_deep(content):
            raise Drift(f"the API's terms are not those of x402: more than {MAX_DEPTH} levels deep")
        return Offer.model_validate(content)
    except ValidationError as error:
        found = error.errors()[0]
        where = ".".join(map(str, found["loc"])) or "the whole"
        raise Drift(f"the API's terms are not those of x402 version 2: {where}: {found['msg']}") from None
    except ValueError:
        raise Drift("the API's terms (PAYMENT-REQUIRED) are not JSON in base64") from None


def _is_deep(content: Any) -> bool:
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [part for each in level for part in _parts(each)]
    return bool(level)


def _parts(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(cast(dict[str, Any], content).values())
    return cast(list[Any], content) if isinstance(content, list) else []


def choose(offer: Offer, *, host: str, allowed: Allowed) -> Option:
    """The entry to sign; TermsRefused when none can be.

    Where there is a choice, the work before the money, and then the cheapest.
    """
    if objection := _of_the_whole(offer, host, allowed):
        raise TermsRefused(objection)
    options: list[Option] = []
    objections: list[str] = []
    for raw in offer.accepts:
        found = _read(offer, raw, allowed)
        if isinstance(found, Option):
            options.append(found)
        else:
            objections.append(found)
    if not options:
        raise TermsRefused("; or ".join(dict.fromkeys(objections)), tuple(objections))
    return min(options, key=lambda option: (option.flow == "upfront", option.usd))


def payee_objection(option: Option, *, pinned: str | None, known: str | None, api: str) -> str | None:
    """Why this payee is not paid: another is pinned, or another was paid at this API before."""
    payee = option.payee.lower()
    if pinned is not None:
        if payee == pinned.lower():
            return None
        return f"the terms pay {option.payee}, and the payee is pinned to {pinned}: nothing was signed"
    if known is None or payee == known.lower():
        return None
    return (
        f"{api} now asks to pay {option.payee}; before it was {known}. If its operator confirms the change, "
        f"accept it once with CENTGATE_PAYEE={option.payee}"
    )


def _of_the_whole(offer: Offer, host: str, allowed: Allowed) -> str | None:
    if offer.version != 2:
        return f"the terms are x402 version {offer.version}; this client speaks version 2"
    url = offer.resource.get("url")
    if not isinstance(url, str):
        return "the terms do not say what is paid for (resource.url)"
    named = _host(url)
    if named is None:
        return f"the terms are for {url[:100]!r}, which is no address"
    if named != host and named not in {each.lower() for each in allowed.hosts}:
        return f"the terms are for the host {named}, but {host} was called: call {named} itself"
    return None


def _host(url: str) -> str | None:
    try:
        return (urlsplit(url).hostname or "").rstrip(".") or None
    except ValueError:
        return None


def _read(offer: Offer, raw: dict[str, Any], allowed: Allowed) -> Option | str:
    """An entry as it can be signed, or why it cannot."""
    try:
        entry = Requirements.model_validate(raw)
    except ValidationError as error:
        found = error.errors()[0]
        return f"the terms lack what x402 demands: {'.'.join(map(str, found['loc']))}: {found['msg']}"
    token = allowed.asset(entry.network)
    if token is None:
        return _of_network(entry.network, allowed)
    objection = _of_scheme(entry) or _of_token(entry, token) or _of_amount(entry) or _of_window(entry)
    if objection:
        return objection
    try:
        payee = read_payee(entry.pay_to)
    except ValueError as error:
        return f"the terms pay nobody that can be paid: {error}"
    return Option(
        offer,
        raw,
        entry.network,
        token,
        payee,
        int(entry.amount),
        entry.window,
        entry.extra.get("paymentFlow"),
    )


def _of_network(network: str, allowed: Allowed) -> str:
    """Return why a network is not paid on, and for one that could be how to allow it."""
    if network not in USDC:
        return f"the terms ask for a payment on {network[:40]!r}, a network this client does not pay on"
    named = allowed.networks - TEST_NETWORKS
    return (
        f"the terms ask for a payment on {network}, a network this client does not pay on unless it is "
        f"named: set CENTGATE_NETWORKS={','.join(sorted({*named, network}))}, give `--network {network}` to "
        f'the command, or networks=["{network}"] to the client. Nothing was signed'
    )


def _of_scheme(entry: Requirements) -> str | None:
    if entry.scheme != "exact":
        return f"the terms ask for the scheme {entry.scheme[:40]!r}; this client signs only `exact`"
    if (method := entry.extra.get("assetTransferMethod", "eip3009")) != "eip3009":
        return f"the terms ask for a transfer by {str(method)[:40]!r}; this client signs only EIP-3009"
    if (flow := entry.extra.get("paymentFlow")) not in FLOWS:
        return f"the terms name the payment flow {str(flow)[:40]!r}, which this client does not know"
    return None


def _of_token(entry: Requirements, token: Asset) -> str | None:
    if entry.asset.lower() != token.address.lower():
        return (
            f"the terms ask for the token {entry.asset[:60]} on {entry.network}, which is not the dollar "
            f"token this client knows there ({token.address})"
        )
    named = (entry.extra.get("name"), entry.extra.get("version"))
    if named != (token.name, token.version):
        return (
            f"the terms call the token {str(named[0])[:40]!r} version {str(named[1])[:10]!r}, and it is "
            f"{token.name!r} version {token.version!r}: a signature under another name is not valid"
        )
    return None


def _of_amount(entry: Requirements) -> str | None:
    if not re.fullmatch(r"[1-9][0-9]{0,30}", entry.amount):
        return f"the terms ask for {entry.amount[:40]!r}, which is no amount in base units of a token"
    return None


def _of_window(entry: Requirements) -> str | None:
    least, most = WINDOW
    if not least <= entry.window <= most:
        return f"the terms ask for a payment that is good for {entry.window} seconds, not {least} to {most}"
    return None


def read_payee(address: str) -> str:
    """An address that can be paid, in EIP-55's case; ValueError when it is none."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", address) or not int(address, 16):
        raise ValueError(f"{address[:60]!r} is no address")
    return checksummed(address)
