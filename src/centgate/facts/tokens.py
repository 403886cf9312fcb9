"""What the analysis of a token's contract found, in our words, read from GoPlus's.

https://docs.gopluslabs.io/reference/response-details
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from centgate.readings import address, count, items, name, number, pool, usd
from centgate.text import cleaned

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
_INNER = {"fake_token": "value", "is_in_cex": "listed"}
"""What an object of flags says where a plain value stands in its place."""
_ROWS, _POOLS = 10, 100
"""Rows that are read of a list of holders, as many as are documented, and of a list of pairs."""
_ROUNDING = 1e-6
"""A share this little above the whole is the whole."""


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


def token_flags(row: dict[str, Any], *, partial: bool) -> TokenFlags:
    """What a row of its answer says."""
    raw = _single_values(row)
    reading = _Reading(row, raw)
    flags: dict[str, Any] = {ours: _flag(raw.get(theirs)) for ours, theirs in FLAGS.items()}
    return TokenFlags(
        **flags,
        buy_tax=reading.percent("buy_tax"),
        sell_tax=reading.percent("sell_tax"),
        transfer_tax=reading.percent("transfer_tax"),
        owner_address=reading.address("owner_address"),
        owner_percent=reading.percent("owner_percent"),
        creator_address=reading.address("creator_address") or None,
        creator_percent=reading.percent("creator_percent"),
        # a token that nobody holds is one whose holders were not counted
        holder_count=count(raw.get("holder_count")) or None,
        holders=reading.holders("holders"),
        lp_holders=reading.holders("lp_holders"),
        pools=_pools(row.get("dex")),
        note=raw.get("note") or raw.get("other_potential_risks") or None,
        raw=raw,
        unreadable=tuple(dict.fromkeys(reading.unreadable)),
        partial=partial,
    )


def _single_values(row: dict[str, Any]) -> dict[str, str]:
    """What is text or a number, also one level down (`is_in_cex.listed`), as text; null is left out."""
    values: dict[str, str] = {}
    for key, value in row.items():
        inner = cast(dict[str, Any], value) if isinstance(value, dict) else {_INNER.get(key, ""): value}
        for part, single in inner.items():
            if isinstance(single, str | int | float):
                said = str(int(single)) if isinstance(single, bool) else str(single)
                values[f"{key}.{part}" if part else key] = cleaned(said, 200) or ""
    return values


def _flag(said: str | None) -> bool | None:
    """A flag is "1" or "0"; some are counts. Anything else is unknown."""
    told = number(said)
    return None if told is None or told < 0 else told > 0


def _share(said: Any) -> float | None:
    """A fraction of one in percent; None where it cannot be one."""
    told = number(said)
    if told is None or not -_ROUNDING <= told <= 1 + _ROUNDING:
        return None
    return round(min(max(told, 0.0), 1.0) * 100, 6)


class _Reading:
    """Reads shares and addresses, and remembers which said something that cannot be true."""

    def __init__(self, row: Mapping[str, Any], raw: dict[str, str]) -> None:
        self._row, self._raw = row, raw
        self.unreadable: list[str] = []

    def percent(self, name: str) -> float | None:
        return self._percent(name, self._raw.get(name))

    def _percent(self, name: str, said: Any) -> float | None:
        percent = _share(said)
        if percent is None and said not in (None, ""):
            self.unreadable.append(name)
        return percent

    def address(self, name: str) -> str | None:
        """An address; empty where there is nobody. What is none is no evidence either, whatever it says."""
        said = self._row.get(name)
        if said is None or said == "":
            return said
        found = address(said)
        if found is None:
            self.unreadable.append(name)
            self._raw.pop(name, None)
        return found

    def holders(self, name: str) -> tuple[Holder, ...] | None:
        """None where the source gives no list; a row without an address is none."""
        rows = self._row.get(name)
        if not isinstance(rows, list):
            return None
        read = [self._holder(name, row) for row in _objects(rows)[:_ROWS]]
        return tuple(holder for holder in read if holder)

    def _holder(self, within: str, row: dict[str, Any]) -> Holder | None:
        holder = address(row.get("address"))
        if holder is None:
            self.unreadable.append(f"{within}.address")
            return None
        return Holder(
            address=holder,
            tag=name(row.get("tag")),
            contract=_flag(row.get("is_contract")),
            locked=_flag(row.get("is_locked", row.get("locked"))),
            percent=self._percent(f"{within}.percent", row.get("percent")),
        )


def _pools(rows: Any) -> tuple[DexPool, ...] | None:
    if not isinstance(rows, list):
        return None
    return tuple(
        DexPool(pair, name(row.get("name")), usd(row.get("liquidity")))
        for row in _objects(rows)[:_POOLS]
        if (pair := pool(row.get("pair")))
    )


def _objects(rows: Any) -> list[dict[str, Any]]:
    return [cast(dict[str, Any], row) for row in items(rows) if isinstance(row, dict)]
