"""Result of a token's simulated trades.

There are two probes, and each sees what the other misses. New accounts buy and sell within one call: they
have no code, but the sender of the transaction is another account, and no time passes between the trades.
Real holders sell, with code at their address. A token is a honeypot only if both fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from centgate.crypto.token.pools import PoolKey
from centgate.crypto.token.revert_reasons import FailureReason
from centgate.crypto.token.security import HolderSales, Simulation, TradeLimit
from centgate.crypto.token.trade_records import (
    APPROVED,
    SOLD,
    HolderProbe,
    PurchaseProbe,
    TradeRecord,
)
from centgate.crypto.token.trades import TOTAL_TAX

_TAXLESS_KINDS = ("v3", "algebra")
"""Pools that refuse a payment of which a tax took a part."""
FEW_HOLDERS = 3
"""Holders that outweigh new accounts, if they all fail, or if at least half of them sell."""
HIGH_TAX_DIFFERENCE = 10.0
"""Percentage points above the lowest tax of a holder that count as a much higher tax."""
NEARLY_ALL = 0.9
"""Share of a holding of which the largest sale shows no limit, but that a part must be kept."""
_NO_REASON = FailureReason(None, None)
NO_FEATURES = "no node of this chain can simulate calls"
NOT_RUN = "the simulation did not run on the node"
EMPTY_POOL = "the pool lacks one of its sides"
NOT_BOUGHT = "the token cannot be bought at present"
NO_HOLDERS = "new accounts cannot sell, and no holder was found to try"
FEW_TRIED = "new accounts cannot sell, nor can the few holders that were found to try"
HOLDERS_FAIL = "real holders cannot sell, though a new account can right after its purchase"
FEW_FAIL = "new accounts can sell, and the few holders that were tried cannot"
FEW_SELL = "new accounts cannot sell, and too few of the holders that were tried can"
REFUSES_WALLETS = (
    "new accounts cannot sell after an approval without limit, or with the gas that a wallet sends"
)
REFUSES_APPROVAL = "the token refuses an approval without limit, for which wallets ask"
HOLDING_LIMITED = "who buys more than a small amount cannot sell, not even a part of it"
SENDER_FAILS = "new accounts can sell, but not in a transaction of their own, and no holder was found to try"
CODE_REFUSED = (
    "new accounts can sell, but none with code at their address, as simulated wallets have, and no wallet was"
    " found that can send tokens to the pool"
)
HOLDERS_DO_NOT_SEND = (
    "holders can sell only with code at their address, as simulations have: their wallets cannot send tokens"
    " to the pool"
)
CODE_UNTRIED = (
    "holders cannot sell with code at their address, as simulations have, and accounts without code could not"
    " be tried"
)
DETECTED = "new accounts can sell only in a transaction that no wallet can send, as simulations are"
WALLET_FAILS = (
    "new accounts can sell, but in a wallet's own transaction, as people sell, a router cannot, or takes more"
    " than it sells"
)
HEAVY_GAS = "a small sale uses so much gas that a larger one could not be tried"
ONLY_DIRECT = "the token sells only by a direct transfer to the pool, and refuses the simulation's router"
ONLY_TOPPED_UP = "the token taxes transfers to a pool that accepts no such tokens"
ONLY_IN_PART = "a part of what was bought can be sold, and not all of it at once"


@dataclass(frozen=True, slots=True)
class TradeProbes:
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


@dataclass(frozen=True, slots=True)
class _TradeVerdict:
    honeypot: bool | None
    explanation: str | None = None
    reason: FailureReason = _NO_REASON
    is_tax_known: bool = True
    """False if the taxes that were measured are not those of most sales."""


def summarise_trades(probes: TradeProbes) -> Simulation:
    """Return what the probes of one pool say together."""
    purchase = probes.purchase
    verdict = _judge(probes)
    taxes = _Taxes.of(probes)
    sell_tax = taxes.sell if verdict.is_tax_known else None
    return Simulation(
        succeeded=verdict.honeypot is not None or probes.has_bought,
        honeypot=verdict.honeypot,
        reason=verdict.reason.text,
        explanation=verdict.explanation or verdict.reason.explanation,
        cooldown=_has_cooldown(probes),
        origin_check=_has_origin_check(probes),
        cannot_sell_all=probes.must_keep_part or (False if probes.has_sold else None),
        buy_tax=taxes.buy,
        sell_tax=sell_tax,
        transfer_tax=taxes.transfer,
        transfer_blocked=_is_transfer_blocked(purchase),
        pair_address=probes.pool.pool_id or probes.pool.address,
        pair_empty=None if purchase is None else purchase.is_empty,
        holder_sales=_summarise_holders(probes),
        max_buy=_max_buy(purchase),
        max_sell=_max_sell(probes),
    )


def _judge(probes: TradeProbes) -> _TradeVerdict:
    purchase = probes.purchase
    if purchase is not None and purchase.is_empty:
        return _TradeVerdict(None, EMPTY_POOL)
    if probes.has_sold:
        return _judge_sold(probes)
    if probes.detects_simulation:
        return _TradeVerdict(honeypot=True, explanation=DETECTED, reason=_failure_of(probes))
    if probes.have_holders_sold and probes.do_wallets_not_send:
        return _TradeVerdict(None, HOLDERS_DO_NOT_SEND, _failure_of(probes), is_tax_known=False)
    if probes.have_holders_sold:
        return _TradeVerdict(honeypot=False, reason=_failure_of(probes))
    if probes.selling:
        return _TradeVerdict(None, FEW_SELL, _failure_of(probes), is_tax_known=False)
    if not probes.has_bought:
        return _TradeVerdict(
            None, None if _failure_of(probes).explanation else NOT_BOUGHT, _failure_of(probes)
        )
    return _judge_unsold(probes)


def _judge_sold(probes: TradeProbes) -> _TradeVerdict:
    """A new account sold; many holders that cannot are the truth unless the code at their address is why."""
    tested, purchase = probes.tested, probes.purchase
    if purchase is not None and purchase.has_sold and (doubt := _doubt_sale(probes, purchase)) is not None:
        return doubt
    if probes.do_wallets_not_send:
        return _TradeVerdict(None, HOLDERS_DO_NOT_SEND, is_tax_known=False)
    if probes.hides_from_wallets:
        return _TradeVerdict(None, CODE_REFUSED, _failure_of(probes), is_tax_known=False)
    if (failed := probes.failed_by_wallet) is not None:
        # a sale of a part that took everything has no tax, and neither is that of new accounts most people's
        is_tax_known = failed.stage == SOLD and not failed.has_sold
        return _TradeVerdict(None, WALLET_FAILS, failed.failure, is_tax_known=is_tax_known)
    if not tested or probes.selling or probes.rejects_code:
        return _TradeVerdict(honeypot=False)
    reason = next((each.small.failure for each in tested if each.small), _NO_REASON)
    if len(tested) < FEW_HOLDERS:
        return _TradeVerdict(None, FEW_FAIL, reason)
    return _TradeVerdict(honeypot=True, explanation=HOLDERS_FAIL, reason=reason)


def _doubt_sale(probes: TradeProbes, purchase: PurchaseProbe) -> _TradeVerdict | None:
    """Return the verdict if a new account sold in one way and not in another that wallets use; else None."""
    as_wallet = purchase.as_wallet
    if purchase.large is None or as_wallet is None:
        return _TradeVerdict(None, HEAVY_GAS, is_tax_known=False)
    refuses_approval = as_wallet.has_bought and as_wallet.stage < APPROVED
    if refuses_approval and not probes.have_holders_sold:  # who is refused visibly can approve an amount
        return _TradeVerdict(None, REFUSES_APPROVAL, as_wallet.failure, is_tax_known=False)
    if as_wallet.has_bought and not as_wallet.has_sold and not refuses_approval:
        return _TradeVerdict(honeypot=True, explanation=REFUSES_WALLETS, reason=as_wallet.failure)
    if probes.is_holding_limited:
        return _TradeVerdict(None, HOLDING_LIMITED, purchase.large.failure, is_tax_known=False)
    sender_fails = probes.has_origin_bought and not probes.has_origin_sold and not probes.rejects_code
    if sender_fails and not probes.tested:
        return _TradeVerdict(None, SENDER_FAILS, _failure_of(probes), is_tax_known=False)
    return None


def _judge_unsold(probes: TradeProbes) -> _TradeVerdict:
    """New accounts bought and could not sell, nor could a holder."""
    reason, tested = _failure_of(probes), probes.tested
    if unusual := _unusual_way(probes):
        return _TradeVerdict(None, unusual, reason)
    # a token may refuse code, and only a trade of new accounts, or a transfer by a wallet, would show it
    if probes.purchase is None and any(each.can_send is not False for each in tested):
        return _TradeVerdict(None, CODE_UNTRIED, reason)
    needed = FEW_HOLDERS if _may_be_pause(probes, reason) else 1
    if len(tested) < needed:
        few = FEW_TRIED if tested else NO_HOLDERS
        return _TradeVerdict(None, None if reason.explanation else few, reason)
    return _TradeVerdict(honeypot=True, reason=reason)


def _may_be_pause(probes: TradeProbes, reason: FailureReason) -> bool:
    """True if a pause between trades could be why sales fail, which ends those of recent buyers too.

    It is none if the tokens went to a tax, or a new account could sell in another way.
    """
    purchase = probes.purchase
    if purchase is not None:
        ways = [each for each in (purchase.small, purchase.other_way) if each is not None]
        if any(each.stage == SOLD for each in ways):
            return False
    return reason.code == "cooldown" or not reason.is_specific


def _unusual_way(probes: TradeProbes) -> str | None:
    """Return why a sale by a router fails and another one works; None if none works.

    Some tokens let only routers trade that they know. An approval that reports success and has no effect, or
    that ends the sale at a holder, is a trap and no such reason.
    """
    purchase = probes.purchase
    if purchase is None or purchase.small is None or purchase.other_way is None:
        return None
    if not purchase.other_way.has_sold:
        return None
    if probes.pool.kind in _TAXLESS_KINDS:
        return ONLY_TOPPED_UP if purchase.other_way.sell_tax else ONLY_IN_PART
    if purchase.small.failure.code == "no_allowance":
        return None
    holders = [each.other_way for each in probes.tested if each.other_way is not None]
    return ONLY_DIRECT if not holders or any(each.has_sold for each in holders) else None


def _failure_of(probes: TradeProbes) -> FailureReason:
    """Return why a new account could not sell, or buy, else why a holder could not.

    A pair says only that the token's transfer failed; the token's own words come first.
    """
    purchase = probes.purchase
    records = [purchase.small if purchase else None, *(probes.origin or ())]
    records += [each.small for each in probes.tested]
    failed = [record for record in records if record is not None and not record.has_sold]
    failed.sort(key=lambda record: not record.has_bought)
    reasons = [record.failure for record in failed]
    return next((each for each in reasons if each.is_specific), reasons[0] if reasons else _NO_REASON)


def _has_cooldown(probes: TradeProbes) -> bool | None:
    """True if a sale right after a purchase fails and holders can sell; None if that was not tried."""
    if probes.has_sold or probes.has_origin_sold:
        return False
    if not probes.has_bought or not probes.tested or probes.must_keep_part:
        return None
    return bool(probes.selling)


def _has_origin_check(probes: TradeProbes) -> bool | None:
    if probes.purchase is None or probes.purchase.small is None or probes.origin is None:
        return None
    if not probes.purchase.has_bought:
        return probes.has_origin_bought
    return probes.has_origin_sold and not probes.purchase.has_sold and not probes.detects_simulation


def _is_transfer_blocked(purchase: PurchaseProbe | None) -> bool | None:
    """True if a transfer to another account failed, or moved nothing; None if that says nothing.

    An account that cannot sell either may be blocked as a whole, or have to wait. Many new tokens demand a
    pause after a purchase for every receiver but the pool.
    """
    transfer = purchase.transfer if purchase else None
    if purchase is None or transfer is None or not transfer.has_bought or not purchase.has_sold:
        return None
    if transfer.stage < SOLD and transfer.failure.code == "cooldown":
        return None
    return transfer.stage < SOLD or not transfer.left


@dataclass(frozen=True, slots=True)
class _Taxes:
    """Taxes in percent, the highest over the sizes of trades."""

    buy: float | None
    sell: float | None
    transfer: float | None

    @classmethod
    def of(cls, probes: TradeProbes) -> _Taxes:
        purchase = probes.purchase
        records = [purchase.small, purchase.large] if purchase else []
        bought, sold = probes.origin or (None, None)
        by_wallet = probes.wallet[1] if probes.wallet else None
        if probes.has_wallet_lost_all:
            by_wallet = None  # only a sale of everything would say what it costs
        sales = [record for record in [*records, sold, by_wallet] if record is not None]
        if purchase is not None and purchase.other_way is not None and probes.pool.kind in _TAXLESS_KINDS:
            sales.append(purchase.other_way)
        holder_taxes = [each.tax for each in probes.selling if each.tax is not None]
        transfer = purchase.transfer if purchase else None
        # a mean: the tax of a single holder is its own
        measured = [
            _highest(_measured_sale_taxes(sales)),
            round(fmean(holder_taxes), 4) if holder_taxes else None,
        ]
        return cls(
            buy=_highest(each.buy_tax for each in [*records, bought] if each is not None),
            sell=_highest(measured),
            transfer=transfer.sell_tax if transfer is not None and transfer.stage == SOLD else None,
        )


def _measured_sale_taxes(sales: Sequence[TradeRecord]) -> Iterator[float | None]:
    """Yield taxes of sales that took place, and of those of which everything went to the tax."""
    for record in sales:
        tax = record.sell_tax
        if record.has_sold or (tax is not None and tax >= TOTAL_TAX):
            yield tax


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _summarise_holders(probes: TradeProbes) -> HolderSales | None:
    """Summarise the sales of holders; None if no sale was tried, or if the failures prove nothing."""
    tested = probes.tested
    if not tested or (probes.rejects_code and not probes.selling):
        return None
    taxes = [each.tax for each in probes.selling if each.tax is not None]
    return HolderSales(
        tested=len(tested),
        failed=len(tested) - len(probes.selling),
        siphoned=sum(each.is_siphoned for each in tested),
        average_tax=round(fmean(taxes), 4) if taxes else None,
        highest_tax=max(taxes, default=None),
        high_tax_count=sum(tax >= min(taxes) + HIGH_TAX_DIFFERENCE for tax in taxes) if taxes else None,
    )


def _max_buy(purchase: PurchaseProbe | None) -> TradeLimit | None:
    """Return the largest purchase if a small one succeeds and a large one fails."""
    record = purchase.largest_buy if purchase else None
    if purchase is None or record is None or not record.has_bought:
        return None
    return TradeLimit(
        _scale(record.received, purchase.token_decimals), _scale(record.quote_in, purchase.quote_decimals)
    )


def _max_sell(probes: TradeProbes) -> TradeLimit | None:
    """Return the largest sale if a small one succeeds and a large one fails."""
    purchase = probes.purchase
    if purchase is None:
        return None
    if (record := purchase.largest_sale) is not None and record.has_sold:
        return TradeLimit(
            _scale(record.amount, purchase.token_decimals), _scale(record.quote_out, purchase.quote_decimals)
        )
    if probes.must_keep_part:
        return None
    limited = [each.largest for each in probes.selling if each.is_limited]
    return TradeLimit(_scale(max(limited), purchase.token_decimals)) if limited else None


def _scale(amount: int, decimals: int | None) -> float | None:
    """Return an amount in whole tokens; None without decimals."""
    return None if decimals is None else amount / 10**decimals
