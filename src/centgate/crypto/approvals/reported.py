"""ERC-20 approvals of a wallet as reported by a source, and their current state on the chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ApprovalSource = Literal["goplus", "rpc"]
SpenderKind = Literal["contract", "wallet", "delegated", "unused"]
"""Account at an address: code; no code; only a delegation (EIP-7702); no code and no transaction sent."""

UNLIMITED_ALLOWANCE = 2**256 - 1
"""The largest possible allowance."""


@dataclass(frozen=True, slots=True)
class ReportedToken:
    """Token of an approval. None where the source gives no value."""

    address: str
    """Lower case."""
    symbol: str | None = None
    decimals: int | None = None
    malicious: bool | None = None
    misconduct: tuple[str, ...] = ()
    """Reported misconduct, in the source's words, such as `fake_standard_interface`."""


@dataclass(frozen=True, slots=True)
class ReportedSpender:
    """Address that may spend the token. None where the source gives no value."""

    address: str
    """Lower case."""
    name: str | None = None
    project: str | None = None
    """Owner of the contract, as the source labels it."""
    is_contract: bool | None = None
    source_verified: bool | None = None
    trusted: bool | None = None
    is_doubtful: bool | None = None
    misconduct: tuple[str, ...] = ()
    """Reported misconduct, in the source's words, such as `phishing_activities`."""
    deployed_at: int | None = None
    """Seconds since 1970."""

    @property
    def is_assessed(self) -> bool:
        """True if the source assessed the spender; event logs only name an address."""
        return (self.source_verified, self.trusted, self.is_doubtful) != (None, None, None)


@dataclass(frozen=True, slots=True)
class ReportedApproval:
    """Permission for one spender to move one token."""

    token: ReportedToken
    spender: ReportedSpender
    source: ApprovalSource
    amount: int | None
    """In base units; None if the source says "unlimited", or the amount is unreadable."""
    amount_text: str | None
    """Amount as the source gave it."""
    unlimited: bool = False
    """True if the source says so in words."""
    changed_at: int | None = None
    """Seconds since 1970; for tokens that emit Approval on each spending, the last of those."""
    block: int | None = None
    """Block of that change, where the source gives it instead of the time."""

    @property
    def pair(self) -> tuple[str, str]:
        """Token and spender, which identify an approval."""
        return self.token.address, self.spender.address


@dataclass(frozen=True, slots=True)
class ReportedApprovals:
    """Approvals of a wallet reported by one source, each token and spender once."""

    entries: tuple[ReportedApproval, ...]
    tokens: int
    """Number of tokens the source covers, including those whose approvals are all revoked."""
    partial: bool = False
    """True while the source is still collecting."""
    unreadable: int = 0
    """Number of entries left out because they could not be parsed."""


@dataclass(frozen=True, slots=True)
class ApprovalScan:
    """Approvals reported by the event logs of a range of blocks."""

    approvals: ReportedApprovals
    from_block: int
    to_block: int
    end_time: int
    """Time of the last block, in seconds since 1970."""
    revoked: int
    """Number of approvals whose latest event sets them to 0."""
    collectibles: int
    """Number of NFT events, which share the topic."""
    days: float | None = None
    """Days between the first block and the last; None if the time of the first is unknown."""

    @property
    def is_complete(self) -> bool:
        """True if the range starts at the first block of the chain."""
        return self.from_block == 0


@dataclass(frozen=True, slots=True)
class CurrentToken:
    """Current state of a token contract. None where a call failed."""

    balance: int | None
    """Balance of the wallet, in base units."""
    decimals: int | None
    symbol: str | None
    supply: int | None
    """Total supply, in base units."""


@dataclass(frozen=True, slots=True)
class OnchainState:
    """Current on-chain state of reported approvals."""

    allowances: Mapping[tuple[str, str], int | None] = field(
        default_factory=dict[tuple[str, str], int | None]
    )
    """Allowance by token and spender, in base units, for those queried; None where the call failed."""
    tokens: Mapping[str, CurrentToken] = field(default_factory=dict[str, CurrentToken])
    kinds: Mapping[str, SpenderKind] = field(default_factory=dict[str, SpenderKind])
    """By spender."""
    block_times: Mapping[int, int] = field(default_factory=dict[int, int])
    """Block times by block number, in seconds since 1970."""

    @property
    def unreadable_count(self) -> int:
        """Number of allowances that were queried and could not be read."""
        return sum(allowance is None for allowance in self.allowances.values())
