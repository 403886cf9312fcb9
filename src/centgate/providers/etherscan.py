"""Etherscan: verified source code, on every chain with one key."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import orjson

from centgate.errors import (
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
)
from centgate.facts.contracts import Created, ProxyClaim, Published, an_address, licence, named
from centgate.provider import About, Provider, reported
from centgate.readings import count, name, since_1970
from centgate.text import cleaned
from centgate.upstream import Rate

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

EXPLORERS = {
    1: "https://etherscan.io",
    8453: "https://basescan.org",
    56: "https://bscscan.com",
    137: "https://polygonscan.com",
    42161: "https://arbiscan.io",
    10: "https://optimistic.etherscan.io",
}
_NOTHING = ("not verified", "no data found", "no records found", "no transactions found")
"""What `result` or `message` says when the answer is that there is nothing."""
_KEY = ("invalid api key", "missing api key", "missing/invalid")
_PLAN = ("not supported for this chain", "upgrade your api plan", "unsupported chainid")
_TOO_OFTEN = ("rate limit", "max calls")
_DAY = "daily"
_BUSY = "temporarily unavailable"
DAY, HOUR, MINUTE = 86_400, 3600, 60


class Etherscan(Provider):
    """Contract source and ABI; account and log data on the chains that the key's plan covers."""

    about = About(
        "etherscan",
        "Etherscan",
        docs_url="https://docs.etherscan.io",
        url="https://api.etherscan.io",
        terms="Needs a key; a free one allows 3 requests a second and 100,000 a day, and gives source and "
        "ABI on all six chains but account and log data only on ethereum, polygon and arbitrum.",
        key="required",
        rate=Rate(3, 1),
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self.clock: Callable[[], float] = time.time
        self._standing: dict[tuple[int, str] | None, tuple[float, str]] = {}
        """Refusals that stand: until when (seconds since 1970) and in which words, of an action on a chain
        that the plan lacks; of everything (None) once the day's calls are used up."""

    @reported
    async def published(self, chain_id: int, address: str) -> Published:
        """What is published of the code at an address; `none` also where there is no contract at all."""
        rows = await self._get(chain_id, "contract", "getsourcecode", address=address)
        return _published(rows[0] if rows else {"SourceCode": ""}, page(chain_id, address))

    @reported
    async def creation(self, chain_id: int, address: str) -> Created:
        """How a contract came to be; NoData where it knows of none, or the plan does not tell."""
        action = "getcontractcreation"
        try:
            rows = await self._get(chain_id, "contract", action, contractaddresses=address)
        except ProviderRefused:
            if (chain_id, action) not in self._standing:
                raise
            raise self.nothing("nothing of contract creation on this chain under this plan") from None
        if not rows:
            raise self.nothing("nothing of how this address came to be")
        return _created(rows[0])

    @reported
    async def probe(self) -> str:
        """Ask for the key's own allowance, which counts no call.

        https://docs.etherscan.io/api-reference/endpoint/getapilimit
        """
        asked = {"chainid": "1", "module": "getapilimit", "action": "getapilimit", "apikey": self.key or ""}
        body: dict[str, Any] = (await self.upstream.get(self.url("/v2/api"), params=asked)).json()
        if str(body.get("status")) != "1":
            raise self._refusal(1, str(body.get("result") or body.get("message")))
        left = body["result"].get("creditsAvailable")
        return "takes the key" + (f", which has {left:,} calls left" if isinstance(left, int) else "")

    async def _get(self, chain_id: int, module: str, action: str, **params: str) -> list[dict[str, Any]]:
        """The rows of a result; empty when the answer is that there is nothing."""
        if refusal := self._standing_refusal(chain_id, action):
            raise refusal
        asked = {"chainid": str(chain_id), "module": module, "action": action, **params}
        reply = await self.upstream.get(self.url("/v2/api"), params={**asked, "apikey": self.key or ""})
        body: dict[str, Any] = reply.json()
        status, result, message = body.get("status"), body.get("result"), body.get("message")
        if str(status) == "1":  # whatever `message` says beside it
            return [dict(row) for row in _rows(result)]
        reasons = [each for each in (result, message) if isinstance(each, str) and each]
        if any(words in said.lower() for said in reasons for words in _NOTHING):
            return []
        self._remember(chain_id, action, reasons[0])
        raise self._refusal(chain_id, reasons[0])

    def _standing_refusal(self, chain_id: int, action: str) -> ProviderFailure | None:
        """What it would say to this question, when it said so before and asking again would not help."""
        for what in (None, (chain_id, action)):
            until, said = self._standing.get(what, (0, ""))
            if self.clock() < until:
                return self._refusal(chain_id, said)
            self._standing.pop(what, None)
        return None

    def _remember(self, chain_id: int, action: str, said: str) -> None:
        """Keep a refusal that will stand for a while."""
        lower = said.lower()
        if any(words in lower for words in _PLAN):
            self._standing[chain_id, action] = self.clock() + HOUR, said
        elif _DAY in lower and any(words in lower for words in _TOO_OFTEN):
            self._standing[None] = self.clock() + self._until_midnight(), said

    def _until_midnight(self) -> int:
        """Seconds until the next day begins in UTC."""
        return DAY - int(self.clock()) % DAY

    def _refusal(self, chain_id: int, said: str) -> ProviderFailure:
        """What a reason in place of a result means."""
        name, label, lower = self.about.name, self.about.label, said.lower()
        if any(words in lower for words in _KEY):
            return ProviderRefused(name, f"{label} does not accept this deployment's key")
        if any(words in lower for words in _PLAN):
            return ProviderRefused(
                name, f"{label} does not serve chain {chain_id} under this deployment's plan"
            )
        if any(words in lower for words in _TOO_OFTEN):
            if _DAY not in lower:
                return ProviderRateLimited(name, f"{label} asks to slow down")
            message = f"this deployment's calls to {label} are used up for today"
            return ProviderRateLimited(name, message, retry_after=self._until_midnight())
        if _BUSY in lower:
            return ProviderRateLimited(name, f"{label} is too busy just now", retry_after=MINUTE)
        if "timeout" in lower:
            return ProviderTimeout(name, f"{label} gave up on the question")
        return ProviderError(name, f"{label} refuses: {cleaned(said, 120)}")


def page(chain_id: int, address: str) -> str | None:
    """The page of an address for people, None for chains without one."""
    host = EXPLORERS.get(chain_id)
    return f"{host}/address/{address}#code" if host else None


def _rows(result: Any) -> list[Any]:
    if not isinstance(result, list):
        raise TypeError("the result is no list")
    return cast(list[Any], result)


def _published(row: dict[str, Any], url: str | None) -> Published:
    """What a row of getsourcecode says."""
    source = str(row["SourceCode"] or "").strip()
    if not source:
        return Published("etherscan", "none", abi_available=_is_abi(row.get("ABI")), proxy=_proxy(row))
    similar = an_address(row.get("SimilarMatch"))
    compiler = str(row.get("CompilerVersion") or "")
    return Published(
        "etherscan",
        "similar" if similar else "unspecified",
        name=name(row.get("ContractName")),
        similar_address=similar,
        language=_language(source, compiler),
        compiler_version=name(compiler.removeprefix("vyper:")),
        license=licence(row.get("LicenseType")),
        url=url,
        source_available=True,
        abi_available=_is_abi(row.get("ABI")),
        proxy=_proxy(row),
    )


def _language(source: str, compiler: str) -> str | None:
    """From standard JSON (in a second pair of braces), else from the compiler."""
    if source.startswith("{{") and source.endswith("}}"):
        try:
            standard: Any = orjson.loads(source[1:-1])
        except orjson.JSONDecodeError:
            standard = {}
        if isinstance(standard, dict) and (language := cast(dict[str, Any], standard).get("language")):
            return name(language)
    if compiler.startswith("vyper"):
        return "Vyper"
    return "Solidity" if compiler.startswith("v0.") else None


def _is_abi(value: Any) -> bool:
    """Whether a text is an ABI: it says in words when there is none."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return False
    try:
        return isinstance(orjson.loads(value), list)
    except orjson.JSONDecodeError:
        return False


def _proxy(row: dict[str, Any]) -> ProxyClaim | None:
    """Its mark of a proxy. That there is none says something only of published source."""
    marked = str(row.get("Proxy") or "") == "1"
    if not marked and not row.get("SourceCode"):
        return None
    implementations = named([{"address": row.get("Implementation")}], "address") if marked else ()
    said = "1" if marked else "0"
    return ProxyClaim.told(None, implementations, "Proxy, Implementation", said, is_proxy=marked)


def _created(row: dict[str, Any]) -> Created:
    """What a row of getcontractcreation says; time and block are newer than the rest."""
    transaction = str(row.get("txHash") or "")
    return Created(
        creator=an_address(row.get("contractCreator")),
        transaction=transaction.lower() if len(transaction) == 66 else None,
        at=since_1970(row.get("timestamp")),
        block=count(row.get("blockNumber")),
    )
