"""Sign-in (x402's SIWX): valid for one wallet, one resource, five minutes and one request."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from buyer import ApiFactory
from databases import create_sqlite
from served_api import ServedApi, serve_api
from sign_ins import answer_challenge, fetch_challenge, get_signed, send_payload, sign_in, sign_text

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.payments.database.store_factory import open_store
from centgate.payments.journal.journal import Journal
from centgate.payments.journal.sign_in_nonces import IssuedFor, SignInNonces
from centgate.settings import Settings

CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
Payload = dict[str, Any]


@pytest.fixture(scope="module")
def served_api(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedApi]:
    """An API that accepts payments."""
    with serve_api(tmp_path_factory.mktemp("served_api"), free_per_minute=0) as served_api:
        yield served_api


@pytest.fixture
def client(served_api: ServedApi) -> httpx.Client:
    return served_api.client


def read_reason(response: httpx.Response) -> str:
    assert response.status_code == 402, response.text
    assert "PAYMENT-REQUIRED" in response.headers
    return response.json()["error"]["details"]["reason"]


def sign_changed_challenge(client: httpx.Client, **changes: Any) -> Payload:
    """Sign a challenge after changing its fields."""
    challenge = fetch_challenge(client)
    info = {name: value for name, value in {**challenge["info"], **changes}.items() if value is not None}
    return answer_challenge({**challenge, "info": info})


def test_signed_challenge_is_accepted(client: httpx.Client) -> None:
    assert get_signed(client).status_code == 200


def test_sign_in_is_valid_for_one_request(client: httpx.Client) -> None:
    headers = sign_in(client)
    first = client.get("/payments", headers=headers)

    again = client.get("/payments", headers=headers)

    assert (first.status_code, read_reason(again)) == (200, "invalid_siwx_nonce")


def test_other_encoding_is_same_sign_in(client: httpx.Client) -> None:
    payload = answer_challenge(fetch_challenge(client))
    first = send_payload(client, payload)

    again = send_payload(client, dict(reversed(payload.items())))

    assert (first.status_code, read_reason(again)) == (200, "invalid_siwx_nonce")


def test_high_s_is_refused(client: httpx.Client) -> None:
    payload = answer_challenge(fetch_challenge(client))
    signature = bytes.fromhex(payload["signature"][2:])
    s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    malleable = signature[:32] + s.to_bytes(32, "big") + bytes([signature[64] ^ 7])

    response = send_payload(client, payload | {"signature": "0x" + malleable.hex()})

    assert read_reason(response) == "invalid_siwx_verifier_error"
    assert send_payload(client, payload).status_code == 200


@pytest.mark.parametrize("case", ["lower", "upper"])
def test_single_case_address_is_accepted(client: httpx.Client, case: str) -> None:
    digits = BUYER_ACCOUNTS[0].address[2:]
    address = "0x" + (digits.lower() if case == "lower" else digits.upper())

    response = send_payload(client, answer_challenge(fetch_challenge(client), address=address))

    assert response.status_code == 200


@pytest.mark.parametrize("case", ["lower", "upper"])
def test_spelling_of_header_may_differ_from_that_of_message(client: httpx.Client, case: str) -> None:
    """The message of EIP-4361 has the address in EIP-55; other spellings name the same address."""
    payload = answer_challenge(fetch_challenge(client))
    digits = payload["address"][2:]
    spelled = "0x" + (digits.lower() if case == "lower" else digits.upper())

    response = send_payload(client, payload | {"address": spelled})

    assert response.status_code == 200, response.text
    assert read_reason(send_payload(client, payload)) == "invalid_siwx_nonce"


def test_wrong_checksum_is_refused(client: httpx.Client) -> None:
    payload = answer_challenge(fetch_challenge(client))
    digits = payload["address"][2:]
    position = next(at for at, digit in enumerate(digits) if digit.isalpha())
    wrong = "0x" + digits[:position] + digits[position].swapcase() + digits[position + 1 :]

    assert read_reason(send_payload(client, payload | {"address": wrong})) == "invalid_siwx_header"


def test_signature_is_bound_to_address(client: httpx.Client) -> None:
    payload = answer_challenge(fetch_challenge(client))

    response = send_payload(client, payload | {"address": BUYER_ACCOUNTS[1].address})

    assert read_reason(response) == "invalid_siwx_verifier_error"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"domain": "evil.example"}, "invalid_siwx_domain_mismatch"),
        ({"uri": "http://evil.example/payments"}, "invalid_siwx_uri_mismatch"),
        ({"resources": ["http://evil.example/payments"]}, "invalid_siwx_uri_mismatch"),
        ({"nonce": secrets.token_hex(32)}, "invalid_siwx_nonce"),
        ({"issuedAt": "2099-01-01T00:00:00Z"}, "invalid_siwx_nonce"),
        ({"expirationTime": "2099-01-01T00:00:00Z"}, "invalid_siwx_nonce"),
        ({"statement": "Give everything away."}, "invalid_siwx_header"),
        ({"requestId": "1"}, "invalid_siwx_header"),
        ({"notBefore": "2099-01-01T00:00:00Z"}, "invalid_siwx_header"),
        ({"expirationTime": None}, "invalid_siwx_header"),
    ],
)
def test_changed_fields_are_refused(client: httpx.Client, changes: Payload, reason: str) -> None:
    assert read_reason(send_payload(client, sign_changed_challenge(client, **changes))) == reason


def test_chain_that_was_not_offered_is_refused(client: httpx.Client) -> None:
    challenge = fetch_challenge(client)
    other = {**challenge, "supportedChains": [{"chainId": "eip155:1", "type": "eip191"}]}

    response = send_payload(client, answer_challenge(other))

    assert read_reason(response) == "invalid_siwx_unsupported_chain"


@pytest.mark.parametrize(
    ("signed_for", "sent_to"), [("/payments", "/payments/0x12"), ("/payments/0x12", "/payments")]
)
def test_sign_in_is_bound_to_path(client: httpx.Client, signed_for: str, sent_to: str) -> None:
    response = client.get(sent_to, headers=sign_in(client, signed_for))

    assert read_reason(response) == "invalid_siwx_uri_mismatch"


def test_nonce_is_bound_to_path(client: httpx.Client) -> None:
    nonce = fetch_challenge(client, "/payments/0x12")["info"]["nonce"]

    assert (
        read_reason(send_payload(client, sign_changed_challenge(client, nonce=nonce))) == "invalid_siwx_nonce"
    )


def test_expired_challenge_is_refused(
    api: ApiFactory, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api(settings)
    monkeypatch.setattr("centgate.payments.wallet.sign_in.CHALLENGE_SECONDS", -1)

    assert read_reason(send_payload(client, sign_changed_challenge(client))) == "invalid_siwx_expired"


def test_nonce_of_another_deployment_is_refused(
    client: httpx.Client, api: ApiFactory, settings: Settings
) -> None:
    other = fetch_challenge(api(settings))["info"]
    own = fetch_challenge(client)
    mixed = {**own["info"], **{name: other[name] for name in ("nonce", "issuedAt", "expirationTime")}}

    response = send_payload(client, answer_challenge({**own, "info": mixed}))

    assert read_reason(response) == "invalid_siwx_nonce"


def test_wrong_signatures_count_ten_times(api: ApiFactory, chain_settings: Settings) -> None:
    """Each makes nodes look for a contract at an address that a stranger chose."""
    limits = {"free_per_minute": 1, "free_burst": 25}
    client = api(chain_settings.model_copy(update=limits))
    challenge = fetch_challenge(client)
    payloads = [answer_challenge(challenge, address="0x" + f"{number:040x}") for number in range(1, 5)]

    statuses = [send_payload(client, payload).status_code for payload in payloads]

    assert statuses == [402, 402, 402, 429]


HEADERS = {
    "nothing": b"",
    "no base64": b"%%%",
    "base64 with a line break": b"e30=\te30=",
    "no JSON": b64encode(b"{"),
    "no object": b64encode(b"[1]"),
    "an empty object": b64encode(b"{}"),
    "a number": b64encode(b"1"),
    "invalid UTF-8": b64encode(b'{"domain": "\xff"}'),
    "a lone surrogate": b64encode(b'{"domain": "\\ud800"}'),
    "deep nesting": b64encode(b"[" * 5000),
    "very long": b"A" * 17_000,
    "two of them": b64encode(b"{}") + b", " + b64encode(b"{}"),
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_malformed_header_is_refused(client: httpx.Client, header: bytes) -> None:
    response = client.get("/payments", headers={b"SIGN-IN-WITH-X": header})

    assert read_reason(response) == "invalid_siwx_header"


FIELDS = {
    "a line break": {"statement": "a\nURI: x"},
    "a right-to-left mark": {"domain": "\u202eexample"},
    "a null character": {"uri": "\0"},
    "a number for a text": {"nonce": 7},
    "a short nonce": {"nonce": "12"},
    "no hexadecimal signature": {"signature": "0xzz"},
    "an empty signature": {"signature": "0x"},
    "half a byte": {"signature": "0x1"},
    "no address": {"address": "0x12"},
    "two resources": {"resources": ["a", "b"]},
    "another type": {"type": "ed25519"},
    "another version": {"version": "2"},
    "an unknown scheme": {"signatureScheme": "rot13"},
    "an unknown member": {"more": 1},
}


@pytest.mark.parametrize("changes", FIELDS.values(), ids=FIELDS.keys())
def test_invalid_fields_are_refused(client: httpx.Client, changes: Payload) -> None:
    payload = answer_challenge(fetch_challenge(client))

    assert read_reason(send_payload(client, payload | changes)) == "invalid_siwx_header"


@pytest.mark.parametrize("size", [0, 64, 66, 5000])
def test_signatures_of_other_sizes_are_refused(client: httpx.Client, size: int) -> None:
    payload = answer_challenge(fetch_challenge(client), sign=lambda _: b"\x01" * (size or 1))

    assert read_reason(send_payload(client, payload)).startswith("invalid_siwx_")


def test_wrong_wrapper_is_refused(client: httpx.Client) -> None:
    payload = answer_challenge(fetch_challenge(client), sign=lambda _: bytes.fromhex("6492" * 16))

    assert read_reason(send_payload(client, payload)) == "invalid_siwx_malformed_signature"


def test_payment_signature_is_no_sign_in(client: httpx.Client) -> None:
    """A signature over another text is refused."""
    payload = answer_challenge(
        fetch_challenge(client), sign=lambda text: sign_text(BUYER_ACCOUNTS[0].private_key, text + " ")
    )

    assert read_reason(send_payload(client, payload)) == "invalid_siwx_verifier_error"


def test_one_of_many_concurrent_uses_is_accepted(client: httpx.Client) -> None:
    headers = sign_in(client)

    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(client.get, "/payments", headers=headers) for _ in range(8)]
        statuses = sorted(each.result().status_code for each in sent)

    assert statuses == [200, *[402] * 7]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nonce_is_used_once_across_replicas(
    kind: str, api: ApiFactory, settings: Settings, request: pytest.FixtureRequest
) -> None:
    url = settings.database_url if kind == "sqlite" else request.getfixturevalue("postgres_url")
    shared = settings.model_copy(update={"public_url": "https://seller.example", "database_url": url})
    clients = [api(shared), api(shared)]

    for _ in range(3):
        headers = sign_in(clients[0])
        with ThreadPoolExecutor(2) as pool:
            sent = [pool.submit(client.get, "/payments", headers=headers) for client in clients]
            statuses = sorted(each.result().status_code for each in sent)

        assert statuses == [200, 402]


async def test_repeated_unit_recognises_its_own_use(database_url: str) -> None:
    store = open_store(database_url)
    await store.migrate()
    nonces = SignInNonces(store)
    nonce = await nonces.issue(IssuedFor("https://seller.example/payments", "a", "b"))

    used = [await nonces.use(nonce, request, 2e9) for request in ("req_1", "req_1", "req_2")]
    await store.close()

    assert used == [True, True, False]


async def test_replicas_share_their_key(tmp_path_factory: pytest.TempPathFactory) -> None:
    url = create_sqlite(tmp_path_factory.mktemp("shared"))
    stores = [open_store(url), open_store(url)]
    issued_for = IssuedFor("https://seller.example/payments", "a", "b")
    nonce = await SignInNonces(stores[0]).issue(issued_for)

    assert await SignInNonces(stores[1]).is_issued(nonce, issued_for)

    for store in stores:
        await store.close()


@pytest.mark.extended
async def test_expired_nonces_are_pruned(database_url: str) -> None:
    store = open_store(database_url)
    await store.migrate()
    nonces = SignInNonces(store)
    for expires_at in (1.0, 4e9):
        await nonces.use(secrets.token_hex(32), "req_1", expires_at)

    pruned = [await Journal(store, keep_seconds=1).prune() for _ in range(2)]
    await store.close()

    assert pruned == [1, 0]
