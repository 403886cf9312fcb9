"""Signatures of webhooks, compared with the library that receivers use."""

from __future__ import annotations

import time
from base64 import b64encode
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from centgate.signing.webhook_signature import parse_secrets, sign_webhook

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + b64encode(bytes(range(64))).decode()


def test_specification_example_is_reproduced() -> None:
    body = b'{"test": 2432232314}'
    signature = sign_webhook(parse_secrets(SECRET), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(body=st.text().map(str.encode), event_id=st.text("evt_0123456789abcdef", min_size=1, max_size=40))
def test_library_creates_same_signature(body: bytes, event_id: str) -> None:
    at = int(time.time())
    theirs = Webhook(SECRET).sign(event_id, datetime.fromtimestamp(at, UTC), body.decode())
    assert sign_webhook(parse_secrets(SECRET), event_id, at, body) == theirs


@pytest.mark.parametrize("secret", [SECRET, OTHER])
def test_library_accepts_either_secret_during_rotation(secret: str) -> None:
    at = int(time.time())
    signature = sign_webhook(parse_secrets(f"{OTHER}, {SECRET}"), "evt_1", at, b"{}")
    headers = {"webhook-id": "evt_1", "webhook-timestamp": str(at), "webhook-signature": signature}

    assert Webhook(secret).verify(b"{}", headers) == {}
    for changed in ({"webhook-id": "evt_2"}, {"webhook-timestamp": str(at + 1)}):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(b"{}", headers | changed)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(b"[]", headers)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_",
        "whsec_c2hvcnQ=",
        "whsec_" + b64encode(bytes(65)).decode(),
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZI!o2LaLaSw",
        f"{SECRET},{OTHER},{SECRET}",
    ],
)
def test_invalid_secret_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(ValueError, match="needs") as refused:
        parse_secrets(text)
    assert "MfKQ9r8" not in str(refused.value)
