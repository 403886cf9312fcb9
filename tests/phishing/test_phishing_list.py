"""Phishing lists as files: import, skipped entries, snapshots and the commands that create them."""

from __future__ import annotations

import json
import lzma
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from centgate.cli.phishing_list import app
from centgate.phishing import source_package
from centgate.phishing.normalize import DroppedEntry
from centgate.phishing.rules import InvalidPhishingList
from centgate.phishing.snapshot import (
    ImportedList,
    import_list,
    load_shipped,
    load_snapshot,
    pack_snapshot,
    unpack_snapshot,
)
from centgate.phishing.store import ListFolder

CID = "QmUDBVyGwqKdSayk7kDKUaj9J41Ft1DWizcKUx5UmgMgGy"
STALELIST: dict[str, Any] = {
    "allowlist": ["metamask.io"],
    "blocklist": ["evil.com", CID],
    "blocklistPaths": ["sites.google.com/view/evil drop"],
    "fuzzylist": ["metamask.io"],
    "tolerance": 1,
    "version": 7,
    "lastUpdated": 1_700_000_000,
}


def import_document(document: Any, **options: Any) -> ImportedList:
    return import_list(json.dumps(document), source="test", **options)


def test_stalelist_is_imported_with_its_date() -> None:
    header = import_document(STALELIST).snapshot.header

    assert (header.version, header.date, header.tolerance) == ("7", "2023-11-14", 1)
    assert (header.allowlist, header.blocklist, header.fuzzylist, header.paths) == (1, 2, 1, 1)


def test_stalelist_envelope_is_optional() -> None:
    assert import_document({"data": STALELIST}) == import_document(STALELIST)


def test_config_is_imported_with_given_date() -> None:
    config = {"version": 2, "tolerance": 2, "fuzzylist": [], "whitelist": ["a.com"], "blacklist": ["b.com"]}

    snapshot = import_document(config, date="2024-02-29").snapshot

    assert (snapshot.rules.allowlist, snapshot.rules.blocklist) == (("a.com",), ("b.com",))
    assert snapshot.header.date == "2024-02-29"


def test_entries_are_normalized_as_addresses() -> None:
    document = {"blocklist": ["EVIL.com", "b\u00fccher.example.", "https://evil.org/", "16909060"]}

    assert import_document(document).snapshot.rules.blocklist == (
        "evil.com",
        "xn--bcher-kva.example",
        "evil.org",
        "1.2.3.4",
    )


def test_order_of_entries_is_kept() -> None:
    assert import_document({"blocklist": ["b.com", "a.com", "b.com"]}).snapshot.rules.blocklist == (
        "b.com",
        "a.com",
    )


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("ex|mple.com", "unreadable"),
        ("mailto:a@b.c", "unreadable"),
        ("evil.com:8443", "port"),
        ("https://evil.com/?id=1", "path"),
        ("*.evil.com", "wildcard"),
        ("zip", "single label"),
        ("github.io", "hosting platform"),
        ("Pages.dev", "hosting platform"),
        ("x.com", "hosting platform"),
        ("known.com", "repeated"),
    ],
)
def test_harmful_entry_is_skipped_and_reported(entry: str, reason: str) -> None:
    result = import_document({"blocklist": ["known.com", entry]})

    assert result.snapshot.rules.blocklist == ("known.com",)
    assert result.dropped == (DroppedEntry(entry, reason),)  # pyright: ignore[reportArgumentType]


def test_hosting_platform_is_not_allowlisted() -> None:
    assert import_document({"allowlist": ["github.io"], "blocklist": []}).snapshot.rules.allowlist == ()


def test_short_name_is_not_protected() -> None:
    result = import_document({"blocklist": [], "fuzzylist": ["ens.eth", "opensea.io"], "tolerance": 2})

    assert result.snapshot.rules.fuzzylist == ("opensea.io",)
    assert result.dropped == (DroppedEntry("ens.eth", "too short"),)


def test_blocklist_entry_with_path_blocks_path() -> None:
    assert import_document({"blocklist": ["x.com/scam"]}).snapshot.rules.paths.tree == {"x.com": {"scam": {}}}


