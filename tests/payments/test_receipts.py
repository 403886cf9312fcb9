"""Signed statements of the server: an offer with every 402, a receipt with every delivery."""

# x402 and eth-account are typed, and do not say so
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from buyer import PHISHING, QUESTION, Buyer, decode_header, encode_header, pay, sign_payload, sign_payment
from centgate_process import run_centgate
from eth_account import Account
from eth_account.messages import encode_typed_data
from facilitators import StubFacilitator, build_settings, refuse_with
from failing_service import FAILING_QUERY, FAILING_SERVICE, ServiceFailures, install_failing_service
from pydantic import ValidationError
from served_api import ServedApi, serve_api
from x402.extensions.bazaar import validate_discovery_extension, validate_discovery_extension_spec
from x402.schemas import PaymentRequired, SettleResponse

from centgate.catalog import all_services
from centgate.errors import NoData
from centgate.payments.terms import MAX_OFFER_HEADER, OFFER_REUSE_SECONDS
from centgate.server import run_in_thread
from centgate.service import AnyService
from centgate.settings import Settings
from centgate.signing.evm import keccak

KEY = "0x" + "5e" * 32
SIGNER = str(Account.from_key(KEY).address)
WINDOW = 120
URL = "https://api.centgate.example"

DOMAIN = [
    {"name": "name", "type": "string"},
    {"name": "version", "type": "string"},
    {"name": "chainId", "type": "uint256"},
]
OFFER = {
    "version": "uint256",
    "resourceUrl": "string",
    "scheme": "string",
    "network": "string",
    "asset": "string",
    "payTo": "string",
    "amount": "string",
    "validUntil": "uint256",
}
RECEIPT = {
    "version": "uint256",
    "network": "string",
    "resourceUrl": "string",
    "payer": "string",
    "issuedAt": "uint256",
    "transaction": "string",
}
ANSWER = {"receipt": "bytes32", "bodySha256": "bytes32"}

each_service = pytest.mark.parametrize("service", all_services(), ids=lambda service: service.slug)


@pytest.fixture(scope="module")
def failures() -> Generator[ServiceFailures]:
    """Scripted failures of a service."""
    with install_failing_service() as failures:
        yield failures


