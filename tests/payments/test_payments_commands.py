"""`centgate payments` commands, run beside servers."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from buyer import PHISHING, ApiFactory, Buyer, pay, sign_payment
from databases import Postgres
from facilitators import StubFacilitator, refuse_with, reply_with
from journal_rows import NOW, answer_row, insert_rows, payment_row, refund_row
from payments_shell import run_payments_command

from centgate.cli.payments.export_columns import DAILY_COLUMNS, PAYMENT_COLUMNS, REFUND_COLUMNS
from centgate.cli.payments.serializers import EntryWriter
from centgate.payments.database.migrations import HEAD_REVISION
from centgate.payments.database.store_factory import open_store
from centgate.payments.reports.console_actions import ConsoleAction, list_console_actions
from centgate.settings import Settings

REFUND = "0x" + "F0" * 32
DAY = 86_400.0
SERVICE = "libdocs-resolve-library"  # the longest name


def list_payments(url: str, *arguments: str) -> Any:
    result = run_payments_command("list", "--json", *arguments, url=url)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["payments"]


def read_actions(url: str) -> list[ConsoleAction]:
    """Return the operators' log, newest first."""

    async def read() -> list[ConsoleAction]:
        store = open_store(url)
        try:
            return await store.read(partial(list_console_actions, 10))
        finally:
            await store.close()

    return asyncio.run(read())


def insert_now(url: str, **tables: Any) -> None:
    """Insert rows from a test that is not asynchronous."""
    asyncio.run(insert_rows(url, **tables))


def old_payment_row(number: int, state: str = "settled", days: float = 3, **changes: Any) -> Any:
    """Return the row of a payment presented some days ago."""
    return payment_row(number, state, created_at=time.time() - days * DAY, **changes)


@pytest.mark.extended
def test_payments_are_listed_while_server_runs(
    api: ApiFactory, settings: Settings, database_url: str, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"database_url": database_url}))
    facilitator.next = [facilitator.settle, refuse_with("insufficient_funds"), reply_with(500, "no")]
    answers = [pay(client, sign_payment(client, buyer)) for _ in range(3)]

    unknown, rejected, delivered = list_payments(database_url)
    result = run_payments_command(
        "show", f"{delivered['payer']}:{delivered['nonce']}", "--json", "--body", url=database_url
    )
    summary = json.loads(run_payments_command("summary", "--json", url=database_url).stdout)

    assert [answer.status_code for answer in answers] == [200, 402, 502]
    assert (delivered["state"], delivered["status"]) == ("delivered", 200)
    assert delivered["requestId"] == answers[0].headers["X-Request-Id"]
    assert (delivered["price"], delivered["amount"], delivered["route"]) == ("0.010000", "10000", PHISHING)
    assert (rejected["state"], rejected["reason"]) == ("refused", "insufficient_funds")
    assert (unknown["state"], unknown["standing"]) == ("settling", "open")
    assert json.loads(result.stdout)["payments"][0]["answer"]["body"] == answers[0].text
    assert summary["totals"][0] | {"payments": 3, "dollars": "0.010000"} == summary["totals"][0]


@pytest.mark.extended
def test_command_resolves_open_payment(
    api: ApiFactory, settings: Settings, database_url: str, facilitator: StubFacilitator, buyer: Buyer
) -> None:
    client = api(settings.model_copy(update={"database_url": database_url}))
    facilitator.next = [facilitator.move_then_reply(reply_with(500, "no"))]
    payment = sign_payment(client, buyer)
    assert pay(client, payment).status_code == 502
    environment = {
        "CENTGATE_PAY_TO": str(settings.pay_to),
        "CENTGATE_NETWORK": settings.network,
        "CENTGATE_FACILITATOR_URL": facilitator.url,
    }

    dry = run_payments_command("reconcile", "--dry-run", "--json", url=database_url, settings=environment)
    asked_dry = facilitator.settle_calls
    done = run_payments_command("reconcile", "--json", url=database_url, settings=environment)

    deadline = time.monotonic() + 30
    while list_payments(database_url)[0]["state"] == "settling" and time.monotonic() < deadline:
        done = run_payments_command("reconcile", "--json", url=database_url, settings=environment)
    assert (dry.exit_code, asked_dry) == (1, 1)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["open"] == []
    assert list_payments(database_url)[0]["standing"] == "redeemable"
    assert pay(client, payment).status_code == 200
    assert sum(facilitator.moved.values()) == 1


