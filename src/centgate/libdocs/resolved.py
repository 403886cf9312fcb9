"""What is told of the packages that a name may mean, best first."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from centgate.facts.libraries import Documented
from centgate.libdocs import index
from centgate.libdocs.aliases import Candidate
from centgate.libdocs.packages import Package, standing
from centgate.libdocs.shelves import Shelves, Title

MOST = 5
WEAK = 0.2
"""A score below which a candidate is left out where there is a better one."""


def told(found: Sequence[tuple[Candidate, Package]], shelves: Shelves) -> list[Documented]:
    """The packages by how likely each is meant: how like its name is, times how well kept it looks.

    Reads files, so it is for a thread.
    """
    scored = [(candidate.likeness * (0.3 + 0.7 * standing(package)), package) for candidate, package in found]
    scored.sort(key=lambda each: -each[0])
    strong = [each for each in scored if each[0] >= WEAK] or scored
    return [_documented(round(score, 3), package, shelves) for score, package in strong[:MOST]]


def title_of(package: Package) -> Title:
    """What its index is kept under."""
    return Title(package.registry, package.name, package.version)


def _documented(score: float, package: Package, shelves: Shelves) -> Documented:
    return Documented(
        id=package.id,
        title=package.title,
        description=_description(package),
        snippet_count=_snippets(package, shelves),
        version=package.version,
        score=score,
    )


def _description(package: Package) -> str | None:
    if package.deprecated is None:
        return package.summary
    return f"Deprecated ({package.deprecated}). {package.summary or ''}".rstrip()


def _snippets(package: Package, shelves: Shelves) -> int | None:
    """How many snippets the index has; None while there is none."""
    file = shelves.find(title_of(package))
    try:
        return int(index.about(file)["snippet_count"]) if file else None
    except (sqlite3.Error, LookupError, ValueError):
        return None
