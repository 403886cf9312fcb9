"""GoPlus Security: flags of tokens and approvals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha1
from typing import TYPE_CHECKING, Any, cast

import structlog

from centgate.errors import ProviderFailure, ProviderRateLimited, ProviderRefused
from centgate.facts.approvals import ToldApprovals
from centgate.facts.tokens import TokenFlags
from centgate.provider import About, Provider, reported
from centgate.providers.goplus_approvals import parse_goplus_approvals
from centgate.providers.goplus_token import parse_token_security
from centgate.readings import text
from centgate.text import cleaned
from centgate.upstream import Rate, Reply

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

OK, PARTIAL, TOO_OFTEN = 1, 2, 4029
_UNKNOWN = frozenset({2018, 2020, 2021, 2026, 2027, 2028})
"""The chain is not covered, the address is no contract, or nothing is known of it."""
_REFUSED = range(4010, 4024)
_STALE = frozenset({4022, 4023})
"""The access token is not, or no longer, good."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a question was answered with."""

    result: Any
    partial: bool
    """Whether GoPlus was still collecting, so that more may be known later."""


@dataclass(slots=True)
class _Access:
    """The access token that stands for an app's key and secret until shortly before it expires."""

    token: str = ""
    until: float = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class GoPlus(Provider):
    """Token security flags and token approvals, from contract analysis."""

    about = About(
        "goplus",
        "GoPlus Security",
        docs_url="https://docs.gopluslabs.io",
        url="https://api.gopluslabs.io",
        terms="Free tier without a key; its licence forbids commercial use of its data without written "
        "permission, so get GoPlus's consent or a plan. The key is an access token, or app_key:app_secret.",
        key="optional",
        rate=Rate(30),
    )
    PAUSE = 2.0
    """Seconds before a question is asked once more."""

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self._access = _Access()

    @reported
    async def token(self, chain_id: int, token: str) -> TokenFlags:
        """What is known of a token's contract: nothing yet, where its analysis has only begun.

        https://docs.gopluslabs.io/reference/token-security-api
        """
        asked = token.lower()
        told = await self._ask(f"/api/v1/token_security/{chain_id}", {"contract_addresses": asked})
        if told.partial:
            self.record.warn(
                f"{self.about.label} has not finished its analysis of this token: its flags are partial"
            )
        rows = cast(dict[str, Any], told.result or {})
        row = next((row for address, row in rows.items() if address.lower() == asked), None)
        if not row and not told.partial:
            raise self.nothing(f"nothing of the token {asked} on chain {chain_id}")
        return parse_token_security(row or {}, partial=told.partial)

    @reported
    async def approvals(self, chain_id: int, wallet: str) -> ToldApprovals:
        """The ERC-20 approvals that its index knows of a wallet; none is an answer.

        https://docs.gopluslabs.io/reference/token-approval-security-api
        """
        told = await self._ask(f"/api/v2/token_approval_security/{chain_id}", {"addresses": wallet.lower()})
        rows: Any = [] if told.result is None and told.partial else told.result
        if not isinstance(rows, list):
            raise TypeError("the result is no list")
        approvals = parse_goplus_approvals(cast(list[Any], rows), partial=told.partial)
        label = self.about.label
        if approvals.unreadable and not approvals.entries:
            raise self.failed("lists nothing that could be read")
        if approvals.partial:
            self.record.warn(f"{label} is still collecting this wallet's approvals: its list is partial")
        if approvals.unreadable:
            self.record.warn(f"Entries of {label}'s list that could not be read: {approvals.unreadable}")
        return approvals

    async def _ask(self, path: str, params: Mapping[str, str]) -> Told:
        """The `result` of an answer; what its code means otherwise.

        Asked once more after a pause where the answer is partial or "too often", if the deadline allows; what
        the first answer held is kept unless the second holds more.
        """
        deadline = time.monotonic() + self.left * 0.95
        body = await self._body(path, params)
        left = deadline - time.monotonic() - self.PAUSE
        if _code(body) in (PARTIAL, TOO_OFTEN) and left > 0:
            await asyncio.sleep(self.PAUSE)
            body = await self._again(body, left, path, params)
        self._check(body)
        self.record.provisional |= _code(body) == PARTIAL
        return Told(body.get("result"), partial=_code(body) == PARTIAL)

    async def _again(
        self, first: dict[str, Any], left: float, path: str, params: Mapping[str, str]
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(left):
                second = await self._body(path, params)
        except (ProviderFailure, TimeoutError):
            return first
        return second if _code(first) == TOO_OFTEN or _code(second) in (OK, PARTIAL) else first

    @reported
    async def probe(self) -> str:
        """Ask which chains it covers, with the key if there is one.

        https://docs.gopluslabs.io/reference/getchainslistusingget
        """
        body = await self._body("/api/v1/supported_chains", {})
        self._check(body)
        return "takes the key" if self.key else "answers"

    async def _body(self, path: str, params: Mapping[str, str]) -> dict[str, Any]:
        """An answer, whatever it says; with a fresh access token where the one in use has expired."""
        access = await self._authorization()
        body = self._envelope(await self.upstream.get(self.url(path), params=params, headers=access))
        if _code(body) in _STALE and self._signs:
            if self._access.token == access["Authorization"]:
                self._access.until = 0
            access = await self._authorization()
            body = self._envelope(await self.upstream.get(self.url(path), params=params, headers=access))
        return body

    def _envelope(self, reply: Reply) -> dict[str, Any]:
        body = reply.json()
        if not isinstance(body, dict) or not str(cast(dict[str, Any], body).get("code")).isdigit():
            raise self.failed("answered without a code, which each of its answers has")
        return cast(dict[str, Any], body)

    @property
    def _signs(self) -> bool:
        """Whether the key is an app's key and secret, to be exchanged for an access token."""
        return ":" in (self.key or "")

    async def _authorization(self) -> dict[str, str]:
        if not self.key:
            return {}
        if not self._signs:
            return {"Authorization": self.key}
        async with self._access.lock:
            if time.monotonic() >= self._access.until:
                await self._sign_in(*self.key.split(":", 1))
            return {"Authorization": self._access.token}

    async def _sign_in(self, app_key: str, app_secret: str) -> None:
        """https://docs.gopluslabs.io/reference/getaccesstokenusingpost"""
        now = int(time.time())
        sign = sha1(f"{app_key}{now}{app_secret}".encode()).hexdigest()
        asked = {"app_key": app_key, "time": now, "sign": sign}
        body = self._envelope(await self.upstream.post(self.url("/api/v1/token"), asked))
        self._check(body)
        self._access.token = str(body["result"]["access_token"])
        self._access.until = time.monotonic() + 0.9 * float(body["result"].get("expires_in") or 600)

    def _check(self, body: dict[str, Any]) -> None:
        """Nothing for an answer that holds data; almost every failure comes with status 200 as well."""
        code = _code(body)
        if code in (OK, PARTIAL):
            return
        name, label = self.about.name, self.about.label
        if code in _UNKNOWN:
            raise self.nothing(f"nothing of it (code {code})")
        if code == TOO_OFTEN:
            raise ProviderRateLimited(name, f"{label} asks to slow down (code {code})", retry_after=10)
        said = self._without_key(cleaned(text(body.get("message")), 120) or "")
        structlog.get_logger().warning("a provider's own words", provider=name, code=code, said=said)
        if code in _REFUSED:
            raise ProviderRefused(name, f"{label} refuses this deployment's key (code {code})")
        raise self.failed(f"answered with code {code}")


def _code(body: dict[str, Any]) -> int:
    return int(body["code"])
