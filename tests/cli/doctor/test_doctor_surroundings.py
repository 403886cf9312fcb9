"""Doctor checks of public URL, proxy, stores, alerts and providers; each test breaks one thing."""

# asyncpg and redis are typed in parts
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from databases import Postgres, Redis, reserve_port
from doctor_fixtures import (
    UNREACHABLE_URL,
    ResponseChange,
    healthy_providers,
    run_check,
    serve_proxy,
    today,
    with_changes,
    with_provider,
    write_phishing_list,
)
from facilitators import build_settings
from fake_upstreams import FakeUpstreams, RecordedRequest
from pydantic import SecretStr
from redis import Redis as Client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from centgate.cli.doctor.context import display_origin
from centgate.cli.doctor.storage import EPHEMERAL_FILESYSTEMS, find_filesystem_type
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.devchain.http_server import serve_app
from centgate.payments.database.migrations import HEAD_REVISION
from centgate.payments.database.store_factory import open_store
from centgate.phishing.store import FetchState, ListFolder
from centgate.server import run_in_thread
from centgate.settings import ProviderSettings, Settings


@pytest.fixture(scope="module")
def served_settings(tmp_path_factory: pytest.TempPathFactory) -> Generator[Settings]:
    """Settings of a running API: the public URL is where it listens."""
    folder = tmp_path_factory.mktemp("served")
    with reserve_port() as port:
        settings = build_settings(folder, UNREACHABLE_URL, port=port, public_url=f"http://127.0.0.1:{port}")
        with run_in_thread(settings):
            yield settings


def keep_response(_asked: dict[str, str], status: int, _headers: dict[str, str]) -> int:
    return status


def remove_headers(*names: str) -> ResponseChange:
    """Return a response change that removes headers."""

    def mangle(_asked: dict[str, str], status: int, headers: dict[str, str]) -> int:
        for name in names:
            headers.pop(name, None)
        return status

    return mangle


def truncate_terms(_asked: dict[str, str], status: int, headers: dict[str, str]) -> int:
    if "payment-required" in headers:
        headers["payment-required"] = headers["payment-required"][:1001]
    return status


def cache_response(_asked: dict[str, str], _status: int, _headers: dict[str, str]) -> int:
    return 200


def refuse_preflight(asked: dict[str, str], status: int, _headers: dict[str, str]) -> int:
    return 405 if "access-control-request-method" in asked else status


def limit_headers(asked: dict[str, str], status: int, _headers: dict[str, str]) -> int:
    return 431 if len(asked.get("payment-signature", "")) > 2000 else status


async def test_public_url_of_running_server_passes(served_settings: Settings) -> None:
    for name in ("public-url", "proxy", "header-size"):
        assert (await run_check(served_settings, name)).status == "ok"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pay_to": BUYER_ACCOUNTS[3].address}, "different terms (payTo)"),
        ({"payment_window": 300}, "different terms (maxTimeoutSeconds)"),
        ({"public_url": UNREACHABLE_URL}, "does not respond"),
        ({"public_url": "http://facts.example"}, "not https"),
        ({"network": "eip155:8453"}, "their own machine"),
    ],
    ids=["payee", "window", "down", "clear", "loopback"],
)
async def test_public_url_of_other_server_is_reported(
    served_settings: Settings, changes: dict[str, Any], reason: str
) -> None:
    finding = await run_check(with_changes(served_settings, **changes), "public-url")

    assert (finding.status, reason in finding.what) == ("failed", True), finding


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "mangle", "drop", "reason"),
    [
        ("public-url", remove_headers("payment-required"), "", "is missing"),
        ("public-url", truncate_terms, "", "truncated or changed"),
        ("public-url", cache_response, "", "status 200"),
        ("proxy", remove_headers("access-control-allow-origin"), "", "OPTIONS"),
        ("proxy", remove_headers("access-control-expose-headers"), "", "cannot read PAYMENT-REQUIRED"),
        ("proxy", refuse_preflight, "", "OPTIONS"),
        ("proxy", limit_headers, "", "too long"),
        ("proxy", keep_response, "payment-signature", "does not reach"),
    ],
    ids=["dropped", "cut", "cached", "origin", "exposed", "options", "short", "signature"],
)
async def test_proxy_that_damages_headers_is_reported(
    served_settings: Settings, name: str, mangle: ResponseChange, drop: str, reason: str
) -> None:
    with serve_proxy(served_settings.port, mangle, drop=drop) as url:
        finding = await run_check(with_changes(served_settings, public_url=url), name)

    assert (finding.status, reason in finding.what) == ("failed", True), finding


