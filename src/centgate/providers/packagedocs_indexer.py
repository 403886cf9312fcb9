"""Indexes of the documentation of releases, built in the background from what their packages publish."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cachetools import TTLCache

from centgate.errors import AnswerTooLong, CentgateError, NoData, ProviderRateLimited, ProviderTimeout
from centgate.fallback import open_task_group
from centgate.libdocs.index.downloads import download_archives
from centgate.libdocs.index.repository import RepositoryArchive, RepositoryReader, store_repository
from centgate.libdocs.index.resolve import index_key
from centgate.libdocs.index.site_pages import SiteReader, SiteText, store_pages
from centgate.libdocs.index.store import IndexKey, IndexStore, TooManyBuilds
from centgate.libdocs.registry.client import RegistryClient
from centgate.libdocs.registry.packages import BadArchive, Package
from centgate.libdocs.registry.parsing import MAX_ARCHIVE_BYTES
from centgate.providers.documentation_site import SitePages
from centgate.sandbox import TaskFailed

if TYPE_CHECKING:
    from centgate.provider import Provider
    from centgate.settings import Settings

MAX_REFUSALS = 1_000
REFUSAL_TTL = 600
"""Seconds for which a release without documentation is remembered."""
BUILD_SECONDS = 40
"""Seconds for parsing archives; the largest accepted ones take 10 on an idle machine."""
INDEX_SECONDS = 90
"""Seconds for downloading, queueing and parsing together."""
BUILD_RETRY_AFTER = 20
"""Seconds after which another library can be read if the maximum number is being read."""
DEADLINE_MARGIN = 0.3
"""Seconds before the deadline of a call at which it reports that the index is still being built."""
LATER_SITE_SECONDS = 40.0
"""Seconds for a site that is read again in the background, as nobody waits for it."""
REREAD_PAUSE = 86_400
"""Seconds until a site that could not be read whole is read again."""
CUT_SITE = {"site": "cut"}
"""Metadata of an index whose site was not read whole."""
SITE_PAGES, REPOSITORY = "site_pages", "repository"
"""Metadata of such an index: the number of its pages, and a mark if it has a repository."""
SILENT_SITE = "its website could not be read"
LOST_REPOSITORY = "its repository could not be read this time"
UNREADABLE_ARCHIVES = f"it has no archive of a known form that is at most {MAX_ARCHIVE_BYTES >> 20} MB"


class PackageIndexer:
    """Builds the index of a release once, whoever waits for it, and stores it on disk.

    Failures name the provider that it builds for.
    """

    def __init__(
        self, provider: Provider, registries: RegistryClient, settings: Settings, *, github_url: str | None
    ) -> None:
        """`github_url` is None or empty if the operator does not let repositories be read."""
        self.store = IndexStore(settings.packagedocs_folder)
        self._provider, self._registries, self._settings = provider, registries, settings
        self._resources, self._github_url = provider.resources, github_url
        self._refusals = TTLCache[IndexKey, CentgateError](MAX_REFUSALS, REFUSAL_TTL)
        self._rereads = TTLCache[IndexKey, bool](MAX_REFUSALS, REREAD_PAUSE)

    async def await_index(self, package: Package, seconds: float) -> Path:
        """Return the index of a release, and build it if necessary.

        Raises ProviderTimeout shortly before `seconds` have passed; building continues. Raises
        ProviderRateLimited if the maximum number of libraries is being read.
        """
        info, key = self._provider.info, index_key(package)
        if refusal := self._refusals.get(key):
            raise refusal.copy_for_caller()
        try:
            task = self.store.start_build(key, partial(self._build_index, package))
        except TooManyBuilds:
            raise ProviderRateLimited(
                info.name,
                f"{info.label} is already reading the maximum number of libraries",
                retry_after=BUILD_RETRY_AFTER,
            ) from None
        await asyncio.wait({task}, timeout=max(0.0, seconds - DEADLINE_MARGIN))
        if not task.done():
            raise ProviderTimeout(
                info.name,
                f"{info.label} is still reading {package.id} {package.version} for the first time; "
                "it continues, and the same payment can be sent again in a moment",
                retry_after=10,
            )
        try:
            return task.result()
        except CentgateError as failure:
            raise failure.copy_for_caller() from failure
        except (OSError, sqlite3.Error) as error:
            raise self._provider.invalid_response(
                f"cannot store its indexes: {type(error).__name__}"
            ) from error

    def start_build(self, package: Package) -> bool:
        """Index a release in the background. False if it has no readable documentation or others are read."""
        key = index_key(package)
        if key in self._refusals or not self._resources:
            return False
        try:
            self.store.start_build(key, partial(self._build_index, package))
        except TooManyBuilds:
            return False
        return True

    def reread_site(self, package: Package, previous: Mapping[str, str]) -> None:
        """Build an index again in the background whose site was not read whole, at most once a day.

        `previous` are its metadata. Not while many libraries are read, since buyers wait for those, and not
        of an older release, which the site describes no more.
        """
        key = index_key(package)
        if key in self._rereads or self.store.is_busy or not self._registries.is_newest(package):
            return
        self._rereads[key] = True
        self.store.start_build(key, partial(self._build_index, package, previous=previous))

    async def _build_index(
        self, package: Package, file: Path, previous: Mapping[str, str] | None = None
    ) -> None:
        """Write the index of a release to a file; a release without documentation is remembered.

        With the metadata of a previous index it replaces that one, and fails if it would have less than it.
        """
        info, key = self._provider.info, index_key(package)
        try:
            async with asyncio.timeout(INDEX_SECONDS), open_task_group() as group:
                site = group.create_task(self._read_site(package, previous))
                repository = group.create_task(self._fetch_repository(package, previous))
                await self._index_archives(package, file, site, repository)
        except NoData as no_data:
            self._refusals[key] = no_data
            raise
        except BadArchive as error:
            raise self._unreadable(package, str(error)) from None
        except TaskFailed as failure:
            self._refusals[key] = self._unreadable(package, str(failure))
            raise self._refusals[key] from None
        except TimeoutError:
            message = f"{info.label} could not read {package.id} in {INDEX_SECONDS} s"
            raise ProviderTimeout(info.name, message) from None

    async def _read_site(self, package: Package, previous: Mapping[str, str] | None) -> SiteText:
        """Return the pages of a library's site, which describes its newest release; none for others.

        Raises ProviderError if the previous index has as many pages.
        """
        if not self._settings.packagedocs_sites or not self._resources:
            return SiteText()
        if not self._registries.is_newest(package):
            return SiteText()
        pages = SitePages(self._settings, self._resources)
        reader = SiteReader(self._resources.fetcher, self._resources.robots, pages)
        site = await reader.read_sites(package.sites, None if previous is None else LATER_SITE_SECONDS)
        if previous is not None and not _adds_pages(site, previous) and self._has_index(package):
            raise self._unreadable(package, SILENT_SITE)
        return site

    async def _fetch_repository(
        self, package: Package, previous: Mapping[str, str] | None
    ) -> RepositoryArchive | None:
        """Return the archive of a release's repository, if the operator lets repositories be read.

        Raises ProviderError if the previous index has it and it cannot be read this time.
        """
        if not self._github_url or not self._resources:
            return None
        repository = await RepositoryReader(self._resources.fetcher, self._github_url).fetch(package)
        if repository is None and REPOSITORY in (previous or {}) and self._has_index(package):
            raise self._unreadable(package, LOST_REPOSITORY)
        return repository

    def _has_index(self, package: Package) -> bool:
        """True unless the index was deleted meanwhile: then buyers wait for what can be read."""
        return self.store.find(index_key(package)) is not None

    async def _index_archives(
        self,
        package: Package,
        file: Path,
        site: asyncio.Task[SiteText],
        repository: asyncio.Task[RepositoryArchive | None],
    ) -> None:
        """Index the source archive of a release, or else the installable one, with its site and repository.

        Raises NoData if none has documentation.
        """
        from centgate.libdocs.index.build_job import build_index  # late, see `runtime.LATE_MODULES`

        assert self._resources, "no provider is called during startup validation"
        origin = {"registry": package.registry, "name": package.name, "version": package.version}
        unreadable = not package.archives
        for archive in package.archives or (None,):
            try:
                async with (
                    download_archives(package, archive, self._registries, file) as archive_files,
                    store_pages((await site).pages, file) as site_file,
                    store_repository(await repository, file) as repository_files,
                ):
                    metadata = origin | _describe_gaps(await site, unreadable=unreadable)
                    metadata |= {REPOSITORY: "read"} if repository_files else {}
                    outcome = await self._resources.index_builder.run_task(
                        BUILD_SECONDS,
                        build_index,
                        str(file),
                        [*archive_files, *repository_files],
                        metadata,
                        package.readme,
                        site_file,
                    )
            except AnswerTooLong:
                unreadable = True
                continue
            if outcome.chunks:
                return
        if unreadable:
            raise self._unreadable(package, UNREADABLE_ARCHIVES)
        raise self._provider.no_data(f"no documentation in {package.id} {package.version}")

    def _unreadable(self, package: Package, reason: str) -> CentgateError:
        return self._provider.invalid_response(f"cannot read {package.id} {package.version}: {reason}")


def _describe_gaps(site: SiteText, *, unreadable: bool) -> dict[str, str]:
    """Return the metadata of an index that say what it lacks."""
    gaps = {**CUT_SITE, SITE_PAGES: f"{len(site.pages)}"} if site.is_cut else {}
    if unreadable:
        return {**gaps, "incomplete": UNREADABLE_ARCHIVES}
    return {**gaps, "incomplete": SILENT_SITE} if site.is_cut and not site.pages else gaps


def _adds_pages(site: SiteText, previous: Mapping[str, str]) -> bool:
    """True if a site was read further than for the previous index, or whole."""
    known = int(previous.get(SITE_PAGES, "0"))
    if site.is_cut:
        return len(site.pages) > known
    return bool(site.pages) or not known
