"""Indexes on disk: made once, found again, put away when there are too many."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from centgate.libdocs.index.store import MAX_BUILDS, BuildFile, IndexKey, IndexStore, TooManyBuilds

QUILL = IndexKey("pypi", "quill", "1.4.0")


def writing(content: bytes) -> BuildFile:
    """Makes an index with this content."""

    async def make(file: Path) -> None:
        put(file, content)

    return make


def used(shelves: IndexStore, title: IndexKey, when: float) -> None:
    """As if the index was last used then."""
    file = shelves.find(title)
    assert file
    os.utime(file, (when, when))


def put(file: Path, content: bytes = b"index") -> None:
    """Write an index."""
    file.write_bytes(content)


def files(folder: Path) -> list[Path]:
    """What is there."""
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_an_index_is_found_once_it_is_made(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path / "docs")

    before = shelves.find(QUILL)
    file = await shelves.start_build(QUILL, writing(b"index"))

    assert before is None
    assert shelves.find(QUILL) == file
    assert file.read_bytes() == b"index"
    assert files(tmp_path) == [file]


async def test_an_index_is_made_once_for_all_who_ask_meanwhile(tmp_path: Path) -> None:
    shelves, begun, go_on = IndexStore(tmp_path), 0, asyncio.Event()

    async def make(file: Path) -> None:
        nonlocal begun
        begun += 1
        await go_on.wait()
        put(file)

    tasks = [shelves.start_build(QUILL, make) for _ in range(5)]
    go_on.set()
    made = await asyncio.gather(*tasks)

    assert begun == 1
    assert len(set(made)) == 1


async def test_a_making_that_fails_leaves_nothing_and_may_be_tried_again(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path)

    async def make(file: Path) -> None:
        put(file, b"half")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await shelves.start_build(QUILL, make)
    left = files(tmp_path)
    file = await shelves.start_build(QUILL, writing(b"index"))

    assert left == []
    assert shelves.libraries() == [("pypi", "quill")]
    assert file.read_bytes() == b"index"


async def test_only_so_many_are_made_at_once(tmp_path: Path) -> None:
    shelves, go_on = IndexStore(tmp_path), asyncio.Event()

    async def make(file: Path) -> None:
        await go_on.wait()
        put(file)

    tasks = [
        shelves.start_build(IndexKey("npm", f"quill{number}", "1.0.0"), make) for number in range(MAX_BUILDS)
    ]
    with pytest.raises(TooManyBuilds):
        shelves.start_build(QUILL, make)
    go_on.set()
    await asyncio.gather(*tasks)

    assert await shelves.start_build(QUILL, make)


async def test_versions_are_told_newest_first(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path)
    for version in ("1.10.0", "1.9.0", "2.0.0rc1", "2.0.0", "1.9.0.post1", "0.5"):
        await shelves.start_build(IndexKey("pypi", "quill", version), writing(b""))

    assert shelves.versions("pypi", "quill") == ["2.0.0", "2.0.0rc1", "1.10.0", "1.9.0", "1.9.0.post1", "0.5"]
    assert shelves.versions("npm", "quill") == []


async def test_a_scoped_name_is_told_as_it_is(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path)

    await shelves.start_build(IndexKey("npm", "@ink/quill", "1.0.0"), writing(b""))

    assert shelves.libraries() == [("npm", "@ink/quill")]
    assert shelves.versions("npm", "@ink/quill") == ["1.0.0"]


async def test_what_was_not_used_for_longest_is_put_away(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path, max_files=3)
    titles = [IndexKey("pypi", "quill", f"1.{number}") for number in range(4)]
    for when, title in enumerate(titles[:3]):
        await shelves.start_build(title, writing(b""))
        used(shelves, title, 1_000_000 + when)
    shelves.find(titles[0])

    await shelves.start_build(titles[3], writing(b""))

    assert [shelves.find(title) is not None for title in titles] == [True, False, True, True]


async def test_more_than_fits_is_put_away_but_never_the_newest(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path, max_bytes=1000)
    first, second = IndexKey("pypi", "ink", "1.0"), IndexKey("npm", "ink", "1.0.0")
    await shelves.start_build(first, writing(bytes(600)))
    used(shelves, first, 1_000_000)

    await shelves.start_build(second, writing(bytes(600)))
    await shelves.start_build(QUILL, writing(bytes(5000)))

    assert shelves.find(first) is None
    assert shelves.find(second) is None
    assert shelves.find(QUILL)
    assert shelves.libraries() == [("pypi", "quill")]


async def test_what_was_left_behind_is_put_away_and_what_is_under_way_is_not(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path)
    file = await shelves.start_build(QUILL, writing(b""))
    old, new, former = (
        file.with_name("a.part"),
        file.with_name("b.part"),
        tmp_path / "0" / "pypi" / "x" / "1.db",
    )
    former.parent.mkdir(parents=True)
    for path in (old, new, former):
        path.write_bytes(b"")
    os.utime(old, (1_000_000, 1_000_000))

    await shelves.start_build(IndexKey("pypi", "quill", "2.0"), writing(b""))

    assert [path.exists() for path in (old, new, former)] == [False, True, True]


async def test_a_broken_index_can_be_put_away(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path)
    await shelves.start_build(QUILL, writing(b"no index"))

    shelves.discard(QUILL)
    shelves.discard(QUILL)

    assert shelves.find(QUILL) is None


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "docs").write_text("in the way")
    shelves = IndexStore(tmp_path / "docs")

    with pytest.raises(OSError, match="docs"):
        await shelves.start_build(QUILL, writing(b""))

    assert (shelves.find(QUILL), shelves.versions("pypi", "quill"), shelves.libraries()) == (None, [], [])


async def test_a_making_goes_on_when_nobody_waits_any_more(tmp_path: Path) -> None:
    shelves, go_on = IndexStore(tmp_path), asyncio.Event()

    async def make(file: Path) -> None:
        await go_on.wait()
        put(file)

    task = shelves.start_build(QUILL, make)
    done, _ = await asyncio.wait({task}, timeout=0)
    go_on.set()
    file = await shelves.start_build(QUILL, make)

    assert not done
    assert file.read_bytes() == b"index"


async def test_makings_that_fail_take_no_folder_from_one_that_begins(tmp_path: Path) -> None:
    shelves = IndexStore(tmp_path)

    async def in_vain(file: Path) -> None:
        raise ValueError("broken")

    async def well(file: Path) -> None:
        put(file)

    for turn in range(100):
        title = IndexKey("pypi", f"quill{turn}", "1.0")
        broken = [
            shelves.start_build(IndexKey("pypi", title.name, f"2.{each}"), in_vain) for each in range(6)
        ]
        made = await shelves.start_build(title, well)
        await asyncio.gather(*broken, return_exceptions=True)
        assert made.exists()


async def test_a_making_that_fails_does_not_disturb_another_of_the_same_library(tmp_path: Path) -> None:
    shelves, go_on = IndexStore(tmp_path), asyncio.Event()

    async def slowly(file: Path) -> None:
        await go_on.wait()
        put(file)

    async def in_vain(file: Path) -> None:
        raise ValueError("broken")

    slow = shelves.start_build(QUILL, slowly)
    with pytest.raises(ValueError, match="broken"):
        await shelves.start_build(IndexKey("pypi", "quill", "2.0"), in_vain)
    go_on.set()

    assert (await slow).read_bytes() == b"index"
