"""Rules for token risk: a table of flags, and a table of adjustments that limit their severity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from centgate.crypto.token.evidence import MIN_SELLABLE_USD, TokenEvidence
from centgate.crypto.token.top_pair import DAY
from centgate.crypto.token.trades import MIN_FAILED_HOLDERS

RULES_VERSION = "2026-11-23"
"""Changes with every rule change. A date."""

FlagSeverity = Literal["info", "low", "medium", "high", "critical"]
FlagKind = Literal[
    "power", "lasting_power", "hidden_power", "proxy", "share", "habit", "gap", "merit", "other"
]
"""`habit`: how it behaves when it is moved; `gap`: something is not known; `merit`: only speaks for it."""
SEVERITY_RANK: dict[FlagSeverity, int] = {"info": 0, "low": 1, "medium": 2, "high": 3, "critical": 4}
SHALLOW_USD = 10_000
WEEK, MONTH = 7 * DAY, 30 * DAY
HALF = 50.0
"""Percent of a supply, or of the liquidity, with which one hand decides."""
MANY_FAILED, SOME_FAILED, FEW_FAILED = 50.0, 10.0, 1.0
"""Percent of the tried holders that cannot sell."""
MANY_SIPHONED = 10.0
"""Percent of the tried holders whose balance was taken away."""
FEW_HANDS_PERCENT = 80.0
"""Percent of the liquidity in three hands that may be one person's."""
HEAVY_TAX, HIGH_TAX = 50.0, 20.0
TINY_SALE_PERCENT = 0.05
"""Percent of the supply below which a largest sale keeps a holding from being sold."""


@dataclass(frozen=True, slots=True)
class TokenRule:
    """One row of the table.

    The message is a sentence with `{evidence...}` placeholders. The evidence fields are `<source>:<field>`
    (`goplus:is_mintable`, `honeypotis:simulationResult.sellTax`, `onchain:simulation.isHoneypot`,
    `liquidity:...`), the decisive one first; a flag that the bytecode tells is cited from there as well.
    The subject is worded to complete "not checked: ...".
    """

    id: str
    severity: FlagSeverity
    subject: str
    message: str
    condition: Callable[[TokenEvidence], bool]
    evidence_fields: tuple[str, ...]
    kind: FlagKind = "other"
    covered_by: tuple[str, ...] = ()
    """Rules that say the same and more: if one of them applies, this one does not."""


@dataclass(frozen=True, slots=True)
class SeverityLimit:
    """Limit on the severity of some kinds of flags, with the reason as a sentence."""

    kinds: frozenset[FlagKind]
    max_severity: FlagSeverity
    condition: Callable[[TokenEvidence], bool]
    message: str


def _is_between(amount: float | None, minimum: float, below: float = float("inf")) -> bool:
    """True if the amount is known and `minimum <= amount < below`."""
    return amount is not None and minimum <= amount < below


def _is_age_between(evidence: TokenEvidence, minimum: timedelta, below: timedelta) -> bool:
    return evidence.trading_age is not None and minimum <= evidence.trading_age < below


FAILED_SALES, TAKEN_AWAY = "failed sales", "holdings taken away"
HOLDER_TAXES, SELL_LIMITS = "holders' taxes", "sell limits"
_SIMULATION_FLAGS: tuple[tuple[str, FlagSeverity, str, str], ...] = (
    ("high_fail_rate", "critical", FAILED_SALES, "A very high share of its holders could not sell."),
    ("high_siphon_rate", "critical", TAKEN_AWAY, "It was taken away from very many holders."),
    (
        "effective_honeypot_low_sell_limit",
        "critical",
        SELL_LIMITS,
        "So little may be sold at once that it cannot be sold in effect.",
    ),
    ("extremely_low_sell_limit", "critical", SELL_LIMITS, "Extremely little of it may be sold at once."),
    ("low_sell_limit", "critical", SELL_LIMITS, "Very little of it may be sold at once."),
    ("extremely_high_taxes", "critical", HOLDER_TAXES, "More than half is taken when it is traded."),
    ("medium_siphon_rate", "high", TAKEN_AWAY, "It was taken away from many holders."),
    ("medium_fail_rate", "high", FAILED_SALES, "A high share of its holders could not sell."),
    ("high_tax", "high", HOLDER_TAXES, "More than 40 % is taken when it is traded."),
    ("low_fail_rate", "medium", FAILED_SALES, "Some of its holders could not sell."),
    ("transfer_blocked", "medium", "blocked transfers", "It could not be sent from one holder to another."),
    ("one_sell_per_block_limit", "medium", SELL_LIMITS, "It can be sold only once in each block."),
    ("medium_tax", "low", HOLDER_TAXES, "More than 21 % is taken when it is traded."),
    ("high_gas", "low", "gas", "Trading it costs a great deal of gas."),
)
"""Flags of the simulation (https://docs.honeypot.is): name, severity, subject, message."""
_OTHER_SEVERITIES: tuple[FlagSeverity, ...] = ("critical", "high", "medium", "low")
_DEFAULT_SEVERITY: FlagSeverity = "medium"
"""Severity of a flag that has none."""
_HANDLED_FLAGS = frozenset(
    {"closed_source", "medium_gas", "all_snipers_honeypot", "some_snipers_honeypot", "custom_token_info"}
    | {name for name, *_ in _SIMULATION_FLAGS}
)


