"""Citations of a token's evidence: the sources' own field names and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from centgate.crypto.contract.contracts import SourceRegistry
from centgate.crypto.token.liquidity_shares import LiquidityLock, LiquidityShares
from centgate.crypto.token.powers import POWER_FLAGS
from centgate.crypto.token.security import BYTECODE_FLAGS, GOPLUS_FIELDS, Holder, Simulation, TokenSource
from centgate.crypto.token.token_evidence import TokenEvidence
from centgate.crypto.token.token_rule import TokenRule
from centgate.timestamps import format_timestamp

_MAX_SHARES = 3
"""Most holders of liquidity of a kind in one citation."""
_MAX_NAMES = 12
"""Most flag names in one citation."""
FIELD_BY_SOURCE_NAME = {source_name: field for field, source_name in GOPLUS_FIELDS.items()}
"""Fields of the contract analysis by the source's own names."""


class Citation(Struct, frozen=True):
    """A value cited from a source: the source's own field name, and the value as text."""

    source: TokenSource | SourceRegistry
    field: str
    value: str | None


@cache
def list_evidence_fields(rule: TokenRule) -> tuple[str, ...]:
    """Return a rule's evidence fields, with the bytecode's reading behind that of the contract analysis."""
    inferable = [
        f"onchain:bytecode.{field}"
        for name in rule.evidence_fields
        if (field := FIELD_BY_SOURCE_NAME.get(name.removeprefix("goplus:"))) in BYTECODE_FLAGS
    ]
    return (*rule.evidence_fields, *inferable)


def cite_field(evidence: TokenEvidence, name: str) -> list[Citation]:
    """Return the citations for a field name as used in the rules, `<source>:<field>`."""
    source, _, field = name.partition(":")
    match source, field:
        case "liquidity" | "pairs", _:
            return _cite_liquidity(evidence, field)
        case "registries", _:
            return _cite_implementation(evidence)
        case "goplus", "holders":
            return [Citation("goplus", field, _format_largest(evidence.flags.holders or ()))]
        case "goplus", "lp_holders":
            shares = evidence.lp_holders.shares
            return [Citation("goplus", field, _format_shares(shares) if shares else None)]
        case "honeypotis", "summary.flags":
            names = ", ".join(flag.name for flag in evidence.simulations.service_result.flags[:_MAX_NAMES])
            return [Citation("honeypotis", field, names or None)]
        case "honeypotis", "pair.createdAtTimestamp" if not evidence.market.is_dated_by_simulation:
            return [Citation("honeypotis", field, None)]  # that of a pair which does not count
        case "goplus", _:
            return [Citation("goplus", field, evidence.flags.raw.get(field))]
        case "onchain", _:
            shown = Citation("onchain", field, _read_chain_field(evidence, field))
            return [shown, *_cite_facets(evidence, field)]
        case _:
            return [Citation("honeypotis", field, evidence.simulations.service_result.raw.get(field))]


def _cite_facets(evidence: TokenEvidence, field: str) -> Iterator[Citation]:
    """Yield the functions of a diamond's facets from which a flag of the bytecode is inferred."""
    for power in evidence.bytecode_powers:
        flag = "proxy" if power.kind == "upgrade" else POWER_FLAGS[power.kind]
        if power.facet and field == f"bytecode.{flag}":
            caller = power.caller or "unknown"
            value = f"{power.signature} of facet {power.facet}, caller: {caller}"
            yield Citation("onchain", f"{field}.inferred", value)


def _cite_implementation(evidence: TokenEvidence) -> list[Citation]:
    """Return what registries tell of the code behind a proxy or a clone, and its address on the chain."""
    source = evidence.implementation
    if source is None or not source.records:
        return []
    matches = (Citation(record.registry, "matchLevel", record.match) for record in source.records)
    return [*matches, Citation("onchain", "implementation", source.address)]


_SIMULATION_FIELDS = {
    "isHoneypot": "honeypot",
    "buyTax": "buy_tax",
    "sellTax": "sell_tax",
    "transferTax": "transfer_tax",
    "transferBlocked": "transfer_blocked",
    "cannotSellAll": "cannot_sell_all",
    "cooldown": "cooldown",
    "originCheck": "origin_check",
    "pool": "pair_address",
    "pairEmpty": "pair_empty",
    "explanation": "explanation",
}
_HOLDER_FIELDS = {
    "tested": "tested",
    "failed": "failed",
    "siphoned": "siphoned",
    "averageTax": "average_tax",
    "highestTax": "highest_tax",
}


