"""ERC-20 approvals of a wallet as a source tells them, before the chain is asked whether they still stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ApprovalSource = Literal["goplus", "rpc"]
Kind = Literal["contract", "wallet", "delegated", "unused"]
"""What is at an address: code; none; none but a delegation (EIP-7702); none, and it never sent anything."""

UNLIMITED = 2**256 - 1
"""The largest allowance there can be."""


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
