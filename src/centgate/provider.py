"""What a provider is: one upstream, who it is, in which role a service asks it, and what it reports."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Concatenate, Literal, ParamSpec, Self, TypeVar

import structlog

from centgate.chains import CHAIN_BY_ID
from centgate.errors import (
    NoData,
    PageUnread,
    ProviderError,
    ProviderFailure,
    ProviderRateLimited,
    ProviderTimeout,
    ProviderUnconfigured,
)
from centgate.meter import SILENT
from centgate.text import timestamp
from centgate.upstream import Rate, Upstream, joined

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

RoleName = Literal["primary", "secondary", "enrichment", "fallback"]
Status = Literal["ok", "error", "timeout", "rate_limited", "no_data", "unconfigured", "skipped"]
MEGABYTE = 1 << 20
SECRET_LENGTH = 6
"""Characters from which a part of a key is one, and not a word."""


@dataclass(frozen=True, slots=True)
class About:
    """Who a provider is. `name` is what answers and settings call it (`CENTGATE_<NAME>_KEY`)."""

    name: str
    label: str
    docs_url: str
    url: str | None = None
    """Where its API answers unless `CENTGATE_<NAME>_URL` says otherwise; None where it has none."""
    terms: str = ""
    """What an operator who sells its answers should know of its terms of use."""
    key: Literal["none", "optional", "required"] = "none"
    rate: Rate | None = None
    """How often it may be asked, as it publishes it; `CENTGATE_<NAME>_PER_MINUTE` says otherwise."""
    timeout: float = 8
    """Seconds that a question may take, all its calls together; `CENTGATE_<NAME>_TIMEOUT` says otherwise."""
    max_bytes: int = 4 * MEGABYTE
    """The longest answer that is read."""
    per_chain: bool = False
    """Whether it has an address, and a switch, for each chain (`CENTGATE_<NAME>_<CHAINID>_URL`)."""
    addresses: tuple[tuple[str, str], ...] = ()
    """Names and addresses of its parts in place of one `url` (`CENTGATE_<NAME>_<PART>_URL`)."""

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of its settings without the prefix; `*` stands for the id of a chain."""
        name = self.name.upper()
        key = () if self.key == "none" else ("KEY",)
        urls = [f"{part.upper()}_URL" for part, _ in self.addresses] or ["URL"]
        every = ("ENABLED", *urls, *key, "PER_MINUTE", "TIMEOUT")
        chains = ("*_ENABLED", "*_URL") if self.per_chain else ()
        return tuple(f"{name}_{each}" for each in (*every, *chains))


@dataclass(frozen=True, slots=True)
class Role:
    """The part a provider plays for one service; written in the service's signature.

    Legs stand in for one another, in the signature's order: of those that are set up the first is the
    primary, the others are its fallbacks.
    """

    name: RoleName | Literal["leg"]
    replaces_failed: bool = True
    """False for a fallback that answers only where no other source is set up, or where those know nothing."""


P = TypeVar("P", bound="Provider")
Primary = Annotated[P, Role("primary")]
Secondary = Annotated[P, Role("secondary")]
Enrichment = Annotated[P, Role("enrichment")]
Fallback = Annotated[P, Role("fallback")]
GapFallback = Annotated[P, Role("fallback", replaces_failed=False)]
Leg = Annotated[P, Role("leg")]

_WEIGHT: dict[Status, int] = {
    "skipped": 0,
    "unconfigured": 1,
    "no_data": 2,
    "ok": 3,
    "rate_limited": 4,
    "timeout": 5,
    "error": 6,
}
"""Of several things that happened to one provider in a request, the heaviest is its status."""


ANSWER_SECONDS = 20.0
"""Seconds that an answer may take, however many providers stand in for one another: buyers wait 30 or so."""


