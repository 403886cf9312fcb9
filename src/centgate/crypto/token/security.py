"""Results of contract analysis and trade simulation of a token.

The flags are GoPlus's: https://docs.gopluslabs.io/reference/response-details
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field

TokenSource = Literal["goplus", "honeypotis", "onchain", "dexscreener", "geckoterminal"]
"""Sources of evidence about a token; `onchain` is everything that is read from a node."""
SOURCE_LABELS: Mapping[TokenSource, str] = {
    "goplus": "GoPlus Security",
    "honeypotis": "honeypot.is",
    "onchain": "the chain",
    "dexscreener": "DEX Screener",
    "geckoterminal": "GeckoTerminal",
}
"""Names of the sources in messages."""
BYTECODE_FLAGS = ("proxy", "mintable", "pausable", "blacklists", "tax_modifiable", "self_destructs")
"""Flags that a contract's bytecode tells without its source."""

GOPLUS_FIELDS: Mapping[str, str] = {
    "open_source": "is_open_source",
    "proxy": "is_proxy",
    "mintable": "is_mintable",
    "reclaimable": "can_take_back_ownership",
    "changes_balances": "owner_change_balance",
    "hidden_owner": "hidden_owner",
    "self_destructs": "selfdestruct",
    "external_call": "external_call",
    "gas_abuse": "gas_abuse",
    "in_dex": "is_in_dex",
    "cannot_buy": "cannot_buy",
    "cannot_sell_all": "cannot_sell_all",
    "tax_modifiable": "slippage_modifiable",
    "honeypot": "is_honeypot",
    "pausable": "transfer_pausable",
    "blacklists": "is_blacklisted",
    "whitelists": "is_whitelisted",
    "anti_whale": "is_anti_whale",
    "anti_whale_modifiable": "anti_whale_modifiable",
    "trading_cooldown": "trading_cooldown",
    "personal_tax_modifiable": "personal_slippage_modifiable",
    "airdrop_scam": "is_airdrop_scam",
    "trusted": "trust_list",
    "serial_creator": "honeypot_with_same_creator",
    "fake": "fake_token.value",
    "genuine": "is_true_token",
    "cex_listed": "is_in_cex.listed",
}
"""Fields of TokenFlags by GoPlus's field names."""


class TokenLock(Struct, frozen=True):
    """Tokens that a locker holds until a date."""

    percent: float
    """Percent of all tokens, or of all shares of the pair."""
    unlocks_at: datetime | None
    """None if the source names no date."""
    end_unreadable: bool = False
    """True if the source names an end that cannot be read, so that the lock may have ended."""

    def has_ended(self, now: datetime) -> bool:
        """True if these tokens can be moved again."""
        return self.unlocks_at is not None and self.unlocks_at <= now


class Holder(Struct, frozen=True):
    """Large holder of a token, or of the liquidity in its pairs."""

    address: str
    """Lower case."""
    tag: str | None
    contract: bool | None
    locked: bool | None
    percent: float | None
    """Percent of the supply; None if the source's figure is impossible."""
    locks: tuple[TokenLock, ...] = ()
    """Locks with their dates, as far as the source lists them."""


class DexPool(Struct, frozen=True):
    """Pair listed by GoPlus."""

    pair: str
    """Lower case; 32 bytes where the exchange's pools have no contract of their own."""
    name: str | None
    liquidity_usd: float | None


class TokenFlags(Struct, frozen=True):
    """Flags from the analysis of a token's contract. None is unknown; it never means False."""

    open_source: bool | None = None
    proxy: bool | None = None
    mintable: bool | None = None
    reclaimable: bool | None = None
    """True if renounced ownership can be taken back."""
    changes_balances: bool | None = None
    hidden_owner: bool | None = None
    self_destructs: bool | None = None
    external_call: bool | None = None
    gas_abuse: bool | None = None
    in_dex: bool | None = None
    cannot_buy: bool | None = None
    cannot_sell_all: bool | None = None
    tax_modifiable: bool | None = None
    honeypot: bool | None = None
    pausable: bool | None = None
    blacklists: bool | None = None
    whitelists: bool | None = None
    anti_whale: bool | None = None
    anti_whale_modifiable: bool | None = None
    trading_cooldown: bool | None = None
    personal_tax_modifiable: bool | None = None
    airdrop_scam: bool | None = None
    trusted: bool | None = None
    serial_creator: bool | None = None
    """True if the creator also made honeypots; set on some honest tokens too."""
    fake: bool | None = None
    """True if the token imitates another."""
    genuine: bool | None = None
    """Older field: False means that the token imitates another."""
    cex_listed: bool | None = None
    buy_tax: float | None = None
    """Percent, as the other taxes."""
    sell_tax: float | None = None
    transfer_tax: float | None = None
    owner_address: str | None = None
    """Lower case; empty if the contract has no owner."""
    owner_percent: float | None = None
    """Percent of the supply."""
    creator_address: str | None = None
    creator_percent: float | None = None
    holder_count: int | None = None
    holders: tuple[Holder, ...] | None = None
    lp_holders: tuple[Holder, ...] | None = None
    pools: tuple[DexPool, ...] | None = None
    name: str | None = None
    """Name and symbol are the token's own: untrusted text, cleaned and cut."""
    symbol: str | None = None
    supply: float | None = None
    """Whole tokens that exist."""
    note: str | None = None
    """Note of the source on other risks."""
    raw: Mapping[str, str] = field(default_factory=dict[str, str])
    """Scalar values as the source gave them, by its own names (`is_in_cex.listed`)."""
    unreadable: tuple[str, ...] = ()
    """The source's names of fields with impossible values, such as a share above 100 %."""
    partial: bool = False

    @property
    def is_well_known(self) -> bool:
        """True if it is on a list of trusted tokens or on a large exchange."""
        return bool(self.trusted or self.cex_listed)