async def test_too_long_terms_are_reported(settings: Settings) -> None:
    long = with_changes(settings, public_url="https://" + "a" * 4500 + ".example")

    assert (await run_check(long, "header-size")).status == "failed"
    assert (await run_check(settings, "header-size")).status == "warning"


async def migrate_database(url: str) -> str:
    """Create the tables in a database, and return its URL."""
    store = open_store(url)
    await store.migrate()
    await store.close()
    return url


async def check_database(settings: Settings, url: str) -> tuple[str, str, str]:
    """Return the doctor's finding about a database."""
    finding = await run_check(with_changes(settings, database_url=url), "database")
    return finding.status, finding.what, finding.mend or ""


async def execute(url: str, *statements: str) -> None:
    """Execute statements on a PostgreSQL database."""
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def test_migrated_database_passes_and_empty_one_is_reported(
    settings: Settings, postgres_url: str
) -> None:
    empty = await check_database(settings, postgres_url)
    full = await check_database(settings, await migrate_database(postgres_url))

    assert (empty[0], "centgate migrate" in empty[2]) == ("warning", True), empty
    assert (full[0], HEAD_REVISION in full[1]) == ("ok", True), full


@pytest.mark.parametrize(("version", "mend"), [("0001", "centgate migrate"), ("9999", "upgrade")])
async def test_other_schema_is_reported(
    settings: Settings, database_url: str, version: str, mend: str
) -> None:
    await migrate_database(database_url)
    change = f"UPDATE alembic_version SET version_num = '{version}'"
    if database_url.startswith("sqlite"):
        with sqlite3.connect(database_url.removeprefix("sqlite:///")) as file:
            file.execute(change)
        file.close()
    else:
        await execute(database_url, change)

    status, what, finding = await check_database(settings, database_url)

    assert (status, version in what, mend in finding) == ("failed", True, True)


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (
            "ALTER DATABASE {} SET synchronous_commit = off",
            "failed",
            "confirms writes before they are on disk",
        ),
        ("ALTER DATABASE {} SET default_transaction_read_only = on", "failed", "is not writable"),
    ],
    ids=["not durable", "read only"],
)
async def test_postgresql_that_may_lose_payments_is_reported(
    settings: Settings, postgres_url: str, change: str, status: str, reason: str
) -> None:
    await migrate_database(postgres_url)
    await execute(postgres_url, change.format(postgres_url.rpartition("/")[2]))

    finding = await check_database(settings, postgres_url)

    assert (finding[0], reason in finding[1]) == (status, True), finding


