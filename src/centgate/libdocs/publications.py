"""The registries together, with a memory of what is newest in them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from cachetools import TTLCache

from centgate.errors import AnswerTooLong, ProviderError, ProviderFailure
from centgate.libdocs.aliases import Candidate
from centgate.libdocs.npm import Npm, types_package
from centgate.libdocs.packages import MANY_RELEASES, Archive, Package
from centgate.libdocs.pypi import Pypi
from centgate.sources import attempt, together
from centgate.upstream import Upstream

SOURCE = "packagedocs"
"""What answers call whoever asks the registries."""
DAY = 24 * 3600
MOST_KNOWN = 4_000
"""Packages whose newest release is remembered, for a day."""
MISSING_SECONDS = 600
"""How long it is remembered that there is no package of a name."""


class Publications:
    """What is published in PyPI and npm; each is asked for the newest release of a package once a day."""

    def __init__(self, pypi: Pypi, npm: Npm) -> None:
        self._pypi, self._npm = pypi, npm
        self._newest = TTLCache[tuple[str, str], Package](MOST_KNOWN, DAY)
        self._turns = WeakValueDictionary[tuple[str, str], asyncio.Lock]()
        self._missing = TTLCache[tuple[str, str], bool](MOST_KNOWN, MISSING_SECONDS)

    @property
    def upstreams(self) -> tuple[Upstream, ...]:
        """The upstreams of all registries."""
        return self._pypi.upstream, self._npm.upstream

    def upstreams_of(self, candidates: Sequence[Candidate]) -> list[Upstream]:
        """Return the upstreams of the registries that have to be asked about these packages, each once."""
        unknown = [each for each in candidates if (each.registry, each.name) not in self._missing]
        return [self._of(registry).upstream for registry in dict.fromkeys(each.registry for each in unknown)]

    def knows_any(self, candidates: Sequence[Candidate]) -> bool:
        """True if the newest release of one of these packages is remembered."""
        return any((each.registry, each.name) in self._newest for each in candidates)

    async def newest(self, candidate: Candidate) -> Package | None:
        """A package's newest release; None where there is no such package."""
        key = candidate.registry, candidate.name
        if key in self._missing:
            return None
        # those who ask meanwhile wait for the one answer
        async with self._turns.setdefault(key, asyncio.Lock()):
            package = self._newest.get(key)
            if package is None and key not in self._missing:
                package = await self._asked(candidate)
                if package is None:
                    self._missing[key] = True
                else:
                    self._newest[key] = package
            return package

    async def release(self, package: Package, version: str) -> Package | None:
        """Another release of a package."""
        return await self._of(package.registry).release(package.name, version)

    async def archive(self, package: Package, archive: Archive) -> bytes:
        """An archive, whole; AnswerTooLong for one that is too large."""
        return await self._of(package.registry).archive(archive)

    async def parts(self, package: Package) -> list[Package]:
        """The packages of npm's that one is made of, by one step."""
        async with together() as group:
            tasks = [group.create_task(self._npm.release(part, version)) for part, version in package.parts]
        return [part for task in tasks if (part := task.result())]

    async def types(self, package: Package) -> Package | None:
        """The types of a package of npm's that has none of its own, of the same major version."""
        name, major = types_package(package.name), package.version.split(".")[0]
        types = await self._npm.newest(name)
        if types and types.version.split(".")[0] != major:
            types = await self._npm.newest_of(name, major) or types
        return None if types and types.deprecated else types

    async def all_of(
        self, asked: Sequence[Candidate]
    ) -> tuple[list[tuple[Candidate, Package]], list[ProviderFailure]]:
        """Those candidates that exist, in their order, and why others could not be asked for.

        Where several exist it is known how many releases they have, which npm tells only on a large page.
        """
        async with together() as group:
            tasks = [group.create_task(attempt(self.newest, each)) for each in asked]
        told = [(candidate, task.result()) for candidate, task in zip(asked, tasks, strict=True)]
        found = [(candidate, each) for candidate, each in told if isinstance(each, Package)]
        failures = {each.message: each for _, each in told if isinstance(each, ProviderFailure)}
        if len(found) > 1:
            async with together() as group:
                full = [group.create_task(self._with_history(package)) for _, package in found]
            found = [(candidate, task.result()) for (candidate, _), task in zip(found, full, strict=True)]
        return found, list(failures.values())

    async def _asked(self, candidate: Candidate) -> Package | None:
        """What a registry says; what it says in another shape than its own is its failure alone."""
        registry = self._of(candidate.registry)
        try:
            return await registry.newest(candidate.name)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            said = f"{registry.label} answered in a shape that is not known here"
            raise ProviderError(SOURCE, said) from error

    async def _with_history(self, package: Package) -> Package:
        if package.registry != "npm" or package.releases is not None:
            return package
        try:
            releases, published = await self._npm.history(package.name)
        except AnswerTooLong:
            releases, published = MANY_RELEASES, None
        except (ProviderFailure, ValueError, LookupError, TypeError, AttributeError):
            return package
        full = replace(package, releases=releases, published=published)
        self._newest[package.registry, package.name] = full
        return full

    def _of(self, registry: str) -> Pypi | Npm:
        return self._pypi if registry == "pypi" else self._npm