class SimulationFlag(Struct, frozen=True):
    """Finding of the simulation, or of the history of the holders' sales."""

    name: str
    """The source's name for it, in lower case."""
    severity: str | None
    description: str | None


class HolderSales(Struct, frozen=True):
    """Result of selling the token at its real holders. None is unknown."""

    tested: int | None = None
    """Number of holders at which a sale was tried."""
    failed: int | None = None
    """Holders that could not sell."""
    siphoned: int | None = None
    """Holders whose balance was taken away."""
    average_tax: float | None = None
    """Percent of a sale, over the holders that could sell."""
    highest_tax: float | None = None
    """Percent of a sale."""
    high_tax_count: int | None = None
    """Holders that pay a much higher tax than others."""


class TradeLimit(Struct, frozen=True):
    """Largest amount that can be bought or sold at once. None is unknown."""

    tokens: float | None = None
    """Whole tokens."""
    other_side: float | None = None
    """Units of the pair's other token."""


class Simulation(Struct, frozen=True):
    """Result of buying and selling a token on a fork of the chain. None is unknown."""

    succeeded: bool = False
    honeypot: bool | None = None
    reason: str | None = None
    """Why the sale, or the simulation, failed, in the words of the source or of the token: untrusted text."""
    explanation: str | None = None
    """The same in our words, as a clause; None if the reason is not a known one."""
    cooldown: bool | None = None
    """True if a sale right after the purchase fails, and holders can sell."""
    origin_check: bool | None = None
    """True if only the sender of the transaction itself can buy."""
    cannot_sell_all: bool | None = None
    """True if holders can sell nearly their whole holding at once, and nobody a whole one."""
    buy_tax: float | None = None
    """Percent, as the other taxes; None unless the simulation succeeded."""
    sell_tax: float | None = None
    transfer_tax: float | None = None
    transfer_blocked: bool | None = None
    """True if an account that can sell cannot send the token to another account."""
    risk_level: float | None = None
    """0 to 100; a honeypot from 90."""
    flags: tuple[SimulationFlag, ...] = ()
    """The most severe first."""
    summarised: bool = True
    """True if the source looked for flags and rated the risk at all."""
    open_source: bool | None = None
    """True if the source of the code that runs is published: the token's own, for a proxy also that of the
    code behind it. Contracts that a token without a proxy calls are not considered."""
    all_open_source: bool | None = None
    """The same of every contract that a token calls, which decides if another source shows a proxy."""
    root_open_source: bool | None = None
    """The same of the token's own code alone."""
    proxy: bool | None = None
    pair_address: str | None = None
    """Lower case."""
    pair_created_at: datetime | None = None
    liquidity_usd: float | None = None
    """US dollars in the simulated pair."""
    pair_empty: bool | None = None
    """True if that pair holds nothing that the token could be sold for."""
    holder_sales: HolderSales | None = None
    max_buy: TradeLimit | None = None
    max_sell: TradeLimit | None = None
    name: str | None = None
    """Name and symbol are the token's own: untrusted text, cleaned and cut."""
    symbol: str | None = None
    decimals: int | None = None
    raw: Mapping[str, str] = field(default_factory=dict[str, str])
    """Scalar values as the source gave them, by its own names (`simulationResult.sellTax`)."""
    unreadable: tuple[str, ...] = ()
    """The source's names of fields with impossible values."""

    @property
    def is_transfer_blocked(self) -> bool:
        """True if the token's transfer itself failed, judged by the reason for the failed sale."""
        reason = (self.reason or "").upper()
        return "TRANSFER" in reason and "INSUFFICIENT" not in reason

    def has_any_flag(self, *names: str) -> bool:
        """True if any of these flags was raised."""
        return any(flag.name in names for flag in self.flags)
