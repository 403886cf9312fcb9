"""Evidence about the liquidity of a token: what is locked, and who can take out the rest. No I/O."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from centgate.chains import well_known_chain
from centgate.crypto.token.evidence.ownership import OwnershipEvidence
from centgate.crypto.token.liquidity_shares import LiquidityShares, split_liquidity
from centgate.crypto.token.lockers import LOCKERS
from centgate.crypto.token.security import Holder, TokenFlags


class LpHolderEvidence(Struct, frozen=True, dict=True):
    """Shares of the liquidity of a token's pairs, in percent; None if no source lists their holders."""

    now: datetime
    chain_id: int | None
    flags: TokenFlags
    """Of the contract analysis, completed by the bytecode."""
    locked_by_chain: tuple[Holder, ...] | None
    """Burn addresses and lockers that hold shares of the top pair, as the chain shows them."""
    ownership: OwnershipEvidence

    @cached_property
    def shares(self) -> LiquidityShares | None:
        """Holders of the liquidity; None if no source lists them.

        By the contract analysis; else by the chain, where only lockers and burn addresses are looked for.
        """
        lockers = LOCKERS.get(well_known_chain(self.chain_id or 0), {})
        listed = split_liquidity(self.flags.lp_holders, self.now, lockers=lockers)
        if listed is not None:
            return listed
        if self.locked_by_chain is None:
            return None
        shown = split_liquidity(self.locked_by_chain, self.now, lockers=lockers)
        return replace(shown or LiquidityShares((), ()), lists_hands=False)

    @cached_property
    def locked_percent(self) -> float | None:
        """Share that cannot be withdrawn now."""
        return self.shares.locked_percent if self.shares else None

    @cached_property
    def unaccounted_percent(self) -> float | None:
        """Share outside of known lockers, where only those were looked for."""
        shares = self.shares
        return None if shares is None or shares.lists_hands else round(100 - shares.locked_percent, 4)

    # those who can take out liquidity

    @cached_property
    def _hands(self) -> LiquidityShares | None:
        """The shares if those who can take out liquidity are listed."""
        return self.shares if self.shares and self.shares.lists_hands else None

    @cached_property
    def unlocked_percent(self) -> float | None:
        """Share that its holders can withdraw at any time."""
        return self._hands.unlocked_percent if self._hands else None

    @cached_property
    def few_hands_percent(self) -> float | None:
        """Share of the three largest hands."""
        return self._hands.few_hands_percent if self._hands else None

    @cached_property
    def largest_wallet_percent(self) -> float | None:
        """Share that one wallet can withdraw at once."""
        return self._hands.largest_percent(contract=False) if self._hands else None

    @cached_property
    def wallets_percent(self) -> float | None:
        """Share that wallets together can withdraw at once."""
        return self._hands.wallets_percent if self._hands else None

    @cached_property
    def largest_contract_percent(self) -> float | None:
        """Share that one contract without a lock can withdraw at once."""
        return self._hands.largest_percent(contract=True) if self._hands else None

    @cached_property
    def owner_percent(self) -> float | None:
        """Share that owner and creator can withdraw at once."""
        owners = (self.ownership.address, self.flags.creator_address)
        return self._hands.percent_of(owners) if self._hands else None

    def ending_lock_percent(self, within: timedelta) -> float | None:
        """Return the share whose lock ends within this time."""
        return self._hands.ending_percent(self.now, within) if self._hands else None
