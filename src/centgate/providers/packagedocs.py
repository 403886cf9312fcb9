"""Built-in package documentation: reads the documentation in packages of PyPI, npm, crates.io and Go."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from centgate.errors import (
    ProviderFailure,
)
from centgate.fallback import open_task_group
from centgate.libdocs.index.index_file import read_metadata
from centgate.libdocs.index.resolve import (
    WEAK_SCORE,
    add_namesake,
    describe_candidates,
    index_key,
    rank_by_repository,
    score_candidate,
    suggest_similar,
)
from centgate.libdocs.index.store import IndexKey
from centgate.libdocs.libraries import DocSnippet, DocumentedLibrary
from centgate.libdocs.registry import crates, go, npm, pypi
from centgate.libdocs.registry.client import RegistryClient
from centgate.libdocs.registry.known_libraries import find_standard_library
from centgate.libdocs.registry.library_id import LibraryReference, parse_library_id
from centgate.libdocs.registry.package_candidates import (
    SEARCHED_REGISTRIES,
    find_candidates,
    find_linked_module,
    find_named_repository,
    find_namesake_crate,
    find_other_ecosystem,
    names_go,
    names_package,
    names_rust,
)
from centgate.libdocs.registry.package_names import (
    PackageCandidate,
    RegistryName,
    normalize_library_name,
    package_id,
)
from centgate.libdocs.registry.packages import Package
from centgate.libdocs.registry.parsing import MAX_ARCHIVE_BYTES, find_newest_of, is_same_version
from centgate.libdocs.registry.popular_packages import find_missed_registry, is_well_known, may_be_missed
from centgate.libdocs.registry.specifiers import admits, parse_specifier, plain_version
from centgate.provider import Provider, ProviderInfo, instrumented
from centgate.providers.packagedocs_indexer import BUILD_RETRY_AFTER, CUT_SITE, PackageIndexer
from centgate.sanitize import clean_line
from centgate.upstream import Upstream

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

ID_HINT = "libdocs-resolve-library gives the ids, such as /pypi/httpx and /npm/@tanstack~react-query"
READ_REGISTRIES = "PyPI, npm, crates.io and Go modules"
LANGUAGES: Mapping[RegistryName, str] = {"pypi": "Python", "npm": "JavaScript", "crates": "Rust", "go": "Go"}
UNCERTAIN = 0.5
"""Share that is left of scores while a failed registry may have the library that is meant."""
CRATE_HINT = "send its name on crates.io, such as docs.rs/tokio, or its id, /crates/tokio"
GO_HINT = "send its path, such as pkg.go.dev/github.com/spf13/cobra, or its id, /go/github.com~spf13~cobra"
VERSION_CHECK_SECONDS = 4
"""Seconds for a registry to return the newest version if an older index could answer."""


class PackageDocs(Provider):
    """Names resolved in the registries, and documentation from the packages published there.

    An index of a release's archives is built on the first request, and stored on disk.
    """

    info = ProviderInfo(
        "packagedocs",
        "Built-in package documentation",
        docs_url="https://packaging.python.org/en/latest/specifications/simple-repository-api/",
        part_urls=(
            ("pypi", pypi.BASE_URL),
            ("npm", npm.BASE_URL),
            ("crates", crates.BASE_URL),
            ("go", go.BASE_URL),
            ("gosums", go.SUMS_URL),
            ("github", ""),
        ),
        resale="permitted",
        terms="The registries are free for fair use; what is in a package is under its own licence.",
        timeout=20,
        max_bytes=MAX_ARCHIVE_BYTES,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        addresses = {
            part: settings.provider_settings(f"packagedocs_{part}").url for part, _ in self.info.part_urls
        }
        self._registries = RegistryClient(
            pypi.PypiRegistry(self.open_upstream(resources, settings, "PyPI"), addresses["pypi"]),
            npm.NpmRegistry(self.open_upstream(resources, settings, "npm"), addresses["npm"]),
            crates=crates.CratesRegistry(
                self.open_upstream(resources, settings, "crates.io"), addresses["crates"]
            ),
            go=go.GoRegistry(
                self.open_upstream(resources, settings, "the Go module proxy"),
                addresses["go"],
                addresses["gosums"],
            ),
        )
        self._indexer = PackageIndexer(self, self._registries, settings, github_url=addresses["github"])
        self._indexes = self._indexer.store

    def upstreams_for(self, chain_id: int | None, options: Mapping[str, Any]) -> Sequence[Upstream]:
        """Return the registries that can have the requested packages; all of them while all are up."""
        all_upstreams = self._registries.upstreams
        if not any(upstream.breaker.is_open for upstream in all_upstreams):
            return all_upstreams
        library_id = options.get("libraryId")
        library = parse_library_id(str(library_id)) if library_id is not None else None
        packages = (
            library.packages
            if library
            else find_candidates(parse_specifier(str(options.get("libraryName", ""))).name)
        )
        upstreams = self._registries.upstreams_of(packages)
        if not all(upstream.breaker.is_open for upstream in upstreams):
            return upstreams
        # indexes are looked up on disk, so only if they matter
        is_indexed = (
            self._find_index(library) is not None if library else self._registries.knows_any(packages)
        )
        return () if is_indexed else upstreams

    def estimate_wait(self, options: Mapping[str, Any]) -> float:
        """Return the seconds until a library can be read that has no index; 0 for all other requests."""
        if not self._indexes.is_full:
            return 0.0
        library = parse_library_id(str(options.get("libraryId", "")))
        if library is None or self._find_index(library):
            return 0.0
        is_building = any(self._indexes.is_building(each.registry, each.name) for each in library.packages)
        return 0.0 if is_building else BUILD_RETRY_AFTER

    @instrumented
    async def find_libraries(self, name: str) -> list[DocumentedLibrary]:
        """Return at most five packages that match a name, best first; NoData if nothing matches."""
        specifier = parse_specifier(name)
        libraries = await self._find_libraries(specifier.name)
        if specifier.version:
            self._warn_of_version(specifier.name, specifier.version, libraries[0])
        return libraries

    async def _find_libraries(self, name: str) -> list[DocumentedLibrary]:
        """Return the packages that match a name without its version."""
        if ecosystem := find_other_ecosystem(name):
            raise self.no_data(
                f"no package {clean_line(name)!r}, which is a library of {ecosystem}: only {READ_REGISTRIES} "
                "are read; for a package of that name there, send its id, such as /npm/<name>"
            )
        candidates = find_candidates(name)
        if names_go(name) and not any(each.registry == "go" for each in candidates):
            raise self.no_data(f"no module of Go known as {clean_line(name)!r}; {GO_HINT}")
        found, certainty = await self._find_named(name, candidates)
        if not found and names_rust(name):
            raise self.no_data(f"no crate known as {clean_line(name)!r}; {CRATE_HINT}")
        standard = find_standard_library(name)
        if standard and not found:
            raise self.no_data(
                f"no package {clean_line(name)!r}, which is {standard}: only {READ_REGISTRIES} are read"
            )
        if standard and not any(is_well_known(each) for each, _ in found):
            self.trace.add_warning(
                f"{clean_line(name)!r} is also {standard}, whose documentation is not read: "
                "these are packages of that name"
            )
        if not found:
            found = await self._find_similar(name)
        if not found:
            raise self.no_data(f"no library called {clean_line(name) or ''!r}")
        libraries = await asyncio.to_thread(describe_candidates, found, self._indexes, certainty)
        self._prepare_counts(libraries, {package.id: package for _, package in found})
        return libraries

    @instrumented
    async def query_docs(self, library_id: str, topic: str | None, budget: int) -> list[DocSnippet]:
        """Return the snippets for a topic, best first, of at most `budget` tokens together.

        Raises NoData for an unknown library or version, or one without documentation. Raises ProviderTimeout
        while the index is being built for the first time; this continues in the background.
        """
        library = parse_library_id(library_id)
        if library is None:
            raise self.no_data(f"no library {clean_line(library_id)!r}; {ID_HINT}")
        title, package = await self._resolve_release(library, library_id)
        file = self._indexes.find(title)
        if file is None:
            if package is None:
                raise self.invalid_response(f"has just removed its index of {title.name}; try again")
            file = await self._indexer.await_index(package, self.remaining_seconds)
            package = None  # what has just been read is not read again
        return await self._search_index(title, file, topic, budget, package=package)

    async def _find_named(
        self, name: str, candidates: Sequence[PackageCandidate]
    ) -> tuple[list[tuple[PackageCandidate, Package]], float]:
        """Return the packages of a name, with a crate of that name, and the certainty of their scores.

        Warns if they may be namesakes. Raises the failure of the registry that has the library that is meant.
        """
        is_bare = not names_package(name) and all(each.registry in SEARCHED_REGISTRIES for each in candidates)
        crate = find_namesake_crate(name) if is_bare else None
        async with open_task_group() as group:
            namesake = group.create_task(self._registries.find_namesake(crate))
            found, failures = await self._registries.find_existing(candidates)
        result = namesake.result()
        if crate and isinstance(result, Package):
            found = add_namesake(found, (crate, result))
        if isinstance(result, ProviderFailure) and crate and is_well_known(crate):
            failures["crates"] = result
        self._raise_missed(name, candidates, found, failures)
        if is_bare:
            found = [(each, await self._registries.complete_history(package)) for each, package in found]
            self._warn_of_namesakes(name, found, has_crates=not isinstance(result, ProviderFailure))
        if repository := find_named_repository(name):
            found = await self._rank_by_repository(name, repository, found)
        return found, self._warn_of_failures(candidates, found, failures)

    def _raise_missed(
        self,
        name: str,
        candidates: Sequence[PackageCandidate],
        found: Sequence[tuple[PackageCandidate, Package]],
        failures: Mapping[RegistryName, ProviderFailure],
    ) -> None:
        """Raise the failure of the registry that has the library, or of any if the others have none."""
        missed = find_missed_registry(name, candidates, [each for each, _ in found], failures)
        if missed is None and not found:
            missed = next(iter(failures), None)
        if missed:
            raise failures[missed].copy_for_caller()

    def _warn_of_failures(
        self,
        candidates: Sequence[PackageCandidate],
        found: Sequence[tuple[PackageCandidate, Package]],
        failures: Mapping[RegistryName, ProviderFailure],
    ) -> float:
        """Warn of failed registries; return the certainty that none has the library that is meant."""
        if not failures:
            return 1.0
        if not may_be_missed(candidates, [each for each, _ in found], failures):
            for registry, failure in failures.items():
                if any(each.registry == registry for each in candidates):
                    self._warn_of_gap(failure)
            return 1.0
        self.trace.is_provisional = True
        for registry, failure in failures.items():
            self.trace.add_warning(
                f"{failure.message}: a better known library of that name for {LANGUAGES[registry]} "
                "would not be found, so all scores are halved"
            )
        return UNCERTAIN

    def _warn_of_gap(self, failure: ProviderFailure) -> None:
        """Warn that a registry failed, and say nothing of what it may have."""
        self.trace.add_warning(f"{failure.message}: what is published there is not considered")
        self.trace.is_provisional = True

    def _warn_of_namesakes(
        self, name: str, found: Sequence[tuple[PackageCandidate, Package]], *, has_crates: bool
    ) -> None:
        """Say where a name was searched if no package looks like a library that many mean by it."""
        if any(score_candidate(each, package) >= WEAK_SCORE for each, package in found):
            return
        if found:
            searched = "PyPI, npm and crates.io" if has_crates else "PyPI and npm"
            self.trace.add_warning(
                f"{clean_line(name)!r} was searched in {searched} alone: a better known library of that name "
                "in another ecosystem, such as Go, Ruby, PHP, Java, .NET or Swift, would not be found"
            )

    async def _rank_by_repository(
        self, name: str, repository: str, found: Sequence[tuple[PackageCandidate, Package]]
    ) -> list[tuple[PackageCandidate, Package]]:
        """Return packages found for a repository's name, and warn if none names it as its own.

        A repository on GitHub that none names may be a module of Go, which has no other name.
        """
        ranked, is_declared = rank_by_repository(repository, found)
        if not is_declared and (module := await self._find_linked_module(name, has_others=bool(found))):
            ranked, is_declared = rank_by_repository(repository, [*found, module])
        if found and not is_declared:
            self.trace.add_warning(
                f"no package names {repository} as its repository: these have names like one of its two parts"
            )
        return ranked

    async def _find_linked_module(
        self, name: str, *, has_others: bool
    ) -> tuple[PackageCandidate, Package] | None:
        """Return the module of Go that a link leads to. Raises the failure of its proxy without others."""
        candidate = find_linked_module(name)
        module = await self._registries.find_linked_module(candidate) if candidate else None
        if not isinstance(module, ProviderFailure):
            return module
        if not has_others:
            raise module.copy_for_caller()
        self._warn_of_gap(module)
        return None

    async def _find_similar(self, name: str) -> list[tuple[PackageCandidate, Package]]:
        indexed = await asyncio.to_thread(self._indexes.libraries)
        found, failures = await self._registries.find_existing(suggest_similar(name, indexed))
        if failures and not found:
            raise next(iter(failures.values())).copy_for_caller()
        for failure in failures.values():
            self._warn_of_gap(failure)
        if found:
            self.trace.add_warning(f"no library is called {clean_line(name)!r}; these have similar names")
        return found

    def _warn_of_version(self, name: str, version: str, best: DocumentedLibrary) -> None:
        """Say that the version beside a name was not looked up, unless the newest release is of it."""
        own_name = best.id.split("/", 2)[2]
        is_in_name = name.endswith(version) and normalize_library_name(own_name) == normalize_library_name(
            name
        )
        if is_in_name or admits(version, best.version):
            return
        self.trace.add_warning(
            f"the version {clean_line(version, 100)!r} was not looked up, only the newest one is listed: "
            f"libdocs-query-docs reads another one by its id, such as {best.id}@{plain_version(version)}"
        )

    def _prepare_counts(
        self, libraries: Sequence[DocumentedLibrary], packages: Mapping[str, Package]
    ) -> None:
        """Start to index the best library if it has no index, and say why numbers of snippets are missing."""
        uncounted = [each.id for each in libraries if each.snippet_count is None]
        if not uncounted:
            return
        self.trace.is_provisional = True
        started = uncounted[0] == libraries[0].id and self._indexer.start_build(packages[uncounted[0]])
        waiting = uncounted[1:] if started else uncounted
        if started:
            self.trace.add_warning(
                f"the number of snippets of {uncounted[0]} is not known yet: its documentation is being read"
            )
        if waiting:
            self.trace.add_warning(
                f"the number of snippets of {', '.join(waiting)} is known once the documentation was queried"
            )

    async def _resolve_release(
        self, library: LibraryReference, library_id: str
    ) -> tuple[IndexKey, Package | None]:
        """Resolve the release to read; the package is None if only an index is available."""
        indexed = self._find_index(library)
        if indexed and library.version:
            return indexed, None  # a release never changes
        try:
            async with asyncio.timeout(VERSION_CHECK_SECONDS if indexed else None):
                package = await self._fetch_release(library, library_id)
        except (ProviderFailure, TimeoutError) as failure:
            if indexed is None:
                raise
            reason = (
                failure.message
                if isinstance(failure, ProviderFailure)
                else "its registry did not respond in time"
            )
            self.trace.add_warning(
                f"whether {indexed.version} is the newest version could not be checked: {reason}"
            )
            self.trace.is_provisional = True
            return indexed, None
        return index_key(package), package

    def _find_index(self, library: LibraryReference) -> IndexKey | None:
        """Return the stored index of the requested version, or of the newest stored one."""
        for each in library.packages if library.repository is None else ():
            for version in self._indexes.versions(each.registry, each.name):
                if library.version in (None, version):
                    return IndexKey(each.registry, each.name, version)
        return None

    async def _fetch_release(self, library: LibraryReference, library_id: str) -> Package:
        """Fetch the requested release from its registry; of a short version the newest, with a warning."""
        newest = await self._newest_release(library, library_id)
        if library.version in (None, newest.version):
            return newest
        is_of_newest = find_newest_of(library.version, [newest.version]) is not None
        package = newest if is_of_newest else None
        # PyPI alone has releases of one or two numbers, and such a release is meant itself
        if package is None or newest.registry == "pypi":
            package = await self._registries.fetch_release(newest, library.version) or package
        if package is None:
            raise self.no_data(
                f"no version {library.version} of {newest.id}: the newest is {newest.version}, which is the "
                f"default"
            )
        if not is_same_version(package.version, library.version):
            self.trace.add_warning(
                f"version {library.version} is read as {package.version}, the newest release of it"
            )
        return package

    async def _newest_release(self, library: LibraryReference, library_id: str) -> Package:
        """Fetch the newest release of the package that an id denotes."""
        if library.repository is None:
            package = await self._registries.fetch_latest(library.packages[0])
            if package is None:
                raise self.no_data(
                    f"no library {library_id}{await self._suggestion(library.packages[0].name)}"
                )
            return package
        existing, failures = await self._registries.find_existing(library.packages)
        found = [package for _, package in existing]
        for package in found:
            if (package.repository or "").lower() == library.repository:
                return package
        for failure in failures.values():
            raise failure.copy_for_caller()
        hint = f"; {found[0].id} has such a name" if found else f"; {ID_HINT}"
        raise self.no_data(f"no package that names {library.repository} as its repository{hint}")

    async def _suggestion(self, name: str) -> str:
        """Return a hint for an unknown library."""
        likely = suggest_similar(name, await asyncio.to_thread(self._indexes.libraries))
        ids = " or ".join(dict.fromkeys(each.id for each in likely))
        return f"; did you mean {ids}?" if ids else f"; {ID_HINT}"

    async def _search_index(
        self, title: IndexKey, file: Path, topic: str | None, budget: int, *, package: Package | None
    ) -> list[DocSnippet]:
        """Return the snippets of an index; of a `package` whose site was not read whole it is read again."""
        from centgate.libdocs.index.search_index import search  # late, see `runtime.LATE_MODULES`

        try:
            about = await asyncio.to_thread(read_metadata, file)
            snippets = await asyncio.to_thread(search, file, topic, budget)
            if not snippets and topic:
                self.trace.add_warning(
                    f"nothing in {title.name} {title.version} matches the topic: this is an introduction"
                )
                snippets = await asyncio.to_thread(search, file, None, budget)
        except (OSError, sqlite3.Error) as error:
            self._indexes.discard(title)
            raise self.invalid_response(
                f"had a broken index of {title.name}, which will be rebuilt"
            ) from error
        if package and about.items() >= CUT_SITE.items():
            self._indexer.reread_site(package, about)
        if incomplete := about.get("incomplete"):
            self.trace.add_warning(f"the documentation of {title.name} is incomplete: {incomplete}")
        if not snippets:
            raise self.no_data(f"no documentation in {title.name} {title.version} that fits {budget} tokens")
        library = package_id(title.registry, title.name)
        read_at = about.get("built_at")
        return [
            replace(
                each,
                library=library,
                # a website does not say which release it describes
                version=None if each.origin == "website" else title.version,
                retrieved_at=read_at,
            )
            for each in snippets
        ]
