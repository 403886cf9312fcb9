"""What the analysis of a token's contract found, in our words, read from GoPlus's.

https://docs.gopluslabs.io/reference/response-details
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

FLAGS: Mapping[str, str] = {
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
"""Our words for the flags, and GoPlus's."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One of the largest holders of a token, or of the liquidity in its pairs."""

    address: str
    """Lower case."""
    tag: str | None
    contract: bool | None
    locked: bool | None
    percent: float | None
    """Of the supply; None where the source's figure cannot be true."""


@dataclass(frozen=True, slots=True)
class DexPool:
    """A pair that GoPlus lists."""

    pair: str
    """Lower case; 32 bytes where the exchange's pools have no contract of their own."""
    name: str | None
    liquidity_usd: float | None


@dataclass(frozen=True, slots=True)
class TokenFlags:
    """What the analysis of a token's contract found. None is what it does not say; it is never False."""

    open_source: bool | None = None
    proxy: bool | None = None
    mintable: bool | None = None
    reclaimable: bool | None = None
    """Whether an ownership that was given up can be taken back."""
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
    """Whether the creator also made honeypots; set on some honest tokens too."""
    fake: bool | None = None
    """Whether it imitates another token."""
    genuine: bool | None = None
    """False says the same in an older word."""
    cex_listed: bool | None = None
    buy_tax: float | None = None
    """Percent, as the other taxes."""
    sell_tax: float | None = None
    transfer_tax: float | None = None
    owner_address: str | None = None
    """Lower case; empty where the contract has no owner."""
    owner_percent: float | None = None
    """Of the supply."""
    creator_address: str | None = None
    creator_percent: float | None = None
    holder_count: int | None = None
    holders: tuple[Holder, ...] | None = None
    lp_holders: tuple[Holder, ...] | None = None
    pools: tuple[DexPool, ...] | None = None
    note: str | None = None
    """Words of the source on other risks."""
    raw: Mapping[str, str] = field(default_factory=dict[str, str])
    """The single values as the source gave them, by its own names (`is_in_cex.listed`)."""
    unreadable: tuple[str, ...] = ()
    """The source's names of what it gives and cannot be true, such as a share above the whole."""
    partial: bool = False


@dataclass(frozen=True, slots=True)
class SimulationFlag:
    """Something the simulation, or the history of the holders' sales, drew attention to."""

    name: str
    """The source's name for it, in lower case."""
    severity: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of buying and selling a token on a copy of the chain. None is what was not found out."""

    succeeded: bool = False
    honeypot: bool | None = None
    reason: str | None = None
    """What stopped the sale, or the simulation, in the source's words."""
    buy_tax: float | None = None
    """Percent, as the other taxes; None unless the simulation succeeded."""
    sell_tax: float | None = None
    transfer_tax: float | None = None
    risk_level: float | None = None
    """0 to 100; a honeypot from 90."""
    flags: tuple[SimulationFlag, ...] = ()
    """The gravest first."""
    summarised: bool = True
    """Whether the source looked for flags and rated the risk at all."""
    open_source: bool | None = None
    """Whether its own source is published; that of what it calls is not asked."""
    proxy: bool | None = None
    pair_address: str | None = None
    """Lower case."""
    pair_created_at: datetime | None = None
    liquidity_usd: float | None = None
    """US dollars in the pair it was tried on."""
    pair_empty: bool | None = None
    """Whether that pair holds nothing that the token could be sold for."""
    raw: Mapping[str, str] = field(default_factory=dict[str, str])
    """The single values as the source gave them, by its own names (`simulationResult.sellTax`)."""
    unreadable: tuple[str, ...] = ()
    """The source's names of taxes that cannot be."""

    @property
    def transfer_blocked(self) -> bool:
        """Whether the token itself refused to move, as told by what stopped the sale."""
        said = (self.reason or "").upper()
        return "TRANSFER" in said and "INSUFFICIENT" not in said

    def flagged(self, *names: str) -> bool:
        """Whether any of these flags was raised."""
        return any(flag.name in names for flag in self.flags)
