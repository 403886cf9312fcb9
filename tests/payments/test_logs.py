"""Log lines of paid requests: one per request, without its content or payment data."""

from __future__ import annotations

import json

import httpx
import pytest
from buyer import Buyer, encode_header, pay, sign_payload, with_identifier
from facilitators import build_settings, open_stub_facilitator, refuse_with, reply_with
from served_api import run_api_process

TOKEN = "bearer-of-the-operator"
KEY = "a-key-that-is-not-logged"
BROKEN = "not!a!payment"
INVALID = {"url": 1, "https://user:pass@secret.test": 1}


@pytest.fixture(scope="module")
def log_and_secrets(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, set[str]]:
    """The log of paid calls of every outcome, and all that it must not contain."""
    folder, buyer = tmp_path_factory.mktemp("log"), Buyer()
    with open_stub_facilitator() as facilitator:
        facilitator.next += [facilitator.settle, refuse_with("insufficient_funds"), reply_with(500, "down")]
        settings = build_settings(folder, facilitator.url)
        with (
            run_api_process(
                settings, log=folder / "stderr", LOG_LEVEL="debug", FACILITATOR_TOKEN=TOKEN
            ) as process,
            httpx.Client(base_url=process.url, timeout=30) as client,
        ):
            payloads = [sign_payload(client, buyer) for _ in range(6)]
            payloads[4]["payload"]["signature"] = "0x" + "5e" * 65
            headers = [encode_header(payload) for payload in payloads] + [
                with_identifier(payloads[3], KEY),
                BROKEN,
            ]
            statuses = [pay(client, header).status_code for header in headers]
            statuses += [pay(client, headers[5], body=INVALID).status_code]
    assert set(statuses) == {200, 400, 402, 502}
    inner = [payload["payload"] for payload in payloads]
    signed = {each["signature"][2:40] for each in inner}
    nonces = {each["authorization"]["nonce"][2:] for each in inner}
    words = {"wallet-ethereum", "secret.test", TOKEN, KEY, BROKEN, "down"}
    return (folder / "stderr").read_text(), words | signed | nonces | {header[:200] for header in headers}


@pytest.mark.extended
def test_log_contains_no_signature_nonce_key_or_body(log_and_secrets: tuple[str, set[str]]) -> None:
    written, unspeakable = log_and_secrets

    assert [secret for secret in unspeakable if secret.lower() in written.lower()] == []


@pytest.mark.extended
def test_each_request_has_one_line_with_its_id(log_and_secrets: tuple[str, set[str]]) -> None:
    lines = [json.loads(line) for line in log_and_secrets[0].splitlines()]

    requests = [line for line in lines if line["event"] == "a request was handled"]
    assert len(requests) == 6 + 9
    assert len({line["request_id"] for line in requests}) == len(requests)


def test_failed_payment_is_logged_with_its_code(log_and_secrets: tuple[str, set[str]]) -> None:
    lines = [json.loads(line) for line in log_and_secrets[0].splitlines()]

    codes = {(line.get("code"), line.get("payment")) for line in lines if line.get("status") == 402}
    assert ("payment_required", "refused") in codes
    assert ("payment_required", "unused") in codes