def _has_simulation_flag(name: str) -> Callable[[TokenEvidence], bool]:
    """Return a condition: the simulation raised this flag, except for a tax that only encodes a failure."""
    about_tax = name.endswith(("_tax", "_taxes"))
    return lambda evidence: any(
        trade.result.has_any_flag(name) and not (about_tax and evidence.is_sell_tax_placeholder(trade))
        for trade in evidence.trades
    )


def _worst_of(percents: Iterable[float | None]) -> float:
    return max((percent for percent in percents if percent is not None), default=0.0)


def _has_failed_share(minimum: float, below: float = math.inf) -> Callable[[TokenEvidence], bool]:
    """Return a condition: this percentage of the tried holders cannot sell; few failures prove no rate."""
    return lambda evidence: any(
        minimum <= (trade.failed_percent or 0) < below
        and (minimum < MANY_FAILED or (trade.holder_sales.failed or 0) >= MIN_FAILED_HOLDERS)
        for trade in evidence.trades
    )


def _has_siphoned_share(minimum: float) -> Callable[[TokenEvidence], bool]:
    """Return a condition: more than this percentage of the tried holders lost their balance."""
    return lambda evidence: _worst_of(trade.siphoned_percent for trade in evidence.trades) > minimum


def _has_holder_tax(minimum: float) -> Callable[[TokenEvidence], bool]:
    """Return a condition: holders pay at least this percentage of a sale on average."""
    return lambda evidence: _worst_of(trade.holder_sales.average_tax for trade in evidence.trades) >= minimum


def _is_any_holder_taxed_heavily(evidence: TokenEvidence) -> bool:
    return any(
        (trade.holder_sales.highest_tax or 0) >= HEAVY_TAX and trade.holder_sales.high_tax_count != 0
        for trade in evidence.trades
    )


def _controls_everything(evidence: TokenEvidence) -> bool:
    """True if one key may change taxes, exclude holders and make more of the token."""
    flags = evidence.token_flags
    powers = (flags.tax_modifiable, flags.blacklists, flags.mintable)
    return all(power is True for power in powers) and evidence.is_owner_unchecked


def _has_other_flag(severity: FlagSeverity) -> Callable[[TokenEvidence], bool]:
    return lambda evidence: any(
        (flag.severity or _DEFAULT_SEVERITY) == severity and flag.name not in _HANDLED_FLAGS
        for flag in evidence.simulation_result.flags
    )


def _build_simulation_rules() -> Iterator[TokenRule]:
    cites = ("honeypotis:summary.flags",)
    for name, severity, check, message in _SIMULATION_FLAGS:
        yield TokenRule(f"simulation_{name}", severity, check, message, _has_simulation_flag(name), cites)
    for severity in _OTHER_SEVERITIES:
        message = f"The simulation raises a flag that these rules do not know, which counts as {severity}."
        yield TokenRule(
            f"simulation_other_{severity}", severity, "other flags", message, _has_other_flag(severity), cites
        )


