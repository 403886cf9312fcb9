"""The built-in package documentation: what package registries carry about a library."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cachetools import TTLCache

from centgate.errors import (
    AnswerTooLong,
    CentgateError,
    NoData,
    ProviderFailure,
    ProviderRateLimited,
    ProviderTimeout,
)
from centgate.facts.libraries import Documented, Snippet
from centgate.libdocs import index, npm, pypi
from centgate.libdocs.aliases import Candidate, candidates
from centgate.libdocs.archives import BadArchive
from centgate.libdocs.builds import build
from centgate.libdocs.identifiers import Wanted, read_id
from centgate.libdocs.near import near
from centgate.libdocs.packages import Package
from centgate.libdocs.parcels import parcels
from centgate.libdocs.publications import Publications
from centgate.libdocs.registries import LARGEST_ARCHIVE
from centgate.libdocs.resolved import title_of, told
from centgate.libdocs.shelves import Busy, Shelves, Title
from centgate.provider import About, Provider, reported
from centgate.sandbox import WorkFailed
from centgate.text import cleaned
from centgate.upstream import Upstream

if TYPE_CHECKING:
    from centgate.resources import Resources
    from centgate.settings import Settings

MOST_REFUSED = 1_000
REFUSED_SECONDS = 600
"""How long it is remembered that there is nothing to be read in a release."""
BUILD_SECONDS = 40
"""For reading archives; the largest that are read take 10 on a machine with nothing else to do."""
MAKE_SECONDS = 90
"""For archives to come and for the turn to read them, all of it."""
UNREAD = f"it has no archive of a known form that is at most {LARGEST_ARCHIVE >> 20} MB"
IDS = "libdocs-resolve-library gives the ids, such as /pypi/httpx and /npm/@tanstack~react-query"
SPARE = 0.3
"""Seconds before a question's deadline at which it is said that an index is still being made."""
PATIENCE = 4
"""Seconds that a registry may take to say what is newest where an older index could answer."""