async def test_user_without_tables_is_reported(
    settings: Settings, postgres: Postgres, postgres_url: str
) -> None:
    await migrate_database(postgres_url)
    await execute(postgres_url, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN")

    finding = await check_database(settings, postgres_url.replace("postgres@", "guest@"))

    assert (finding[0], "permission denied" in finding[1]) == ("failed", True), finding


async def test_too_many_connections_are_reported(settings: Settings, postgres_url: str) -> None:
    url = await migrate_database(postgres_url)

    finding = await run_check(with_changes(settings, database_url=url, workers=4), "database")

    assert (finding.status, "40 connections" in finding.what) == ("warning", True), finding


async def test_unusable_sqlite_file_is_reported(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "torn.db").write_bytes(b"no database at all " * 100)

    torn = await check_database(settings, f"sqlite:///{tmp_path / 'torn.db'}")
    nowhere = await check_database(settings, f"sqlite:///{tmp_path / 'none' / 'journal.db'}")
    absent = await check_database(settings, f"sqlite:///{tmp_path / 'new.db'}")

    assert (torn[0], "is not writable" in torn[1]) == ("failed", True), torn
    assert (nowhere[0], "does not exist" in nowhere[1]) == ("failed", True), nowhere
    is_ephemeral = find_filesystem_type(tmp_path) in EPHEMERAL_FILESYSTEMS  # as in most containers
    state, words = ("warning", "payments are lost with it") if is_ephemeral else ("ok", "will be created")
    assert (absent[0], words in absent[1]) == (state, True), absent
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("name", ["a#b.db", "a?b.db", "a%20b.db"])
async def test_sqlite_file_with_marks_of_urls_is_checked(
    settings: Settings, tmp_path: Path, name: str
) -> None:
    await migrate_database(f"sqlite:///{tmp_path / name}")

    state, what, _ = await check_database(settings, f"sqlite:///{tmp_path / name}")

    assert (state in ("ok", "warning"), "is not writable" in what) == (True, False), what


async def test_usable_cache_passes_and_full_one_is_reported(settings: Settings, redis: Redis) -> None:
    shared = with_changes(settings, cache_url=redis.url)
    right = await run_check(shared, "cache")
    with Client.from_url(redis.url) as client:
        client.config_set("maxmemory", "10mb")
        full = await run_check(shared, "cache")
        client.config_set("requirepass", "a-password")
        closed = await run_check(shared, "cache")

    assert (right.status, right.what.startswith("Redis")) == ("ok", True), right
    assert (full.status, "noeviction" in full.what) == ("warning", True), full
    assert (closed.status, "authenticated" in closed.what) == ("failed", True), closed


async def test_receipt_key_that_owns_payments_is_reported(settings: Settings) -> None:
    key = SecretStr(BUYER_ACCOUNTS[0].private_key)
    same = with_changes(settings, receipt_key=key, pay_to=BUYER_ACCOUNTS[0].address)

    assert (await run_check(same, "receipt-key")).status == "warning"
    assert (await run_check(with_changes(settings, receipt_key=key), "receipt-key")).status == "ok"


async def test_alert_is_sent_only_on_request(settings: Settings, upstreams: FakeUpstreams) -> None:
    upstreams.set_response("hook", "/secret-path-1", {}, method="POST")
    told_to = with_changes(settings, alert_webhook=upstreams.url_of("hook") + "/secret-path-1")

    silent = await run_check(told_to, "alert-webhook")
    asked_before = len(upstreams.requests_of("hook"))
    sent = await run_check(told_to, "alert-webhook", send_test_alert=True)
    gone = await run_check(
        with_changes(settings, alert_webhook=upstreams.url_of("hook") + "/gone"),
        "alert-webhook",
        send_test_alert=True,
    )

    assert (silent.status, asked_before) == ("skipped", 0)
    assert (sent.status, upstreams.requests_of("hook")[0].body["kind"]) == ("ok", "test")
    assert (gone.status, "404" in gone.what) == ("failed", True)


async def test_occupied_metrics_port_is_reported(settings: Settings) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        taken = asyncio.create_task(run_check(with_changes(settings, metrics_port=port), "metrics"))
        connection, _ = await asyncio.to_thread(other.accept)
        connection.close()
        other.settimeout(0.2)
        while not taken.done():  # it is asked once more
            try:
                again, _ = await asyncio.to_thread(other.accept)
                again.close()
            except TimeoutError:
                continue
        told = await taken

    assert (told.status, "in use by another program" in told.what) == ("failed", True), told
    assert (await run_check(with_changes(settings, metrics_port=port), "metrics")).status == "ok"


@pytest.mark.parametrize(
    ("line", "status"),
    [("# TYPE centgate_payments_total counter", "ok"), ("# TYPE go_info gauge", "failed")],
    ids=["ours", "others"],
)
async def test_own_metrics_are_distinguished_from_others(settings: Settings, line: str, status: str) -> None:
    def page(_request: Request) -> Response:
        return Response(f"# HELP it\n{line}\n", media_type="text/plain")

    with serve_app(Starlette(routes=[Route("/metrics", page)]), 0) as url:
        finding = await run_check(with_changes(settings, metrics_port=urlsplit(url).port), "metrics")

    assert finding.status == status, finding


async def test_ineffective_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENTGATE_PAYTO", "0x" + "1" * 40)
    monkeypatch.setenv("CENTGATE_EXA_TOKEN", "x")

    finding = await run_check(Settings(), "settings")

    assert finding.status == "warning"
    assert "CENTGATE_EXA_TOKEN, CENTGATE_PAYTO" in finding.what


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pinned": ("crawler-scrape=nobody",)}, "not by 'nobody'"),
        ({"phishing_list": Path("/nowhere/list.xz")}, "/nowhere/list.xz"),
        ({"well_known": Path("/nowhere")}, "/nowhere"),
    ],
    ids=["pin", "list", "well-known"],
)
async def test_setting_that_prevents_start_is_reported(
    settings: Settings, changes: dict[str, Any], reason: str
) -> None:
    finding = await run_check(with_changes(settings, **changes), "start")

    assert (finding.status, reason in finding.what) == ("failed", True), finding