@pytest.mark.extended
def test_unresolved_payment_is_reported_and_fails(database_url: str, facilitator: StubFacilitator) -> None:
    insert_now(database_url, payments=[old_payment_row(1, "settling")])
    environment = {"CENTGATE_PAY_TO": "0x" + "ce" * 20, "CENTGATE_FACILITATOR_URL": facilitator.url}

    result = run_payments_command(
        "reconcile", "--rpc", "http://127.0.0.1:9", url=database_url, settings=environment
    )

    assert result.exit_code == 1, result.output
    assert "Open before: 1, now: 1" in result.stdout


@pytest.mark.extended
def test_list_continues_after_page(database_url: str) -> None:
    insert_now(database_url, payments=[payment_row(each, created_at=NOW + each) for each in range(5)])
    pages: list[list[str]] = []
    after: list[str] = []
    while True:
        page = json.loads(
            run_payments_command("list", "--json", "--limit", "2", *after, url=database_url).stdout
        )
        pages.append([each["nonce"][-1] for each in page["payments"]])
        if page["next"] is None:
            break
        after = ["--after", page["next"]]

    assert pages == [["4", "3"], ["2", "1"], ["0"]]


@pytest.mark.extended
@pytest.mark.parametrize("width", [44, 80, 120, 220])
def test_table_fits_terminal(tmp_path: Path, width: int) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(
        url,
        payments=[
            old_payment_row(1),
            old_payment_row(2, "delivered", service="libdocs-resolve-library"),
            old_payment_row(3, "refused"),
        ],
    )

    tables = [
        run_payments_command("list", url=url, width=width),
        run_payments_command("summary", url=url, width=width),
    ]

    for table in tables:
        assert table.exit_code == 0, table.output
        assert max(map(len, table.stdout.splitlines())) <= width
    assert "0.020000" in tables[1].stdout
    assert all(word in tables[0].stdout for word in ("refundable", "delivered", "refused"))


@pytest.mark.extended
@pytest.mark.parametrize("width", [80, 120])
def test_tables_of_several_networks_are_readable(tmp_path: Path, width: int) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    rows = [
        old_payment_row(each, network=network) for each, network in enumerate(("eip155:8453", "eip155:42161"))
    ]
    insert_now(url, payments=rows)
    commands = (("list",), ("refund-list",), ("summary",), ("totals", "--by", "payer"))

    tables = {command: run_payments_command(*command, url=url, width=width).stdout for command in commands}

    for command, table in tables.items():
        for network in ("eip155:8453", "eip155:42161"):
            row = next(each for each in table.splitlines() if f" {network} " in each)
            assert len(row) <= width, command
            assert "0.010000" in row, command
    references = [each["transaction"][-4:] for each in rows]
    assert all(each in tables[("refund-list",)] for each in references)  # `payments refunded` needs them


@pytest.mark.parametrize(
    ("command", "name"),
    [(("summary",), ""), (("totals",), SERVICE), (("totals", "--by", "network"), "")],
    ids=["summary", "totals", "by network"],
)
def test_figures_are_whole_in_narrow_terminal(tmp_path: Path, command: tuple[str, ...], name: str) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    states = ["delivered"] * 115 + ["refused", "unused", "settling", "settled"] * 3
    networks = ("eip155:8453", "eip155:42161")
    rows = [
        old_payment_row(2 * number + each, state, number % 3, network=network, service=SERVICE)
        for each, network in enumerate(networks)
        for number, state in enumerate(states)
    ]
    rows[0]["settled_at"] -= 120  # delivered late
    refunds = [refund_row(rows[len(states) - 1])]
    insert_now(url, payments=rows, refunds=refunds)

    lines = run_payments_command(*command, url=url, width=80).stdout.splitlines()

    for network in networks:
        *_, row = (each.split() for each in lines if network in each and name in each)
        assert {"127", "118", "115"} <= set(row)  # payments, settled, delivered
        assert row[-1] == "1.180000"


def test_totals_by_network_have_each_network_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(
        url, payments=[old_payment_row(1, network="eip155:8453"), old_payment_row(2, network="eip155:42161")]
    )

    table = run_payments_command("totals", "--by", "network", url=url).stdout

    assert [table.count(each) for each in ("eip155:8453", "eip155:42161")] == [1, 1]


