"""Packages of the registries: their names, their IDs, and the form in which names are compared."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

RegistryName: TypeAlias = Literal["pypi", "npm", "crates", "go"]
REGISTRIES: tuple[RegistryName, ...] = ("pypi", "npm", "crates", "go")

_GO_MODULE = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/[A-Za-z0-9_.-]+)*")
_NPM_NAME = re.compile(r"(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
_CRATE_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_PYPI_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")


class PackageCandidate(Struct, frozen=True):
    """A package that a name may mean. Its similarity is 1 for the package's own name and for an alias."""

    registry: RegistryName
    name: str
    """Name used in registry requests; a scoped name contains its slash."""
    similarity: float

    @property
    def id(self) -> str:
        """Package ID, such as `/pypi/<name>`, `/npm/@<scope>~<name>` or `/go/github.com~<owner>~<name>`."""
        return package_id(self.registry, self.name)


def package_id(registry: RegistryName, name: str) -> str:
    """Return the ID of a package. It has two segments, so `~` stands for each slash of its name."""
    return f"/{registry}/{name.replace('/', '~')}"


def candidate_from_id(package: str, likeness: float) -> PackageCandidate:
    """Return the package of an ID of PyPI, npm or Go; `likeness` is its similarity."""
    _, registry, name = package.split("/")
    known: RegistryName = "pypi" if registry == "pypi" else "go" if registry == "go" else "npm"
    return PackageCandidate(known, name.replace("~", "/"), likeness)


def normalize_package_name(registry: RegistryName, raw_name: str) -> str | None:
    """Return the normalised name of a package in its registry, or None if it is not valid there.

    PyPI's rule is packaging.python.org's "Name normalization", npm's that of validate-npm-package-name, Go's
    that of go.dev/ref/mod ("Module paths"), of which `~` is not accepted.
    """
    if registry == "go":
        # the case of a module's path matters
        path = raw_name.replace("~", "/").strip("/")
        is_valid = len(path) <= 200 and _GO_MODULE.fullmatch(path) and ".." not in path
        return path if is_valid else None
    lower = raw_name.lower()
    if registry == "crates":
        return lower if len(lower) <= 64 and _CRATE_NAME.fullmatch(lower) else None
    if registry == "npm":
        # `~` separates a scope from its name in package IDs
        name = lower.replace("~", "/", 1) if lower.startswith("@") else lower
        return name if len(name) <= 214 and _NPM_NAME.fullmatch(name) else None
    if len(lower) > 100 or not _PYPI_NAME.fullmatch(lower):
        return None
    return re.sub(r"[-_.]+", "-", lower)


def normalize_library_name(name: str) -> str:
    """Return a name without case and separators, for comparison."""
    return re.sub(r"[\s._/-]+", "", name.lower())
