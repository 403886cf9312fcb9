"""honeypot.is: simulated buys and sells of a token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from centgate.chains import from_chain_seconds
from centgate.coercion import (
    as_address,
    as_amount,
    as_clean_name,
    as_count,
    as_decimals,
    as_list,
    as_number,
    as_pool_id,
    as_text,
    as_usd,
    get_path,
)
from centgate.crypto.token.revert_reasons import explain_reason
from centgate.crypto.token.security import HolderSales, Simulation, SimulationFlag, TradeLimit
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.rate_limiter import RateLimit
from centgate.sanitize import clean_line

_RISK_LEVELS = {"very_low": 0, "low": 1, "medium": 20, "high": 60, "very_high": 80, "honeypot": 90}
"""Lower bound of each word of `summary.risk` on the scale of 0 to 100."""
_SEVERITIES = {20: "critical", 16: "high", 12: "medium", 8: "low", 4: "info"}
"""Words for `severityIndex` by lower bound, the most severe first."""
_SEVERITY_RANK = {word: index for index, word in _SEVERITIES.items()}
_MAX_FLAGS = 1000
"""Flags that are read; a few dozen kinds exist."""
_MAX_DEPTH = 3
"""Levels of nested objects that are read."""
_TAXES = ("buyTax", "sellTax", "transferTax")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_DUST_USD = 1.0
"""A pair worth less has nothing that the token could be sold for."""


class HoneypotIs(Provider):
    """Simulation of buying and selling a token; ethereum, base and bsc only."""

    info = ProviderInfo(
        "honeypotis",
        "honeypot.is",
        docs_url="https://docs.honeypot.is",
        url="https://api.honeypot.is",
        resale="forbidden",
        terms="Free without a key; its terms of 2023-12-05 forbid reselling the API or giving it to third "
        "parties, so switch it off where that applies.",
        rate_limit=RateLimit(120),
    )
    CHAINS = frozenset({1, 8453, 56})

    def supports_chain(self, chain_id: int | None) -> bool:
        return chain_id in self.CHAINS

    @instrumented
    async def simulate_trade(self, chain_id: int, token: str) -> Simulation:
        """Simulate buying and selling a token; NoData if there is no pair to simulate on.

        https://docs.honeypot.is/ishoneypot
        """
        params = {"address": token, "chainID": str(chain_id)}
        reply = await self.upstream.get(self.url("/v2/IsHoneypot"), params=params, accept=(404,))
        if reply.status == 404:
            if reply.body[:1] == b"{" and "no pairs" in str(reply.parse_object().get("error")).lower():
                raise self.no_data("no pair of this token to simulate a sale on")
            raise self.upstream.error_for_status(reply)
        body = reply.parse_object()
        raw = dict(_scalars(body))
        if any(as_count(raw.get(name, chain_id)) != chain_id for name in ("chain.id", "pair.chainId")):
            raise self.invalid_response("returned data of another chain")
        token_address = as_address(raw.get("token.address"))
        if token_address not in (None, token.lower()):
            if token.lower() not in (_pair_address(raw), as_pool_id(raw.get("pair.pair.address"))):
                raise self.invalid_response("returned data of another token")
            # for the address of a pair it returns data of the token in it
            raise self.no_data(f"no token at {token.lower()}, which is a pair")
        if _parse_bool(raw.get("simulationSuccess")) is None:
            # taken for a failure, it would be one that the source does not tell of
            raise self.invalid_response("returned no simulation")
        return _parse_simulation(chain_id, body, raw)


def _parse_simulation(chain_id: int, body: dict[str, Any], raw: Mapping[str, str]) -> Simulation:
    succeeded = _parse_bool(raw.get("simulationSuccess")) is True
    liquidity = as_usd(raw.get("pair.liquidity"))
    raw_taxes = {tax: raw.get(f"simulationResult.{tax}") for tax in _TAXES} if succeeded else {}
    reason = raw.get("honeypotResult.honeypotReason") or raw.get("simulationError") or None
    taxes = {tax: _parse_tax(percent) for tax, percent in raw_taxes.items()}
    return Simulation(
        succeeded=succeeded,
        honeypot=_parse_bool(raw.get("honeypotResult.isHoneypot")),
        reason=reason,
        explanation=explain_reason(reason),
        buy_tax=taxes.get("buyTax"),
        sell_tax=taxes.get("sellTax"),
        transfer_tax=taxes.get("transferTax"),
        risk_level=_parse_risk_level(raw),
        flags=tuple(sorted(_parse_flags(body), key=lambda flag: -_SEVERITY_RANK.get(flag.severity or "", 0))),
        summarised=isinstance(body.get("summary"), dict),
        open_source=_parse_open_source(raw),
        all_open_source=_parse_all_open_source(raw),
        root_open_source=_parse_bool(raw.get("contractCode.rootOpenSource")),
        proxy=_parse_bool(raw.get("contractCode.isProxy")),
        pair_address=_pair_address(raw),
        pair_created_at=from_chain_seconds(raw.get("pair.createdAtTimestamp"), chain_id),
        liquidity_usd=liquidity,
        pair_empty=_is_pair_empty(liquidity, raw),
        holder_sales=_parse_holder_sales(raw),
        max_buy=_parse_limit(raw, "maxBuy"),
        max_sell=_parse_limit(raw, "maxSell"),
        name=as_clean_name(raw.get("token.name")),
        symbol=as_clean_name(raw.get("token.symbol")),
        decimals=as_decimals(raw.get("token.decimals")),
        raw=raw,
        unreadable=(
            *(f"simulationResult.{tax}" for tax in raw_taxes if raw_taxes[tax] and taxes[tax] is None),
            *(["honeypotResult.isHoneypot"] if _is_verdict_unreadable(body, raw) else []),
            *(["flags"] if any(not _parse_flag_name(each) for each in _list_flags(body)) else []),
        ),
    )


def _is_verdict_unreadable(body: dict[str, Any], raw: Mapping[str, str]) -> bool:
    is_given = get_path(body, "honeypotResult", "isHoneypot") is not None
    return is_given and _parse_bool(raw.get("honeypotResult.isHoneypot")) is None


def _parse_open_source(raw: Mapping[str, str]) -> bool | None:
    """Return the state of the code that runs: `openSource` counts every contract that a token calls.

    A proxy's own code may be published while the code behind it is not. Without a proxy, the contracts that
    are called besides do not count.
    """
    root = _parse_bool(raw.get("contractCode.rootOpenSource"))
    if root is None or _parse_bool(raw.get("contractCode.isProxy")):
        return _parse_all_open_source(raw)
    return root


def _parse_all_open_source(raw: Mapping[str, str]) -> bool | None:
    """Return the state of the code of every contract that a token calls, its own included."""
    whole, root = (_parse_bool(raw.get(f"contractCode.{name}")) for name in ("openSource", "rootOpenSource"))
    return False if root is False else whole


def _parse_holder_sales(raw: Mapping[str, str]) -> HolderSales | None:
    """Parse the sales that were simulated at holders; None without a readable figure of them."""
    counts = {
        name: as_count(raw.get(f"holderAnalysis.{name}"))
        for name in ("holders", "successful", "failed", "siphoned", "highTaxWallets")
    }
    tested, successful, failed = counts["holders"], counts["successful"], counts["failed"]
    if successful is not None and tested is None and failed is not None:
        tested = successful + failed
    if successful is not None and failed is None and tested is not None:
        failed = max(tested - successful, 0)
    sales = HolderSales(
        tested=tested,
        failed=failed,
        siphoned=counts["siphoned"],
        average_tax=_parse_tax(raw.get("holderAnalysis.averageTax")),
        highest_tax=_parse_tax(raw.get("holderAnalysis.highestTax")),
        high_tax_count=counts["highTaxWallets"],
    )
    return None if sales == HolderSales() else sales


def _parse_limit(raw: Mapping[str, str], name: str) -> TradeLimit | None:
    """Parse the largest purchase or sale; None if there is no limit."""
    tokens, other_side = (
        as_amount(raw.get(f"simulationResult.{name}.{side}")) for side in ("token", "withToken")
    )
    return None if tokens is None and other_side is None else TradeLimit(tokens, other_side)


def _pair_address(raw: Mapping[str, str]) -> str | None:
    return as_pool_id(raw.get("pairAddress"))


def _scalars(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield texts, numbers and booleans as text, with their path (`pair.pair.name`)."""
    for key, value in node.items():
        if isinstance(value, dict):
            if path.count(".") < _MAX_DEPTH:
                yield from _scalars(cast(dict[str, Any], value), f"{path}{key}.")
        elif isinstance(value, bool):
            yield path + key, str(value).lower()
        elif isinstance(value, str | int | float):
            yield path + key, clean_line(str(value), 120) or ""