@dataclass(slots=True)
class Record:
    """What the providers of one request did: becomes `providers` and `warnings` of the answer."""

    until: float = math.inf
    """When the request's time is up, on the monotonic clock."""
    providers: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    warnings: list[str] = field(default_factory=list[str])
    provisional: bool = False
    """Whether a source gave less than it will have in a moment, so that the answer is not kept for long."""

    @classmethod
    def begun(cls) -> Record:
        """The record of a request whose time begins now."""
        return cls(until=time.monotonic() + ANSWER_SECONDS)

    def left(self, most: float) -> float:
        """Seconds for a question that may take `most`."""
        return max(0.0, min(most, self.until - time.monotonic()))

    def note(self, name: str, status: Status, **more: Any) -> None:
        """Enter what `name` did; `more` are further members of its entry."""
        entry = self.providers.setdefault(name, {"name": name, "status": status})
        if {"fetchedAt"} <= entry.keys() & more.keys():
            # an answer is as old as its oldest part
            more["fetchedAt"] = min(entry["fetchedAt"], more["fetchedAt"])
        if _WEIGHT[status] > _WEIGHT[entry["status"]]:
            entry["status"] = status
        entry.update(more)

    def warn(self, sentence: str) -> None:
        """Enter a degradation, as a sentence for people and agents."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)


class Provider:
    """One upstream behind methods named after what is known, our words in and our words out.

    Its public methods are `@reported`. A provider lives as long as the process; a request works with
    `on(record)`, a copy that reports to the request's own record.
    """

    about: ClassVar[About]
    record: Record
    excused: str | None = None
    """Why it is not asked in this request, as a clause; None where it is asked."""

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        """`resources` is None where providers are only tried on, to see that their settings hold."""
        self.settings = settings.provider(self.about.name)
        self.resources = resources
        self.timeout = self.settings.timeout or self.about.timeout
        self.record = Record()
        self.meter = resources.meter if resources else SILENT
        self.upstream = self.way_out(resources, settings)

    @property
    def rate(self) -> Rate | None:
        """How often it may be asked."""
        return Rate(self.settings.per_minute) if self.settings.per_minute else self.about.rate

    def way_out(
        self, resources: Resources | None, settings: Settings, label: str | None = None, *, part: str = ""
    ) -> Upstream:
        """A connection to this upstream, or to a part of it, with turns of its own.

        `label` is what people call the part. Where parts share the upstream's, `part` tells them apart.
        """
        rate, own = self.rate, part or label
        name = f"{self.about.name}:{own}" if own else self.about.name
        return Upstream(
            self.about.name,
            label or self.about.label,
            resources.session if resources else None,
            turns=resources.turns(rate, settings.workers, name=name) if rate and resources else None,
            max_bytes=self.about.max_bytes,
            patience=self.timeout / 2,
            meter=self.meter,
        )

    @property
    def configured(self) -> bool:
        """Whether it can be asked on this deployment."""
        return self.settings.enabled and (self.about.key != "required" or self.settings.key is not None)

    def covers(self, chain_id: int | None) -> bool:
        """Whether it can say anything of a chain; None asks for questions that are about no chain."""
        return chain_id is None or chain_id in CHAIN_BY_ID

    def cannot(self, asked: Mapping[str, Any]) -> tuple[str, ...]:
        """The options of a request, by their names on the wire, that it cannot honour.

        `asked` is the request as JSON with its defaults. It is then not asked, and never gives less instead.
        """
        return ()

    def upstreams_for(self, chain_id: int | None, asked: Mapping[str, Any]) -> Sequence[Upstream]:
        """Return the upstreams of which one must answer for this request; none where no upstream is needed.

        `asked` is the request as JSON with its defaults. For providers that ask more than one upstream, or
        that keep what they were told.
        """
        return (self.upstream,)

    def url(self, path: str) -> str:
        """The address of a path (with its leading slash) of this upstream's API."""
        return joined(self.settings.url or self.about.url or "", path)

    @property
    def left(self) -> float:
        """Seconds that a question may take now: its own deadline, or what is left of the request's time."""
        return self.record.left(self.timeout)

    @property
    def key(self) -> str | None:
        """The operator's key, in the clear."""
        return self.settings.key.get_secret_value() if self.settings.key else None

    def on(self, record: Record, excused: str | None = None) -> Self:
        """This provider, reporting to one request's record."""
        bound = copy(self)
        bound.record, bound.excused = record, excused
        return bound

    def off(self) -> Self:
        """This provider where the operator does not want it asked."""
        bound = copy(self)
        bound.settings = replace(self.settings, enabled=False)
        return bound

    def report(self, status: Status, **more: Any) -> None:
        """Enter what came of asking this provider."""
        self.record.note(self.about.name, status, **more)

    def failing(self, failure: ProviderFailure, status: Status, asked: str, cause: str = "") -> None:
        """Enter a failure, warn of it in the answer, and tell the operator; none hears the operator's key."""
        failure.message, cause = self._without_key(failure.message), self._without_key(cause)
        self.report(status)
        self.record.warn(failure.message)
        log = structlog.get_logger()
        # a page that cannot be read is the site's matter, and none of the operator's
        (log.info if isinstance(failure, PageUnread) else log.warning)(
            "a provider failed", provider=self.about.name, asked=asked, message=failure.message, cause=cause
        )

    def _without_key(self, said: str) -> str:
        """What an upstream said, which may repeat what it was asked with."""
        for part in (self.key or "").split(":"):
            if len(part) >= SECRET_LENGTH:
                said = said.replace(part, "\u2026")
        return said

    def nothing(self, what: str) -> NoData:
        """The error that says that this provider answered and knows nothing; `what` is a clause."""
        return NoData(f"{self.about.label} knows {what}")

    def failed(self, what: str) -> ProviderError:
        """The error that says that this provider answered wrongly; `what` follows its name."""
        return ProviderError(self.about.name, f"{self.about.label} {what}")


