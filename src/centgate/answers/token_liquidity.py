"""Fields of token-risk on liquidity: the pairs, and who can take out what is in them."""

from __future__ import annotations

from pydantic import Field

from centgate.crypto.token.security import TokenSource
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_liquidity import Liquidity
from centgate.schema import Data
from centgate.timestamps import format_timestamp


class TopPair(Data):
    """The deepest pair on the requested chain."""

    pair_address: str = Field(description="Lower case.")
    dex: str | None = Field(description="The exchange, as the source names it: untrusted text.")
    liquidity_usd: float | None = Field(description="US dollars in the pair, both sides together.")
    created_at: str | None = Field(description="ISO 8601, UTC.")


class LiquidityLockData(Data):
    """A share of the liquidity that cannot be taken out."""

    address: str = Field(description="Holder of the shares, lower case: a locker, or a burn address.")
    locker: str | None = Field(
        description="Name of the locker, or the source's tag of it: untrusted text; null for a burn address "
        "or an unknown one."
    )
    percent: float = Field(description="Percent of the liquidity.")
    unlocks_at: str | None = Field(
        description="End of the lock, ISO 8601, UTC; null when it is burned, or when no source tells it."
    )
    burned: bool = Field(description="True if it can never be taken out.")


class LiquidityHandData(Data):
    """A share of the liquidity that one address can take out at any time."""

    address: str = Field(description="Lower case.")
    percent: float = Field(description="Percent of the liquidity.")
    contract: bool | None = Field(description="Whether it is a contract; null when no source tells.")
    lock_ended_at: str | None = Field(description="End of its lock, ISO 8601, UTC; null if it had none.")


class TokenLiquidity(Data):
    """Liquidity that a sale can use, on the requested chain only."""

    total_usd: float | None = Field(description="US dollars in all pairs that the source lists.")
    other_side_usd: float | None = Field(
        description="US dollars of the other tokens in these pairs: the most that selling all of the token "
        "could return. Far less than half of the total where a pair is one-sided. Null when the source does "
        "not give it."
    )
    pair_count: int | None = Field(description="Pairs that the source lists; 0 when it lists none.")
    top_pair: TopPair | None
    traded_since: str | None = Field(
        description="Creation time of the top pair, or of an older one about as deep. ISO 8601, UTC."
    )
    locked_percent: float | None = Field(
        description="Share of the liquidity that is locked or burned, in percent."
    )
    largest_wallet_percent: float | None = Field(
        description="Share of the liquidity that one wallet can take out at any time, in percent."
    )
    unlocked_percent: float | None = Field(
        description="Share of the liquidity that its listed holders can take out at any time, in percent. "
        "What is neither locked nor unlocked is held by addresses that no source lists, or in locks whose "
        "end cannot be read."
    )
    locks: list[LiquidityLockData] = Field(description="Locks in force, and what is burned.")
    unlocked_holders: list[LiquidityHandData] = Field(description="The largest first.")
    source: TokenSource | None


def build_liquidity(evidence: TokenEvidence) -> TokenLiquidity:
    """Return the liquidity on the chain, with its locks and free holders."""
    liquidity, shares = evidence.liquidity, evidence.lp_holders.shares
    no_pair = evidence.sources_without_pair[0] if evidence.market.has_no_pair else None
    since = liquidity.trading_since if liquidity else None
    return TokenLiquidity(
        total_usd=liquidity.total_usd if liquidity else None,
        other_side_usd=liquidity.other_side_usd if liquidity else None,
        pair_count=liquidity.pair_count if liquidity else 0 if no_pair else None,
        top_pair=_build_top_pair(liquidity) if liquidity else None,
        traded_since=format_timestamp(since) if since else None,
        locked_percent=evidence.lp_holders.locked_percent,
        largest_wallet_percent=evidence.lp_holders.largest_wallet_percent,
        unlocked_percent=evidence.lp_holders.unlocked_percent,
        locks=[
            LiquidityLockData(
                address=lock.address,
                locker=lock.locker,
                percent=lock.percent,
                unlocks_at=format_timestamp(lock.unlocks_at) if lock.unlocks_at else None,
                burned=lock.burned,
            )
            for lock in (shares.locks if shares else ())
        ],
        unlocked_holders=[
            LiquidityHandData(
                address=hand.address,
                percent=hand.percent,
                contract=hand.contract,
                lock_ended_at=format_timestamp(hand.lock_ended_at) if hand.lock_ended_at else None,
            )
            for hand in (shares.hands if shares else ())
        ],
        source=liquidity.source if liquidity else no_pair,
    )


def _build_top_pair(liquidity: Liquidity) -> TopPair | None:
    if liquidity.top_pair is None:
        return None
    return TopPair(
        pair_address=liquidity.top_pair,
        dex=liquidity.top_dex,
        liquidity_usd=liquidity.top_usd,
        created_at=format_timestamp(liquidity.top_created_at) if liquidity.top_created_at else None,
    )