def _parse_flags(body: dict[str, Any]) -> Iterator[SimulationFlag]:
    """Yield each flag once: those of the summary, then those of the older list of names."""
    names: set[str] = set()
    for entry in _list_flags(body):
        flag_name = _parse_flag_name(entry)
        if flag_name and flag_name not in names:
            names.add(flag_name)
            yield SimulationFlag(
                flag_name, _parse_severity(entry), clean_line(as_text(entry.get("description")), 160)
            )


def _list_flags(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of both lists; what is no list is one entry."""
    listed: list[Any] = []
    for flags in (get_path(body, "summary", "flags"), body.get("flags")):
        listed += [{}] if flags is not None and not isinstance(flags, list) else as_list(flags)
    return [
        cast(dict[str, Any], each) if isinstance(each, dict) else {"flag": each}
        for each in listed[:_MAX_FLAGS]
    ]


def _parse_flag_name(entry: Mapping[str, Any]) -> str:
    """Return the name in lower case; empty without one."""
    return (as_clean_name(entry.get("flag")) or "").lower()


def _parse_severity(flag: Mapping[str, Any]) -> str | None:
    """Return the severity word of a flag, or the word for its index."""
    word, index = (as_clean_name(flag.get("severity")) or "").lower(), as_number(flag.get("severityIndex"))
    if word in _SEVERITY_RANK or index is None:
        return word if word in _SEVERITY_RANK else None
    return next((word for threshold, word in _SEVERITIES.items() if index >= threshold), "info")


def _parse_risk_level(raw: Mapping[str, str]) -> float | None:
    level = as_number(raw.get("summary.riskLevel"))
    return level if level is not None else _RISK_LEVELS.get(raw.get("summary.risk", "").lower())


def _is_pair_empty(liquidity: float | None, raw: Mapping[str, str]) -> bool | None:
    if liquidity is not None:
        return liquidity < _DUST_USD
    reserves = [as_number(raw.get(f"pair.reserves{side}")) for side in (0, 1)]
    known = [reserve for reserve in reserves if reserve is not None]
    return min(known) <= 1 if known else None


def _parse_tax(value: str | None) -> float | None:
    """Parse percent; None if out of range, with a tolerance since simulated amounts are rounded."""
    percent = as_number(value)
    if percent is None or not -1 <= percent <= 101:
        return None
    return min(max(round(percent, 4), 0.0), 100.0)


def _parse_bool(value: str | None) -> bool | None:
    return _BOOLEANS.get((value or "").lower())
