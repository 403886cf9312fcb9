"""The rules that judge a token: a table of flags, and a table of what bounds their severity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from centgate.verdicts.token_facts import THIN_USD, Facts

RULES_VERSION = "2026-11-21"
"""Changes whenever a rule does."""

Severity = Literal["info", "low", "medium", "high", "critical"]
Kind = Literal["power", "lasting_power", "hidden_power", "proxy", "share", "gap", "merit", "other"]
"""A `gap` is something not known, a `merit` something that only speaks for a token."""
RANK: dict[Severity, int] = {"info": 0, "low": 1, "medium": 2, "high": 3, "critical": 4}
SHALLOW_USD = 10_000
DAY, WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    `says` is a sentence in which `{f...}` stands for a fact. `cites` names the evidence by source and field
    (`goplus:is_mintable`, `honeypotis:simulationResult.sellTax`, `liquidity:...`), what decides first.
    `check` is what the rule looks into, in words that complete "not checked: ...".
    """

    id: str
    severity: Severity
    check: str
    says: str
    when: Callable[[Facts], bool]
    cites: tuple[str, ...]
    kind: Kind = "other"


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Bounds the severity of some kinds of flags, and says why."""

    kinds: frozenset[Kind]
    most: Severity
    when: Callable[[Facts], bool]
    says: str


def _between(amount: float | None, least: float, below: float = float("inf")) -> bool:
    """Whether a known amount lies in a range."""
    return amount is not None and least <= amount < below


def _younger(f: Facts, least: timedelta, below: timedelta) -> bool:
    return f.age is not None and least <= f.age < below


_SIMULATED: tuple[tuple[str, Severity, str, str], ...] = (
    ("high_fail_rate", "critical", "failed sales", "A very high share of its holders could not sell."),
    ("high_siphon_rate", "critical", "holdings taken away", "Very many holders had it taken away from them."),
    (
        "effective_honeypot_low_sell_limit",
        "critical",
        "sell limits",
        "So little may be sold at once that it cannot be sold in effect.",
    ),
    ("extremely_low_sell_limit", "critical", "sell limits", "Extremely little of it may be sold at once."),
    ("low_sell_limit", "critical", "sell limits", "Very little of it may be sold at once."),
    ("extremely_high_taxes", "critical", "holders' taxes", "More than half is taken when it is traded."),
    ("medium_siphon_rate", "high", "holdings taken away", "Many holders had it taken away from them."),
    ("medium_fail_rate", "high", "failed sales", "A high share of its holders could not sell."),
    ("high_tax", "high", "holders' taxes", "More than 40 % is taken when it is traded."),
    ("low_fail_rate", "medium", "failed sales", "Some of its holders could not sell."),
    ("transfer_blocked", "medium", "blocked transfers", "It could not be sent from one holder to another."),
    ("one_sell_per_block_limit", "medium", "sell limits", "It can be sold only once in each block."),
    ("medium_tax", "low", "holders' taxes", "More than 21 % is taken when it is traded."),
    ("high_gas", "low", "gas", "Trading it costs a great deal of gas."),
)
"""Flags of the simulation (https://docs.honeypot.is): severity, what it looks into, what it means."""
_NEWLY: tuple[Severity, ...] = ("critical", "high", "medium", "low")
_UNSAID: Severity = "medium"
"""What a flag without a severity counts as."""
_SEEN_OTHERWISE = frozenset(
    {"closed_source", "medium_gas", "all_snipers_honeypot", "some_snipers_honeypot", "custom_token_info"}
    | {name for name, *_ in _SIMULATED}
)


def _flagged(name: str) -> Callable[[Facts], bool]:
    """A flag of the simulation, unless it is about a tax that is none."""
    about_tax = name.endswith(("_tax", "_taxes"))
    return lambda f: f.simulated.flagged(name) and not (about_tax and f.tax_means_failure)


def _newly_flagged(severity: Severity) -> Callable[[Facts], bool]:
    return lambda f: any(
        (flag.severity or _UNSAID) == severity and flag.name not in _SEEN_OTHERWISE
        for flag in f.simulated.flags
    )


def _from_simulation() -> Iterator[Rule]:
    cites = ("honeypotis:summary.flags",)
    for name, severity, check, says in _SIMULATED:
        yield Rule(f"simulation_{name}", severity, check, says, _flagged(name), cites)
    for severity in _NEWLY:
        says = f"The simulation gives a warning of a kind not known here, which counts as {severity}."
        yield Rule(
            f"simulation_other_{severity}", severity, "other flags", says, _newly_flagged(severity), cites
        )


_BLOCKED = ("honeypotis:honeypotResult.isHoneypot", "honeypotis:honeypotResult.honeypotReason")
_RISK = ("honeypotis:summary.riskLevel", "honeypotis:simulationResult.sellTax")
_PAIR_DEPTH = ("honeypotis:pair.liquidity", "honeypotis:pair.reserves0", "honeypotis:pair.reserves1")
_SELL_TAX = ("goplus:sell_tax", "honeypotis:simulationResult.sellTax")
_BUY_TAX = ("goplus:buy_tax", "honeypotis:simulationResult.buyTax")
_TRANSFER_TAX = ("goplus:transfer_tax", "honeypotis:simulationResult.transferTax")
_OWNER = "goplus:owner_address"
_DEPTH = ("liquidity:totalUsd", "liquidity:otherSideUsd")
SALE, _HOLDERS, _LP = "whether it can be sold", "concentrated holders", "locked liquidity"

RULES: tuple[Rule, ...] = (
    # the sale
    Rule(
        "honeypot_confirmed",
        "critical",
        SALE,
        "Two sources say that it cannot be sold again: the contract's analysis and a simulated sale.",
        lambda f: f.known.honeypot is True and f.sale_failed,
        ("goplus:is_honeypot", *_BLOCKED, *_RISK),
    ),
    Rule(
        "honeypot",
        "critical",
        SALE,
        "It can be bought but not sold again.",
        lambda f: (
            (f.known.honeypot is True and not f.sale_failed and not f.sale_worked)
            or (f.sale_failed and f.known.honeypot is not True and not f.sale_is_in_doubt)
        ),
        ("goplus:is_honeypot", *_BLOCKED, *_RISK),
    ),
    Rule(
        "honeypot_disputed",
        "high",
        SALE,
        "The contract's analysis says that it cannot be sold again, although a simulated sale went through.",
        lambda f: f.known.honeypot is True and f.sale_worked,
        ("goplus:is_honeypot", *_BLOCKED),
    ),
    Rule(
        "sale_failed_in_doubt",
        "high",
        SALE,
        "The simulation could not sell; liquidity is too low, or the simulation too incomplete, to be sure.",
        lambda f: f.sale_is_in_doubt,
        (*_BLOCKED, *_PAIR_DEPTH, "goplus:is_honeypot"),
    ),
    Rule(
        "no_liquidity",
        "high",
        "the pair's reserves",
        "The pair it trades in holds next to nothing, so a holder cannot sell: its liquidity was removed.",
        lambda f: f.liquidity_removed,
        (*_PAIR_DEPTH, *_BLOCKED),
    ),
    Rule(
        "cannot_sell_all",
        "high",
        "whether all of it can be sold at once",
        "A holder cannot sell the whole holding at once.",
        lambda f: f.known.cannot_sell_all is True,
        ("goplus:cannot_sell_all",),
    ),
    Rule(
        "cannot_buy",
        "high",
        "whether it can be bought",
        "It cannot be bought on an exchange.",
        lambda f: f.known.cannot_buy is True and f.known.in_dex is not False,
        ("goplus:cannot_buy", "goplus:is_in_dex"),
    ),
    Rule(
        "cannot_buy_reward",
        "medium",
        "whether it can be bought",
        "It cannot be bought, and trades on no exchange, as with tokens that are only given out.",
        lambda f: f.known.cannot_buy is True and f.known.in_dex is False,
        ("goplus:cannot_buy", "goplus:is_in_dex"),
    ),
    Rule(
        "trading_cooldown",
        "medium",
        "a pause between trades",
        "A holder must wait between two trades, which can keep a sale from happening in time.",
        lambda f: f.known.trading_cooldown is True,
        ("goplus:trading_cooldown",),
    ),
    # taxes
    Rule(
        "sell_tax_extreme",
        "critical",
        "the sell tax",
        "{f.sell_tax:.4g} % of every sale is taken, so most of the money, or all of it, is lost.",
        lambda f: _between(f.sell_tax, 50),
        _SELL_TAX,
    ),
    Rule(
        "sell_tax_high",
        "high",
        "the sell tax",
        "{f.sell_tax:.4g} % of every sale is taken.",
        lambda f: _between(f.sell_tax, 10, 50),
        _SELL_TAX,
    ),
    Rule(
        "sell_tax_medium",
        "medium",
        "the sell tax",
        "{f.sell_tax:.4g} % of every sale is taken.",
        lambda f: _between(f.sell_tax, 5, 10),
        _SELL_TAX,
    ),
    Rule(
        "sell_tax_low",
        "low",
        "the sell tax",
        "{f.sell_tax:.4g} % of every sale is taken.",
        lambda f: _between(f.sell_tax, 0.01, 5),
        _SELL_TAX,
    ),
    Rule(
        "sell_tax_unreadable",
        "high",
        "the sell tax",
        "The only figure for its sell tax cannot be one, so how much of a sale is taken is not known.",
        lambda f: f.sell_tax_unreadable and f.sell_tax is None,
        _SELL_TAX,
    ),
    Rule(
        "sell_tax_in_doubt",
        "medium",
        "the sell tax",
        "One of the figures for its sell tax cannot be one, so the other may not be the whole truth.",
        lambda f: f.sell_tax_unreadable and f.sell_tax is not None,
        _SELL_TAX,
    ),
    Rule(
        "buy_tax_high",
        "high",
        "the buy tax",
        "{f.buy_tax:.4g} % of every purchase is taken.",
        lambda f: _between(f.buy_tax, 10),
        _BUY_TAX,
    ),
    Rule(
        "buy_tax_medium",
        "medium",
        "the buy tax",
        "{f.buy_tax:.4g} % of every purchase is taken.",
        lambda f: _between(f.buy_tax, 5, 10),
        _BUY_TAX,
    ),
    Rule(
        "buy_tax_low",
        "low",
        "the buy tax",
        "{f.buy_tax:.4g} % of every purchase is taken.",
        lambda f: _between(f.buy_tax, 0.01, 5),
        _BUY_TAX,
    ),
    Rule(
        "transfer_tax_high",
        "high",
        "the transfer tax",
        "{f.transfer_tax:.4g} % is taken when it is sent from one holder to another.",
        lambda f: _between(f.transfer_tax, 10),
        _TRANSFER_TAX,
    ),
    Rule(
        "transfer_tax",
        "medium",
        "the transfer tax",
        "{f.transfer_tax:.4g} % is taken when it is sent from one holder to another.",
        lambda f: _between(f.transfer_tax, 0.01, 10),
        _TRANSFER_TAX,
    ),
    # fraud
    Rule(
        "fake_token",
        "critical",
        "imitation of another token",
        "It imitates another token's name or symbol.",
        lambda f: f.known.fake is True or f.known.genuine is False,
        ("goplus:fake_token.value", "goplus:fake_token.true_token_address", "goplus:is_true_token"),
    ),
    Rule(
        "airdrop_scam",
        "critical",
        "fraudulent airdrops",
        "It is handed out unasked to lure holders to a fraud.",
        lambda f: f.known.airdrop_scam is True,
        ("goplus:is_airdrop_scam",),
    ),
    Rule(
        "gas_abuse",
        "critical",
        "abuse of the holder's gas",
        "Moving it makes the holder pay for work that is somebody else's.",
        lambda f: f.known.gas_abuse is True,
        ("goplus:gas_abuse",),
    ),
    Rule(
        "serial_creator",
        "low",
        "other honeypots of its creator",
        "Its creator is linked to honeypots.",
        lambda f: f.known.serial_creator is True,
        ("goplus:honeypot_with_same_creator", "goplus:creator_address"),
    ),
    # the contract
    Rule(
        "closed_source",
        "high",
        "published source code",
        "Its source code is not published, so what it does cannot be checked.",
        lambda f: f.closed_source,
        (
            "goplus:is_open_source",
            "honeypotis:contractCode.rootOpenSource",
            "honeypotis:contractCode.openSource",
            "honeypotis:summary.flags",
        ),
    ),
    Rule(
        "upgradeable",
        "medium",
        "whether its code can be replaced",
        "It is a proxy: whoever controls it can replace its code.",
        lambda f: f.upgradeable is True,
        ("goplus:is_proxy", "honeypotis:contractCode.isProxy"),
        "proxy",
    ),
    Rule(
        "external_call",
        "medium",
        "calls to other contracts",
        "It calls other contracts while it moves, so what it does can change with them.",
        lambda f: f.known.external_call is True,
        ("goplus:external_call",),
    ),
    # what its owner can do
    Rule(
        "owner_changes_balances",
        "critical",
        "whether its owner can change balances",
        "Its owner can change any holder's balance.",
        lambda f: f.known.changes_balances is True,
        ("goplus:owner_change_balance", _OWNER),
        "power",
    ),
    Rule(
        "self_destructs",
        "critical",
        "self-destruction",
        "It can be destroyed, and every holding with it.",
        lambda f: f.known.self_destructs is True,
        ("goplus:selfdestruct", _OWNER),
        "power",
    ),
    Rule(
        "hidden_owner",
        "high",
        "a hidden owner",
        "Somebody keeps control of it without showing as its owner.",
        lambda f: f.known.hidden_owner is True,
        ("goplus:hidden_owner", _OWNER),
        "hidden_power",
    ),
    Rule(
        "ownership_reclaimable",
        "high",
        "whether ownership can be taken back",
        "An ownership that was given up can be taken back.",
        lambda f: f.known.reclaimable is True,
        ("goplus:can_take_back_ownership", _OWNER),
        "hidden_power",
    ),
    Rule(
        "owner_can_tax_one",
        "high",
        "taxes for single holders",
        "Its owner can set a tax for a single holder.",
        lambda f: f.known.personal_tax_modifiable is True,
        ("goplus:personal_slippage_modifiable", _OWNER),
        "lasting_power",
    ),
    Rule(
        "owner_can_pause",
        "high",
        "whether its owner can stop transfers",
        "Its owner can stop all transfers, sales included.",
        lambda f: f.known.pausable is True,
        ("goplus:transfer_pausable", _OWNER),
        "power",
    ),
    Rule(
        "owner_can_change_tax",
        "medium",
        "whether its owner can change taxes",
        "Its owner can change its taxes.",
        lambda f: f.known.tax_modifiable is True,
        ("goplus:slippage_modifiable", _OWNER),
        "power",
    ),
    Rule(
        "owner_can_blacklist",
        "medium",
        "a blacklist",
        "It has a blacklist: single holders can be kept from selling.",
        lambda f: f.known.blacklists is True,
        ("goplus:is_blacklisted", _OWNER),
        "lasting_power",
    ),
    Rule(
        "owner_can_mint",
        "medium",
        "whether more of it can be made",
        "More of it can be made, which takes value from every holder.",
        lambda f: f.known.mintable is True,
        ("goplus:is_mintable", _OWNER),
        "power",
    ),
    Rule(
        "owner_can_change_limits",
        "medium",
        "whether its owner can change trading limits",
        "Its owner can change how much may be traded at once.",
        lambda f: f.known.anti_whale_modifiable is True,
        ("goplus:anti_whale_modifiable", _OWNER),
        "power",
    ),
    Rule(
        "trading_limits",
        "low",
        "trading limits",
        "It limits how much may be traded or held.",
        lambda f: f.known.anti_whale is True,
        ("goplus:is_anti_whale",),
    ),
    Rule(
        "whitelist",
        "low",
        "a whitelist",
        "It has a whitelist: some holders are spared limits or taxes.",
        lambda f: f.known.whitelists is True,
        ("goplus:is_whitelisted",),
    ),
    # who holds it
    Rule(
        "owner_holds_much",
        "high",
        "the owner's share",
        "Its owner holds {f.owner_percent:.4g} % of the supply.",
        lambda f: _between(f.owner_percent, 20),
        ("goplus:owner_percent", _OWNER),
        "share",
    ),
    Rule(
        "creator_holds_much",
        "high",
        "the creator's share",
        "Its creator holds {f.creator_percent:.4g} % of the supply.",
        lambda f: _between(f.creator_percent, 20),
        ("goplus:creator_percent", "goplus:creator_address"),
        "share",
    ),
    Rule(
        "holders_concentrated",
        "medium",
        _HOLDERS,
        "A few wallets hold {f.top_holders_percent:.4g} % of the supply.",
        lambda f: _between(f.top_holders_percent, 50),
        ("goplus:holders",),
    ),
    Rule(
        "few_holders",
        "medium",
        "the number of holders",
        "Only {f.known.holder_count} addresses hold it.",
        lambda f: _between(f.known.holder_count, 0, 50),
        ("goplus:holder_count",),
    ),
    # what stands against a sale
    Rule(
        "no_pair",
        "high",
        "pairs on exchanges",
        "No exchange has a pair of it on this chain, so there is nowhere to sell it.",
        lambda f: f.no_pair,
        ("liquidity:pairs", "goplus:is_in_dex"),
    ),
    Rule(
        "low_liquidity",
        "high",
        "liquidity",
        "Only ${f.usable_usd:,.0f} stand behind it on this chain: it can hardly be sold.",
        lambda f: _between(f.usable_usd, 0, THIN_USD),
        _DEPTH,
    ),
    Rule(
        "shallow_liquidity",
        "medium",
        "liquidity",
        "Only ${f.usable_usd:,.0f} stand behind it on this chain: a larger sale moves its price far.",
        lambda f: _between(f.usable_usd, THIN_USD, SHALLOW_USD),
        _DEPTH,
    ),
    Rule(
        "new_pair",
        "high",
        "how long it has been traded",
        "It has been traded for less than a day.",
        lambda f: _younger(f, timedelta(0), DAY),
        ("liquidity:tradedSince", "honeypotis:pair.createdAtTimestamp"),
    ),
    Rule(
        "young_pair",
        "medium",
        "how long it has been traded",
        "It has been traded for less than a week.",
        lambda f: _younger(f, DAY, WEEK),
        ("liquidity:tradedSince", "honeypotis:pair.createdAtTimestamp"),
    ),
    Rule(
        "liquidity_in_one_wallet",
        "high",
        _LP,
        "One wallet can take out {f.largest_lp_wallet_percent:.4g} % of the liquidity at any time.",
        lambda f: _between(f.largest_lp_wallet_percent, 80),
        ("goplus:lp_holders",),
        "share",
    ),
    # what the simulation saw besides
    *_from_simulation(),
    Rule(
        "simulation_risk",
        "high",
        "the simulation's own rating",
        "The simulation rates its risk at {f.simulated.risk_level:.0f} of 100.",
        lambda f: _between(f.simulated.risk_level, 60, 90) and not f.pair_is_empty,
        ("honeypotis:summary.riskLevel", "honeypotis:summary.risk"),
    ),
    # what is missing
    Rule(
        "no_contract_analysis",
        "medium",
        "the contract's analysis",
        "No source has analysed enough of its contract, so what its owner can do is not known.",
        lambda f: not f.analysed,
        ("goplus:result",),
        "gap",
    ),
    Rule(
        "not_simulated",
        "medium",
        "a simulated sale",
        "No sale could be simulated on a pair with money, on a chain where this is usually possible.",
        lambda f: (
            (f.pair_is_empty and f.traded_elsewhere)
            or (f.simulation_gap != "chain_not_covered" and not (f.simulated.succeeded or f.sale_failed))
        ),
        ("honeypotis:simulationSuccess", "honeypotis:simulationError", "honeypotis:pair.liquidity"),
        "gap",
    ),
    # what speaks for it
    Rule(
        "ownership_given_up",
        "info",
        "its owner",
        "Nobody owns it, so nobody can use an owner's powers.",
        lambda f: f.ownerless,
        (_OWNER, "goplus:hidden_owner", "goplus:can_take_back_ownership", "goplus:is_proxy"),
    ),
    Rule(
        "liquidity_locked",
        "info",
        _LP,
        "{f.locked_percent:.4g} % of its liquidity is locked or burned.",
        lambda f: _between(f.locked_percent, 95),
        ("goplus:lp_holders",),
    ),
    Rule(
        "well_known",
        "info",
        "lists of trusted tokens",
        "It is on a list of trusted tokens, or traded on a large exchange.",
        lambda f: f.well_known,
        ("goplus:trust_list", "goplus:is_in_cex.listed"),
        "merit",
    ),
)

ADJUSTMENTS: tuple[Adjustment, ...] = (
    Adjustment(
        frozenset({"power"}),
        "info",
        lambda f: f.ownerless,
        "Nobody owns it, so nobody can use this power.",
    ),
    Adjustment(
        frozenset({"lasting_power"}),
        "low",
        lambda f: f.ownerless,
        "Nobody owns it, so nobody can change this now; what was set stays in force.",
    ),
    Adjustment(
        frozenset({"power", "lasting_power", "proxy", "share"}),
        "low",
        lambda f: f.well_known,
        "It is a well-known token, so this counts as centralised control.",
    ),
    Adjustment(
        frozenset({"hidden_power"}),
        "medium",
        lambda f: f.well_known,
        "It is a well-known token, so this counts as centralised control.",
    ),
    Adjustment(
        frozenset({"gap"}),
        "low",
        lambda f: f.well_known,
        "It is a well-known token, so this alone says little.",
    ),
)