def test_paths_in_wallet_format_are_imported() -> None:
    document: dict[str, Any] = {"blocklist": [], "blocklistPaths": {"x.com": {"a b": {"/": {}}}}}

    assert import_document(document).snapshot.rules.paths.tree == document["blocklistPaths"]


def test_path_entry_without_path_is_skipped() -> None:
    assert import_document({"blocklist": [], "blocklistPaths": ["x.com"]}).dropped == (
        DroppedEntry("x.com", "unreadable"),
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"deny": ["evil.com"]}', '{"data": []}', "\udcff"])
def test_invalid_list_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidPhishingList, match="the file is n"):
        import_list(text, source="test")


def test_invalid_time_is_refused() -> None:
    with pytest.raises(InvalidPhishingList, match="not a time in seconds"):
        import_document({**STALELIST, "lastUpdated": 10**18})


def test_snapshot_is_restored_from_its_file() -> None:
    snapshot = import_document(STALELIST).snapshot

    assert unpack_snapshot(pack_snapshot(snapshot)) == snapshot


def test_empty_snapshot_is_restored_from_its_file() -> None:
    snapshot = import_document({"blocklist": []}).snapshot

    assert unpack_snapshot(pack_snapshot(snapshot)) == snapshot


def test_same_list_gives_same_bytes() -> None:
    assert pack_snapshot(import_document(STALELIST).snapshot) == pack_snapshot(
        import_document(STALELIST).snapshot
    )


def test_changed_list_has_other_id() -> None:
    assert (
        import_document(STALELIST).snapshot.id != import_document({**STALELIST, "tolerance": 2}).snapshot.id
    )


def test_modified_snapshot_is_refused() -> None:
    text = lzma.decompress(pack_snapshot(import_document(STALELIST).snapshot)).replace(
        b"evil.com", b"good.com"
    )

    with pytest.raises(InvalidPhishingList, match="does not match its SHA-256"):
        unpack_snapshot(lzma.compress(text))


@pytest.mark.parametrize("data", [b"", b"not xz", lzma.compress(b"no header"), lzma.compress(b"\xff")])
def test_invalid_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidPhishingList, match="not a phishing list snapshot"):
        unpack_snapshot(data)


def test_truncated_snapshot_is_refused() -> None:
    with pytest.raises(InvalidPhishingList):
        unpack_snapshot(pack_snapshot(import_document(STALELIST).snapshot)[:-20])


def test_shipped_list_names_its_source() -> None:
    header = load_shipped().header

    assert (header.source, header.date, header.tolerance) == (
        "npm eth-phishing-detect@1.2.0",
        "2022-04-19",
        2,
    )
    assert (header.fuzzylist, header.allowlist, header.blocklist, header.paths) == (15, 1138, 13752, 0)


def test_package_other_than_pinned_is_refused() -> None:
    with pytest.raises(source_package.PackageUnavailable, match="not the pinned"):
        source_package.verify_integrity(b"another package")


def run_command(*arguments: str | Path, **environment: str) -> Result:
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "120", **environment}
    )


@pytest.mark.extended
def test_shipped_snapshot_is_reproducible(tmp_path: Path) -> None:
    try:
        source_package.fetch_package()
    except source_package.PackageUnavailable as error:
        pytest.skip(str(error))

    result = run_command("build", "--out", tmp_path / "list.xz")

    assert result.exit_code == 0
    assert (tmp_path / "list.xz").read_bytes() == pack_snapshot(load_shipped())
    assert "Version 1.1, December 2016" in (tmp_path / "list.LICENSE").read_text()


def test_shipped_file_matches_shipped_list() -> None:
    assert files("centgate.phishing").joinpath("data/phishing-list.xz").read_bytes() == pack_snapshot(
        load_shipped()
    )