def test_shortened_id_finds_payment(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1, "delivered")])
    short = run_payments_command("list", url=url).stdout.split()[-1]

    result = run_payments_command("show", short, url=url)

    assert "…" in short
    assert result.exit_code == 0
    assert payment_row(1)["transaction"] in result.stdout


@pytest.mark.extended
@pytest.mark.parametrize(
    ("payment", "said_of_it"),
    [
        (
            old_payment_row(1, "settling"),
            ["open (settling)", "the settlement's outcome is unknown", "payments reconcile"],
        ),
        (
            old_payment_row(1, "settled", 0.1),
            ["redeemable (settled)", "An answer, until", "the buyer can fetch the answer"],
        ),
        (
            old_payment_row(1, "settled"),
            ["refundable (settled)", "can no longer be fetched", "Centgate moves no money", "--in"],
        ),
        (old_payment_row(1, "delivered"), ["delivered: HTTP 200", "no longer stored", "Nothing."]),
        (old_payment_row(1, "refused"), ["refused (insufficient_funds): no money moved", "Nothing."]),
        (
            old_payment_row(1, "unused"),
            ["state unused", "not sent to the facilitator (status 429)", "Nothing: the buyer"],
        ),
    ],
    ids=["open", "redeemable", "refundable", "delivered", "refused", "unused"],
)
def test_payment_is_described_in_words(tmp_path: Path, payment: Any, said_of_it: list[str]) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[payment])

    result = run_payments_command("show", payment["nonce"], url=url, width=200)

    assert result.exit_code == 0, result.output
    assert [each for each in said_of_it if each not in " ".join(result.stdout.split())] == []
    assert "secret" not in result.output
    assert "the proof" not in result.output


def event_row(number: int, kind: str, paid: Any, **changes: Any) -> Any:
    """Return the row of an event of a payment."""
    usual = {"id": number, "payment": paid["id"], "event": kind, "reason": None, "transaction": None}
    return usual | {"at": paid["created_at"] + number} | changes


def test_events_are_shown_in_order(database_url: str) -> None:
    paid = old_payment_row(1, "refused")
    refusal = {"at": paid["updated_at"], "reason": "insufficient_funds"}
    history = [
        event_row(1, "refused", paid, **refusal),
        event_row(2, "in_doubt", paid, reason="settlement_pending", transaction=REFUND),
        event_row(3, "refunded", paid, transaction=REFUND, reason="unchecked"),
    ]
    insert_now(database_url, payments=[paid], payment_events=history)

    output = json.loads(run_payments_command("show", paid["nonce"], "--json", url=database_url).stdout)
    page = run_payments_command("show", paid["nonce"], url=database_url, width=250).stdout

    events = [each["what"] for each in output["payments"][0]["events"]]
    assert "presented it for" in events[0]
    assert events[1:] == [
        "It was refused (insufficient_funds): no money moved.",
        f"Its outcome was unknown (settlement_pending): the facilitator reported {REFUND}.",
        f"Its refund in {REFUND} was recorded. It was not checked on the chain.",
    ]
    assert [each for each in events if each not in " ".join(page.split())] == []


def test_payment_that_was_not_sent_is_listed_by_its_state(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1, "unused"), old_payment_row(2, "refused")])

    (unused,) = list_payments(url, "--state", "unused")

    assert (unused["state"], unused["standing"], unused["reason"]) == ("unused", None, "status 429")


