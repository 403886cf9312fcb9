"""What a provider is: one upstream, who it is, in which role a service asks it, and what it reports."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

if TYPE_CHECKING:
    from centgate.settings import Settings

RoleName = Literal["primary", "secondary", "enrichment", "fallback"]
Status = Literal["ok", "error", "timeout", "rate_limited", "no_data", "unconfigured", "skipped"]


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


@dataclass(frozen=True, slots=True)
class Role:
    """The part a provider plays for one service; written in the service's signature."""

    name: RoleName


P = TypeVar("P", bound="Provider")
Primary = Annotated[P, Role("primary")]
Secondary = Annotated[P, Role("secondary")]
Enrichment = Annotated[P, Role("enrichment")]
Fallback = Annotated[P, Role("fallback")]


@dataclass(slots=True)
class Record:
    """What the providers of one request did: becomes `providers` and `warnings` of the answer."""

    providers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    warnings: list[str] = field(default_factory=list[str])

    def note(self, name: str, status: Status, **more: str | None) -> None:
        """Enter what `name` did; `more` are further members of its entry."""
        self.providers.append({"name": name, "status": status, **more})

    def warn(self, sentence: str) -> None:
        """Enter a degradation, as a sentence for people and agents."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)


class Provider:
    """One upstream behind methods named after what is known, our words in and our words out.

    A provider lives as long as the process; a request works with `on(record)`, a copy that reports to the
    request's own record.
    """

    about: ClassVar[About]
    record: Record

    def __init__(self, settings: Settings) -> None:
        self.settings = settings.provider(self.about.name)
        self.record = Record()

    @property
    def configured(self) -> bool:
        """Whether it can be asked on this deployment."""
        return self.settings.enabled and (self.about.key != "required" or self.settings.key is not None)

    def on(self, record: Record) -> Self:
        """This provider, reporting to one request's record."""
        bound = copy(self)
        bound.record = record
        return bound

    def report(self, status: Status, **more: str | None) -> None:
        """Enter what came of asking this provider."""
        self.record.note(self.about.name, status, **more)


class Announced(Provider):
    """A provider the catalogue names although this build has no adapter for it: never configured."""

    @property
    def configured(self) -> bool:
        return False


def timestamp(moment: datetime | None = None) -> str:
    """A moment, now by default, as ISO 8601 in UTC to the second."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