@pytest.mark.parametrize(
    ("day", "status"),
    [("2022-04-19", "warning"), (None, "warning"), (today(), "ok")],
    ids=["old", "undated", "today"],
)
async def test_phishing_list_age_is_reported(
    settings: Settings, tmp_path: Path, day: str | None, status: str
) -> None:
    finding = await run_check(
        with_changes(settings, phishing_list=write_phishing_list(tmp_path, day)), "phishing-list"
    )

    assert finding.status == status, finding


async def test_source_of_each_phishing_list_is_reported(settings: Settings, tmp_path: Path) -> None:
    folder = ListFolder(tmp_path / "phishing")
    folder.folder.mkdir()
    place = {"url": "https://me:pw@lists.example/?key=12", "fetched_at": "2026-11-25T09:00:00Z"}
    folder.store_packed("polkadot", write_phishing_list(tmp_path, today(), **place).read_bytes())
    folder.store_state(
        "polkadot", FetchState(url="https://x", attempted_at=0, next_at=9e9, failures=3, error="it shrank")
    )
    changes = {"phishing_folder": folder.folder, "phishing_list_url": ("polkadot",)}

    finding = await run_check(with_changes(settings, **changes), "phishing-list")

    assert finding.status == "warning"
    for part in (
        "metamask (npm eth-phishing-detect@1.2.0)",
        "from the package",
        "polkadot (test)",
        "fetched 2026-11-25T09:00:00Z from https://lists.example;",
        "it shrank",
    ):
        assert part in finding.what


async def test_missing_browser_is_reported(settings: Settings) -> None:
    without_one = with_changes(
        settings, pagereader_render=True, pagereader_chromium=Path("/nowhere/chromium")
    )

    assert (await run_check(without_one, "browser")).status == "failed"


async def test_unusable_browser_of_the_settings_is_a_failure(settings: Settings, tmp_path: Path) -> None:
    for path in (tmp_path / "absent", tmp_path):  # a folder may be entered, which looks like executable
        mistyped = with_changes(settings, pagereader_render=None, pagereader_chromium=path)

        found = await run_check(mistyped, "browser")

        assert (found.status, found.what) == ("failed", f"{path} is not an executable file")


async def test_services_without_source_are_named(settings: Settings) -> None:
    keyed = with_changes(settings, providers={"exa": ProviderSettings(key=SecretStr("exa-key-1"))})

    assert "neuralweb-search" in (await run_check(settings, "services")).what
    assert "neuralweb-search" not in (await run_check(keyed, "services")).what


@pytest.mark.parametrize(
    ("name", "path", "body", "status", "reason"),
    [
        ("etherscan", "/v2/api", {"status": "0", "result": "Invalid API Key (#err2)|"}, 200, "accept"),
        ("firecrawl", "/v2/team/credit-usage", {"error": "Unauthorized"}, 401, "refuses"),
        ("goplus", "/api/v1/supported_chains", {"code": 4012, "message": "wrong"}, 200, "refuses"),
        ("searxng", "/search", "<html>403 Forbidden</html>", 403, "search.formats"),
        ("dexscreener", "/", "", 503, "status 503"),
    ],
)
async def test_provider_that_refuses_key_is_reported(
    settings: Settings, upstreams: FakeUpstreams, name: str, path: str, body: Any, status: int, reason: str
) -> None:
    settings = with_changes(settings, providers=healthy_providers(upstreams))
    upstreams.set_response(name, path, body, status=status)

    settings = with_provider(settings, name, key="key-0123456789", url=upstreams.url_of(name))

    finding = await run_check(settings, f"provider-{name}")

    assert (finding.status, reason in finding.what, bool(finding.mend)) == ("failed", True, True), finding


@pytest.mark.parametrize(
    ("result", "status", "reason"),
    [("0x2105", "ok", "accepts the key"), (None, "failed", "Must be authenticated")],
    ids=["accepted", "refused"],
)
async def test_alchemy_key_is_checked_free(
    settings: Settings, upstreams: FakeUpstreams, result: str | None, status: str, reason: str
) -> None:
    refusal = {"error": {"code": -32600, "message": "Must be authenticated!"}}
    networks = iter(range(100))

    def answer(_asked: Any) -> tuple[int, Any]:
        from centgate.providers.alchemy import NETWORKS

        chain = list(NETWORKS)[next(networks)]
        return 200, {"jsonrpc": "2.0", "id": 0, **({"result": hex(chain)} if result else refusal)}

    upstreams.set_response_function("alchemy", "/v2/alchemy-key-1", answer, method="POST")
    keyed = with_provider(settings, "alchemy", key="alchemy-key-1", url=upstreams.url_of("alchemy"))

    finding = await run_check(keyed, "provider-alchemy")

    assert finding.status == status, finding
    assert {request.body["method"] for request in upstreams.requests_of("alchemy")} == {"eth_chainId"}
    assert reason in finding.what or "refuses" in finding.what


