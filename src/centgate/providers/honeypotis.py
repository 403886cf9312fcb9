"""honeypot.is: simulated buys and sells of a token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from centgate.facts.tokens import Simulation, SimulationFlag
from centgate.provider import About, Provider, reported
from centgate.readings import address, at, items, name, number, pool, since_1970, text, usd
from centgate.text import cleaned
from centgate.upstream import Rate

_LEVELS = {"very_low": 0, "low": 1, "medium": 20, "high": 60, "very_high": 80, "honeypot": 90}
"""Where each word of `summary.risk` begins on its scale of 0 to 100."""
_SEVERITIES = {20: "critical", 16: "high", 12: "medium", 8: "low", 4: "info"}
"""The words for `severityIndex`, each from this figure up; the gravest first."""
_GRAVITY = {word: index for index, word in _SEVERITIES.items()}
_MOST_FLAGS = 1000
"""Flags that are read; a few dozen kinds exist."""
_DEPTH = 3
"""Objects within objects that are read."""
_TAXES = ("buyTax", "sellTax", "transferTax")
_DUST_USD = 1.0
"""A pair worth less holds nothing that could be sold for."""


class HoneypotIs(Provider):
    """Whether a token can be sold, tried out on a simulated pool; ethereum, base and bsc only."""

    about = About(
        "honeypotis",
        "honeypot.is",
        docs_url="https://docs.honeypot.is",
        url="https://api.honeypot.is",
        terms="Free without a key; its terms of 2023-12-05 forbid reselling the API or giving it to third "
        "parties, so switch it off where that applies.",
        rate=Rate(120),
    )
    CHAINS = frozenset({1, 8453, 56})

    def covers(self, chain_id: int | None) -> bool:
        return chain_id in self.CHAINS

    @reported
    async def simulate(self, chain_id: int, token: str) -> Simulation:
        """What came of buying and selling a token; NoData where there is no pair to try it on.

        https://docs.honeypot.is/ishoneypot
        """
        params = {"address": token, "chainID": str(chain_id)}
        reply = await self.upstream.get(self.url("/v2/IsHoneypot"), params=params, accept=(404,))
        if reply.status == 404:
            if reply.body[:1] == b"{" and "no pairs" in str(reply.json().get("error")).lower():
                raise self.nothing("no pair of this token to simulate a sale on")
            raise self.upstream.failure(reply)
        body: dict[str, Any] = reply.json()
        raw = dict(_single_values(body))
        about = address(raw.get("token.address"))
        if about not in (None, token.lower()):
            if token.lower() not in (_pair(raw), pool(raw.get("pair.pair.address"))):
                raise self.failed("answered about another token")
            # asked about a pair, it answers about the token in it
            raise self.nothing(f"no token at {token.lower()}, which is a pair")
        if "simulationSuccess" not in body:
            raise self.failed("answered without a simulation")
        return _simulation(body, raw)


def _simulation(body: dict[str, Any], raw: Mapping[str, str]) -> Simulation:
    succeeded = body["simulationSuccess"] is True
    liquidity = usd(raw.get("pair.liquidity"))
    said = {tax: raw.get(f"simulationResult.{tax}") for tax in _TAXES} if succeeded else {}
    taxes = {tax: _tax(percent) for tax, percent in said.items()}
    return Simulation(
        succeeded=succeeded,
        honeypot=_yes_or_no(raw.get("honeypotResult.isHoneypot")),
        reason=raw.get("honeypotResult.honeypotReason") or raw.get("simulationError") or None,
        buy_tax=taxes.get("buyTax"),
        sell_tax=taxes.get("sellTax"),
        transfer_tax=taxes.get("transferTax"),
        risk_level=_risk_level(raw),
        flags=tuple(sorted(_flags(body), key=lambda flag: -_GRAVITY.get(flag.severity or "", 0))),
        summarised=isinstance(body.get("summary"), dict),
        open_source=_yes_or_no(raw.get("contractCode.rootOpenSource", raw.get("contractCode.openSource"))),
        proxy=_yes_or_no(raw.get("contractCode.isProxy")),
        pair_address=_pair(raw),
        pair_created_at=since_1970(raw.get("pair.createdAtTimestamp")),
        liquidity_usd=liquidity,
        pair_empty=_is_empty(liquidity, raw),
        raw=raw,
        unreadable=tuple(f"simulationResult.{tax}" for tax in said if said[tax] and taxes[tax] is None),
    )


def _pair(raw: Mapping[str, str]) -> str | None:
    return pool(raw.get("pairAddress"))


def _single_values(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """What is text, a number or a truth value, with its path (`pair.pair.name`), as text."""
    for key, value in node.items():
        if isinstance(value, dict):
            if path.count(".") < _DEPTH:
                yield from _single_values(cast(dict[str, Any], value), f"{path}{key}.")
        elif isinstance(value, bool):
            yield path + key, str(value).lower()
        elif isinstance(value, str | int | float):
            yield path + key, cleaned(str(value), 120) or ""


def _flags(body: dict[str, Any]) -> Iterator[SimulationFlag]:
    """Each flag once: those of the summary, then those of the older list, which are names alone."""
    seen: set[str] = set()
    for each in [*items(at(body, "summary", "flags")), *items(body.get("flags"))][:_MOST_FLAGS]:
        entry = cast(dict[str, Any], each) if isinstance(each, dict) else {"flag": each}
        called = (name(entry.get("flag")) or "").lower()
        if called and called not in seen:
            seen.add(called)
            yield SimulationFlag(called, _severity(entry), cleaned(text(entry.get("description")), 160))


def _severity(flag: Mapping[str, Any]) -> str | None:
    """Its word, or the word for its figure."""
    word, index = (name(flag.get("severity")) or "").lower(), number(flag.get("severityIndex"))
    if word in _GRAVITY or index is None:
        return word if word in _GRAVITY else None
    return next((word for least, word in _SEVERITIES.items() if index >= least), "info")


def _risk_level(raw: Mapping[str, str]) -> float | None:
    level = number(raw.get("summary.riskLevel"))
    return level if level is not None else _LEVELS.get(raw.get("summary.risk", "").lower())


def _is_empty(liquidity: float | None, raw: Mapping[str, str]) -> bool | None:
    if liquidity is not None:
        return liquidity < _DUST_USD
    reserves = [number(raw.get(f"pair.reserves{side}")) for side in (0, 1)]
    known = [reserve for reserve in reserves if reserve is not None]
    return min(known) <= 1 if known else None


def _tax(said: str | None) -> float | None:
    """Percent; None where it cannot be a tax. Simulated amounts are rounded, so it may stray a little."""
    percent = number(said)
    if percent is None or not -1 <= percent <= 101:
        return None
    return min(max(round(percent, 4), 0.0), 100.0)


def _yes_or_no(said: str | None) -> bool | None:
    return {"true": True, "false": False}.get(said or "")