def _read_chain_field(evidence: TokenEvidence, field: str) -> str | None:
    """Return a value that was read from the chain, as text: of the simulation, the bytecode or the owner."""
    part, _, name = field.partition(".")
    if part == "liquidity":
        shares = evidence.lp_holders.shares
        value = shares.locked_percent if shares and not shares.lists_hands else None
    elif part == "simulation":
        value = _read_simulation_field(evidence.own_simulation, name)
    elif part == "supply":
        value = evidence.supply
    elif part == "owner":
        value = getattr(evidence.owner, name, None)
    elif name == "isRead":
        value = evidence.contract.is_bytecode_read or None
    else:
        value = getattr(evidence.bytecode_flags, name, None)
    return (str(value).lower() if isinstance(value, bool) else str(value)) if value is not None else None


def _read_simulation_field(simulation: Simulation | None, name: str) -> object:
    part, _, inner = name.rpartition(".")
    if part == "holders":
        return getattr(simulation and simulation.holder_sales, _HOLDER_FIELDS[inner], None)
    if part == "maxSell":
        return getattr(simulation and simulation.max_sell, inner, None)
    return getattr(simulation, _SIMULATION_FIELDS[name], None)


def _format_shares(shares: LiquidityShares) -> str | None:
    """Return the largest shares of the liquidity that are free, and those locks that end first."""
    if not shares.lists_hands:
        return None
    hands = [
        f"{hand.address} {hand.percent:g} % free{' (contract)' if hand.contract else ''}"
        for hand in shares.hands[:_MAX_SHARES]
    ]
    by_end = sorted(shares.locks, key=lambda lock: (lock.unlocks_at is None, lock.unlocks_at, -lock.percent))
    locks = [f"{lock.address} {lock.percent:g} % {_describe_lock(lock)}" for lock in by_end[:_MAX_SHARES]]
    return ", ".join(hands + locks) or None


def _describe_lock(lock: LiquidityLock) -> str:
    if lock.burned:
        return "burned"
    return f"locked until {lock.unlocks_at:%Y-%m-%d}" if lock.unlocks_at else "locked"


def _format_largest(holders: Iterable[Holder]) -> str | None:
    shares = [f"{row.address} {row.percent:g} %" for row in holders if row.percent is not None]
    return ", ".join(shares[:3]) or None


_DEXSCREENER_FIELDS = {
    "totalUsd": "liquidity.usd",
    "otherSideUsd": "liquidity.quote",
    "tradedSince": "pairCreatedAt",
    "pairs": "pairs",
}
_GECKOTERMINAL_FIELDS = {
    "totalUsd": "reserve_in_usd",
    "tradedSince": "pool_created_at",
    "pairs": "data",
}


_OTHER_LIQUIDITY_FIELDS: dict[TokenSource, str] = {
    "goplus": "dex.liquidity",
    "honeypotis": "pair.liquidity",
    "onchain": "pools.totalUsd",
}
"""Fields of sources that are no exchange index."""


def _cite_liquidity(evidence: TokenEvidence, field: str) -> list[Citation]:
    names = {"dexscreener": _DEXSCREENER_FIELDS, "geckoterminal": _GECKOTERMINAL_FIELDS}
    if field == "pairs":
        return [Citation(source, names[source][field], "none") for source in evidence.sources_without_pair]
    liquidity = evidence.liquidity
    if field == "tradedSince" and evidence.refuted_liquidity:
        since = liquidity.trading_since if liquidity else None
        liquidity = replace(evidence.refuted_liquidity, trading_since=since)  # the chain does not tell it
    if not liquidity:
        return []
    if own_name := _OTHER_LIQUIDITY_FIELDS.get(liquidity.source):
        return [Citation(liquidity.source, own_name, f"{liquidity.total_usd}")] if field == "totalUsd" else []
    values = {
        "totalUsd": liquidity.total_usd,
        "otherSideUsd": liquidity.other_side_usd,
        "tradedSince": liquidity.trading_since and format_timestamp(liquidity.trading_since),
    }
    value, own_name = values[field], names[liquidity.source].get(field)
    return [Citation(liquidity.source, own_name, str(value))] if own_name and value is not None else []
