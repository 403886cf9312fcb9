"""Find packages whose names are similar to an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import fuzz, process

from centgate.libdocs.registry.aliases import ALIASES, PackageCandidate, RegistryName, normalize_library_name

MIN_SIMILARITY = 80
"""Minimum similarity, of 100, of a suggested name."""
MAX_SUGGESTIONS = 3


def suggest_similar(
    name: str, indexed_libraries: Iterable[tuple[RegistryName, str]]
) -> list[PackageCandidate]:
    """Return well-known libraries, and libraries with an index here, whose names are similar."""
    normalized_names = {
        PackageCandidate(registry, library, 1.0): normalize_library_name(library)
        for registry, library in indexed_libraries
    }
    for package in ALIASES:
        _, registry, library = package.split("/")
        candidate = PackageCandidate(
            "pypi" if registry == "pypi" else "npm", library.replace("~", "/", 1), 1.0
        )
        normalized_names.setdefault(candidate, normalize_library_name(library))
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