class Announced(Provider):
    """A provider the catalogue names although this build has no adapter for it: never configured."""

    @property
    def configured(self) -> bool:
        return False


A = ParamSpec("A")
S = TypeVar("S", bound=Provider)
T = TypeVar("T")


def reported(
    method: Callable[Concatenate[S, A], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, A], Coroutine[Any, Any, T]]:
    """Make a provider's method keep its deadline and enter in the record what came of it.

    Raises NoData when the upstream knows nothing, else ProviderFailure, also for an answer that could not be
    read: a reply in another shape than documented is the upstream's failure, not ours. A failure is a warning
    of the answer as well, since whoever asks may be able to do without.
    """

    @wraps(method)
    async def asked(self: S, *args: A.args, **kwargs: A.kwargs) -> T:
        label, seconds = self.about.label, self.left
        started, outcome = time.perf_counter(), None
        try:
            if self.excused:
                raise ProviderUnconfigured(self.about.name, f"{label} {self.excused}")
            if not self.configured:
                raise ProviderUnconfigured(self.about.name, f"{label} is not set up on this deployment")
            if not seconds:
                raise ProviderTimeout(self.about.name, f"there was no time left to ask {label}")
            async with asyncio.timeout(seconds):
                answer = await method(self, *args, **kwargs)
        except NoData:
            outcome = "no_data"
            self.report("no_data", fetchedAt=timestamp())
            raise
        except ProviderUnconfigured:
            self.report("skipped" if self.excused else "unconfigured")
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except ProviderFailure as failure:
            outcome = "unread" if isinstance(failure, PageUnread) else _status(failure)
            self.failing(failure, _status(failure), method.__name__)
            raise
        except TimeoutError:
            outcome = "timeout"
            late = ProviderTimeout(self.about.name, f"{label} did not answer within {seconds:.3g} s")
            self.failing(late, "timeout", method.__name__)
            raise late from None
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            outcome = "error"
            unread = self.failed("answered in a shape that is not known here")
            self.failing(unread, "error", method.__name__, f"{type(error).__name__}: {error}"[:300])
            raise unread from error
        else:
            outcome = "ok"
            self.report("ok", fetchedAt=timestamp())
            return answer
        finally:
            if outcome:  # it was asked
                self.meter.asked(self.about.name, outcome, time.perf_counter() - started)

    return asked


def _status(failure: ProviderFailure) -> Literal["timeout", "rate_limited", "error"]:
    match failure:
        case ProviderTimeout():
            return "timeout"
        case ProviderRateLimited():
            return "rate_limited"
        case _:
            return "error"
