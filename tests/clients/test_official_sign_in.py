"""The official clients of x402 sign in to see a wallet's payments."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from buyer import QUESTION, ApiFactory, Buyer, decode_header, encode_header, pay, sign_payment
from sign_ins import answer_challenge, fetch_challenge
from x402.extensions.sign_in_with_x import (
    parse_siwx_header,
    validate_siwx_message,
    verify_siwx_signature,
)

from centgate.devchain.accounts import BUYER_ACCOUNTS
from centgate.settings import Settings

pytestmark = pytest.mark.extended

TIMEOUT = 60


def test_javascript_client_reads_and_redeems(npm_project: Path, api: ApiFactory, settings: Settings) -> None:
    client = api(settings)
    bought = pay(client, sign_payment(client, Buyer()))
    environment = {
        **os.environ,
        "CENTGATE_URL": str(client.base_url).rstrip("/"),
        "PRIVATE_KEY": BUYER_ACCOUNTS[0].private_key,
        "TRANSACTION": decode_header(bought.headers["PAYMENT-RESPONSE"])["transaction"],
        "BODY": json.dumps(QUESTION),
    }

    done = subprocess.run(
        ["node", "sign_in.mjs"],
        cwd=npm_project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["statuses"] == [200, 200, 200]
    assert printed["payments"]["payments"][0]["answer"]["body"] == printed["answer"] == bought.json()
    assert len(printed["list"]["payments"]) == 1


async def test_official_server_accepts_sign_in(api: ApiFactory, settings: Settings) -> None:
    client = api(settings)
    payload = parse_siwx_header(encode_header(answer_challenge(fetch_challenge(client))))

    validation = await validate_siwx_message(payload, str(client.base_url).rstrip("/"))
    verification = await verify_siwx_signature(payload)

    assert validation.is_valid, validation.invalid_message
    assert verification.is_valid, verification.invalid_message
