"""The archives that a library's documentation is spread over: its own, its types', those of its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from centgate.errors import AnswerTooLong
from centgate.libdocs.builds import Parcel
from centgate.libdocs.packages import Archive, Package
from centgate.libdocs.publications import Publications
from centgate.libdocs.registries import LARGEST_ARCHIVE
from centgate.libdocs.shelves import UNFINISHED
from centgate.sources import together

MOST_READ = LARGEST_ARCHIVE + (30 << 20)
"""Bytes of archives that are read for one library."""
MOST_PARTS = 8
"""Further packages that are read for one."""


@asynccontextmanager
async def parcels(
    package: Package, archive: Archive | None, published: Publications, beside: Path
) -> AsyncGenerator[list[Parcel]]:
    """A release's archive and what belongs to it, in files beside another until this is left.

    Raises AnswerTooLong when its own is too large.
    """
    put: list[Path] = []
    try:
        fetched = await _together(package, archive, published)
        for each in fetched:
            put.append(beside.with_name(f"{uuid4().hex}{UNFINISHED}"))
            await asyncio.to_thread(put[-1].write_bytes, each.content)
        sent = [Parcel(each.archive, file, each.inside) for each, file in zip(fetched, put, strict=True)]
        del fetched  # tens of megabytes
        yield sent
    finally:
        for file in put:
            file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Fetched:
    """An archive with its bytes."""

    archive: Archive
    content: bytes = field(repr=False)
    inside: str = ""


async def _together(package: Package, archive: Archive | None, published: Publications) -> list[_Fetched]:
    own = [_Fetched(archive, await published.archive(package, archive))] if archive else []
    if package.registry != "npm":
        return own
    others = await _parts(package, published)
    if not package.typed and (types := await published.types(package)):
        others = [types, *others]
    return _within([*own, *await _all_fetched(others[:MOST_PARTS], published)])


async def _parts(package: Package, published: Publications) -> list[Package]:
    """The packages it is made of, and theirs: what the second hands on to the first is theirs."""
    found = {package.name: package}
    level = [package]
    for _ in range(2):
        parts = [part for each in level for part in await published.parts(each)]
        level = list({part.name: part for part in parts if part.name not in found}.values())
        found |= {part.name: part for part in level}
    return list(found.values())[1 : MOST_PARTS + 1]


async def _all_fetched(packages: Iterable[Package], published: Publications) -> list[_Fetched]:
    async with together() as group:
        tasks = [group.create_task(_fetched(each, published)) for each in packages if each.archives]
    return [parcel for task in tasks if (parcel := task.result())]


async def _fetched(package: Package, published: Publications) -> _Fetched | None:
    """A part's archive; a part that is too large is done without."""
    archive = package.archives[0]
    try:
        return _Fetched(archive, await published.archive(package, archive), f"{package.name}/")
    except AnswerTooLong:
        return None


def _within(fetched: list[_Fetched]) -> list[_Fetched]:
    """As many as are read together."""
    kept, size = list[_Fetched](), 0
    for each in fetched:
        size += len(each.content)
        if size <= MOST_READ:
            kept.append(each)
    return kept
