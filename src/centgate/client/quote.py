"""Parse the payment terms of a 402 and check them against the policy (x402 version 2, `exact`, EIP-3009)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from pydantic import Field, ValidationError, field_validator

from centgate.client.errors import Drift, TermsRefused
from centgate.client.policy import ANY_NETWORK, Allowed, parse_payee
from centgate.client.wire_model import StrictModel, decode_base64
from centgate.signing.assets import TEST_NETWORKS, USDC, Asset, parse_chain_id

PAYMENT_FLOWS = ("authorization", "upfront", None)
"""Settlement after the work (`authorization`) or before it (`upfront`); None means after."""
VALIDITY_LIMITS = (10, 3600)
"""Minimum and maximum validity of a payment, in seconds."""
MAX_HEADER = 12 * 1024
"""Maximum characters of PAYMENT-REQUIRED: with more, the payment would be too long for a header."""
MAX_DEPTH = 64
"""Maximum nesting of objects and lists: with a thousand levels, no JSON library could serialize them."""


class OfferedRequirements(StrictModel):
    """Entry of `accepts`."""

    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str = Field(alias="payTo")
    window: int = Field(alias="maxTimeoutSeconds")
    extra: dict[str, Any] = Field(default_factory=dict[str, Any])


class PaymentOffer(StrictModel):
    """x402's PaymentRequired; its parts stay unparsed, since they are echoed unchanged."""

    version: int = Field(alias="x402Version")
    resource: dict[str, Any]
    accepts: list[dict[str, Any]] = Field(min_length=1)
    extensions: dict[str, Any] = Field(default_factory=dict[str, Any])

    @field_validator("accepts", mode="before")
    @classmethod
    def _drop_non_objects(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        entries = cast(list[Any], value)
        return [each for each in entries if isinstance(each, dict)] or entries

    @field_validator("extensions", mode="before")
    @classmethod
    def _default_extensions(cls, value: Any) -> Any:
        return {} if value is None else value


@dataclass(frozen=True, slots=True)
class PaymentOption:
    """Entry of `accepts` that can be signed."""

    offer: PaymentOffer
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
        return parse_chain_id(self.network)


@dataclass(frozen=True, slots=True)
class Quote:
    """Price, payee and terms of a call; nothing was signed."""

    usd: Decimal
    network: str
    asset: str
    token: str
    """The token's name, as in its contract."""
    payee: str
    seconds: int
    """Validity of a signature, in seconds."""
    resource: str
    """URL that the terms are for."""
    objections: tuple[str, ...]
    """Reasons why this client would not sign; empty if it would."""
    offer: dict[str, Any]
    """x402's PaymentRequired, unchanged."""


def parse_offer(header: str | None) -> PaymentOffer:
    """Parse the terms in PAYMENT-REQUIRED. Raises Drift or TermsRefused."""
    if header is None:
        raise Drift("the API sent a 402 without terms (PAYMENT-REQUIRED). Is this a Centgate API URL?")
    if len(header) > MAX_HEADER:
        raise TermsRefused(f"the terms are longer than {MAX_HEADER} characters, so no payment can echo them")
    try:
        content = orjson.loads(decode_base64(header))
        if _is_too_deep(content):
            raise Drift(f"the API's terms are not those of x402: more than {MAX_DEPTH} levels deep")
        return PaymentOffer.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(map(str, first["loc"])) or "the header"
        raise Drift(f"the API's terms are not those of x402 version 2: {location}: {first['msg']}") from None
    except ValueError:
        raise Drift("the API's terms (PAYMENT-REQUIRED) are not JSON in base64") from None


def _is_too_deep(content: Any) -> bool:
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [part for each in level for part in _children(each)]
    return bool(level)


def _children(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(cast(dict[str, Any], content).values())
    return cast(list[Any], content) if isinstance(content, list) else []


def list_options(offer: PaymentOffer, *, host: str, allowed: Allowed) -> list[PaymentOption]:
    """Return the entries that can be signed, best first. Raises TermsRefused if there are none.

    The preferred network comes first, then settlement after the work, then the lowest price, then the order
    of the API.
    """
    if objection := _offer_objection(offer, host, allowed):
        raise TermsRefused(objection)
    options: list[PaymentOption] = []
    objections: list[_Objection] = []
    for raw in offer.accepts:
        parsed = _parse_option(offer, raw, allowed)
        if isinstance(parsed, PaymentOption):
            options.append(parsed)
        else:
            objections.append(parsed)
    if not options:
        sentences = tuple(each.sentence for each in objections)
        raise TermsRefused(_summarise_objections(objections), sentences)
    return sorted(
        options,
        key=lambda option: (
            option.network != allowed.preferred_network,
            option.flow == "upfront",
            option.usd,
        ),
    )


def choose_option(
    options: Iterable[PaymentOption], find_objection: Callable[[PaymentOption], str | None]
) -> tuple[PaymentOption, str | None]:
    """Return the first option without an objection, else the first option with its objection."""
    found = [(option, find_objection(option)) for option in options]
    return next((each for each in found if each[1] is None), found[0])


def find_payee_objection(
    option: PaymentOption, *, pinned: Mapping[str, str], last: Mapping[str, str], api: str
) -> str | None:
    """Return why this payee may not be paid, None if it may.

    `pinned` are the only payees, by network or for `ANY_NETWORK`; a network without one is not paid on.
    Without pins, `last` has the payees paid last at this API, by network: another on the same network is
    refused, and one that no network had.
    """
    payee, network = option.payee.lower(), option.network
    if pinned:
        expected = pinned.get(network) or pinned.get(ANY_NETWORK)
        if expected is None:
            return f"no payee is pinned on {network}, only on {', '.join(pinned)}: nothing was signed"
        if payee == expected.lower():
            return None
        return f"the terms name the payee {option.payee}, but it is pinned to {expected}: nothing was signed"
    known = {last[network].lower()} if network in last else {each.lower() for each in last.values()}
    if not known or payee in known:
        return None
    if network in last:
        return (
            f"{api} now names the payee {option.payee}; before it was {last[network]}. If its operator "
            f"confirms the change, accept it once with CENTGATE_PAYEE={option.payee}"
        )
    return (
        f"{api} names the payee {option.payee} on {network}, where nothing was paid yet; on "
        f"{', '.join(last)} it was {', '.join(dict.fromkeys(last.values()))}. If its operator confirms it, "
        f"accept it once with CENTGATE_PAYEE={network}={option.payee}"
    )


def _offer_objection(offer: PaymentOffer, host: str, allowed: Allowed) -> str | None:
    if offer.version != 2:
        return f"the terms are x402 version {offer.version}; this client supports version 2"
    url = offer.resource.get("url")
    if not isinstance(url, str):
        return "the terms do not name the paid resource (resource.url)"
    terms_host = _parse_host(url)
    if terms_host is None:
        return f"the terms are for {url[:100]!r}, which is not a URL"
    if terms_host != host and terms_host not in {each.lower() for each in allowed.hosts}:
        return f"the terms are for the host {terms_host}, but {host} was called: call {terms_host} directly"
    return None


def _parse_host(url: str) -> str | None:
    try:
        return (urlsplit(url).hostname or "").rstrip(".") or None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _Objection:
    """Reason why an entry cannot be signed: as a sentence, and as a clause where there are several."""

    sentence: str
    clause: str


def _summarise_objections(objections: Iterable[_Objection]) -> str:
    """Return the reasons why no entry can be signed as one sentence."""
    found = list(objections)
    clauses = list(dict.fromkeys(each.clause for each in found))
    if len(clauses) == 1:
        return found[0].sentence
    return f"none of the {len(found)} offers can be paid: {'; '.join(clauses)}. Nothing was signed"


def _parse_option(offer: PaymentOffer, raw: dict[str, Any], allowed: Allowed) -> PaymentOption | _Objection:
    """Parse an entry. Returns the option, or the reason why it cannot be signed."""
    try:
        entry = OfferedRequirements.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        sentence = f"the terms do not match x402: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        return _Objection(sentence, sentence)
    token = allowed.asset(entry.network)
    if token is None:
        return _network_objection(entry.network, allowed)
    objection = (
        _scheme_objection(entry)
        or _token_objection(entry, token)
        or _amount_objection(entry)
        or _window_objection(entry)
    )
    if objection:
        return _Objection(objection, objection)
    try:
        payee = parse_payee(entry.pay_to)
    except ValueError as error:
        sentence = f"the terms name an invalid payee: {error}"
        return _Objection(sentence, sentence)
    return PaymentOption(
        offer,
        raw,
        entry.network,
        token,
        payee,
        int(entry.amount),
        entry.window,
        entry.extra.get("paymentFlow"),
    )


def _network_objection(network: str, allowed: Allowed) -> _Objection:
    """Return why a network is not allowed, and how to allow a supported one."""
    if network not in USDC:
        # without the token's address: it must come from its issuer, not from who wants to be paid
        return _Objection(
            f"the terms require a payment on {network[:40]!r}, a network this client does not support unless "
            "you name a token there: set CENTGATE_ALLOWED_ASSETS, or pass allowed=Allowed(assets=…) to the "
            "client, and name the network too if you name networks. Nothing was signed",
            # a token of CENTGATE_ALLOWED_ASSETS counts only on named networks, if any are named
            f"no token is allowed on {network[:40]!r} "
            "(CENTGATE_ALLOWED_ASSETS, and CENTGATE_NETWORKS if that is set)",
        )
    networks = allowed.networks - TEST_NETWORKS
    return _Objection(
        f"the terms require a payment on {network}, which is not enabled: "
        f"set CENTGATE_NETWORKS={','.join(sorted({*networks, network}))}, pass `--network {network}` to "
        f'the command, or networks=["{network}"] to the client. Nothing was signed',
        f"{network} is not enabled (CENTGATE_NETWORKS)",
    )


def _scheme_objection(entry: OfferedRequirements) -> str | None:
    if entry.scheme != "exact":
        return f"the terms require the scheme {entry.scheme[:40]!r}; this client signs only `exact`"
    if (method := entry.extra.get("assetTransferMethod", "eip3009")) != "eip3009":
        return f"the terms require a transfer by {str(method)[:40]!r}; this client signs only EIP-3009"
    if (flow := entry.extra.get("paymentFlow")) not in PAYMENT_FLOWS:
        return f"the terms name the payment flow {str(flow)[:40]!r}, which this client does not support"
    return None


def _token_objection(entry: OfferedRequirements, token: Asset) -> str | None:
    if entry.asset.lower() != token.address.lower():
        return (
            f"the terms require the token {entry.asset[:60]} on {entry.network}, which is not the dollar "
            f"token of this client on that network ({token.address})"
        )
    domain = (entry.extra.get("name"), entry.extra.get("version"))
    if domain != (token.name, token.version):
        return (
            f"the terms call the token {str(domain[0])[:40]!r} version {str(domain[1])[:10]!r}, but it is "
            f"{token.name!r} version {token.version!r}: a signature under another name is not valid"
        )
    return None


def _amount_objection(entry: OfferedRequirements) -> str | None:
    if not re.fullmatch(r"[1-9][0-9]{0,30}", entry.amount):
        return f"the terms require {entry.amount[:40]!r}, which is not an amount in base units of a token"
    return None


def _window_objection(entry: OfferedRequirements) -> str | None:
    minimum, maximum = VALIDITY_LIMITS
    if not minimum <= entry.window <= maximum:
        return f"the terms require a payment valid for {entry.window} seconds, not {minimum} to {maximum}"
    return None