_BLOCKED = (
    "honeypotis:honeypotResult.isHoneypot",
    "honeypotis:honeypotResult.honeypotReason",
    "onchain:simulation.isHoneypot",
)
_RISK = ("honeypotis:summary.riskLevel", "honeypotis:simulationResult.sellTax", "onchain:simulation.sellTax")
_FAILED_SALES = (
    "honeypotis:holderAnalysis.failed",
    "honeypotis:holderAnalysis.holders",
    "onchain:simulation.holders.failed",
    "onchain:simulation.holders.tested",
)
_SIPHONED = (
    "honeypotis:holderAnalysis.siphoned",
    "honeypotis:holderAnalysis.holders",
    "onchain:simulation.holders.siphoned",
    "onchain:simulation.holders.tested",
)
_HOLDER_TAXES = (
    "honeypotis:holderAnalysis.averageTax",
    "honeypotis:holderAnalysis.highestTax",
    "honeypotis:holderAnalysis.highTaxWallets",
    "onchain:simulation.holders.averageTax",
    "onchain:simulation.holders.highestTax",
)
_LARGEST_SALE = ("honeypotis:simulationResult.maxSell.token", "onchain:simulation.maxSell.tokens")
_PAIR_DEPTH = ("honeypotis:pair.liquidity", "honeypotis:pair.reserves0", "honeypotis:pair.reserves1")
_SELL_TAX = ("goplus:sell_tax", "honeypotis:simulationResult.sellTax", "onchain:simulation.sellTax")
_BUY_TAX = ("goplus:buy_tax", "honeypotis:simulationResult.buyTax", "onchain:simulation.buyTax")
_TRANSFER_TAX = (
    "goplus:transfer_tax",
    "honeypotis:simulationResult.transferTax",
    "onchain:simulation.transferTax",
)
_OWNER = "goplus:owner_address"
_OWNERS = (_OWNER, "onchain:owner.address", "onchain:owner.kind")
_LP_HOLDERS = ("goplus:lp_holders",)
_DEPTH = ("liquidity:totalUsd", "liquidity:otherSideUsd")
SALE_SUBJECT, _HOLDERS, _LP = "whether it can be sold", "concentrated holders", "locked liquidity"