@pytest.fixture(scope="module")
def served_api(failures: ServiceFailures, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that signs."""
    folder = tmp_path_factory.mktemp("served_api")
    with serve_api(folder, receipt_key=KEY, public_url=URL, payment_window=WINDOW) as served_api:
        yield served_api


@pytest.fixture
def shop(served_api: ServedApi) -> httpx.Client:
    """A client of that API."""
    return served_api.client


def encode_statement(name: str, domain: str, fields: dict[str, str], payload: Any) -> Any:
    """Return a statement as eth-account encodes it."""
    return encode_typed_data(
        full_message={
            "domain": {"name": domain, "version": "1", "chainId": 1},
            "types": {
                "EIP712Domain": DOMAIN,
                name: [{"name": field, "type": kind} for field, kind in fields.items()],
            },
            "primaryType": name,
            "message": payload,
        }
    )


def recover_signer(name: str, domain: str, fields: dict[str, str], signed: Any) -> str:
    """Recover the signer of a statement with eth-account."""
    assert signed["format"] == "eip712"
    message = encode_statement(name, domain, fields, signed["payload"])
    return Account.recover_message(message, signature=signed["signature"])


def read_receipt(response: httpx.Response) -> Any:
    return decode_header(response.headers["PAYMENT-RESPONSE"])["extensions"]["offer-receipt"]["info"][
        "receipt"
    ]


def read_signed_answer(response: httpx.Response) -> Any:
    return decode_header(response.headers["PAYMENT-RESPONSE"])["extensions"]["centgate-answer"]["info"][
        "answer"
    ]


@pytest.mark.extended
@each_service
def test_every_402_has_offer_of_its_terms(served_api: ServedApi, service: AnyService) -> None:
    before = time.time()

    required = decode_header(served_api.client.post(service.path).headers["PAYMENT-REQUIRED"])

    (offer,) = required["extensions"]["offer-receipt"]["info"]["offers"]
    (terms,) = required["accepts"]
    until = offer["payload"]["validUntil"]
    assert recover_signer("Offer", "x402 offer", OFFER, offer) == SIGNER
    assert offer["acceptIndex"] == 0
    assert offer["payload"] == {
        "version": 1,
        "resourceUrl": URL + service.path,
        **{name: terms[name] for name in ("scheme", "network", "asset", "payTo", "amount")},
        "validUntil": until,
    }
    assert before + WINDOW < until < before + WINDOW + OFFER_REUSE_SECONDS + 60


@pytest.mark.extended
@each_service
def test_terms_with_offer_are_valid_and_short(served_api: ServedApi, service: AnyService) -> None:
    header = served_api.client.post(service.path).headers["PAYMENT-REQUIRED"]

    required = decode_header(header)
    block = required["extensions"]["bazaar"]
    read = PaymentRequired.model_validate(required).model_dump(mode="json", by_alias=True, exclude_none=True)
    assert len(header) <= MAX_OFFER_HEADER
    assert read["extensions"] == required["extensions"]
    assert validate_discovery_extension_spec(block).errors == []
    assert validate_discovery_extension(block).errors == []
    assert block["info"]["output"]["example"]["service"] == service.slug
    assert isinstance(block["schema"]["properties"]["output"]["properties"]["example"], dict)
    assert set(service.input_example) <= set(
        block["schema"]["properties"]["input"]["properties"]["body"]["properties"]
    )


def test_offer_is_signed_once_for_all_requests(shop: httpx.Client) -> None:
    headers = {shop.post(PHISHING).headers["PAYMENT-REQUIRED"] for _ in range(20)}

    ends = {
        decode_header(each)["extensions"]["offer-receipt"]["info"]["offers"][0]["payload"]["validUntil"]
        for each in headers
    }
    assert len(headers) == len(ends) <= 2
    assert {(each - WINDOW) % OFFER_REUSE_SECONDS for each in ends} == {0}


def test_402_with_reason_has_offer_and_is_short(shop: httpx.Client, buyer: Buyer) -> None:
    payment = encode_header(sign_payload(shop, buyer, validBefore="1"))

    response = pay(shop, payment)

    required = decode_header(response.headers["PAYMENT-REQUIRED"])
    assert required["error"] == "invalid_exact_evm_payload_authorization_valid_before"
    assert len(response.headers["PAYMENT-REQUIRED"]) <= MAX_OFFER_HEADER
    (offer,) = required["extensions"]["offer-receipt"]["info"]["offers"]
    assert recover_signer("Offer", "x402 offer", OFFER, offer) == SIGNER


def test_delivery_has_receipt(shop: httpx.Client, buyer: Buyer) -> None:
    before = int(time.time())

    response = pay(shop, sign_payment(shop, buyer))

    settled = decode_header(response.headers["PAYMENT-RESPONSE"])
    receipt = read_receipt(response)
    issued = receipt["payload"]["issuedAt"]
    assert recover_signer("Receipt", "x402 receipt", RECEIPT, receipt) == SIGNER
    assert receipt["payload"] == {
        "version": 1,
        "network": settled["network"],
        "resourceUrl": URL + PHISHING,
        "payer": buyer.address.lower(),
        "issuedAt": issued,
        "transaction": settled["transaction"],
    }
    assert before <= issued <= time.time()
    assert SettleResponse.model_validate(settled).success


def test_receipt_covers_bytes_of_answer(shop: httpx.Client, buyer: Buyer) -> None:
    response = pay(shop, sign_payment(shop, buyer))

    answer = read_signed_answer(response)
    message = encode_statement("Receipt", "x402 receipt", RECEIPT, read_receipt(response)["payload"])
    digest = keccak(b"\x19" + message.version + message.header + message.body)
    assert recover_signer("Answer", "Centgate answer", ANSWER, answer) == SIGNER
    assert answer["payload"] == {
        "receipt": "0x" + digest.hex(),
        "bodySha256": "0x" + sha256(response.content).hexdigest(),
    }


def test_no_data_is_answer_with_receipt(shop: httpx.Client, failures: ServiceFailures, buyer: Buyer) -> None:
    failures.raise_next(partial(NoData, "nobody knows"))

    response = pay(
        shop, sign_payment(shop, buyer, FAILING_SERVICE, FAILING_QUERY), FAILING_SERVICE, FAILING_QUERY
    )

    assert response.json()["error"]["code"] == "no_data"
    assert recover_signer("Receipt", "x402 receipt", RECEIPT, read_receipt(response)) == SIGNER
    assert (
        read_signed_answer(response)["payload"]["bodySha256"] == "0x" + sha256(response.content).hexdigest()
    )


def test_refused_payment_has_no_receipt(served_api: ServedApi, buyer: Buyer) -> None:
    served_api.facilitator.next.append(refuse_with("insufficient_funds"))

    response = pay(served_api.client, sign_payment(served_api.client, buyer))

    assert response.status_code == 402
    assert "extensions" not in decode_header(response.headers["PAYMENT-RESPONSE"])


@pytest.fixture
def replicas(
    database_url: str, tmp_path: Path, facilitator: StubFacilitator
) -> Generator[list[httpx.Client]]:
    """Clients of two APIs that sign and share a journal."""
    changes = {"database_url": database_url, "receipt_key": KEY, "public_url": URL}
    with ExitStack() as opened:
        settings = build_settings(tmp_path, facilitator.url, **changes)
        urls = [opened.enter_context(run_in_thread(settings)) for _ in range(2)]
        yield [opened.enter_context(httpx.Client(base_url=url, timeout=30)) for url in urls]


@pytest.mark.extended
def test_replay_has_same_receipt_on_any_replica(replicas: list[httpx.Client], buyer: Buyer) -> None:
    payment = sign_payment(replicas[0], buyer)
    first = pay(replicas[0], payment)

    again = [pay(replica, payment) for replica in replicas]

    assert [each.headers["PAYMENT-RESPONSE"] for each in again] == [first.headers["PAYMENT-RESPONSE"]] * 2
    assert [each.content for each in again] == [first.content] * 2
    assert [each.headers["Idempotent-Replayed"] for each in again] == ["true"] * 2
    assert recover_signer("Receipt", "x402 receipt", RECEIPT, read_receipt(first)) == SIGNER


def test_signer_is_published(shop: httpx.Client) -> None:
    well_known = shop.get("/.well-known/x402").json()
    document = shop.get("/openapi.json").json()

    assert well_known["receiptSigner"] == SIGNER
    assert document["x-offer-receipt"] == {"format": "eip712", "receiptSigner": SIGNER}


def test_nothing_is_signed_without_key(client: httpx.Client, buyer: Buyer) -> None:
    payload = sign_payload(client, buyer)

    response = pay(client, encode_header(payload))

    assert decode_header(response.headers["PAYMENT-RESPONSE"]) == {
        "success": True,
        "payer": buyer.address.lower(),
        "transaction": payload["payload"]["authorization"]["nonce"],
        "network": "eip155:84532",
        "amount": "10000",
    }
    required = decode_header(client.post(PHISHING, json=QUESTION).headers["PAYMENT-REQUIRED"])
    assert list(required["extensions"]) == ["bazaar", "payment-identifier", "delivery-terms"]
    assert "output" in required["extensions"]["bazaar"]["info"]
    assert "receiptSigner" not in client.get("/.well-known/x402").json()
    assert "x-offer-receipt" not in client.get("/openapi.json").json()


@pytest.mark.parametrize(
    "key",
    ["", "0x", "abc", "5e" * 31, "5e" * 33, "zz" * 32, "00" * 32, "ff" * 32],
    ids=["empty", "prefix", "odd", "short", "long", "no hex", "zero", "beyond the curve"],
)
def test_invalid_key_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(ValidationError) as error:
        Settings(receipt_key=key)  # pyright: ignore[reportArgumentType]

    (found,) = error.value.errors()
    assert found["loc"] == ("receipt_key",)
    assert found["msg"] == (
        "Value error, not a private key: expected 64 hex digits, as printed by `openssl rand -hex 32`"
    )


@pytest.mark.extended
def test_server_does_not_start_with_invalid_key() -> None:
    environment = {**os.environ, "CENTGATE_RECEIPT_KEY": "secret" * 11}
    done = run_centgate(["serve", "--port", "0"], env=environment)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("centgate: CENTGATE_RECEIPT_KEY: not a private key")
    assert "secretsecret" not in done.stderr