def test_stored_answer_is_shown_on_request(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    paid = old_payment_row(1, "delivered")
    insert_now(url, payments=[paid], answers=[answer_row(paid, b'{"data": "\x1b[2J"}')])

    usual, whole = (
        run_payments_command("show", paid["nonce"], url=url),
        run_payments_command("show", paid["nonce"], "--body", url=url),
    )

    assert "HTTP 200, 16 bytes" in usual.stdout
    assert '"data"' not in usual.stdout
    assert '{"data": "' in whole.stdout
    assert "\x1b" not in whole.stdout


@pytest.mark.extended
def test_export_has_every_payment_and_documented_columns(database_url: str) -> None:
    paid = [
        old_payment_row(1, "delivered"),
        old_payment_row(2, "settled"),
        old_payment_row(3, "refused", days=9),
    ]
    insert_now(database_url, payments=paid)

    as_csv = run_payments_command("export", "--format", "csv", "--since", "7d", url=database_url)
    as_lines = run_payments_command("export", "--format", "jsonl", url=database_url)
    days = run_payments_command("export", "--daily", "--format", "csv", url=database_url)

    rows = list(csv.DictReader(io.StringIO(as_csv.stdout)))
    assert [list(each) for each in rows] == [list(PAYMENT_COLUMNS)] * 2
    assert {each["nonce"] for each in rows} == {paid[0]["nonce"], paid[1]["nonce"]}
    lines = [json.loads(line) for line in as_lines.stdout.splitlines()]
    assert [list(line) for line in lines] == [list(PAYMENT_COLUMNS)] * 3
    assert sum(int(each["payments"]) for each in csv.DictReader(io.StringIO(days.stdout))) == 3


@pytest.mark.extended
@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\uff1d"])
def test_export_escapes_spreadsheet_formulas(tmp_path: Path, start: str) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1, "refused", reason=f'{start}HYPERLINK("http://x","y")')])

    run_payments_command("export", "--out", str(tmp_path / "out.csv"), url=url)

    written = (tmp_path / "out.csv").read_bytes().decode()
    [exported] = csv.DictReader(io.StringIO(written, newline=""))
    assert exported["reason"].startswith(f"'{start}")


@pytest.mark.parametrize("character", ["\r", "\n", "\t", "\0", "\u202e"])
def test_csv_cell_is_one_line_of_visible_text(character: str) -> None:
    stream = io.StringIO(newline="")

    EntryWriter(stream, "csv", ("reason", "payTo")).write_entry(
        {"reason": f"a{character}=1", "payTo": "0x12"}
    )

    rows = list(csv.reader(io.StringIO(stream.getvalue(), newline="")))
    assert rows == [["reason", "payTo"], ["a\ufffd=1", "0x12"]]


def test_file_appears_only_when_complete(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1), old_payment_row(2, amount="not a number")])
    (tmp_path / "out.jsonl").write_text("as before")

    failed = run_payments_command("export", "--out", str(tmp_path / "out.jsonl"), url=url)

    assert failed.exit_code != 0
    assert (tmp_path / "out.jsonl").read_text() == "as before"
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.extended
def test_refund_is_listed_entered_and_removed(database_url: str) -> None:
    insert_now(
        database_url,
        payments=[
            old_payment_row(1),
            old_payment_row(2),
            old_payment_row(3, days=0.1),
            old_payment_row(4, "delivered"),
            old_payment_row(5, "settling"),
        ],
    )
    owed = json.loads(run_payments_command("refund-list", "--json", url=database_url).stdout)
    name = f"{payment_row(1)['payer']}:{payment_row(1)['nonce']}"

    entered = run_payments_command("refunded", name, "--in", REFUND, "--unchecked", url=database_url)
    again = run_payments_command("refunded", name, "--in", REFUND, url=database_url)
    other = run_payments_command("refunded", name, "--in", "0x" + "ab" * 32, url=database_url)
    left = json.loads(run_payments_command("refund-list", "--json", "--all", url=database_url).stdout)

    assert [list(each) for each in owed["payments"]] == [list(REFUND_COLUMNS)] * 2
    assert owed["totals"][0]["dollars"] == "0.020000"
    assert (entered.exit_code, again.exit_code, other.exit_code) == (0, 0, 1), entered.output
    assert "already" in other.stderr
    assert [each["standing"] for each in left["payments"]] == ["refundable", "redeemable"]
    [refunded] = list_payments(database_url, "--state", "refunded")
    assert (refunded["refundTransaction"], refunded["state"]) == (REFUND.lower(), "settled")


def test_commands_that_change_something_are_in_log_of_console(database_url: str) -> None:
    insert_now(database_url, payments=[old_payment_row(1), old_payment_row(2, days=0.1)])
    names = [f"{payment_row(number)['payer']}:{payment_row(number)['nonce']}" for number in (1, 2)]

    for name in names:
        run_payments_command("refunded", name, "--in", REFUND, "--unchecked", url=database_url)
    run_payments_command("webhooks", "resend", "--unsent", url=database_url)
    run_payments_command("reconcile", url=database_url)

    log = [
        (each.action, each.client, each.subject, each.result) for each in reversed(read_actions(database_url))
    ]
    assert log[0] == ("refund", "command line", names[0], f"recorded in {REFUND} (unchecked)")
    assert log[1][:3] == ("refund", "command line", names[1])
    assert "can be redeemed until" in log[1][3]
    assert log[2:] == [("resend", "command line", None, "0 events will be sent within seconds")]


