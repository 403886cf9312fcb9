"""Rules on a token's holders and on the liquidity in its pairs."""

from __future__ import annotations

from datetime import timedelta

from centgate.crypto.token.evidence.market import MIN_SELLABLE_USD
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import AmountRange, TokenRule
from centgate.crypto.token.top_pair import DAY

SHALLOW_USD = 10_000
WEEK, MONTH = 7 * DAY, 30 * DAY
HALF = 50.0
"""Percent of a supply, or of the liquidity, with which one hand decides."""
FEW_HANDS_PERCENT = 80.0
"""Percent of the liquidity in three hands that may be one person's."""
_HOLDERS, _LP = "concentrated holders", "locked liquidity"
_OWNER = "goplus:owner_address"
_LP_HOLDERS = ("goplus:lp_holders",)
_DEPTH = ("liquidity:totalUsd", "liquidity:otherSideUsd")


def _is_age_between(evidence: TokenEvidence, minimum: timedelta, below: timedelta) -> bool:
    return evidence.market.trading_age is not None and minimum <= evidence.market.trading_age < below


MARKET_RULES: tuple[TokenRule, ...] = (
    # holders
    TokenRule(
        "owner_holds_much",
        "high",
        "the owner's share",
        "Its owner holds {amount:.4g} % of the supply.",
        AmountRange(lambda evidence: evidence.holders.owner_percent, 20),
        ("goplus:owner_percent", _OWNER),
        "share",
    ),
    TokenRule(
        "creator_holds_much",
        "high",
        "the creator's share",
        "Its creator holds {amount:.4g} % of the supply.",
        AmountRange(lambda evidence: evidence.holders.creator_percent, 20),
        ("goplus:creator_percent", "goplus:creator_address"),
        "share",
    ),
    TokenRule(
        "holder_dominates",
        "high",
        _HOLDERS,
        "One holder that is no pool, exchange or locker has {amount:.4g} % of the supply.",
        AmountRange(lambda evidence: evidence.holders.largest_percent, HALF),
        ("goplus:holders",),
        "share",
    ),
    TokenRule(
        "holders_concentrated",
        "medium",
        _HOLDERS,
        "A few wallets hold {amount:.4g} % of the supply.",
        AmountRange(lambda evidence: evidence.holders.top_percent, 50),
        ("goplus:holders",),
    ),
    TokenRule(
        "few_holders",
        "medium",
        "the number of holders",
        "Only {amount} addresses hold it.",
        AmountRange(lambda evidence: evidence.flags.holder_count, 0, 50, unit="addresses"),
        ("goplus:holder_count",),
    ),
    # liquidity
    TokenRule(
        "no_pair",
        "high",
        "pairs on exchanges",
        "No exchange index that answered lists a pair of it on this chain: no place to sell it is known.",
        lambda evidence: evidence.market.has_no_pair,
        ("liquidity:pairs", "goplus:is_in_dex"),
    ),
    TokenRule(
        "low_liquidity",
        "high",
        "liquidity",
        "Only ${amount:,.0f} of liquidity backs it on this chain: it can hardly be sold.",
        AmountRange(lambda evidence: evidence.market.usable_usd, 0, MIN_SELLABLE_USD, unit="$"),
        _DEPTH,
    ),
    TokenRule(
        "shallow_liquidity",
        "medium",
        "liquidity",
        "Only ${amount:,.0f} of liquidity backs it here: a larger sale moves its price far.",
        AmountRange(lambda evidence: evidence.market.usable_usd, MIN_SELLABLE_USD, SHALLOW_USD, unit="$"),
        _DEPTH,
    ),
    TokenRule(
        "new_pair",
        "high",
        "how long it has been traded",
        "It has been traded for less than a day.",
        lambda evidence: _is_age_between(evidence, timedelta(0), DAY),
        ("liquidity:tradedSince", "honeypotis:pair.createdAtTimestamp"),
    ),
    TokenRule(
        "young_pair",
        "medium",
        "how long it has been traded",
        "It has been traded for less than a week.",
        lambda evidence: _is_age_between(evidence, DAY, WEEK),
        ("liquidity:tradedSince", "honeypotis:pair.createdAtTimestamp"),
    ),
    TokenRule(
        "liquidity_in_one_wallet",
        "high",
        _LP,
        "One wallet can take out {amount:.4g} % of the liquidity at any time.",
        AmountRange(lambda evidence: evidence.lp_holders.largest_wallet_percent, HALF),
        _LP_HOLDERS,
        "share",
    ),
    TokenRule(
        "liquidity_in_one_contract",
        "high",
        _LP,
        "One contract holds {amount:.4g} % of the liquidity, and no lock in force covers it.",
        AmountRange(lambda evidence: evidence.lp_holders.largest_contract_percent, HALF),
        _LP_HOLDERS,
        "share",
    ),
    TokenRule(
        "liquidity_in_wallets",
        "high",
        _LP,
        "Wallets, which may be one person's, can take out {amount:.4g} % of the liquidity at any time.",
        AmountRange(lambda evidence: evidence.lp_holders.wallets_percent, HALF),
        _LP_HOLDERS,
        "share",
        covered_by=("liquidity_in_one_wallet",),
    ),
    TokenRule(
        "liquidity_in_few_hands",
        "high",
        _LP,
        "Three addresses or fewer can take out {amount:.4g} % of the liquidity.",
        AmountRange(lambda evidence: evidence.lp_holders.few_hands_percent, FEW_HANDS_PERCENT),
        _LP_HOLDERS,
        "share",
        covered_by=("liquidity_in_one_wallet", "liquidity_in_one_contract", "liquidity_in_wallets"),
    ),
    TokenRule(
        "owner_holds_liquidity",
        "high",
        _LP,
        "Its owner or creator can take out {amount:.4g} % of the liquidity at any time.",
        AmountRange(lambda evidence: evidence.lp_holders.owner_percent, 20),
        (*_LP_HOLDERS, _OWNER, "goplus:creator_address"),
        "share",
    ),
    TokenRule(
        "liquidity_unlocked",
        "medium",
        _LP,
        "Those who hold {amount:.4g} % of the liquidity can take it out at any time.",
        AmountRange(lambda evidence: evidence.lp_holders.unlocked_percent, HALF),
        _LP_HOLDERS,
        "share",
        covered_by=(
            "liquidity_in_one_wallet",
            "liquidity_in_one_contract",
            "liquidity_in_wallets",
            "liquidity_in_few_hands",
        ),
    ),
    TokenRule(
        "liquidity_not_locked",
        "medium",
        _LP,
        "{amount:.4g} % of the liquidity is neither burned nor in a known locker.",
        AmountRange(lambda evidence: evidence.lp_holders.unaccounted_percent, HALF),
        ("onchain:liquidity.lockedPercent",),
        "share",
    ),
    TokenRule(
        "lock_ends_this_week",
        "high",
        "when locked liquidity is free again",
        "The lock of a large share of its liquidity ends within a week.",
        AmountRange(lambda evidence: evidence.lp_holders.ending_lock_percent(WEEK), 20),
        _LP_HOLDERS,
        "share",
    ),
    TokenRule(
        "lock_ends_this_month",
        "medium",
        "when locked liquidity is free again",
        "The lock of a large share of its liquidity ends within thirty days.",
        AmountRange(lambda evidence: evidence.lp_holders.ending_lock_percent(MONTH), 20),
        _LP_HOLDERS,
        "share",
        covered_by=("lock_ends_this_week",),
    ),
)
