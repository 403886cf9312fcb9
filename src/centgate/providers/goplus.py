"""GoPlus Security: flags of tokens and approvals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from hashlib import sha1
from typing import TYPE_CHECKING, Any, cast

import structlog
from msgspec import Struct, field

from centgate.coercion import as_text, get_path
from centgate.crypto.approvals.reported import ReportedApprovals
from centgate.crypto.token.security import TokenFlags
from centgate.errors import ProviderFailure, ProviderRateLimited, ProviderRefused
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.providers.goplus_approvals import parse_goplus_approvals
from centgate.providers.goplus_token import parse_token_security
from centgate.rate_limiter import RateLimit
from centgate.sanitize import clean_line
from centgate.upstream import UpstreamResponse

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

OK, PARTIAL, RATE_LIMITED_CODE = 1, 2, 4029
_NO_DATA_CODES = frozenset({2018, 2020, 2021, 2026, 2027, 2028})
"""The chain is not covered, the address is not a contract, or there is no data."""
_ACCESS_CODES = range(4010, 4024)
_EXPIRED_CODES = frozenset({4022, 4023})
"""The access token is invalid or expired."""


class GoPlusResult(Struct, frozen=True):
    """Result of a GoPlus query."""

    result: Any
    partial: bool
    """True while GoPlus is still collecting, so that more may be known later."""


class _AccessToken(Struct):
    """Access token for an app's key and secret, used until shortly before it expires."""

    token: str = ""
    until: float = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class GoPlus(Provider):
    """Token security flags and token approvals, from contract analysis."""

    info = ProviderInfo(
        "goplus",
        "GoPlus Security",
        docs_url="https://docs.gopluslabs.io",
        url="https://api.gopluslabs.io",
        resale="forbidden",
        terms="Free tier without a key; its licence forbids commercial use of its data without written "
        "permission, so get GoPlus's consent or a plan. The key is an access token, or app_key:app_secret.",
        key="optional",
        rate_limit=RateLimit(30),
    )
    RETRY_PAUSE = 2.0
    """Seconds before the single retry."""

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self._access = _AccessToken()

    @instrumented
    async def token_security(self, chain_id: int, token: str) -> TokenFlags:
        """Return the security flags of a token; they are partial while the analysis is running.

        https://docs.gopluslabs.io/reference/token-security-api
        """
        address = token.lower()
        answer = await self._query(f"/api/v1/token_security/{chain_id}", {"contract_addresses": address})
        if answer.partial:
            self.trace.add_warning(
                f"{self.info.label} has not finished its analysis of this token: its flags are partial"
            )
        rows = cast(dict[str, Any], answer.result or {})
        row = next((row for each, row in rows.items() if each.lower() == address), None)
        if rows and row is None:
            raise self.invalid_response("returned data of another token")
        if not row and not answer.partial:
            raise self.no_data(f"nothing about the token {address} on chain {chain_id}")
        return parse_token_security(row or {}, partial=answer.partial)

    @instrumented
    async def approvals(self, chain_id: int, wallet: str) -> ReportedApprovals:
        """Return the indexed ERC-20 approvals of a wallet; an empty list is valid.

        https://docs.gopluslabs.io/reference/token-approval-security-api
        """
        answer = await self._query(
            f"/api/v2/token_approval_security/{chain_id}", {"addresses": wallet.lower()}
        )
        rows: Any = [] if answer.result is None and answer.partial else answer.result
        if not isinstance(rows, list):
            raise TypeError("the result is not a list")
        if any(
            get_path(row, "chain_id") not in (str(chain_id), chain_id, None) for row in cast(list[Any], rows)
        ):
            raise self.invalid_response(f"returned approvals of another chain than {chain_id}")
        approvals = parse_goplus_approvals(chain_id, cast(list[Any], rows), partial=answer.partial)
        label = self.info.label
        if approvals.unreadable and not approvals.entries:
            raise self.invalid_response("returned a list without any readable entry")
        if approvals.partial:
            self.trace.add_warning(
                f"{label} is still collecting this wallet's approvals: its list is partial"
            )
        if approvals.unreadable:
            self.trace.add_warning(
                f"Entries of {label}'s list that could not be read: {approvals.unreadable}"
            )
        return approvals

    async def _query(self, path: str, params: Mapping[str, str]) -> GoPlusResult:
        """Return the `result` of a response, or raise the error of its code.

        If the response is partial or rate limited, the query is repeated once after a pause, if the deadline
        allows it. The first response is kept unless the second has more.
        """
        deadline = time.monotonic() + self.remaining_seconds * 0.95
        body = await self._fetch(path, params)
        remaining = deadline - time.monotonic() - self.RETRY_PAUSE
        if _code_of(body) in (PARTIAL, RATE_LIMITED_CODE) and remaining > 0:
            await asyncio.sleep(self.RETRY_PAUSE)
            body = await self._retry(body, remaining, path, params)
        self._raise_for_code(body)
        self.trace.is_provisional |= _code_of(body) == PARTIAL
        return GoPlusResult(body.get("result"), partial=_code_of(body) == PARTIAL)

    async def _retry(
        self, first: dict[str, Any], max_wait: float, path: str, params: Mapping[str, str]
    ) -> dict[str, Any]:
        try:
            async with asyncio.timeout(max_wait):
                second = await self._fetch(path, params)
        except (ProviderFailure, TimeoutError):
            return first
        return second if _code_of(first) == RATE_LIMITED_CODE or _code_of(second) in (OK, PARTIAL) else first

    @instrumented
    async def probe(self) -> str:
        """Query the supported chains, with the key if there is one.

        https://docs.gopluslabs.io/reference/getchainslistusingget
        """
        body = await self._fetch("/api/v1/supported_chains", {})
        self._raise_for_code(body)
        return "accepts the key" if self.key else "answers"

    async def _fetch(self, path: str, params: Mapping[str, str]) -> dict[str, Any]:
        """Fetch a response of any code; renew the access token if it has expired."""
        headers = await self._auth_headers()
        body = self._parse_envelope(await self.upstream.get(self.url(path), params=params, headers=headers))
        if _code_of(body) in _EXPIRED_CODES and self._has_app_secret:
            if self._access.token == headers["Authorization"]:
                self._access.until = 0
            headers = await self._auth_headers()
            body = self._parse_envelope(
                await self.upstream.get(self.url(path), params=params, headers=headers)
            )
        return body

    def _parse_envelope(self, reply: UpstreamResponse) -> dict[str, Any]:
        body = reply.parse_json()
        if not isinstance(body, dict) or not str(cast(dict[str, Any], body).get("code")).isdigit():
            raise self.invalid_response("returned a response without a code")
        return cast(dict[str, Any], body)

    @property
    def _has_app_secret(self) -> bool:
        """True if the key is an app's key and secret, to be exchanged for an access token."""
        return ":" in (self.key or "")

    async def _auth_headers(self) -> dict[str, str]:
        if not self.key:
            return {}
        if not self._has_app_secret:
            return {"Authorization": self.key}
        async with self._access.lock:
            if time.monotonic() >= self._access.until:
                await self._fetch_access_token(*self.key.split(":", 1))
            return {"Authorization": self._access.token}

    async def _fetch_access_token(self, app_key: str, app_secret: str) -> None:
        """Fetch an access token: https://docs.gopluslabs.io/reference/getaccesstokenusingpost"""
        now = int(time.time())
        signature = sha1(f"{app_key}{now}{app_secret}".encode()).hexdigest()
        payload = {"app_key": app_key, "time": now, "sign": signature}
        body = self._parse_envelope(await self.upstream.post(self.url("/api/v1/token"), payload))
        self._raise_for_code(body)
        self._access.token = str(body["result"]["access_token"])
        self._access.until = time.monotonic() + 0.9 * float(body["result"].get("expires_in") or 600)

    def _raise_for_code(self, body: dict[str, Any]) -> None:
        """Raise the error of a response without data; almost every failure has status 200 as well."""
        code = _code_of(body)
        if code in (OK, PARTIAL):
            return
        name, label = self.info.name, self.info.label
        if code in _NO_DATA_CODES:
            raise self.no_data(f"nothing about it (code {code})")
        if code == RATE_LIMITED_CODE:
            raise ProviderRateLimited(name, f"{label} asks to slow down (code {code})", retry_after=10)
        message = self._redact_key(clean_line(as_text(body.get("message")), 120) or "")
        structlog.get_logger().warning(
            "a provider returned an error", provider=name, code=code, message=message
        )
        if code in _ACCESS_CODES:
            raise ProviderRefused(name, f"{label} refuses this deployment's key (code {code})")
        raise self.invalid_response(f"answered with code {code}")


def _code_of(body: dict[str, Any]) -> int:
    return int(body["code"])
