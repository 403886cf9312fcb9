"""Base class of providers, with their metadata, roles, and the trace of their calls in a request."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Concatenate, Literal, ParamSpec, Self, TypeVar

import structlog
from msgspec import Struct, field

from centgate.chains import CHAIN_BY_ID
from centgate.envelope import RoleName, Status
from centgate.errors import (
    NoData,
    PageUnread,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnconfigured,
)
from centgate.instrumentation import NULL_METER
from centgate.provider_settings import PROVIDER_FIELDS
from centgate.rate_limiter import RateLimit
from centgate.timestamps import format_timestamp
from centgate.upstream import Upstream, join_url

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

MEGABYTE = 1 << 20
MIN_SECRET_LENGTH = 6
"""Minimum length of a part of a key that is removed from messages; shorter parts could be ordinary words."""


Resale = Literal["permitted", "forbidden", "unstated"]
"""What a source's terms of use say about selling answers that are made of its data."""


class ProviderInfo(Struct, frozen=True):
    """Metadata of a provider. `name` is used in responses and settings (`CENTGATE_<NAME>_KEY`)."""

    name: str
    label: str
    docs_url: str
    url: str | None = None
    """Base URL of its API, replaced by `CENTGATE_<NAME>_URL`; None if it has none."""
    terms: str = ""
    """Summary of its terms of use for operators who sell its data."""
    resale: Resale = "unstated"
    """`permitted` and `forbidden` if its terms were read and say so; the operator's own agreement counts more
    (`CENTGATE_<NAME>_RESALE_PERMITTED`).
    """
    key: Literal["none", "optional", "required"] = "none"
    rate_limit: RateLimit | None = None
    """Its published rate limit; `CENTGATE_<NAME>_PER_MINUTE` overrides it."""
    keyed_rate_limit: RateLimit | None = None
    """Its rate limit with a key, if that is another one."""
    timeout: float = 8
    """Deadline in seconds of a call with all its HTTP requests; `CENTGATE_<NAME>_TIMEOUT` overrides it."""
    max_bytes: int = 4 * MEGABYTE
    """Maximum size of a response in bytes."""
    per_chain: bool = False
    """True if it has a URL and an on/off setting for each chain (`CENTGATE_<NAME>_<CHAINID>_URL`)."""
    part_urls: tuple[tuple[str, str], ...] = ()
    """Names and URLs of its parts (`CENTGATE_<NAME>_<PART>_URL`); its `url`, if any, replaces them all."""
    setup: str = ""
    """How an operator puts it to use, if that takes more than its URL or key."""

    @property
    def settings(self) -> dict[str, str]:
        """Its settings without the prefix, with their defaults; `*` stands for a chain id."""
        rate = self.rate_limit
        values = dict.fromkeys(PROVIDER_FIELDS, "") | {
            "ENABLED": "true",
            "URL": self.url or "",
            "PER_MINUTE": f"{rate.calls * 60 / rate.seconds:.0f}" if rate else "",
            "TIMEOUT": f"{self.timeout:g}",
            "RESALE_PERMITTED": {"permitted": "true", "forbidden": "false", "unstated": ""}[self.resale],
        }
        values |= {f"{part.upper()}_URL": url for part, url in self.part_urls}
        values |= {"*_ENABLED": "true", "*_URL": ""} if self.per_chain else {}
        if self.key == "none":
            del values["KEY"]
        if self.url is None and self.part_urls:
            del values["URL"]
        return {f"{self.name.upper()}_{name}": value for name, value in values.items()}


class ProviderRole(Struct, frozen=True):
    """Role of a provider in one service, declared in the service's signature."""

    name: RoleName
    replaces_failed: bool = True
    """False for a fallback that is used only if no other provider is configured, or if those have no data."""


def describe_fallback(used: str, primary: ProviderInfo, reason: str) -> str:
    """Return the warning that a fallback answered instead of the primary, which `reason` says of it."""
    return f"a fallback source was used: {used} instead of {primary.label}, which {reason}"


P = TypeVar("P", bound="Provider")
V = TypeVar("V")
Primary = Annotated[P, ProviderRole("primary")]
Secondary = Annotated[P, ProviderRole("secondary")]
Enrichment = Annotated[P, ProviderRole("enrichment")]
Fallback = Annotated[P, ProviderRole("fallback")]
GapFallback = Annotated[P, ProviderRole("fallback", replaces_failed=False)]

_SEVERITY: dict[Status, int] = {
    "skipped": 0,
    "unconfigured": 1,
    "no_data": 2,
    "ok": 3,
    "rate_limited": 4,
    "timeout": 5,
    "error": 6,
}
"""Severity of each status: the most severe of a provider's calls in a request becomes its status."""


