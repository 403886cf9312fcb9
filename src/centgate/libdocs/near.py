"""Find packages whose names are similar to an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import fuzz, process

from centgate.libdocs.aliases import NAMES, Candidate, RegistryName, key

MIN_SIMILARITY = 80
"""Minimum similarity, of 100, of a suggested name."""
MAX_SUGGESTIONS = 3


def near(name: str, indexed_libraries: Iterable[tuple[RegistryName, str]]) -> list[Candidate]:
    """Return well-known libraries, and libraries with an index here, whose names are similar."""
    normalized_names = {
        Candidate(registry, library, 1.0): key(library) for registry, library in indexed_libraries
    }
    for package in NAMES:
        _, registry, library = package.split("/")
        candidate = Candidate("pypi" if registry == "pypi" else "npm", library.replace("~", "/", 1), 1.0)
        normalized_names.setdefault(candidate, key(library))
    found = process.extract(
        key(name), normalized_names, scorer=fuzz.ratio, limit=MAX_SUGGESTIONS, score_cutoff=MIN_SIMILARITY
    )
    return [
        Candidate(candidate.registry, candidate.name, round(score / 150, 2)) for _, score, candidate in found
    ]
