"""Signed receipts in the client: verified, attributed to their signer, and stored."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from buyer import decode_header, encode_header
from buyers_shell import Shell, private_key_of
from facilitators import build_settings, open_stub_facilitator
from hostile import SLUG, HostileApi, PlannedResponse, ReceivedRequest, answer_body, payment_response
from shopping import OpenClient
from signed_receipts import OTHER, SIGNER

from centgate.client.ledger import Ledger
from centgate.server import run_in_thread
from centgate.signing.receipts.verify import verify_receipt

KEY = "5e" * 32
QUESTION = {"url": "https://wallet-ethereum.net/unlock"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """URL of an API that signs."""
    with (
        open_stub_facilitator() as stub,
        run_in_thread(build_settings(tmp_path_factory.mktemp("api"), stub.url, receipt_key=KEY)) as url,
    ):
        yield url


async def test_answer_has_signer_and_proof(shop: OpenClient, url: str) -> None:
    answer = await shop(url).call("phishing-check", QUESTION)

    assert answer.receipt
    assert (answer.receipt.signer, answer.notes) == (SIGNER.address, ())
    assert json.loads(answer.body) == answer.envelope
    receipt = verify_receipt(decode_header(answer.receipt.header), body=answer.body, signer=SIGNER.address)
    assert receipt.is_valid


async def test_ledger_keeps_signed_receipt(shop: OpenClient, url: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    answer = await shop(url, ledger=Ledger(ledger)).call("phishing-check", QUESTION)

    records = Ledger(ledger).records()

    assert answer.receipt
    assert [record.receipt for record in records] == [None, answer.receipt.header]


def sign_response(request: ReceivedRequest, body: Any, **changes: Any) -> str:
    """Return PAYMENT-RESPONSE with a receipt for a body; `changes` replace its other members."""
    settled = decode_header(payment_response(request))
    resource = decode_header(request.payment or "")["resource"]["url"]
    signed = SIGNER.sign_receipt(settled, resource, json.dumps(body).encode(), now=1_790_000_000)
    return encode_header({**settled, **changes, "extensions": signed})


OTHERS = OTHER.sign_receipt(
    {"network": "eip155:84532", "payer": "0x", "transaction": "0x"}, "https://x.example", b"", now=1
)


@pytest.mark.parametrize(
    ("body", "extensions", "reason"),
    [
        ({"data": {"status": "allowed"}}, {}, "the body is not the one that was signed"),
        (None, {"offer-receipt": None}, "the receipt is unreadable: extensions"),
        (None, OTHERS, "the settlement around the receipt has a different payer"),
    ],
    ids=["another body", "no receipt", "another's receipt"],
)
async def test_invalid_receipt_is_noted_beside_answer(
    shop: OpenClient, hostile: HostileApi, body: Any, extensions: dict[str, Any], reason: str
) -> None:
    def deliver(request: ReceivedRequest) -> PlannedResponse:
        settlement = decode_header(sign_response(request, body or answer_body()))
        settlement["extensions"] |= extensions
        return PlannedResponse(
            200, answer_body(), {"PAYMENT-RESPONSE": encode_header(settlement)}, accepts_payment=True
        )

    hostile.paid = [deliver]

    answer = await shop(hostile.url).call(SLUG, {})

    assert answer.receipt
    assert (answer.receipt.signer, answer.money) == (None, "moved")
    (note,) = answer.notes
    assert note.startswith(f"the API's signed receipt proves nothing: {reason}")


async def test_receipt_for_another_service_is_noted(shop: OpenClient, hostile: HostileApi) -> None:
    def deliver(request: ReceivedRequest) -> PlannedResponse:
        settled = decode_header(payment_response(request))
        body = json.dumps(answer_body()).encode()
        signed = SIGNER.sign_receipt(settled, f"{hostile.url}/services/other", body, now=1)
        return PlannedResponse(
            200,
            answer_body(),
            {"PAYMENT-RESPONSE": encode_header({**settled, "extensions": signed})},
            accepts_payment=True,
        )

    hostile.paid = [deliver]

    answer = await shop(hostile.url).call(SLUG, {})

    assert answer.notes == ("the API's signed receipt proves nothing: the receipt is for another service",)


@pytest.mark.extended
def test_stored_receipt_can_be_verified_by_command(url: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"CENTGATE_API_URL": url, "CENTGATE_WALLET_KEY": private_key_of()})
    result = shell("call", "phishing-check", "url=https://wallet-ethereum.net/unlock")
    (receipt,) = json.loads(shell("wallet", "receipts", "--json").stdout)

    verified = shell("receipt", "verify", "-", f"--signer={SIGNER.address}", stdin=receipt["paymentResponse"])

    assert (result.returncode, verified.returncode) == (0, 0), verified.stderr
    assert SIGNER.address in result.stdout
    assert SIGNER.address in verified.stdout