def test_reconciliation_is_in_log_of_console(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1, "settling", resubmission=None)])

    for arguments in (("--dry-run",), ()):
        run_payments_command("reconcile", *arguments, url=url)

    [entry] = read_actions(url)
    assert (entry.action, entry.client) == ("reconcile", "command line")
    assert entry.result == "1 open payments looked up, 0 resolved"


def test_refund_list_says_it_moves_no_money(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1)])

    result = run_payments_command("refund-list", url=url)

    assert "Centgate moves no money" in result.stdout
    assert "Payments: 1, 0.010000 dollars in all" in result.stdout
    assert payment_row(1)["payer"] in result.stdout


@pytest.mark.parametrize("width", [60, 90])
def test_refund_is_recorded_by_transaction_of_table(tmp_path: Path, width: int) -> None:
    transaction = "0x" + "1d" * 30 + "beef"
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1, transaction=transaction)])
    table = run_payments_command("refund-list", url=url, width=width).stdout
    shown = next(word for word in table.split() if word.endswith("…beef"))

    result = run_payments_command("refunded", shown, "--in", REFUND, "--unchecked", url=url)

    assert "centgate payments refunded TRANSACTION --in HASH" in " ".join(table.split())
    assert result.exit_code == 0, result.stdout


@pytest.mark.extended
@pytest.mark.parametrize(
    ("payment", "reason"),
    [
        (old_payment_row(1, "settled", 0.1), "could get both"),
        (old_payment_row(1, "delivered"), "the payment is delivered"),
        (old_payment_row(1, "settling"), "the payment is open"),
        (old_payment_row(1, "refused"), "the payment is refused"),
    ],
    ids=["redeemable", "delivered", "open", "refused"],
)
def test_only_refundable_payment_can_be_entered(tmp_path: Path, payment: Any, reason: str) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[payment])

    result = run_payments_command("refunded", payment["nonce"], "--in", REFUND, url=url)

    assert result.exit_code == 1
    assert reason in result.stderr
    assert list_payments(url)[0]["refundTransaction"] is None