TOKEN_RULES: tuple[TokenRule, ...] = (
    # sale
    TokenRule(
        "honeypot_confirmed",
        "critical",
        SALE_SUBJECT,
        "Two sources say that it cannot be sold again: analyses of the contract, or simulated sales.",
        lambda evidence: evidence.honeypot_claims > 1,
        ("goplus:is_honeypot", *_BLOCKED, *_RISK),
    ),
    TokenRule(
        "honeypot",
        "critical",
        SALE_SUBJECT,
        "It can be bought but not sold again.",
        lambda evidence: (
            evidence.honeypot_claims == 1
            and not evidence.sale_succeeded
            and not evidence.is_sale_failure_doubtful
        ),
        ("goplus:is_honeypot", *_BLOCKED, *_RISK),
    ),
    TokenRule(
        "honeypot_disputed",
        "high",
        SALE_SUBJECT,
        "One source says that it cannot be sold again, although a simulated sale went through.",
        lambda evidence: evidence.honeypot_claims == 1 and evidence.sale_succeeded,
        ("goplus:is_honeypot", *_BLOCKED),
    ),
    TokenRule(
        "sale_failed_in_doubt",
        "high",
        SALE_SUBJECT,
        "The simulation could not sell; liquidity is too low, or the simulation too incomplete, to be sure.",
        lambda evidence: evidence.is_sale_failure_doubtful and not evidence.sale_succeeded,
        (*_BLOCKED, *_PAIR_DEPTH, "goplus:is_honeypot"),
    ),
    TokenRule(
        "no_liquidity",
        "high",
        "the pair's reserves",
        "The pair it trades in holds next to nothing, so a holder cannot sell: its liquidity was removed.",
        lambda evidence: evidence.is_liquidity_removed,
        (*_PAIR_DEPTH, *_BLOCKED),
    ),
    TokenRule(
        "cannot_sell_all",
        "high",
        "whether all of it can be sold at once",
        "A holder cannot sell the whole holding at once.",
        lambda evidence: evidence.token_flags.cannot_sell_all is True,
        ("goplus:cannot_sell_all",),
    ),
    TokenRule(
        "cannot_buy",
        "high",
        "whether it can be bought",
        "It cannot be bought on an exchange.",
        lambda evidence: evidence.token_flags.cannot_buy is True and evidence.token_flags.in_dex is not False,
        ("goplus:cannot_buy", "goplus:is_in_dex"),
    ),
    TokenRule(
        "cannot_buy_reward",
        "medium",
        "whether it can be bought",
        "It cannot be bought, and trades on no exchange, as with tokens that are only given out.",
        lambda evidence: evidence.token_flags.cannot_buy is True and evidence.token_flags.in_dex is False,
        ("goplus:cannot_buy", "goplus:is_in_dex"),
    ),
    TokenRule(
        "holders_cannot_sell",
        "critical",
        FAILED_SALES,
        "At least half of the holders at which a sale was simulated cannot sell.",
        _has_failed_share(MANY_FAILED),
        _FAILED_SALES,
        covered_by=("simulation_high_fail_rate",),
    ),
    TokenRule(
        "many_holders_cannot_sell",
        "high",
        FAILED_SALES,
        "At least a tenth of the holders at which a sale was simulated cannot sell.",
        _has_failed_share(SOME_FAILED),
        _FAILED_SALES,
        covered_by=("holders_cannot_sell", "simulation_high_fail_rate", "simulation_medium_fail_rate"),
    ),
    TokenRule(
        "some_holders_cannot_sell",
        "medium",
        FAILED_SALES,
        "Some of the holders at which a sale was simulated cannot sell.",
        _has_failed_share(FEW_FAILED, SOME_FAILED),
        _FAILED_SALES,
        covered_by=("simulation_high_fail_rate", "simulation_medium_fail_rate", "simulation_low_fail_rate"),
    ),
    TokenRule(
        "holders_siphoned",
        "critical",
        TAKEN_AWAY,
        "More than a tenth of the holders that were tried had it taken away.",
        _has_siphoned_share(MANY_SIPHONED),
        _SIPHONED,
        covered_by=("simulation_high_siphon_rate",),
    ),
    TokenRule(
        "some_holders_siphoned",
        "high",
        TAKEN_AWAY,
        "Some of the holders that were tried had it taken away.",
        _has_siphoned_share(0),
        _SIPHONED,
        covered_by=("holders_siphoned", "simulation_high_siphon_rate", "simulation_medium_siphon_rate"),
    ),
    TokenRule(
        "holder_taxes_extreme",
        "critical",
        HOLDER_TAXES,
        "Its holders pay more than half of a sale on average.",
        _has_holder_tax(HEAVY_TAX),
        _HOLDER_TAXES,
        covered_by=("simulation_extremely_high_taxes", "sell_tax_extreme"),
    ),
    TokenRule(
        "holder_taxes_high",
        "high",
        HOLDER_TAXES,
        "Its holders pay at least a fifth of a sale on average.",
        _has_holder_tax(HIGH_TAX),
        _HOLDER_TAXES,
        covered_by=(
            "holder_taxes_extreme",
            "simulation_extremely_high_taxes",
            "simulation_high_tax",
            "sell_tax_extreme",
            "sell_tax_high",
        ),
    ),
    TokenRule(
        "some_holders_taxed_heavily",
        "medium",
        HOLDER_TAXES,
        "Some of its holders pay more than half of a sale.",
        _is_any_holder_taxed_heavily,
        _HOLDER_TAXES,
        covered_by=(
            "holder_taxes_extreme",
            "holder_taxes_high",
            "simulation_extremely_high_taxes",
            "sell_tax_extreme",
            "sell_tax_high",
        ),
    ),
    TokenRule(
        "sale_limit_tiny",
        "high",
        SELL_LIMITS,
        "At most {evidence.max_sell_percent:.4g} % of the supply can be sold at once.",
        lambda evidence: _is_between(evidence.max_sell_percent, 0, TINY_SALE_PERCENT),
        _LARGEST_SALE,
    ),
    TokenRule(
        "sale_limit",
        "medium",
        SELL_LIMITS,
        "There is a largest amount that can be sold at once.",
        lambda evidence: evidence.is_sale_limited,
        _LARGEST_SALE,
        covered_by=("sale_limit_tiny",),
    ),
    TokenRule(
        "trading_cooldown",
        "medium",
        "a pause between trades",
        "A holder must wait between two trades, which can keep a sale from happening in time.",
        lambda evidence: (
            evidence.token_flags.trading_cooldown is True
            or any(trade.result.cooldown is True for trade in evidence.trades)
        ),
        ("goplus:trading_cooldown", "onchain:simulation.cooldown"),
        "habit",
    ),
    TokenRule(
        "origin_check",
        "low",
        "a check of the transaction's sender",
        "It can be bought by the transaction's sender alone, so that contracts and smart wallets cannot.",
        lambda evidence: any(trade.result.origin_check is True for trade in evidence.trades),
        ("onchain:simulation.originCheck",),
        "habit",
    ),
    # taxes
    TokenRule(
        "sell_tax_extreme",
        "critical",
        "the sell tax",
        "{evidence.sell_tax:.4g} % of every sale is taken, so most of the money, or all of it, is lost.",
        lambda evidence: _is_between(evidence.sell_tax, 50),
        _SELL_TAX,
    ),
    TokenRule(
        "sell_tax_high",
        "high",
        "the sell tax",
        "{evidence.sell_tax:.4g} % of every sale is taken.",
        lambda evidence: _is_between(evidence.sell_tax, 10, 50),
        _SELL_TAX,
    ),
    TokenRule(
        "sell_tax_medium",
        "medium",
        "the sell tax",
        "{evidence.sell_tax:.4g} % of every sale is taken.",
        lambda evidence: _is_between(evidence.sell_tax, 5, 10),
        _SELL_TAX,
    ),
    TokenRule(
        "sell_tax_low",
        "low",
        "the sell tax",
        "{evidence.sell_tax:.4g} % of every sale is taken.",
        lambda evidence: _is_between(evidence.sell_tax, 0.01, 5),
        _SELL_TAX,
    ),
    TokenRule(
        "sell_tax_unreadable",
        "high",
        "the sell tax",
        "The only sell tax reported is impossible, so how much of a sale is taken is not known.",
        lambda evidence: evidence.has_invalid_sell_tax and evidence.sell_tax is None,
        _SELL_TAX,
    ),
    TokenRule(
        "sell_tax_in_doubt",
        "medium",
        "the sell tax",
        "One of the reported sell taxes is impossible, so the other may be incomplete.",
        lambda evidence: evidence.has_invalid_sell_tax and evidence.sell_tax is not None,
        _SELL_TAX,
    ),
    TokenRule(
        "buy_tax_high",
        "high",
        "the buy tax",
        "{evidence.buy_tax:.4g} % of every purchase is taken.",
        lambda evidence: _is_between(evidence.buy_tax, 10),
        _BUY_TAX,
    ),
    TokenRule(
        "buy_tax_medium",
        "medium",
        "the buy tax",
        "{evidence.buy_tax:.4g} % of every purchase is taken.",
        lambda evidence: _is_between(evidence.buy_tax, 5, 10),
        _BUY_TAX,
    ),
    TokenRule(
        "buy_tax_low",
        "low",
        "the buy tax",
        "{evidence.buy_tax:.4g} % of every purchase is taken.",
        lambda evidence: _is_between(evidence.buy_tax, 0.01, 5),
        _BUY_TAX,
    ),
    TokenRule(
        "transfer_tax_high",
        "high",
        "the transfer tax",
        "{evidence.transfer_tax:.4g} % is taken when it is sent from one holder to another.",
        lambda evidence: _is_between(evidence.transfer_tax, 10),
        _TRANSFER_TAX,
    ),
    TokenRule(
        "transfer_tax",
        "medium",
        "the transfer tax",
        "{evidence.transfer_tax:.4g} % is taken when it is sent from one holder to another.",
        lambda evidence: _is_between(evidence.transfer_tax, 0.01, 10),
        _TRANSFER_TAX,
        "habit",
    ),
    # fraud
    TokenRule(
        "fake_token",
        "critical",
        "imitation of another token",
        "It imitates another token's name or symbol.",
        lambda evidence: evidence.token_flags.fake is True or evidence.token_flags.genuine is False,
        ("goplus:fake_token.value", "goplus:fake_token.true_token_address", "goplus:is_true_token"),
    ),
    TokenRule(
        "airdrop_scam",
        "critical",
        "fraudulent airdrops",
        "It is sent to holders unasked to lure them into a fraud.",
        lambda evidence: evidence.token_flags.airdrop_scam is True,
        ("goplus:is_airdrop_scam",),
    ),
    TokenRule(
        "gas_abuse",
        "critical",
        "abuse of the holder's gas",
        "Moving it makes the holder pay gas for the work of others.",
        lambda evidence: evidence.token_flags.gas_abuse is True,
        ("goplus:gas_abuse",),
    ),
    TokenRule(
        "serial_creator",
        "low",
        "other honeypots of its creator",
        "Its creator is linked to honeypots.",
        lambda evidence: evidence.token_flags.serial_creator is True,
        ("goplus:honeypot_with_same_creator", "goplus:creator_address"),
    ),
    # contract
    TokenRule(
        "closed_source",
        "high",
        "published source code",
        "Its source code is not published, so what it does cannot be checked.",
        lambda evidence: evidence.is_closed_source,
        (
            "goplus:is_open_source",
            "honeypotis:contractCode.rootOpenSource",
            "honeypotis:contractCode.openSource",
            "honeypotis:summary.flags",
        ),
    ),
    TokenRule(
        "upgradeable",
        "medium",
        "whether its code can be replaced",
        "It is a proxy: the account that controls it can replace its code.",
        lambda evidence: evidence.is_upgradeable is True,
        ("goplus:is_proxy", "honeypotis:contractCode.isProxy"),
        "proxy",
    ),
    TokenRule(
        "external_call",
        "medium",
        "calls to other contracts",
        "It calls other contracts while it moves, so what it does can change with them.",
        lambda evidence: evidence.token_flags.external_call is True,
        ("goplus:external_call",),
        "habit",
    ),
    # owner privileges
    TokenRule(
        "owner_changes_balances",
        "critical",
        "whether its owner can change balances",
        "Its owner can change any holder's balance.",
        lambda evidence: evidence.token_flags.changes_balances is True,
        ("goplus:owner_change_balance", *_OWNERS),
        "power",
    ),
    TokenRule(
        "self_destructs",
        "critical",
        "self-destruction",
        "It can be destroyed, and every holding with it.",
        lambda evidence: evidence.token_flags.self_destructs is True,
        ("goplus:selfdestruct", *_OWNERS),
        "power",
    ),
    TokenRule(
        "hidden_owner",
        "high",
        "a hidden owner",
        "An account keeps control of it without appearing as its owner.",
        lambda evidence: evidence.token_flags.hidden_owner is True,
        ("goplus:hidden_owner", *_OWNERS),
        "hidden_power",
    ),
    TokenRule(
        "ownership_reclaimable",
        "high",
        "whether ownership can be taken back",
        "An ownership that was given up can be taken back.",
        lambda evidence: evidence.token_flags.reclaimable is True,
        ("goplus:can_take_back_ownership", *_OWNERS),
        "hidden_power",
    ),
    TokenRule(
        "owner_can_tax_one",
        "high",
        "taxes for single holders",
        "Its owner can set a tax for a single holder.",
        lambda evidence: evidence.token_flags.personal_tax_modifiable is True,
        ("goplus:personal_slippage_modifiable", *_OWNERS),
        "lasting_power",
    ),
    TokenRule(
        "owner_can_pause",
        "high",
        "whether its owner can stop transfers",
        "Its owner can stop all transfers, sales included.",
        lambda evidence: evidence.token_flags.pausable is True,
        ("goplus:transfer_pausable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_can_change_tax",
        "medium",
        "whether its owner can change taxes",
        "Its owner can change its taxes.",
        lambda evidence: evidence.token_flags.tax_modifiable is True,
        ("goplus:slippage_modifiable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_can_blacklist",
        "medium",
        "a blacklist",
        "It has a blacklist: single holders can be kept from selling.",
        lambda evidence: evidence.token_flags.blacklists is True,
        ("goplus:is_blacklisted", *_OWNERS),
        "lasting_power",
    ),
    TokenRule(
        "owner_can_mint",
        "medium",
        "whether more of it can be made",
        "More of it can be made, which takes value from every holder.",
        lambda evidence: evidence.token_flags.mintable is True,
        ("goplus:is_mintable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_can_change_limits",
        "medium",
        "whether its owner can change trading limits",
        "Its owner can change how much may be traded at once.",
        lambda evidence: evidence.token_flags.anti_whale_modifiable is True,
        ("goplus:anti_whale_modifiable", *_OWNERS),
        "power",
    ),
    TokenRule(
        "owner_controls_everything",
        "high",
        "the owner's powers together",
        "One account can change its taxes, exclude holders and make more of it.",
        _controls_everything,
        ("goplus:slippage_modifiable", "goplus:is_blacklisted", "goplus:is_mintable", *_OWNERS),
        "lasting_power",
    ),
    TokenRule(
        "trading_limits",
        "low",
        "trading limits",
        "It limits how much may be traded or held.",
        lambda evidence: evidence.token_flags.anti_whale is True,
        ("goplus:is_anti_whale",),
    ),
    TokenRule(
        "whitelist",
        "low",
        "a whitelist",
        "It has a whitelist: some holders are spared limits or taxes.",
        lambda evidence: evidence.token_flags.whitelists is True,
        ("goplus:is_whitelisted",),
    ),
    # holders
    TokenRule(
        "owner_holds_much",
        "high",
        "the owner's share",
        "Its owner holds {evidence.owner_percent:.4g} % of the supply.",
        lambda evidence: _is_between(evidence.owner_percent, 20),
        ("goplus:owner_percent", _OWNER),
        "share",
    ),
    TokenRule(
        "creator_holds_much",
        "high",
        "the creator's share",
        "Its creator holds {evidence.creator_percent:.4g} % of the supply.",
        lambda evidence: _is_between(evidence.creator_percent, 20),
        ("goplus:creator_percent", "goplus:creator_address"),
        "share",
    ),
    TokenRule(
        "holder_dominates",
        "high",
        _HOLDERS,
        "One holder that is no pool, exchange or locker has {evidence.largest_holder_percent:.4g} % of the "
        "supply.",
        lambda evidence: _is_between(evidence.largest_holder_percent, HALF),
        ("goplus:holders",),
        "share",
    ),
    TokenRule(
        "holders_concentrated",
        "medium",
        _HOLDERS,
        "A few wallets hold {evidence.top_holders_percent:.4g} % of the supply.",
        lambda evidence: _is_between(evidence.top_holders_percent, 50),
        ("goplus:holders",),
    ),
    TokenRule(
        "few_holders",
        "medium",
        "the number of holders",
        "Only {evidence.token_flags.holder_count} addresses hold it.",
        lambda evidence: _is_between(evidence.token_flags.holder_count, 0, 50),
        ("goplus:holder_count",),
    ),
    # liquidity
    TokenRule(
        "no_pair",
        "high",
        "pairs on exchanges",
        "No exchange has a pair of it on this chain, so there is nowhere to sell it.",
        lambda evidence: evidence.has_no_pair,
        ("liquidity:pairs", "goplus:is_in_dex"),
    ),
    TokenRule(
        "low_liquidity",
        "high",
        "liquidity",
        "Only ${evidence.usable_usd:,.0f} of liquidity backs it on this chain: it can hardly be sold.",
        lambda evidence: _is_between(evidence.usable_usd, 0, MIN_SELLABLE_USD),
        _DEPTH,
    ),
    TokenRule(
        "shallow_liquidity",
        "medium",
        "liquidity",
        "Only ${evidence.usable_usd:,.0f} of liquidity backs it here: a larger sale moves its price far.",
        lambda evidence: _is_between(evidence.usable_usd, MIN_SELLABLE_USD, SHALLOW_USD),
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
        "One wallet can take out {evidence.largest_lp_wallet_percent:.4g} % of the liquidity at any time.",
        lambda evidence: _is_between(evidence.largest_lp_wallet_percent, HALF),
        _LP_HOLDERS,
        "share",
    ),
    TokenRule(
        "liquidity_in_one_contract",
        "high",
        _LP,
        "One contract that is no known locker holds {evidence.largest_lp_contract_percent:.4g} % of the "
        "liquidity without a lock.",
        lambda evidence: _is_between(evidence.largest_lp_contract_percent, HALF),
        _LP_HOLDERS,
        "share",
    ),
    TokenRule(
        "liquidity_in_few_hands",
        "high",
        _LP,
        "Three addresses or fewer can take out {evidence.few_hands_percent:.4g} % of the liquidity.",
        lambda evidence: _is_between(evidence.few_hands_percent, FEW_HANDS_PERCENT),
        _LP_HOLDERS,
        "share",
        covered_by=("liquidity_in_one_wallet", "liquidity_in_one_contract"),
    ),
    TokenRule(
        "owner_holds_liquidity",
        "high",
        _LP,
        "Its owner or creator can take out {evidence.owner_lp_percent:.4g} % of the liquidity at any time.",
        lambda evidence: _is_between(evidence.owner_lp_percent, 20),
        (*_LP_HOLDERS, _OWNER, "goplus:creator_address"),
        "share",
    ),
    TokenRule(
        "liquidity_unlocked",
        "medium",
        _LP,
        "Those who hold {evidence.unlocked_percent:.4g} % of the liquidity can take it out at any time.",
        lambda evidence: _is_between(evidence.unlocked_percent, HALF),
        _LP_HOLDERS,
        "share",
        covered_by=("liquidity_in_one_wallet", "liquidity_in_one_contract", "liquidity_in_few_hands"),
    ),
    TokenRule(
        "lock_ends_this_week",
        "high",
        "when locked liquidity is free again",
        "The lock of a large share of its liquidity ends within a week.",
        lambda evidence: _is_between(evidence.ending_lock_percent(WEEK), 20),
        _LP_HOLDERS,
        "share",
    ),
    TokenRule(
        "lock_ends_this_month",
        "medium",
        "when locked liquidity is free again",
        "The lock of a large share of its liquidity ends within thirty days.",
        lambda evidence: _is_between(evidence.ending_lock_percent(MONTH), 20),
        _LP_HOLDERS,
        "share",
        covered_by=("lock_ends_this_week",),
    ),
    # other results of the simulation
    *_build_simulation_rules(),
    TokenRule(
        "simulation_risk",
        "high",
        "the simulation's own rating",
        "The simulation rates its risk at {evidence.simulation_result.risk_level:.0f} of 100.",
        lambda evidence: (
            _is_between(evidence.simulation_result.risk_level, 60, 90)
            and not evidence.is_simulated_pair_empty
        ),
        ("honeypotis:summary.riskLevel", "honeypotis:summary.risk"),
    ),
    # missing evidence
    TokenRule(
        "no_contract_analysis",
        "medium",
        "the contract's analysis",
        "No source has analysed enough of its contract, so what its owner can do is not known.",
        lambda evidence: not evidence.is_analysed,
        ("goplus:result",),
        "gap",
    ),
    TokenRule(
        "not_simulated",
        "medium",
        "a simulated sale",
        "No sale could be simulated on a pair with money, on a chain where this is usually possible.",
        lambda evidence: evidence.is_simulation_expected and not evidence.has_sale_result,
        (
            "honeypotis:simulationSuccess",
            "honeypotis:simulationError",
            "honeypotis:pair.liquidity",
            "onchain:simulation.isHoneypot",
        ),
        "gap",
    ),
    TokenRule(
        "bytecode_only",
        "low",
        "what only source code shows",
        "Its contract is judged by its bytecode alone, which does not show every power.",
        lambda evidence: evidence.flags is None and evidence.is_bytecode_read,
        ("onchain:bytecode.isRead",),
        "gap",
    ),
    # in favour of the token
    TokenRule(
        "ownership_given_up",
        "info",
        "its owner",
        "It has no owner, so no account can use an owner's powers.",
        lambda evidence: evidence.is_ownerless,
        (_OWNER, "goplus:hidden_owner", "goplus:can_take_back_ownership", "goplus:is_proxy"),
    ),
    TokenRule(
        "liquidity_locked",
        "info",
        _LP,
        "{evidence.locked_percent:.4g} % of its liquidity is locked or burned.",
        lambda evidence: _is_between(evidence.locked_percent, 95),
        ("goplus:lp_holders",),
    ),
    TokenRule(
        "well_known",
        "info",
        "lists of trusted tokens",
        "It is on a list of trusted tokens, or traded on a large exchange.",
        lambda evidence: evidence.is_well_known,
        ("goplus:trust_list", "goplus:is_in_cex.listed"),
        "merit",
    ),
)

_CENTRALISED = "It is a well-known token, so this counts as centralised control."
_LISTED = "It is traded on a large exchange, so this counts as centralised control."


def _is_listed_only(evidence: TokenEvidence) -> bool:
    """True if a large exchange trades it and no list of trusted tokens has it: that proves less."""
    return evidence.is_well_known and not evidence.is_trusted


SEVERITY_LIMITS: tuple[SeverityLimit, ...] = (
    SeverityLimit(
        frozenset({"power"}),
        "info",
        lambda evidence: evidence.is_ownerless,
        "It has no owner, so no account can use this power.",
    ),
    SeverityLimit(
        frozenset({"lasting_power"}),
        "low",
        lambda evidence: evidence.is_ownerless,
        "It has no owner, so this can no longer be changed; what was set stays in force.",
    ),
    SeverityLimit(
        frozenset({"power", "lasting_power"}),
        "medium",
        lambda evidence: evidence.has_delayed_owner,
        "Its owner is a timelock or a governor, so holders see a change before it takes effect.",
    ),
    SeverityLimit(
        frozenset({"power", "lasting_power"}),
        "high",
        lambda evidence: evidence.has_shared_owner,
        "Its owner is a Safe that needs several signatures.",
    ),
    SeverityLimit(
        frozenset({"power", "lasting_power", "proxy", "share"}),
        "low",
        lambda evidence: evidence.is_trusted,
        _CENTRALISED,
    ),
    SeverityLimit(frozenset({"hidden_power"}), "medium", lambda evidence: evidence.is_trusted, _CENTRALISED),
    SeverityLimit(
        frozenset({"power", "lasting_power", "proxy"}),
        "medium",
        _is_listed_only,
        _LISTED,
    ),
    SeverityLimit(
        frozenset({"habit"}),
        "low",
        lambda evidence: evidence.is_trusted,
        "It is on a list of trusted tokens, which know this of it.",
    ),
    SeverityLimit(
        frozenset({"gap"}),
        "low",
        lambda evidence: evidence.is_trusted,
        "It is on a list of trusted tokens, so this alone says little.",
    ),
)
"""Limits in this order; each later one applies only if it is lower."""
