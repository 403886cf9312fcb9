"""Raw requests that a client library would normalise: no service is reached without payment."""

from __future__ import annotations

import json
import socket
from base64 import b64encode
from collections.abc import Generator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from buyer import PHISHING, QUESTION, Buyer, encode_header, pay, sign_payload, sign_payment
from served_api import ServedApi, serve_api

BODY = json.dumps(QUESTION)
FREE_OF_CHARGE = (400, 402, 404, 405)


@dataclass(frozen=True)
class Answer:
    """A raw response."""

    status: int
    body: bytes

    @property
    def code(self) -> str | None:
        """The code of the error, or None."""
        return json.loads(self.body).get("error", {}).get("code") if self.body.startswith(b"{") else None


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api")) as served_api:
        yield served_api


def send_raw(
    served_api: ServedApi, target: str, *headers: str, body: str = BODY, method: str = "POST"
) -> Answer:
    """Send a request line and headers unchanged."""
    parts = urlsplit(str(served_api.client.base_url))
    lines = [f"{method} {target} HTTP/1.1", "Content-Type: application/json", "Connection: close"]
    if not any(header.lower().startswith("host:") for header in headers):
        lines.append(f"Host: {parts.netloc}")
    request = "\r\n".join([*lines, f"Content-Length: {len(body)}", *headers, "", body])
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
        connection.sendall(request.encode("latin-1"))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, content = answer.partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), content)


HOST = "127.0.0.1"
# spellings of a paid route's path
PATHS = {
    "an encoded letter": "/services/%70hishing-check",
    "an encoded slash": "/services%2Fphishing-check",
    "an encoded slash in front": "/%2Fservices/phishing-check",
    "everything encoded": "".join(f"%{ord(letter):02x}" for letter in PHISHING),
    "encoded twice": "/services/%2570hishing-check",
    "a doubled slash": "/services//phishing-check",
    "a doubled slash in front": "//services/phishing-check",
    "a slash at the end": "/services/phishing-check/",
    "another case": "/Services/Phishing-Check",
    "a dot": "/services/./phishing-check",
    "two dots": "/services/x/../phishing-check",
    "encoded dots": "/services/%2e%2e/services/phishing-check",
    "a dot at the end": "/services/phishing-check/.",
    "parameters": "/services/phishing-check;v=1",
    "a backslash": "/services\\phishing-check",
    "an encoded backslash": "/services%5cphishing-check",
    "an encoded null": "/services/phishing-check%00",
    "an encoded line end": "/services/phishing-check%0d%0a",
    "an encoded question mark": "/services/phishing-check%3Fa=1",
    "an encoded space": "/services/phishing-check%20",
    "a letter that looks alike": "/services/phi%C5%BFhing-check",
    "bytes that are not UTF-8": "/services/phishing-check%ff",
    "a percent sign alone": "/services/phishing-check%",
    "no slash": "services/phishing-check",
    "an asterisk": "*",
}
ROUTE_ITSELF = {
    "a query": PHISHING + "?a=1",
    "an empty query": PHISHING + "?",
    "a fragment": PHISHING + "#a",
    "an absolute form": f"http://{HOST}{PHISHING}",
    "an absolute form of another host": f"http://elsewhere.test{PHISHING}",
}


@pytest.mark.parametrize("path", [*PATHS.values(), *ROUTE_ITSELF.values()], ids=[*PATHS, *ROUTE_ITSELF])
def test_path_spelling_reaches_no_service_unpaid(served_api: ServedApi, path: str) -> None:
    answer = send_raw(served_api, path)

    assert answer.status in FREE_OF_CHARGE
    assert b'"data"' not in answer.body


def test_white_space_around_header_is_ignored(served_api: ServedApi) -> None:
    payment = sign_payment(served_api.client, Buyer())

    answers = [
        send_raw(
            served_api, PHISHING, f"PAYMENT-SIGNATURE: {payment}{end}", f"Idempotency-Key: {'k' * 20}{end}"
        )
        for end in (" \t", "")
    ]

    assert [each.status for each in answers] == [200, 200]
    assert answers[0].body == answers[1].body


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_payment_for_path_spelling_is_not_taken(served_api: ServedApi, path: str) -> None:
    payment = sign_payment(served_api.client, Buyer())
    calls = served_api.facilitator.settle_calls

    answer = send_raw(served_api, path, f"PAYMENT-SIGNATURE: {payment}")

    assert answer.status in (400, 404)
    assert served_api.facilitator.settle_calls == calls
    assert pay(served_api.client, payment).status_code == 200


@pytest.mark.parametrize("path", [each for name, each in ROUTE_ITSELF.items() if "form" not in name])
def test_query_string_is_ignored(served_api: ServedApi, path: str) -> None:
    payment = sign_payment(served_api.client, Buyer())
    first = pay(served_api.client, payment)

    answer = send_raw(served_api, path, f"PAYMENT-SIGNATURE: {payment}")

    assert (answer.status, answer.body) == (200, first.content)


