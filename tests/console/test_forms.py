"""Forms of the console: only its own forms are accepted, and each change is logged."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest
from console_session import FINDINGS, Operator, ServedConsole, serve_console
from journal_rows import insert_rows, payment_row

from centgate.settings import Settings

DAY = 86_400.0
REFUND = "0x" + "f0" * 32
FORMS = (
    *("/logout", "/refresh", "/reconcile", "/doctor", "/payments/{}/refund"),
    *("/webhooks/resend", "/webhooks/resend-unsent", "/webhooks/enable", "/webhooks/ping"),
)


def refundable_row() -> dict[str, object]:
    """Return the row of a payment that was settled three days ago and never delivered."""
    return payment_row(1, "settled", created_at=time.time() - 3 * DAY)


def insert_payments(settings: Settings, *rows: dict[str, object]) -> None:
    """Insert payments into a journal from a test that is not asynchronous."""
    asyncio.run(insert_rows(settings.database_url, payments=rows))


def refund_fields(row: dict[str, object], **changes: str) -> dict[str, str]:
    """Return the fields of the form that enters its refund."""
    network, asset = str(row["network"]), str(row["asset"])
    return {"network": network, "asset": asset, "transaction": REFUND, "unchecked": "yes", **changes}


@pytest.fixture
def owed_row(console_settings: Settings) -> dict[str, object]:
    row = refundable_row()
    insert_payments(console_settings, row)
    return row


def test_forms_of_other_pages_change_nothing(owed_row: dict[str, object], console: ServedConsole) -> None:
    operator, other = console.log_in(), console.log_in()
    path = f"/payments/{owed_row['payer']}:{owed_row['nonce']}"
    own, foreign = operator.form_token(), other.form_token()
    fields = refund_fields(owed_row)

    refused = [
        operator.http.post(form.format(f"{owed_row['payer']}:{owed_row['nonce']}"), data={**fields, **token})
        for form in FORMS
        for token in ({}, {"token": ""}, {"token": foreign}, {"token": own + "x"})
    ]
    elsewhere = [
        operator.http.post(f"{path}/refund", data={**fields, "token": own}, headers={"Origin": origin})
        for origin in ("https://evil.example", "null", "http://[", f"{console.url}0")
    ]
    unknown_type = operator.http.post(f"{path}/refund", json={**fields, "token": own})

    assert {each.status_code for each in (*refused, *elsewhere, unknown_type)} == {403}
    assert "refundable" in operator.get(path).text
    assert console.console.report is None
    assert "refund" not in operator.get("/actions").text.partition("<tbody>")[2]


def test_long_form_is_refused(operator: Operator) -> None:
    assert operator.send("/refresh", path="/" * 20_000).status_code == 403


def test_refund_is_recorded_and_logged(owed_row: dict[str, object], operator: Operator) -> None:
    reference = f"{owed_row['payer']}:{owed_row['nonce']}"

    answer = operator.send(f"/payments/{reference}/refund", **refund_fields(owed_row))
    html = operator.get(answer.headers["location"]).text
    log = operator.get("/actions").text

    assert (answer.status_code, answer.headers["location"]) == (303, f"/payments/{reference}")
    assert f"The refund in {REFUND} was recorded." in html
    assert "It was not checked on the chain." in html
    assert "Enter a refund" not in html
    assert f"recorded in {REFUND} (unchecked)" in log
    assert reference in log
    assert "127.0.0.1" in log


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"transaction": "0x12"}, 409, "64 hexadecimal characters"),
        ({"transaction": "0x" + "0" * 64}, 409, "a hash of zeros"),
        ({"unchecked": ""}, 409, "Tick the box to record it without this check"),
        ({"asset": "0x" + "00" * 20}, 200, "Enter a refund"),
    ],
)
def test_doubtful_refund_is_not_recorded(
    owed_row: dict[str, object], operator: Operator, changes: dict[str, str], status: int, message: str
) -> None:
    path = f"/payments/{owed_row['payer']}:{owed_row['nonce']}"

    answer = operator.send(f"{path}/refund", **refund_fields(owed_row, **changes))

    assert answer.status_code == status
    assert message in answer.text
    assert "refundable" in operator.get(path).text


@pytest.mark.extended
def test_redeemable_payment_is_not_refunded(console_settings: Settings, console: ServedConsole) -> None:
    row = payment_row(1, "settled", created_at=time.time() - 60)
    insert_payments(console_settings, row)
    path = f"/payments/{row['payer']}:{row['nonce']}"
    operator = console.log_in()

    answer = operator.send(f"{path}/refund", **refund_fields(row))

    assert "its answer can be redeemed until" in answer.text
    assert "redeemable" in operator.get(path).text


def test_refund_that_is_not_due_is_explained(console_settings: Settings, operator: Operator) -> None:
    row = payment_row(1, created_at=time.time() - 60)
    insert_payments(console_settings, row)

    answer = operator.send(f"/payments/{row['payer']}:{row['nonce']}/refund", **refund_fields(row))

    assert "no refund is due: the payment is delivered.</p>" in answer.text


def test_open_payments_are_reconciled(settings: Settings) -> None:
    row = payment_row(
        1, "settling", created_at=time.time() - 600, network=settings.network, asset=settings.token.address
    )
    insert_payments(settings, row)
    with serve_console(settings) as served:
        operator = served.log_in()

        answer = operator.send("/reconcile")
        html = operator.get(answer.headers["location"]).text

    assert answer.headers["location"] == "/payments?state=open"
    assert re.search(r"1 open payments looked up, [01] resolved", html)


def test_checks_are_run_and_shown(operator: Operator) -> None:
    before = operator.get("/doctor").text
    after = operator.get(operator.send("/doctor").headers["location"]).text

    assert "No checks were run" in before
    assert all(each.name in after for each in FINDINGS)
    assert "&lt;b&gt;no&lt;/b&gt; checksum" in after
    assert "2 checks, 1 failed" in operator.get("/actions").text


def test_refresh_is_switched_off_and_redirects_only_inside(operator: Operator) -> None:
    assert operator.get("/").headers["Refresh"] == "30;url=/?refresh=1"

    answers = [operator.send("/refresh", refreshes="no", path=each) for each in ("//evil", "https://evil/")]

    assert {each.headers["location"] for each in answers} == {"/"}
    assert "Refresh" not in operator.get("/").headers
    operator.send("/refresh", refreshes="yes", path="/")
    assert "Refresh" in operator.get("/").headers


def test_unreadable_journal_is_reported(console: ServedConsole) -> None:
    operator = console.log_in()
    Path(console.console.settings.database_url.removeprefix("sqlite:///")).write_bytes(b"nothing" * 1000)

    answer = operator.get("/")

    assert answer.status_code == 503
    assert "The journal cannot be read" in answer.text
