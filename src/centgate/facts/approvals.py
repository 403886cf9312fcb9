"""ERC-20 approvals of a wallet as a source tells them, before the chain is asked whether they still stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, Literal, cast

from centgate.readings import address, amount, decimals, name, since_1970
from centgate.text import cleaned

ApprovalSource = Literal["goplus", "rpc"]
Kind = Literal["contract", "wallet", "delegated", "unused"]
"""What is at an address: code; none; none but a delegation (EIP-7702); none, and it never sent anything."""

UNLIMITED = 2**256 - 1
"""The largest allowance there can be."""
_MISDEEDS = 10


@dataclass(frozen=True, slots=True)
class ToldToken:
    """The token of an approval. None is what the source does not say."""

    address: str
    """Lower case."""
    symbol: str | None = None
    decimals: int | None = None
    malicious: bool | None = None
    misdeeds: tuple[str, ...] = ()
    """In the source's words, such as `fake_standard_interface`."""


@dataclass(frozen=True, slots=True)
class ToldSpender:
    """Who may spend it. None is what the source does not say."""

    address: str
    """Lower case."""
    name: str | None = None
    project: str | None = None
    """Whose contract it is, as the source labels it."""
    is_contract: bool | None = None
    source_verified: bool | None = None
    trusted: bool | None = None
    doubtful: bool | None = None
    misdeeds: tuple[str, ...] = ()
    """In the source's words, such as `phishing_activities`."""
    deployed_at: int | None = None
    """Seconds since 1970."""

    @property
    def judged(self) -> bool:
        """Whether the source looked into it; event logs only name an address."""
        return (self.source_verified, self.trusted, self.doubtful) != (None, None, None)


@dataclass(frozen=True, slots=True)
class ToldApproval:
    """A permission for one spender to move one token."""

    token: ToldToken
    spender: ToldSpender
    source: ApprovalSource
    amount: int | None
    """In base units; None where it is unlimited in words, or unreadable."""
    said: str | None
    """The amount as the source gave it."""
    unlimited: bool = False
    """Whether the source says so in words."""
    changed_at: int | None = None
    """Seconds since 1970; for tokens that report each spending, the last of those."""
    block: int | None = None
    """The block of that change, where the source gives it in place of the time."""

    @property
    def pair(self) -> tuple[str, str]:
        """Token and spender: what an approval is known by."""
        return self.token.address, self.spender.address


@dataclass(frozen=True, slots=True)
class ToldApprovals:
    """What a source knows of a wallet's approvals, each token and spender once."""

    entries: tuple[ToldApproval, ...]
    tokens: int
    """Tokens the source looked at, also those whose approvals are all revoked."""
    partial: bool = False
    """Whether the source is still collecting."""
    unreadable: int = 0
    """Entries left out because they could not be read."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Approvals that event logs of a range of blocks report."""

    told: ToldApprovals
    from_block: int
    to_block: int
    until: int
    """When the last block was made, in seconds since 1970."""
    revoked: int
    """Approvals whose latest event sets them to nothing."""
    collectibles: int
    """Events of NFTs, which share the topic."""
    days: float | None = None
    """Between the first block and the last; None where the time of the first is not known."""

    @property
    def complete(self) -> bool:
        """Whether it reaches back to the first block of the chain."""
        return self.from_block == 0


@dataclass(frozen=True, slots=True)
class TokenNow:
    """A token as its contract tells it now. None is what it did not answer."""

    balance: int | None
    """What the wallet holds, in base units."""
    decimals: int | None
    symbol: str | None
    supply: int | None
    """In base units."""


@dataclass(frozen=True, slots=True)
class Live:
    """What the chain says now of approvals that a source tells."""

    allowances: Mapping[tuple[str, str], int | None] = field(
        default_factory=dict[tuple[str, str], int | None]
    )
    """By token and spender, in base units, for those asked; None where the call failed."""
    tokens: Mapping[str, TokenNow] = field(default_factory=dict[str, TokenNow])
    kinds: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    """By spender."""
    times: Mapping[int, int] = field(default_factory=dict[int, int])
    """When blocks were made, in seconds since 1970, by number."""

    @property
    def failed(self) -> int:
        """Allowances that were asked for and could not be read."""
        return sum(allowance is None for allowance in self.allowances.values())


