"""ERC-20 approvals of a wallet as reported by a source, and their current state on the chain.

An approval is given at the token (EIP-20), or inside Permit2, which then moves the token for the spender.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from centgate.crypto.contract.account_kinds import CodeKind
from centgate.crypto.event_logs import LogRange

ApprovalSource = Literal["goplus", "rpc", "etherscan"]
ApprovalMechanism = Literal["token", "permit2"]
"""Contract that holds the approval: the token, or Permit2."""
ApprovalKey = tuple[str, str, ApprovalMechanism]
"""Token, spender and mechanism, which identify an approval of a wallet."""
SpenderAccountKind = Literal[CodeKind, "unused"]
"""Kind of account at an address; `unused` is a wallet that has sent no transaction."""

UNLIMITED_ALLOWANCE = 2**256 - 1
"""The largest possible allowance."""


class ReportedToken(Struct, frozen=True):
    """Token of an approval. None where the source gives no value."""

    address: str
    """Lower case."""
    symbol: str | None = None
    decimals: int | None = None
    balance: int | None = None
    """Balance of the wallet, in base units."""
    malicious: bool | None = None
    misconduct: tuple[str, ...] = ()
    """Reported misconduct, in the source's words, such as `fake_standard_interface`."""


class ReportedSpender(Struct, frozen=True):
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


class ReportedApproval(Struct, frozen=True):
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
    mechanism: ApprovalMechanism = "token"
    expires_at: int | None = None
    """End of a grant inside Permit2, in seconds since 1970; None for an approval at the token."""

    @property
    def pair(self) -> tuple[str, str]:
        """Token and spender."""
        return self.token.address, self.spender.address

    @property
    def key(self) -> ApprovalKey:
        """Token, spender and mechanism."""
        return *self.pair, self.mechanism


class ReportedApprovals(Struct, frozen=True):
    """Approvals of a wallet reported by one source, each token and spender once."""

    entries: tuple[ReportedApproval, ...]
    tokens: int
    """Number of tokens the source covers, including those whose approvals are all revoked."""
    partial: bool = False
    """True while the source is still collecting."""
    unreadable: int = 0
    """Number of entries left out because they could not be parsed."""


class ApprovalScan(LogRange, frozen=True):
    """Approvals reported by the event logs of a range of blocks.

    An event whose contract may be a token or an NFT counts as unread.
    """

    approvals: ReportedApprovals
    end_time: int
    """Time of the last block, in seconds since 1970."""
    collectibles: int
    """Number of NFT events, which share the topic."""
    source: ApprovalSource = "rpc"
    days: float | None = None
    """Days between the first block and the last; None if the time of the first is unknown."""


class GrantScan(LogRange, frozen=True):
    """Grants inside Permit2 reported by the event logs of a range of blocks."""

    entries: tuple[ReportedApproval, ...]


class CurrentToken(Struct, frozen=True):
    """Current state of a token contract. None where a call failed."""

    balance: int | None
    """Balance of the wallet, in base units."""
    decimals: int | None
    symbol: str | None
    supply: int | None
    """Total supply, in base units."""


class OnchainState(Struct, frozen=True):
    """Current on-chain state of reported approvals."""

    allowances: Mapping[ApprovalKey, int | None] = field(default_factory=dict[ApprovalKey, int | None])
    """Allowance in base units, for those queried; None where the call failed."""
    expirations: Mapping[ApprovalKey, int] = field(default_factory=dict[ApprovalKey, int])
    """End of each grant inside Permit2, in seconds since 1970."""
    permit2_limits: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    """Allowance of Permit2 at the token, in base units, by token with a grant; None where the call failed."""
    tokens: Mapping[str, CurrentToken] = field(default_factory=dict[str, CurrentToken])
    kinds: Mapping[str, SpenderAccountKind] = field(default_factory=dict[str, SpenderAccountKind])
    """By spender."""
    wallet_code: bytes | None = None
    """Code at the wallet's own address; None if it was not read."""
    block_times: Mapping[int, int] = field(default_factory=dict[int, int])
    """Block times by block number, in seconds since 1970."""
    feed_answers: Sequence[bytes | None] = ()
    """Answers of Chainlink's feed of the native coin; none if it was not read."""

    def current_allowance(self, key: ApprovalKey, now: int) -> int | None:
        """Return the allowance in base units, 0 after a grant's end; `now` is in seconds since 1970."""
        is_over = self.expirations.get(key, now) < now
        return 0 if is_over else self.allowances.get(key)

    @property
    def unreadable_count(self) -> int:
        """Number of allowances that were queried and could not be read."""
        return sum(allowance is None for allowance in self.allowances.values())
