"""Etherscan: verified source code, on every chain with one key."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import orjson

from centgate.chains import from_chain_seconds
from centgate.coercion import as_clean_name, as_count
from centgate.crypto.contract.contracts import (
    ContractCreation,
    ProxyClaim,
    SourceRecord,
    parse_named_addresses,
    parse_nonzero_address,
    spdx_license,
)
from centgate.crypto.contract.published_abi import parse_signatures
from centgate.crypto.event_logs import EventLog, EventLogs, has_topics, parse_event_log
from centgate.errors import (
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderRefused,
    ProviderTimeout,
)
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.rate_limiter import RateLimit
from centgate.sanitize import quote_line

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
_NO_DATA_WORDS = ("not verified", "no data found", "no records found", "no transactions found")
"""Phrases in `result` or `message` that mean an empty result."""
_BAD_KEY_WORDS = ("invalid api key", "missing api key", "missing/invalid")
_PLAN_WORDS = ("not supported for this chain", "upgrade your api plan", "unsupported chainid")
_RATE_LIMIT_WORDS = ("rate limit", "max calls")
_DAILY_WORD = "daily"
_BUSY_WORDS = ("temporarily unavailable",)
DAY, HOUR, MINUTE = 86_400, 3600, 60
LOGS_PER_PAGE = 1000
"""The most that the API returns at once."""
MAX_LOGS = 5000
"""Event logs that are read for one query; the API gives the oldest first, so a part would miss the newest."""


class Etherscan(Provider):
    """Contract source and ABI; account and log data on the chains that the key's plan covers."""

    info = ProviderInfo(
        "etherscan",
        "Etherscan",
        docs_url="https://docs.etherscan.io",
        url="https://api.etherscan.io",
        terms="Needs a key; a free one allows 3 requests a second and 100,000 a day, and gives source and "
        "ABI on all six chains but account and log data only on ethereum, polygon and arbitrum.",
        key="required",
        rate_limit=RateLimit(3, 1),
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self.clock: Callable[[], float] = time.time
        self._refusals: dict[tuple[int, str] | None, tuple[float, str]] = {}
        """Refusals with their expiry (seconds since 1970) and message, by chain and action that the plan
        lacks; under None for all actions once the daily quota is used up."""

    @instrumented
    async def source_record(self, chain_id: int, address: str) -> SourceRecord:
        """Return the verified source of an address; match `none` also if there is no contract."""
        rows = await self._find_rows(chain_id, "contract", "getsourcecode", address=address)
        row = {"SourceCode": ""} if rows is None else rows[0]
        return _parse_source(row, explorer_page(chain_id, address))

    @instrumented
    async def contract_creation(self, chain_id: int, address: str) -> ContractCreation:
        """Return the creation of a contract; NoData if it is unknown, or not in the plan."""
        action = "getcontractcreation"
        try:
            rows = await self._query(chain_id, "contract", action, contractaddresses=address)
        except ProviderRefused:
            if (chain_id, action) not in self._refusals:
                raise
            raise self.no_data("nothing about contract creation on this chain under this plan") from None
        if not rows:
            raise self.no_data("nothing about the creation of this address")
        return _parse_creation(chain_id, rows[0])

    @instrumented
    async def event_logs(
        self, chain_id: int, topics: Sequence[str | Sequence[str]], *, address: str | None = None
    ) -> EventLogs:
        """Return all event logs with these topics since the first block, oldest first.

        `address` limits them to one contract. Only the first `MAX_LOGS` are read. NoData if the plan has no
        logs of the chain. https://docs.etherscan.io/api-reference/endpoint/getlogs-topics
        """
        # the API takes one topic for a position, so that alternatives are chosen from all
        chosen = {number: topic for number, topic in enumerate(topics) if isinstance(topic, str)}
        filters = {f"topic{number}": topic for number, topic in chosen.items()}
        filters |= {f"topic{one}_{other}_opr": "and" for one in chosen for other in chosen if one < other}
        filters |= {"address": address} if address else {}
        rows, is_cut = await self._query_logs(chain_id, filters)
        parsed = [log for row in rows if (log := parse_event_log(row, chain_id))]
        if rows and not parsed:
            raise self.invalid_response("returned no event log in a known format")
        if any(not _has_chosen(log, chosen, address) for log in parsed):
            raise self.invalid_response("returned event logs that were not asked for")
        entries = sorted(
            (log for log in parsed if has_topics(log, topics)),
            key=lambda log: (log.block, log.index),
        )
        last = max((log.block for log in entries), default=0)
        return EventLogs(tuple(entries), 0, last, len(rows) - len(parsed), is_cut)

    async def _query_logs(
        self, chain_id: int, filters: Mapping[str, str]
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return the log rows, and whether there are more. NoData as for `event_logs`."""
        rows: list[dict[str, Any]] = []
        for page in range(1, MAX_LOGS // LOGS_PER_PAGE + 1):
            paging = {"fromBlock": "0", "toBlock": "latest", "page": str(page), "offset": str(LOGS_PER_PAGE)}
            try:
                found = await self._query(chain_id, "logs", "getLogs", **paging, **filters)
            except ProviderRefused:
                if (chain_id, "getLogs") not in self._refusals:
                    raise
                raise self.no_data("no event logs of this chain under this plan") from None
            rows += found
            if len(found) < LOGS_PER_PAGE:
                return rows, False
        self.trace.add_warning(
            f"{self.info.label} has more than {MAX_LOGS} event logs: the first and recent ones were read"
        )
        return rows, True

    @instrumented
    async def probe(self) -> str:
        """Query the key's own quota, which does not count as a call.

        https://docs.etherscan.io/api-reference/endpoint/getapilimit
        """
        params = {"chainid": "1", "module": "getapilimit", "action": "getapilimit", "apikey": self.key or ""}
        body = (await self.upstream.get(self.url("/v2/api"), params=params)).parse_object()
        if str(body.get("status")) != "1":
            raise self._parse_refusal(1, str(body.get("result") or body.get("message")))
        remaining = body["result"].get("creditsAvailable")
        return "accepts the key" + (
            f", which has {remaining:,} calls left" if isinstance(remaining, int) else ""
        )

    async def _query(self, chain_id: int, module: str, action: str, **params: str) -> list[dict[str, Any]]:
        """Return the rows of a result; empty if the API reports no data."""
        return await self._find_rows(chain_id, module, action, **params) or []

    async def _find_rows(
        self, chain_id: int, module: str, action: str, **params: str
    ) -> list[dict[str, Any]] | None:
        """Return the rows of a result; None if the API reports no data."""
        if refusal := self._active_refusal(chain_id, action):
            raise refusal
        query = {"chainid": str(chain_id), "module": module, "action": action, **params}
        reply = await self.upstream.get(self.url("/v2/api"), params={**query, "apikey": self.key or ""})
        body = reply.parse_object()
        status, result, message = body.get("status"), body.get("result"), body.get("message")
        if str(status) == "1":  # regardless of `message`
            return [dict(row) for row in _as_list(result)]
        reasons = [each for each in (result, message) if isinstance(each, str) and each]
        if any(words in reason.lower() for reason in reasons for words in _NO_DATA_WORDS):
            return None
        self._store_refusal(chain_id, action, reasons[0])
        raise self._parse_refusal(chain_id, reasons[0])

    def _active_refusal(self, chain_id: int, action: str) -> ProviderFailure | None:
        """Return the stored refusal that still applies to this action, or None."""
        for scope in (None, (chain_id, action)):
            until, message = self._refusals.get(scope, (0, ""))
            if self.clock() < until:
                return self._parse_refusal(chain_id, message)
            self._refusals.pop(scope, None)
        return None

    def _store_refusal(self, chain_id: int, action: str, message: str) -> None:
        """Store a refusal that will last for a while."""
        lower = message.lower()
        if any(words in lower for words in _PLAN_WORDS):
            self._refusals[chain_id, action] = self.clock() + HOUR, message
        elif _DAILY_WORD in lower and any(words in lower for words in _RATE_LIMIT_WORDS):
            self._refusals[None] = self.clock() + self._seconds_until_midnight(), message

    def _seconds_until_midnight(self) -> int:
        """Return the seconds until midnight UTC."""
        return DAY - int(self.clock()) % DAY

    def _parse_refusal(self, chain_id: int, message: str) -> ProviderFailure:
        """Map the message of a failed request to an error."""
        name, label, lower = self.info.name, self.info.label, message.lower()
        if any(words in lower for words in _BAD_KEY_WORDS):
            return ProviderRefused(name, f"{label} does not accept this deployment's key")
        if any(words in lower for words in _PLAN_WORDS):
            return ProviderRefused(
                name, f"{label} does not serve chain {chain_id} under this deployment's plan"
            )
        if any(words in lower for words in _RATE_LIMIT_WORDS):
            if _DAILY_WORD not in lower:
                return ProviderRateLimited(name, f"{label} asks to slow down")
            quota_message = f"the daily quota of this deployment for {label} is used up"
            return ProviderRateLimited(name, quota_message, retry_after=self._seconds_until_midnight())
        if any(words in lower for words in _BUSY_WORDS):
            return ProviderRateLimited(name, f"{label} is overloaded", retry_after=MINUTE)
        if "timeout" in lower:
            return ProviderTimeout(name, f"{label} timed out on its side")
        return ProviderError(name, f"{label} refuses: {quote_line(message, 120)}")


def _has_chosen(log: EventLog, chosen: Mapping[int, str], address: str | None) -> bool:
    """True if a log fits the filters that were sent."""
    return address in (None, log.address) and all(
        position < len(log.topics) and log.topics[position] == topic for position, topic in chosen.items()
    )


def explorer_page(chain_id: int, address: str) -> str | None:
    """Return the explorer's web page of an address; None for chains without an explorer."""
    host = EXPLORERS.get(chain_id)
    return f"{host}/address/{address}#code" if host else None


def _as_list(result: Any) -> list[Any]:
    if not isinstance(result, list):
        raise TypeError("the result is not a list")
    return cast(list[Any], result)


def _parse_source(row: dict[str, Any], url: str | None) -> SourceRecord:
    """Parse a row of getsourcecode, where an empty text, and nothing else, means that there is no source."""
    source, abi = row["SourceCode"].strip(), _parse_abi(row.get("ABI"))
    if not source:
        return SourceRecord("etherscan", "none", abi_available=abi is not None, proxy=_parse_proxy(row))
    similar = parse_nonzero_address(row.get("SimilarMatch"))
    compiler = str(row.get("CompilerVersion") or "")
    return SourceRecord(
        "etherscan",
        "similar" if similar else "unspecified",
        name=as_clean_name(row.get("ContractName")),
        similar_address=similar,
        language=_parse_language(source, compiler),
        compiler_version=as_clean_name(compiler.removeprefix("vyper:")),
        license=spdx_license(row.get("LicenseType")),
        url=url,
        source_available=True,
        abi_available=abi is not None,
        signatures=parse_signatures(abi),
        proxy=_parse_proxy(row),
    )


def _parse_language(source: str, compiler: str) -> str | None:
    """Return the language from standard JSON (in a second pair of braces), else from the compiler."""
    if source.startswith("{{") and source.endswith("}}"):
        try:
            standard: Any = orjson.loads(source[1:-1])
        except orjson.JSONDecodeError:
            standard = {}
        if isinstance(standard, dict) and (language := cast(dict[str, Any], standard).get("language")):
            return as_clean_name(language)
    if compiler.startswith("vyper"):
        return "Vyper"
    return "Solidity" if compiler.startswith("v0.") else None


def _parse_abi(value: Any) -> list[Any] | None:
    """Parse an ABI; None for anything else: Etherscan returns a sentence if there is no ABI."""
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return None
    try:
        parsed: Any = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return cast(list[Any], parsed) if isinstance(parsed, list) else None


def _parse_proxy(row: dict[str, Any]) -> ProxyClaim | None:
    """Parse the proxy flag; its 0 means nothing, since contracts that no one has marked have it too."""
    if str(row.get("Proxy") or "") != "1":
        return None
    implementations = parse_named_addresses([{"address": row.get("Implementation")}], "address")
    return ProxyClaim.from_registry(None, implementations, "Proxy, Implementation", "1", is_proxy=True)


def _parse_creation(chain_id: int, row: dict[str, Any]) -> ContractCreation:
    """Parse a row of getcontractcreation; older servers send no time and block."""
    transaction = str(row.get("txHash") or "")
    return ContractCreation(
        creator=parse_nonzero_address(row.get("contractCreator")),
        transaction=transaction.lower() if len(transaction) == 66 else None,
        at=from_chain_seconds(row.get("timestamp"), chain_id),
        block=as_count(row.get("blockNumber")),
    )
