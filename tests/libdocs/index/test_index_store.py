"""Indexes on disk: single builds, lookup, and removal of the least recently used."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from centgate.libdocs.index.store import MAX_BUILDS, BuildFile, IndexKey, IndexStore, TooManyBuilds

QUILL = IndexKey("pypi", "quill", "1.4.0")


def write_content(content: bytes) -> BuildFile:
    """Return a build function that writes this content."""

    async def build(file: Path) -> None:
        write_index(file, content)

    return build


def set_last_use(store: IndexStore, key: IndexKey, when: float) -> None:
    """Set the time of the index's last use."""
    file = store.find(key)
    assert file
    os.utime(file, (when, when))


def write_index(file: Path, content: bytes = b"index") -> None:
    """Write an index."""
    file.write_bytes(content)


def list_files(folder: Path) -> list[Path]:
    """Return all files in a folder."""
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_built_index_is_found(tmp_path: Path) -> None:
    store = IndexStore(tmp_path / "docs")

    before = store.find(QUILL)
    file = await store.start_build(QUILL, write_content(b"index"))

    assert before is None
    assert store.find(QUILL) == file
    assert file.read_bytes() == b"index"
    assert list_files(tmp_path) == [file]


async def test_concurrent_requests_build_once(tmp_path: Path) -> None:
    store, begun, go_on = IndexStore(tmp_path), 0, asyncio.Event()

    async def build_slowly(file: Path) -> None:
        nonlocal begun
        begun += 1
        await go_on.wait()
        write_index(file)

    tasks = [store.start_build(QUILL, build_slowly) for _ in range(5)]
    go_on.set()
    made = await asyncio.gather(*tasks)

    assert begun == 1
    assert len(set(made)) == 1


async def test_failed_build_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)

    async def fail_once(file: Path) -> None:
        write_index(file, b"half")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await store.start_build(QUILL, fail_once)
    left = list_files(tmp_path)
    file = await store.start_build(QUILL, write_content(b"index"))

    assert left == []
    assert store.libraries() == [("pypi", "quill")]
    assert file.read_bytes() == b"index"


async def test_concurrent_builds_are_limited(tmp_path: Path) -> None:
    store, go_on = IndexStore(tmp_path), asyncio.Event()

    async def wait_for_release(file: Path) -> None:
        await go_on.wait()
        write_index(file)

    tasks = [
        store.start_build(IndexKey("npm", f"quill{number}", "1.0.0"), wait_for_release)
        for number in range(MAX_BUILDS)
    ]
    with pytest.raises(TooManyBuilds):
        store.start_build(QUILL, wait_for_release)
    go_on.set()
    await asyncio.gather(*tasks)

    assert await store.start_build(QUILL, wait_for_release)


async def test_versions_are_listed_newest_first(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    for version in ("1.10.0", "1.9.0", "2.0.0rc1", "2.0.0", "1.9.0.post1", "0.5"):
        await store.start_build(IndexKey("pypi", "quill", version), write_content(b""))

    assert store.versions("pypi", "quill") == ["2.0.0", "2.0.0rc1", "1.10.0", "1.9.0", "1.9.0.post1", "0.5"]
    assert store.versions("npm", "quill") == []


async def test_scoped_name_is_kept(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)

    await store.start_build(IndexKey("npm", "@ink/quill", "1.0.0"), write_content(b""))

    assert store.libraries() == [("npm", "@ink/quill")]
    assert store.versions("npm", "@ink/quill") == ["1.0.0"]


async def test_least_recently_used_index_is_removed(tmp_path: Path) -> None:
    store = IndexStore(tmp_path, max_files=3)
    titles = [IndexKey("pypi", "quill", f"1.{number}") for number in range(4)]
    for when, key in enumerate(titles[:3]):
        await store.start_build(key, write_content(b""))
        set_last_use(store, key, 1_000_000 + when)
    store.find(titles[0])

    await store.start_build(titles[3], write_content(b""))

    assert [store.find(key) is not None for key in titles] == [True, False, True, True]


async def test_removal_frees_space_but_keeps_the_newest(tmp_path: Path) -> None:
    store = IndexStore(tmp_path, max_bytes=1000)
    first, second = IndexKey("pypi", "ink", "1.0"), IndexKey("npm", "ink", "1.0.0")
    await store.start_build(first, write_content(bytes(600)))
    set_last_use(store, first, 1_000_000)

    await store.start_build(second, write_content(bytes(600)))
    await store.start_build(QUILL, write_content(bytes(5000)))

    assert store.find(first) is None
    assert store.find(second) is None
    assert store.find(QUILL)
    assert store.libraries() == [("pypi", "quill")]


async def test_leftovers_are_removed_but_active_builds_kept(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    file = await store.start_build(QUILL, write_content(b""))
    old, new, former = (
        file.with_name("a.part"),
        file.with_name("b.part"),
        tmp_path / "0" / "pypi" / "x" / "1.db",
    )
    former.parent.mkdir(parents=True)
    for path in (old, new, former):
        path.write_bytes(b"")
    os.utime(old, (1_000_000, 1_000_000))

    await store.start_build(IndexKey("pypi", "quill", "2.0"), write_content(b""))

    assert [path.exists() for path in (old, new, former)] == [False, True, True]


async def test_broken_index_can_be_discarded(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    await store.start_build(QUILL, write_content(b"no index"))

    store.discard(QUILL)
    store.discard(QUILL)

    assert store.find(QUILL) is None


async def test_unwritable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "docs").write_text("in the way")
    store = IndexStore(tmp_path / "docs")

    with pytest.raises(OSError, match="docs"):
        await store.start_build(QUILL, write_content(b""))

    assert (store.find(QUILL), store.versions("pypi", "quill"), store.libraries()) == (None, [], [])


async def test_build_continues_without_waiting_request(tmp_path: Path) -> None:
    store, go_on = IndexStore(tmp_path), asyncio.Event()

    async def wait_and_write(file: Path) -> None:
        await go_on.wait()
        write_index(file)

    task = store.start_build(QUILL, wait_and_write)
    done, _ = await asyncio.wait({task}, timeout=0)
    go_on.set()
    file = await store.start_build(QUILL, wait_and_write)

    assert not done
    assert file.read_bytes() == b"index"


async def test_failing_builds_keep_folder_of_starting_build(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)

    async def fail(file: Path) -> None:
        raise ValueError("broken")

    async def write(file: Path) -> None:
        write_index(file)

    for turn in range(100):
        key = IndexKey("pypi", f"quill{turn}", "1.0")
        broken = [store.start_build(IndexKey("pypi", key.name, f"2.{each}"), fail) for each in range(6)]
        made = await store.start_build(key, write)
        await asyncio.gather(*broken, return_exceptions=True)
        assert made.exists()


async def test_failed_build_does_not_disturb_other_version(tmp_path: Path) -> None:
    store, go_on = IndexStore(tmp_path), asyncio.Event()

    async def write_slowly(file: Path) -> None:
        await go_on.wait()
        write_index(file)

    async def fail(file: Path) -> None:
        raise ValueError("broken")

    slow = store.start_build(QUILL, write_slowly)
    with pytest.raises(ValueError, match="broken"):
        await store.start_build(IndexKey("pypi", "quill", "2.0"), fail)
    go_on.set()

    assert (await slow).read_bytes() == b"index"
