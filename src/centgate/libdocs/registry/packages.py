"""A released package and the score of its maintenance."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from centgate.libdocs.registry.package_names import RegistryName, package_id

ArchiveKind: TypeAlias = Literal["sdist", "wheel", "npm", "crate", "go", "repository"]

_PLACEHOLDER = re.compile(
    r"\b(placeholder|reserved|squat|security holding|dummy package|name reservation|do not use|"
    r"deprecated|renamed to|moved to|has been replaced)\b",
    re.IGNORECASE,
)
MANY_RELEASES = 100
"""Number of releases above which more do not raise the score."""
ABANDONED_YEARS = 6.0
"""Years without a release after which a library counts as abandoned."""


class Archive(Struct, frozen=True):
    """A file of a release, as described by its registry."""

    kind: ArchiveKind
    url: str
    algorithm: Literal["sha256", "sha512", "sha1", "h1"]
    """`h1` is Go's, of the paths and contents of all files of an archive."""
    digest: bytes | None
    """None if nobody publishes one."""
    size: int | None
    """Bytes, if the registry states them."""
    viewer_url: str | None
    """URL prefix to which a path inside the archive is appended to get a page that shows the file."""


class DownloadedArchive(Struct, frozen=True):
    """A downloaded archive, ready to be read."""

    archive: Archive
    file: Path
    """File with its bytes: passing the bytes themselves to the process would block the sender."""
    path_prefix: str = ""
    """Prefix of its paths; empty for the library itself."""


class BadArchive(Exception):
    """The archive is malformed or differs from its registry entry. The message is a clause."""


class Package(Struct, frozen=True):
    """One release of a package. None means that the registry does not say."""

    registry: RegistryName
    name: str
    """Name used in registry requests."""
    title: str
    """Name as the package spells it."""
    version: str
    summary: str | None
    repository: str | None
    """`<owner>/<name>` of its repository on a well-known host, with the case unchanged."""
    deprecated: str | None
    """Reason not to use it any more, in the registry's words."""
    releases: int | None
    published: datetime | None
    archives: tuple[Archive, ...]
    """Best first."""
    readme: str | None = None
    """Its long description, if no archive can be read."""
    has_types: bool = True
    """True if it contains its own types (JavaScript)."""
    parts: tuple[tuple[str, str], ...] = ()
    """Dependencies of its own scope or name, with the versions or ranges that it needs (JavaScript)."""
    sites: tuple[str, ...] = ()
    """URLs of its documentation and its home page, most likely first, as its owners wrote them."""
    is_on_github: bool = False
    """True if its repository is on GitHub."""
    downloads: int | None = None
    """Number of downloads of all releases together (Rust)."""

    @property
    def id(self) -> str:
        """ID to request its documentation by."""
        return package_id(self.registry, self.name)


def maintenance_score(package: Package, now: datetime | None = None) -> float:
    """Score from 0 to 1 how much a package looks like the library that people mean.

    It depends on a description, a repository of the same name, the number of releases and the age of the last
    one. Placeholders and abandoned packages keep a fifth. No part of it is proof: squatters name the real
    repository and invent versions, but seldom publish releases for years.
    """
    releases = math.log1p(package.releases or 0) / math.log1p(MANY_RELEASES)
    score = (
        0.1 * bool(package.summary)
        + 0.2 * _repository_score(package)
        + 0.5 * min(1.0, releases)
        + 0.2 * _freshness_score(package.published, now or datetime.now(UTC))
    )
    is_abandoned = package.deprecated or _PLACEHOLDER.search(package.summary or "")
    return round(score * (0.2 if is_abandoned else 1.0), 4)


def _repository_score(package: Package) -> float:
    """Return 1 for a repository named like the package, 0.5 for any other, 0 for none."""
    if package.repository is None:
        return 0.0
    owner, _, name = package.repository.lower().partition("/")
    own = package.name.lower().split("/")[-1]
    return 1.0 if own in (name, name.removesuffix(".js"), owner) or own in name.split("-") else 0.5


def _freshness_score(published: datetime | None, now: datetime) -> float:
    if published is None:
        return 0.0
    years = (now - published).days / 365
    return max(0.0, min(1.0, 1 - (years - 1) / (ABANDONED_YEARS - 1)))
