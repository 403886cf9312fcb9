"""Result of a token's simulated trades: the verdict, taxes, limits, and sales of holders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from msgspec import Struct

from centgate.crypto.token.security import HolderSales, Simulation, TradeLimit
from centgate.crypto.token.trade_probes import TAXLESS_KINDS, TradeProbes
from centgate.crypto.token.trade_records import SOLD, PurchaseProbe, TradeRecord
from centgate.crypto.token.trade_verdict import judge_trades
from centgate.crypto.token.trades import TOTAL_TAX

HIGH_TAX_DIFFERENCE = 10.0
"""Percentage points above the lowest tax of a holder that count as a much higher tax."""


def summarise_trades(probes: TradeProbes) -> Simulation:
    """Return what the probes of one pool say together."""
    purchase = probes.purchase
    verdict = judge_trades(probes)
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


class _Taxes(Struct, frozen=True):
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
        if purchase is not None and purchase.other_way is not None and probes.pool.kind in TAXLESS_KINDS:
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