REQUEST_SECONDS = 20.0
"""Time limit of a request in seconds, fallbacks included: buyers wait about 30 s."""


class RequestTrace(Struct):
    """Trace of the provider calls of one request, reported as `providers` and `warnings`."""

    until: float = math.inf
    """End of the request's time, on the monotonic clock."""
    providers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    warnings: list[str] = field(default_factory=list[str])
    is_provisional: bool = False
    """True if a later answer may contain more; this one is then cached only for a short time."""

    @classmethod
    def start(cls) -> RequestTrace:
        """Create the trace of a request whose time limit starts now."""
        return cls(until=time.monotonic() + REQUEST_SECONDS)

    def remaining(self, timeout: float) -> float:
        """Return the seconds for a call: at most `timeout`, and at most the rest of the request's time."""
        return max(0.0, min(timeout, self.until - time.monotonic()))

    def record(self, name: str, status: Status, **more: Any) -> None:
        """Record the status of provider `name`; `more` are further members of its entry."""
        entry = self.providers.setdefault(name, {"name": name, "status": status})
        if {"fetchedAt"} <= entry.keys() & more.keys():
            # the age of an answer is the age of its oldest part
            more["fetchedAt"] = min(entry["fetchedAt"], more["fetchedAt"])
        if _SEVERITY[status] > _SEVERITY[entry["status"]]:
            entry["status"] = status
        entry.update(more)

    def status_of(self, name: str) -> Status | None:
        """Return the status of provider `name` so far; None if it was not called."""
        entry = self.providers.get(name)
        return entry["status"] if entry else None

    def mark_no_data(self, name: str) -> None:
        """Record that what provider `name` answered has nothing about the subject of the request."""
        self.providers[name]["status"] = "no_data"

    def add_warning(self, sentence: str) -> None:
        """Add a warning: a sentence about a degraded answer, for people and agents."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def put_warnings_first(self, sentences: Sequence[str]) -> None:
        """Add warnings that an answer opens with, in this order."""
        self.warnings[:0] = [each for each in sentences if each not in self.warnings]


class Provider:
    """One upstream. Its methods are named after the facts that they return, as values of this project.

    Public methods are `@instrumented`. A provider lives as long as the process; a request uses
    `bind(trace)`, a copy that reports to the trace of this request.
    """

    info: ClassVar[ProviderInfo]
    announces_requests: ClassVar[bool] = False
    """True if `announce_request` counts requests that need an answer of this provider."""
    trace: RequestTrace
    resale: Resale
    """What its terms, or the operator's agreement with its owner, say of resale."""
    skip_reason: str | None = None
    """Reason, as a clause, why it is skipped in this request; None if it is used."""

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        """`resources` is None if a provider is created only to validate its settings."""
        self.settings = settings.provider_settings(self.info.name)
        self.resale = self._resolve_resale()
        self.is_withheld = settings.resale_permitted_only and self.resale != "permitted"
        """True if it is left out because its terms do not permit resale."""
        if self.is_withheld:
            self.settings = replace(self.settings, enabled=False)
        self.resources = resources
        self.timeout = self.settings.timeout or self.info.timeout
        self.trace = RequestTrace()
        self.meter = resources.meter if resources else NULL_METER
        self.upstream = self.open_upstream(resources, settings)

    def _resolve_resale(self) -> Resale:
        """Return the operator's word on its terms, if there is one, else what the terms say."""
        agreed = self.settings.resale_permitted
        return self.info.resale if agreed is None else "permitted" if agreed else "forbidden"

    @property
    def rate_limit(self) -> RateLimit | None:
        """Rate limit in force, None without one: the published one, at the pace that the operator set."""
        published = (self.info.keyed_rate_limit if self.key else None) or self.info.rate_limit
        per_minute = self.settings.per_minute
        return (published or RateLimit(per_minute)).at_pace(per_minute) if per_minute else published

    def open_upstream(
        self, resources: Resources | None, settings: Settings, label: str | None = None, *, part: str = ""
    ) -> Upstream:
        """Return a connection to this upstream, or to a part of it, with its own rate limiter.

        `label` is the part's display name. `part` distinguishes parts that share the upstream's label.
        """
        rate, own = self.rate_limit, part or label
        name = f"{self.info.name}:{own}" if own else self.info.name
        return Upstream(
            self.info.name,
            label or self.info.label,
            resources.session if resources else None,
            rate_limiter=resources.create_rate_limiter(rate, settings.workers, name=name)
            if rate and resources
            else None,
            max_bytes=self.info.max_bytes,
            max_wait=self.timeout / 2,
            meter=self.meter,
        )

    @property
    def is_configured(self) -> bool:
        """True if it is enabled and has the key that it needs."""
        return self.settings.enabled and (self.info.key != "required" or self.settings.key is not None)

    def supports_chain(self, chain_id: int | None) -> bool:
        """True if it has data for a chain; None stands for requests that concern no chain."""
        return chain_id is None or chain_id in CHAIN_BY_ID

    def is_available(self, chain_id: int | None) -> bool:
        """True if it is configured and has data for a chain."""
        return self.is_configured and self.supports_chain(chain_id)

    def unsupported_options(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the options of a request, by their JSON names, that it does not support.

        `options` is the request as JSON with defaults. If any is returned, the provider is skipped; it never
        returns less than requested instead.
        """
        return ()

    def upstreams_for(self, chain_id: int | None, options: Mapping[str, Any]) -> Sequence[Upstream]:
        """Return the upstreams of which one must respond for this request; empty if none is needed.

        `options` is the request as JSON with defaults. Override it in providers that use more than one
        upstream or that cache responses.
        """
        return (self.upstream,)

    def url(self, path: str) -> str:
        """Return the URL of a path (with a leading slash) of this upstream's API."""
        return join_url(self.settings.url or self.info.url or "", path)

    @property
    def remaining_seconds(self) -> float:
        """Seconds for a call that starts now: its timeout, or the rest of the request's time if less."""
        return self.trace.remaining(self.timeout)

    @property
    def key(self) -> str | None:
        """The operator's API key in plain text, or None."""
        return self.settings.key.get_secret_value() if self.settings.key else None

    def bind(self, trace: RequestTrace, skip_reason: str | None = None) -> Self:
        """Return a copy that reports to the trace of one request."""
        bound = object.__new__(type(self))  # `copy` takes five times as long, on every request
        bound.__dict__.update(self.__dict__)
        bound.trace, bound.skip_reason = trace, skip_reason
        return bound

    def copy_disabled(self) -> Self:
        """Return a disabled copy of this provider."""
        bound = copy(self)
        bound.settings = replace(self.settings, enabled=False)
        return bound

    def estimate_wait(self, options: Mapping[str, Any]) -> float:
        """Return the seconds that the work of a request with these options would wait here."""
        return 0.0

    def announce_request(self, options: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Count a request with these options in `estimate_wait` before its payment is settled."""
        return nullcontext()

    def reserve_place(self, options: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Count a request with these options, whose payment is settled, until the end of the block."""
        return nullcontext()

    def record_status(self, status: Status, **more: Any) -> None:
        """Record the status of a call to this provider."""
        self.trace.record(self.info.name, status, **more)

    @asynccontextmanager
    async def limit_time(self, deadline: float) -> AsyncGenerator[None]:
        """Cancel the block at a time of the event loop, record a timeout, and raise TimeoutError.

        A call that is cancelled records nothing itself.
        """
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            self.record_status("timeout")
            raise

    def record_failure(
        self, failure: ProviderFailure, status: Status, method_name: str, cause: str = ""
    ) -> None:
        """Record a failure in the trace, the warnings and the log, with the operator's key redacted."""
        failure.message, cause = self._redact_key(failure.message), self._redact_key(cause)
        self.record_status(status)
        self.trace.add_warning(failure.message)
        log = structlog.get_logger()
        # an unreadable page is a fault of the site, not of this deployment
        (log.info if isinstance(failure, PageUnread) else log.warning)(
            "a provider failed",
            provider=self.info.name,
            asked=method_name,
            message=failure.message,
            cause=cause,
        )

    def _redact_key(self, text: str) -> str:
        """Replace the operator's key in a message; upstreams may repeat request parameters."""
        for part in (self.key or "").split(":"):
            if len(part) >= MIN_SECRET_LENGTH:
                text = text.replace(part, "\u2026")
        return text

    def parse_each(self, rows: Sequence[Any], parse: Callable[[Any], V | None], noun: str) -> list[V]:
        """Parse the rows of an answer; warn of unreadable ones. Raises ProviderError if all are."""
        parsed = [value for row in rows if (value := parse(row)) is not None]
        if rows and not parsed:
            raise self.invalid_response(f"returned {noun} that cannot be parsed")
        if unreadable := len(rows) - len(parsed):
            self.trace.add_warning(
                f"{self.info.label}: {unreadable} of {len(rows)} {noun} could not be read and are left out"
            )
        return parsed

    def no_data(self, what: str) -> NoData:
        """Return a NoData error: the provider has no data; `what` follows `knows` in the message."""
        return NoData(f"{self.info.label} knows {what}")

    def invalid_response(self, what: str) -> ProviderError:
        """Return a ProviderError for an invalid response; `what` follows the provider's name."""
        return ProviderError(self.info.name, f"{self.info.label} {what}")


A = ParamSpec("A")
S = TypeVar("S", bound=Provider)
T = TypeVar("T")


class FetchingProvider(Provider):
    """Provider that fetches pages itself: its requests wait for their sites, and for a parser."""

    announces_requests = True

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self._respects_robots = settings.fetch_robots

    @property
    def _server_resources(self) -> Resources:
        if self.resources is None:
            raise ProviderUnconfigured(self.info.name, f"{self.info.label} has no fetcher")
        return self.resources

    def list_fetches(self, options: Mapping[str, Any]) -> list[str]:
        """Return the addresses that a request with these options fetches, each as often as at once."""
        raise NotImplementedError

    def estimate_wait(self, options: Mapping[str, Any]) -> float:
        """Return the seconds that a page of this buyer would wait for its site, or to be parsed."""
        resources = self._server_resources
        site_wait = resources.fetcher.estimate_wait(self.list_fetches(options), self._key(options))
        return max(site_wait, resources.page_parsers.estimate_wait())

    def announce_request(self, options: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Count the fetches of a request in the queues of their sites."""
        return self._server_resources.fetcher.announce(self.list_fetches(options), self._key(options))

    @contextmanager
    def reserve_place(self, options: Mapping[str, Any]) -> Generator[None]:
        """Count a request in the queues of its sites, and in that of a parser before its page is fetched."""
        resources = self._server_resources
        fetches = resources.fetcher.reserve(self.list_fetches(options), self._key(options))
        with fetches, resources.page_parsers.reserve_place():
            yield

    def _key(self, options: Mapping[str, Any]) -> str:
        """Return a text that is equal for equal requests."""
        return f"{self.info.name} {options}"


def instrumented(
    method: Callable[Concatenate[S, A], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, A], Coroutine[Any, Any, T]]:
    """Wrap a provider's method: enforce its deadline, and record its status and metrics.

    Raises NoData if the upstream has no data, else ProviderFailure, also for a response in an undocumented
    shape: that is the upstream's failure. Each failure also becomes a warning of the answer, since the
    service may be able to continue without this provider.
    """

    @wraps(method)
    async def call(self: S, *args: A.args, **kwargs: A.kwargs) -> T:
        label, seconds = self.info.label, self.remaining_seconds
        started, outcome = time.perf_counter(), None
        try:
            if self.skip_reason:
                raise ProviderUnconfigured(self.info.name, f"{label} {self.skip_reason}")
            if not self.is_configured:
                reason = (
                    "left out, as its terms do not permit resale" if self.is_withheld else "not configured"
                )
                raise ProviderUnconfigured(self.info.name, f"{label} is {reason} on this deployment")
            if not seconds:
                raise ProviderTimeout(self.info.name, f"no time was left to query {label}")
            async with asyncio.timeout(seconds):
                result = await method(self, *args, **kwargs)
        except NoData:
            outcome = "no_data"
            self.record_status("no_data", fetchedAt=format_timestamp())
            raise
        except ProviderUnconfigured:
            self.record_status("skipped" if self.skip_reason else "unconfigured")
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except ProviderFailure as failure:
            outcome = "unread" if isinstance(failure, PageUnread) else _failure_status(failure)
            self.record_failure(failure, _failure_status(failure), method.__name__)
            raise
        except TimeoutError:
            outcome = "timeout"
            late = ProviderTimeout(self.info.name, f"{label} did not answer within {seconds:.3g} s")
            self.record_failure(late, "timeout", method.__name__)
            raise late from None
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            outcome = "error"
            invalid = self.invalid_response("returned a response in an unknown format")
            self.record_failure(invalid, "error", method.__name__, f"{type(error).__name__}: {error}"[:300])
            raise invalid from error
        else:
            outcome = "ok"
            self.record_status("ok", fetchedAt=format_timestamp())
            return result
        finally:
            if outcome and seconds:  # else the upstream was not called
                self.meter.record_provider_call(self.info.name, outcome, time.perf_counter() - started)

    return call


def _failure_status(failure: ProviderFailure) -> Literal["timeout", "rate_limited", "error"]:
    match failure:
        case ProviderTimeout():
            return "timeout"
        case ProviderRateLimited():
            return "rate_limited"
        case _:
            return "error"
