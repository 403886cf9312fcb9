"""The ids that documentation is asked for by."""

from __future__ import annotations

import re
from dataclasses import dataclass

from centgate.libdocs.aliases import REPOSITORIES, Candidate, RegistryName, of_repository, package_name

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an id stands for: one package, or a repository whose package is to be found."""

    packages: tuple[Candidate, ...]
    """Likeliest first."""
    repository: str | None
    """`<owner>/<name>` in lower case where it is a repository, which the package must say it is from."""
    version: str | None
    """As it was asked for; None for the newest."""


def read_id(library_id: str) -> Wanted | None:
    """Read `/pypi/<name>`, `/npm/<name>`, `/npm/@<scope>~<name>` or `/<owner>/<repository>`.

    A version may stand after a further `/` or an `@`. None for what can be no id.
    """
    first, *rest = library_id.strip("/").split("/")
    if not rest:
        return None
    if first.lower() == "npm" and rest[0].startswith("@") and "~" not in rest[0] and len(rest) > 1:
        rest = [f"{rest[0]}~{rest[1]}", *rest[2:]]  # a scope written as npm writes it
    name, version = _versioned(rest[0])
    version = rest[1] if len(rest) == 2 else version
    if len(rest) > 2 or (version is not None and not _VERSION.fullmatch(version)):
        return None
    if first.lower() in ("pypi", "npm"):
        return _package("pypi" if first.lower() == "pypi" else "npm", name, version)
    repository = f"{first}/{name}".lower()
    # what a repository in the table holds is known, wherever its package says that it is now
    return Wanted(
        tuple(of_repository(first.lower(), name.lower())),
        None if repository in REPOSITORIES else repository,
        version,
    )


def _versioned(name: str) -> tuple[str, str | None]:
    """A name and the version behind its `@`; the one that begins a scope is no such."""
    place = name.find("@", 1)
    return (name, None) if place < 0 else (name[:place], name[place + 1 :])


def _package(registry: RegistryName, written: str, version: str | None) -> Wanted | None:
    name = package_name(registry, written)
    return Wanted((Candidate(registry, name, 1.0),), None, version) if name else None