def told_by_index(rows: list[Any], *, partial: bool) -> ToldApprovals:
    """What the rows of GoPlus's approval index say, one row for each token.

    A row that cannot be read is left out and counted; of several for one token and spender the latest counts.
    """
    latest: dict[tuple[str, str], ToldApproval] = {}
    tokens: set[str] = set()
    unreadable = 0
    for row in rows:
        token = _token(row)
        listed: Any = (row.get("approved_list") or []) if token else None
        if not token or not isinstance(listed, list):
            unreadable += 1
            continue
        tokens.add(token.address)
        for entry in cast(list[Any], listed):
            approval = _approval(token, entry)
            if approval is None:
                unreadable += 1
            elif (approval.changed_at or 0) >= (_changed(latest.get(approval.pair))):
                latest[approval.pair] = approval
    return ToldApprovals(tuple(latest.values()), len(tokens), partial, unreadable)


def _changed(approval: ToldApproval | None) -> int:
    return (approval.changed_at or 0) if approval else 0


def _token(row: Any) -> ToldToken | None:
    if not isinstance(row, dict):
        return None
    said = cast(dict[str, Any], row)
    where = address(said.get("token_address"))
    if where is None:
        return None
    return ToldToken(
        address=where,
        symbol=name(said.get("token_symbol")),
        decimals=decimals(said.get("decimals")),
        malicious=_flag(said.get("malicious_address")),
        misdeeds=_words(said.get("malicious_behavior")),
    )


def _approval(token: ToldToken, entry: Any) -> ToldApproval | None:
    if not isinstance(entry, dict):
        return None
    said = cast(dict[str, Any], entry)
    where = address(said.get("approved_contract"))
    if where is None:
        return None
    allowed = said.get("approved_amount")
    text = cleaned(str(allowed), 100) if isinstance(allowed, str | int | float) else None
    return ToldApproval(
        token=token,
        spender=_spender(where, said.get("address_info")),
        source="goplus",
        amount=_base_units(text, token.decimals),
        said=text,
        unlimited=(text or "").casefold() == "unlimited",
        changed_at=_seconds(said.get("approved_time")),
    )


def _spender(where: str, info: Any) -> ToldSpender:
    said: Mapping[str, Any] = cast(dict[str, Any], info) if isinstance(info, dict) else {}
    return ToldSpender(
        address=where,
        name=name(said.get("contract_name")),
        project=name(said.get("tag")),
        is_contract=_flag(said.get("is_contract")),
        source_verified=_flag(said.get("is_open_source")),
        trusted=_flag(said.get("trust_list")),
        doubtful=_flag(said.get("doubt_list")),
        misdeeds=_words(said.get("malicious_behavior")),
        deployed_at=_seconds(said.get("deployed_time")),
    )


def _base_units(scaled: str | None, decimals: int | None) -> int | None:
    """An amount in plain or exponent form, exactly; None for words and what no allowance can be.

    An exponent form is rounded, so that the largest allowance can come out a little above itself.
    """
    try:
        number = Decimal(scaled or "")
    except InvalidOperation:
        return None
    if decimals is None or not number.is_finite() or number < 0 or number.adjusted() + decimals > 80:
        return None
    with localcontext(prec=400):
        units = int(number.scaleb(decimals))
    return min(units, UNLIMITED) if units < 2 * UNLIMITED else None


def _words(said: Any) -> tuple[str, ...]:
    listed: Iterable[Any] = cast(list[Any], said) if isinstance(said, list) else [said]
    words = (cleaned(word, 40) for word in listed if isinstance(word, str))
    return tuple(word for word in words if word)[:_MISDEEDS]


def _flag(said: Any) -> bool | None:
    told = float(said) if isinstance(said, bool) else amount(said)
    return None if told is None else told > 0


def _seconds(said: Any) -> int | None:
    """A time; zero is how a source says that it has none."""
    told = since_1970(said)
    return int(told.timestamp()) if told else None