class PackageDocs(Provider):
    """Names resolved in PyPI and npm, and documentation out of the packages that are published there.

    One index is made of a release's archives when it is first asked for, and kept on disk.
    """

    about = About(
        "packagedocs",
        "Built-in package documentation",
        docs_url="https://packaging.python.org/en/latest/specifications/simple-repository-api/",
        addresses=(("pypi", pypi.ADDRESS), ("npm", npm.ADDRESS)),
        terms="The registries are free for fair use; what is in a package is under its own licence.",
        timeout=20,
        max_bytes=LARGEST_ARCHIVE,
    )

    def __init__(self, settings: Settings, resources: Resources | None = None) -> None:
        super().__init__(settings, resources)
        self._published = Publications(
            pypi.Pypi(self.way_out(resources, settings, "PyPI"), settings.provider("packagedocs_pypi").url),
            npm.Npm(self.way_out(resources, settings, "npm"), settings.provider("packagedocs_npm").url),
        )
        self._refused = TTLCache[Title, CentgateError](MOST_REFUSED, REFUSED_SECONDS)
        self._shelves = Shelves(settings.packagedocs_folder)

    def upstreams_for(self, chain_id: int | None, asked: Mapping[str, Any]) -> Sequence[Upstream]:
        """Return those of the registries that the packages asked for can be in; all while all are up."""
        every = self._published.upstreams
        if not any(upstream.breaker.is_open for upstream in every):
            return every
        library_id = asked.get("libraryId")
        wanted = read_id(str(library_id)) if library_id is not None else None
        packages = wanted.packages if wanted else candidates(str(asked.get("libraryName", "")))
        upstreams = self._published.upstreams_of(packages)
        if not all(upstream.breaker.is_open for upstream in upstreams):
            return upstreams
        # indexes are looked for on disk, so only while they decide
        at_hand = self._kept(wanted) is not None if wanted else self._published.knows_any(packages)
        return () if at_hand else upstreams

    @reported
    async def libraries(self, name: str) -> list[Documented]:
        """The packages that a name may mean, at most five, best first; NoData when there are none."""
        found = await self._those_of(candidates(name))
        if not found:
            shelved = await asyncio.to_thread(self._shelves.libraries)
            found = await self._those_of(near(name, shelved))
            if found:
                self.record.warn(f"no library is called {cleaned(name)!r}; these have similar names")
        if not found:
            raise self.nothing(f"no library called {cleaned(name)!r}")
        return await asyncio.to_thread(told, found, self._shelves)

    @reported
    async def docs(self, library_id: str, topic: str | None, budget: int) -> list[Snippet]:
        """The snippets that answer a topic, best first, of at most `budget` tokens together.

        Raises NoData for a library, or a version of it, that there is not, or that has no documentation.
        ProviderTimeout says that the documentation is being read for the first time, which goes on.
        """
        wanted = read_id(library_id)
        if wanted is None:
            raise self.nothing(f"no library {cleaned(library_id)!r}; {IDS}")
        title, package = await self._released(wanted, library_id)
        file = self._shelves.find(title)
        if file is None:
            if package is None:
                raise self.failed(f"has just put its index of {title.name} away; ask again")
            file = await self._made(title, package)
        return await self._answer(title, file, topic, budget)

    async def _those_of(self, asked: Sequence[Candidate]) -> list[tuple[Candidate, Package]]:
        """The candidates that exist; a registry that fails is warned of where others answer."""
        found, failures = await self._published.all_of(asked)
        if failures and not found:
            raise failures[0].again()
        for failure in failures:
            self.record.warn(f"{failure.message}: what is published there is not considered")
            self.record.provisional = True
        return found

    async def _released(self, wanted: Wanted, library_id: str) -> tuple[Title, Package | None]:
        """What to read; without a package where only an index is known of it."""
        kept = self._kept(wanted)
        if kept and wanted.version:
            return kept, None  # a release never changes
        try:
            async with asyncio.timeout(PATIENCE if kept else None):
                package = await self._find(wanted, library_id)
        except (ProviderFailure, TimeoutError) as failure:
            if kept is None:
                raise
            why = failure.message if isinstance(failure, ProviderFailure) else "its registry was too slow"
            self.record.warn(f"whether {kept.version} is the newest version could not be checked: {why}")
            self.record.provisional = True
            return kept, None
        return title_of(package), package

    def _kept(self, wanted: Wanted) -> Title | None:
        """The index that is on the shelf: of the version that is wanted, or the newest of those there are."""
        for each in wanted.packages if wanted.repository is None else ():
            for version in self._shelves.versions(each.registry, each.name):
                if wanted.version in (None, version):
                    return Title(each.registry, each.name, version)
        return None

    async def _find(self, wanted: Wanted, library_id: str) -> Package:
        """The release that is wanted, from its registry."""
        newest = await self._wanted(wanted, library_id)
        if wanted.version in (None, newest.version):
            return newest
        package = await self._published.release(newest, wanted.version)
        if package is None:
            raise self.nothing(
                f"no version {wanted.version} of {newest.id}: the newest is {newest.version}, which is read "
                f"when no version is named"
            )
        return package

    async def _wanted(self, wanted: Wanted, library_id: str) -> Package:
        """The newest release of the package that an id stands for."""
        if wanted.repository is None:
            package = await self._published.newest(wanted.packages[0])
            if package is None:
                raise self.nothing(f"no library {library_id}{await self._instead(wanted.packages[0].name)}")
            return package
        found = [package for _, package in await self._those_of(wanted.packages)]
        for package in found:
            if (package.repository or "").lower() == wanted.repository:
                return package
        hint = f"; {found[0].id} has such a name" if found else f"; {IDS}"
        raise self.nothing(f"no package that says it is from {wanted.repository}{hint}")

    async def _instead(self, name: str) -> str:
        """What to ask for in place of a library that there is not."""
        likely = near(name, await asyncio.to_thread(self._shelves.libraries))
        ids = " or ".join(dict.fromkeys(each.id for each in likely))
        return f"; perhaps {ids} is meant" if ids else f"; {IDS}"

    async def _made(self, title: Title, package: Package) -> Path:
        """The index, once it is made, which goes on when this question's time is up."""
        if known := self._refused.get(title):
            raise known.again()
        try:
            task = self._shelves.making(title, partial(self._make, title, package))
        except Busy:
            raise ProviderRateLimited(
                self.about.name, f"{self.about.label} is reading as many libraries as it can", retry_after=20
            ) from None
        await asyncio.wait({task}, timeout=max(0.0, self.left - SPARE))
        if not task.done():
            raise ProviderTimeout(
                self.about.name,
                f"{self.about.label} is still reading {package.id} {package.version} for the first time; "
                "it goes on, and the same payment can be sent again in a moment",
                retry_after=10,
            )
        try:
            return task.result()
        except CentgateError as failure:
            raise failure.again() from failure
        except (OSError, sqlite3.Error) as error:
            raise self.failed(f"cannot keep its indexes: {type(error).__name__}") from error

    async def _make(self, title: Title, package: Package, file: Path) -> None:
        """Write the index of a release: of its source, or else of what is installed."""
        try:
            async with asyncio.timeout(MAKE_SECONDS):
                await self._write(package, file)
        except NoData as nothing:
            self._refused[title] = nothing
            raise
        except BadArchive as bad:
            raise self.failed(f"cannot read {package.id} {package.version}: {bad}") from None
        except WorkFailed as failed:
            self._refused[title] = self.failed(f"cannot read {package.id} {package.version}: {failed}")
            raise self._refused[title] from None
        except TimeoutError:
            late = f"{self.about.label} could not read {package.id} in {MAKE_SECONDS} s"
            raise ProviderTimeout(self.about.name, late) from None

    async def _write(self, package: Package, file: Path) -> None:
        assert self.resources, "nothing is asked in a rehearsal"
        about = {"registry": package.registry, "name": package.name, "version": package.version}
        unread = not package.archives
        for archive in package.archives or (None,):
            try:
                async with parcels(package, archive, self._published, file) as sent:
                    said = about | {"incomplete": UNREAD} if unread else about
                    run = self.resources.builder.run
                    outcome = await run(BUILD_SECONDS, build, str(file), sent, said, package.readme)
            except AnswerTooLong:
                unread = True
                continue
            if outcome.pieces:
                return
        if unread:
            raise self.failed(f"cannot read {package.id} {package.version}: {UNREAD}")
        raise self.nothing(f"no documentation in {package.id} {package.version}")

    async def _answer(self, title: Title, file: Path, topic: str | None, budget: int) -> list[Snippet]:
        try:
            about = await asyncio.to_thread(index.about, file)
            snippets = await asyncio.to_thread(index.search, file, topic, budget)
            if not snippets and topic:
                self.record.warn(
                    f"nothing in {title.name} {title.version} matches the topic: this introduces it"
                )
                snippets = await asyncio.to_thread(index.search, file, None, budget)
        except (OSError, sqlite3.Error) as error:
            self._shelves.discard(title)
            raise self.failed(f"had a broken index of {title.name}, which is made anew") from error
        if incomplete := about.get("incomplete"):
            self.record.warn(f"the documentation of {title.name} is incomplete: {incomplete}")
        if not snippets:
            raise self.nothing(f"no documentation in {title.name} {title.version} that fits {budget} tokens")
        return snippets
