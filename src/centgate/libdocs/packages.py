"""A released package, and how well kept it looks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from centgate.libdocs.aliases import RegistryName, package_id

ArchiveKind: TypeAlias = Literal["sdist", "wheel", "npm"]

_PLACEHOLDER = re.compile(
    r"\b(placeholder|reserved|squat|security holding|dummy package|name reservation|do not use|"
    r"deprecated|renamed to|moved to|has been replaced)\b",
    re.IGNORECASE,
)
MANY_RELEASES = 100
"""Releases from which more say nothing more."""
OLD_YEARS = 6.0
"""Years without a release after which a library counts as left."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A file of a release, as its registry tells it."""

    kind: ArchiveKind
    url: str
    algorithm: Literal["sha256", "sha512", "sha1"]
    digest: bytes
    size: int | None
    """Bytes, where the registry says how many."""
    shown_at: str | None
    """What a path inside the archive is appended to for an address that shows that file."""


@dataclass(frozen=True, slots=True)
class Package:
    """One release of a package. None is what the registry does not say."""

    registry: RegistryName
    name: str
    """As the registry is asked for it."""
    title: str
    """As the package calls itself."""
    version: str
    summary: str | None
    repository: str | None
    """`<owner>/<name>` of its repository on a well-known host, as it is written."""
    deprecated: str | None
    """Why it should not be used any more, in the registry's words."""
    releases: int | None
    published: datetime | None
    archives: tuple[Archive, ...]
    """Best first."""
    readme: str | None = None
    """Its description at length, where no archive can be read."""
    typed: bool = True
    """Whether it brings its own types (JavaScript)."""
    parts: tuple[tuple[str, str], ...] = ()
    """Packages of its own scope that it is made of, with their versions or `latest` (JavaScript)."""

    @property
    def id(self) -> str:
        """What documentation is asked for by."""
        return package_id(self.registry, self.name)


def standing(package: Package, now: datetime | None = None) -> float:
    """How much a package looks like the library that people mean, from 0 to 1.

    Counted are a description, a repository of the same name, the number of releases and the age of the
    last. A placeholder and a package given up keep a fifth. None of it alone is proof: squatters name the
    true repository and invent versions, but seldom release for years.
    """
    releases = math.log1p(package.releases or 0) / math.log1p(MANY_RELEASES)
    score = (
        0.1 * bool(package.summary)
        + 0.2 * _repository(package)
        + 0.5 * min(1.0, releases)
        + 0.2 * _freshness(package.published, now or datetime.now(UTC))
    )
    given_up = package.deprecated or _PLACEHOLDER.search(package.summary or "")
    return round(score * (0.2 if given_up else 1.0), 4)


def _repository(package: Package) -> float:
    """1 for a repository called like the package, a half for any other."""
    if package.repository is None:
        return 0.0
    owner, _, name = package.repository.lower().partition("/")
    own = package.name.lower().split("/")[-1]
    return 1.0 if own in (name, name.removesuffix(".js"), owner) or own in name.split("-") else 0.5


def _freshness(published: datetime | None, now: datetime) -> float:
    if published is None:
        return 0.0
    years = (now - published).days / 365
    return max(0.0, min(1.0, 1 - (years - 1) / (OLD_YEARS - 1)))
