"""Verdict on a token's simulated trades: honeypot or not, and why; None if the probes do not decide it."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.token.revert_reasons import FailureReason
from centgate.crypto.token.trade_probes import FEW_HOLDERS, TAXLESS_KINDS, TradeProbes
from centgate.crypto.token.trade_records import APPROVED, SOLD, PurchaseProbe

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
    "holders sold with code at their address, as simulations have; their wallets cannot send tokens to the"
    " pool, and whether a router could sell for them without it was not tried"
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


class TradeVerdict(Struct, frozen=True):
    """Verdict, and what the token or the simulation says about it."""

    honeypot: bool | None
    """None if the probes do not decide it."""
    explanation: str | None = None
    reason: FailureReason = _NO_REASON
    is_tax_known: bool = True
    """False if the taxes that were measured are not those of most sales."""


def judge_trades(probes: TradeProbes) -> TradeVerdict:
    """Return the verdict on the trades of one pool."""
    purchase = probes.purchase
    if purchase is not None and purchase.is_empty:
        return TradeVerdict(None, EMPTY_POOL)
    if probes.has_sold:
        return _judge_sold(probes)
    if probes.detects_simulation:
        return TradeVerdict(honeypot=True, explanation=DETECTED, reason=_failure_of(probes))
    if probes.have_holders_sold and probes.do_wallets_not_send:
        return TradeVerdict(None, HOLDERS_DO_NOT_SEND, _failure_of(probes), is_tax_known=False)
    if probes.have_holders_sold:  # that a few of them cannot is not why new accounts fail
        return TradeVerdict(honeypot=False, reason=_failure_of(replace(probes, holders=probes.selling)))
    if probes.selling:
        return TradeVerdict(None, FEW_SELL, _failure_of(probes), is_tax_known=False)
    if not probes.has_bought:
        return TradeVerdict(
            None, None if _failure_of(probes).explanation else NOT_BOUGHT, _failure_of(probes)
        )
    return _judge_unsold(probes)


def _judge_sold(probes: TradeProbes) -> TradeVerdict:
    """A new account sold; many holders that cannot are the truth unless the code at their address is why."""
    tested, purchase = probes.tested, probes.purchase
    if purchase is not None and purchase.has_sold and (doubt := _doubt_sale(probes, purchase)) is not None:
        return doubt
    if probes.do_wallets_not_send:
        return TradeVerdict(None, HOLDERS_DO_NOT_SEND, is_tax_known=False)
    if probes.hides_from_wallets:
        return TradeVerdict(None, CODE_REFUSED, _failure_of(probes), is_tax_known=False)
    if (failed := probes.failed_by_wallet) is not None:
        # a sale of a part that took everything has no tax, and neither is that of new accounts most people's
        is_tax_known = failed.stage == SOLD and not failed.has_sold
        return TradeVerdict(None, WALLET_FAILS, failed.failure, is_tax_known=is_tax_known)
    if not tested or probes.selling or probes.rejects_code:
        return TradeVerdict(honeypot=False)
    reason = next((each.small.failure for each in tested if each.small), _NO_REASON)
    if len(tested) < FEW_HOLDERS:
        return TradeVerdict(None, FEW_FAIL, reason)
    return TradeVerdict(honeypot=True, explanation=HOLDERS_FAIL, reason=reason)


def _doubt_sale(probes: TradeProbes, purchase: PurchaseProbe) -> TradeVerdict | None:
    """Return the verdict if a new account sold in one way and not in another that wallets use; else None."""
    as_wallet = purchase.as_wallet
    if purchase.large is None or as_wallet is None:
        return TradeVerdict(None, HEAVY_GAS, is_tax_known=False)
    refuses_approval = as_wallet.has_bought and as_wallet.stage < APPROVED
    if refuses_approval and not probes.have_holders_sold:  # who is refused visibly can approve an amount
        return TradeVerdict(None, REFUSES_APPROVAL, as_wallet.failure, is_tax_known=False)
    if as_wallet.has_bought and not as_wallet.has_sold and not refuses_approval:
        return TradeVerdict(honeypot=True, explanation=REFUSES_WALLETS, reason=as_wallet.failure)
    if probes.is_holding_limited:
        return TradeVerdict(None, HOLDING_LIMITED, purchase.large.failure, is_tax_known=False)
    sender_fails = probes.has_origin_bought and not probes.has_origin_sold and not probes.rejects_code
    if sender_fails and not probes.tested:
        return TradeVerdict(None, SENDER_FAILS, _failure_of(probes), is_tax_known=False)
    return None


def _judge_unsold(probes: TradeProbes) -> TradeVerdict:
    """New accounts bought and could not sell, nor could a holder."""
    reason, tested = _failure_of(probes), probes.tested
    if unusual := _unusual_way(probes):
        return TradeVerdict(None, unusual, reason)
    # a token may refuse code, and only a trade of new accounts, or a transfer by a wallet, would show it
    if probes.purchase is None and any(each.can_send is not False for each in tested):
        return TradeVerdict(None, CODE_UNTRIED, reason)
    needed = FEW_HOLDERS if _may_be_pause(probes, reason) else 1
    if len(tested) < needed:
        few = FEW_TRIED if tested else NO_HOLDERS
        return TradeVerdict(None, None if reason.explanation else few, reason)
    return TradeVerdict(honeypot=True, reason=reason)


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
    if probes.pool.kind in TAXLESS_KINDS:
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
