"""Names that are nearly the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import fuzz, process

from centgate.libdocs.aliases import NAMES, Candidate, RegistryName, key

NEAR = 80
"""The least likeness, of 100, of a name that may have been meant."""
MOST = 3


def near(name: str, shelved: Iterable[tuple[RegistryName, str]]) -> list[Candidate]:
    """Well-known libraries, and those that were asked for here before, with nearly this name."""
    known = {Candidate(registry, library, 1.0): key(library) for registry, library in shelved}
    for package in NAMES:
        _, registry, library = package.split("/")
        candidate = Candidate("pypi" if registry == "pypi" else "npm", library.replace("~", "/", 1), 1.0)
        known.setdefault(candidate, key(library))
    found = process.extract(key(name), known, scorer=fuzz.ratio, limit=MOST, score_cutoff=NEAR)
    return [
        Candidate(candidate.registry, candidate.name, round(score / 150, 2)) for _, score, candidate in found
    ]