@pytest.mark.parametrize(
    ("second", "status"), [(UNREACHABLE_URL, "warning"), (None, "failed")], ids=["one of two", "the only one"]
)
async def test_node_of_other_chain_is_reported(
    settings: Settings, upstreams: FakeUpstreams, second: str | None, status: str
) -> None:
    settings = with_changes(settings, providers=healthy_providers(upstreams))
    good, wrong = upstreams.url_of("rpc") + "/1", upstreams.url_of("rpc") + "/10"

    finding = await run_check(
        with_provider(settings, "rpc_1", url=f"{good},{second}" if second else wrong), "provider-rpc"
    )

    assert (finding.status, "chain 1" in finding.what) == (status, True), finding


async def test_nodes_without_trade_simulation_are_named(settings: Settings, upstreams: FakeUpstreams) -> None:
    settings = with_changes(settings, providers=healthy_providers(upstreams))
    able = upstreams.url_of("rpc") + "/8453"
    upstreams.set_response("plain", "/", {"jsonrpc": "2.0", "id": 0, "result": "0x"}, method="POST")
    plain = with_provider(settings, "rpc_8453", url=f"{upstreams.url_of('plain')},{able}")
    lacking = with_provider(settings, "rpc_8453", url=upstreams.url_of("plain"))

    mixed, none = await run_check(plain, "simulation"), await run_check(lacking, "simulation")

    assert (mixed.status, "base: 1 of 2 nodes simulate trades" in mixed.what) == ("ok", True), mixed
    assert (none.status, "base: 0 of 1 nodes simulate trades" in none.what) == ("warning", True), none
    assert "CENTGATE_RPC_8453_URL" in (none.mend or "")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@node.example:8545/v2/key", "https://node.example:8545"),
        ("http://[::1]:8545/key", "http://[::1]:8545"),
        ("http://[::1", "an invalid URL"),
        ("http:///v2/key", "an invalid URL"),
        ("node.example/key", "an invalid URL"),
    ],
)
def test_only_origin_of_url_is_shown(url: str, shown: str) -> None:
    assert display_origin(url) == shown


async def test_slow_nodes_are_reported(settings: Settings, upstreams: FakeUpstreams) -> None:
    def answer_late(_request: RecordedRequest) -> tuple[int, Any]:
        time.sleep(1)  # three times the timeout
        return 200, {}

    upstreams.set_response_function("late", "/", answer_late, method="POST")
    slow = with_provider(settings, "rpc", timeout=0.3)
    slow = with_provider(slow, "rpc_8453", url=upstreams.url_of("late"))

    finding = await run_check(slow, "simulation")

    silent = "base: 0 of 1 nodes simulate trades, 1 did not answer"
    assert (finding.status, silent in finding.what) == ("warning", True), finding


async def test_page_reader_parses_a_page(settings: Settings) -> None:
    finding = await run_check(settings, "provider-pagereader")

    assert (finding.status, finding.what) == ("ok", "parses pages")


async def test_page_reader_without_its_modules_fails(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("centgate.resources.PARSER_MODULES", ("centgate.no_such_module",))

    finding = await run_check(settings, "provider-pagereader")

    assert (finding.status, "cannot parse pages" in finding.what) == ("failed", True), finding


async def test_disabled_or_unconfigured_provider_is_skipped(settings: Settings) -> None:
    off = with_provider(settings, "goplus", enabled=False)

    assert (await run_check(off, "provider-goplus")).what == "disabled"
    finding = await run_check(off, "provider-exa")
    assert (finding.status, "CENTGATE_EXA_KEY" in (finding.mend or "")) == ("skipped", True)


async def test_index_without_pages_needs_sites_and_no_setting(settings: Settings, tmp_path: Path) -> None:
    changed = settings.model_copy(update={"siteindex_folder": tmp_path})
    finding = await run_check(changed, "provider-siteindex")

    assert (finding.status, "centgate index add" in (finding.mend or "")) == ("skipped", True)
    assert "CENTGATE_" not in (finding.mend or "")
