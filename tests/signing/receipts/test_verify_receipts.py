"""`centgate receipt verify`: signer, settlement, body and offer of a receipt, and invalid files."""

from __future__ import annotations

import json
import socket
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from signed_receipts import (
    BODY,
    OFFER,
    OTHER,
    SIGNER,
    TAMPERED,
    TERMS,
    URL,
    signed_payment_required,
    signed_settle_response,
    with_value_at,
)
from typer.testing import CliRunner, Result

from centgate.cli.main import app
from centgate.signing.receipts.verify import verify_receipt

Verify = Callable[..., Result]


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Verify:
    """Return the command without a network: `verify(receipt, *options, body=..., offer=...)`."""

    def refuse(*_: object) -> None:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)

    def run(receipt: bytes | str, *options: str, **files: bytes | str) -> Result:
        arguments = [f"--{name}={write_file(tmp_path / name, content)}" for name, content in files.items()]
        file = write_file(tmp_path / "receipt", receipt)
        return CliRunner().invoke(app, ["receipt", "verify", file, *arguments, *options])

    return run


def write_file(file: Path, content: bytes | str) -> str:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


def encode_header(message: Any) -> str:
    return b64encode(json.dumps(message).encode()).decode()


def check_states(result: Result) -> dict[str, str]:
    """Return the state of each check, from `--json`."""
    return {check["name"]: check["state"] for check in json.loads(result.stdout)["checks"]}


def test_signer_and_settlement_are_printed(verify: Verify) -> None:
    result = verify(
        encode_header(signed_settle_response()),
        f"--signer={SIGNER.address}",
        body=BODY,
        offer=encode_header(signed_payment_required()),
    )

    assert result.exit_code == 0, result.output
    for told in (
        SIGNER.address,
        URL,
        TERMS["network"],
        signed_settle_response()["payer"],
        signed_settle_response()["transaction"],
    ):
        assert told in result.stdout
    assert "2026-09-21 14:13:20 UTC" in result.stdout
    assert result.stdout.count("ok  ") == 6
    assert "not checked" not in result.stdout


def test_json_output_has_receipt_and_checks(verify: Verify) -> None:
    result = verify(encode_header(signed_settle_response()), "--json", body=BODY)

    output = json.loads(result.stdout)
    assert (output["ok"], output["signer"]) == (True, SIGNER.address)
    assert (
        output["receipt"]
        == signed_settle_response()["extensions"]["offer-receipt"]["info"]["receipt"]["payload"]
    )
    assert check_states(result) == {
        "receipt": "ok",
        "settlement": "ok",
        "answer": "ok",
        "body": "ok",
        "offer": "not checked",
        "signer": "not checked",
    }


@pytest.mark.parametrize(
    "form",
    [
        json.dumps(signed_settle_response()),
        encode_header(signed_settle_response()).rstrip("="),
        encode_header(signed_settle_response()) + "\r\n",
        f"HTTP/1.1 200 OK\r\nvary: Origin\r\n"
        f"payment-response: {encode_header(signed_settle_response())}\r\nx: 1\r\n",
        f"PAYMENT-RESPONSE:{encode_header(signed_settle_response())}",
        "\ufeff" + json.dumps(signed_settle_response(), indent=2),
    ],
    ids=["JSON", "no padding", "line's end", "all headers", "one header", "byte order mark"],
)
def test_receipt_is_read_in_saved_form(verify: Verify, form: str) -> None:
    result = verify(form, body=BODY)

    assert result.exit_code == 0, result.output


def test_receipt_is_read_from_standard_input() -> None:
    result = CliRunner().invoke(
        app, ["receipt", "verify", "-"], input=encode_header(signed_settle_response())
    )

    assert result.exit_code == 0, result.output


@pytest.mark.extended
@pytest.mark.parametrize("tampered", TAMPERED.values(), ids=TAMPERED.keys())
def test_any_change_fails_verification(verify: Verify, tampered: dict[str, Any]) -> None:
    result = verify(json.dumps(tampered), "--json", body=BODY)

    assert result.exit_code == 1
    assert "failed" in check_states(result).values()


@pytest.mark.parametrize("body", [BODY + b"\n", BODY[:-1], b"", BODY.replace(b"blocked", b"allowed")])
def test_other_body_fails_verification(verify: Verify, body: bytes) -> None:
    result = verify(encode_header(signed_settle_response()), "--json", body=body)

    assert result.exit_code == 1
    assert check_states(result)["body"] == "failed"


def test_other_signer_fails_verification(verify: Verify) -> None:
    result = verify(
        encode_header(signed_settle_response(OTHER)), "--json", f"--signer={SIGNER.address}", body=BODY
    )

    assert result.exit_code == 1
    assert check_states(result) | {"offer": ""} == {
        "receipt": "ok",
        "settlement": "ok",
        "answer": "ok",
        "body": "ok",
        "offer": "",
        "signer": "failed",
    }


