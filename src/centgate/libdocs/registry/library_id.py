"""Parse the IDs that documentation is requested by."""

from __future__ import annotations

import re

from msgspec import Struct

from centgate.libdocs.registry.aliases import REPOSITORIES
from centgate.libdocs.registry.package_candidates import find_repository_candidates
from centgate.libdocs.registry.package_names import (
    REGISTRIES,
    PackageCandidate,
    RegistryName,
    normalize_package_name,
)

_GO_VERSION = re.compile(r"v?[0-9]+\.[^~]*|latest")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


class LibraryReference(Struct, frozen=True):
    """The meaning of a library ID: one package, or a repository whose package must be found."""

    packages: tuple[PackageCandidate, ...]
    """Most likely first."""
    repository: str | None
    """`<owner>/<name>` in lower case if the ID names a repository, which the package must declare as its
    own."""
    version: str | None
    """The requested version; None for the newest."""


def parse_library_id(library_id: str) -> LibraryReference | None:
    """Parse `/pypi/<name>`, `/npm/<name>`, `/npm/@<scope>~<name>`, `/crates/<name>`, `/go/<host>~<path>`
    with `~` for each slash, or `/<owner>/<repository>`.

    A version, or `latest` for the newest, may follow after another `/` or an `@`. Returns None for an
    invalid ID.
    """
    first, *rest = library_id.strip("/").split("/")
    if not rest:
        return None
    if first.lower() == "npm" and rest[0].startswith("@") and "~" not in rest[0] and len(rest) > 1:
        rest = [f"{rest[0]}~{rest[1]}", *rest[2:]]  # npm's own spelling of a scoped name
    if first.lower() == "go" and len(rest) > 1 and not _GO_VERSION.fullmatch(rest[-1]):
        rest = ["~".join(rest)]  # a module's path as Go writes it
    name, version = _split_version(rest[0])
    version = rest[1] if len(rest) == 2 else version
    if len(rest) > 2 or (version is not None and not _VERSION.fullmatch(version)):
        return None
    if version and version.lower() == "latest":
        version = None  # no release has this name, and only npm and Go resolve it
    for registry in REGISTRIES:
        if first.lower() == registry:
            return _package_reference(registry, name, version)
    repository = f"{first}/{name}".lower()
    # for a repository in the table, the repository that its package declares does not matter
    return LibraryReference(
        tuple(find_repository_candidates(first.lower(), name.lower())),
        None if repository in REPOSITORIES else repository,
        version,
    )


def _split_version(name: str) -> tuple[str, str | None]:
    """Split a name from the version after its `@`. A leading `@` marks a scope, not a version."""
    place = name.find("@", 1)
    return (name, None) if place < 0 else (name[:place], name[place + 1 :])


def _package_reference(registry: RegistryName, raw_name: str, version: str | None) -> LibraryReference | None:
    name = normalize_package_name(registry, raw_name)
    return LibraryReference((PackageCandidate(registry, name, 1.0),), None, version) if name else None
