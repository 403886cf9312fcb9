"""Client for the package registries, with a cache of the newest releases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias
from weakref import WeakValueDictionary

from cachetools import TTLCache
from msgspec.structs import replace

from centgate.errors import AnswerTooLong, NoData, ProviderError, ProviderFailure, ProviderTimeout
from centgate.fallback import attempt, open_task_group
from centgate.libdocs.registry.crates import CratesRegistry
from centgate.libdocs.registry.go import GoRegistry
from centgate.libdocs.registry.npm import NpmRegistry, types_package_name
from centgate.libdocs.registry.package_names import PackageCandidate, RegistryName
from centgate.libdocs.registry.packages import MANY_RELEASES, Archive, Package
from centgate.libdocs.registry.parsing import download_archive
from centgate.libdocs.registry.pypi import PypiRegistry
from centgate.upstream import Upstream

Registry: TypeAlias = PypiRegistry | NpmRegistry | CratesRegistry | GoRegistry
PROVIDER_NAME = "packagedocs"
"""Provider name in errors of the registries."""
DAY = 24 * 3600
MAX_CACHED = 4_000
"""Maximum number of packages whose newest release is cached, for a day."""
RESOLVE_SECONDS = 6
"""Seconds for a registry to describe a package while the others may answer: a hanging one is left out."""
NAMESAKE_SECONDS = 2
"""Seconds for crates.io to say whether a crate has a name that is searched in the other registries."""
MISSING_TTL = 600
"""Seconds for which it is cached that a package does not exist."""


class RegistryClient:
    """Cached access to all registries. The newest release of a package is requested once a day."""

    def __init__(
        self,
        pypi: PypiRegistry,
        npm: NpmRegistry,
        *,
        crates: CratesRegistry,
        go: GoRegistry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._npm, self._go = npm, go
        self._registries: Mapping[RegistryName, Registry] = {
            "pypi": pypi,
            "npm": npm,
            "crates": crates,
            "go": go,
        }
        self._newest = TTLCache[tuple[str, str], Package](MAX_CACHED, DAY, clock)
        # apart from the releases, which would be kept for another day
        self._histories = TTLCache[tuple[str, str], tuple[int | None, datetime | None]](
            MAX_CACHED, DAY, clock
        )
        self._locks = WeakValueDictionary[tuple[str, str], asyncio.Lock]()
        self._missing = TTLCache[tuple[str, str], bool](MAX_CACHED, MISSING_TTL, clock)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """The upstreams of all registries."""
        return tuple(each.upstream for each in self._registries.values())

    def upstreams_of(self, candidates: Sequence[PackageCandidate]) -> list[Upstream]:
        """Return the upstreams of the registries to query for these packages, without duplicates."""
        unknown = [each for each in candidates if (each.registry, each.name) not in self._missing]
        wanted = {each.registry for each in unknown}
        return [each.upstream for registry, each in self._registries.items() if registry in wanted]

    def knows_any(self, candidates: Sequence[PackageCandidate]) -> bool:
        """True if the newest release of one of these packages is cached."""
        return any((each.registry, each.name) in self._newest for each in candidates)

    async def fetch_latest(self, candidate: PackageCandidate) -> Package | None:
        """Return the newest release of a package; None if the package does not exist."""
        key = candidate.registry, candidate.name
        if key in self._missing:
            return None
        # concurrent callers wait for the one request
        async with self._locks.setdefault(key, asyncio.Lock()):
            package = self._newest.get(key)
            if package is None and key not in self._missing:
                package = await self._request_latest(candidate)
                if package is None:
                    self._missing[key] = True
                else:
                    self._newest[key] = package
            return package

    def is_newest(self, package: Package) -> bool:
        """True if a release is the newest one of its package, as far as is known."""
        newest = self._newest.get((package.registry, package.name))
        return newest is not None and newest.version == package.version

    async def fetch_release(self, package: Package, version: str) -> Package | None:
        """Return another release of a package; None if it does not exist."""
        return await self._registries[package.registry].fetch_release(package.name, version)

    async def download(self, package: Package, archive: Archive, max_bytes: int) -> bytes:
        """Return the bytes of an archive. Raises AnswerTooLong if there are more than `max_bytes`."""
        return await download_archive(self._registries[package.registry].upstream, archive, max_bytes)

    async def fetch_parts(self, parts: Iterable[tuple[str, str]]) -> list[Package]:
        """Return the npm packages of these names that exist, in the versions that these ranges allow."""
        async with open_task_group() as group:
            tasks = [group.create_task(self._npm.fetch_newest_in(name, wanted)) for name, wanted in parts]
        return [part for task in tasks if (part := task.result())]

    async def fetch_types(self, package: Package) -> Package | None:
        """Return the type package of an npm package without its own types, None if it is deprecated.

        It is of the same major version if there is one, else the newest.
        """
        name, major = types_package_name(package.name), package.version.split(".")[0]
        types = await self._npm.fetch_latest(name)
        if types and types.version.split(".")[0] != major:
            types = await self._npm.fetch_latest_of_major(name, major) or types
        return None if types and types.deprecated else types

    async def find_existing(
        self, candidates: Sequence[PackageCandidate]
    ) -> tuple[list[tuple[PackageCandidate, Package]], dict[RegistryName, ProviderFailure]]:
        """Return the candidates that exist, in their order, and a failure of each registry that had any.

        If several exist, their number of releases is fetched too, which npm gives only in a large response.
        """
        async with open_task_group() as group:
            tasks = [group.create_task(self._attempt_latest(each, RESOLVE_SECONDS)) for each in candidates]
        results = [(candidate, task.result()) for candidate, task in zip(candidates, tasks, strict=True)]
        found = [(candidate, each) for candidate, each in results if isinstance(each, Package)]
        failures: dict[RegistryName, ProviderFailure] = {}
        for candidate, each in results:
            if isinstance(each, ProviderFailure):
                failures.setdefault(candidate.registry, each)
        if len(found) > 1:
            async with open_task_group() as group:
                tasks = [group.create_task(self.complete_history(package)) for _, package in found]
            found = [(candidate, task.result()) for (candidate, _), task in zip(found, tasks, strict=True)]
        return found, failures

    async def find_namesake(self, candidate: PackageCandidate | None) -> Package | ProviderFailure | None:
        """Return a crate of a name, None without one, or the failure of crates.io, which is no other's."""
        found = await self._attempt_latest(candidate, NAMESAKE_SECONDS) if candidate else None
        return None if isinstance(found, NoData) else found

    async def find_linked_module(
        self, candidate: PackageCandidate
    ) -> tuple[PackageCandidate, Package] | ProviderFailure | None:
        """Return the module of a repository that has one, None for another, or the failure of the proxy."""
        found = await self._attempt_latest(candidate, RESOLVE_SECONDS)
        if not isinstance(found, Package):
            return None if isinstance(found, NoData) else found
        has_file = await attempt(self._go.has_module_file, found)
        if isinstance(has_file, ProviderFailure):
            return has_file
        return (candidate, found) if has_file is True else None

    async def _attempt_latest(
        self, candidate: PackageCandidate, seconds: float
    ) -> Package | NoData | ProviderFailure | None:
        """Return the newest release of a package or the failure of its registry, which may be its silence."""
        try:
            async with asyncio.timeout(seconds):
                return await attempt(self.fetch_latest, candidate)
        except TimeoutError:
            label = self._registries[candidate.registry].upstream.label
            return ProviderTimeout(PROVIDER_NAME, f"{label} did not answer within {seconds} s")

    async def _request_latest(self, candidate: PackageCandidate) -> Package | None:
        """Request the newest release. A response in an unknown format counts as a failure of the registry."""
        registry = self._registries[candidate.registry]
        try:
            return await registry.fetch_latest(candidate.name)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            message = f"{registry.upstream.label} returned a response in an unknown format"
            raise ProviderError(PROVIDER_NAME, message) from error

    async def complete_history(self, package: Package) -> Package:
        """Return a package with its number of releases, which npm gives only in a large response."""
        if package.registry != "npm" or package.releases is not None:
            return package
        key = package.name, package.version
        if (history := self._histories.get(key)) is None:
            try:
                async with asyncio.timeout(RESOLVE_SECONDS):
                    history = await self._npm.fetch_history(package.name)
            except AnswerTooLong:
                history = MANY_RELEASES, None
            except (ProviderFailure, TimeoutError, ValueError, LookupError, TypeError, AttributeError):
                return package
            self._histories[key] = history
        releases, published = history
        return replace(package, releases=releases, published=published)
