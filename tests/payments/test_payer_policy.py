"""Payer policy: payers that the operator allows or denies are refused before settlement, never after."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import (
    QUESTION,
    Buyer,
    decode_header,
    encode_header,
    pay,
    payment_note,
    sign_payload,
    sign_payment,
    with_identifier,
)
from facilitators import StubFacilitator, build_settings, refuse_with, reply_with
from seeded_journals import record_open_payment, record_payment
from served_api import ServedApi, serve_api

from centgate.client import Centgate, Wallet
from centgate.client.errors import PaymentRefused
from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.payments.facilitator.settle_reasons import SETTLE_REASONS
from centgate.payments.payer_policy import PAYER_REFUSED_REASON, PayerFile, PayerPolicy
from centgate.payments.terms import build_terms
from centgate.runtime import validate_startup
from centgate.services.phishing_check import phishing_check
from centgate.settings import Settings

FIRST, SECOND = Buyer(0), Buyer(1)
HASH = "0x" + "ab" * 32
UNUSED = {"state": "unused", "charged": False, "retry": "none"}


def test_denied_payer_is_refused_before_settlement(tmp_path: Path) -> None:
    with serve_api(tmp_path, payers_denied=FIRST.address) as served_api:
        response = pay(served_api.client, sign_payment(served_api.client, FIRST))
        other = pay(served_api.client, sign_payment(served_api.client, SECOND))

        assert (response.status_code, response.json()["error"]["code"]) == (402, "payment_required")
        assert payment_note(response) == UNUSED
        assert response.json()["error"]["details"]["reason"] == PAYER_REFUSED_REASON
        assert decode_header(response.headers["PAYMENT-REQUIRED"])["error"] == PAYER_REFUSED_REASON
        assert FIRST.address.lower() in response.json()["error"]["message"]
        assert other.status_code == 200
        assert set(served_api.facilitator.moved) == {(SECOND.address.lower(), _nonce(served_api))}


def _nonce(served_api: ServedApi) -> str:
    return served_api.facilitator.body["paymentPayload"]["payload"]["authorization"]["nonce"]


def test_denial_reason_is_x402s_and_moves_no_money() -> None:
    assert SETTLE_REASONS[PAYER_REFUSED_REASON].certainty == "payload"


def test_only_allowed_and_not_denied_payers_are_served(tmp_path: Path) -> None:
    lists = {"payers_allowed": (FIRST.address, SECOND.address), "payers_denied": (SECOND.address,)}
    with serve_api(tmp_path, **lists) as served_api:
        statuses = [
            pay(served_api.client, sign_payment(served_api.client, Buyer(number))).status_code
            for number in range(3)
        ]

    assert statuses == [200, 402, 402]


@pytest.mark.extended
def test_unpaid_request_gets_usual_terms(tmp_path: Path) -> None:
    with serve_api(tmp_path, payers_allowed=FIRST.address) as served_api:
        response = served_api.client.post("/services/phishing-check", json=QUESTION)

    assert response.status_code == 402
    assert "reason" not in response.json()["error"]["details"]


@pytest.mark.extended
def test_foreign_signature_does_not_reveal_denied_payer(tmp_path: Path) -> None:
    with serve_api(tmp_path, payers_denied=FIRST.address) as served_api:
        payload = sign_payload(served_api.client, SECOND)
        payload["payload"]["authorization"]["from"] = FIRST.address
        response = pay(served_api.client, encode_header(payload))

    assert response.json()["error"]["details"]["reason"] == "invalid_exact_evm_payload_signature"


@pytest.mark.parametrize(("signer", "retry"), [(FIRST, "none"), (SECOND, "new_payment")])
def test_expired_payment_of_denied_payer_has_no_retry(tmp_path: Path, signer: Buyer, retry: str) -> None:
    with serve_api(tmp_path, payers_denied=FIRST.address) as served_api:
        changes = {"from": FIRST.address, "validBefore": str(int(time.time()) - 5)}
        response = pay(served_api.client, encode_header(sign_payload(served_api.client, signer, **changes)))

    assert response.json()["error"]["message"] == "the payment has expired"
    assert payment_note(response) == UNUSED | {"retry": retry}


@pytest.mark.extended
async def test_earlier_payment_of_denied_payer_is_redeemed_and_replayed(tmp_path: Path) -> None:
    with serve_api(tmp_path, payers_denied=FIRST.address) as served_api:
        settings = build_settings(tmp_path, served_api.facilitator.url)
        terms = build_terms(phishing_check, settings)
        payment = encode_header(FIRST.payload(terms.header, now=int(time.time())))
        await record_payment(settings, payment, int(time.time()), transaction=HASH)

        first, again = (pay(served_api.client, payment) for _ in range(2))

        assert (first.status_code, again.content) == (200, first.content)
        assert served_api.facilitator.settle_calls == 0


@pytest.mark.extended
async def test_open_payment_of_denied_payer_is_resolved(
    tmp_path: Path,
) -> None:
    with serve_api(tmp_path, payers_denied=FIRST.address) as served_api:
        settings = build_settings(tmp_path, served_api.facilitator.url)
        payload = await record_open_payment(settings, FIRST, ago=20)

        response = pay(served_api.client, encode_header(payload))

        assert response.status_code == 200, response.text


def _restart(folder: Path, facilitator: StubFacilitator, **changes: Any) -> Any:
    from centgate.server import run_in_thread

    return run_in_thread(build_settings(folder, facilitator.url, **changes))


@pytest.mark.extended
@pytest.mark.parametrize(
    "reply", [refuse_with("insufficient_funds"), reply_with(429, {})], ids=["refused", "unsent"]
)
def test_unsent_payment_of_denied_payer_is_not_settled(
    tmp_path: Path, facilitator: StubFacilitator, reply: Any
) -> None:
    facilitator.usually = reply
    with _restart(tmp_path, facilitator) as url, httpx.Client(base_url=url, timeout=30) as client:
        payment = sign_payment(client, FIRST)
        first = pay(client, payment)
    facilitator.usually, asked = facilitator.settle, facilitator.settle_calls
    denied = {"payers_denied": FIRST.address}
    with _restart(tmp_path, facilitator, **denied) as url, httpx.Client(base_url=url, timeout=30) as client:
        again = pay(client, payment)

    assert first.status_code >= 400
    assert again.status_code == 402, again.text
    note = payment_note(again)
    assert (note["charged"], note["retry"]) == (False, "none")
    assert (facilitator.settle_calls, sum(facilitator.moved.values())) == (asked, 0)


@pytest.mark.extended
def test_key_fetches_answer_of_later_denied_payer(tmp_path: Path, facilitator: StubFacilitator) -> None:
    name = "a-name-of-sixteen-or-more"
    with _restart(tmp_path, facilitator) as url, httpx.Client(base_url=url, timeout=30) as client:
        first = pay(client, with_identifier(sign_payload(client, FIRST), name))
    denied = {"payers_denied": FIRST.address}
    with _restart(tmp_path, facilitator, **denied) as url, httpx.Client(base_url=url, timeout=30) as client:
        again = pay(client, with_identifier(sign_payload(client, FIRST), name))
        other = pay(client, with_identifier(sign_payload(client, FIRST), name + "-two"))

    assert (first.status_code, again.content) == (200, first.content)
    assert other.status_code == 402
    assert facilitator.settle_calls == 1


@pytest.mark.extended
def test_client_stops_and_reports_no_charge(tmp_path: Path) -> None:
    wallet = Wallet.from_key(BUYER_ACCOUNTS[0].private_key)
    with (
        serve_api(tmp_path, payers_denied=FIRST.address) as served_api,
        Centgate(str(served_api.client.base_url), wallet=wallet) as client,
    ):
        with pytest.raises(PaymentRefused) as refused:
            client.call("phishing-check", QUESTION)
        assert (refused.value.money, refused.value.reason) == ("reported_not_moved", PAYER_REFUSED_REASON)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.extended
def test_file_is_reread_while_server_runs(tmp_path: Path) -> None:
    denied = tmp_path / "denied.txt"
    denied.write_text("# nobody yet\n")
    with serve_api(tmp_path, payers_denied_file=denied) as served_api:

        def status() -> int:
            return pay(served_api.client, sign_payment(served_api.client, FIRST)).status_code

        assert status() == 200
        denied.write_text(f"{FIRST.address.lower()}  # chargebacks\n")
        _wait_until(lambda: status() == 402)
        denied.write_text("0x12\n")
        time.sleep(2.5)
        assert status() == 402
        denied.unlink()
        time.sleep(2.5)
        assert status() == 402
        (tmp_path / "new").write_text("")
        (tmp_path / "new").rename(denied)
        _wait_until(lambda: status() == 200)


def test_changed_file_is_read_and_invalid_one_ignored(tmp_path: Path) -> None:
    path = tmp_path / "payers"
    path.write_text(f"\ufeff{FIRST.address}\r\n\r\n{SECOND.address.lower()} # second\r\n", encoding="utf-8")
    file = PayerFile(path, "payers_denied_file")
    both = frozenset(bytes.fromhex(each.address[2:]) for each in (FIRST, SECOND))
    assert file.payers == both

    for wrong in ("0x12\n", f"{FIRST.address[:-1]}{'0' if FIRST.address[-1] != '0' else '1'}\n", "\xff"):
        path.write_bytes(wrong.encode("latin-1"))
        file.reload_if_changed()
        assert file.payers == both
    path.unlink()
    file.reload_if_changed()
    assert file.payers == both
    path.write_text(SECOND.address)
    file.reload_if_changed()
    assert file.payers == {bytes.fromhex(SECOND.address[2:])}


def test_replaced_symlink_is_followed(tmp_path: Path) -> None:
    for number, buyer in enumerate((FIRST, SECOND)):
        (tmp_path / str(number)).write_text(buyer.address)
    link = tmp_path / "payers"
    link.symlink_to(tmp_path / "0")
    file = PayerFile(link, "payers_allowed_file")
    (tmp_path / "next").symlink_to(tmp_path / "1")
    os.replace(tmp_path / "next", link)  # noqa: PTH105 - as a mount replaces it

    file.reload_if_changed()

    assert file.payers == {bytes.fromhex(SECOND.address[2:])}


def test_empty_allow_file_allows_nobody(tmp_path: Path) -> None:
    (tmp_path / "allowed").write_text("")

    policy = PayerPolicy(Settings(payers_allowed_file=tmp_path / "allowed"))

    assert policy.find_refusal(FIRST.address) is not None


def test_setting_and_file_are_combined(tmp_path: Path) -> None:
    (tmp_path / "allowed").write_text(FIRST.address)
    policy = PayerPolicy(Settings(payers_allowed=(SECOND.address,), payers_allowed_file=tmp_path / "allowed"))

    refused = [policy.find_refusal(Buyer(number).address) is not None for number in range(3)]

    assert refused == [False, False, True]


def test_settings_come_from_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "denied").write_text(SECOND.address)
    monkeypatch.setenv("CENTGATE_PAYERS_ALLOWED", f"{FIRST.address}, {SECOND.address}")
    monkeypatch.setenv("CENTGATE_PAYERS_DENIED_FILE", str(tmp_path / "denied"))

    settings = Settings()

    assert settings.payers_denied_file == tmp_path / "denied"
    policy = PayerPolicy(settings)
    assert [policy.find_refusal(each.address) is not None for each in (FIRST, SECOND)] == [False, True]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"payers_denied": "0x12"}, "is not an address"),
        ({"payers_allowed": ","}, "names no address"),
        ({"payers_denied": " "}, "names no address"),
        ({"payers_allowed": FIRST.address[:-1] + "Z"}, "is not an address"),
        ({"payers_denied_file": "absent"}, "CENTGATE_PAYERS_DENIED_FILE: cannot read absent"),
        ({"payers_allowed_file": "wrong"}, "CENTGATE_PAYERS_ALLOWED_FILE: wrong, line 2: '0x34' is not"),
    ],
)
def test_invalid_list_is_refused_at_start(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    (tmp_path / "wrong").write_text("# first\n0x34\n")  # the working directory is this folder

    with pytest.raises(ValueError, match=reason):
        validate_startup(Settings(**changes))


async def test_files_are_watched_until_shutdown(tmp_path: Path) -> None:
    (tmp_path / "denied").write_text("")
    before = asyncio.all_tasks()

    async with PayerPolicy(Settings(payers_denied_file=tmp_path / "denied")).run_in_background():
        assert len(asyncio.all_tasks() - before) == 1

    assert asyncio.all_tasks() == before
