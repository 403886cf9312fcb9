"""Suggest and describe the packages that a name may mean, best first."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from centgate.libdocs.index.index_file import read_metadata
from centgate.libdocs.index.store import IndexKey, IndexStore
from centgate.libdocs.libraries import DocumentedLibrary
from centgate.libdocs.registry.aliases import ALIASES
from centgate.libdocs.registry.package_names import (
    PackageCandidate,
    RegistryName,
    candidate_from_id,
    normalize_library_name,
)
from centgate.libdocs.registry.packages import Package, maintenance_score
from centgate.libdocs.registry.popular_packages import is_well_known

MAX_RESULTS = 5
MIN_SCORE = 0.2
"""Candidates with a lower score are dropped if there is a better one."""

WEAK_SCORE = 0.75
"""Score below which the best package may be a namesake of a library of another ecosystem."""
MEANT = 0.9
"""Similarity of a package that the name of a repository means, whatever its own name is."""
MIN_DOWNLOADS = 100_000
"""Downloads below which a crate is no competitor of a package of the same name in another registry."""
MIN_SIMILARITY = 80
"""Minimum similarity, of 100, of a suggested name."""
MAX_SUGGESTIONS = 3


def suggest_similar(
    name: str, indexed_libraries: Iterable[tuple[RegistryName, str]]
) -> list[PackageCandidate]:
    """Return well-known libraries, and libraries with an index here, whose names are similar."""
    from rapidfuzz import fuzz, process  # late, see `runtime.LATE_MODULES`

    normalized_names = {
        PackageCandidate(registry, library, 1.0): normalize_library_name(library)
        for registry, library in indexed_libraries
    }
    for package in ALIASES:
        candidate = candidate_from_id(package, 1.0)
        normalized_names.setdefault(candidate, normalize_library_name(candidate.name))
    found = process.extract(
        normalize_library_name(name),
        normalized_names,
        scorer=fuzz.ratio,
        limit=MAX_SUGGESTIONS,
        score_cutoff=MIN_SIMILARITY,
    )
    return [
        PackageCandidate(candidate.registry, candidate.name, round(score / 150, 2))
        for _, score, candidate in found
    ]


def add_namesake(
    found: Sequence[tuple[PackageCandidate, Package]], crate: tuple[PackageCandidate, Package]
) -> list[tuple[PackageCandidate, Package]]:
    """Return the packages with a crate of the same name, if it is widely used or nothing else was found."""
    return [*found, crate] if not found or (crate[1].downloads or 0) >= MIN_DOWNLOADS else [*found]


def rank_by_repository(
    repository: str, found: Sequence[tuple[PackageCandidate, Package]]
) -> tuple[list[tuple[PackageCandidate, Package]], bool]:
    """Return packages found for `<owner>/<name>`, less similar if another is meant; True if one names it.

    Without such a one, it may be a part of a well-known package, such as `lodash/fp`, unless its own name is
    that of one: repositories move, and packages go on naming another address.
    """
    declaring = [each for each, package in found if (package.repository or "").lower() == repository]
    owner = repository.split("/")[0]
    owners = [each for each, _ in found if each.name == owner and is_well_known(replace(each, similarity=1))]
    is_named = any(is_well_known(each) and each.name != owner for each, _ in found)
    meant = declaring or ([] if is_named else owners)
    ranked = [(_rank_meant(each, package, meant) if meant else each, package) for each, package in found]
    return ranked, bool(declaring)


def _rank_meant(
    candidate: PackageCandidate, package: Package, meant: Sequence[PackageCandidate]
) -> PackageCandidate:
    """Return a candidate, more similar if it is meant, else less.

    A well-known package that names no repository stays: anyone can publish a namesake that names this one.
    """
    if candidate in meant:
        return replace(candidate, similarity=max(candidate.similarity, MEANT))
    if package.repository is None and is_well_known(candidate):
        return candidate
    return replace(candidate, similarity=candidate.similarity / 2)


def describe_candidates(
    found: Sequence[tuple[PackageCandidate, Package]], shelves: IndexStore, certainty: float
) -> list[DocumentedLibrary]:
    """Return the packages by how likely each is meant: similarity of the name times maintenance score.

    All scores are multiplied by the certainty that the right library can be among them. Reads files, so call
    it in a thread.
    """
    scored = [(score_candidate(candidate, package), package) for candidate, package in found]
    scored.sort(key=lambda each: -each[0])
    results = [each for each in scored if each[0] >= MIN_SCORE] or scored
    return [
        _describe_package(round(score * certainty, 3), package, shelves)
        for score, package in results[:MAX_RESULTS]
    ]


def score_candidate(candidate: PackageCandidate, package: Package) -> float:
    """Return how likely a package is meant, from 0 to 1."""
    return candidate.similarity * (0.3 + 0.7 * maintenance_score(package))


def index_key(package: Package) -> IndexKey:
    """Return the key of a package's index."""
    return IndexKey(package.registry, package.name, package.version)


def _describe_package(score: float, package: Package, shelves: IndexStore) -> DocumentedLibrary:
    return DocumentedLibrary(
        id=package.id,
        title=package.title,
        description=_format_description(package),
        snippet_count=_count_snippets(package, shelves),
        version=package.version,
        score=score,
    )


def _format_description(package: Package) -> str | None:
    if package.deprecated is None:
        return package.summary
    return f"Deprecated ({package.deprecated}). {package.summary or ''}".rstrip()


def _count_snippets(package: Package, shelves: IndexStore) -> int | None:
    """Return the number of snippets in the index; None without an index."""
    file = shelves.find(index_key(package))
    try:
        return int(read_metadata(file)["snippet_count"]) if file else None
    except (sqlite3.Error, LookupError, ValueError):
        return None
