"""Refresh of phishing lists: replacement of the list in use, refused lists, and locks between processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from buyer import PHISHING, ApiFactory
from facilitators import build_settings
from fake_upstreams import FakeUpstreams, send_paid
from msgspec.structs import replace

from centgate.lookups.phishing_refresh import (
    ListRefused,
    PhishingListRefresher,
    fetch_hotlist,
    fetch_list,
    open_list_upstream,
)
from centgate.phishing.collection import ListCollection
from centgate.phishing.published import PUBLISHED_LISTS
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.snapshot import unpack_snapshot
from centgate.phishing.store import FetchState, ListFolder, ListStore, write_atomically
from centgate.phishing.update import FetchedDocument, apply_hotlist, build_update
from centgate.phishing.url import parse_address
from centgate.provider import RequestTrace
from centgate.providers.phishinglist import PhishingList
from centgate.resources import open_resources
from centgate.settings import Settings
from centgate.upstream import Upstream

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
NAMES = [f"drainer-{number}.example" for number in range(14_000)]


def build_config(names: list[str] = NAMES, **more: Any) -> dict[str, Any]:
    return {"version": 2, "tolerance": 0, "fuzzylist": [], "whitelist": [], "blacklist": names, **more}


def build_document(body: Any) -> FetchedDocument:
    content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else None
    content = json.dumps(body).encode() if content is None else content
    return FetchedDocument(PUBLISHED_LISTS["metamask"], content, "https://lists.example", NOW)


def build_stalelist(seconds: int) -> bytes:
    return build_update(build_document({"blocklist": NAMES, "lastUpdated": seconds}), None)


@dataclass
class Lists:
    """Folder of lists, its store, and a fake server of lists."""

    folder: ListFolder
    store: ListStore
    upstream: Upstream
    server: FakeUpstreams

    @property
    def url(self) -> str:
        return f"{self.server.url}/lists/config.json"

    def publish(self, body: Any) -> None:
        self.server.set_response("lists", "/config.json", body)

    def refresher(self, **urls: str) -> PhishingListRefresher:
        return PhishingListRefresher(urls, self.folder, self.store, self.upstream)

    async def fetch_metamask(self) -> None:
        await fetch_list(self.folder, self.upstream, PUBLISHED_LISTS["metamask"], self.url)

    def status(self, text: str) -> str:
        return self.store.collection.check(parse_address(text)).status


@pytest.fixture
async def lists(tmp_path: Path, upstreams: FakeUpstreams) -> AsyncGenerator[Lists]:
    folder = ListFolder(tmp_path / "phishing")
    async with open_resources(build_settings(tmp_path, "http://127.0.0.1:9")) as resources:
        folder.folder.mkdir()
        yield Lists(folder, ListStore(folder, None), open_list_upstream(resources), upstreams)


@pytest.mark.extended
async def test_fetched_list_replaces_list_in_use(lists: Lists) -> None:
    lists.publish(build_config([*NAMES, "drainer.example"]))
    assert lists.status("drainer.example") == "unknown"

    await lists.refresher(metamask=lists.url).fetch_due()
    await lists.refresher().reload()

    assert lists.status("drainer.example") == "blocked"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<!doctype html><html><title>Just a moment...</title></html>", "neither JSON nor a list"),
        ("", "it is empty"),
        (build_config(["drainer.example"]), "it blocks 1 names"),
        (build_config(NAMES[:12_000]), "it shrank from 13,752 to 12,000"),
        (build_config([*NAMES, "metamask.io"]), "it blocks metamask.io"),
        (build_config([*NAMES, *(f"{number}.*" for number in range(2000))]), "2,000 of its 16,000 entries"),
        (build_config(whitelist=NAMES[:1000]), "its allowlist covers 1,000 blocked names"),
        (b'{"blacklist": ' + b"[" * 100_000, "neither JSON nor"),
        (build_config(fuzzylist=["metamask.io"], tolerance=2), "it calls metamask.io a lookalike"),
        (
            build_config(fuzzylist=["metamask.io"], whitelist=["metamask.io"], tolerance=5),
            "its tolerance of 5",
        ),
    ],
    ids=[
        *("page", "empty", "one", "shrunk", "well-known", "unusable", "allows", "deep"),
        *("lookalike", "tolerance"),
    ],
)
def test_defective_list_is_refused(body: Any, reason: str) -> None:
    with pytest.raises(InvalidPhishingList, match=reason):
        build_update(build_document(body), ListFolder(Path("/nowhere")).read_packed("metamask"))


@pytest.mark.parametrize("removed", [99, 100])
def test_list_that_shrank_by_tenth_is_refused(removed: int) -> None:
    previous = build_update(build_document(build_config(NAMES[:1000])), None)
    fetched = build_document(build_config(NAMES[removed:1000]))

    if removed == 99:
        assert unpack_snapshot(build_update(fetched, previous)).header.blocklist == 901
    else:
        with pytest.raises(InvalidPhishingList, match="it shrank from 1,000 to 900 names"):
            build_update(fetched, previous)


def test_hotlist_that_removes_tenth_is_refused() -> None:
    since = int(NOW.timestamp()) - 3600
    removals = [
        {
            "url": name,
            "timestamp": since + 60,
            "targetList": "eth_phishing_detect_config.blocklist",
            "isRemoval": True,
        }
        for name in NAMES[: len(NAMES) // 10]
    ]

    with pytest.raises(InvalidPhishingList, match="it shrank from 14,000 to 12,600 names"):
        apply_hotlist(build_stalelist(since), json.dumps(removals).encode(), fetched_at=NOW)


async def test_refused_list_is_not_stored(lists: Lists) -> None:
    lists.publish("<!doctype html><html><title>Just a moment...</title></html>")

    with pytest.raises(ListRefused, match="neither JSON nor a list"):
        await lists.fetch_metamask()

    assert not lists.folder.snapshot_file("metamask").exists()


@pytest.mark.extended
def test_top_level_domain_is_not_blocked() -> None:
    packed = build_update(build_document(build_config([*NAMES, "com", "com.br", "pages.dev"])), None)

    assert unpack_snapshot(packed).rules.blocklist == tuple(NAMES)


@pytest.mark.extended
async def test_too_long_list_is_refused(lists: Lists) -> None:
    lists.server.faults["lists"] = "50 MB"

    with pytest.raises(ListRefused, match="more than 32 MB"):
        await lists.fetch_metamask()


async def test_failed_fetch_keeps_list_and_is_retried_later(lists: Lists) -> None:
    lists.server.faults["lists"] = "500"

    await lists.refresher(metamask=lists.url).fetch_due()
    await lists.refresher(metamask=lists.url).fetch_due()

    state = lists.folder.read_state("metamask")
    assert state is not None
    assert (state.failures, len(lists.server.requests)) == (1, 1)
    assert "status 500" in (state.error or "")


@pytest.mark.extended
async def test_two_processes_fetch_once(lists: Lists) -> None:
    lists.publish(build_config())
    lists.server.delay = 0.2

    await asyncio.gather(*(lists.refresher(metamask=lists.url).fetch_due() for _ in range(2)))

    assert len(lists.server.requests) == 1


@pytest.mark.parametrize(
    ("state", "is_due"),
    [
        (FetchState(url="u", attempted_at=1000, next_at=2000), False),
        (FetchState(url="u", attempted_at=1000, next_at=1500), True),
        (FetchState(url="u", attempted_at=9000, next_at=9999), True),
        (FetchState(url="other", attempted_at=1000, next_at=2000), True),
    ],
    ids=["early", "due", "clock set back", "other address"],
)
def test_fetch_is_due(state: FetchState, *, is_due: bool) -> None:
    assert state.is_due("u", 1500) is is_due


@pytest.mark.extended
async def test_interrupted_write_changes_nothing(lists: Lists) -> None:
    lists.publish(build_config())
    await lists.fetch_metamask()
    lists.store.reload()
    path = lists.folder.snapshot_file("metamask")

    path.write_bytes(path.read_bytes()[:2000])
    lists.store.reload()

    assert lists.status("drainer-1.example") == "blocked"


@pytest.mark.extended
def test_damaged_file_is_replaced() -> None:
    assert unpack_snapshot(build_update(build_document(build_config()), b"cut")).header.blocklist == len(
        NAMES
    )


@pytest.mark.extended
def test_undated_list_keeps_date_of_last_change() -> None:
    first = build_update(build_document(build_config()), None)

    later = replace(build_document(build_config()), fetched_at=NOW + timedelta(days=3))
    second = build_update(later, first)

    before, after = (unpack_snapshot(packed).header for packed in (first, second))
    assert (after.date, after.sha256, after.fetched_at) == (
        before.date,
        before.sha256,
        "2026-11-26T12:00:00Z",
    )


@pytest.mark.extended
def test_future_date_becomes_today() -> None:
    body = {"blocklist": NAMES, "lastUpdated": (NOW + timedelta(days=90)).timestamp()}

    assert unpack_snapshot(build_update(build_document(body), None)).header.date == "2026-11-23"


@pytest.mark.extended
async def test_secondary_list_cannot_block_allowed_by_first(lists: Lists) -> None:
    allowed = next(iter(lists.store.collection.lists[0].detector.lists[0].allowlist))
    lists.server.set_response("lists", "/all.json", {"allow": [], "deny": [*NAMES, allowed]})

    await lists.refresher(polkadot=f"{lists.server.url}/lists/all.json").fetch_due()
    lists.store.reload()

    verdict = lists.store.collection.check(parse_address(allowed))
    assert verdict.status == "allowed"
    assert [each.verdict.status for each in verdict.by_list] == ["allowed", "blocked"]
    assert lists.status(NAMES[0]) == "blocked"


def test_own_list_replaced_while_it_is_read_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "own.xz"
    file.write_bytes(build_update(build_document(build_config()), None))
    newer = build_update(build_document(build_config([*NAMES, "drainer.example"])), None)

    def read_and_replace(path: Path) -> bytes:
        with path.open("rb") as stream:
            content = stream.read()
        if path == file:
            write_atomically(file, newer)
        return content

    with monkeypatch.context() as replaced:
        replaced.setattr(Path, "read_bytes", read_and_replace)
        store = ListStore(ListFolder(tmp_path / "phishing"), file)

    assert store.reload()
    assert store.collection.check(parse_address("drainer.example")).status == "blocked"


def test_every_old_list_causes_warning(tmp_path: Path) -> None:
    (shipped,) = ListStore(ListFolder(tmp_path), None).collection.lists
    others = [
        replace(shipped, name=name, header=shipped.header.model_copy(update={"date": date}))
        for name, date in (("polkadot", None), ("phantom", datetime.now(UTC).date().isoformat()))
    ]
    provider: Any = PhishingList(Settings()).bind(RequestTrace.start())
    provider.store = SimpleNamespace(collection=ListCollection([shipped, *others]))

    provider.check_address(parse_address(NAMES[0]))

    assert provider.trace.warnings == [
        f"the phishing list is {shipped.age_days():,} days old; newer phishing sites are missing, so "
        "`unknown` is weak evidence",
        "other phishing lists miss newer sites: polkadot has no date",
    ]


@pytest.mark.extended
def test_hotlist_changes_stalelist() -> None:
    since = int(NOW.timestamp()) - 3600
    target = "eth_phishing_detect_config.blocklist"
    changes = [
        {"url": "new.example", "timestamp": since + 60, "targetList": target},
        {"url": NAMES[0], "timestamp": since + 60, "targetList": target, "isRemoval": True},
        {"url": "com", "timestamp": since + 60, "targetList": target},
        {"url": "old.example", "timestamp": since - 60, "targetList": target},
        {"url": "far.example", "timestamp": since + 10**7, "targetList": target},
        {"url": "other.example", "timestamp": since + 60, "targetList": "other_config.blocklist"},
    ]

    packed = apply_hotlist(build_stalelist(since), json.dumps({"data": changes}).encode(), fetched_at=NOW)

    snapshot = unpack_snapshot(packed)
    assert set(snapshot.rules.blocklist) == {*NAMES[1:], "new.example"}
    assert snapshot.header.updated_seconds == since + 60


@pytest.mark.extended
def test_hotlist_changes_paths_of_blocklist() -> None:
    since = int(NOW.timestamp()) - 3600
    target = "eth_phishing_detect_config.blocklist"
    stalelist = {"blocklist": [*NAMES, "sites.example/old"], "lastUpdated": since}
    changes = [
        {"url": "sites.example/drainer", "timestamp": since + 60, "targetList": target},
        {"url": "sites.example/old", "timestamp": since + 60, "targetList": target, "isRemoval": True},
    ]

    packed = apply_hotlist(
        build_update(build_document(stalelist), None), json.dumps(changes).encode(), fetched_at=NOW
    )

    assert list(unpack_snapshot(packed).rules.paths.iter_lines()) == ["sites.example/drainer"]


@pytest.mark.extended
@pytest.mark.parametrize("body", [b"<html>", b"{}", b'[{"url": 1}]'])
def test_defective_hotlist_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidPhishingList, match="the hotlist"):
        apply_hotlist(build_stalelist(1_700_000_000), body, fetched_at=NOW)


@pytest.mark.extended
async def test_hotlist_is_fetched_since_stalelist(lists: Lists) -> None:
    lists.folder.store_packed("metamask", build_stalelist(1_700_000_000))
    lists.server.set_response("lists", "/diffsSince/1700000000", {"data": []})

    await fetch_hotlist(lists.folder, lists.upstream, f"{lists.server.url}/lists/diffsSince")

    assert [each.path for each in lists.server.requests] == ["/diffsSince/1700000000"]


async def test_hotlist_without_stalelist_is_refused(lists: Lists) -> None:
    with pytest.raises(ListRefused, match="no stalelist"):
        await fetch_hotlist(lists.folder, lists.upstream, f"{lists.server.url}/lists/diffsSince")


@pytest.mark.extended
async def test_server_refreshes_lists_in_background(
    api: ApiFactory, settings: Settings, lists: Lists
) -> None:
    lists.publish(build_config([*NAMES, "drainer.example"]))
    fetching = settings.model_copy(
        update={"phishing_list_url": (f"metamask={lists.url}",), "phishing_folder": lists.folder.folder}
    )

    api(fetching)
    async with asyncio.timeout(30):
        while not lists.folder.snapshot_file("metamask").exists():  # noqa: ASYNC110 - another thread's file
            await asyncio.sleep(0.05)
    client = api(fetching)

    data = send_paid(client, PHISHING, {"url": "https://drainer.example"}).json()["data"]
    assert (data["status"], data["risk"]) == ("blocked", "high")
    assert data["lists"][0]["ageDays"] == 0
