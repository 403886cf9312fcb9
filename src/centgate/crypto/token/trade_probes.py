"""Everything that was tried with a token in one pool, and the facts that follow from it.

There are two probes, and each sees what the other misses. New accounts buy and sell within one call: they
have no code, but the sender of the transaction is another account, and no time passes between the trades.
Real holders sell, with code at their address. A token is a honeypot only if both fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from centgate.crypto.token.pools import PoolKey
from centgate.crypto.token.trade_records import HolderProbe, PurchaseProbe, TradeRecord

TAXLESS_KINDS = ("v3", "algebra")
"""Pools that refuse a payment of which a tax took a part."""
FEW_HOLDERS = 3
"""Holders that outweigh new accounts, if they all fail, or if at least half of them sell."""
NEARLY_ALL = 0.9
"""Share of a holding of which the largest sale shows no limit, but that a part must be kept."""


class TradeProbes(Struct, frozen=True):
    """Everything that was tried with a token in one pool."""

    pool: PoolKey
    purchase: PurchaseProbe | None
    """None if the node cannot run it, or it failed as a whole."""
    origin: tuple[TradeRecord | None, TradeRecord | None] | None = None
    """Purchase and sale by the sender of the transaction itself; None if the node cannot run it."""
    holders: Sequence[HolderProbe] = ()
    by_contract: PurchaseProbe | None = None
    """As `purchase`, in a free transaction that a contract sends, which no wallet can make; else None."""
    is_origin_lost: bool = False
    """True if the node can run the trades of `origin`, and gave no result."""
    wallet: tuple[TradeRecord | None, TradeRecord | None] | None = None
    """As `origin`, by a sender without code whose tokens a router takes; None if that was not tried."""

    @property
    def tested(self) -> list[HolderProbe]:
        """Holders that were tried."""
        return [each for each in self.holders if each.is_tested]

    @property
    def selling(self) -> list[HolderProbe]:
        """Holders that can sell."""
        return [each for each in self.holders if each.can_sell]

    @property
    def have_holders_sold(self) -> bool:
        """True if so many holders can sell that a list of exempt accounts is unlikely."""
        return len(self.selling) >= max(FEW_HOLDERS, len(self.tested) / 2)

    @property
    def has_origin_bought(self) -> bool:
        return self.origin is not None and self.origin[0] is not None and self.origin[0].has_bought

    @property
    def has_origin_sold(self) -> bool:
        return self.origin is not None and self.origin[1] is not None and self.origin[1].has_sold

    @property
    def failed_by_wallet(self) -> TradeRecord | None:
        """Failed sale of a wallet that sends it, and whose tokens a router takes; None if there is none.

        One that took everything instead of a part counts as such, unless holders show that all sales do.
        """
        sold = self.wallet[1] if self.wallet else None
        if sold is None or (sold.has_sold and not self.has_wallet_lost_all):
            return None
        return None if sold.has_sold and any(each.is_siphoned for each in self.tested) else sold

    @property
    def has_wallet_lost_all(self) -> bool:
        """True if the sale of a part took everything that the wallet had."""
        bought, sold = self.wallet or (None, None)
        return bought is not None and sold is not None and sold.is_siphoned and sold.left >= bought.received

    @property
    def is_holding_limited(self) -> bool:
        """True if a larger purchase succeeds, after which not even a small amount can be sold."""
        purchase = self.purchase
        if purchase is None or purchase.large is None or not purchase.large.has_bought:
            return False
        has_sold_part = purchase.largest_sale is not None and purchase.largest_sale.has_sold
        return not purchase.large.has_sold and not has_sold_part

    @property
    def has_bought(self) -> bool:
        """True if somebody could buy."""
        purchased = self.purchase is not None and self.purchase.has_bought
        return purchased or self.has_origin_bought

    @property
    def has_sold(self) -> bool:
        """True if a new account could sell what it bought.

        The sender of the transaction counts only if no other account could buy: it has code, by which a token
        may recognise a simulation.
        """
        if self.purchase is not None and self.purchase.has_bought:
            return self.purchase.has_sold
        return self.has_origin_sold

    @property
    def must_keep_part(self) -> bool:
        """True if nobody can sell a whole holding, and holders nearly all of it."""
        whole = [each for each in self.selling if each.full is not None]
        return (
            bool(whole)
            and not self.has_sold
            and all(each.is_limited and each.largest >= each.balance * NEARLY_ALL for each in whole)
        )

    @property
    def detects_simulation(self) -> bool:
        """True if new accounts sell only in a way that no wallet has: a contract sends, or they have code."""
        if self.purchase is None or not self.purchase.has_bought or self.purchase.has_sold:
            return False
        coded = self.purchase.with_code
        by_contract = self.by_contract is not None and self.by_contract.has_sold
        return by_contract or (coded is not None and coded.has_sold)

    @property
    def rejects_code(self) -> bool:
        """True if an account with code cannot trade: holders fail for the code that is put there."""
        coded = self.purchase.with_code if self.purchase and self.purchase.has_sold else None
        return coded is not None and not coded.has_sold

    @property
    def hides_from_wallets(self) -> bool:
        """True if a code check keeps the simulated wallets from selling, and no real one was seen to send.

        A token may check for more than code, such as a sender that is not the seller, as no wallet's is.
        """
        is_tried = self.origin is not None or self.is_origin_lost
        if not self.rejects_code or not is_tried or self.has_origin_sold:
            return False
        return not any(each.can_send for each in self.holders)

    @property
    def do_wallets_not_send(self) -> bool:
        """True if holders can sell with code at their address, and none of their wallets was seen to send."""
        sent = [each.can_send for each in self.selling]
        return False in sent and True not in sent