@pytest.mark.parametrize("host", ["elsewhere.test", "127.0.0.1:1", "user@elsewhere.test", "", "a b"])
def test_another_host_gets_same_answer_or_none(served_api: ServedApi, host: str) -> None:
    payment = sign_payment(served_api.client, Buyer())
    first = pay(served_api.client, payment)
    calls = served_api.facilitator.settle_calls

    answer = send_raw(served_api, PHISHING, f"Host: {host}", f"PAYMENT-SIGNATURE: {payment}")

    assert answer.body == first.content or answer.status == 400
    assert served_api.facilitator.settle_calls == calls


@pytest.mark.parametrize(
    "header", ["X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix", "X-HTTP-Method-Override"]
)
def test_rewrite_headers_have_no_effect(served_api: ServedApi, header: str) -> None:
    answer = send_raw(served_api, "/livez", f"{header}: {PHISHING}", method="GET", body="")

    assert json.loads(answer.body) == {"status": "ok"}


def test_two_payments_in_one_request_are_refused(served_api: ServedApi) -> None:
    payments = [sign_payment(served_api.client, Buyer(number)) for number in (0, 1)]
    calls = served_api.facilitator.settle_calls

    answer = send_raw(served_api, PHISHING, *(f"PAYMENT-SIGNATURE: {payment}" for payment in payments))

    assert (answer.status, answer.code) == (402, "payment_required")
    assert served_api.facilitator.settle_calls == calls


def test_repeated_payment_header_is_refused(served_api: ServedApi) -> None:
    payment = sign_payment(served_api.client, Buyer())
    calls = served_api.facilitator.settle_calls

    answer = send_raw(served_api, PHISHING, f"PAYMENT-SIGNATURE: {payment}", f"payment-signature: {payment}")

    assert answer.status == 402
    assert served_api.facilitator.settle_calls == calls
    assert pay(served_api.client, payment).status_code == 200


def test_version_1_header_is_no_payment(served_api: ServedApi) -> None:
    payment = sign_payment(served_api.client, Buyer())

    answer = send_raw(served_api, PHISHING, f"X-PAYMENT: {payment}")

    assert (answer.status, answer.code) == (402, "payment_required")


# a duplicate key in the payment, before or after the signed one
TWICE = {
    "another amount first": ('"amount": "10000"', '"amount": "1", "amount": "10000"'),
    "another amount last": ('"amount": "10000"', '"amount": "10000", "amount": "1"'),
    "another value first": ('"value": "10000"', '"value": "1", "value": "10000"'),
    "another value last": ('"value": "10000"', '"value": "10000", "value": "1"'),
    "another scheme last": ('"scheme": "exact"', '"scheme": "exact", "scheme": "upto"'),
    "another version last": ('"x402Version": 2', '"x402Version": 2, "x402Version": 1'),
    "an empty payload last": ('"x402Version": 2', '"x402Version": 2, "payload": {}'),
}


@pytest.mark.parametrize(("once", "twice"), TWICE.values(), ids=TWICE)
def test_duplicate_key_is_read_consistently(served_api: ServedApi, once: str, twice: str) -> None:
    """Whichever value is read, the facilitator gets the value that was checked."""
    payload = sign_payload(served_api.client, Buyer())
    text = json.dumps(payload)
    assert text.count(once) == 1

    response = pay(served_api.client, encode_text(text.replace(once, twice)))

    assert response.status_code in (200, 402)
    if response.status_code == 200:
        assert served_api.facilitator.body["paymentRequirements"] == payload["accepted"]
        settled = served_api.facilitator.body["paymentPayload"]
        assert settled["payload"]["authorization"]["value"] == "10000"


def encode_text(text: str) -> str:
    """Encode JSON text for a header without changes."""
    return b64encode(text.encode()).decode()


def test_facilitator_gets_checked_payment(served_api: ServedApi) -> None:
    payload = sign_payload(served_api.client, Buyer())
    first = payload | {"accepted": payload["accepted"] | {"payTo": payload["accepted"]["payTo"].lower()}}

    response = pay(served_api.client, encode_header(first))

    assert response.status_code == 200
    assert served_api.facilitator.body["paymentPayload"]["accepted"] == payload["accepted"]


@pytest.mark.parametrize("version", ["[" * 1000 + "]" * 1000, '{"a":' * 1500 + "1" + "}" * 1500, "1e999"])
def test_nested_version_of_payment_is_refused(served_api: ServedApi, version: str) -> None:
    payment = b64encode(f'{{"x402Version":{version}}}'.encode()).decode()

    answer = send_raw(served_api, PHISHING, f"PAYMENT-SIGNATURE: {payment}")

    assert (answer.status, answer.code) == (402, "payment_required")