def test_build_without_npm_fails_without_output(tmp_path: Path) -> None:
    result = run_command("build", "--out", tmp_path / "list.xz", PATH=str(tmp_path))

    assert result.exit_code == 1
    assert "npm is not on the PATH" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_update_writes_snapshot_and_reports_skipped_entries(tmp_path: Path) -> None:
    (tmp_path / "stalelist.json").write_text(
        json.dumps({**STALELIST, "blocklist": ["evil.com", "zip", "app", "[/b]"]})
    )

    result = run_command("update", tmp_path / "stalelist.json", "--out", tmp_path / "list.xz")

    assert result.exit_code == 0
    assert load_snapshot(tmp_path / "list.xz").rules.blocklist == ("evil.com",)
    for told in (
        "2023-11-14",
        load_snapshot(tmp_path / "list.xz").id,
        "single label",
        "'zip', 'app'",
        "'[/b]'",
    ):
        assert told in result.output


def test_failed_update_keeps_old_snapshot(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "list.xz").write_bytes(b"old")

    result = run_command("update", tmp_path / "bad.json", "--out", tmp_path / "list.xz")

    assert result.exit_code == 1
    assert "the file is neither a config.json" in " ".join(result.stderr.split())
    assert (tmp_path / "list.xz").read_bytes() == b"old"


def test_invalid_date_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(STALELIST))

    result = run_command(
        "update", tmp_path / "in.json", "--date", "2024-02-30", "--out", tmp_path / "list.xz"
    )

    assert result.exit_code == 2
    assert "'2024-02-30' is not a date" in result.stderr


def test_update_leaves_only_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(STALELIST))

    run_command("update", tmp_path / "in.json", "--out", tmp_path / "list.xz")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "list.xz"]


def test_unwritable_path_is_reported(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(STALELIST))

    result = run_command("update", tmp_path / "in.json", "--out", tmp_path / "absent" / "list.xz")

    assert result.exit_code == 1
    assert "cannot be written: No such file or directory" in " ".join(result.stderr.split())


def test_shipped_list_is_printed() -> None:
    result = run_command("show")

    assert load_shipped().id in result.output
    assert "2022-04-19" in result.output
    assert "DBAD" in result.output


def test_list_fetched_by_server_is_shown_as_lead(tmp_path: Path) -> None:
    fetched = import_document(STALELIST | {"lastUpdated": 1_800_000_000}).snapshot
    other = import_document({"blocklist": ["evil.org"]}).snapshot
    ListFolder(tmp_path).store_packed("metamask", pack_snapshot(fetched))
    ListFolder(tmp_path).store_packed("polkadot", pack_snapshot(other))

    result = run_command("show", CENTGATE_PHISHING_FOLDER=str(tmp_path))
    shown = json.loads(run_command("show", "--json", CENTGATE_PHISHING_FOLDER=str(tmp_path)).output)

    assert result.output.index(fetched.id) < result.output.index(other.id)
    assert load_shipped().id not in result.output
    assert shown["id"] == fetched.id
    assert [(each["name"], each["id"]) for each in shown["lists"]] == [
        ("metamask", fetched.id),
        ("polkadot", other.id),
    ]


def test_own_list_is_shown_as_lead(tmp_path: Path) -> None:
    own = import_document(STALELIST).snapshot
    (tmp_path / "own.xz").write_bytes(pack_snapshot(own))
    settings = {"CENTGATE_PHISHING_FOLDER": str(tmp_path), "CENTGATE_PHISHING_LIST": str(tmp_path / "own.xz")}

    assert own.id in run_command("show", **settings).output


def test_unreadable_own_list_is_reported_by_show(tmp_path: Path) -> None:
    result = run_command("show", CENTGATE_PHISHING_LIST=str(tmp_path / "absent.xz"))

    assert result.exit_code == 1
    assert "absent.xz" in result.stderr


def test_damaged_own_list_is_named_once_by_show(tmp_path: Path) -> None:
    (damaged := tmp_path / "damaged.xz").write_bytes(b"no snapshot")

    result = run_command("show", CENTGATE_PHISHING_LIST=str(damaged))

    assert result.exit_code == 1
    assert result.stderr.count("damaged.xz") == 1


def test_invalid_snapshot_is_reported_by_show(tmp_path: Path) -> None:
    (tmp_path / "list.xz").write_bytes(b"no snapshot")

    assert "not a phishing list snapshot" in " ".join(
        run_command("show", tmp_path / "list.xz").stderr.split()
    )