READING = [
    ["list"],
    ["list", "--json"],
    ["show", REFUND],
    ["summary"],
    ["summary", "--json"],
    ["totals"],
    ["refund-list"],
    ["reconcile"],
    ["reconcile", "--dry-run"],
    ["webhooks", "list"],
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_missing_journal_is_reported_and_not_created(tmp_path: Path, arguments: list[str]) -> None:
    result = run_payments_command(*arguments, url=f"sqlite:///{tmp_path / 'none.db'}")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no journal yet" in result.stderr
    assert str(tmp_path / "none.db") in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_export_of_missing_journal_keeps_earlier_file(tmp_path: Path) -> None:
    file = tmp_path / "nightly.csv"
    file.write_text("yesterday's")

    result = run_payments_command("export", "--out", str(file), url=f"sqlite:///{tmp_path / 'none.db'}")

    assert (result.exit_code, file.read_text()) == (1, "yesterday's")
    assert "nothing was written" in result.stderr


@pytest.mark.parametrize("option", ["--since", "--until", "--payer"])
def test_empty_filter_is_refused(tmp_path: Path, option: str) -> None:
    """An unset variable of a script must not stand for everything."""
    result = run_payments_command("list", option, "", url=f"sqlite:///{tmp_path / 'none.db'}")

    assert result.exit_code == 2, result.output


def test_empty_database_on_server_stays_empty(postgres: Postgres, postgres_url: str) -> None:
    result = run_payments_command("list", url=postgres_url)

    assert result.exit_code == 1
    assert "has no Centgate tables" in result.stderr
    assert postgres.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", postgres_url) == "0"


@pytest.mark.parametrize(
    ("version", "advice"),
    [("0001", "run `centgate migrate`"), ("0999", "a newer Centgate")],
)
def test_other_schema_is_reported_in_one_line(tmp_path: Path, version: str, advice: str) -> None:
    import sqlite3

    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url)
    connection = sqlite3.connect(tmp_path / "journal.db")
    connection.execute("UPDATE alembic_version SET version_num = ?", (version,))
    connection.commit()
    connection.close()

    result = run_payments_command("list", url=url)

    assert result.exit_code == 1
    assert advice in result.stderr
    assert HEAD_REVISION in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["list", "--state", "paid"], 2, "--state is one of settling"),
        (["list", "--since", "soon"], 2, "is not a time"),
        (["list", "--after", "x"], 2, "--after must be"),
        (["list", "--after", "WzEsMl0"], 2, "--after must be"),
        (["export"], 2, "--format csv"),
        (["audit", "--network", "eip155:5"], 2, "no payment was accepted on eip155:5"),
        (["reconcile", "--rpc", "http://one", "--rpc", "http://two"], 2, "two nodes of eip155:8453"),
        (["export", "--out", "no/such/folder/x.csv"], 1, "cannot be written"),
        (["refunded", "0x12", "--in", "0x12"], 2, "64 hexadecimal"),
        (["refunded", "0x12", "--in", "0x" + "0" * 64], 2, "a hash of zeros"),
        (["refunded", "0x12", "--in", "0x" + "0" * 64, "--unchecked"], 2, "a hash of zeros"),
        (["refunded", "0x12", "--in", REFUND], 1, "no payment found"),
        (["reconcile", "--rpc", "ftp://x"], 2, "a node's URL"),
        (["show", "0x12"], 1, "no payment found"),
        (["list", "--service", "token-rsk"], 0, "no service is called 'token-rsk'"),
        (["totals", "--service", "token-rsk"], 0, "no service is called 'token-rsk'"),
    ],
    ids=lambda value: " ".join(map(str, cast(list[Any], value))) if isinstance(value, list) else None,
)
def test_invalid_arguments_are_reported_in_one_line(
    tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url)

    result = run_payments_command(*arguments, url=url)

    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    "url", ["sqlite:///{folder}", "sqlite:///{folder}/text", "postgresql://nobody:secret@127.0.0.1:9/none"]
)
def test_unreadable_database_is_reported(tmp_path: Path, url: str) -> None:
    (tmp_path / "text").write_text("no database " * 100)

    result = run_payments_command("list", url=url.format(folder=tmp_path))

    assert result.exit_code == 1
    assert "the payment journal cannot be read" in result.stderr
    assert "secret" not in result.output


def test_export_does_not_overwrite_journal(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1)])

    result = run_payments_command("export", "--format", "csv", "--out", str(tmp_path / "journal.db"), url=url)

    assert result.exit_code == 2
    assert len(list_payments(url)) == 1


@pytest.mark.parametrize(
    ("command", "columns"),
    [
        ("list", PAYMENT_COLUMNS),
        ("export", PAYMENT_COLUMNS),
        ("summary", DAILY_COLUMNS),
        ("refund-list", REFUND_COLUMNS),
    ],
)
def test_help_names_columns_and_exit_codes(command: str, columns: dict[str, str]) -> None:
    result = run_payments_command(command, "--help", url="sqlite:///none.db", width=200)

    words = result.stdout.split()
    assert [column for column in columns if column not in words] == []
    assert "Exit codes:" in result.stdout


@pytest.mark.extended
def test_broken_pipe_stops_export(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(each) for each in range(2000)])
    command = [sys.executable, "-m", "centgate", "payments", "export", "--format", "csv"]
    process = subprocess.Popen(
        command,
        env={**os.environ, "CENTGATE_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stderr

    first = process.stdout.readline()
    process.stdout.close()
    said_at_the_end = process.stderr.read()

    assert first.startswith(b"time,")
    assert process.wait(60) == 0
    assert said_at_the_end == b""
    process.stderr.close()


@pytest.mark.extended
def test_list_imports_no_service_and_no_http_client(tmp_path: Path) -> None:
    """They would take most of its time."""
    url = f"sqlite:///{tmp_path / 'journal.db'}"
    insert_now(url, payments=[old_payment_row(1)])

    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "centgate", "payments", "list"],
        env={**os.environ, "CENTGATE_DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "centgate.payments.journal.read_model" in imported
    assert not imported & {"centgate.services", "centgate.service", "centgate.catalog", "aiohttp", "lxml"}