PAYLOAD = (*OFFER, "payload")


@pytest.mark.parametrize(
    "offer",
    [
        *(
            with_value_at(signed_payment_required(), (*PAYLOAD, name), "0x" + "11" * 20)
            for name in (*TERMS, "resourceUrl")
        ),
        with_value_at(signed_payment_required(), (*PAYLOAD, "validUntil"), 1),
        with_value_at(signed_payment_required(), (*OFFER, "signature"), "0x"),
        with_value_at(signed_payment_required(), ("accepts", 0, "payTo"), "0x" + "11" * 20),
        with_value_at(signed_payment_required(), ("accepts", 0), None),
        with_value_at(signed_payment_required(), OFFER[:-1], []),
        with_value_at(signed_payment_required(), ("extensions",), None),
        signed_payment_required(OTHER),
        signed_payment_required(url=URL + "s"),
    ],
    ids=[
        *TERMS,
        "resource",
        "validity",
        "signature",
        "terms beside it",
        "no terms beside it",
        "no offers",
        "no extensions",
        "another signer",
        "another route",
    ],
)
def test_foreign_offer_fails_verification(verify: Verify, offer: dict[str, Any]) -> None:
    result = verify(encode_header(signed_settle_response()), "--json", offer=encode_header(offer))

    assert result.exit_code == 1
    assert check_states(result)["offer"] == "failed"


def test_offer_can_be_verified_alone(verify: Verify) -> None:
    (offer,) = signed_payment_required()["extensions"]["offer-receipt"]["info"]["offers"]

    result = verify(encode_header(signed_settle_response()), "--json", offer=json.dumps(offer))

    assert check_states(result)["offer"] == "ok"


def test_receipt_without_answer_is_verified_in_part(verify: Verify) -> None:
    settled = signed_settle_response()
    del settled["extensions"]["centgate-answer"]

    without, with_body = (
        verify(encode_header(settled), "--json", **options) for options in ({}, {"body": BODY})
    )

    assert (without.exit_code, check_states(without)["answer"]) == (0, "not checked")
    assert (with_body.exit_code, check_states(with_body)["body"]) == (1, "failed")


def test_missing_optional_fields_are_signed_as_empty() -> None:
    settled = signed_settle_response(transaction="")
    del settled["extensions"]["offer-receipt"]["info"]["receipt"]["payload"]["transaction"]

    verdict = verify_receipt(settled, body=BODY)

    assert verdict.is_valid
    assert verdict.signer == SIGNER.address


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty: it must hold the value of PAYMENT-RESPONSE"),
        ("not base64!", "it is neither the value of PAYMENT-RESPONSE nor JSON"),
        (b"\xff\xfe\x00", "it is neither the value of PAYMENT-RESPONSE nor JSON"),
        ('{"success": ', "it is neither JSON nor a header of base64-encoded JSON"),
        (b64encode(b"[1]"), "it is not a JSON object"),
        (b64encode(b"null"), "it is not a JSON object"),
        ("[" * 100_000, "it is neither"),
        ('{"a":' * 100_000, "it is neither JSON nor a header"),
        ("x" * 1_100_000, "it is longer than 1024 KiB"),
    ],
    ids=["empty", "text", "bytes", "cut", "list", "null", "brackets", "deep", "long"],
)
def test_invalid_receipt_is_refused_in_one_sentence(verify: Verify, content: Any, message: str) -> None:
    result = verify(content)

    assert result.exit_code == 1
    assert result.stderr.startswith("centgate: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--signer=0x12"], "--signer must be an address, 0x and 40 hex digits, not '0x12'"),
        (["--body=nowhere"], "nowhere cannot be read: No such file or directory"),
        (["--offer=nowhere"], "nowhere cannot be read: No such file or directory"),
        (["--body=."], ". cannot be read: Is a directory"),
    ],
)
def test_invalid_options_are_refused_in_one_sentence(
    verify: Verify, options: list[str], message: str
) -> None:
    result = verify(encode_header(signed_settle_response()), *options)

    assert (result.exit_code, result.stderr) == (1, f"centgate: {message}\n")


def test_untrusted_text_cannot_control_terminal(verify: Verify) -> None:
    settled = signed_settle_response(payer="\x1b[2J\u202e")

    result = verify(encode_header(settled), body=BODY)

    assert result.exit_code == 0
    assert "\x1b[2J" not in result.stdout
    assert "\u202e" not in result.stdout


def test_missing_file_is_reported(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["receipt", "verify", str(tmp_path / "nowhere")])

    assert result.exit_code == 1
    assert "nowhere cannot be read: No such file or directory" in result.stderr
